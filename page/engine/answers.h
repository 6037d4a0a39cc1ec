// SPDX-License-Identifier: Apache-2.0
// What the page asks of the simulator, each question a function from JSON to JSON. All throw ConfigError, ready to
// show, where what was asked is wrong or impossible.
#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>

namespace commfuse::page {

/// Names to choose from, settings, versions.
nlohmann::json start();

/// {"name": "mine.yaml", "text": …}: a machine, or a model (YAML or config.json), kept under the path in "value" until
/// the page goes. "key" is the setting it is for.
nlohmann::json keep_file(const nlohmann::json& request);

/// {"settings": {"model", "tokens", "gpus", "price", "deadline", …}}: a capacity plan.
nlohmann::json plan(const nlohmann::json& request);

/// Points of layers and of whole models. Keeps schedules between points.
class Points {
 public:
  Points();
  Points(const Points&) = delete;
  Points& operator=(const Points&) = delete;
  ~Points();

  /// {"settings": {…}, "timelines": true}: the rows as `commfuse-sim run -o json` prints them, the verdict, the command
  /// and, of layers, what happens when.
  nlohmann::json point(const nlohmann::json& request);

  /// {"settings": {…}, "strategy": "commfuse"}, or "implementation": "flux": as `commfuse-sim why -o json`.
  nlohmann::json why(const nlohmann::json& request);

 private:
  class Engine;
  std::unique_ptr<Engine> engine_;
};

}  // namespace commfuse::page
