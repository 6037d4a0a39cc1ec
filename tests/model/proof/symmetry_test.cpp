// SPDX-License-Identifier: Apache-2.0
// Tests that the proof on one rank agrees with the proof on every rank, and is used only where rank 0 represents all
// ranks.
#include "model/proof/symmetry.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "model/program/builder.h"
#include "model/program/names.h"
#include "model/program_text/text.h"
#include "model/proof/check_program.h"
#include "model/proof/mutate.h"
#include "model/strategies/generate.h"
#include "model/strategies/scope.h"
#include "model/strategies/strategies.h"
#include "tests/slow_build.h"

namespace commfuse {
namespace {

/// Returns "right" or the kind of the first finding; "not symmetric" if rank 0 does not represent all ranks.
std::string verdict(const std::optional<CheckReport>& report) {
  return !report ? "not symmetric" : report->ok() ? "right" : std::string{name_of(report->findings.front().kind)};
}
std::string on_one_rank(const Program& program) { return verdict(check_one_rank(program)); }
std::string on_every_rank(const Program& program) { return verdict(check_every_rank(program)); }

std::string words_of(const Program& program) { return fmt::format("{}, {} ranks", program.name, program.mesh.ranks()); }

bool accept_all(Scope, const StrategyOptions&) { return true; }
/// Returns true for options without cuts or groups, with one lane and one direction, that sum only at the end.
bool is_basic(Scope, const StrategyOptions& options) {
  return options.lanes == 1 && options.directions == Directions::one && options.group == 1 && options.sub_slices == 1 &&
         options.sum == Sum::end && options.attention == AttentionCut::whole;
}
bool without_attention(Scope scope, const StrategyOptions&) { return !has_attention(scope); }

/// Calls `visit` with the schedules that are proved and for which `wanted(scope, options)` holds.
template <class Visit>
void for_each_schedule(const Mesh& mesh, int axis, const Visit& visit,
                       bool (*wanted)(Scope, const StrategyOptions&) = accept_all, bool gated = true) {
  for (const Scope scope : all_scopes) {
    for (const Strategy& strategy : strategies()) {
      const std::int32_t ranks = mesh.axes[static_cast<std::size_t>(axis)].extent;
      for (const StrategyOptions& options : schedules_to_prove(strategy, kinds_of(scope), ranks)) {
        if (wanted(scope, options)) {
          visit(generate(operation_of(scope, gated), mesh, axis, strategy, options));
        }
      }
    }
  }
}

/// Visits schedules with rings inside and between nodes, whose rows are numbered by inner*node+tp.
template <class Visit>
void for_each_nested_schedule(std::int32_t ranks, const Visit& visit) {
  const Strategy& commfuse = commfuse_strategy;
  for (const Scope scope : {Scope::gate_up, Scope::down, Scope::mlp}) {
    for (const StrategyOptions& options : schedules_to_prove(commfuse, kinds_of(scope), ranks)) {
      if (options.inner > 1 && mesh_of(ranks, options).axes.size() == 2) {
        visit(generate(operation_of(scope, true), ranks, commfuse, options));
      }
    }
  }
}

// --- every schedule ------------------------------------------------------------------------------------------------

/// Returns whether the schedule cuts queries that all ranks have. Under a causal mask, a rank's slices need not be
/// rotations of other ranks' slices.
bool cuts_queries_of_all_ranks(const Program& program) {
  const auto has = [&](const char* words) { return program.name.find(words) != std::string::npos; };
  return has("zig-zag") || (has("sliced") && has("by query"));
}
void expect_symmetric(const Program& program) {
  const std::string verdict = on_one_rank(program);
  EXPECT_TRUE(verdict == "right" || (verdict == "not symmetric" && cuts_queries_of_all_ranks(program)))
      << words_of(program) << ": " << verdict;
}

TEST(Symmetry, IsSeenInEveryScheduleSoOneRankIsEnough) {
  for (std::int32_t ranks = 1; ranks <= 8; ++ranks) {
    for_each_schedule(Mesh{{{"tp", ranks}}}, 0, expect_symmetric, accept_all, true);
    for_each_schedule(Mesh{{{"tp", ranks}}}, 0, expect_symmetric, is_basic, false);
  }
}

TEST(Symmetry, IsSeenAlongEitherAxisOfATwoAxisMesh) {
  for_each_schedule(Mesh{{{"dp", 2}, {"tp", 4}}}, 1, expect_symmetric);
  for_each_schedule(Mesh{{{"tp", 3}, {"dp", 2}}}, 0, expect_symmetric);
}

TEST(Symmetry, IsSeenInRingsNestedInNodes) {
  int count = 0;
  for (const std::int32_t ranks : {4, 6, 8, 9}) {
    for_each_nested_schedule(ranks, [&](const Program& program) {
      ++count;
      EXPECT_EQ(on_one_rank(program), "right") << words_of(program);
    });
  }
  EXPECT_GT(count, 0);
}

TEST(Symmetry, GivesTheVerdictOfEveryRankForMutations) {
  std::map<std::string, int> counts;
  const auto compare = [&](const Program& program) {
    for (const Mutation& mutation : mutations_of(program)) {
      const std::string verdict = on_one_rank(mutation.program);
      ++counts[verdict];
      if (verdict != "not symmetric") {
        EXPECT_EQ(verdict, on_every_rank(mutation.program)) << words_of(program) << ", " << mutation.description;
      }
    }
  };
  for (std::int32_t ranks = 2; ranks <= (slow_build ? 3 : 5); ++ranks) {
    for_each_schedule(Mesh{{{"tp", ranks}}}, 0, compare, is_basic);
  }
  for_each_schedule(Mesh{{{"tp", 3}}}, 0, compare, without_attention);
  for_each_nested_schedule(4, compare);
  if (!slow_build) {
    for_each_nested_schedule(6, compare);
  }
  for (const char* verdict : {"not symmetric", "right", "hazard", "contents"}) {
    EXPECT_GT(counts[verdict], 10) << verdict;
  }
}

/// Changes programs at random, in ways that may keep them symmetric or right.
class Changes {
 public:
  explicit Changes(Program program, std::uint32_t seed) : program_(unshared(std::move(program))), random_(seed) {}

  Program apply(int changes) && {
    for (int i = 0; i < changes; ++i) {
      change();
    }
    return std::move(program_);
  }

 private:
  int below(std::size_t count) { return static_cast<int>(random_() % count); }
  template <class T>
  T& one_of(std::vector<T>& list) {
    return list[static_cast<std::size_t>(below(list.size()))];
  }

  void change() {
    Region& region = one_of(program_.regions);
    std::vector<Content>& contents = below(2) == 0 ? program_.initial : program_.final;
    Content& content = one_of(contents);
    switch (below(9)) {
      case 0: index(below(2) == 0 ? region.row : region.column); break;
      case 1: index(below(2) == 0 ? content.row : content.column); break;
      case 2: index(below(2) == 0 ? content.here.row : content.here.column); break;
      case 3: change_buffer(region.buffer); break;
      case 4: std::swap(region.row, one_of(program_.regions).row); break;
      case 5: shape(one_of(program_.shapes)); break;
      case 6: (below(2) == 0 ? one_of(program_.buffers).rows : one_of(program_.buffers).columns).blocks += 1; break;
      case 7: one_of(program_.tensors).causal = below(2) == 0; break;
      case 8: one_of(program_.ops).waits.count = 0; break;
      default: break;
    }
  }

  void index(Index& index) {
    const auto axis = static_cast<std::size_t>(below(program_.mesh.axes.size()));
    IndexTerm& term = index.terms[axis];
    const std::int32_t extent = program_.mesh.axes[axis].extent;
    switch (below(5)) {
      case 0: index.constant += 2 * below(2) - 1; break;
      case 1: term.scale = below(4); break;
      case 2: term = {term.scale, term.offset(), -term.sign()}; break;
      case 3: term = {term.scale, below(static_cast<std::size_t>(extent)), term.sign()}; break;
      case 4: reverse(index, axis); break;
      default: break;
    }
  }

  /// Reverses the positions of the ranks: the scale changes its sign, and the constant becomes the last rank's
  /// position.
  void reverse(Index& index, std::size_t axis) const {
    IndexTerm& term = index.terms[axis];
    const std::int32_t last_position = term.scale * (program_.mesh.axes[axis].extent - 1);
    term.scale = -term.scale;
    index.constant += last_position;
  }

  /// Changes all rows of a buffer in the same way, which keeps most programs symmetric.
  void change_buffer(BufferId buffer) {
    const auto axis = static_cast<std::size_t>(below(program_.mesh.axes.size()));
    const int kind = below(3);
    const auto change = [&](Region& region) {
      IndexTerm& term = region.row.terms[axis];
      if (region.buffer != buffer || term.scale == 0) {
        return;
      }
      switch (kind) {
        case 0: term = {term.scale, (term.offset() + 1) % program_.mesh.axes[axis].extent, term.sign()}; break;
        case 1: term = {term.scale, term.offset(), -term.sign()}; break;
        default: reverse(region.row, axis); break;
      }
    };
    for (Region& region : program_.regions) {
      change(region);
    }
    for (auto* contents : {&program_.initial, &program_.final}) {
      for (Content& content : *contents) {
        change(content.here);
      }
    }
  }

  void shape(Shape& shape) {
    if (auto* exchange = std::get_if<ExchangeShape>(&shape)) {
      exchange->shift =
          below(static_cast<std::size_t>(program_.mesh.axes[static_cast<std::size_t>(exchange->axis)].extent));
    } else if (auto* collective = std::get_if<CollectiveShape>(&shape)) {
      collective->kind = static_cast<CollectiveKind>(below(4));
    } else if (auto* gemm = std::get_if<GemmShape>(&shape)) {
      (below(2) == 0 ? gemm->accumulate : gemm->transpose_a) ^= true;
    } else if (auto* elementwise = std::get_if<ElementwiseShape>(&shape)) {
      elementwise->function = static_cast<Function>(below(6));
    }
  }

  Program program_;
  std::mt19937 random_;
};

TEST(Symmetry, GivesTheVerdictOfEveryRankForRandomChanges) {
  std::map<std::string, int> counts;
  std::uint32_t seed = 0;
  const auto compare = [&](const Program& program) {
    for (int changes = 0; changes < 30; ++changes) {
      const Program changed = Changes(program, ++seed).apply(1 + changes % 3);
      const std::string verdict = on_one_rank(changed);
      ++counts[verdict];
      if (verdict != "not symmetric") {
        EXPECT_EQ(verdict, on_every_rank(changed)) << "seed " << seed << "\n" << to_text(changed);
      }
    }
  };
  for (const Mesh& mesh : {Mesh{{{"tp", 2}}}, Mesh{{{"tp", 3}}}, Mesh{{{"tp", 4}}}, Mesh{{{"tp", 3}, {"dp", 2}}}}) {
    for_each_schedule(mesh, 0, compare, is_basic);
  }
  for (const char* verdict : {"not symmetric", "right", "hazard", "contents"}) {
    EXPECT_GT(counts[verdict], 10) << verdict;
  }
}

// --- by hand -------------------------------------------------------------------------------------------------------

/// A program in which each rank of a mesh begins with one block of x, at position `mine`, in `shard`.
struct Shards {
  explicit Shards(const Mesh& mesh, const Index& mine) : builder("shards", mesh) {
    builder.initially(builder.whole(shard), x, mine, 0);
  }
  BufferId scratch(const char* name, std::int32_t rows) {
    return builder.buffer(name, BufferRole::scratch, {tokens, rows}, hidden, DType::bf16);
  }
  OpId copy(const Region& from, const Region& to, const std::vector<OpId>& waits = {}) {
    return builder.elementwise({.function = Function::copy, .inputs = {{from}}, .out = {to}, .waits = waits});
  }
  OpId gather(int axis, const Region& from, const Region& to, const std::vector<OpId>& waits = {}) {
    return builder.collective(
        {.kind = CollectiveKind::all_gather, .axis = axis, .in = {from}, .out = {to}, .waits = waits});
  }
  Program build() { return std::move(builder).build(); }

  ProgramBuilder builder;
  std::int32_t ranks = builder.mesh().ranks();
  DimensionId tokens = builder.dimension("tokens", ranks);
  Extent hidden{builder.dimension("hidden", 1), 1};
  TensorId x = builder.input_tensor("x", {tokens, ranks}, hidden, DType::bf16);
  BufferId shard = builder.buffer("own", BufferRole::input, {tokens, 1}, hidden, DType::bf16);
};

const Mesh three{{{"tp", 3}}};

TEST(Symmetry, HoldsForShardsInReverseRankOrder) {
  // Rank r has x[2-r] and gathers all shards: the last row comes first.
  Index mine(2);
  mine.terms[0].scale = -1;
  Shards shards(three, mine);
  const BufferId gathered = shards.scratch("all", 3);
  for (std::int32_t step = 0; step < 3; ++step) {
    Index row(2);
    row.terms[0] = {-1, step};
    shards.builder.exchange({.shift = (3 - step) % 3,
                             .send = {shards.builder.whole(shards.shard)},
                             .receive = {shards.builder.rows_of(gathered, row)}});
  }
  shards.builder.finally(shards.builder.whole(gathered), shards.x, 0, 0);
  EXPECT_EQ(on_one_rank(shards.build()), "right");
}

TEST(Symmetry, ReducesADeadlockedRingToRankZero) {
  Shards shards(three, along(three, 0));
  const BufferId received = shards.scratch("received", 1);
  shards.builder.exchange({.send = {shards.builder.whole(shards.shard)}, .receive = {}, .waits = {}});
  shards.builder.exchange({.send = {}, .receive = {shards.builder.whole(received)}, .waits = {}});
  const Program program = shards.build();
  EXPECT_EQ(on_one_rank(program), "deadlock");
  EXPECT_EQ(on_every_rank(program), "deadlock");
}

/// Returns a program that gathers shards by 3*node+tp in two steps: among the three ranks of a node, and between the
/// two nodes; the latter comes first if `nodes_first` is true.
Program gathered_in_two_steps(bool nodes_first) {
  const Mesh mesh{{{"node", 2}, {"tp", 3}}};
  Index mine = along(mesh, 1);
  mine.terms[0].scale = 3;
  Shards shards(mesh, mine);
  ProgramBuilder& builder = shards.builder;
  const BufferId near = shards.scratch("near", nodes_first ? 2 : 3);
  const BufferId gathered = shards.scratch("all", 6);
  const OpId first = shards.gather(nodes_first ? 0 : 1, builder.whole(shards.shard), builder.whole(near));
  shards.gather(nodes_first ? 1 : 0, builder.whole(near), builder.whole(gathered), {first});
  if (nodes_first) {  // rows 2*tp+node
    for (std::int32_t row = 0; row < 6; ++row) {
      builder.finally(builder.rows_of(gathered, row), shards.x, row % 2 * 3 + row / 2, 0);
    }
  } else {
    builder.finally(builder.whole(gathered), shards.x, 0, 0);
  }
  return shards.build();
}

TEST(Symmetry, HoldsForShardsOnTwoAxes) { EXPECT_EQ(on_one_rank(gathered_in_two_steps(false)), "right"); }

TEST(Symmetry, IsNotSeenWhereSingleRowsOfATransferAreFixed) {
  EXPECT_EQ(on_one_rank(gathered_in_two_steps(true)), "not symmetric");
  EXPECT_TRUE(check_program(gathered_in_two_steps(true)).ok());
}

/// Returns a program in which each rank copies its shard to row `place` and gathers all shards in place.
Program gathered_at(const Index& place, const Predicate& where = {}) {
  Shards shards(three, along(three, 0));
  const BufferId gathered = shards.scratch("all", 3);
  const OpId placed = shards.copy(shards.builder.whole(shards.shard), shards.builder.rows_of(gathered, place));
  shards.builder.only_where(placed, where);
  shards.gather(0, shards.builder.rows_of(gathered, along(three, 0)), shards.builder.whole(gathered), {placed});
  shards.builder.finally(shards.builder.whole(gathered), shards.x, 0, 0);
  return shards.build();
}

TEST(Symmetry, IsNotSeenInAProgramThatIsRightOnRankZeroOnly) {
  EXPECT_EQ(on_one_rank(gathered_at(along(three, 0))), "right");
  for (const auto& [change, program] : {
           std::pair{"a constant", gathered_at(0)},
           std::pair{"a place that leaves the buffer on rank 2", gathered_at(along(three, 0, 1) + -1)},
           std::pair{"another scale", gathered_at(along(three, 0) * 2)},
           std::pair{"the other way round", gathered_at([] {
                       Index back;
                       back.terms[0] = {1, 0, -1};
                       return back;
                     }())},
           std::pair{"a predicate", gathered_at(along(three, 0), {Relation::equal, 0, 0})},
       }) {
    EXPECT_EQ(on_one_rank(program), "not symmetric") << change;
    EXPECT_FALSE(check_program(program).ok()) << change;
  }
}

TEST(Symmetry, IsNotSeenWhereARegionReachesIntoTheNextRanksUnit) {
  // Shards have two blocks; rank 0 reads rows 1 and 2, so rank 2 would read rows 5 and 6 of six.
  ProgramBuilder builder("reaching", three);
  const DimensionId tokens = builder.dimension("tokens", 6);
  const Extent hidden{builder.dimension("hidden", 1), 1};
  const TensorId x = builder.input_tensor("x", {tokens, 6}, hidden, DType::bf16);
  const BufferId whole = builder.buffer("all", BufferRole::input, {tokens, 6}, hidden, DType::bf16);
  const BufferId two = builder.buffer("two", BufferRole::output, {tokens, 2}, hidden, DType::bf16);
  builder.initially(builder.whole(whole), x, 0, 0);
  const Index own_rows = along(three, 0) * 2;
  builder.elementwise(
      {.function = Function::copy, .inputs = {{builder.rows_of(whole, own_rows, 2)}}, .out = {builder.whole(two)}});
  builder.finally(builder.whole(two), x, own_rows, 0);
  Program program = std::move(builder).build();
  EXPECT_EQ(on_one_rank(program), "right");
  program.regions[0].row.constant = 1;
  program.final[0].row.constant = 1;
  EXPECT_EQ(on_one_rank(program), "not symmetric");
  EXPECT_EQ(on_every_rank(program), "bounds");
}

/// Three ranks that all hold a (3 x 3) and b (3 x 3), with y = a b, z = gelu(a) and attended(a).
struct EqualRanks {
  ProgramBuilder builder{"equal ranks", three};
  Extent tokens{builder.dimension("tokens", 3), 3};
  DimensionId single = builder.dimension("one", 1);
  TensorId a = builder.input_tensor("a", tokens, tokens, DType::bf16);
  TensorId b = builder.input_tensor("b", tokens, tokens, DType::bf16);
  TensorId y = builder.product_tensor("y", a, b);
  TensorId z = builder.function_tensor("z", Function::gelu, a);
  TensorId attended = builder.attention_tensor("attended", a, tokens, false);
  BufferId left = input(a);
  BufferId right = input(b);
  BufferId partials = builder.buffer("partials", BufferRole::scratch, tokens, tokens, DType::bf16);
  BufferId out = builder.buffer("out", BufferRole::output, tokens, tokens, DType::bf16);

  BufferId input(TensorId tensor) {
    const BufferId id = builder.buffer("input", BufferRole::input, tokens, tokens, DType::bf16);
    builder.initially(builder.whole(id), tensor, 0, 0);
    return id;
  }
  /// Returns all rows, starting with the rank's own row, so that they are in order on rank 0 only.
  [[nodiscard]] Operand rotated(BufferId buffer) const {
    return {builder.rows_of(buffer, along(three, 0, 0)), builder.rows_of(buffer, along(three, 0, 1)),
            builder.rows_of(buffer, along(three, 0, 2))};
  }
  [[nodiscard]] Operand whole(BufferId buffer) const { return {builder.whole(buffer)}; }
  OpId copy(Operand from, Operand to) {
    return builder.elementwise({.function = Function::copy, .inputs = {std::move(from)}, .out = std::move(to)});
  }
  /// Returns the rank's own column of a, so that columns of a move with the ranks.
  [[nodiscard]] Region own_column() const { return {left, 0, along(three, 0), 3, 1}; }
  /// Multiplies the rank's own contribution to all of y, in `partials`.
  OpId contribution() {
    return builder.gemm({.a = {own_column()}, .b = {builder.rows_of(right, along(three, 0))}, .out = whole(partials)});
  }
  Program ends_with(TensorId tensor) {
    builder.finally(builder.whole(out), tensor, 0, 0);
    return std::move(builder).build();
  }
};

TEST(Symmetry, HoldsForColumnsThatMoveToTheNextRank) {
  EqualRanks ranks;
  const Extent one_column{ranks.tokens.dimension, 1};
  const BufferId column = ranks.builder.buffer("column", BufferRole::output, ranks.tokens, one_column, DType::bf16);
  ranks.builder.exchange({.shift = 1, .send = {ranks.own_column()}, .receive = ranks.whole(column)});
  ranks.builder.finally(ranks.builder.whole(column), ranks.a, 0, along(three, 0, -1));
  EXPECT_EQ(on_one_rank(std::move(ranks.builder).build()), "right");
}

TEST(Symmetry, HoldsForAWholeWhoseRowsAndColumnsMove) {
  EqualRanks ranks;
  ranks.contribution();
  const BufferId row =
      ranks.builder.buffer("row", BufferRole::scratch, {ranks.tokens.dimension, 1}, ranks.tokens, DType::bf16);
  ranks.copy({ranks.builder.rows_of(ranks.left, along(three, 0))}, ranks.whole(row));
  ranks.builder.exchange({.shift = 1, .send = ranks.whole(ranks.left), .receive = ranks.whole(ranks.out)});
  EXPECT_EQ(on_one_rank(ranks.ends_with(ranks.a)), "right");
}

TEST(Symmetry, HoldsForAnAllReduceOfRankContributions) {
  EqualRanks ranks;
  const OpId partial = ranks.contribution();
  ranks.builder.collective({.kind = CollectiveKind::all_reduce,
                            .in = ranks.whole(ranks.partials),
                            .out = ranks.whole(ranks.out),
                            .waits = {partial}});
  EXPECT_EQ(on_one_rank(ranks.ends_with(ranks.y)), "right");
}

TEST(Symmetry, HoldsForAnAllToAllThatGivesEachRankItsRow) {
  // Rank r gets row r of a from every rank, hence three equal rows.
  EqualRanks ranks;
  ranks.builder.collective(
      {.kind = CollectiveKind::all_to_all, .in = ranks.whole(ranks.left), .out = ranks.whole(ranks.out)});
  const BufferId row =
      ranks.builder.buffer("row", BufferRole::output, {ranks.tokens.dimension, 1}, ranks.tokens, DType::bf16);
  ranks.builder.elementwise({.function = Function::copy,
                             .inputs = {{ranks.builder.rows_of(ranks.out, along(three, 0, 2))}},
                             .out = ranks.whole(row),
                             .waits = {OpId{0}}});
  ranks.builder.finally(ranks.builder.whole(row), ranks.a, along(three, 0), 0);
  EXPECT_EQ(on_one_rank(std::move(ranks.builder).build()), "right");
}

Program copies_out_of_step() {
  EqualRanks ranks;
  ranks.copy(ranks.whole(ranks.left), ranks.rotated(ranks.out));
  return ranks.ends_with(ranks.a);
}
Program applies_out_of_step() {
  EqualRanks ranks;
  ranks.builder.elementwise(
      {.function = Function::gelu, .inputs = {ranks.rotated(ranks.left)}, .out = ranks.whole(ranks.out)});
  return ranks.ends_with(ranks.z);
}
Program multiplies_rows_out_of_step() {
  EqualRanks ranks;
  ranks.builder.gemm({.a = ranks.rotated(ranks.left), .b = ranks.whole(ranks.right), .out = ranks.whole(ranks.out)});
  return ranks.ends_with(ranks.y);
}
Program contracts_out_of_step() {
  EqualRanks ranks;
  ranks.contribution();
  ranks.builder.gemm({.a = ranks.whole(ranks.left), .b = ranks.rotated(ranks.right), .out = ranks.whole(ranks.out)});
  return ranks.ends_with(ranks.y);
}
Program attends_out_of_step() {
  EqualRanks ranks;
  ranks.builder.attention({.queries = ranks.rotated(ranks.left),
                           .keys = ranks.whole(ranks.left),
                           .out = ranks.whole(ranks.out),
                           .batch = ranks.single,
                           .head = ranks.single,
                           .causal = false});
  return ranks.ends_with(ranks.attended);
}
Program exchanges_out_of_step() {
  EqualRanks ranks;
  ranks.builder.exchange({.shift = 1, .send = ranks.whole(ranks.left), .receive = ranks.rotated(ranks.out)});
  return ranks.ends_with(ranks.a);
}
Program gathers_out_of_step() {
  EqualRanks ranks;
  ranks.builder.collective({.kind = CollectiveKind::all_gather,
                            .in = {ranks.builder.rows_of(ranks.left, along(three, 0))},
                            .out = ranks.rotated(ranks.out)});
  return ranks.ends_with(ranks.a);
}
Program reduces_out_of_step() {
  EqualRanks ranks;
  const OpId partial = ranks.contribution();
  ranks.builder.collective({.kind = CollectiveKind::all_reduce,
                            .in = ranks.whole(ranks.partials),
                            .out = ranks.rotated(ranks.out),
                            .waits = {partial}});
  return ranks.ends_with(ranks.y);
}
Program scatters_out_of_step() {
  // Rank r gets row r, which is the right row only on rank 0.
  EqualRanks ranks;
  const OpId partial = ranks.contribution();
  const Region row = ranks.builder.rows_of(ranks.out, 0);
  ranks.builder.collective(
      {.kind = CollectiveKind::reduce_scatter, .in = ranks.whole(ranks.partials), .out = {row}, .waits = {partial}});
  ranks.builder.finally(row, ranks.y, 0, 0);
  return std::move(ranks.builder).build();
}
Program scatters_in_another_order() {
  // Each of four ranks has a column of a and a row of b; ranks 0 and 1 get their own rows of y, but
  // ranks 2 and 3 each get the row of the other.
  const Mesh four{{{"tp", 4}}};
  ProgramBuilder builder("another order", four);
  const Extent rows{builder.dimension("tokens", 4), 4};
  const Extent single{rows.dimension, 1};
  const TensorId a = builder.input_tensor("a", rows, rows, DType::bf16);
  const TensorId b = builder.input_tensor("b", rows, rows, DType::bf16);
  const BufferId left = builder.buffer("left", BufferRole::input, rows, single, DType::bf16);
  const BufferId right = builder.buffer("right", BufferRole::input, single, rows, DType::bf16);
  const BufferId partials = builder.buffer("partials", BufferRole::scratch, rows, rows, DType::bf16);
  const BufferId out = builder.buffer("out", BufferRole::output, single, rows, DType::bf16);
  builder.initially(builder.whole(left), a, 0, along(four, 0));
  builder.initially(builder.whole(right), b, along(four, 0), 0);
  const OpId partial =
      builder.gemm({.a = {builder.whole(left)}, .b = {builder.whole(right)}, .out = {builder.whole(partials)}});
  builder.collective({.kind = CollectiveKind::reduce_scatter,
                      .in = {builder.rows_of(partials, 0), builder.rows_of(partials, 1), builder.rows_of(partials, 3),
                             builder.rows_of(partials, 2)},
                      .out = {builder.whole(out)},
                      .waits = {partial}});
  builder.finally(builder.whole(out), builder.product_tensor("y", a, b), along(four, 0), 0);
  return std::move(builder).build();
}
Program shuffles_out_of_step() {
  // Rank r gets row r three times.
  EqualRanks ranks;
  ranks.builder.collective(
      {.kind = CollectiveKind::all_to_all, .in = ranks.whole(ranks.left), .out = ranks.whole(ranks.out)});
  for (std::int32_t row = 0; row < 3; ++row) {
    ranks.builder.finally(ranks.builder.rows_of(ranks.out, row), ranks.a, 0, 0);
  }
  return std::move(ranks.builder).build();
}
Program labels_columns_out_of_step() {
  // Every rank has a; rank r uses column r in place of column 0.
  EqualRanks ranks;
  const BufferId column =
      ranks.builder.buffer("column", BufferRole::output, ranks.tokens, {ranks.tokens.dimension, 1}, DType::bf16);
  ranks.copy({ranks.own_column()}, ranks.whole(column));
  ranks.builder.finally(ranks.builder.whole(column), ranks.a, 0, 0);
  return std::move(ranks.builder).build();
}
Program labels_rows_out_of_step() {
  EqualRanks ranks;
  const BufferId row =
      ranks.builder.buffer("row", BufferRole::output, {ranks.tokens.dimension, 1}, ranks.tokens, DType::bf16);
  ranks.copy({ranks.builder.rows_of(ranks.left, along(three, 0))}, ranks.whole(row));
  ranks.builder.finally(ranks.builder.whole(row), ranks.a, 0, 0);
  return std::move(ranks.builder).build();
}

TEST(Symmetry, IsNotSeenWhereOperandsMoveOutOfStep) {
  // Each program is right on rank 0 and wrong on the other ranks.
  for (const auto& [change, program] : {
           std::pair{"copy", copies_out_of_step()},
           std::pair{"function", applies_out_of_step()},
           std::pair{"GEMM, rows", multiplies_rows_out_of_step()},
           std::pair{"GEMM, contraction", contracts_out_of_step()},
           std::pair{"attention", attends_out_of_step()},
           std::pair{"exchange", exchanges_out_of_step()},
           std::pair{"all-gather", gathers_out_of_step()},
           std::pair{"all-reduce", reduces_out_of_step()},
           std::pair{"reduce-scatter", scatters_out_of_step()},
           std::pair{"reduce-scatter, order", scatters_in_another_order()},
           std::pair{"all-to-all", shuffles_out_of_step()},
           std::pair{"columns of labels", labels_columns_out_of_step()},
           std::pair{"rows of labels", labels_rows_out_of_step()},
       }) {
    EXPECT_EQ(on_one_rank(program), "not symmetric") << change;
    const CheckReport report = check_program(program);
    ASSERT_FALSE(report.ok()) << change;
    EXPECT_EQ(report.findings.front().kind, FindingKind::contents) << change;
    EXPECT_EQ(report.findings.front().sentence.find("rank 0"), std::string::npos) << report.findings.front().sentence;
  }
}

TEST(Symmetry, IsNotSeenWherePiecesOfRowsReachAcrossTwoPeriods) {
  // Six columns, two for each rank: r and 3+r. The third piece has columns 2 and 3.
  const auto with_pieces_of = [](std::int32_t width) {
    Shards shards(three, along(three, 0));
    ProgramBuilder& builder = shards.builder;
    const Extent six{builder.dimension("wide", 6), 6};
    const Extent one_row{shards.tokens, 1};
    const TensorId v = builder.input_tensor("v", {shards.tokens, 3}, six, DType::bf16);
    const BufferId row = builder.buffer("row", BufferRole::input, one_row, six, DType::bf16);
    const BufferId mine = builder.buffer("mine", BufferRole::scratch, one_row, {six.dimension, 1}, DType::bf16);
    const BufferId gathered =
        builder.buffer("all", BufferRole::scratch, {shards.tokens, 3}, {six.dimension, width}, DType::bf16);
    builder.initially(builder.whole(row), v, along(three, 0), 0);
    shards.copy({row, 0, along(three, 0), 1, 1}, builder.whole(mine));
    builder.collective({.kind = CollectiveKind::all_to_all,
                        .in = {{row, 0, 0, 1, width}, {row, 0, 1, 1, width}, {row, 0, 2, 1, width}},
                        .out = {builder.whole(gathered)}});
    return shards.build();
  };
  EXPECT_EQ(on_one_rank(with_pieces_of(1)), "right");
  EXPECT_EQ(on_one_rank(with_pieces_of(2)), "not symmetric");
}

// --- attention -----------------------------------------------------------------------------------------------------

/// Each of three ranks attends with its own row of x to all rows, under a causal mask.
struct RotatingAttention {
  ProgramBuilder builder{"attending", three};
  Extent tokens{builder.dimension("tokens", 3), 3};
  Extent one_row{tokens.dimension, 1};
  Extent qkv{builder.dimension("qkv", 1), 1};
  Extent heads{builder.dimension("attention", 1), 1};
  DimensionId batch = builder.dimension("batch", 1);
  DimensionId head = builder.dimension("head", 1);
  TensorId x = builder.input_tensor("x", tokens, qkv, DType::bf16);
  TensorId attended = builder.attention_tensor("attended", x, heads, true);
  BufferId in = builder.buffer("in", BufferRole::input, tokens, qkv, DType::bf16);
  BufferId keys = builder.buffer("keys", BufferRole::scratch, tokens, qkv, DType::bf16);
  BufferId out = builder.buffer("out", BufferRole::output, tokens, heads, DType::bf16);
  Index own_row = along(three, 0);

  RotatingAttention() { builder.initially(builder.whole(in), x, 0, 0); }
  void attend(Operand visible_keys, Operand to, Operand queries, std::vector<Index> positions) {
    builder.attention({.queries = std::move(queries),
                       .keys = std::move(visible_keys),
                       .out = std::move(to),
                       .positions = std::move(positions),
                       .batch = batch,
                       .head = head,
                       .causal = true});
  }
  Program ends_with_own_row() {
    builder.finally(builder.rows_of(out, own_row), attended, own_row, 0);
    return std::move(builder).build();
  }
};

TEST(Symmetry, HoldsForAttentionOfOwnRowsToAllRows) {
  RotatingAttention rotating;
  rotating.attend({rotating.builder.whole(rotating.in)}, {rotating.builder.rows_of(rotating.out, rotating.own_row)},
                  {rotating.builder.rows_of(rotating.in, rotating.own_row)}, {rotating.own_row});
  EXPECT_EQ(on_one_rank(rotating.ends_with_own_row()), "right");
}

TEST(Symmetry, IsNotSeenWhereQueriesDifferInPositionOnOtherRanks) {
  RotatingAttention rotating;
  rotating.attend({rotating.builder.whole(rotating.in)}, {rotating.builder.rows_of(rotating.out, rotating.own_row)},
                  {rotating.builder.rows_of(rotating.in, rotating.own_row)}, {0});
  const Program program = rotating.ends_with_own_row();
  EXPECT_EQ(on_one_rank(program), "not symmetric");
  EXPECT_EQ(on_every_rank(program), "contents");
}

TEST(Symmetry, IsNotSeenWhereAMaskHidesErrorsOfOtherRanksFromRankZero) {
  // Each rank has the row after its own row in the place of the row before it. Under the mask, rank 0 sees only its own
  // row.
  RotatingAttention rotating;
  for (std::int32_t row = 0; row < 3; ++row) {
    rotating.builder.elementwise(
        {.function = Function::copy,
         .inputs = {{rotating.builder.rows_of(rotating.in, along(three, 0, row == 2 ? 1 : row))}},
         .out = {rotating.builder.rows_of(rotating.keys, along(three, 0, row))}});
  }
  rotating.attend({rotating.builder.whole(rotating.keys)}, {rotating.builder.rows_of(rotating.out, rotating.own_row)},
                  {rotating.builder.rows_of(rotating.in, rotating.own_row)}, {rotating.own_row});
  const Program program = rotating.ends_with_own_row();
  EXPECT_EQ(on_one_rank(program), "not symmetric");
  EXPECT_EQ(on_every_rank(program), "contents");
}

TEST(Symmetry, IsNotSeenWhereKeysMoveOutOfStepWithTheSequence) {
  // Rows start with the rank's own row, so they are in order on rank 0 only.
  RotatingAttention rotating;
  const auto rotated = [&](BufferId buffer) {
    return Operand{rotating.builder.rows_of(buffer, along(three, 0, 0)),
                   rotating.builder.rows_of(buffer, along(three, 0, 1)),
                   rotating.builder.rows_of(buffer, along(three, 0, 2))};
  };
  rotating.attend(rotated(rotating.in), rotated(rotating.out), rotated(rotating.in), {});
  const Program program = rotating.ends_with_own_row();
  EXPECT_EQ(on_one_rank(program), "not symmetric");
  EXPECT_EQ(on_every_rank(program), "contents");
}

// --- many ranks ----------------------------------------------------------------------------------------------------

TEST(CheckProgram, Passes65536RanksOfFuseAgAndFuseRs) {
  const Strategy& commfuse = commfuse_strategy;
  for (const Scope scope : {Scope::gate_up, Scope::down}) {
    for (const Form form : {Form::ring, Form::direct}) {
      const Program program = generate(operation_of(scope, true), Mesh{{{"tp", 65536}}}, 0, commfuse, {.form = form});
      EXPECT_TRUE(check_program(program).ok()) << program.name;
    }
  }
}

TEST(CheckProgram, FindsAnErrorOnRankZeroOfMoreRanksThanFit) {
  const Strategy& commfuse = commfuse_strategy;
  Program program = generate(operation_of(Scope::down, true), Mesh{{{"tp", 16384}}}, 0, commfuse, {});
  program.ops[1].waits.count = 0;  // The first partial product is sent while it may still be computed.
  const CheckReport report = check_program(program);
  ASSERT_EQ(report.findings.size(), 1U);
  EXPECT_EQ(report.findings[0].sentence,
            "op 1 (exchange) on rank 0 reads row 0 of down.sum while op 0 (gemm) may still be writing it");
}

}  // namespace
}  // namespace commfuse
