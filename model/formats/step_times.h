// SPDX-License-Identifier: Apache-2.0
// Reads the times of every rank of a job in every step: CSV with a header, JSON (a list of objects) or JSON lines.
//
//   rank,step,time_ms,compute_ms,communication_ms,host
//   0,10,412.1,301.7,96.2,node-1
//
// rank, step and time are required. The optional times state how long the rank's GPU computes (compute), is inside
// collectives including waiting (communication), transfers data without waiting (send), and has nothing to do (idle).
// Names of times end in _us, _ms or _s. host is the rank's host.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace commfuse {

/// Times of one rank in one step, in microseconds; nullopt if the file does not have them.
struct StepTimes {
  std::int64_t rank = 0;
  std::int64_t step = 0;
  double time_us = 0.0;
  std::optional<double> compute_us{};
  std::optional<double> communication_us{};
  std::optional<double> send_us{};
  std::optional<double> idle_us{};
};

struct JobSteps {
  std::vector<StepTimes> steps;               ///< In the order of the file; each rank once per step.
  std::map<std::int64_t, std::string> hosts;  ///< By rank, if the file names hosts.
  std::vector<std::string> notes;             ///< Contents of the file that are not used.
};

/// Returns true if the header, or the first object, has the required columns.
bool is_step_times(std::string_view text);

/// Parses the text. Throws ConfigError ("path:line: sentence; remedy", or "path: [3].time_ms: ..." in JSON) for missing
/// columns or rows, a rank that appears twice in a step, values that are not numbers or out of range, a row that lacks
/// a column of the first row, and two columns with the same meaning, such as time_us and time_ms.
JobSteps read_step_times(std::string_view text, const std::string& path);

}  // namespace commfuse
