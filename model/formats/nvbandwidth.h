// SPDX-License-Identifier: Apache-2.0
// Reads the output of NVIDIA's nvbandwidth -j (0.4 to 0.8 and later): rates and latencies of copies, one matrix per
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
  waived,  ///< The machine cannot run the test: it has one GPU, or no peer access.
  failed,  ///< The test reported an error or did not finish.
};

/// One matrix of one test. A test in both directions may have three: one for each direction and one for both together.
struct BandwidthMatrix {
  std::string test;         ///< "device_to_device_memcpy_read_ce"
  std::string description;  ///< "memcpy CE GPU(row) -> GPU(column) bandwidth (GB/s)"
  BandwidthStatus status = BandwidthStatus::passed;
  std::string error;        ///< Error message of the program if the test failed.
  bool is_latency = false;  ///< True: values in ns; false: values in GB/s (1e9 bytes per second).
  std::string row;          ///< Kind of device of the rows: "CPU" or "GPU".
  std::string column;
  /// Arrow in the description: "->", "<-", "<->"; empty for none. Between GPUs, some versions print it against the
  /// direction of the bytes.
  std::string arrow;
  std::string part;  ///< "first", "second" or "total" in a test with three matrices; otherwise empty.
  /// values[row][column]; nullopt for "N/A". Empty unless the test passed.
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
  std::string error;               ///< Error of the whole run; empty for none.
  std::vector<std::string> notes;  ///< Contents of the file that are not used, and the program's warning.
};

/// Error for a string that is not from nvbandwidth.
class NoNvbandwidth : public ConfigError {
 public:
  using ConfigError::ConfigError;
};

/// Parses the output of nvbandwidth -j. Throws NoNvbandwidth for other text. Throws ConfigError for a file that is cut
/// off, and for values that are not numbers, do not form a matrix, or do not add up to the stated sum.
BandwidthRun read_nvbandwidth(std::string_view text, const std::string& path);

}  // namespace commfuse
