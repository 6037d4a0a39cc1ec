// SPDX-License-Identifier: Apache-2.0
// Schedule files; model/program_text/parse.cpp and parse_ops.cpp read them.
#include <string>
#include <utility>
#include <vector>

#include "model/dtype.h"
#include "model/program/words.h"
#include "sim/schema/shape.h"

namespace commfuse::schema {

namespace {

template <class Kind, std::size_t size>
Shape word_in(const words::Table<Kind, size>& table) {
  std::vector<std::string> names;
  for (const auto& [kind, name] : table) {
    names.emplace_back(name);
  }
  return word(std::move(names));
}

Shape dtype() {
  std::vector<std::string> names;
  for (const DType dtype : all_dtypes) {
    names.emplace_back(name_of(dtype));
  }
  return word(std::move(names));
}

ShapeKey dtype_key() { return optional({"dtype", dtype(), "Default: bf16"}); }
/// An extent such as "tokens*4": a number of blocks of a dimension.
Shape extent() { return pattern(R"(^ *[A-Za-z_][A-Za-z0-9_.]* *\* *[0-9]+ *$)"); }
/// An index such as "(tp+3)%4", or a plain number.
Shape index() { return one_of({text(), count()}); }
/// A region such as "x[tp]", or regions stacked by rows, as in "x[tp]; y".
Shape operand() { return text(); }
ShapeKey flag(const char* name) { return optional({name, boolean()}); }

Shape tensor() {
  const Shape two = list(text());
  return map({optional({"rows", extent()}), optional({"columns", extent()}), dtype_key(),
              optional({"product", two, "Product of two tensors"}), optional({"add", text()}),
              optional({"copy", text()}), optional({"swiglu", text()}), optional({"gelu", text()}),
              optional({"norm", text()}), optional({"residual", two, "The sum of two tensors"}),
              optional({"attention", text(), "Attention over this tensor of queries, keys and values"}), flag("causal"),
              flag("transpose_a"), flag("transpose_b")});
}

Shape buffer() {
  return map({optional({"role", word_in(words::roles), "Default: scratch"}),
              {"rows", extent()},
              {"columns", extent()},
              dtype_key()});
}

/// The part of a tensor in a region of a buffer.
Shape content() {
  return map({{"here", text(), "A region of a buffer, as in x[tp]"},
              {"tensor", text()},
              optional({"row", index(), "First row in the tensor (default 0)"}),
              optional({"column", index()})});
}

Shape unfused_work() {
  const Shape gemm = map({{"m", extent()},
                          {"n", extent()},
                          {"k", extent()},
                          dtype_key(),
                          optional({"out", dtype()}),
                          flag("accumulate"),
                          optional({"accumulator", dtype()}),
                          flag("transpose_a"),
                          flag("transpose_b")});
  const Shape attention = map({{"queries", extent()},
                               {"keys", extent()},
                               {"columns", extent()},
                               {"qkv", extent()},
                               {"batch", text()},
                               {"head", text()},
                               {"causal", boolean()},
                               dtype_key()});
  const Shape function =
      map({{"rows", extent()}, {"columns", extent()}, dtype_key(), optional({"inputs", count(1), "Inputs of add"})});
  std::vector<Shape> kinds{map({{"gemm", gemm}}), map({{"attention", attention}})};
  for (const auto& [kind, name] : words::functions) {
    if (kind != Function::zero) {
      kinds.push_back(map({{std::string(name), function}}));
    }
  }
  return one_of(std::move(kinds));
}

Shape op(const char* kind, std::vector<ShapeKey> own_keys) {
  std::vector<ShapeKey> keys{{"id", count(), "Index of the op, from 0"},
                             {"op", word({kind})},
                             optional({"lane", text(), "compute, aux, comm, copy, kernel; comm1 for a second one"}),
                             optional({"purpose", word_in(words::purposes)}),
                             optional({"where", text(), "Ranks that run it, as in tp >= 1"}),
                             optional({"waits", list(count()), "Ops of the same rank that must end before it starts"})};
  keys.insert(keys.end(), own_keys.begin(), own_keys.end());
  return map(std::move(keys));
}

Shape any_op() {
  const ShapeKey axis = optional({"axis", text(), "Axis of the mesh; optional if there is one"});
  const ShapeKey wire = optional({"wire", dtype(), "Dtype on the wire"});
  return one_of(
      {op("gemm", {flag("accumulate"),
                   optional({"accumulator", dtype()}),
                   flag("transpose_a"),
                   flag("transpose_b"),
                   optional({"kernel_m", extent(), "Rows of the kernel of which this op is a part"}),
                   optional({"kernel_n", extent(), "Columns of the kernel, if its parts are columns"}),
                   {"a", operand()},
                   {"b", operand()},
                   {"out", operand()}}),
       op("attention", {{"batch", text()},
                        {"head", text()},
                        {"causal", boolean()},
                        optional({"positions", list(index())}),
                        {"in", list(operand())},
                        {"out", operand()}}),
       op("elementwise", {{"function", word_in(words::functions)},
                          optional({"in", one_of({text(), list(operand())})}),
                          {"out", operand()}}),
       op("exchange", {axis,
                       {"shift", one_of({count(), pattern("^-?[0-9]+$"), number(-1e6, 1e6)}),
                        "Sends to coordinate + shift, receives from coordinate - shift"},
                       wire,
                       optional({"protocol", word_in(words::protocols)}),
                       optional({"send", operand()}),
                       optional({"receive", operand()}),
                       optional({"credit", word_in(words::credits), "Signals that a region may be overwritten"})}),
       op("collective", {{"kind", word_in(words::collectives)}, axis, wire, {"in", operand()}, {"out", operand()}})});
}

}  // namespace

Shape schedule_shape() {
  const char* name = "^.+$";
  return map({{"name", text()},
              {"mesh", table(name, count(1)), "Axes with their extents, the outermost first"},
              {"dimensions", table(name, count(1)), "Number of blocks of each dimension"},
              {"tensors", table(name, tensor()), "Tensors of the whole operation, as if a single rank held them"},
              {"buffers", table(name, buffer()), "Buffers of every rank"},
              {"initial", list(content()), "What each rank holds before the first op"},
              {"final", list(content()), "What each rank must hold after the last op"},
              {"unfused", list(unfused_work()), "Each rank's compute, uncut"},
              {"ops", list(any_op())}});
}

}  // namespace commfuse::schema
