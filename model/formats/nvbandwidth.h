// SPDX-License-Identifier: Apache-2.0
// Reads what NVIDIA's nvbandwidth prints with -j (0.4 to 0.8 and later): rates and latencies of copies, a matrix a
// test.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/config_error.h"

namespace commfuse {

enum class BandwidthStatus : std::uint8_t {
  passed,
  waived,  ///< This machine cannot run it: one GPU, no peer access.
  failed,  ///< In an error, or not to its end.
};

/// One matrix of one test. A test in both directions may have three: of either direction and of both together.
struct BandwidthMatrix {
  std::string test;         ///< "device_to_device_memcpy_read_ce"
  std::string description;  ///< "memcpy CE GPU(row) -> GPU(column) bandwidth (GB/s)"
  BandwidthStatus status = BandwidthStatus::passed;
  std::string error;        ///< The program's, where it failed.
  bool is_latency = false;  ///< Values are ns, else GB/s of 1e9 bytes.
  std::string row;          ///< The device of a row: "CPU" or "GPU".
  std::string column;
  /// The arrow that is printed: "->", "<-", "<->"; empty for none. Between GPUs, some versions print it against the
  /// way of the bytes.
  std::string arrow;
  std::string part;  ///< "first", "second" or "total" of a test with three matrices.
  /// values[row][column]; nothing for "N/A". Empty unless the test passed.
  std::vector<std::vector<std::optional<double>>> values;
};

struct BandwidthDevice {
  std::string name;  ///< "NVIDIA H100 80GB HBM3 (00000000:07:00)"
  std::string host;  ///< Empty for versions before 0.8.
};

struct BandwidthRun {
  std::string version;  ///< Version of nvbandwidth.
  std::string driver;
  std::vector<BandwidthDevice> devices;  ///< Empty for versions before 0.8.
  std::vector<BandwidthMatrix> matrices;
  std::string error;               ///< The run's; empty for none.
  std::vector<std::string> notes;  ///< Contents of the file that are not used, and the program's warning.
};

/// A text that is not from nvbandwidth.
class NoNvbandwidth : public ConfigError {
 public:
  using ConfigError::ConfigError;
};

/// Throws NoNvbandwidth for other text, ConfigError for a file that is cut off, or whose values are none, do not form a
/// matrix, or do not add up to its sum.
BandwidthRun read_nvbandwidth(std::string_view text, const std::string& path);

}  // namespace commfuse
