// SPDX-License-Identifier: Apache-2.0
#include "model/proof/contents.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "model/program/lower.h"
#include "model/program/matching.h"
#include "model/proof/baseline.h"
#include "model/proof/meaning.h"
#include "model/proof/other_ranks.h"

namespace commfuse {

namespace {

class Contents {
 public:
  /// `symmetry` and `first`, the cells of rank 0, are both null or both set; if they are set, rank 0 represents all
  /// ranks.
  Contents(const Program& program, const CellMap& cells, const RankCells* first, const Symmetry* symmetry, Sums& sums,
           Findings& findings, Trace* trace)
      : program_(program),
        cells_(cells),
        first_(first),
        symmetry_(symmetry),
        sums_(sums),
        findings_(findings),
        meaning_(program, symmetry, sums, findings),
        trace_(trace),
        ranks_(symmetry == nullptr ? program.mesh.ranks() : 1),
        memory_(static_cast<std::size_t>(cells.count()) * static_cast<std::size_t>(ranks_)) {
    for (Rank rank = 0; rank < ranks_; ++rank) {
      coordinates_.push_back(program.mesh.coordinates(rank));
    }
    if (trace_ != nullptr) {
      trace_->ops = program.ops.size();
      trace_->ranks = coordinates_.size();
      trace_->values.resize(2 * trace_->ranks * trace_->ops);
    }
  }

  /// Runs the first iteration from the initial contents, and the second unless it would only repeat the first. Returns
  /// false when rank 0 cannot represent all ranks.
  bool run(const std::vector<Event>& events) {
    place_initial();
    run(events, 0);
    // Every value that an op reads was written earlier in the same iteration or existed from the start (check_hazards).
    // So a second iteration repeats a correct first one that left the initial contents unchanged.
    if (trace_ != nullptr || !findings_.empty() || !holds_initial()) {
      run(events, 1);
    }
    return !undecided_;
  }

  /// Runs both iterations of a changed program from the first event that the change affects, up to the first finding.
  void run_change(Baseline& before, const Change& change) {
    before_ = &before;
    change_ = &change;
    const bool same_events = change.events == nullptr;
    const std::vector<Event>& events = same_events ? before.events() : *change.events;
    std::size_t begin = same_events ? before.first_event(change.op) : 0;
    memory_ = before.memory_before(begin);
    expected_ = memory_;
    for (iteration_ = 0; iteration_ < 2; ++iteration_) {
      meaning_.begin(iteration_);
      for (; begin < events.size() && findings_.empty(); ++begin) {
        run_changed(events[begin]);
      }
      begin = 0;
      if (!findings_.empty() || ends_differently() || holds(before.initial())) {
        return;
      }
    }
  }

 private:
  // --- a changed program -------------------------------------------------------------------------------------------

  /// Computes the event's results, which equal those of the baseline unless the event is part of the change or sees its
  /// effects.
  void run_changed(const Event& event) {
    const bool changed = event.op == change_->op || (event.kind == Event::Kind::sent && event.target_op == change_->op);
    switch (event.kind) {
      case Event::Kind::computed:
        expect(event.rank, event.op, !changed && reads_same_values(event.rank, event.op),
               [&] { compute(event.rank, event.op); });
        break;
      case Event::Kind::sent:
        expect(event.target, event.target_op, !changed && reads_same_values(event.rank, event.op),
               [&] { send(event); });
        break;
      case Event::Kind::credited: break;
      case Event::Kind::collected: collect_changed(event.rank, event.op, changed); break;
    }
  }

  /// Returns true if the op reads the same values as in the baseline.
  [[nodiscard]] bool reads_same_values(Rank rank, OpId op) const {
    const std::span<const Place> places = before_->read_by(rank, op);
    return std::all_of(places.begin(), places.end(), [&](Place place) { return memory_[place] == expected_[place]; });
  }

  /// Writes the baseline's output to `expected_`. If `holds`, writes it to the memory too; otherwise runs `make`,
  /// unless the change omits the op.
  template <class Make>
  void expect(Rank rank, OpId op, bool holds, const Make& make) {
    if (!holds && !(change_->omitted && op == change_->op)) {
      make();
    }
    const CellValues& values = before_->trace().at(iteration_, rank, op).output;
    const std::span<const Place> places = before_->written_by(rank, op);
    for (std::size_t i = 0; i < places.size(); ++i) {
      expected_[places[i]] = values[i];
      if (holds) {
        memory_[places[i]] = values[i];
      }
    }
  }

  void collect_changed(Rank first, OpId op, bool changed) {
    const auto& shape = std::get<CollectiveShape>(program_.shapes[record(op).shape]);
    const std::int32_t extent = program_.mesh.axes[static_cast<std::size_t>(shape.axis)].extent;
    const auto member = [&](std::int32_t i) { return program_.mesh.member(first, shape.axis, i); };
    bool same = !changed;
    for (std::int32_t i = 0; same && i < extent; ++i) {
      same = reads_same_values(member(i), op);
    }
    if (!same && !(change_->omitted && op == change_->op)) {
      collect(first, op);
    }
    for (std::int32_t i = 0; i < extent; ++i) {
      expect(member(i), op, same, [] {});
    }
  }

  /// Adds a finding and returns true if a place whose final value is checked ends an iteration with a different value
  /// than in the baseline.
  bool ends_differently() {
    const std::vector<Place>& places = before_->final();
    const bool same =
        std::all_of(places.begin(), places.end(), [&](Place place) { return memory_[place] == expected_[place]; });
    if (!same) {
      findings_.add(FindingKind::contents, -1,
                    [] { return std::string{"a rank's final values differ from the original's"}; });
    }
    return !same;
  }

  [[nodiscard]] bool holds(const std::vector<std::pair<Place, CellValue>>& contents) const {
    return std::all_of(contents.begin(), contents.end(),
                       [&](const auto& content) { return memory_[content.first] == content.second; });
  }

  // --- all events --------------------------------------------------------------------------------------------------

  void place_initial() {
    for_each_content(program_.initial, [&](Rank rank, const Content& content, Cell cell, const CellValue& value) {
      CellValue& current = at(rank, cell);
      if (current != nothing && current != value) {
        findings_.add(FindingKind::contents, about(program_.initial, content), [&] {
          return fmt::format("rank {} would hold both {} and {} in {} before the first op", rank,
                             meaning_.words(current), meaning_.words(value), cells_.in_words(cell));
        });
      }
      current = value;
    });
  }

  bool holds_initial() {
    bool holds = true;
    for_each_content(program_.initial, [&](Rank rank, const Content&, Cell cell, const CellValue& value) {
      holds = holds && at(rank, cell) == value;
    });
    return holds;
  }

  void run(const std::vector<Event>& events, std::size_t iteration) {
    iteration_ = iteration;
    meaning_.begin(iteration);
    for (const Event& event : events) {
      switch (event.kind) {
        case Event::Kind::computed: compute(event.rank, event.op); break;
        case Event::Kind::sent: symmetry_ == nullptr ? send(event) : arrive(event); break;
        case Event::Kind::credited: break;
        case Event::Kind::collected:
          symmetry_ == nullptr ? collect(event.rank, event.op) : collect_on_first(event.op);
          break;
      }
    }
    compare_final();
  }

  [[nodiscard]] const Op& record(OpId op) const { return program_.ops[position(op)]; }

  CellValue& at(Rank rank, Cell cell) {
    return memory_[static_cast<std::size_t>(rank) * static_cast<std::size_t>(cells_.count()) +
                   static_cast<std::size_t>(cell)];
  }
  [[nodiscard]] const Coordinates& coordinates(Rank rank) const { return coordinates_[static_cast<std::size_t>(rank)]; }

  // --- memory ------------------------------------------------------------------------------------------------------

  OpValues* traced(Rank rank, OpId op) {
    return trace_ == nullptr
               ? nullptr
               : &trace_->values[(iteration_ * trace_->ranks + static_cast<std::size_t>(rank)) * trace_->ops +
                                 position(op)];
  }

  template <class Visit>
  void for_each_cell(Rank rank, Slice operand, const Visit& visit) const {
    if (first_ != nullptr) {
      first_->for_each(operand, visit);
      return;
    }
    for (const Region& region : program_.regions_of(operand)) {
      cells_.for_each(region, coordinates(rank), visit);
    }
  }

  /// Reads an operand into `values`, replacing its elements.
  void read(Rank rank, OpId op, Slice operand, CellValues& values) {
    values.clear();
    for_each_cell(rank, operand, [&](Cell cell) { values.push_back(at(rank, cell)); });
    if (OpValues* kept = traced(rank, op)) {
      kept->inputs.push_back(values);
    }
  }
  CellValues read(Rank rank, OpId op, Slice operand) {
    CellValues values;
    read(rank, op, operand, values);
    return values;
  }

  void write(Rank rank, OpId op, const CellValues& values) {
    const CellValue* value = values.begin();
    for_each_cell(rank, program_.outputs_of(record(op)).front(), [&](Cell cell) { at(rank, cell) = *value++; });
    if (OpValues* kept = traced(rank, op)) {
      kept->output = values;
    }
  }

  /// Calls visit(rank, content, cell, expected value).
  template <class Visit>
  void for_each_content(const std::vector<Content>& contents, const Visit& visit) {
    for (Rank rank = 0; rank < ranks_; ++rank) {
      for (const Content& content : contents) {
        const std::int32_t row = content.row.at(program_.mesh, coordinates(rank));
        const std::int32_t column = content.column.at(program_.mesh, coordinates(rank));
        CellValue value{content.tensor, row, column, meaning_.complete(content.tensor)};
        cells_.for_each(content.here, coordinates(rank), [&](Cell cell) {
          visit(rank, content, cell, value);
          if (++value.column == column + content.here.columns) {
            value.column = column;
            ++value.row;
          }
        });
      }
    }
  }

  [[nodiscard]] std::int32_t about(const std::vector<Content>& contents, const Content& content) const {
    const auto before = &contents == &program_.final ? program_.initial.size() : 0U;
    return -1 - static_cast<std::int32_t>(before + static_cast<std::size_t>(&content - contents.data()));
  }

  void compare_final() {
    for_each_content(program_.final, [&](Rank rank, const Content& content, Cell cell, const CellValue& value) {
      const CellValue& current = at(rank, cell);
      if (current == value) {
        return;
      }
      findings_.add(FindingKind::contents, about(program_.final, content), [&] {
        return fmt::format("{}rank {} ends with {} in {} instead of {}", meaning_.when(), rank, meaning_.words(current),
                           cells_.in_words(cell), meaning_.words(value));
      });
    });
  }

  // --- ops -----------------------------------------------------------------------------------------------------------

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

  /// Returns the cell of rank 0 that is the whole operand, if rank 0 represents all ranks; otherwise -1.
  [[nodiscard]] Cell only_cell(Slice operand) const { return first_ == nullptr ? -1 : first_->only_cell(operand); }

  void multiply(Rank rank, OpId op, const GemmShape& shape) {
    const auto operands = program_.inputs_of(record(op));
    const Cell a = only_cell(operands[0]);
    const Cell b = only_cell(operands[1]);
    const Cell out = only_cell(program_.outputs_of(record(op)).front());
    if (a >= 0 && b >= 0 && out >= 0 && !shape.accumulate) {  // true for most GEMMs
      at(0, out) = meaning_.multiply({rank, op}, shape, at(0, a), at(0, b));
      return;
    }
    read(rank, op, operands[0], input_values_[0]);
    read(rank, op, operands[1], input_values_[1]);
    input_values_[2].clear();
    if (shape.accumulate) {
      read(rank, op, program_.outputs_of(record(op)).front(), input_values_[2]);
    }
    meaning_.multiply({rank, op}, shape, input_values_[0], input_values_[1], input_values_[2], output_values_);
    write(rank, op, output_values_);
  }

  void map(Rank rank, OpId op, const ElementwiseShape& shape) {
    std::vector<CellValues> inputs;
    inputs.reserve(program_.inputs_of(record(op)).size());
    for (const Slice operand : program_.inputs_of(record(op))) {
      inputs.push_back(read(rank, op, operand));
    }
    write(rank, op, meaning_.map({rank, op}, shape, inputs));
  }

  void attend(Rank rank, OpId op, const AttentionShape& shape) {
    const auto operands = program_.inputs_of(record(op));
    const CellValues queries = read(rank, op, operands[0]);
    const CellValues keys = read(rank, op, operands[1]);
    const std::vector<std::int32_t> first = positions_at(program_, record(op), coordinates(rank));
    const auto regions = program_.regions_of(operands[0]);
    std::vector<std::int32_t> rows;
    for (std::size_t region = 0; region < regions.size(); ++region) {
      for (std::int32_t row = 0; row < regions[region].rows; ++row) {
        rows.push_back(first[region] + row);
      }
    }
    const CellValues out = meaning_.attend({rank, op}, shape, rows, queries, keys);
    undecided_ = undecided_ || (symmetry_ != nullptr && !other_ranks_attend(operands[1], queries, out));
    write(rank, op, out);
  }

  void send(const Event& event) {
    read(event.rank, event.op, program_.inputs_of(record(event.op)).front(), input_values_[0]);
    write(event.target, event.target_op, input_values_[0]);
  }

  /// `first` is the member at coordinate 0.
  void collect(Rank first, OpId op) {
    const auto& shape = std::get<CollectiveShape>(program_.shapes[record(op).shape]);
    const std::int32_t extent = program_.mesh.axes[static_cast<std::size_t>(shape.axis)].extent;
    std::vector<CellValues> member_inputs;
    member_inputs.reserve(static_cast<std::size_t>(extent));
    for (std::int32_t i = 0; i < extent; ++i) {
      member_inputs.push_back(
          read(program_.mesh.member(first, shape.axis, i), op, program_.inputs_of(record(op)).front()));
    }
    CellValues total;  // the value that every member receives, computed once
    const bool reduces = shape.kind == CollectiveKind::reduce_scatter || shape.kind == CollectiveKind::all_reduce;
    if (shape.kind == CollectiveKind::all_gather) {
      total = stacked(member_inputs);
    } else if (reduces) {
      total = meaning_.reduced({first, op}, member_inputs);
    }
    const std::size_t part = member_inputs[0].size() / static_cast<std::size_t>(extent);
    for (std::int32_t i = 0; i < extent; ++i) {
      const auto from = static_cast<std::ptrdiff_t>(static_cast<std::size_t>(i) * part);
      CellValues received;
      if (shape.kind == CollectiveKind::reduce_scatter) {
        received.insert(received.end(), total.begin() + from, total.begin() + from + static_cast<std::ptrdiff_t>(part));
      } else if (shape.kind == CollectiveKind::all_to_all) {
        for (const CellValues& source : member_inputs) {
          received.insert(received.end(), source.begin() + from,
                          source.begin() + from + static_cast<std::ptrdiff_t>(part));
        }
      } else {
        received = total;
      }
      write(program_.mesh.member(first, shape.axis, i), op, received);
    }
  }

  static CellValues stacked(const std::vector<CellValues>& member_inputs) {
    CellValues stack;
    for (const CellValues& part : member_inputs) {
      stack.insert(stack.end(), part.begin(), part.end());
    }
    return stack;
  }

  // --- where rank 0 represents all ranks -------------------------------------------------------------------------

  /// Returns true if other ranks attend correctly when rank 0 does: key i is row i on every rank, and the mask hides no
  /// wrong key on rank 0 that other ranks might see.
  [[nodiscard]] bool other_ranks_attend(Slice keys, const CellValues& queries, const CellValues& out) const {
    const Rotation moves = *symmetry_->rows_inside(program_.regions_of(keys));
    for (std::size_t i = 0; i < queries.size(); ++i) {
      const TensorId tensor = queries[i].tensor;
      if (static_cast<std::int32_t>(tensor) >= 0 &&
          (symmetry_->of(tensor).rows.rotation != moves || (meaning_.rows_move(tensor) && is_wrong(out[i])))) {
        return false;
      }
    }
    return true;
  }

  /// Receives the data of the rank that sends to rank 0.
  void arrive(const Event& event) {
    const auto& exchange = std::get<ExchangeShape>(program_.shapes[record(event.op).shape]);
    const Slice sent = program_.inputs_of(record(event.op)).front();
    const auto axis = static_cast<std::size_t>(int{exchange.axis});
    Turn source{};
    source[axis] = exchange.shift == 0 ? 0 : program_.mesh.axes[axis].extent - exchange.shift;
    const Cell from = only_cell(sent);
    const Cell to = only_cell(program_.outputs_of(record(event.target_op)).front());
    if (from >= 0 && to >= 0) {  // true for most transfers; nothing moves inside a single cell
      at(0, to) = moved(program_, *symmetry_, sums_, at(0, from), source);
      return;
    }
    read(0, event.op, sent, input_values_[0]);
    OtherRanks(program_, *symmetry_, sums_, sent)
        .derive(input_values_[0], exchange.rows.blocks, source, output_values_);
    write(0, event.target_op, output_values_);
  }

  /// Writes rank 0's result of a collective in which rank 0 is the member at coordinate 0.
  void collect_on_first(OpId op) {
    const auto& shape = std::get<CollectiveShape>(program_.shapes[record(op).shape]);
    const Slice in = program_.inputs_of(record(op)).front();
    std::vector<Turn> members(
        static_cast<std::size_t>(program_.mesh.axes[static_cast<std::size_t>(shape.axis)].extent));
    for (std::size_t i = 0; i < members.size(); ++i) {
      members[i][static_cast<std::size_t>(shape.axis)] = static_cast<std::int32_t>(i);
    }
    const bool part = shape.kind != CollectiveKind::all_reduce;  // a part of the larger of input and output
    const std::int32_t rows = shape.rows.blocks / (part ? static_cast<std::int32_t>(members.size()) : 1);
    const CellValues first_values = read(0, op, in);
    OtherRanks others(program_, *symmetry_, sums_, in);
    std::vector<CellValues> member_inputs;
    member_inputs.reserve(members.size());
    for (const Turn& member : members) {
      others.derive(first_values, rows, member, member_inputs.emplace_back());
    }
    const bool reduces = shape.kind == CollectiveKind::reduce_scatter || shape.kind == CollectiveKind::all_reduce;
    write(0, op, reduces ? meaning_.reduced({0, op}, member_inputs) : stacked(member_inputs));
  }

  const Program& program_;
  const CellMap& cells_;
  const RankCells* first_;
  const Symmetry* symmetry_;
  Sums& sums_;
  Findings& findings_;
  Meaning meaning_;
  Trace* trace_;
  Rank ranks_;
  std::vector<CellValue> memory_;  // by rank and cell
  std::vector<Coordinates> coordinates_;
  std::array<CellValues, 3> input_values_;  // scratch space: inputs of an op
  CellValues output_values_;                // scratch space: outputs of an op
  Baseline* before_ = nullptr;              // set for a changed program
  const Change* change_ = nullptr;
  std::vector<CellValue> expected_;  // by rank and cell: the baseline's memory
  std::size_t iteration_ = 0;
  bool undecided_ = false;
};

}  // namespace

void check_contents(const Program& program, const CellMap& cells, const std::vector<Event>& events, Sums& sums,
                    Findings& findings, Trace* trace) {
  Contents(program, cells, nullptr, nullptr, sums, findings, trace).run(events);
}

bool check_contents(const Program& program, const CellMap& cells, const RankCells& first,
                    const std::vector<Event>& events, const Symmetry& symmetry, Sums& sums, Findings& findings) {
  return Contents(program, cells, &first, &symmetry, sums, findings, nullptr).run(events);
}

void check_change(Baseline& before, const Change& change, Findings& findings) {
  Contents(change.program, before.cells(), nullptr, nullptr, before.sums(), findings, nullptr)
      .run_change(before, change);
}

}  // namespace commfuse
