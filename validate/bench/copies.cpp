// SPDX-License-Identifier: Apache-2.0
#include "validate/bench/copies.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <stdexcept>
#include <string>

#include "validate/executor.h"
#include "validate/measure/protocol.h"

namespace commfuse::validate {

namespace {

/// Number of copies between two events, as in nvbandwidth.
constexpr int repetitions = 16;

std::string test_name(std::string_view route, const CopyTest& test) {
  const std::string_view direction = test.with_host ? "" : test.reads ? "_read" : "_write";
  return fmt::format("{}_{}memcpy{}_{}", route, test.both_ways ? "bidirectional_" : "", direction,
                     test.by_kernels ? "sm" : "ce");
}

/// Makes the programs of one engine, one size, and one or both directions.
class CopyProgramMaker {
 public:
  CopyProgramMaker(const CopyPlan& plan, const Copier& copier, Bytes bytes, bool by_kernels, bool both_ways)
      : plan_(plan), copier_(copier), bytes_(bytes), by_kernels_(by_kernels), both_ways_(both_ways) {}

  void add_all(std::vector<CopyProgram>& programs) const {
    for (const bool to_gpu : {true, false}) {
      for (int gpu = 0; gpu < plan_.gpus; ++gpu) {
        programs.push_back(with_host(gpu, to_gpu));
      }
    }
    for (const bool reads : {true, false}) {
      for (int gpu = 0; gpu < plan_.gpus; ++gpu) {
        for (int peer = both_ways_ ? gpu + 1 : 0; peer < plan_.gpus; ++peer) {
          if (gpu != peer && copier_.reaches(gpu, peer) && (!both_ways_ || copier_.reaches(peer, gpu))) {
            programs.push_back(between(gpu, peer, reads));
          }
        }
      }
    }
  }

 private:
  [[nodiscard]] TimedCopy copy(int issuer, int from, int to, int times = 1) const {
    return {.issuer = issuer,
            .from = from,
            .to = to,
            .by = by_kernels_ ? CopiedBy::kernel : CopiedBy::copy_engine,
            .bytes = bytes_,
            .repetitions = times * repetitions};
  }
  [[nodiscard]] MicroBenchmark what(std::string op, int rank, int peer) const {
    return {.op = std::move(op), .bytes = bytes_.count, .ranks = plan_.gpus, .rank = rank, .peer = peer};
  }

  /// In both directions, the disturbing copy is repeated twice as often as the timed one, so that it ends last.
  [[nodiscard]] CopyProgram with_host(int gpu, bool to_gpu) const {
    const CopyTest test{.with_host = true, .by_kernels = by_kernels_, .both_ways = both_ways_};
    CopyProgram program{.copies = {to_gpu ? copy(gpu, host_end, gpu) : copy(gpu, gpu, host_end)}, .what = {}};
    program.what.push_back(what(test_name(to_gpu ? "host_to_device" : "device_to_host", test), gpu, -1));
    if (both_ways_) {
      program.copies.push_back(to_gpu ? copy(gpu, gpu, host_end, 2) : copy(gpu, host_end, gpu, 2));
      program.what.push_back(what("", gpu, -1));
    }
    return program;
  }

  [[nodiscard]] CopyProgram between(int gpu, int peer, bool reads) const {
    const std::string name =
        test_name("device_to_device", {.by_kernels = by_kernels_, .both_ways = both_ways_, .reads = reads});
    CopyProgram program;
    for (const auto& [issuer, other] : {std::pair{gpu, peer}, std::pair{peer, gpu}}) {
      program.copies.push_back(reads ? copy(issuer, other, issuer) : copy(issuer, issuer, other));
      program.what.push_back(what(name, issuer, other));
      if (!both_ways_) {
        break;
      }
    }
    return program;
  }

  const CopyPlan& plan_;
  const Copier& copier_;
  Bytes bytes_;
  bool by_kernels_;
  bool both_ways_;
};

std::string in_words(const CopyProgram& program) {
  const MicroBenchmark& first = program.what.front();
  return fmt::format("{} of {} bytes, GPU {}{}", first.op, first.bytes, first.rank,
                     first.peer < 0 ? "" : fmt::format(" and GPU {}", first.peer));
}

}  // namespace

std::vector<CopyProgram> copy_programs(const CopyPlan& plan, const Copier& copier) {
  std::vector<CopyProgram> programs;
  for (const Bytes bytes : plan.sizes) {
    for (const bool both_ways : {false, true}) {
      for (const bool by_kernels : {false, true}) {
        if ((by_kernels ? plan.by_kernels : plan.by_engines) && (!both_ways || plan.both_ways)) {
          CopyProgramMaker(plan, copier, bytes, by_kernels, both_ways).add_all(programs);
        }
      }
    }
  }
  return programs;
}

BenchResult time_copies(const std::vector<CopyProgram>& programs, const BenchOptions& options, Copier& copier,
                        const std::function<void(std::size_t done, std::size_t measurements)>& after_each) {
  Bytes largest{};
  std::vector<std::vector<MicroBenchmark>> measured;
  for (const CopyProgram& program : programs) {
    measured.push_back(program.what);
    for (const TimedCopy& copy : program.copies) {
      largest = std::max(largest, copy.bytes);
    }
  }
  copier.make_room(largest);
  BenchResult result;
  std::vector<bool> failed(programs.size(), false);
  const auto measure = [&](std::size_t index) {
    const std::vector<TimedCopy>& copies = programs[index].copies;
    copier.check(copies);
    static_cast<void>(copier.time(copies));  // this first run is not counted
    for (int i = 0; i < options.repetitions; ++i) {
      const std::vector<Duration> times = copier.time(copies);
      for (std::size_t copy = 0; copy < times.size(); ++copy) {
        measured[index][copy].samples.push_back(times[copy]);
      }
    }
  };
  std::size_t done = 0;
  const std::size_t measurements = programs.size() * static_cast<std::size_t>(options.passes);
  bool is_stuck = false;
  for (const std::vector<std::size_t>& order : turns(programs.size(), options.passes, options.seed)) {
    for (const std::size_t index : order) {
      if (is_stuck) {
        break;
      }
      try {
        if (!failed[index]) {
          measure(index);
        }
      } catch (const Stuck& stuck) {  // no later copy would complete
        is_stuck = true;
        result.failures.push_back(fmt::format("stopped after {} of {} measurements, at {}: {}", done, measurements,
                                              in_words(programs[index]), stuck.what()));
      } catch (const std::runtime_error& error) {
        failed[index] = true;
        result.failures.push_back(fmt::format("{}: not measured: {}", in_words(programs[index]), error.what()));
      }
      ++done;
      if (after_each) {
        after_each(done, measurements);
      }
    }
  }
  for (std::size_t index = 0; index < programs.size(); ++index) {
    for (MicroBenchmark& benchmark : measured[index]) {
      if (!failed[index] && !benchmark.op.empty() && !benchmark.samples.empty()) {
        result.measured.push_back(std::move(benchmark));
      }
    }
  }
  return result;
}

std::optional<CopyTest> copy_test_named(std::string_view op) {
  for (const std::string_view route : {"host_to_device", "device_to_host", "device_to_device"}) {
    for (const unsigned bits : {0U, 1U, 2U, 3U, 4U, 5U, 6U, 7U}) {
      const CopyTest test{.with_host = route != "device_to_device",
                          .by_kernels = (bits & 1U) != 0,
                          .both_ways = (bits & 2U) != 0,
                          .reads = (bits & 4U) != 0};
      if (!(test.with_host && test.reads) && op == test_name(route, test)) {
        return test;
      }
    }
  }
  return std::nullopt;
}

}  // namespace commfuse::validate
