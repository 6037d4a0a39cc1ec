// SPDX-License-Identifier: Apache-2.0
// Questions of the page to the simulator. Each has a function that returns JSON. All throw ConfigError, whose text the
// page shows, if a request is invalid or impossible.
#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>

namespace commfuse::page {

/// Returns the names to choose from, the settings and the versions.
nlohmann::json start();

/// Takes {"name": "mine.yaml", "text": …}, which is a machine or a model (YAML or config.json). Returns {"key",
/// "value"}: the setting that can name the file, and the path under which the file stays until the page closes.
nlohmann::json keep_file(const nlohmann::json& request);

/// Takes {"settings": {"model", "tokens", "gpus", "price", "deadline", …}} and returns a capacity plan.
nlohmann::json plan(const nlohmann::json& request);

/// Simulates points of layers and of whole models. Keeps schedules between points.
class Points {
 public:
  Points();
  Points(const Points&) = delete;
  Points& operator=(const Points&) = delete;
  ~Points();

  /// Takes {"settings": {…}, "timelines": true} and returns the rows that `commfuse-sim run -o json` prints, the
  /// verdict, the command and, for layers, the timelines if requested.
  nlohmann::json point(const nlohmann::json& request);

  /// Takes {"settings": {…}, "strategy": "commfuse"}, or "implementation": "flux", and returns the result of
  /// `commfuse-sim why -o json`.
  nlohmann::json why(const nlohmann::json& request);

 private:
  class Engine;
  std::unique_ptr<Engine> engine_;
};

}  // namespace commfuse::page
