// SPDX-License-Identifier: Apache-2.0
// Reads a trace of PyTorch's profiler (Kineto) event by event. The file may be gzipped, and of any size.
#pragma once

#include <filesystem>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace commfuse {

/// Returns true if the file begins like a Kineto trace. Throws ConfigError if the file cannot be opened.
bool is_kineto_trace(const std::filesystem::path& path);

/// Receives the parts of a trace. Either function may be empty.
struct KinetoVisitor {
  std::function<void(const nlohmann::json& event)> event;
  /// Receives a key of distributedInfo ("rank", "world_size", "pg_config") and its value.
  std::function<void(std::string_view key, const nlohmann::json& value)> distributed;
};

/// Visits the whole trace. Throws ConfigError if the file cannot be read, is cut off, or is not a Kineto trace.
void visit_kineto(const std::filesystem::path& path, const KinetoVisitor& visitor);

}  // namespace commfuse
