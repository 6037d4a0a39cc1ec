// SPDX-License-Identifier: Apache-2.0
// A plan file: what is to be trained by when or for how much, and which GPUs could be had.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/config/settings.h"
#include "model/units.h"

namespace commfuse {

/// GPUs that could be had, at a price of the user's.
struct GpuOffer {
  std::string name;    ///< Any text.
  Settings machine;    ///< hardware, link_bandwidth and network_bandwidth; all else as in PlanFile::settings.
  double price = 0.0;  ///< Of a GPU for an hour.
  std::string price_date;
  std::string price_source;  ///< May be empty.
  double price_error = 0.0;  ///< Relative standard error.
  std::int64_t available = 1;
  std::optional<Watts> power;  ///< Of one GPU with its share of the node.
};

struct FailureTerms {
  double per_gpu_hour = 0.0;
  double error = 0.0;  ///< Relative standard error.
  Seconds checkpoint{};
  Seconds restart{};
};

struct PlanFile {
  std::string title;
  Settings settings;  ///< Of the model, its batch and its layout; what is at its default is free.
  double tokens = 0.0;
  std::string deadline_text;  ///< As written: "60 days", "2027-03-01 (from 2026-12-01)".
  std::optional<Seconds> deadline;
  std::optional<double> budget;
  double confidence = 0.5;
  std::string currency;
  std::optional<double> model_error;  ///< Left out: what steps of this kind have been off by.
  std::optional<Seconds> p99_step;
  double memory_share = 1.0;
  std::optional<Watts> power;
  FailureTerms failures;
  double pue = 1.0;
  double energy_price = 0.0;  ///< Of a kilowatt-hour.
  double slow_node = 1.0;
  double change = 0.0;
  std::vector<GpuOffer> gpus;  ///< At least one, in the file's order.
};

/// Throws ConfigError with every mistake of the file: what a value may be, what is missing, what clashes.
PlanFile load_plan(const std::string& path);
/// As load_plan, of a text that is in no file: its paths start at the current folder, and messages call it `name`.
PlanFile parse_plan(const std::string& name, const std::string& text);

/// Whether a run setting means something below `set`.
bool is_plan_setting(const Field& field);

}  // namespace commfuse
