// SPDX-License-Identifier: Apache-2.0
// Small random programs that run to completion, and random costs, on which all evaluators must agree. The ops are
// meaningless as arithmetic and would not pass check_program(), but their exchanges match and nothing deadlocks.
#pragma once

#include <algorithm>
#include <array>
#include <random>
#include <utility>
#include <vector>

#include "model/cost/costs.h"
#include "model/program/builder.h"
#include "model/program/matching.h"
#include "model/proof/deadlock.h"

namespace commfuse::test {

/// Draws the same numbers with every standard library, whose own distributions differ. Requires bound > 0.
inline std::int64_t below(std::mt19937_64& random, std::int64_t bound) {
  return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(bound));
}
inline bool one_in(std::mt19937_64& random, std::int64_t n) { return below(random, n) == 0; }

/// Adds random ops one after another.
class RandomProgram {
 public:
  explicit RandomProgram(std::mt19937_64& random)
      : random_(random),
        builder_("random", random_mesh(random)),
        lanes_(random_lanes(random)),
        uniform_(one_in(random, 2)) {}
  /// Makes a uniform program: every rank runs every op.
  RandomProgram(std::mt19937_64& random, Mesh mesh)
      : random_(random), builder_("random", std::move(mesh)), lanes_(random_lanes(random)), uniform_(true) {}

  Program build() {
    const std::int64_t steps = 1 + below(random_, 14);
    for (std::int64_t i = 0; i < steps; ++i) {
      switch (below(random_, 9)) {
        case 0:
        case 1: add_exchange(); break;
        case 2: uniform_ ? add_shift() : add_pair(); break;
        case 3: uniform_ ? add_compute() : add_chain(); break;
        case 4: add_collective(); break;
        case 5: add_credit(); break;
        default: add_compute();
      }
    }
    return std::move(builder_).build();
  }

 private:
  /// Returns 1 to 8 ranks on one axis or two.
  static Mesh random_mesh(std::mt19937_64& random) {
    if (one_in(random, 3)) {
      const auto nodes = static_cast<std::int32_t>(1 + below(random, 3));
      const auto ranks_per_node = static_cast<std::int32_t>(1 + below(random, nodes == 3 ? 2 : 4));
      return Mesh{{{"node", nodes}, {"tp", ranks_per_node}}};
    }
    return Mesh{{{"tp", static_cast<std::int32_t>(1 + below(random, 8))}}};
  }

  static std::vector<Lane> random_lanes(std::mt19937_64& random) {
    std::vector<Lane> lanes{
        {LaneKind::compute, 0}, {LaneKind::comm, 0}, {LaneKind::aux, 0}, {LaneKind::comm, 1}, {LaneKind::copy, 0}};
    lanes.resize(static_cast<std::size_t>(1 + below(random, std::ssize(lanes))));
    return lanes;
  }

  [[nodiscard]] Lane lane() { return lanes_[static_cast<std::size_t>(below(random_, std::ssize(lanes_)))]; }
  [[nodiscard]] int axis() { return static_cast<int>(below(random_, std::ssize(builder_.mesh().axes))); }
  [[nodiscard]] std::int32_t extent(int axis) const {
    return builder_.mesh().axes[static_cast<std::size_t>(axis)].extent;
  }
  [[nodiscard]] Operand rows(std::int32_t count) { return {builder_.rows_of(buffer_, 0, count)}; }

  /// Returns up to three earlier ops.
  std::vector<OpId> waits() {
    std::vector<OpId> chosen;
    for (std::int64_t i = below(random_, 4); i > 0 && added_ > 0; --i) {
      chosen.push_back(OpId{static_cast<std::int32_t>(below(random_, added_))});
    }
    std::sort(chosen.begin(), chosen.end());
    chosen.erase(std::unique(chosen.begin(), chosen.end()), chosen.end());
    return chosen;
  }

  /// Returns a random predicate on the coordinate of an axis.
  Predicate predicate(int axis) {
    constexpr std::array relations{Relation::equal, Relation::not_equal, Relation::less, Relation::at_least};
    return {relations[static_cast<std::size_t>(below(random_, 4))], static_cast<std::int8_t>(axis),
            static_cast<std::int32_t>(below(random_, extent(axis)))};
  }

  OpId count(OpId op) {
    ++added_;
    return op;
  }

  /// Sometimes limits an op to some groups. All ranks of a group along `axis` must take part or none, so the predicate
  /// is on the other axis.
  void maybe_limit_groups(OpId op, int axis) {
    if (!uniform_ && builder_.mesh().axes.size() == 2 && one_in(random_, 3)) {
      builder_.only_where(op, predicate(1 - axis));
    }
  }

  void add_compute() {
    const auto operand = rows(static_cast<std::int32_t>(1 + below(random_, 4)));
    const OpId op = count(builder_.elementwise({.lane = lane(),
                                                .function = Function::copy,
                                                .inputs = {operand},
                                                .out = operand,
                                                .waits = waits(),
                                                .purpose = one_in(random_, 3) ? Purpose::local : Purpose::essential}));
    if (!uniform_ && one_in(random_, 4)) {
      builder_.only_where(op, predicate(axis()));
    }
  }

  void add_exchange() {
    const int along = axis();
    const auto operand = rows(static_cast<std::int32_t>(1 + below(random_, 4)));
    const OpId op = count(builder_.exchange({.lane = lane(),
                                             .axis = along,
                                             .shift = static_cast<std::int32_t>(below(random_, extent(along))),
                                             .send = operand,
                                             .receive = operand,
                                             .protocol = protocol(),
                                             .waits = waits()}));
    maybe_limit_groups(op, along);
  }

  Protocol protocol() {
    constexpr std::array protocols{Protocol::rendezvous, Protocol::rendezvous, Protocol::push, Protocol::pull};
    return protocols[static_cast<std::size_t>(below(random_, std::ssize(protocols)))];
  }

  /// Adds an op that both gives and takes a credit, or an op that gives a credit and an op that takes it.
  void add_credit() {
    const int along = axis();
    CreditSpec credit{.lane = lane(),
                      .axis = along,
                      .shift = static_cast<std::int32_t>(below(random_, extent(along))),
                      .waits = waits()};
    if (one_in(random_, 2)) {
      maybe_limit_groups(count(builder_.credit(credit)), along);
      return;
    }
    credit.receives = false;
    count(builder_.credit(credit));
    maybe_compute();
    credit.sends = false;
    credit.receives = true;
    count(builder_.credit(credit));
  }

  void add_collective() {
    const int along = axis();
    const auto operand = rows(static_cast<std::int32_t>(1 + below(random_, 4)));
    const OpId op = count(builder_.collective({.lane = lane(),
                                               .kind = CollectiveKind::all_reduce,
                                               .axis = along,
                                               .in = operand,
                                               .out = operand,
                                               .waits = waits()}));
    maybe_limit_groups(op, along);
  }

  /// Sometimes adds compute ops between two halves.
  void maybe_compute() {
    while (one_in(random_, 3)) {
      add_compute();
    }
  }

  /// One half of a transfer by `shift`, on the ranks where `where` holds.
  struct HalfSpec {
    bool sends = true;
    Lane lane;
    int axis = 0;
    std::int32_t shift = 0;
    Operand load;
    Protocol protocol = Protocol::rendezvous;
    Predicate where;
  };
  void add_half(const HalfSpec& half) {
    const OpId op = count(builder_.exchange({.lane = half.lane,
                                             .axis = half.axis,
                                             .shift = half.shift,
                                             .send = half.sends ? half.load : Operand{},
                                             .receive = half.sends ? Operand{} : half.load,
                                             .protocol = half.protocol,
                                             .waits = waits()}));
    builder_.only_where(op, half.where);
  }

  /// Makes every rank send in one op and receive in another op.
  void add_shift() {
    const int along = axis();
    add_two_halves(along, static_cast<std::int32_t>(below(random_, extent(along))), {}, {});
  }

  /// Makes the ranks at one coordinate send in one op, and the ranks `shift` ahead receive in another op.
  void add_pair() {
    const int along = axis();
    if (extent(along) < 2) {
      return;
    }
    const auto shift = static_cast<std::int32_t>(1 + below(random_, extent(along) - 1));
    const auto from = static_cast<std::int32_t>(below(random_, extent(along)));
    const Predicate sender{Relation::equal, static_cast<std::int8_t>(along), from};
    const Predicate receiver{Relation::equal, static_cast<std::int8_t>(along), (from + shift) % extent(along)};
    add_two_halves(along, shift, sender, receiver);
  }

  /// Makes every rank except the last send to the next one.
  void add_chain() {
    const int along = axis();
    if (extent(along) < 2) {
      return;
    }
    const Predicate senders{Relation::less, static_cast<std::int8_t>(along), extent(along) - 1};
    const Predicate receivers{Relation::at_least, static_cast<std::int8_t>(along), 1};
    add_two_halves(along, 1, senders, receivers);
  }

  void add_two_halves(int along, std::int32_t shift, const Predicate& senders, const Predicate& receivers) {
    HalfSpec half{.sends = one_in(random_, 2),
                  .lane = lane(),
                  .axis = along,
                  .shift = shift,
                  .load = rows(static_cast<std::int32_t>(1 + below(random_, 4))),
                  .protocol = protocol()};
    half.where = half.sends ? senders : receivers;
    add_half(half);
    maybe_compute();
    half.sends = !half.sends;
    half.where = half.sends ? senders : receivers;
    add_half(half);
  }

  std::mt19937_64& random_;
  ProgramBuilder builder_;
  std::vector<Lane> lanes_;
  bool uniform_;  // True if every rank runs every op.
  Extent rows_{builder_.dimension("rows", 4), 4};
  Extent columns_{builder_.dimension("columns", 1), 1};
  BufferId buffer_ = builder_.buffer("b", BufferRole::scratch, rows_, columns_, DType::fp32);
  std::int64_t added_ = 0;
};

inline bool runs_to_completion(const Program& program) {
  const Matching matching = match(program);
  Findings findings;
  if (matching.problems.empty()) {
    run_abstractly(program, matching, findings);
  }
  return matching.problems.empty() && findings.empty();
}

/// Returns a program on 1 to 8 ranks on one axis or two, with 1 to 5 lanes and seldom more than 20 ops: exchanges with
/// any shift and protocol (predicates may omit either half), credits, collectives, compute ops and waits. match() finds
/// no problem and nothing deadlocks. About half of the programs are uniform.
inline Program random_program(std::mt19937_64& random) {
  for (;;) {
    Program program = RandomProgram(random).build();
    if (runs_to_completion(program)) {
      return program;
    }
  }
}

/// Returns a uniform random program on this mesh: every rank runs every op.
inline Program random_program(std::mt19937_64& random, const Mesh& mesh) {
  for (;;) {
    Program program = RandomProgram(random, mesh).build();
    if (runs_to_completion(program)) {
      return program;
    }
  }
}

/// Returns durations and issue costs, often 0 or equal so that events coincide. In about half of the cases, durations
/// differ by rank and repeat after `period` ranks.
inline Costs random_costs(const Program& program, std::mt19937_64& random, Rank period) {
  const std::array<std::int64_t, 3> bounds{3, 20, 1'000'000};
  const std::int64_t bound = bounds[static_cast<std::size_t>(below(random, 3))];
  const bool issues = one_in(random, 2);
  const auto duration = [&] { return one_in(random, 4) ? Duration{0} : Duration{below(random, bound)}; };
  Costs costs;
  for (std::size_t op = 0; op < program.ops.size(); ++op) {
    costs.duration.push_back(duration());
    costs.issue.push_back(issues ? duration() / 2 : Duration{0});
  }
  if (one_in(random, 2)) {
    const std::size_t instances = program.ops.size() * static_cast<std::size_t>(period);
    for (std::size_t i = 0; i < instances; ++i) {
      costs.by_rank.push_back(one_in(random, 2) ? costs.duration[i % program.ops.size()] : duration());
    }
  }
  return costs;
}
inline Costs random_costs(const Program& program, std::mt19937_64& random) {
  return random_costs(program, random, program.mesh.ranks());
}

/// A mesh of one axis or two, and the number of its ranks that represent all.
struct RandomFold {
  Mesh mesh;
  Rank ranks = 1;
};
inline RandomFold random_fold(std::mt19937_64& random) {
  const auto nodes = static_cast<std::int32_t>(2 + below(random, 4));
  const auto ranks_per_node = static_cast<std::int32_t>(1 + below(random, 4));
  return {one_in(random, 2) ? Mesh{{{"tp", nodes * ranks_per_node}}} : Mesh{{{"node", nodes}, {"tp", ranks_per_node}}},
          ranks_per_node};
}

}  // namespace commfuse::test
