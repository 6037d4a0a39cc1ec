// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <string_view>
#include <variant>

#include "model/config/bandwidth_choice.h"
#include "model/text/suggest.h"
#include "sim/sweep/row_check.h"

namespace commfuse {

namespace {

/// Largest valid number of milliseconds; it fits in a Duration.
constexpr double longest_ms = 9e9;
/// Largest value of a setting, so that the tokens of a step, a product of two settings, do not overflow.
constexpr std::int64_t max_chosen = std::int64_t{1} << 30U;

constexpr std::array<std::string_view, 8> texts{"model", "hardware",  "scope",     "pipeline_schedule",
                                                "dtype", "recompute", "optimizer", "strategy"};
constexpr std::array<std::string_view, 10> counts{"tensor",  "pipeline", "interleave",  "data",  "context",
                                                  "ulysses", "experts",  "micro_batch", "batch", "seq"};
constexpr std::array<std::string_view, 4> results{"time_ms", "tokens_per_second", "tokens_per_second_gpu", "mfu"};

/// A row of a training step has all of `breakdown_columns` or none of them; a row of a prefill or a decoding step has
/// all of `pass_columns` or none of them.
constexpr std::array<std::string_view, 5> breakdown_columns{"hfu", "compute_ms", "waiting_ms", "gradients_ms",
                                                            "optimizer_ms"};
constexpr std::array<std::string_view, 4> pass_columns{"attention_ms", "mlp_ms", "other_ms", "waiting_ms"};
constexpr std::array<std::string_view, 4> percentiles{"time_p99_ms", "time_p50_ms", "time_p95_ms", "time_p99_9_ms"};
constexpr std::array<std::string_view, 3> cache{"cache_gb", "weights_gb", "capacity_gb"};
constexpr std::array<std::string_view, 6> memory{"memory_gb",    "weights_gb",     "gradients_gb",
                                                 "optimizer_gb", "activations_gb", "capacity_gb"};

/// Returns the value of column `name`. Throws RowMisfit if the row lacks it or it has another type.
template <class T>
const T& needed(const StepRow& row, std::string_view name, std::string_view type) {
  const StepRow::Value* const value = row.find(name);
  if (value == nullptr) {
    throw RowMisfit(fmt::format("the row has no {}", name));
  }
  const T* const typed = std::get_if<T>(value);
  if (typed == nullptr) {
    throw RowMisfit(fmt::format("{} is not {}", name, type));
  }
  return *typed;
}

const std::string& require_text(const StepRow& row, std::string_view name) {
  return needed<std::string>(row, name, type_in_words(ColumnType::text));
}

void require_bandwidth(const StepRow& row, std::string_view name) {
  if (const std::string& text = require_text(row, name); !parse_bandwidth_choice(text)) {
    throw RowMisfit(fmt::format("{} is {}, an unknown value", name, in_quotes(text.substr(0, 40))));
  }
}

void require_count(const StepRow& row, std::string_view name, std::int64_t least, std::int64_t limit) {
  const std::int64_t count = needed<std::int64_t>(row, name, type_in_words(ColumnType::count));
  if (count < least || count > limit) {
    throw RowMisfit(fmt::format("{} is {}, which is out of range", name, count));
  }
}

void require_number(const StepRow& row, std::string_view name) {
  const double number = needed<double>(row, name, type_in_words(ColumnType::number));
  if (!std::isfinite(number) || number < 0.0 || (name.ends_with("_ms") && number > longest_ms) ||
      (name.ends_with("fu") && number > max_mfu)) {
    throw RowMisfit(fmt::format("{} is {}, which is out of range", name, number));
  }
}

void require_numbers(const StepRow& row, std::span<const std::string_view> names) {
  for (const std::string_view name : names) {
    require_number(row, name);
  }
}

void require_flag(const StepRow& row, std::string_view name) {
  needed<bool>(row, name, type_in_words(ColumnType::flag));
}

void require_plain_cells(const StepRow& row) {
  for (const auto& [name, value] : row.cells) {
    if (const auto* const text = std::get_if<std::string>(&value)) {
      require_plain(name, *text);
    }
  }
}

void require_settings(const StepRow& row) {
  for (const std::string_view name : texts) {
    require_text(row, name);
  }
  require_bandwidth(row, "link_bandwidth");
  require_bandwidth(row, "network_bandwidth");
  for (const std::string_view name : counts) {
    require_count(row, name, 1, max_chosen);
  }
  require_count(row, "gpus", 1, std::numeric_limits<std::int64_t>::max());
  require_count(row, "zero", 0, 3);
  require_flag(row, "sequence_parallel");
}

}  // namespace

void require_fit(const StepRow& row) {
  require_settings(row);
  require_plain_cells(row);
  for (const std::string_view words :
       {"all_reduce_kernel", "attention_kernel", "gradient_dtype", "launch", "jitter", "context_exchange", "framework",
        "implements", "implemented_sites", "bound", "schedules", "unmeasured_on", "reason", "warnings"}) {
    row.has(words) ? void(require_text(row, words)) : void();
  }
  for (const std::string_view flag : {"dropout", "overlap_gradients"}) {
    row.has(flag) ? require_flag(row, flag) : void();
  }
  for (const std::string_view number :
       {"link_rate_gb_s", "network_rate_gb_s", "beats_serial", "saving_error", "price", "cost_per_mtok"}) {
    row.has(number) ? require_number(row, number) : void();
  }
  row.feasible() ? require_numbers(row, results) : void();
  row.has("hfu") ? require_numbers(row, breakdown_columns) : void();
  row.has("attention_ms") ? require_numbers(row, pass_columns) : void();
  row.has("gathered_gb") ? require_number(row, "gathered_gb") : void();
  row.has("time_p99_ms") ? require_numbers(row, percentiles) : void();
  if (row.has("fits")) {
    require_flag(row, "fits");
    row.has("cache_gb") ? require_numbers(row, cache) : require_numbers(row, memory);
  }
}

}  // namespace commfuse
