// SPDX-License-Identifier: Apache-2.0
// Reads the output of nccl-tests and rccl-tests (2.0 to 2.20), as text or as JSON (-J). Only the values below are kept,
// never the dump of the environment, the arguments or process ids.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/config_error.h"

namespace commfuse {

/// Times of one size. Bytes are counted as in nccl-tests: all bytes received for an all-gather, all bytes sent for a
/// reduce-scatter.
struct NcclTestsRow {
  std::int64_t bytes = 0;
  double time_us = 0.0;  ///< Out of place, in microseconds.
  std::optional<double> in_place_time_us;
  std::string place;  ///< Place in the file, for messages.
};

/// A row that was skipped.
struct NcclTestsMistake {
  std::string place;             ///< "line 14" or "results[3]"
  std::string reason;            ///< A sentence without its full stop.
  bool is_wrong_result = false;  ///< The collective returned wrong elements.
};

/// Run of one program on one group of ranks.
struct NcclTestsRun {
  std::string op;  ///< Program without its suffix: all_gather, reduce_scatter, all_reduce, alltoall and so on.
  int ranks = 0;   ///< Number of ranks in a group.
  int nodes = 1;   ///< Number of nodes that have ranks of a group.
  int groups = 1;  ///< Number of groups of equal size that ran at the same time (NCCL_TESTS_SPLIT).
  std::vector<std::string> hosts;  ///< Hosts of the first group, each once, by rank; empty if the list lacks some.
  std::string nccl_version;        ///< "2.28.9"; empty if the output has none.
  std::vector<NcclTestsRow> rows;
  std::vector<NcclTestsMistake> mistakes;
  std::vector<std::string> notes;  ///< Sentences about values that are missing and were assumed.
};

/// Error for a string without any row of nccl-tests.
class NoNcclTests : public ConfigError {
 public:
  using ConfigError::ConfigError;
};

/// Returns all runs in a file; a log may hold the output of several programs, one after the other. Runs of one process
/// are in order. Text that launchers put before or inside a line (srun --label, mpirun --tag-output, kubectl logs
/// --prefix, timestamps) is removed. `path` names the text in messages. `op` is the collective of output that does not
/// name its program, as in older versions. Throws NoNcclTests for a string that is not output of nccl-tests. Throws
/// ConfigError when the op or the ranks are unknown, when several runs do not name their program, when every process
/// ran alone, and for CPU times (-C). Wrong rows (no number, negative, wrong elements, cut off) are listed as mistakes,
/// and the other rows are read.
std::vector<NcclTestsRun> read_nccl_tests(std::string_view text, const std::string& path,
                                          const std::optional<std::string>& op = std::nullopt);

/// Returns the collective in the name of a file: all_gather for "allgather-2.txt". Returns nullopt if the name contains
/// none or several.
std::optional<std::string> nccl_program_in(std::string_view file);

}  // namespace commfuse
