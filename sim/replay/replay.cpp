// SPDX-License-Identifier: Apache-2.0
#include "sim/replay/replay.h"

#include <algorithm>
#include <utility>

#include "model/check.h"
#include "model/config_error.h"
#include "sim/replay/kernels.h"

namespace commfuse {

namespace {

constexpr double longest_exact = 9007199254740992.0;  // 2^53

/// Lanes of a register: runs of the same tape that are computed together.
enum Lane : std::size_t { actual, ideal, link, all_lanes };

Instant instant(double picoseconds) { return Instant{Duration{static_cast<std::int64_t>(picoseconds)}}; }

Duration duration(double picoseconds) {
  if (picoseconds >= longest_exact) {
    throw ConfigError("a run exceeds 2.5 hours, beyond which times are not exact; use fewer tokens per run");
  }
  return Duration{static_cast<std::int64_t>(picoseconds)};
}

Rank ranks_of(const Program& program, const Tape& tape, const Costs& costs, Replay::Ranks ranks) {
  return ranks == Replay::Ranks::all ? tape.ranks : distinct_ranks(program, tape, costs);
}

}  // namespace

bool ranks_are_identical(const Tape& tape, const Costs& costs) { return tape.all_ranks && costs.by_rank.empty(); }

Rank distinct_ranks(const Program& program, const Tape& tape, const Costs& costs) {
  if (!tape.all_ranks) {
    return tape.ranks;
  }
  const Rank rows = rows_of(costs);
  return rows == 1 || folded(program.mesh, rows) ? rows : tape.ranks;
}

namespace {

/// Prices of the ops: in one lane, or in all three.
class Priced {
 public:
  Priced(const Program& program, const Tape& tape, const Costs& costs, Rank ranks, std::size_t lanes)
      : program_(program),
        tape_(tape),
        costs_(costs),
        ranks_(tape.all_ranks ? static_cast<std::size_t>(ranks) : 1),
        lanes_(lanes) {}

  [[nodiscard]] std::size_t lanes() const { return lanes_; }

  /// Writes the price of an op on every rank of a register, in every lane.
  void operator()(std::uint32_t op, Rank rank, double* out) const {
    if (costs_.by_rank.empty()) {
      spread(op, static_cast<double>(costs_.duration[op].count()), out);
      for (std::size_t i = lanes_; i < ranks_ * lanes_; ++i) {
        out[i] = out[i - lanes_];
      }
      return;
    }
    for (std::size_t r = 0; r < ranks_; ++r) {
      const Rank own_rank = tape_.all_ranks ? static_cast<Rank>(r) : rank;
      spread(op, static_cast<double>(costs_.of(own_rank, op).count()), out + r * lanes_);
    }
  }

 private:
  void spread(std::uint32_t op, double priced, double* out) const {
    out[actual] = priced;
    if (lanes_ == all_lanes) {
      const bool communicates = program_.ops[op].purpose == Purpose::communication;
      out[ideal] = communicates ? 0.0 : priced;
      out[link] = communicates ? priced : 0.0;
    }
  }

  const Program& program_;
  const Tape& tape_;
  const Costs& costs_;
  std::size_t ranks_;
  std::size_t lanes_;
};

/// Times of the ops at several costs, one per lane.
class SideBySide {
 public:
  SideBySide(const Tape& tape, std::span<const Costs> costs, Rank ranks)
      : tape_(tape), costs_(costs), ranks_(tape.all_ranks ? static_cast<std::size_t>(ranks) : 1) {}

  [[nodiscard]] std::size_t lanes() const { return costs_.size(); }

  void operator()(std::uint32_t op, Rank rank, double* out) const {
    const std::size_t lanes = costs_.size();
    const bool is_same_on_ranks = costs_.front().by_rank.empty();
    for (std::size_t r = 0; r < (is_same_on_ranks ? 1 : ranks_); ++r) {
      const Rank own_rank = tape_.all_ranks ? static_cast<Rank>(r) : rank;
      for (std::size_t lane = 0; lane < lanes; ++lane) {
        out[r * lanes + lane] = static_cast<double>(costs_[lane].of(own_rank, op).count());
      }
    }
    for (std::size_t i = lanes; is_same_on_ranks && i < ranks_ * lanes; ++i) {
      out[i] = out[i - lanes];
    }
  }

 private:
  const Tape& tape_;
  std::span<const Costs> costs_;
  std::size_t ranks_;
};

/// Times of the ops in a batch of samples, one per lane.
class Sampled {
 public:
  Sampled(const Tape& tape, const Costs& costs, JitterSampler& sampler)
      : tape_(tape),
        costs_(costs),
        sampler_(sampler),
        nominal_(costs.by_rank.empty() ? 1 : static_cast<std::size_t>(tape.ranks)),
        times_(tape.all_ranks ? 0 : static_cast<std::size_t>(tape.ranks) * sampler.lanes()) {}

  [[nodiscard]] std::size_t lanes() const { return sampler_.lanes(); }

  void operator()(std::uint32_t op, Rank rank, double* out) {
    if (tape_.all_ranks) {
      draw(op, out);
      return;
    }
    if (drawn_ != op) {
      draw(op, times_.data());
      drawn_ = op;
    }
    std::copy_n(times_.data() + static_cast<std::size_t>(rank) * lanes(), lanes(), out);
  }

 private:
  void draw(std::uint32_t op, double* out) {
    for (std::size_t r = 0; r < nominal_.size(); ++r) {
      nominal_[r] = static_cast<double>(costs_.of(static_cast<Rank>(r), op).count());
    }
    sampler_.sample(op, nominal_, out);
  }

  const Tape& tape_;
  const Costs& costs_;
  JitterSampler& sampler_;
  std::vector<double> nominal_;  // one value for all ranks, or one per rank
  std::vector<double> times_;    // the last op drawn, by rank and lane; empty if instructions are for all ranks
  std::uint32_t drawn_ = Tape::none;
};

}  // namespace

/// One pass over a tape.
template <class Prices>
class Replay::Pass {
 public:
  Pass(Replay& memory, const Program& program, const Tape& tape, const Costs& costs, Rank ranks, Prices prices)
      : program_(program),
        tape_(tape),
        costs_(costs),
        memory_(memory),
        mesh_(*folded(program.mesh, ranks)),
        ranks_(tape.all_ranks ? static_cast<std::size_t>(ranks) : 1),
        lanes_(prices.lanes()),
        width_(ranks_ * lanes_),
        price_(std::move(prices)) {
    check(belongs(costs, program, static_cast<std::size_t>(tape.ranks)), "costs belong to the program");
    memory_.values_.resize(tape.registers * width_);
    memory_.durations_.resize(width_);
    memory_.others_.resize(width_);
    memory_.last_end_.assign(lanes_, 0.0);
    sum_issue_costs();
  }

  /// `recorder` is null when nothing is recorded.
  void run(Recorder* recorder) {
    const bool single = width_ == 1 && recorder == nullptr;
    for (const Tape::Instruction& instruction : tape_.instructions) {
      if (single && run_single(instruction)) {
        continue;
      }
      switch (instruction.kind) {
        case Tape::Kind::kernel:
          price_(instruction.op, instruction.rank, memory_.durations_.data());
          post(instruction);
          kernels::add_to(to(instruction), memory_.durations_.data(), width_);
          break;
        case Tape::Kind::post: post(instruction); continue;
        case Tape::Kind::half:
          price_(instruction.op, instruction.rank, memory_.durations_.data());
          join(instruction);
          kernels::add_to(to(instruction), memory_.durations_.data(), width_);
          continue;
        case Tape::Kind::join: join(instruction); break;
        case Tape::Kind::exchange: exchange(instruction); break;
        case Tape::Kind::collective: meet_all(instruction); break;
      }
      if (instruction.last) {
        note_end(instruction);
      }
      if (recorder != nullptr) {
        record(instruction, *recorder);
      }
    }
  }

 private:
  using Instruction = Tape::Instruction;

  [[nodiscard]] double* at(std::uint32_t register_index) {
    return memory_.values_.data() + std::size_t{register_index} * width_;
  }
  [[nodiscard]] double* to(const Instruction& instruction) { return at(instruction.to); }

  /// Runs a kernel or a self-paired exchange if registers are single values. Returns false, and does nothing, for
  /// any other instruction.
  bool run_single(const Instruction& instruction) {
    if (instruction.kind != Tape::Kind::kernel && instruction.kind != Tape::Kind::exchange) {
      return false;
    }
    double* values = memory_.values_.data();
    double posted = issued(instruction);
    for (const std::uint32_t operand : tape_.operands_of(instruction)) {
      posted = std::max(posted, values[operand]);
    }
    price_(instruction.op, instruction.rank, memory_.durations_.data());
    values[instruction.to] = posted + memory_.durations_.front();
    if (instruction.last) {
      note_end(instruction);
    }
    return true;
  }

  void sum_issue_costs() {
    const std::size_t ops = program_.ops.size();
    const Rank distinct = tape_.all_ranks ? 1 : tape_.ranks;
    memory_.issued_.resize(ops * static_cast<std::size_t>(distinct));
    for (Rank rank = 0; rank < distinct; ++rank) {
      const Coordinates coordinates = program_.mesh.coordinates(rank);
      double* issued = memory_.issued_.data() + static_cast<std::size_t>(rank) * ops;
      std::int64_t sum = 0;
      for (std::size_t op = 0; op < ops; ++op) {
        sum += tape_.all_ranks || program_.ops[op].where.holds(coordinates) ? costs_.issue[op].count() : 0;
        issued[op] = static_cast<double>(sum);
      }
    }
  }

  [[nodiscard]] double issued(const Instruction& instruction) const {
    return memory_.issued_[static_cast<std::size_t>(instruction.rank) * program_.ops.size() + instruction.op];
  }

  void post(const Instruction& instruction) {
    double* posted = to(instruction);
    const auto operands = tape_.operands_of(instruction);
    if (operands.empty()) {
      kernels::fill(posted, issued(instruction), width_);
      return;
    }
    kernels::max_with(posted, at(operands.front()), issued(instruction), width_);
    for (const std::uint32_t operand : operands.subspan(1)) {
      kernels::raise_to(posted, at(operand), width_);
    }
  }

  /// Calls visit(to, from, count) for every contiguous run of values under the turn.
  template <class Visit>
  void for_each_run(std::uint32_t turn, const Visit& visit) const {
    if (ranks_ == 1) {
      visit(0, 0, width_);
      return;
    }
    const auto axis = static_cast<std::size_t>(tape_.turns[turn].axis);
    const auto extent = static_cast<std::size_t>(mesh_.extents[axis]);
    const std::size_t step = static_cast<std::size_t>(mesh_.strides[axis]) * lanes_;
    const std::size_t block = extent * step;
    const std::size_t offset = static_cast<std::size_t>(tape_.turns[turn].by) % extent * step;
    for (std::size_t first = 0; first < width_; first += block) {
      visit(first, first + offset, block - offset);
      if (offset > 0) {
        visit(first + block - offset, first, offset);
      }
    }
  }

  /// Sets to = max(mine, other turned).
  void meet(double* to, const double* mine, const double* other, std::uint32_t turn) const {
    for_each_run(turn, [&](std::size_t target, std::size_t source, std::size_t count) {
      kernels::max_of(to + target, mine + target, other + source, count);
    });
  }

  void exchange(const Instruction& instruction) {
    price_(instruction.op, instruction.rank, memory_.durations_.data());
    post(instruction);
    double* end = to(instruction);
    double* half = at(instruction.self);
    if (ranks_ == 1) {  // a rank paired with itself
      kernels::add_to(end, memory_.durations_.data(), width_);
      std::copy_n(end, width_, half);
      return;
    }
    meet(half, end, end, instruction.turn);
    kernels::add_to(half, memory_.durations_.data(), width_);
    meet(end, half, half, instruction.turn_back);
  }

  void join(const Instruction& instruction) {
    if (instruction.self != Tape::none && instruction.other != Tape::none) {
      meet(to(instruction), at(instruction.self), at(instruction.other), instruction.turn);
    } else if (instruction.self != Tape::none) {
      std::copy_n(at(instruction.self), width_, to(instruction));
    } else {
      for_each_run(instruction.turn, [&](std::size_t target, std::size_t source, std::size_t count) {
        std::copy_n(at(instruction.other) + source, count, to(instruction) + target);
      });
    }
  }

  void meet_all(const Instruction& instruction) {
    double* end = to(instruction);
    const auto& shape = std::get<CollectiveShape>(program_.shapes[program_.ops[instruction.op].shape]);
    const auto axis = static_cast<std::size_t>(shape.axis);
    const auto operands = tape_.operands_of(instruction);
    double* longest = memory_.durations_.data();
    std::copy_n(at(operands.front()), width_, end);
    if (tape_.all_ranks) {
      price_(instruction.op, 0, longest);
      if (ranks_ > 1) {
        const auto members = static_cast<std::size_t>(mesh_.extents[axis]);
        const std::size_t stride = static_cast<std::size_t>(mesh_.strides[axis]) * lanes_;
        spread_maximum(end, members, stride);
        spread_maximum(longest, members, stride);
      }
    } else {
      kernels::fill(longest, 0.0, width_);
      for (std::size_t member = 0; member < operands.size(); ++member) {
        price_(instruction.op, member_of(instruction, shape, member), memory_.others_.data());
        kernels::raise_to(longest, memory_.others_.data(), width_);
        kernels::raise_to(end, at(operands[member]), width_);
      }
    }
    kernels::add_to(end, longest, width_);
  }

  [[nodiscard]] Rank member_of(const Instruction& instruction, const CollectiveShape& shape, std::size_t member) const {
    return program_.mesh.member(instruction.rank, shape.axis, static_cast<std::int32_t>(member));
  }

  /// Sets the value of every member of a group of ranks to the largest in the group.
  void spread_maximum(double* values, std::size_t members, std::size_t stride) const {
    for (std::size_t first = 0; first < width_; first += members * stride) {
      double* group = values + first;
      for (std::size_t member = 1; member < members; ++member) {
        kernels::raise_to(group, group + member * stride, stride);
      }
      for (std::size_t member = 1; member < members; ++member) {
        std::copy_n(group, stride, group + member * stride);
      }
    }
  }

  void note_end(const Instruction& instruction) {
    const double* ends = to(instruction);
    for (std::size_t first = 0; first < width_; first += lanes_) {
      kernels::raise_to(memory_.last_end_.data(), ends + first, lanes_);
    }
  }

  /// A summary needs only the last end of communication.
  void record(const Instruction& instruction, Recorder& recorder) {
    const Op& op = program_.ops[instruction.op];
    const bool keeps_timeline = recorder.keeps_timeline();
    if (op.purpose == Purpose::communication && !keeps_timeline && !instruction.last) {
      return;
    }
    const double* ends = to(instruction);
    const double* starts = ends;
    if (instruction.kind == Tape::Kind::join) {
      starts = keeps_timeline ? starts_of(instruction) : ends;
    } else if (instruction.kind == Tape::Kind::exchange) {
      starts = keeps_timeline ? first_starts_of(instruction) : ends;
    } else {  // ends hold starts + durations
      double* before = memory_.others_.data();
      for (std::size_t i = 0; i < width_; ++i) {
        before[i] = ends[i] - memory_.durations_[i];
      }
      starts = before;
    }
    const auto report = [&](Rank rank, std::size_t index) {
      recorder.record(rank, OpId{static_cast<std::int32_t>(instruction.op)}, op.purpose, instant(starts[index]),
                      instant(ends[index]));
    };
    if (tape_.all_ranks) {
      for (std::size_t r = 0; r < ranks_; ++r) {
        report(static_cast<Rank>(r), r * lanes_);
      }
    } else if (const auto* collective = std::get_if<CollectiveShape>(&program_.shapes[op.shape])) {
      for (std::size_t member = 0; member < tape_.operands_of(instruction).size(); ++member) {
        report(member_of(instruction, *collective, member), 0);
      }
    } else {
      report(instruction.rank, 0);
    }
  }

  /// Returns the starts of an exchange: the start of its send or its receive, whichever is first, or for a one-sided
  /// exchange the time when it is posted.
  const double* starts_of(const Instruction& instruction) {
    double* starts = memory_.others_.data();
    const auto& exchange = std::get<ExchangeShape>(program_.shapes[program_.ops[instruction.op].shape]);
    const bool one_sided = exchange.protocol != Protocol::rendezvous;
    if (instruction.self == Tape::none) {
      kernels::fill(starts, longest_exact, width_);
    } else if (one_sided && (!exchange.sends || exchange.protocol == Protocol::pull)) {
      return at(instruction.self);
    } else {
      price_(instruction.op, instruction.rank, memory_.durations_.data());
      for (std::size_t i = 0; i < width_; ++i) {
        starts[i] = at(instruction.self)[i] - memory_.durations_[i];
      }
    }
    if (instruction.other != Tape::none && !one_sided) {
      price_(instruction.other_op, instruction.other_rank, memory_.durations_.data());
      start_with({.halves = instruction.other, .turn = instruction.turn});
    }
    return starts;
  }

  /// Returns the start of a self-paired exchange: the earlier of the half that it sends and the half that it receives.
  const double* first_starts_of(const Instruction& instruction) {
    double* starts = memory_.others_.data();
    for (std::size_t i = 0; i < width_; ++i) {
      starts[i] = at(instruction.self)[i] - memory_.durations_[i];
    }
    start_with({.halves = instruction.self, .turn = instruction.turn_back});
    return starts;
  }

  /// The halves of exchanges in one register, and the turn that brings them to their ranks.
  struct Turned {
    std::uint32_t halves = 0;
    std::uint32_t turn = 0;
  };
  /// Lowers the starts in others_ to the starts of halves that are earlier. Requires the durations of the
  /// halves in durations_.
  void start_with(const Turned& turned) {
    double* starts = memory_.others_.data();
    for_each_run(turned.turn, [&](std::size_t target, std::size_t source, std::size_t count) {
      for (std::size_t i = 0; i < count; ++i) {
        starts[target + i] =
            std::min(starts[target + i], at(turned.halves)[source + i] - memory_.durations_[source + i]);
      }
    });
  }

  const Program& program_;
  const Tape& tape_;
  const Costs& costs_;
  Replay& memory_;
  FoldedMesh mesh_;    // mesh of the replayed ranks
  std::size_t ranks_;  // number of ranks in a register
  std::size_t lanes_;
  std::size_t width_;
  Prices price_;
};

Makespans Replay::run(const Program& program, const Tape& tape, const Costs& costs, Ranks ranks, Recorder* recorder) {
  const Rank rank_count = ranks_of(program, tape, costs, ranks);
  if (recorder != nullptr) {
    recorder->start(rank_count);
  }
  if (rank_count == 1 && ranks_are_identical(tape, costs) && (recorder == nullptr || !recorder->keeps_timeline())) {
    const ThreeTimes ends = replay_identical_ranks(program, tape, costs, recorder, identical_ranks_);
    return {duration(ends.actual), duration(ends.ideal), duration(ends.link)};
  }
  Pass pass(*this, program, tape, costs, rank_count, Priced(program, tape, costs, rank_count, all_lanes));
  pass.run(recorder);
  return {duration(last_end_[actual]), duration(last_end_[ideal]), duration(last_end_[link])};
}

Duration Replay::makespan(const Program& program, const Tape& tape, const Costs& costs, Ranks ranks) {
  const Rank rank_count = ranks_of(program, tape, costs, ranks);
  Pass(*this, program, tape, costs, rank_count, Priced(program, tape, costs, rank_count, 1)).run(nullptr);
  return duration(last_end_[actual]);
}

void Replay::makespans(const Program& program, const Tape& tape, std::span<const Costs> costs, Ranks ranks,
                       std::vector<Duration>& makespans) {
  if (costs.empty()) {
    return;
  }
  const Costs& first = costs.front();
  for (const Costs& other : costs) {
    check(other.by_rank.size() == first.by_rank.size() && other.issue == first.issue,
          "costs that are replayed together have the same issue times");
  }
  const Rank rank_count = ranks_of(program, tape, first, ranks);
  constexpr std::size_t cached_values = 32'768;  // 256 KiB: registers of a pass then stay in a second-level cache.
  const std::size_t values = tape.registers * (tape.all_ranks ? static_cast<std::size_t>(rank_count) : 1);
  const std::size_t lanes = std::clamp<std::size_t>(cached_values / std::max<std::size_t>(values, 1), 4, 32);
  for (std::size_t at = 0; at < costs.size(); at += lanes) {
    const std::span<const Costs> batch = costs.subspan(at, std::min(lanes, costs.size() - at));
    Pass(*this, program, tape, first, rank_count, SideBySide(tape, batch, rank_count)).run(nullptr);
    for (const double end : last_end_) {
      makespans.push_back(duration(end));
    }
  }
}

std::span<const double> Replay::sample(const Program& program, const Tape& tape, const Costs& costs,
                                       JitterSampler& sampler) {
  Pass(*this, program, tape, costs, tape.ranks, Sampled(tape, costs, sampler)).run(nullptr);
  duration(*std::max_element(last_end_.begin(), last_end_.end()));
  return last_end_;
}

}  // namespace commfuse
