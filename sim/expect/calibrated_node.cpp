// SPDX-License-Identifier: Apache-2.0
#include "sim/expect/calibrated_node.h"

#include <fmt/format.h>
#include <stdlib.h>  // NOLINT(modernize-deprecated-headers): mkdtemp is POSIX

#include <filesystem>
#include <fstream>
#include <optional>
#include <stdexcept>
#include <string>

#include "model/config/catalogue.h"
#include "model/expect/message.h"
#include "sim/calibrate/calibrate.h"

namespace commfuse::expect {

namespace {

calibrate::Observations observations_of(const MeasuredNode& node) {
  calibrate::Observations seen;
  seen.collectives.source = fmt::format("{}.csv", node.table);
  for (const MeasuredMessage& row : node.rows) {
    const Message& message = row.message;
    if (const std::optional<CollectiveKind> kind = collective_kind(message.op)) {
      seen.collectives.rows.push_back({std::string(name_of(message.op)),
                                       {.kind = *kind,
                                        .ranks = static_cast<int>(message.gpus),
                                        .nodes = 1,
                                        .total = message.bytes,
                                        .time_us = row.time_us}});
    }
  }
  return seen;
}

/// A temporary folder; the destructor removes it with its contents.
class Scratch {
 public:
  Scratch() {
    std::string path = (std::filesystem::temp_directory_path() / "commfuse-XXXXXX").string();
    if (::mkdtemp(path.data()) == nullptr) {
      throw std::runtime_error(fmt::format("the temporary folder {} cannot be created", path));
    }
    path_ = path;
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  ~Scratch() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  [[nodiscard]] std::filesystem::path file(const std::string& name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

}  // namespace

Machine calibrated_on(const MeasuredNode& node) {
  const calibrate::Calibration calibration =
      calibrate::calibrate(node.machine, node.machine.name, "calibrated", observations_of(node));
  const Scratch scratch;
  const std::filesystem::path path = scratch.file("calibrated.yaml");
  std::ofstream stream(path);
  stream << calibration.yaml;
  stream.close();
  if (!stream) {
    throw std::runtime_error(fmt::format("{}: cannot be written", path.string()));
  }
  return load_machine(path.string());
}

}  // namespace commfuse::expect
