// SPDX-License-Identifier: Apache-2.0
// Converts a command line to a sweep that is ready to run: its points, and the identity of its store.
#pragma once

#include <string>

#include "sim/commands/setting_flags.h"
#include "sim/point/point_list.h"
#include "sim/point/request.h"
#include "sim/sweep/result_store.h"
#include "sim/sweep/sweep_file.h"

namespace commfuse::sim {

struct SweepRequest {
  SettingArguments settings;
  std::string file;
  std::string out;
  std::string format = "table";
  std::string progress = "auto";
  std::string shard = "1/1";
  bool force = false;
  bool dry_run = false;
};

/// A sweep that is ready to run. Its members refer to each other, so it can be neither copied nor moved.
struct PreparedSweep {
  /// Throws ConfigError with every mistake in the file, in the flags and in the files that they name, and if no point
  /// meets the constraints.
  explicit PreparedSweep(const SweepRequest& request);
  PreparedSweep(const PreparedSweep&) = delete;
  PreparedSweep& operator=(const PreparedSweep&) = delete;
  ~PreparedSweep() = default;

  Sweep sweep;
  std::string notes;  ///< Notes on settings that the sweep ignores or that have no effect, in whole lines.
  Library library;
  PointList list;
  StoreIdentity identity;
};

}  // namespace commfuse::sim
