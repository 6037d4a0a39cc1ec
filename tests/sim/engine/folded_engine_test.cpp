// SPDX-License-Identifier: Apache-2.0
// Compares the engine on the first ranks, which represent all, with the engine on all ranks.
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <vector>

#include "model/cost/fold_wiring.h"
#include "sim/engine/engine.h"
#include "tests/sim/random_program.h"

namespace commfuse::test {
namespace {

/// Compares each rank with the rank that represents it, op by op.
void expect_repeated(const Recorder& every_rank, const Recorder& representatives, Rank ranks, int program) {
  const Timeline whole = every_rank.timeline();
  Timeline repeated;
  for (Rank first = 0; first < ranks; first += representatives.ranks()) {
    for (OpSpan span : representatives.timeline()) {
      span.rank += first;
      repeated.push_back(span);
    }
  }
  ASSERT_EQ(repeated, whole) << "program " << program;
}

TEST(FoldedEngine, TheFirstRanksRepresentAllWhereCostsRepeat) {
  std::mt19937_64 random(21);
  Engine engine;
  Recorder every_rank(Recorder::Keep::timeline);
  Recorder representatives(Recorder::Keep::timeline);
  for (int i = 0; i < 5'000; ++i) {
    const RandomFold fold = random_fold(random);
    const auto program = std::make_shared<const Program>(random_program(random, fold.mesh));
    const Costs costs = random_costs(*program, random, fold.ranks);
    const Plan plan = plan_of(lower(program));
    engine.run(plan, costs, every_rank);
    engine.run(plan, costs, representatives, {.first_ranks = fold.ranks});
    ASSERT_EQ(representatives.ranks(), fold.ranks);
    expect_repeated(every_rank, representatives, fold.mesh.ranks(), i);
  }
}

/// Random wires of identical nodes with `ranks_per_node` ranks. A transfer may cross links of the sender's node, of
/// the receiver's node and of the node after the sender's, and links of all nodes together. All transfers over a link
/// have the same cap.
class RandomWires {
 public:
  RandomWires(std::mt19937_64& random, const Program& program, Rank ranks_per_node)
      : random_(random),
        program_(program),
        ranks_per_node_(ranks_per_node),
        nodes_(program.mesh.ranks() / ranks_per_node) {
    wiring_.ranks = static_cast<std::size_t>(program.mesh.ranks());
    for (std::int64_t i = 2 + below(random, 8); i > 0; --i) {
      const bool shared_by_all = one_in(random, 4);
      kinds_.push_back(
          {static_cast<std::int32_t>(wiring_.capacity.size()), shared_by_all, one_in(random, 2) ? 7e9 : 11e9});
      const double capacity =
          kinds_.back().cap * static_cast<double>(1 + below(random, 7)) / (one_in(random, 2) ? 1 : 3);
      wiring_.capacity.insert(wiring_.capacity.end(), shared_by_all ? 1 : static_cast<std::size_t>(nodes_),
                              std::max(kinds_.back().cap, capacity * (shared_by_all ? nodes_ : 1)));
    }
  }

  Wiring make() {
    for (const Op& op : program_.ops) {
      const auto* exchange = std::get_if<ExchangeShape>(&program_.shapes[op.shape]);
      wiring_.move_of_op.push_back(-1);
      if (exchange != nullptr && exchange->sends && !one_in(random_, 5)) {
        wiring_.move_of_op.back() = moves_++;
        add_move(*exchange);
      }
    }
    return std::move(wiring_);
  }

 private:
  struct Kind {
    std::int32_t first = 0;
    bool shared_by_all = false;
    double cap = 0.0;
  };
  enum class Place : std::uint8_t { sender, receiver, next };
  struct Crossing {
    Kind kind;
    Place place = Place::sender;
  };

  void add_move(const ExchangeShape& exchange) {
    std::vector<std::vector<Crossing>> routes;  // Indexed by the ranks of the first node.
    std::vector<Duration> latencies;
    for (Rank rank = 0; rank < ranks_per_node_; ++rank) {
      routes.push_back(random_route());
      latencies.emplace_back(below(random_, 3) * 1000);
    }
    for (Rank rank = 0; rank < program_.mesh.ranks(); ++rank) {
      const auto representative = static_cast<std::size_t>(rank % ranks_per_node_);
      add_path(rank, target_of(program_, exchange, rank), routes[representative], latencies[representative]);
    }
  }

  std::vector<Crossing> random_route() {
    std::vector<Crossing> route;
    const double cap = one_in(random_, 2) ? 7e9 : 11e9;
    for (const Kind& kind : kinds_) {
      if (kind.cap == cap && !one_in(random_, 3)) {
        route.push_back({kind, static_cast<Place>(below(random_, 3))});
      }
    }
    return route;
  }

  void add_path(Rank from, Rank to, const std::vector<Crossing>& route, Duration latency) {
    wiring_.paths.push_back({latency, static_cast<std::uint32_t>(wiring_.stages.size()), route.empty() ? 0U : 1U});
    if (route.empty()) {
      return;
    }
    wiring_.stages.push_back({route.front().kind.cap, 1.0, static_cast<std::uint32_t>(wiring_.links.size()),
                              static_cast<std::uint32_t>(route.size())});
    for (const Crossing& crossing : route) {
      const Rank node = crossing.place == Place::receiver ? to / ranks_per_node_ : from / ranks_per_node_;
      const Rank crossed_node = crossing.place == Place::next ? (node + 1) % nodes_ : node;
      wiring_.links.push_back(crossing.kind.first + (crossing.kind.shared_by_all ? 0 : crossed_node));
    }
  }

  std::mt19937_64& random_;
  const Program& program_;
  Rank ranks_per_node_;
  Rank nodes_;
  std::vector<Kind> kinds_;
  std::int32_t moves_ = 0;
  Wiring wiring_;
};

/// Sets the speeds of kernels during communication: by op, and by rank where costs differ by rank.
void slow_kernels(Fluid& fluid, std::mt19937_64& random) {
  for (const unsigned beside : {1U, 2U, 3U}) {
    for (std::size_t i = std::max(fluid.costs.duration.size(), fluid.costs.by_rank.size()); i > 0; --i) {
      fluid.speeds[beside].push_back(static_cast<double>(1 + below(random, 9)) / 9.0);
    }
  }
}

TEST(FoldedEngine, TheFirstRanksRepresentAllWhereTransfersShareLinks) {
  std::mt19937_64 random(22);
  Engine engine;
  Recorder every_rank(Recorder::Keep::timeline);
  Recorder compared(Recorder::Keep::timeline);
  Recorder plain(Recorder::Keep::timeline);
  int shared = 0;
  int fewer_links = 0;
  for (int i = 0; i < 5'000; ++i) {
    const RandomFold fold = random_fold(random);
    const auto program = std::make_shared<const Program>(random_program(random, fold.mesh));
    Fluid fluid{.costs = random_costs(*program, random, fold.ranks), .speeds = {}, .wiring = nullptr};
    slow_kernels(fluid, random);
    const auto wiring = std::make_shared<const Wiring>(RandomWires(random, *program, fold.ranks).make());
    const std::optional<Wiring> folded = folded_wiring(*wiring, fold.mesh, fold.ranks);
    ASSERT_TRUE(folded) << "program " << i;
    const Plan plan = plan_of(lower(program));
    fluid.wiring = wiring;
    engine.run(plan, fluid.costs, every_rank, {.fluid = &fluid});
    engine.run(plan, fluid.costs, plain);
    shared += plain.makespan() == every_rank.makespan() ? 0 : 1;
    fluid.wiring = std::make_shared<const Wiring>(narrowest_links(*wiring));
    fewer_links += fluid.wiring->links.size() < wiring->links.size() ? 1 : 0;
    engine.run(plan, fluid.costs, compared, {.fluid = &fluid});
    ASSERT_EQ(compared.timeline(), every_rank.timeline()) << "program " << i;
    fluid.wiring = std::make_shared<const Wiring>(*folded);
    engine.run(plan, fluid.costs, compared, {.fluid = &fluid, .first_ranks = fold.ranks});
    expect_repeated(every_rank, compared, fold.mesh.ranks(), i);
  }
  EXPECT_GT(shared, 1000);
  EXPECT_GT(fewer_links, 1000);
}

/// Returns the folded wiring of two ranks, each with its own link to the other rank; `change` makes the links unequal.
template <class Change>
std::optional<Wiring> folded_pair(const Change& change) {
  Wiring wiring{.move_of_op = {0},
                .paths = {{Duration{5}, 0, 1}, {Duration{5}, 1, 1}},
                .stages = {{10.0, 1.0, 0, 1}, {10.0, 1.0, 1, 1}},
                .links = {0, 1},
                .times = {},
                .capacity = {10.0, 10.0},
                .ranks = 2};
  change(wiring);
  return folded_wiring(wiring, Mesh{{{"tp", 2}}}, 1);
}

TEST(FoldWiring, OneLinkRepresentsAllWithTheSameTransfers) {
  const std::optional<Wiring> folded = folded_pair([](Wiring&) {});
  ASSERT_TRUE(folded);
  EXPECT_EQ(folded->ranks, 1U);
  EXPECT_EQ(folded->paths.size(), 1U);
  EXPECT_EQ(folded->capacity, std::vector<double>{10.0});
  EXPECT_EQ(folded->times, std::vector<std::int32_t>{1});
}

TEST(FoldWiring, ALinkOfAllRanksHasAllTransfers) {
  const std::optional<Wiring> folded = folded_pair([](Wiring& wiring) { wiring.links = {1, 1}; });
  ASSERT_TRUE(folded);
  EXPECT_EQ(folded->times, std::vector<std::int32_t>{2});
}

TEST(NarrowestLinks, ReplaceWiderLinksWithTheSameTransfers) {
  // Links 0, 1 and 3 carry both transfers; link 2 carries only the first, link 4 none.
  const Wiring wiring{.move_of_op = {0},
                      .paths = {{Duration{5}, 0, 1}, {Duration{5}, 1, 1}},
                      .stages = {{10.0, 1.0, 0, 4}, {10.0, 1.0, 4, 3}},
                      .links = {0, 1, 2, 3, 3, 0, 1},
                      .times = {},
                      .capacity = {12.0, 11.0, 10.0, 11.0, 10.0},
                      .ranks = 2};
  const Wiring narrow = narrowest_links(wiring);
  EXPECT_EQ(narrow.links, (std::vector<std::int32_t>{1, 2, 1}));
  EXPECT_EQ(narrow.stages[0].links, 2U);
  EXPECT_EQ(narrow.stages[1].first_link, 2U);
}

TEST(FoldWiring, DoesNotFoldDifferentLinks) {
  EXPECT_FALSE(folded_pair([](Wiring& wiring) { wiring.capacity[1] = 11.0; }));
  EXPECT_FALSE(folded_pair([](Wiring& wiring) { wiring.stages[1].cap = 11.0; }));
  EXPECT_FALSE(folded_pair([](Wiring& wiring) { wiring.paths[1].latency = Duration{6}; }));
  EXPECT_FALSE(folded_pair([](Wiring& wiring) { wiring.paths[1].stages = 0; }));
  EXPECT_FALSE(folded_pair([](Wiring& wiring) {  // One rank crosses one link twice, the other rank crosses two links.
    wiring.stages = {{10.0, 1.0, 0, 2}, {10.0, 1.0, 2, 2}};
    wiring.links = {0, 1, 1, 2};
    wiring.capacity = {10.0, 10.0, 10.0};
  }));
}

}  // namespace
}  // namespace commfuse::test
