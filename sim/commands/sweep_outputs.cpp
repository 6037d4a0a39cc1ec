// SPDX-License-Identifier: Apache-2.0
#include "sim/commands/sweep_outputs.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "model/config/catalogue.h"
#include "model/text/shell_word.h"
#include "model/workload/parameters.h"
#include "reports/crossover.h"
#include "reports/html/report.h"
#include "reports/point_rows.h"
#include "reports/rows.h"
#include "reports/step_rows.h"
#include "sim/commands/read_rows.h"
#include "sim/commands/render.h"
#include "sim/commands/report_input.h"
#include "sim/commands/run_steps.h"
#include "sim/commands/shown_figures.h"
#include "sim/point/point_list.h"

namespace commfuse::sim {

namespace {

/// Collects small pieces of text, because a write for each row would be slow.
class Pieces {
 public:
  explicit Pieces(const Sink& sink) : sink_(sink) {}
  void add(std::string_view piece) {
    constexpr std::size_t max_buffered = 1 << 20;
    text_ += piece;
    if (text_.size() >= max_buffered) {
      flush();
    }
  }
  void flush() {
    sink_(text_);
    text_.clear();
  }

 private:
  const Sink& sink_;
  std::string text_;
};

/// All rows of a store of layers, and the point of each row.
struct LayerResults {
  std::vector<ResultRow> rows;
  std::vector<std::size_t> points;
};

LayerResults layer_results(StoreReader& store) {
  LayerResults unordered;
  store.rewind();
  while (const std::optional<StoredPoint> point = store.next()) {
    for (const StoreRow& row : point->rows) {
      unordered.rows.push_back(layer_row(row, store.path().string()));
      unordered.points.push_back(point->point);
    }
  }
  // If strategies are an axis of the sweep, the rows of one point are not adjacent in the store; people compare them
  // side by side.
  LayerResults results;
  for (const std::size_t row : reports::order_by_point(unordered.rows)) {
    results.rows.push_back(std::move(unordered.rows[row]));
    results.points.push_back(unordered.points[row]);
  }
  return results;
}

std::vector<StepRow> step_results(StoreReader& store) {
  std::vector<StepRow> rows;
  store.rewind();
  while (const std::optional<StoredPoint> point = store.next()) {
    for (const StoreRow& row : point->rows) {
      rows.push_back(model_row(row, store.path().string()));
    }
  }
  return rows;
}

std::string report_of(const Sweep& sweep, const LayerResults& results) {
  const PointList list(sweep.grid, max_sweep_points);
  PointCursor cursor(list);
  return reports::html_report(report_input(sweep.title, RowTable(results.rows),
                                           fmt::format("commfuse-sim sweep {} --out FOLDER", settings_file),
                                           {.settings = [&](std::size_t row) { return cursor.at(results.points[row]); },
                                            .rule = verdict_rule_of(sweep.grid.settings)}));
}

std::string report_of(const Sweep& sweep, const std::vector<StepRow>& rows) {
  return reports::html_report(report_input(sweep.title, RowTable(),
                                           fmt::format("commfuse-sim sweep {} --out FOLDER", settings_file),
                                           {.rule = verdict_rule_of(sweep.grid.settings)}, rows));
}

/// Adds maps of the winners, if the sweep has anything to compare.
template <class Row>
void add_maps(std::span<const Row> rows, const VerdictRule& rule, std::vector<OutputFile>& files) {
  const std::vector<CrossoverMap> maps = reports::maps_of(rows, rule);
  if (!maps.empty()) {
    files.push_back(file_of("map.csv", reports::map_csv(maps)));
    files.push_back(file_of("crossovers.csv", reports::crossings_csv(maps)));
    files.push_back(file_of("map.json", reports::map_json(maps, reports::scalings_of(rows))));
  }
}

int code_of(const StoreReader& store) {
  return store.counts().infeasible_rows == 0 ? exit_code::done : exit_code::failed_points;
}

std::vector<OutputFile> tables_of(const Sweep& sweep, StoreReader& store) {
  std::vector<OutputFile> files;
  for (const char* format : {"csv", "json"}) {
    if (sweep.writes(format)) {
      files.emplace_back(fmt::format("results.{}", format),
                         [&store, format](const Sink& sink) { write_rows(store, format, sink); });
    }
  }
  return files;
}

/// Notes how to make the report. A report of some hundred thousand rows takes seconds, so it is made only on request.
void note_missing_report(const StoreReader& store, Caller& caller) {
  const std::filesystem::path folder = store.path().parent_path();
  caller.note(fmt::format(
      "no report.html: {} rows exceed the limit of {}; write it with commfuse-sim report {} --out {}\n",
      store.counts().rows, max_rows_shown, shell_word(folder.string()), shell_word((folder / "report.html").string())));
}

void report_missing_outputs(const Sweep& sweep, const StoreReader& store, Caller& caller) {
  const std::size_t rows = store.counts().rows;
  if (sweep.writes("report")) {
    note_missing_report(store, caller);
  }
  if (sweep.writes("map")) {
    caller.note(fmt::format("no map: {1} rows exceed the limit of {0}; narrow the sweep\n", max_rows_shown, rows));
  }
}

/// Returns a hint on how to see rows when there are too many to show.
std::string summary_of(const StoreReader& store) {
  return fmt::format("{} points, {} rows in {}\nshow them: commfuse-sim results {} --where \"ranks = 8\"\n",
                     store.identity().points, store.counts().rows, store.path().string(),
                     shell_word(store.path().string()));
}

/// Returns a writer for a store of layers. It streams rows in formats for programs, and calls `shown` for formats for
/// people.
std::function<void(std::string_view, const Sink&)> layer_writer(
    const StoreReader& store, std::function<std::string(std::string_view format)> shown) {
  return [path = store.path(), counts = store.counts(), shown = std::move(shown)](std::string_view format,
                                                                                  const Sink& sink) {
    require_format(StoreKind::layers, format);
    if (is_for_programs(format)) {
      StoreReader again(path, counts);
      write_rows(again, format, sink);
    } else {
      sink(shown(format));
    }
  };
}

std::function<std::shared_ptr<const RowTable>()> layers_in(const StoreReader& store) {
  return [path = store.path().string()] { return std::make_shared<const RowTable>(read_rows(path).rows); };
}

/// Returns the number of parameters, in words, of each model in `rows` that the catalogue has. Other models get no
/// words, because the rows of a sweep do not state their files.
template <class NameOf, class Row>
reports::ModelWords model_words(std::span<const Row> rows, const NameOf& name_of) {
  const std::vector<std::string> known = known_names(Catalogue::models);
  reports::ModelWords words;
  for (const Row& row : rows) {
    const std::string name(name_of(row));
    if (!words.contains(name) && std::find(known.begin(), known.end(), name) != known.end()) {
      words.emplace(name, parameters_in_words(load_model(name)));
    }
  }
  return words;
}

Answer outputs_of_layers(const Sweep& sweep, StoreReader& store, const SweepFolder& folder, Caller& caller) {
  std::vector<OutputFile> files = tables_of(sweep, store);
  Answer answer{.code = code_of(store), .layers = layers_in(store)};
  if (store.counts().rows > max_rows_shown) {
    folder.write(files);
    report_missing_outputs(sweep, store, caller);
    answer.write = layer_writer(store, [text = summary_of(store)](std::string_view /*format*/) { return text; });
    return answer;
  }
  const VerdictRule rule = verdict_rule_of(sweep.grid.settings);
  const auto results = std::make_shared<const LayerResults>(layer_results(store));
  const std::vector<ResultRow>& rows = results->rows;
  if (sweep.writes("report")) {
    files.push_back(file_of("report.html", report_of(sweep, *results)));
  }
  if (sweep.writes("map")) {
    add_maps(std::span<const ResultRow>(rows), rule, files);
  }
  folder.write(files);
  answer.write = layer_writer(store, [results, rule](std::string_view format) {
    return renderer(format)(results->rows, rule,
                            model_words(std::span(results->rows), [](const ResultRow& row) { return row.model; }));
  });
  answer.figures = [results, rule] { return figures_of(results->rows, rule); };
  return answer;
}

Answer outputs_of_models(const Sweep& sweep, StoreReader& store, const SweepFolder& folder, Caller& caller) {
  const VerdictRule rule = verdict_rule_of(sweep.grid.settings);
  const auto results = std::make_shared<const std::vector<StepRow>>(step_results(store));
  const std::vector<StepRow>& rows = *results;
  std::vector<OutputFile> files = tables_of(sweep, store);
  const bool is_small = rows.size() <= max_rows_shown;
  if (sweep.writes("report") && is_small) {
    files.push_back(file_of("report.html", report_of(sweep, rows)));
  }
  if (sweep.writes("map") && is_small) {
    add_maps(std::span<const StepRow>(rows), rule, files);
  }
  folder.write(files);
  if (!is_small) {
    report_missing_outputs(sweep, store, caller);
  }
  if (const std::string warnings = warnings_once(rows); !warnings.empty()) {
    caller.note(warnings);
  }
  return {.code = code_of(store),
          .write =
              [results, rule](std::string_view format, const Sink& sink) {
                sink(step_renderer(format)(*results, rule, model_words(std::span(*results), [](const StepRow& row) {
                  return row.text("model");
                })));
              },
          .models = [results] { return *results; },
          .figures = [results, rule] { return figures_of(*results, rule); }};
}

void write_layers(StoreReader& store, std::string_view format, Pieces& pieces) {
  const std::vector<std::string_view> names = reports::column_names();
  pieces.add(format == "csv" ? reports::csv_line(names) : format == "json" ? "[" : "");
  bool first = true;
  store.rewind();
  while (const std::optional<StoredPoint> point = store.next()) {
    for (const StoreRow& row : point->rows) {
      const std::span<const Value> values = result_values(row);
      if (format == "csv") {
        pieces.add(reports::csv_line(values));
      } else {
        const std::string object = reports::json_object(names, values);
        pieces.add(format == "jsonl" ? object + "\n" : (first ? "\n" : ",\n") + object);
      }
      first = false;
    }
  }
  pieces.add(format == "json" ? "\n]\n" : "");
}

}  // namespace

void require_format(StoreKind kind, std::string_view format) {
  kind == StoreKind::layers ? void(renderer(format)) : void(step_renderer(format));
}

Answer write_outputs(const Sweep& sweep, StoreReader& store, const SweepFolder& folder, std::string_view format,
                     Caller& caller) {
  Answer answer = store.identity().kind == StoreKind::layers ? outputs_of_layers(sweep, store, folder, caller)
                                                             : outputs_of_models(sweep, store, folder, caller);
  answer.format = format;
  return answer;
}

void write_rows(StoreReader& store, std::string_view format, const Sink& sink) {
  Pieces pieces(sink);
  if (store.identity().kind == StoreKind::layers) {
    write_layers(store, format, pieces);
  } else {
    pieces.add(step_renderer(format)(step_results(store), {}, {}));
  }
  pieces.flush();
}

}  // namespace commfuse::sim
