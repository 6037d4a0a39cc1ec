// SPDX-License-Identifier: Apache-2.0
#include "reports/plan_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>
#include <variant>

#include "model/record/columns.h"
#include "model/record/result.h"
#include "model/text/amount.h"
#include "model/text/quantity.h"

namespace commfuse::reports {

namespace {

/// Names attention, dropout and gradients if they are unusual; rows of older versions lack these columns.
std::string unusual_kernels(const StepRow& row) {
  if (!row.has("attention_kernel")) {
    return {};
  }
  std::string text = row.text("attention_kernel") == "fused" ? "" : ", unfused attention";
  text += row.flag("dropout") ? ", dropout" : "";
  text += row.text("gradient_dtype") == "fp32" ? "" : fmt::format(", {} gradients", row.text("gradient_dtype"));
  return text + (row.flag("overlap_gradients") ? "" : ", gradients after the backward pass");
}

std::string unusual_all_reduce(const StepRow& row) {
  return !row.has("all_reduce_kernel") || row.text("all_reduce_kernel") == "nccl"
             ? std::string{}
             : fmt::format(", all-reduce of {}", row.text("all_reduce_kernel"));
}

/// Names unusual settings of a plan: ", ZeRO 1, micro-batch 2".
std::string unusual(const StepRow& row) {
  std::string text;
  const auto add = [&](std::string_view name, std::string_view words, std::int64_t usual) {
    text += row.count(name) == usual ? "" : fmt::format(", {} {}", words, row.count(name));
  };
  add("interleave", "interleave", 1);
  text += row.count("experts") == 1 ? "" : fmt::format(", experts over {} ranks", row.count("experts"));
  add("zero", "ZeRO", 0);
  if (row.text("scope") == "step") {
    add("micro_batch", "micro-batch", 1);
  }
  text += unusual_all_reduce(row);
  text += row.text("recompute") == "none" ? "" : fmt::format(", recompute {}", row.text("recompute"));
  return text + unusual_kernels(row) + unusual_run_settings(row);
}

/// Formats a layout as "8 tensor x 4 pipeline" or "2 tensor x 4 context in a ring"; a single degree as "1 tensor".
std::string layout_in_words(const StepRow& row) {
  std::string text = fmt::format("{} tensor", row.count("tensor"));
  for (const char* axis : {"pipeline", "data", "context", "ulysses"}) {
    text += row.count(axis) == 1 ? "" : fmt::format(" x {} {}", row.count(axis), axis);
    text += axis == std::string_view("context") && passes_keys_around(row) ? " in a ring" : "";
  }
  text += row.text("pipeline_schedule") == "1f1b" ? "" : ", " + row.text("pipeline_schedule");
  return text;
}

std::string gpus_in_words(const StepRow& row) {
  return row.count("gpus") == 1 ? "1 GPU" : fmt::format("{} GPUs", row.count("gpus"));
}

std::string machine_of(const StepRow& row) {
  return machine_in_words(row.text("hardware"), row.text("link_bandwidth"), row.text("network_bandwidth"));
}

/// Formats a setting and its value: "recompute full", "micro-batch 2", "no dropout", "GPU-hour at 2.80".
std::string setting_in_words(std::string_view name, const StepRow::Value& value) {
  if (const bool* is_on = std::get_if<bool>(&value)) {
    return name == "overlap_gradients" ? fmt::format("gradients {} the backward pass", *is_on ? "during" : "after")
                                       : fmt::format("{}{}", *is_on ? "" : "no ", name);
  }
  constexpr std::array<std::pair<std::string_view, std::string_view>, 7> words{{
      {"zero", "ZeRO"},
      {"micro_batch", "micro-batch"},
      {"experts", "expert ranks"},
      {"all_reduce_kernel", "all-reduce of"},
      {"attention_kernel", "attention"},
      {"gradient_dtype", "gradients"},
      {"price", "GPU-hour at"},
  }};
  const auto known = std::ranges::find(words, name, &std::pair<std::string_view, std::string_view>::first);
  const std::string_view title = known == words.end() ? name : known->second;
  if (const auto* number = std::get_if<std::int64_t>(&value)) {
    return fmt::format("{} {}", title, name == "seq" ? format_count(*number) : fmt::format("{}", *number));
  }
  if (const auto* amount = std::get_if<double>(&value)) {
    return fmt::format("{} {}", title, amount_of_money("", *amount));
  }
  return fmt::format("{} {}", title, std::get<std::string>(value));
}

/// Returns the words for a row that lacks this setting; empty for settings that every row has. Rows lack launch,
/// jitter, framework and price if these have their presets.
std::string preset_in_words(std::string_view name) {
  return name == "launch"                                             ? "launch stream"
         : name == "jitter" || name == "framework" || name == "price" ? fmt::format("no {}", name)
                                                                      : std::string{};
}

bool has_value(const StepRow& row, std::string_view name, const StepRow::Value& value) {
  const StepRow::Value* other = row.find(name);
  return other != nullptr && *other == value;
}

/// Calls `each` with the settings that the names of plans state one by one (PlanWords::setting).
template <class Each>
void for_each_setting(const StepRow& row, const Each& each) {
  for (const auto& [name, value] : row.cells) {
    const Column* const column = find_column(name);
    if (column != nullptr && column->plan_words == PlanWords::setting) {
      each(name, value);
    }
  }
}

}  // namespace

std::string unusual_run_settings(const StepRow& row) {
  std::string text;
  for (const char* name : {"launch", "jitter"}) {
    text += row.has(name) ? fmt::format(", {} {}", name, row.text(name)) : "";
  }
  return text;
}

bool passes_keys_around(const StepRow& row) {
  return row.has("context_exchange") && row.text("context_exchange") == "ring";
}

std::string plan_heading(const StepRow& row) {
  return fmt::format("{} {} on {}, {} ({}), batch {}, seq {}, {}{}", row.text("model"), row.text("scope"),
                     machine_of(row), gpus_in_words(row), layout_in_words(row), row.count("batch"),
                     format_count(row.count("seq")), row.text("dtype"), unusual(row));
}

PlanNames::PlanNames(std::span<const StepRow> rows) {
  const StepRow& first = rows.front();
  const auto add_differences = [&](const StepRow& row, const StepRow& other) {
    for_each_setting(row, [&](std::string_view name, const StepRow::Value& value) {
      const bool is_known = std::ranges::find(varying_, name) != varying_.end();
      if (!is_known && !has_value(other, name, value)) {
        varying_.push_back(name);
      }
    });
  };
  for (const StepRow& row : rows) {
    has_several_machines_ = has_several_machines_ || machine_of(row) != machine_of(first);
    add_differences(row, first);
    add_differences(first, row);  // the settings that the row lacks
  }
}

std::string PlanNames::first_name(const StepRow& row) const {
  std::string text =
      fmt::format("{}, batch {}, seq {}", layout_name(row), row.count("batch"), format_count(row.count("seq")));
  for_each_setting(row, [&](std::string_view name, const StepRow::Value& value) {
    const bool is_named = name == "batch" || name == "seq" || std::ranges::find(varying_, name) == varying_.end();
    text += is_named ? "" : ", " + setting_in_words(name, value);
  });
  for (const std::string_view name : varying_) {
    const std::string preset = row.has(name) ? std::string{} : preset_in_words(name);
    text += preset.empty() ? preset : ", " + preset;
  }
  return text;
}

std::string PlanNames::name_after(const StepRow& row, const StepRow& first) const {
  std::string text = layout_name(row);
  for_each_setting(row, [&](std::string_view name, const StepRow::Value& value) {
    text += has_value(first, name, value) ? "" : ", " + setting_in_words(name, value);
  });
  for_each_setting(first, [&](std::string_view name, const StepRow::Value&) {
    const std::string preset = row.has(name) ? std::string{} : preset_in_words(name);
    text += preset.empty() ? preset : ", " + preset;
  });
  return text;
}

std::string PlanNames::layout_name(const StepRow& row) const {
  return fmt::format("{} on {}{} ({})", row.text("strategy"), has_several_machines_ ? machine_of(row) + ", " : "",
                     gpus_in_words(row), layout_in_words(row));
}

}  // namespace commfuse::reports
