// SPDX-License-Identifier: Apache-2.0
// `links --copies`: matrices of copies between all GPUs of this process and with its host.
#pragma once

#include <string>
#include <vector>

#include "model/expect/copies.h"
#include "validate/bench/bench.h"
#include "validate/commands/micro_measurement.h"

namespace CLI {
class App;
}

namespace commfuse::validate {

/// The words of --copies on the command line.
struct CopyArguments {
  std::string by;  // words; empty: no copies

  [[nodiscard]] bool wanted() const { return !by.empty(); }
};

/// --copies. The arguments must outlive the parsing.
void add_copy_flag(CLI::App& command, CopyArguments& arguments);

/// Throws ConfigError where a flag of executors on one GPU was given.
void require_no_gpu_flags(const CLI::App& command);

/// Copies of one size where none are named: as large as judgements want them.
inline constexpr Bytes usual_copy{std::int64_t{64} << 20U};

struct CopyRequest {
  CopyArguments arguments;
  std::string ranks;  ///< The flag's text: GPUs, the first of those that are visible; empty: all.
  std::vector<Bytes> sizes{};
  bool both_ways = false;
  BenchOptions options{};
};
/// Throws ConfigError for words that are none, HardwareAbsent where no GPU is.
MicroRecord copies_measured(const CopyRequest& request);

/// Judges the record's copies by the machine; empty if it has none that can be judged. Sentences about copies that
/// it passes over go to stderr.
std::vector<CopyJudgement> judged_copies(const RunRecord& record, const Machine& machine, double false_alarms);
/// Returns a line for each kind of copies, and one for each suspect of those that are bad.
std::string in_words(const std::vector<CopyJudgement>& judgements, const std::string& machine);

}  // namespace commfuse::validate
