// SPDX-License-Identifier: Apache-2.0
// A plan file: the model to train, its deadline or budget, and the GPUs on offer.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/config/settings.h"
#include "model/units.h"

namespace commfuse {

/// GPUs on offer, at the user's price.
struct GpuOffer {
  std::string name;  ///< UTF-8 text without control characters.
  /// The plan's settings, with this offer's hardware, link_bandwidth and network_bandwidth.
  Settings machine;
  double price = 0.0;  ///< Price of one GPU for one hour.
  std::string price_date;
  std::string price_source;  ///< May be empty.
  double price_error = 0.0;  ///< Relative standard error.
  std::int64_t available = 1;
  std::optional<std::int64_t> count;  ///< Exact number of GPUs to use, at most `available`.
  std::string count_place;            ///< "path:line:col" of the count.
  std::optional<Watts> power;         ///< Power of one GPU, including its share of the node.
};

struct FailureTerms {
  double per_gpu_hour = 0.0;
  double error = 0.0;  ///< Relative standard error.
  Seconds checkpoint{};
  Seconds restart{};
};

struct PlanFile {
  std::string title;
  Settings settings;  ///< Model, batch and layout; the search may choose the settings that are at their defaults.
  double tokens = 0.0;
  std::string deadline_text;  ///< The deadline as the user wrote it: "60 days", "2027-03-01"; empty without one.
  std::optional<Seconds> deadline;
  std::optional<double> budget;
  double confidence = 0.5;
  std::string currency;
  std::optional<double> model_error;  ///< If absent, the past error for steps of this kind is used.
  std::optional<Seconds> p99_step;
  double memory_share = 1.0;
  std::optional<Watts> power;
  FailureTerms failures;
  double pue = 1.0;
  double energy_price = 0.0;  ///< Price of one kilowatt-hour.
  double slow_node = 1.0;
  double change = 0.0;
  std::vector<GpuOffer> gpus;  ///< At least one, in the file's order.
};

/// Loads a plan file. Throws ConfigError with every mistake in the file: wrong values, missing fields, contradictions.
PlanFile load_plan(const std::string& path);
/// Reads a plan from a string that is not in a file. Its paths start at the current folder, and messages call it
/// `name`. Throws like load_plan.
PlanFile parse_plan(const std::string& name, const std::string& text);

/// Returns true if a run setting is allowed below `set`.
bool is_plan_setting(const Field& field);

}  // namespace commfuse
