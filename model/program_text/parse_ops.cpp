// SPDX-License-Identifier: Apache-2.0
#include "model/program_text/parse_ops.h"

#include <fmt/format.h>

#include <array>
#include <initializer_list>
#include <utility>

#include "model/program/names.h"
#include "model/text/suggest.h"

namespace commfuse::text {

namespace {

constexpr words::Table<OpKind, 5> kinds{{{OpKind::gemm, "gemm"},
                                         {OpKind::attention, "attention"},
                                         {OpKind::elementwise, "elementwise"},
                                         {OpKind::exchange, "exchange"},
                                         {OpKind::collective, "collective"}}};

std::vector<std::string_view> keys_of(OpKind kind) {
  std::vector<std::string_view> keys{"id", "op", "lane", "purpose", "where", "waits"};
  const auto add = [&](std::initializer_list<std::string_view> more) { keys.insert(keys.end(), more); };
  switch (kind) {
    case OpKind::gemm:
      add({"accumulate", "accumulator", "transpose_a", "transpose_b", "kernel_m", "kernel_n", "a", "b", "out"});
      break;
    case OpKind::elementwise: add({"function", "in", "out"}); break;
    case OpKind::exchange: add({"axis", "shift", "wire", "protocol", "send", "receive", "credit"}); break;
    case OpKind::collective: add({"kind", "axis", "wire", "in", "out"}); break;
    case OpKind::attention: add({"batch", "head", "causal", "positions", "in", "out"}); break;
  }
  return keys;
}

/// One side of an operand, with its name in messages.
struct Side {
  std::string name;
  Extent extent;
};

/// Rows x columns of a stacked operand.
struct Stack {
  Extent rows, columns;
  DType dtype = DType::bf16;

  /// Returns the rows, or the columns, of the operand called `name`.
  [[nodiscard]] Side side(std::string_view name, bool of_columns) const {
    return {fmt::format("the {} of {}", of_columns ? "columns" : "rows", name), of_columns ? columns : rows};
  }
};

class OpReader {
 public:
  OpReader(const Surroundings& around, std::span<const Dimension> dimensions, ProgramBuilder& builder,
           Mistakes& mistakes)
      : around_(around), dimensions_(dimensions), builder_(builder), mistakes_(mistakes) {
    for (std::size_t axis = 0; axis < around.mesh.axes.size(); ++axis) {
      axes_.emplace(around.mesh.axes[axis].name, static_cast<std::int32_t>(axis));
    }
    for (std::size_t i = 0; i < dimensions.size(); ++i) {
      dimension_names_.emplace(dimensions[i].name, static_cast<std::int32_t>(i));
    }
  }

  void read(const Node& node, std::int32_t id) {
    require_map(node);
    const OpKind kind = kind_of(node);
    const std::vector<std::string_view> keys = keys_of(kind);
    const Fields fields(node, keys, mistakes_);
    const Node& written = fields.at("id", std::to_string(id));
    if (integer_of(written, 0, max_distance) != id) {
      throw Wrong{written.place, fmt::format("op ids must be 0, 1, 2 and so on; write id: {}", id)};
    }
    switch (kind) {
      case OpKind::gemm: return gemm(fields, id);
      case OpKind::elementwise: return elementwise(fields, id);
      case OpKind::exchange: return exchange(fields, id);
      case OpKind::collective: return collective(fields, id);
      case OpKind::attention: return attention(fields, id);
    }
  }

 private:
  static OpKind kind_of(const Node& node) {
    for (std::size_t i = 0; i < node.keys.size(); ++i) {
      if (node.keys[i].scalar == "op") {
        return word_of(node.items[i], kinds, "op kinds");
      }
    }
    throw Wrong{node.place, "key 'op' is missing; add it, as in op: gemm"};
  }

  void gemm(const Fields& fields, std::int32_t id) {
    GemmSpec spec{.lane = lane(fields, {LaneKind::compute, 0}), .purpose = purpose(fields, OpKind::gemm)};
    const Predicate where = predicate(fields);
    spec.transpose_a = flag_of(fields, "transpose_a");
    spec.transpose_b = flag_of(fields, "transpose_b");
    spec.accumulate = flag_of(fields, "accumulate");
    if (const Node* accumulator = fields.find("accumulator")) {
      spec.accumulator = dtype_of(*accumulator);
    }
    const Stack a = operand(fields.at("a", "\"x\""), spec.a);
    const Stack b = operand(fields.at("b", "\"w\""), spec.b);
    const Stack out = operand(fields.at("out", "\"y[tp]\""), spec.out);
    require_equal(*fields.find("b"), b.side("b", spec.transpose_b), a.side("a", !spec.transpose_a));
    require_equal(*fields.find("out"), out.side("out", false), a.side("a", spec.transpose_a));
    require_equal(*fields.find("out"), out.side("out", true), b.side("b", !spec.transpose_b));
    if (const Node* kernel = fields.find("kernel_m")) {
      spec.kernel_rows = kernel_blocks(*kernel, "rows", out.rows);
    }
    if (const Node* kernel = fields.find("kernel_n")) {
      if (spec.kernel_rows > 0) {
        throw Wrong{kernel->place, "a kernel is cut by rows or by columns, not by both; remove kernel_m or kernel_n"};
      }
      spec.kernel_columns = kernel_blocks(*kernel, "columns", out.columns);
    }
    spec.waits = waits(fields, id);
    add(where, [&] { return builder_.gemm(spec); });
  }

  void attention(const Fields& fields, std::int32_t id) {
    AttentionSpec spec{.lane = lane(fields, {LaneKind::compute, 0}), .purpose = purpose(fields, OpKind::attention)};
    const Predicate where = predicate(fields);
    spec.batch = one_block_of(fields.at("batch", "batch"), dimension_names_, dimensions_);
    spec.head = one_block_of(fields.at("head", "head"), dimension_names_, dimensions_);
    spec.causal = boolean_of(fields.at("causal", "true"));
    const Node& in = fields.at("in", "[\"qkv\", \"qkv\"]");
    require_list(in);
    if (in.items.size() != 2) {
      throw Wrong{in.place, fmt::format("attention takes two inputs, the rows of the queries and the rows of the keys, "
                                        "not {}; write in: [\"qkv\", \"qkv\"]",
                                        in.items.size())};
    }
    const Stack queries = operand(in.items[0], spec.queries);
    const Stack keys = operand(in.items[1], spec.keys);
    const Node& out_node = fields.at("out", "\"attention\"");
    const Stack out = operand(out_node, spec.out);
    require_equal(in.items[1], "the columns of the keys", keys.columns, "the columns of the queries", queries.columns);
    require_equal(out_node, "the rows of out", out.rows, "the rows of the queries", queries.rows);
    if (out.columns.blocks != queries.columns.blocks) {
      throw Wrong{
          out_node.place,
          fmt::format(
              "the columns of out are {}, but the columns of the queries are {}; make the numbers of blocks equal",
              in_words(out.columns, dimensions_), in_words(queries.columns, dimensions_))};
    }
    if (const Node* positions = fields.find("positions")) {
      spec.positions = positions_of(*positions, spec.queries, keys);
    } else if (queries.rows.blocks > keys.rows.blocks) {
      throw Wrong{
          in.items[0].place,
          fmt::format("the rows of the queries are {}, but the rows of the keys are only {}; give all keys that the "
                      "queries see",
                      in_words(queries.rows, dimensions_), in_words(keys.rows, dimensions_))};
    }
    spec.waits = waits(fields, id);
    add(where, [&] { return builder_.attention(spec); });
  }

  /// Reads one position per region of the queries; positions that are equal on all ranks must be among the keys.
  [[nodiscard]] std::vector<Index> positions_of(const Node& node, const Operand& queries, const Stack& keys) const {
    require_list(node);
    if (node.items.size() != queries.size()) {
      throw Wrong{node.place, fmt::format("there {}, but the queries have {}; write one position "
                                          "for each region, as in positions: [\"2*tp\"], or remove positions",
                                          node.items.size() == 1 ? std::string{"is 1 position"}
                                                                 : fmt::format("are {} positions", node.items.size()),
                                          queries.size() == 1 ? std::string{"1 region"}
                                                              : fmt::format("{} regions", queries.size()))};
    }
    std::vector<Index> positions;
    for (std::size_t i = 0; i < queries.size(); ++i) {
      const Node& item = node.items[i];
      const Index index = text_of(item, [&](std::string_view text) { return parse_index(text, around_.mesh); });
      const std::int32_t rows = queries[i].rows;
      if (index.terms == Index{}.terms && (index.constant < 0 || index.constant + rows > keys.rows.blocks)) {
        throw Wrong{
            item.place,
            fmt::format(
                "the keys are block rows 0 to {}, but these queries are at {} to {}; choose a position within the keys",
                keys.rows.blocks - 1, index.constant, index.constant + rows - 1)};
      }
      positions.push_back(index);
    }
    return positions;
  }

  void elementwise(const Fields& fields, std::int32_t id) {
    ElementwiseSpec spec{.lane = lane(fields, {LaneKind::compute, 0}), .purpose = purpose(fields, OpKind::elementwise)};
    const Predicate where = predicate(fields);
    spec.function = word_of(fields.at("function", "add"), words::functions, "functions");
    const Stack out = operand(fields.at("out", "\"c\""), spec.out);
    if (spec.function == Function::zero) {
      if (const Node* in = fields.find("in")) {
        throw Wrong{in->place, "zero takes no input; remove in"};
      }
      spec.waits = waits(fields, id);
      return add(where, [&] { return builder_.elementwise(spec); });
    }
    const Node& in = fields.at("in", "[\"a\", \"b\"]");
    Extent columns = out.columns;
    columns.blocks *= spec.function == Function::swiglu ? 2 : 1;
    const auto input = [&](const Node& node) {
      const Stack stack = operand(node, spec.inputs.emplace_back());
      require_equal(node, "the rows of this input", stack.rows, "the rows of out", out.rows);
      require_equal(node, "the columns of this input", stack.columns,
                    spec.function == Function::swiglu ? "twice the columns of out" : "the columns of out", columns);
    };
    if (in.kind == Node::Kind::list) {
      for (const Node& node : in.items) {
        input(node);
      }
    } else {
      input(in);
    }
    const bool any = spec.function == Function::add;
    if (spec.inputs.empty() || (!any && spec.inputs.size() != inputs_of(spec.function))) {
      const bool several = any || inputs_of(spec.function) > 1;
      throw Wrong{in.place, fmt::format("{} takes {}, not {}; write {}", name_of(spec.function),
                                        any       ? "one input or more"
                                        : several ? "two inputs"
                                                  : "one input",
                                        spec.inputs.size(), several ? "in: [\"a\", \"b\"]" : "in: \"a\"")};
    }
    spec.waits = waits(fields, id);
    add(where, [&] { return builder_.elementwise(spec); });
  }

  void exchange(const Fields& fields, std::int32_t id) {
    ExchangeSpec spec{.lane = lane(fields, {LaneKind::comm, 0})};
    purpose(fields, OpKind::exchange);
    const Predicate where = predicate(fields);
    spec.axis = axis(fields);
    spec.shift = integer_of(fields.at("shift", "1"), -max_distance, max_distance);
    const Node* sent = fields.find("send");
    const Node* received = fields.find("receive");
    if (const Node* credit = fields.find("credit")) {
      return this->credit(fields, *credit, spec, id);
    }
    if (sent == nullptr && received == nullptr) {
      throw Wrong{fields.node().place, "this exchange neither sends nor receives; add send, receive or both"};
    }
    if (const Node* protocol = fields.find("protocol")) {
      spec.protocol = word_of(*protocol, words::protocols, "protocols");
    }
    const Stack carried = sent != nullptr ? operand(*sent, spec.send) : operand(*received, spec.receive);
    if (sent != nullptr && received != nullptr) {
      const Stack received_stack = operand(*received, spec.receive);
      require_equal(*received, "the rows of receive", received_stack.rows, "the rows of send", carried.rows);
      require_equal(*received, "the columns of receive", received_stack.columns, "the columns of send",
                    carried.columns);
    }
    spec.wire = wire(fields, carried);
    spec.waits = waits(fields, id);
    add(where, [&] { return builder_.exchange(spec); });
  }

  void credit(const Fields& fields, const Node& halves, const ExchangeSpec& way, std::int32_t id) {
    for (const std::string_view key : {"send", "receive", "wire", "protocol"}) {
      if (const Node* node = fields.find(key)) {
        throw Wrong{node->place, fmt::format("a credit is a push without data; remove {}", key)};
      }
    }
    const words::Credit credit = word_of(halves, words::credits, "halves");
    const CreditSpec spec{.lane = way.lane,
                          .axis = way.axis,
                          .shift = way.shift,
                          .sends = credit != words::Credit::receive,
                          .receives = credit != words::Credit::send,
                          .waits = waits(fields, id)};
    add(predicate(fields), [&] { return builder_.credit(spec); });
  }

  void collective(const Fields& fields, std::int32_t id) {
    CollectiveSpec spec{.lane = lane(fields, {LaneKind::comm, 0})};
    purpose(fields, OpKind::collective);
    const Predicate where = predicate(fields);
    spec.kind = word_of(fields.at("kind", "all_gather"), words::collectives, "collectives");
    spec.axis = axis(fields);
    const Stack in = operand(fields.at("in", "\"x\""), spec.in);
    const Stack out = operand(fields.at("out", "\"y\""), spec.out);
    const Node& out_node = *fields.find("out");
    require_equal(out_node, "the columns of out", out.columns, "the columns of in", in.columns);
    const std::int64_t ranks = around_.mesh.axes[static_cast<std::size_t>(spec.axis)].extent;
    if (spec.kind == CollectiveKind::all_gather) {
      require_times(out_node, "the rows of out", out.rows, ranks, "the rows of in", in.rows);
    } else if (spec.kind == CollectiveKind::reduce_scatter) {
      require_times(out_node, "the rows of in", in.rows, ranks, "the rows of out", out.rows);
    } else {
      require_equal(out_node, "the rows of out", out.rows, "the rows of in", in.rows);
    }
    spec.wire = wire(fields, in);
    spec.waits = waits(fields, id);
    add(where, [&] { return builder_.collective(spec); });
  }

  template <class Add>
  void add(const Predicate& where, const Add& add_to_builder) {
    if (mistakes_.empty()) {
      const OpId added = add_to_builder();
      if (where.relation != Relation::always) {
        builder_.only_where(added, where);
      }
    }
  }

  [[nodiscard]] static Lane lane(const Fields& fields, Lane default_lane) {
    const Node* node = fields.find("lane");
    return node == nullptr ? default_lane : text_of(*node, parse_lane);
  }

  [[nodiscard]] Predicate predicate(const Fields& fields) const {
    const Node* node = fields.find("where");
    return node == nullptr ? Predicate{}
                           : text_of(*node, [&](std::string_view text) { return parse_predicate(text, around_.mesh); });
  }

  static Purpose purpose(const Fields& fields, OpKind kind) {
    const Node* node = fields.find("purpose");
    if (node == nullptr) {
      return words::usual_purpose(kind);
    }
    const Purpose purpose = word_of(*node, words::purposes, "purposes");
    const bool communicates = words::usual_purpose(kind) == Purpose::communication;
    if (communicates != (purpose == Purpose::communication)) {
      throw Wrong{
          node->place,
          communicates
              ? "exchanges and collectives are communication; remove purpose"
              : "only exchanges and collectives are communication; write essential or local, or remove purpose"};
    }
    return purpose;
  }

  /// Reads the axis; it may be omitted if the mesh has only one.
  [[nodiscard]] int axis(const Fields& fields) const {
    if (around_.mesh.axes.size() == 1 && fields.find("axis") == nullptr) {
      return 0;
    }
    return named(fields.at("axis", around_.mesh.axes.front().name), axes_, "axes");
  }

  /// Reads "tokens*8", a multiple of the GEMM's own rows or columns.
  [[nodiscard]] std::int32_t kernel_blocks(const Node& node, std::string_view side, Extent part) const {
    const Extent kernel = text_of(node, [&](std::string_view text) { return parse_extent(text, dimension_names_); });
    if (kernel.dimension != part.dimension || kernel.blocks % part.blocks != 0) {
      throw Wrong{
          node.place,
          fmt::format(
              "the whole kernel has {0} {1}, but this part of it has {0} {2}; make the whole a multiple of the part",
              side, in_words(kernel, dimensions_), in_words(part, dimensions_))};
    }
    return kernel.blocks;
  }

  static DType wire(const Fields& fields, const Stack& carried) {
    const Node* node = fields.find("wire");
    return node == nullptr ? carried.dtype : text::dtype_of(*node);
  }

  static std::vector<OpId> waits(const Fields& fields, std::int32_t id) {
    std::vector<OpId> waits;
    const Node* list = fields.find("waits");
    if (list == nullptr) {
      return waits;
    }
    require_list(*list);
    for (const Node& item : list->items) {
      const std::int32_t earlier = integer_of(item, 0, max_distance);
      if (earlier >= id) {
        throw Wrong{item.place,
                    id == 0
                        ? std::string{"op 0 is the first op and cannot wait for another op; remove waits"}
                        : fmt::format("op {} waits for op {}, which is not earlier; wait for {}, or "
                                      "change the order",
                                      id, earlier, id == 1 ? std::string{"op 0"} : fmt::format("ops 0 to {}", id - 1))};
      }
      waits.push_back(OpId{earlier});
    }
    return waits;
  }

  Stack operand(const Node& node, Operand& operand) const {
    operand = text_of(node, [&](std::string_view text) { return parse_operand(text, around_); });
    const Buffer& buffer = around_.buffers[position(operand.front().buffer)];
    Stack stack{{buffer.rows.dimension, 0}, {buffer.columns.dimension, operand.front().columns}, buffer.dtype};
    for (const Region& region : operand) {
      stack.rows.blocks += region.rows;
    }
    return stack;
  }

  void require_equal(const Node& node, std::string_view what, Extent actual, std::string_view other,
                     Extent expected) const {
    if (actual != expected) {
      throw Wrong{node.place, fmt::format("{} are {}, but {} are {}; make them equal", what,
                                          in_words(actual, dimensions_), other, in_words(expected, dimensions_))};
    }
  }

  void require_equal(const Node& node, const Side& actual, const Side& expected) const {
    require_equal(node, actual.name, actual.extent, expected.name, expected.extent);
  }

  void require_times(const Node& node, std::string_view what, Extent actual, std::int64_t ranks, std::string_view other,
                     Extent part) const {
    if (actual.dimension != part.dimension || actual.blocks != ranks * part.blocks) {
      throw Wrong{node.place, fmt::format("{} are {}, but {} are {}; the first must be {} times the second", what,
                                          in_words(actual, dimensions_), other, in_words(part, dimensions_), ranks)};
    }
  }

  Surroundings around_;
  std::span<const Dimension> dimensions_;
  ProgramBuilder& builder_;
  Mistakes& mistakes_;
  Names axes_;
  Names dimension_names_;
};

}  // namespace

std::string in_words(Extent extent, std::span<const Dimension> dimensions) {
  return fmt::format("{}*{}", dimensions[position(extent.dimension)].name, extent.blocks);
}

DimensionId one_block_of(const Node& node, const Names& names, std::span<const Dimension> dimensions) {
  const DimensionId id{named(node, names, "dimensions")};
  const Dimension& dimension = dimensions[position(id)];
  if (dimension.blocks != 1) {
    throw Wrong{
        node.place,
        fmt::format("attention needs a dimension of one block, but '{}' is cut into {}; use a dimension of one block",
                    dimension.name, dimension.blocks)};
  }
  return id;
}

void read_ops(const Node& list, const Surroundings& around, std::span<const Dimension> dimensions,
              ProgramBuilder& builder, Mistakes& mistakes) {
  require_list(list);
  OpReader reader(around, dimensions, builder, mistakes);
  for (std::size_t id = 0; id < list.items.size(); ++id) {
    mistakes.attempt([&] { reader.read(list.items[id], static_cast<std::int32_t>(id)); });
  }
}

}  // namespace commfuse::text
