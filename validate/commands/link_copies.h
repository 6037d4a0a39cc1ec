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

/// The value of --copies on the command line.
struct CopyArguments {
  std::string by;  // words, separated by commas; empty: no copies

  [[nodiscard]] bool wanted() const { return !by.empty(); }
};

/// Adds --copies. The arguments must outlive the parsing.
void add_copy_flag(CLI::App& command, CopyArguments& arguments);

/// Throws ConfigError if a flag of GPU executors was given.
void refuse_gpu_flags(const CLI::App& command);

/// Size of the copies if no size is given: large enough to be judged.
inline constexpr Bytes usual_copy{std::int64_t{64} << 20U};

struct CopyRequest {
  CopyArguments arguments;
  std::string ranks;  ///< The text of --ranks: the number of GPUs, starting with the first visible one; empty: all.
  std::vector<Bytes> sizes{};
  bool both_ways = false;
  BenchOptions options{};
};
/// Throws ConfigError for unknown words and for a number of ranks that is not from 1 to the number of visible GPUs,
/// HardwareAbsent if there is no GPU, and std::runtime_error if nothing could be measured.
MicroRecord copies_measured(const CopyRequest& request);

/// Judges the record's copies against the machine. Returns an empty list if none of them can be judged. Prints on
/// stderr which copies are not judged.
std::vector<CopyJudgement> judged_copies(const RunRecord& record, const Machine& machine, double false_alarms);
/// Returns a line for each kind of copy, and one for each suspect of a kind that is bad.
std::string in_words(const std::vector<CopyJudgement>& judgements, const std::string& machine);

}  // namespace commfuse::validate
