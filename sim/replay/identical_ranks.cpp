// SPDX-License-Identifier: Apache-2.0
#include "sim/replay/identical_ranks.h"

#include <cstddef>
#include <cstdint>

#include "model/check.h"

namespace commfuse {

namespace {

Instant at_picoseconds(double time) { return Instant{Duration{static_cast<std::int64_t>(time)}}; }

double later(double a, double b) { return a > b ? a : b; }

ThreeTimes later(const ThreeTimes& a, const ThreeTimes& b) {
  return {later(a.actual, b.actual), later(a.ideal, b.ideal), later(a.link, b.link)};
}

/// One pass over the tape.
class ThreeRuns {
 public:
  ThreeRuns(const Program& program, const Tape& tape, const Costs& costs, Recorder* recorder,
            IdenticalRanksMemory& memory)
      : program_(program), tape_(tape), costs_(costs), recorder_(recorder), values_(memory.values.data()) {
    std::int64_t sum = 0;
    for (std::size_t op = 0; op < costs.issue.size(); ++op) {
      sum += costs.issue[op].count();
      memory.issued[op] = static_cast<double>(sum);
    }
    issued_ = memory.issued.data();
  }

  ThreeTimes run() {
    for (const Tape::Instruction& instruction : tape_.instructions) {
      ThreeTimes& to = values_[instruction.to];
      switch (instruction.kind) {
        case Tape::Kind::kernel: to = lengthened(posted(instruction), instruction.op); break;
        case Tape::Kind::post: to = posted(instruction); continue;
        case Tape::Kind::half: to = lengthened(joined(instruction), instruction.op); continue;
        case Tape::Kind::join: to = joined(instruction); break;
        case Tape::Kind::exchange:  // a rank paired with itself
          to = lengthened(posted(instruction), instruction.op);
          values_[instruction.self] = to;
          break;
        case Tape::Kind::collective: to = lengthened(values_[tape_.operands[instruction.first]], instruction.op); break;
      }
      if (instruction.last) {
        last_end_ = later(last_end_, to);
      }
      if (recorder_ != nullptr) {
        record(instruction, to.actual);
      }
    }
    return last_end_;
  }

 private:
  [[nodiscard]] ThreeTimes posted(const Tape::Instruction& instruction) const {
    const double issued = issued_[instruction.op];
    ThreeTimes time{issued, issued, issued};
    for (const std::uint32_t operand : tape_.operands_of(instruction)) {
      time = later(time, values_[operand]);
    }
    return time;
  }

  [[nodiscard]] ThreeTimes joined(const Tape::Instruction& instruction) const {
    if (instruction.self == Tape::none) {
      return values_[instruction.other];
    }
    return instruction.other == Tape::none ? values_[instruction.self]
                                           : later(values_[instruction.self], values_[instruction.other]);
  }

  [[nodiscard]] ThreeTimes lengthened(ThreeTimes time, std::uint32_t op) const {
    const auto price = static_cast<double>(costs_.duration[op].count());
    time.actual += price;
    (program_.ops[op].purpose == Purpose::communication ? time.link : time.ideal) += price;
    return time;
  }

  /// A summary needs only the last end of communication.
  void record(const Tape::Instruction& instruction, double end) const {
    const Purpose purpose = program_.ops[instruction.op].purpose;
    if (purpose == Purpose::communication && !instruction.last) {
      return;
    }
    const bool has_start = instruction.kind == Tape::Kind::kernel || instruction.kind == Tape::Kind::collective;
    const double start = has_start ? end - static_cast<double>(costs_.duration[instruction.op].count()) : end;
    recorder_->record(0, OpId{static_cast<std::int32_t>(instruction.op)}, purpose, at_picoseconds(start),
                      at_picoseconds(end));
  }

  const Program& program_;
  const Tape& tape_;
  const Costs& costs_;
  Recorder* recorder_;
  ThreeTimes* values_;              // by register
  const double* issued_ = nullptr;  // by op
  ThreeTimes last_end_;
};

}  // namespace

ThreeTimes replay_identical_ranks(const Program& program, const Tape& tape, const Costs& costs, Recorder* recorder,
                                  IdenticalRanksMemory& memory) {
  check(tape.all_ranks && costs.by_rank.empty() && belongs(costs, program, static_cast<std::size_t>(tape.ranks)),
        "costs belong to the program and are equal on all ranks");
  memory.values.resize(tape.registers);
  memory.issued.resize(costs.issue.size());
  return ThreeRuns(program, tape, costs, recorder, memory).run();
}

}  // namespace commfuse
