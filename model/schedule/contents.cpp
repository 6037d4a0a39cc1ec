// SPDX-License-Identifier: Apache-2.0
#include "model/schedule/contents.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "model/schedule/lower.h"
#include "model/schedule/matching.h"
#include "model/schedule/other_ranks.h"

namespace commfuse {

namespace {

constexpr TensorId wrong_tensor{-2};  // already reported
constexpr Value wrong_value{.tensor = wrong_tensor};
constexpr TensorId zero_tensor{-3};  // the empty sum of whatever it is added to
constexpr Value zero_value{.tensor = zero_tensor};
constexpr Value nothing{};

using Values = std::vector<Value>;

/// How many contributions make a block of the tensor complete.
std::int32_t contributions(const Program& program, const Tensor& tensor) {
  return tensor.definition == Tensor::Definition::product
             ? contraction_of(tensor, program.tensors[position(tensor.a)]).blocks
             : 1;
}

bool is_wrong(const Value& value) { return value.tensor == wrong_tensor; }

/// A matrix of `columns` blocks a row, the other way round.
Values transposed(const Values& values, std::size_t columns) {
  Values result;
  result.reserve(values.size());
  for (std::size_t column = 0; column < columns; ++column) {
    for (std::size_t at = column; at < values.size(); at += columns) {
      result.push_back(values[at]);
    }
  }
  return result;
}

/// A factor as its product sees it: `outer` is its place in the product, `inner` that along the contraction.
struct Factor {
  const Value& value;
  std::int32_t outer;
  std::int32_t inner;
};
Factor left(const Value& value, bool transposed) {
  return transposed ? Factor{value, value.column, value.row} : Factor{value, value.row, value.column};
}
Factor right(const Value& value, bool transposed) { return left(value, !transposed); }

class Contents {
 public:
  /// With a symmetry, rank 0 stands for all ranks.
  Contents(const Program& program, const CellMap& cells, const Symmetry* symmetry, Sums& sums, Findings& findings,
           Trace* trace)
      : program_(program),
        cells_(cells),
        symmetry_(symmetry),
        sums_(sums),
        findings_(findings),
        trace_(trace),
        ranks_(symmetry == nullptr ? program.mesh.ranks() : 1),
        memory_(static_cast<std::size_t>(cells.count()) * static_cast<std::size_t>(ranks_)) {
    for (const Tensor& tensor : program.tensors) {
      complete_.push_back(sums.range(0, contributions(program, tensor)));
    }
    for (Rank rank = 0; rank < ranks_; ++rank) {
      here_.push_back(program.mesh.coordinates(rank));
    }
    if (trace_ != nullptr) {
      trace_->ops = program.ops.size();
      trace_->ranks = here_.size();
      trace_->values.resize(2 * trace_->ranks * trace_->ops);
    }
  }

  /// Both iterations, from the initial contents.
  /// False when rank 0 cannot stand for all.
  bool run(const std::vector<Event>& events) {
    place_initial();
    run(events, 0);
    // What an op reads, another wrote before it in the same iteration or was there from the start (check_hazards). So a
    // second iteration does the same as a first that went well and left alone what was there.
    if (trace_ != nullptr || !findings_.empty() || !holds_initial()) {
      run(events, 1);
    }
    return !undecided_;
  }

 private:
  void place_initial() {
    for_each_content(program_.initial, [&](Rank rank, const Content& content, Cell cell, const Value& value) {
      Value& held = at(rank, cell);
      if (held != nothing && held != value) {
        findings_.add(FindingKind::contents, about(program_.initial, content), [&] {
          return fmt::format("rank {} would hold both {} and {} in {} before the first op", rank, words(held),
                             words(value), cells_.in_words(cell));
        });
      }
      held = value;
    });
  }

  bool holds_initial() {
    bool all = true;
    for_each_content(program_.initial, [&](Rank rank, const Content&, Cell cell, const Value& value) {
      all = all && at(rank, cell) == value;
    });
    return all;
  }

  void run(const std::vector<Event>& events, std::size_t iteration) {
    iteration_ = iteration;
    for (const Event& event : events) {
      switch (event.kind) {
        case Event::Kind::computed: compute(event.rank, event.op); break;
        case Event::Kind::sent: symmetry_ == nullptr ? send(event) : arrive(event); break;
        case Event::Kind::collected:
          symmetry_ == nullptr ? collect(event.rank, event.op) : collect_on_first(event.op);
          break;
      }
    }
    compare_final();
  }

  [[nodiscard]] const Op& record(OpId op) const { return program_.ops[position(op)]; }
  [[nodiscard]] std::string words(const Value& value) const { return in_words(program_, sums_, value); }
  [[nodiscard]] std::string who(Rank rank, OpId op) const {
    return fmt::format("{}{} on rank {}", when(), op_in_words(program_, op), rank);
  }
  [[nodiscard]] std::string_view when() const { return iteration_ == 0 ? "" : "in a second iteration, "; }

  Value& at(Rank rank, Cell cell) {
    return memory_[static_cast<std::size_t>(rank) * static_cast<std::size_t>(cells_.count()) +
                   static_cast<std::size_t>(cell)];
  }
  [[nodiscard]] const Coordinates& here(Rank rank) const { return here_[static_cast<std::size_t>(rank)]; }
  [[nodiscard]] bool complete(const Value& value) const {
    return position(value.tensor) < complete_.size() && value.sum == complete_[position(value.tensor)];
  }

  // --- memory ------------------------------------------------------------------------------------------------------

  OpValues* traced(Rank rank, OpId op) {
    return trace_ == nullptr
               ? nullptr
               : &trace_->values[(iteration_ * trace_->ranks + static_cast<std::size_t>(rank)) * trace_->ops +
                                 position(op)];
  }

  Values read(Rank rank, OpId op, Slice operand) {
    Values values;
    touched_.clear();
    for (const Region& region : program_.regions_of(operand)) {
      cells_.append(region, here(rank), touched_);
    }
    values.reserve(touched_.size());
    for (const Cell cell : touched_) {
      values.push_back(at(rank, cell));
    }
    if (OpValues* kept = traced(rank, op)) {
      kept->inputs.push_back(values);
    }
    return values;
  }

  void write(Rank rank, OpId op, const Values& values) {
    touched_.clear();
    for (const Region& region : program_.regions_of(program_.outputs_of(record(op)).front())) {
      cells_.append(region, here(rank), touched_);
    }
    for (std::size_t i = 0; i < touched_.size(); ++i) {
      at(rank, touched_[i]) = values[i];
    }
    if (OpValues* kept = traced(rank, op)) {
      kept->output = values;
    }
  }

  /// visit(rank, content, cell, value that belongs there)
  template <class Visit>
  void for_each_content(const std::vector<Content>& contents, const Visit& visit) {
    std::vector<Cell> cells;
    for (Rank rank = 0; rank < ranks_; ++rank) {
      for (const Content& content : contents) {
        cells.clear();
        cells_.append(content.here, here(rank), cells);
        const std::int32_t row = content.row.at(program_.mesh, here(rank));
        const std::int32_t column = content.column.at(program_.mesh, here(rank));
        for (std::size_t i = 0; i < cells.size(); ++i) {
          const auto place = static_cast<std::int32_t>(i);
          visit(rank, content, cells[i],
                Value{content.tensor, row + place / content.here.columns, column + place % content.here.columns,
                      complete_[position(content.tensor)]});
        }
      }
    }
  }

  [[nodiscard]] std::int32_t about(const std::vector<Content>& contents, const Content& content) const {
    const auto before = &contents == &program_.final ? program_.initial.size() : 0U;
    return -1 - static_cast<std::int32_t>(before + static_cast<std::size_t>(&content - contents.data()));
  }

  void compare_final() {
    for_each_content(program_.final, [&](Rank rank, const Content& content, Cell cell, const Value& value) {
      const Value& held = at(rank, cell);
      if (held == value) {
        return;
      }
      findings_.add(FindingKind::contents, about(program_.final, content), [&] {
        return fmt::format("{}rank {} ends with {} in {}, where {} belongs", when(), rank, words(held),
                           cells_.in_words(cell), words(value));
      });
    });
  }

  // --- what ops do to values ---------------------------------------------------------------------------------------

  template <class Sentence>
  Value wrong(Rank rank, OpId op, const Sentence& sentence) {
    findings_.add(FindingKind::contents, static_cast<std::int32_t>(op),
                  [&] { return fmt::format("{} {}", who(rank, op), sentence()); });
    return wrong_value;
  }

  void compute(Rank rank, OpId op) {
    const Shape& shape = program_.shapes[record(op).shape];
    if (const auto* gemm = std::get_if<GemmShape>(&shape)) {
      multiply(rank, op, *gemm);
    } else if (const auto* elementwise = std::get_if<ElementwiseShape>(&shape)) {
      map(rank, op, *elementwise);
    } else {
      attend(rank, op, std::get<AttentionShape>(shape));
    }
  }

  void multiply(Rank rank, OpId op, const GemmShape& shape) {
    const auto operands = program_.inputs_of(record(op));
    const auto m = static_cast<std::size_t>(shape.m.blocks);
    const auto k = static_cast<std::size_t>(shape.k.blocks);
    const auto n = static_cast<std::size_t>(shape.n.blocks);
    Values a = read(rank, op, operands[0]);
    Values b = read(rank, op, operands[1]);
    if (shape.transpose_a) {
      a = transposed(a, m);
    }
    if (shape.transpose_b) {
      b = transposed(b, k);
    }
    Values old;
    if (shape.accumulate) {
      old = read(rank, op, program_.outputs_of(record(op)).front());
    }
    Values out;
    Values column(k);
    for (std::size_t i = 0; i < m; ++i) {
      for (std::size_t j = 0; j < n; ++j) {
        for (std::size_t t = 0; t < k; ++t) {
          column[t] = b[t * n + j];
        }
        const Value product = contract(rank, op, shape, std::span(a).subspan(i * k, k), column);
        out.push_back(old.empty() ? product : sum(rank, op, std::array{old[out.size()], product}));
      }
    }
    write(rank, op, out);
  }

  /// A row of op(a) times a column of op(b).
  Value contract(Rank rank, OpId op, const GemmShape& shape, std::span<const Value> a, std::span<const Value> b) {
    parts_.clear();
    const Factor first_a = left(a[0], shape.transpose_a);
    const Factor first_b = right(b[0], shape.transpose_b);
    for (std::size_t t = 0; t < a.size(); ++t) {
      if (is_wrong(a[t]) || is_wrong(b[t])) {
        return wrong_value;
      }
      for (const Value& factor : {a[t], b[t]}) {
        if (!complete(factor)) {
          return wrong(rank, op, [&] { return fmt::format("multiplies {}, which is not complete", words(factor)); });
        }
      }
      const Factor here_a = left(a[t], shape.transpose_a);
      const Factor here_b = right(b[t], shape.transpose_b);
      if (a[t].tensor != a[0].tensor || here_a.outer != first_a.outer || b[t].tensor != b[0].tensor ||
          here_b.outer != first_b.outer) {
        return wrong(rank, op, [&] {
          return fmt::format("adds up {} and {}", times(shape, a[0], b[0], " times "),
                             times(shape, a[t], b[t], " times "));
        });
      }
      if (here_a.inner != here_b.inner) {
        return wrong(rank, op, [&] {
          return fmt::format("multiplies {}, which are different blocks of the contraction",
                             times(shape, a[t], b[t], " by "));
        });
      }
      parts_.push_back(sums_.range(here_a.inner, here_a.inner + 1));
    }
    const TensorId product = product_of(shape, a[0].tensor, b[0].tensor);
    if (product == no_tensor) {
      return wrong(rank, op, [&] {
        return fmt::format("multiplies {}, which is no product of the operation", times(shape, a[0], b[0], " by "));
      });
    }
    return united(rank, op, {product, first_a.outer, first_b.outer, 0});
  }

  /// "x[0] by w[:,1]", "x[0]^T by dy[0,1]".
  [[nodiscard]] std::string times(const GemmShape& shape, const Value& a, const Value& b, const char* between) const {
    return fmt::format("{}{}{}{}{}", words(a), shape.transpose_a ? "^T" : "", between, words(b),
                       shape.transpose_b ? "^T" : "");
  }

  [[nodiscard]] TensorId product_of(const GemmShape& shape, TensorId a, TensorId b) const {
    for (std::size_t i = 0; i < program_.tensors.size(); ++i) {
      const Tensor& tensor = program_.tensors[i];
      if (tensor.definition == Tensor::Definition::product && tensor.a == a && tensor.b == b &&
          tensor.transpose_a == shape.transpose_a && tensor.transpose_b == shape.transpose_b) {
        return TensorId{static_cast<std::int32_t>(i)};
      }
    }
    return no_tensor;
  }

  /// `value` with the union of `parts_` as its contributions.
  Value united(Rank rank, OpId op, Value value) {
    const Sums::Union all = sums_.unite(parts_);
    if (all.twice) {
      return wrong(rank, op, [&] {
        const Tensor& tensor = program_.tensors[position(value.tensor)];
        const std::string block = words({value.tensor, value.row, value.column, complete_[position(value.tensor)]});
        return tensor.definition == Tensor::Definition::product
                   ? fmt::format("counts contribution {} to {} twice", *all.twice, block)
                   : fmt::format("counts {} twice", block);
      });
    }
    value.sum = all.sum;
    return value;
  }

  Value sum(Rank rank, OpId op, std::span<const Value> values) {
    parts_.clear();
    const auto first =
        std::find_if(values.begin(), values.end(), [](const Value& value) { return value != zero_value; });
    for (auto value = first; value != values.end(); ++value) {
      if (is_wrong(*value)) {
        return wrong_value;
      }
      if (*value == zero_value) {
        continue;
      }
      if (value->tensor == no_tensor || value->tensor != first->tensor || value->row != first->row ||
          value->column != first->column) {
        return wrong(rank, op, [&] { return fmt::format("adds {} to {}", words(*value), words(*first)); });
      }
      parts_.push_back(value->sum);
    }
    return first == values.end() ? zero_value : united(rank, op, *first);
  }

  void map(Rank rank, OpId op, const ElementwiseShape& shape) {
    std::vector<Values> inputs;
    inputs.reserve(program_.inputs_of(record(op)).size());
    for (const Slice operand : program_.inputs_of(record(op))) {
      inputs.push_back(read(rank, op, operand));
    }
    const std::size_t width = shape.function == Function::swiglu ? 2 : 1;
    const auto count = static_cast<std::size_t>(shape.rows.blocks) * static_cast<std::size_t>(shape.columns.blocks);
    Values out;
    Values column;
    out.reserve(count);
    column.reserve(inputs.size());
    for (std::size_t i = 0; i < count; ++i) {
      switch (shape.function) {
        case Function::copy: out.push_back(inputs[0][i]); break;
        case Function::add:
          column.clear();
          for (const Values& input : inputs) {
            column.push_back(input[i]);
          }
          out.push_back(sum(rank, op, column));
          break;
        case Function::swiglu:  // a row of the input is twice as wide: block i of the output takes blocks 2i and 2i + 1
        case Function::gelu:
        case Function::norm:
          out.push_back(apply(rank, op, shape.function, std::span(inputs[0]).subspan(width * i, width)));
          break;
        case Function::residual: out.push_back(add_residual(rank, op, inputs[0][i], inputs[1][i])); break;
        case Function::zero: out.push_back(zero_value); break;
      }
    }
    write(rank, op, out);
  }

  Value apply(Rank rank, OpId op, Function function, std::span<const Value> of) {
    for (const Value& value : of) {
      if (is_wrong(value)) {
        return wrong_value;
      }
      if (!complete(value)) {
        return wrong(rank, op, [&] {
          return fmt::format("applies a nonlinear function to {}, which is not complete", words(value));
        });
      }
    }
    const auto width = static_cast<std::int32_t>(of.size());
    const bool pair = width == 1 || (of[1].tensor == of[0].tensor && of[1].row == of[0].row &&
                                     of[1].column == of[0].column + 1 && of[0].column % 2 == 0);
    if (!pair) {
      return wrong(rank, op,
                   [&] { return fmt::format("pairs {} with {} as gate and up", words(of[0]), words(of[1])); });
    }
    for (std::size_t i = 0; i < program_.tensors.size(); ++i) {
      const Tensor& tensor = program_.tensors[i];
      if (tensor.definition == Tensor::Definition::function && tensor.a == of[0].tensor &&
          tensor.function == function) {
        return {TensorId{static_cast<std::int32_t>(i)}, of[0].row, of[0].column / width, complete_[i]};
      }
    }
    return wrong(rank, op,
                 [&] { return fmt::format("applies to {} a function that the operation does not", words(of[0])); });
  }

  /// The sum of two different tensors, either one first.
  Value add_residual(Rank rank, OpId op, const Value& a, const Value& b) {
    if (is_wrong(a) || is_wrong(b)) {
      return wrong_value;
    }
    for (const Value& value : {a, b}) {
      if (!complete(value)) {
        return wrong(rank, op, [&] { return fmt::format("adds {}, which is not complete", words(value)); });
      }
    }
    for (std::size_t i = 0; i < program_.tensors.size(); ++i) {
      const Tensor& tensor = program_.tensors[i];
      const bool of_both =
          (tensor.a == a.tensor && tensor.b == b.tensor) || (tensor.a == b.tensor && tensor.b == a.tensor);
      if (tensor.definition == Tensor::Definition::function && tensor.function == Function::residual && of_both &&
          a.row == b.row && a.column == b.column) {
        return {TensorId{static_cast<std::int32_t>(i)}, a.row, a.column, complete_[i]};
      }
    }
    return wrong(rank, op,
                 [&] { return fmt::format("adds {} to {}, which the operation does not", words(b), words(a)); });
  }

  // --- attention ---------------------------------------------------------------------------------------------------

  void attend(Rank rank, OpId op, const AttentionShape& shape) {
    const auto operands = program_.inputs_of(record(op));
    const Values queries = read(rank, op, operands[0]);
    const Values keys = read(rank, op, operands[1]);
    const std::vector<std::int32_t> first = positions_at(program_, record(op), here(rank));
    const auto width = static_cast<std::size_t>(shape.qkv.blocks);
    const auto regions = program_.regions_of(operands[0]);
    Values out;
    for (std::size_t region = 0; region < regions.size(); ++region) {
      for (std::int32_t row = 0; row < regions[region].rows; ++row) {
        for (std::size_t column = 0; column < width; ++column) {
          Values seen;
          for (std::size_t key = column; key < keys.size(); key += width) {
            seen.push_back(keys[key]);
          }
          out.push_back(attended(rank, op, queries[out.size()], first[region] + row, seen, shape.causal));
        }
      }
    }
    undecided_ = undecided_ || (symmetry_ != nullptr && !other_ranks_attend(operands[1], queries, out));
    write(rank, op, out);
  }

  /// One block of queries, which stands at `row` of its sequence, against key rows 0, 1, 2 and so on of the same heads:
  /// all rows of the tensor, or with a causal mask those up to `row`. Masked keys are not looked at.
  Value attended(Rank rank, OpId op, const Value& query, std::int32_t row, Values& keys, bool causal) {
    const bool all = !causal || rows_move(query.tensor);  // where they move, other ranks' queries see other keys
    if (!all) {
      keys.resize(static_cast<std::size_t>(row) + 1);
    }
    if (is_wrong(query) || std::any_of(keys.begin(), keys.end(), is_wrong)) {
      return wrong_value;
    }
    if (!complete(query)) {
      return wrong(rank, op, [&] { return fmt::format("attends with {}, which is not complete", words(query)); });
    }
    if (query.row != row) {
      return wrong(rank, op, [&] { return fmt::format("attends with {} as with row {}", words(query), row); });
    }
    const auto rows = static_cast<std::size_t>(program_.tensors[position(query.tensor)].rows.blocks);
    for (std::size_t i = 0; i < keys.size(); ++i) {
      const Value wanted{query.tensor, static_cast<std::int32_t>(i), query.column, query.sum};
      if (i >= rows || keys[i] != wanted) {
        return wrong(rank, op, [&] {
          return fmt::format("attends with {} to {} as key row {}", words(query), words(keys[i]), i);
        });
      }
    }
    if (all && keys.size() < rows) {
      return wrong(rank, op,
                   [&] { return fmt::format("attends with {} without key rows {}", words(query), keys.size()); });
    }
    for (std::size_t i = 0; i < program_.tensors.size(); ++i) {
      const Tensor& tensor = program_.tensors[i];
      if (tensor.definition == Tensor::Definition::attention && tensor.a == query.tensor && tensor.causal == causal) {
        return {TensorId{static_cast<std::int32_t>(i)}, query.row, query.column, complete_[i]};
      }
    }
    return wrong(rank, op, [&] { return fmt::format("attends with {}, which the operation does not", words(query)); });
  }

  void send(const Event& event) {
    write(event.target, event.target_op, read(event.rank, event.op, program_.inputs_of(record(event.op)).front()));
  }

  /// `first` is the member at coordinate 0.
  void collect(Rank first, OpId op) {
    const auto& shape = std::get<CollectiveShape>(program_.shapes[record(op).shape]);
    const std::int32_t extent = program_.mesh.axes[static_cast<std::size_t>(shape.axis)].extent;
    std::vector<Values> given;
    given.reserve(static_cast<std::size_t>(extent));
    for (std::int32_t i = 0; i < extent; ++i) {
      given.push_back(read(program_.mesh.member(first, shape.axis, i), op, program_.inputs_of(record(op)).front()));
    }
    Values total;  // what every member gets the same of, once
    const bool reduces = shape.kind == CollectiveKind::reduce_scatter || shape.kind == CollectiveKind::all_reduce;
    if (shape.kind == CollectiveKind::all_gather) {
      total = stacked(given);
    } else if (reduces) {
      total = reduced(first, op, given);
    }
    const std::size_t part = given[0].size() / static_cast<std::size_t>(extent);
    for (std::int32_t i = 0; i < extent; ++i) {
      const auto from = static_cast<std::ptrdiff_t>(static_cast<std::size_t>(i) * part);
      Values taken;
      if (shape.kind == CollectiveKind::reduce_scatter) {
        taken.assign(total.begin() + from, total.begin() + from + static_cast<std::ptrdiff_t>(part));
      } else if (shape.kind == CollectiveKind::all_to_all) {
        for (const Values& source : given) {
          taken.insert(taken.end(), source.begin() + from, source.begin() + from + static_cast<std::ptrdiff_t>(part));
        }
      } else {
        taken = total;
      }
      write(program_.mesh.member(first, shape.axis, i), op, taken);
    }
  }

  static Values stacked(const std::vector<Values>& given) {
    Values all;
    for (const Values& part : given) {
      all.insert(all.end(), part.begin(), part.end());
    }
    return all;
  }

  Values reduced(Rank rank, OpId op, const std::vector<Values>& given) {
    Values total;
    Values column(given.size());
    for (std::size_t i = 0; i < given[0].size(); ++i) {
      for (std::size_t member = 0; member < given.size(); ++member) {
        column[member] = given[member][i];
      }
      total.push_back(sum(rank, op, column));
    }
    return total;
  }

  // --- where rank 0 stands for all ---------------------------------------------------------------------------------

  /// Whether rank 0's rows are not other ranks'.
  [[nodiscard]] bool rows_move(TensorId tensor) const {
    return symmetry_ != nullptr && static_cast<std::int32_t>(tensor) >= 0 &&
           !symmetry_->of(tensor).rows.rotation.still();
  }

  /// What rank 0 attends to says what other ranks do: key i is row i on every rank, and if a mask hides other keys
  /// there than here, none is wrong.
  [[nodiscard]] bool other_ranks_attend(Slice keys, const Values& queries, const Values& out) const {
    const Rotation moves = *symmetry_->rows_inside(program_.regions_of(keys));
    for (std::size_t i = 0; i < queries.size(); ++i) {
      const TensorId tensor = queries[i].tensor;
      if (static_cast<std::int32_t>(tensor) >= 0 &&
          (symmetry_->of(tensor).rows.rotation != moves || (rows_move(tensor) && is_wrong(out[i])))) {
        return false;
      }
    }
    return true;
  }

  /// What the rank that sends to rank 0 sends.
  void arrive(const Event& event) {
    const auto& exchange = std::get<ExchangeShape>(program_.shapes[record(event.op).shape]);
    const Slice sent = program_.inputs_of(record(event.op)).front();
    const Turn source = program_.mesh.coordinates(source_of(program_, exchange, 0));
    const Values held = read(0, event.op, sent);
    OtherRanks others(program_, *symmetry_, sums_);
    write(0, event.target_op, others.hold(held, sent, exchange.rows.blocks, {&source, 1}).front());
  }

  /// What rank 0 gets of a collective, where it is the member at coordinate 0.
  void collect_on_first(OpId op) {
    const auto& shape = std::get<CollectiveShape>(program_.shapes[record(op).shape]);
    const Slice in = program_.inputs_of(record(op)).front();
    std::vector<Turn> members(
        static_cast<std::size_t>(program_.mesh.axes[static_cast<std::size_t>(shape.axis)].extent));
    for (std::size_t i = 0; i < members.size(); ++i) {
      members[i][static_cast<std::size_t>(shape.axis)] = static_cast<std::int32_t>(i);
    }
    const bool part = shape.kind != CollectiveKind::all_reduce;  // of the larger of input and output
    const std::int32_t rows = shape.rows.blocks / (part ? static_cast<std::int32_t>(members.size()) : 1);
    const std::vector<Values> given = OtherRanks(program_, *symmetry_, sums_).hold(read(0, op, in), in, rows, members);
    const bool reduces = shape.kind == CollectiveKind::reduce_scatter || shape.kind == CollectiveKind::all_reduce;
    write(0, op, reduces ? reduced(0, op, given) : stacked(given));
  }

  const Program& program_;
  const CellMap& cells_;
  const Symmetry* symmetry_;
  Sums& sums_;
  Findings& findings_;
  Trace* trace_;
  Rank ranks_;
  std::vector<Value> memory_;    // by rank and cell
  std::vector<SumId> complete_;  // by tensor
  std::vector<Coordinates> here_;
  std::size_t iteration_ = 0;
  bool undecided_ = false;
  std::vector<Cell> touched_;  // room to work in
  std::vector<SumId> parts_;   // room to work in
};

}  // namespace

void check_contents(const Program& program, const CellMap& cells, const std::vector<Event>& events, Sums& sums,
                    Findings& findings, Trace* trace) {
  Contents(program, cells, nullptr, sums, findings, trace).run(events);
}

bool check_contents(const Program& program, const CellMap& cells, const std::vector<Event>& events,
                    const Symmetry& symmetry, Sums& sums, Findings& findings) {
  return Contents(program, cells, &symmetry, sums, findings, nullptr).run(events);
}

std::string in_words(const Program& program, const Sums& sums, const Value& value) {
  if (value.tensor == no_tensor) {
    return "nothing";
  }
  if (value.tensor == wrong_tensor) {
    return "a wrong value";
  }
  if (value.tensor == zero_tensor) {
    return "zeros";
  }
  const Tensor& tensor = program.tensors[position(value.tensor)];
  std::string words = fmt::format("{}[{},{}]", tensor.name, value.row, value.column);
  if (tensor.columns.blocks == 1) {
    words = fmt::format("{}[{}]", tensor.name, value.row);
  } else if (tensor.rows.blocks == 1) {
    words = fmt::format("{}[:,{}]", tensor.name, value.column);
  }
  const std::int32_t all = contributions(program, tensor);
  const std::string contributed = sums.in_words(value.sum);
  const std::string complete = all == 1 ? "{0}" : all == 2 ? "{0,1}" : fmt::format("{{0-{}}}", all - 1);
  return contributed == complete ? words : words + contributed;
}

}  // namespace commfuse
