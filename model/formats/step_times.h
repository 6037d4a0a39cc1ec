// SPDX-License-Identifier: Apache-2.0
// Reads what every rank of a job took in every step: CSV with a header, JSON (a list of objects) or JSON lines.
//
//   rank,step,time_ms,compute_ms,communication_ms,host
//   0,10,412.1,301.7,96.2,node-1
//
// rank, step and time are needed. compute, communication, send and idle are the times that the rank's GPU computes, is
// inside collectives (waiting counts), transfers itself (waiting does not) and has nothing to do. A time ends in _us,
// _ms or _s. host is the rank's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace commfuse {

/// Microseconds of one rank in one step; what a file does not say is missing.
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
  std::vector<StepTimes> steps;               ///< In the order of the file; each rank once a step.
  std::map<std::int64_t, std::string> hosts;  ///< By rank, where the file names them.
  std::vector<std::string> notes;             ///< Contents of the file that are not used.
};

/// By its header, or by the keys of its first object.
bool is_step_times(std::string_view text);

/// Throws ConfigError "path:line: sentence; remedy", or "path: [3].time_ms: ..." of JSON, for a rank that is twice in a
/// step, for numbers that are none, and where a column that the first row has is empty.
JobSteps read_step_times(std::string_view text, const std::string& path);

}  // namespace commfuse
