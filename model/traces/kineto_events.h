// SPDX-License-Identifier: Apache-2.0
// Events of a trace of PyTorch's profiler (Kineto), plain or gzipped, one after the other, however large.
#pragma once

#include <filesystem>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace commfuse {

/// True if the file begins as a Kineto trace does.
bool is_kineto_trace(const std::filesystem::path& path);

/// Receives the parts of a trace. Either function may be empty.
struct KinetoVisitor {
  std::function<void(const nlohmann::json& event)> event;
  /// A key of distributedInfo ("rank", "world_size", "pg_config") and its value.
  std::function<void(std::string_view key, const nlohmann::json& value)> distributed;
};

/// Throws ConfigError where the file cannot be read, is cut off, or is not such a trace.
void visit_kineto(const std::filesystem::path& path, const KinetoVisitor& visitor);

}  // namespace commfuse
