// SPDX-License-Identifier: Apache-2.0
// The extension commfuse._engine. Users call the functions in commfuse/*.py.
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "model/build_info.h"
#include "model/config_error.h"
#include "model/record/model_version.h"
#include "python/engine/call.h"
#include "python/engine/keywords.h"
#include "python/engine/table.h"
#include "reports/figure/svg.h"

namespace commfuse::python {

namespace {

namespace py = pybind11;

/// Returns text for Python. Bytes that are not UTF-8 become surrogates, so encoding restores them.
py::str text_of(const std::string& bytes) {
  PyObject* text = PyUnicode_DecodeUTF8(bytes.data(), static_cast<Py_ssize_t>(bytes.size()), "surrogateescape");
  if (text == nullptr) {
    throw py::error_already_set();
  }
  return py::reinterpret_steal<py::str>(text);
}

std::string written(const sim::Answer& answer, const std::string& format) {
  std::string text;
  const py::gil_scoped_release unlocked;
  if (answer.write) {
    answer.write(format.empty() ? answer.format : format, [&](std::string_view piece) { text += piece; });
  }
  return text;
}

/// Returns the rows of the answer; null if it has no rows of layers or whole models.
std::shared_ptr<Table> table_of(const sim::Answer& answer) {
  const py::gil_scoped_release unlocked;
  return answer.layers   ? std::make_shared<Table>(answer.layers())
         : answer.models ? std::make_shared<Table>(answer.models())
                         : nullptr;
}

/// Returns pairs of a figure's name and its SVG.
std::vector<std::pair<std::string, std::string>> figures_of(const sim::Answer& answer) {
  const py::gil_scoped_release unlocked;
  std::vector<std::pair<std::string, std::string>> figures;
  if (answer.figures) {
    for (const reports::Figure& figure : answer.figures()) {
      figures.emplace_back(figure.id, reports::svg(figure));
    }
  }
  return figures;
}

/// Returns a read-only view of the values, without a copy. `owner` keeps them alive.
template <class T>
py::array view_of(const std::vector<T>& values, const py::dtype& type, const py::object& owner) {
  py::array view(type, {static_cast<py::ssize_t>(values.size())}, {static_cast<py::ssize_t>(sizeof(T))}, values.data(),
                 owner);
  view.attr("setflags")(py::arg("write") = false);
  return view;
}

/// Returns a pair: the values and None, or for a column of strings their codes and the list of words.
py::tuple column_of(const py::object& self, const std::string& name) {
  Table& table = self.cast<Table&>();
  const Column* column = nullptr;
  {
    const py::gil_scoped_release unlocked;
    column = &table.column(name);
  }
  if (column->type == ColumnType::text) {
    py::list words;
    for (const std::string& word : column->words) {
      words.append(text_of(word));
    }
    return py::make_tuple(view_of(column->codes, py::dtype::of<std::int32_t>(), self), words);
  }
  if (column->type == ColumnType::count && column->counts.size() == table.size()) {
    return py::make_tuple(view_of(column->counts, py::dtype::of<std::int64_t>(), self), py::none());
  }
  if (column->type == ColumnType::flag && column->flags.size() == table.size()) {
    return py::make_tuple(view_of(column->flags, py::dtype::of<bool>(), self), py::none());
  }
  return py::make_tuple(view_of(column->numbers, py::dtype::of<double>(), self), py::none());
}

py::object object_of(const Cell& cell) {
  if (const auto* const text = std::get_if<std::string>(&cell)) {
    return text_of(*text);
  }
  if (const auto* const count = std::get_if<std::int64_t>(&cell)) {
    return py::int_(*count);
  }
  if (const auto* const number = std::get_if<double>(&cell)) {
    return py::float_(*number);
  }
  if (const auto* const flag = std::get_if<bool>(&cell)) {
    return py::bool_(*flag);
  }
  return py::none();
}

py::dict record_of(const Table& table, std::size_t row) {
  if (row >= table.size()) {
    throw py::index_error("row index out of range");
  }
  py::dict record;
  const std::vector<Cell> cells = table.record(row);
  for (std::size_t column = 0; column < cells.size(); ++column) {
    record[py::str(table.heads()[column].name)] = object_of(cells[column]);
  }
  return record;
}

py::list names_of(const Table& table) {
  py::list names;
  for (const ColumnHead& head : table.heads()) {
    names.append(head.name);
  }
  return names;
}

void add_answer(py::module_& module) {
  py::class_<sim::Answer>(module, "Answer")
      .def_readonly("format", &sim::Answer::format)
      .def_readonly("files", &sim::Answer::files)
      .def_property_readonly("has_rows", [](const sim::Answer& answer) { return answer.layers || answer.models; })
      .def("text",
           [](const sim::Answer& answer, const std::string& format) { return text_of(written(answer, format)); })
      .def("table", &table_of)
      .def("figures", &figures_of);
  py::class_<Table, std::shared_ptr<Table>>(module, "Table")
      .def("__len__", &Table::size)
      .def("names", &names_of)
      .def("column", &column_of)
      .def("read_all", &Table::read_all, py::call_guard<py::gil_scoped_release>())
      .def("record", &record_of);
  py::class_<Called>(module, "Called")
      .def_readonly("code", &Called::code)
      .def_property_readonly("sentence", [](const Called& called) { return text_of(called.sentence); })
      .def_property_readonly("help", [](const Called& called) { return text_of(called.help); })
      .def_property_readonly("notes", [](const Called& called) { return text_of(called.notes); })
      .def_property_readonly(
          "answer", [](const Called& called) { return called.has_answer ? &called.answer : nullptr; },
          py::return_value_policy::reference_internal);
}

void add_keywords(py::module_& module) {
  py::class_<Keyword>(module, "Keyword")
      .def_readonly("flags", &Keyword::flags)
      .def_readonly("doc", &Keyword::doc)
      .def_readonly("group", &Keyword::group)
      .def_readonly("value", &Keyword::value)
      .def_readonly("preset", &Keyword::preset)
      .def_readonly("words", &Keyword::words)
      .def_readonly("by_place", &Keyword::by_place)
      .def_readonly("is_required", &Keyword::is_required)
      .def_readonly("repeats", &Keyword::repeats);
  py::class_<Command>(module, "Command")
      .def_readonly("doc", &Command::doc)
      .def_readonly("footer", &Command::footer)
      .def_readonly("keywords", &Command::keywords);
  module.def("command_names", &command_names);
  module.def("command", &command_of);
}

}  // namespace

PYBIND11_MODULE(_engine, module) {
  // Users catch errors by the exception classes of the Python side. They are made here, so that both sides raise the
  // same classes.
  static py::exception<ConfigError> mistake(module, "ConfigError", PyExc_ValueError);
  py::register_exception_translator([](std::exception_ptr thrown) {
    try {
      std::rethrow_exception(std::move(thrown));
    } catch (const ConfigError& error) {
      mistake(error.what());
    }
  });
  py::exception<std::runtime_error>(module, "Error", PyExc_RuntimeError);
  module.attr("version") = std::string(build_info().version);
  module.attr("model_version") = model_version;
  add_answer(module);
  add_keywords(module);
  module.def("call", &call);
}

}  // namespace commfuse::python
