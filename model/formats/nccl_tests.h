// SPDX-License-Identifier: Apache-2.0
// Reads what nccl-tests and rccl-tests print (2.0 to 2.20), as text or as their JSON (-J). Of a file only what is below
// is kept: never its dump of the environment, its arguments or process ids.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/config_error.h"

namespace commfuse {

/// One size. Bytes as nccl-tests counts them: of all-gather all that is received, of reduce-scatter all that is sent.
struct NcclTestsRow {
  std::int64_t bytes = 0;
  double time_us = 0.0;  ///< Out of place.
  std::optional<double> in_place_time_us;
  std::string place;  ///< Place in the file, for messages.
};

/// A row that was left out.
struct NcclTestsMistake {
  std::string place;             ///< "line 14" or "results[3]"
  std::string reason;            ///< A sentence without its point.
  bool is_wrong_result = false;  ///< The collective gave wrong elements.
};

/// One program on one group of ranks.
struct NcclTestsRun {
  std::string op;  ///< all_gather, reduce_scatter, all_reduce, alltoall, sendrecv and so on: the program's name.
  int ranks = 0;   ///< Ranks of a group.
  int nodes = 1;   ///< Nodes that have ranks of a group.
  int groups = 1;  ///< Groups that ran at once, each with as many ranks (NCCL_TESTS_SPLIT).
  std::vector<std::string> hosts;  ///< Hosts of the first group, each once, in the order of ranks; empty if cut off.
  std::string nccl_version;        ///< "2.28.9"; empty if the output does not say.
  std::vector<NcclTestsRow> rows;
  std::vector<NcclTestsMistake> mistakes;
  std::vector<std::string> notes;  ///< Sentences: what was not there and is taken to be so.
};

/// A text without any row of nccl-tests.
class NoNcclTests : public ConfigError {
 public:
  using ConfigError::ConfigError;
};

/// All runs in a file, in order: a log may hold several programs, one behind the other. What launchers put before a
/// line (srun --label, mpirun --tag-output, kubectl logs --prefix, timestamps) and inside it is taken away. `path`
/// names the text in messages. `op` is for output that does not name its program: older ones do not. Throws NoNcclTests
/// when this is not output of nccl-tests, ConfigError when its op or ranks cannot be told, when every process ran
/// alone, and for times of the processor (-C); rows that are wrong (no number, negative, wrong elements, cut off) are
/// named and the rest is read.
std::vector<NcclTestsRun> read_nccl_tests(std::string_view text, const std::string& path,
                                          const std::optional<std::string>& op = std::nullopt);

/// Returns the collective in the name of a file: all_gather for "allgather-2.txt". Returns nothing if the name contains
/// none or several.
std::optional<std::string> nccl_program_in(std::string_view file);

}  // namespace commfuse
