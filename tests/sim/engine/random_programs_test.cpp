// SPDX-License-Identifier: Apache-2.0
// Compares the engine with the recurrence it evaluates, over random programs.
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <set>
#include <vector>

#include "sim/engine/engine.h"
#include "tests/sim/random_program.h"

namespace commfuse::test {
namespace {

/// Computes the start and end of every op from the recurrence alone, on demand, without a queue or a clock.
class Recurrence {
 public:
  Recurrence(const Lowered& lowered, const Costs& costs)
      : lowered_(lowered), program_(*lowered.program), costs_(costs), spans_(program_.ops.size() * ranks()) {}

  [[nodiscard]] Timeline timeline() {
    Timeline timeline;
    for (Rank rank = 0; rank < program_.mesh.ranks(); ++rank) {
      for (std::size_t i = 0; i < program_.ops.size(); ++i) {
        const OpId op{static_cast<std::int32_t>(i)};
        if (lowered_.takes_part(rank, op)) {
          const Span span = span_of(rank, op);
          timeline.push_back({rank, op, Instant{Duration{span.start}}, Instant{Duration{span.end}}});
        }
      }
    }
    return timeline;
  }

 private:
  struct Span {
    std::int64_t start = 0;
    std::int64_t end = -1;  // -1: not computed yet.
  };
  [[nodiscard]] std::size_t ranks() const { return static_cast<std::size_t>(program_.mesh.ranks()); }
  [[nodiscard]] std::int64_t cost(Rank rank, OpId op) const { return costs_.of(rank, position(op)).count(); }

  [[nodiscard]] std::int64_t posted(Rank rank, OpId op) {
    std::int64_t when = 0;
    for (std::size_t i = 0; i <= position(op); ++i) {
      const OpId earlier{static_cast<std::int32_t>(i)};
      when += lowered_.takes_part(rank, earlier) ? costs_.issue[i].count() : 0;
    }
    const Op& this_op = program_.ops[position(op)];
    for (std::size_t i = 0; i < position(op); ++i) {
      const OpId earlier{static_cast<std::int32_t>(i)};
      const auto waits = program_.waits_of(this_op);
      const bool awaited =
          program_.ops[i].lane == this_op.lane || std::find(waits.begin(), waits.end(), earlier) != waits.end();
      if (awaited && lowered_.takes_part(rank, earlier)) {
        when = std::max(when, span_of(rank, earlier).end);
      }
    }
    return when;
  }

  Span span_of(Rank rank, OpId op) {
    Span& known = spans_[static_cast<std::size_t>(rank) * program_.ops.size() + position(op)];
    if (known.end < 0) {
      const Shape& shape = program_.shapes[program_.ops[position(op)].shape];
      if (const auto* exchange = std::get_if<ExchangeShape>(&shape)) {
        known = exchange_span(rank, op, *exchange);
      } else if (const auto* collective = std::get_if<CollectiveShape>(&shape)) {
        known = collective_span(rank, op, *collective);
      } else {
        const std::int64_t start = posted(rank, op);
        known = {start, start + cost(rank, op)};
      }
    }
    return known;
  }

  /// Returns the span of the transfer that a rank sends in an op.
  Span transfer(Rank rank, OpId op) {
    const auto& exchange = std::get<ExchangeShape>(program_.shapes[program_.ops[position(op)].shape]);
    std::int64_t start = posted(rank, op);
    if (exchange.protocol != Protocol::push) {
      const OpId receiver{lowered_.matching.receiver(rank, op)};
      start = std::max(start, posted(target_of(program_, exchange, rank), receiver));
    }
    return {start, start + cost(rank, op)};
  }

  Span exchange_span(Rank rank, OpId op, const ExchangeShape& exchange) {
    std::vector<Span> parts;
    if (exchange.sends && exchange.protocol != Protocol::pull) {
      parts.push_back(transfer(rank, op));
    }
    if (exchange.receives) {
      parts.push_back(transfer(source_of(program_, exchange, rank), OpId{lowered_.matching.sender(rank, op)}));
    }
    const bool one_sided = exchange.protocol != Protocol::rendezvous;
    Span span{one_sided ? posted(rank, op) : parts.front().start, one_sided ? posted(rank, op) : 0};
    for (const Span& part : parts) {
      span.start = one_sided ? span.start : std::min(span.start, part.start);
      span.end = std::max(span.end, part.end);
    }
    return span;
  }

  Span collective_span(Rank rank, OpId op, const CollectiveShape& collective) {
    std::int64_t start = 0;
    std::int64_t longest = 0;
    const std::int32_t members = program_.mesh.axes[static_cast<std::size_t>(collective.axis)].extent;
    for (std::int32_t i = 0; i < members; ++i) {
      const Rank member = program_.mesh.member(rank, collective.axis, i);
      start = std::max(start, posted(member, op));
      longest = std::max(longest, cost(member, op));
    }
    return {start, start + longest};
  }

  const Lowered& lowered_;
  const Program& program_;
  const Costs& costs_;
  std::vector<Span> spans_;
};

TEST(RandomPrograms, CoverWhatTheEngineDistinguishes) {
  std::mt19937_64 random(1);
  int uniform = 0;
  int chains = 0;
  std::set<OpKind> kinds;
  std::set<std::int32_t> ranks;
  std::map<Protocol, int> protocols;
  int credits = 0;
  for (int i = 0; i < 500; ++i) {
    const Program program = random_program(random);
    uniform += match(program).uniform ? 1 : 0;
    ranks.insert(program.mesh.ranks());
    for (const Op& op : program.ops) {
      kinds.insert(op.kind);
      const auto* exchange = std::get_if<ExchangeShape>(&program.shapes[op.shape]);
      protocols[exchange != nullptr ? exchange->protocol : Protocol::rendezvous] += exchange != nullptr ? 1 : 0;
      credits += exchange != nullptr && is_credit(*exchange) ? 1 : 0;
      chains += exchange != nullptr && !exchange->receives && op.where.relation == Relation::less ? 1 : 0;
    }
  }
  EXPECT_GT(uniform, 200);
  EXPECT_LT(uniform, 400);
  EXPECT_GT(chains, 50);
  EXPECT_GT(protocols[Protocol::rendezvous], 200);
  EXPECT_GT(protocols[Protocol::push], 200);
  EXPECT_GT(protocols[Protocol::pull], 200);
  EXPECT_GT(credits, 100);
  EXPECT_EQ(kinds, (std::set{OpKind::elementwise, OpKind::exchange, OpKind::collective}));
  EXPECT_EQ(ranks.size(), 8U);
}

TEST(RandomPrograms, AreTheSameForOneSeed) {
  std::mt19937_64 once(7);
  std::mt19937_64 again(7);
  const Program program = random_program(once);
  EXPECT_EQ(program, random_program(again));
  EXPECT_EQ(random_costs(program, once).duration, random_costs(program, again).duration);
}

TEST(Engine, MatchesTheRecurrenceOfRandomProgramsToThePicosecond) {
  std::mt19937_64 random(2);
  Engine engine;
  Recorder recorder(Recorder::Keep::timeline);
  for (int i = 0; i < 10'000; ++i) {
    const auto program = std::make_shared<const Program>(random_program(random));
    const Costs costs = random_costs(*program, random);
    const Plan plan = plan_of(lower(program));
    engine.run(plan, costs, recorder);
    ASSERT_EQ(recorder.timeline(), Recurrence(plan.lowered, costs).timeline()) << "program " << i;
  }
}

TEST(Engine, ShufflingSimultaneousEventsChangesNothing) {
  std::mt19937_64 random(3);
  Engine engine;
  Recorder plain(Recorder::Keep::timeline);
  Recorder shuffled(Recorder::Keep::timeline);
  for (int i = 0; i < 2'000; ++i) {
    const auto program = std::make_shared<const Program>(random_program(random));
    const Costs costs = random_costs(*program, random);
    const Plan plan = plan_of(lower(program));
    engine.run(plan, costs, plain);
    for (int seed = 0; seed < 3; ++seed) {
      engine.run(plan, costs, shuffled, {.shuffle_ties = random()});
      ASSERT_EQ(shuffled.timeline(), plain.timeline()) << "program " << i;
    }
  }
}

TEST(EngineDeathTest, NamesTheOpsThatNeverFinish) {
  // Both ranks send first and receive afterwards, on one lane, so neither send meets a posted receive.
  ProgramBuilder builder("stuck", Mesh{{{"tp", 2}}});
  const Extent rows{builder.dimension("rows", 1), 1};
  const Extent columns{builder.dimension("columns", 1), 1};
  const Operand whole{builder.whole(builder.buffer("b", BufferRole::scratch, rows, columns, DType::fp32))};
  builder.exchange({.send = whole});
  const OpId received = builder.exchange({.receive = whole});
  builder.elementwise({.function = Function::copy, .inputs = {whole}, .out = whole, .waits = {received}});
  const auto program = std::make_shared<const Program>(std::move(builder).build());
  const Plan plan = plan_of(lower(program));
  const Costs costs{.duration = std::vector<Duration>(3), .issue = std::vector<Duration>(3)};
  Recorder recorder;
  EXPECT_DEATH(Engine{}.run(plan, costs, recorder),
               "a checked program runs to its end, but rank 0 in op 0 .exchange. on lane comm0 waits for op 1 "
               ".exchange. of rank 1; rank 0 in op 2 .elementwise. on lane compute0 waits for op 1 .exchange. of rank "
               "0; rank 1 in op 0 ");
}

}  // namespace
}  // namespace commfuse::test
