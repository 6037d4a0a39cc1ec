// SPDX-License-Identifier: Apache-2.0
// Reads what nccl-tests prints (2.0 to 2.19), as text or as its JSON (-J). Of a file only what is below is kept: never
// its dump of the environment, its arguments, host names or process ids.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace commfuse {

/// One size. Bytes as nccl-tests counts them: of all-gather all that is received, of reduce-scatter all that is sent.
struct NcclTestsRow {
  std::int64_t bytes = 0;
  double time_us = 0.0;  ///< Out of place.
  std::optional<double> in_place_time_us;
  std::string place;  ///< As of a mistake.
};

/// A row that was left out.
struct NcclTestsMistake {
  std::string place;   ///< "line 14" or "results[3]"
  std::string reason;  ///< A sentence without its point.
};

struct NcclTestsRun {
  std::string op;  ///< all_gather, reduce_scatter, all_reduce, alltoall, sendrecv and so on: the program's name.
  int ranks = 0;
  int nodes = 1;
  std::vector<NcclTestsRow> rows;
  std::vector<NcclTestsMistake> mistakes;
};

/// `path` names the text in messages. `op` is for output that does not name its program: older ones do not. Throws
/// ConfigError when this is no output of nccl-tests, or its op or ranks cannot be told; rows that are wrong (no number,
/// negative, wrong elements, cut off) are named and the rest is read.
NcclTestsRun read_nccl_tests(std::string_view text, const std::string& path,
                             const std::optional<std::string>& op = std::nullopt);

}  // namespace commfuse
