// SPDX-License-Identifier: Apache-2.0
#include "model/config/plan_field.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "model/check.h"
#include "model/config/choices.h"
#include "model/config/field.h"

namespace commfuse {

namespace {

constexpr double max_available_gpus = 1 << 20;

constexpr std::array plan_field_table{
    PlanField{.key = "title", .doc = "Title of the report", .example = "Llama 3.1 70B by June"},
    PlanField{.key = "tokens",
              .doc = "Tokens to train on",
              .type = PlanType::number,
              .example = "15e12",
              .required = true,
              .range = {1.0, 1e18}},
    PlanField{.key = "start", .doc = "Day on which training starts", .type = PlanType::date, .example = "2026-12-01"},
    PlanField{.key = "deadline",
              .doc = "Latest end of training: a span after its start, or a day",
              .type = PlanType::moment,
              .example = "60 days"},
    PlanField{.key = "budget",
              .doc = "Highest cost, in `currency`",
              .type = PlanType::number,
              .example = "20e6",
              .range = {1e-6, 1e18}},
    PlanField{.key = "confidence",
              .doc = "Required probability of meeting deadline and budget; 0.5: the median meets them",
              .type = PlanType::number,
              .preset = "0.5",
              .example = "0.9",
              .range = {0.01, 0.99}},
    PlanField{.key = "currency", .doc = "Currency of all prices", .preset = "$", .example = "$"},
    PlanField{.key = "model_error",
              .doc = "Relative standard error of a predicted step, in addition to that of the machine's parameters",
              .type = PlanType::number,
              .computed_preset = "0.42 with experts; otherwise 0.07 with a framework, 0.13 without",
              .example = "0.13",
              .range = {0.0, 1.0}},
    PlanField{.key = "limits.p99_step",
              .doc = "Longest allowed p99 of the step time",
              .type = PlanType::span,
              .example = "30 s"},
    PlanField{.key = "limits.memory_share",
              .doc = "Share of a GPU's memory that a layout may use; the rest is for the framework",
              .type = PlanType::number,
              .preset = "0.9",
              .example = "0.9",
              .range = {0.05, 1.0}},
    PlanField{.key = "limits.power",
              .doc = "Total power of all GPUs, times energy.pue",
              .type = PlanType::power,
              .example = "10 MW"},
    PlanField{.key = "failures.per_gpu_hour",
              .doc = "Failures that stop the job, per GPU-hour; Llama 3 had 419 in 54 days on 16,384 GPUs",
              .type = PlanType::number,
              .preset = "2e-5",
              .example = "2e-5",
              .range = {0.0, 1.0}},
    PlanField{.key = "failures.error",
              .doc = "Relative standard error of that rate",
              .type = PlanType::number,
              .preset = "0.3",
              .example = "0.3",
              .range = {0.0, 2.0}},
    PlanField{.key = "failures.checkpoint",
              .doc = "Time that a checkpoint pauses training",
              .type = PlanType::span,
              .preset = "1 min",
              .example = "1 min"},
    PlanField{.key = "failures.restart",
              .doc = "Time from a failure until training resumes from the last checkpoint",
              .type = PlanType::span,
              .preset = "10 min",
              .example = "10 min"},
    PlanField{.key = "energy.pue",
              .doc = "Power of the building relative to that of its GPUs",
              .type = PlanType::number,
              .preset = "1",
              .example = "1.2",
              .range = {1.0, 10.0}},
    PlanField{.key = "energy.price",
              .doc = "Price of a kilowatt-hour, if the price of a GPU excludes energy",
              .type = PlanType::number,
              .preset = "0",
              .example = "0.08",
              .range = {0.0, 1e6}},
    PlanField{.key = "what_if.slow_node",
              .doc = "Factor on kernel times on the slow node",
              .type = PlanType::number,
              .preset = "1.2",
              .example = "1.2",
              .range = {1.0, 10.0}},
    PlanField{.key = "what_if.change",
              .doc = "Share by which each input is changed, one at a time, for the sensitivity table",
              .type = PlanType::number,
              .preset = "0.2",
              .example = "0.2",
              .range = {0.01, 0.9}},
    PlanField{.key = "gpus.NAME.hardware",
              .doc = "Machine: a name in configs/hardware or configs/clusters, or a path",
              .type = PlanType::setting,
              .example = "dgx-h100-x2",
              .required = true},
    PlanField{.key = "gpus.NAME.link_bandwidth",
              .doc = "Links inside a node: a factor (x2) or a nominal rate (450GB/s)",
              .type = PlanType::setting,
              .preset = "x1",
              .example = "x2"},
    PlanField{.key = "gpus.NAME.network_bandwidth",
              .doc = "Links between nodes, per NIC: a factor (x2) or a rate (50GB/s)",
              .type = PlanType::setting,
              .preset = "x1",
              .example = "x2"},
    PlanField{.key = "gpus.NAME.price",
              .doc = "Price of one GPU for an hour, in `currency`",
              .type = PlanType::number,
              .example = "2.5",
              .required = true,
              .range = {0.0, static_cast<double>(highest_price)}},
    PlanField{.key = "gpus.NAME.price_date",
              .doc = "Date of that price",
              .type = PlanType::date,
              .example = "2026-05-04",
              .required = true},
    PlanField{.key = "gpus.NAME.price_source", .doc = "Source of the price", .example = "quote 17"},
    PlanField{.key = "gpus.NAME.price_error",
              .doc = "Relative standard error of the price",
              .type = PlanType::number,
              .preset = "0",
              .example = "0.1",
              .range = {0.0, 2.0}},
    PlanField{.key = "gpus.NAME.available",
              .doc = "Available GPUs of this kind; the plan chooses how many to use. Required unless `count` is given; "
                     "then it only limits `count`",
              .type = PlanType::count,
              .example = "4096",
              .range = {1.0, max_available_gpus}},
    PlanField{.key = "gpus.NAME.count",
              .doc = "Exact number of GPUs to use, for a given cluster; the plan chooses only the layout",
              .type = PlanType::count,
              .example = "1024",
              .range = {1.0, max_available_gpus}},
    PlanField{.key = "gpus.NAME.power",
              .doc = "Power of one GPU, including its share of the node",
              .type = PlanType::power,
              .example = "1.3 kW"},
};

}  // namespace

std::span<const PlanField> plan_fields() { return plan_field_table; }

const PlanField* find_plan_field(std::string_view key) {
  const auto field = std::find_if(plan_field_table.begin(), plan_field_table.end(),
                                  [&](const PlanField& candidate) { return candidate.key == key; });
  return field == plan_field_table.end() ? nullptr : &*field;
}

std::string values_in_words(const PlanField& field) {
  switch (field.type) {
    case PlanType::words: return "text";
    case PlanType::number: return fmt::format("a number from {} to {}", field.range.least, field.range.most);
    case PlanType::count:
      return fmt::format("a whole number from {:.0f} to {:.0f}", field.range.least, field.range.most);
    case PlanType::span: return "a span of time, such as 60 days, 36 h, 10 min, 30 s";
    case PlanType::date: return "a day, such as 2026-05-04";
    case PlanType::moment: return "a span of time, such as 60 days, or a day, such as 2026-05-04";
    case PlanType::power: return "a power, such as 700 W, 1.3 kW, 10 MW";
    case PlanType::setting: {
      const Field* run = find_field(field.key.substr(field.key.rfind('.') + 1));
      check(run != nullptr, "every setting of a kind of GPU is a setting of runs");
      return values_in_words(*run);
    }
  }
  return "";
}

}  // namespace commfuse
