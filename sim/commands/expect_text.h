// SPDX-License-Identifier: Apache-2.0
// Writes the expected performance of a machine as a table, JSON, CSV or YAML.
#pragma once

#include <span>
#include <string>

#include "sim/expect/expected_kernels.h"
#include "sim/expect/expected_rows.h"
#include "sim/expect/expected_runs.h"

namespace commfuse::sim {

/// Values that all rows share.
struct SharedValues {
  std::string machine;
  double false_alarms = 0.01;
  std::string note{};  ///< A line above the table; empty for none.
};

std::string expected_table(std::span<const expect::ExpectedRow> rows, const SharedValues& shared);
/// Returns an array with one object for each row.
std::string expected_json(std::span<const expect::ExpectedRow> rows, const SharedValues& shared);
std::string expected_csv(std::span<const expect::ExpectedRow> rows, const SharedValues& shared);
/// Returns a list with one map for each row.
std::string expected_yaml(std::span<const expect::ExpectedRow> rows, const SharedValues& shared);

// Kernels on one GPU, in the same formats.

std::string kernel_table(std::span<const expect::ExpectedKernelRow> rows, const SharedValues& shared);
std::string kernel_json(std::span<const expect::ExpectedKernelRow> rows, const SharedValues& shared);
std::string kernel_csv(std::span<const expect::ExpectedKernelRow> rows, const SharedValues& shared);
std::string kernel_yaml(std::span<const expect::ExpectedKernelRow> rows, const SharedValues& shared);

// Layers and steps, in the same formats.

std::string run_table(std::span<const expect::ExpectedRun> rows, const SharedValues& shared);
std::string run_json(std::span<const expect::ExpectedRun> rows, const SharedValues& shared);
std::string run_csv(std::span<const expect::ExpectedRun> rows, const SharedValues& shared);
std::string run_yaml(std::span<const expect::ExpectedRun> rows, const SharedValues& shared);

}  // namespace commfuse::sim
