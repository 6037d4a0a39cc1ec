// SPDX-License-Identifier: Apache-2.0
#include "reports/step_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "model/config/quantity.h"
#include "model/record/result.h"
#include "model/wrapped.h"
#include "reports/json_rows.h"
#include "reports/rows.h"

namespace commfuse::reports {

namespace {

std::string object(const StepRow& row) {
  nlohmann::ordered_json object;
  for (const auto& [name, value] : row.cells) {
    std::visit([&, key = std::string(name)](const auto& held) { object[key] = held; }, value);
  }
  return object.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

std::string csv_cell(const StepRow::Value& value) {
  struct Writer {
    std::string operator()(bool holds) const { return holds ? "true" : "false"; }
    std::string operator()(std::int64_t number) const { return fmt::format("{}", number); }
    std::string operator()(double number) const { return fmt::format("{}", number); }
    std::string operator()(const std::string& text) const { return csv_text(text); }
  };
  return std::visit(Writer{}, value);
}

/// Every name once, as they first come.
std::vector<std::string_view> columns_of(std::span<const StepRow> rows) {
  std::vector<std::string_view> columns;
  for (const StepRow& row : rows) {
    for (const auto& [name, value] : row.cells) {
      if (std::find(columns.begin(), columns.end(), name) == columns.end()) {
        columns.push_back(name);
      }
    }
  }
  return columns;
}

/// "8 tensor x 4 pipeline"; one alone: "1 tensor".
std::string spread(const StepRow& row) {
  std::string text = fmt::format("{} tensor", row.count("tensor"));
  for (const char* axis : {"pipeline", "data", "context", "ulysses"}) {
    text += row.count(axis) == 1 ? "" : fmt::format(" x {} {}", row.count(axis), axis);
  }
  text += row.text("pipeline_schedule") == "1f1b" ? "" : ", " + row.text("pipeline_schedule");
  return text;
}

std::string heading(const StepRow& row) {
  return fmt::format("{} {} on {}, {} GPUs ({}), batch {}, seq {}, {}", row.text("model"), row.text("scope"),
                     machine_in_words(row.text("hardware"), row.text("link_bandwidth"), row.text("network_bandwidth")),
                     row.count("gpus"), spread(row), row.count("batch"), format_count(row.count("seq")),
                     row.text("dtype"));
}

/// Of the GPU that needs the most, under a block; empty where nobody asked.
std::string memory_in_words(const StepRow& row) {
  if (!row.has("fits")) {
    return {};
  }
  const char* full = row.holds("fits") ? "" : ", out of memory";
  const auto gb = [&](const char* name) { return row.number(name); };
  if (row.has("cache_gb")) {
    return "\n" + wrapped(fmt::format("memory of a GPU: weights {:.1f} GB, keys and values {:.1f}, of {:.1f} GB{}",
                                      gb("weights_gb"), gb("cache_gb"), gb("capacity_gb"), full),
                          "  ", "    ");
  }
  const bool gathers = row.has("gathered_gb") && gb("gathered_gb") > 0.0;
  return "\n" +
         wrapped(fmt::format("memory of the fullest GPU: {:.1f} of {:.1f} GB{}; weights {:.1f}, gradients {:.1f}, "
                             "optimizer {:.1f}, activations {:.1f}{}",
                             gb("memory_gb"), gb("capacity_gb"), full, gb("weights_gb"), gb("gradients_gb"),
                             gb("optimizer_gb"), gb("activations_gb"),
                             gathers ? fmt::format(", gathered {:.1f}", gb("gathered_gb")) : ""),
                 "  ", "    ");
}

/// "serial 5344.5, 5420.1, 5460.0 and 5511.3; ": of a row that has them.
std::string percentiles_in_words(const StepRow& row) {
  return row.has("time_p99_ms")
             ? fmt::format("{} {:.1f}, {:.1f}, {:.1f} and {:.1f}; ", row.text("strategy"), row.number("time_p50_ms"),
                           row.number("time_p95_ms"), row.number("time_p99_ms"), row.number("time_p99_9_ms"))
             : "";
}

/// Under a block; empty where all GPUs are alike.
std::string spread_in_words(std::string percentiles) {
  if (percentiles.empty()) {
    return {};
  }
  percentiles.resize(percentiles.size() - 2);
  return "\n" + wrapped("p50, p95, p99 and p99.9 over machines, whose GPUs differ: " + percentiles, "  ", "    ");
}

/// A row of a block, or why there is none.
std::string table_row(const StepRow& row) {
  if (!row.feasible()) {
    return wrapped(row.text("reason"), fmt::format("  {:<14}  ", row.text("strategy")), "      ");
  }
  std::string text =
      fmt::format("  {:<14}{:>9.{}f} {:>8.0f} {:>5.1f}%", row.text("strategy"), row.number("time_ms"),
                  row.has("cache_gb") ? 3 : 1, row.number("tokens_per_second"), 100.0 * row.number("mfu"));
  if (row.has("hfu")) {
    text += fmt::format("{:>6.1f}% {:>8.1f} {:>7.1f} {:>7.1f} {:>6.1f}", 100.0 * row.number("hfu"),
                        row.number("compute_ms"), row.number("waiting_ms"), row.number("gradients_ms"),
                        row.number("optimizer_ms"));
  }
  return text + "\n";
}

/// Of several plans the one to take; empty where there is only one, or none fits.
std::string best_in_words(std::span<const StepRow> rows) {
  const StepRow* best = nullptr;
  bool several = false;
  for (const StepRow& row : rows) {
    several = several || heading(row) != heading(rows.front());
    const bool counts = row.feasible() && (!row.has("fits") || row.holds("fits"));
    if (counts && (best == nullptr || row.number("tokens_per_second_gpu") > best->number("tokens_per_second_gpu"))) {
      best = &row;
    }
  }
  if (!several || best == nullptr) {
    return {};
  }
  return wrapped(
      fmt::format("Most tokens a second and GPU of what fits: {:.0f}, by {} on {} GPUs ({}), batch {}, seq {}",
                  best->number("tokens_per_second_gpu"), best->text("strategy"), best->count("gpus"), spread(*best),
                  best->count("batch"), format_count(best->count("seq"))),
      "\n", "");
}

}  // namespace

std::string step_table(std::span<const StepRow> rows) {
  std::string text;
  std::string above;
  std::string memory;
  std::string percentiles;
  for (const StepRow& row : rows) {
    if (const std::string here = heading(row); here != above) {
      text += spread_in_words(std::exchange(percentiles, {})) + memory + (above.empty() ? "" : "\n") +
              wrapped(here, "", "  ") + fmt::format("\n  {:<14}{:>9}{:>9}{:>7}", "", "time/ms", "tokens/s", "MFU");
      text += row.has("hfu") ? fmt::format("{:>7}{:>9}{:>8}{:>8}{:>7}\n", "HFU", "compute", "waiting", "grads", "optim")
                             : "\n";
      above = here;
    }
    text += table_row(row);
    percentiles += percentiles_in_words(row);
    memory = row.feasible() ? memory_in_words(row) : memory;
  }
  return text + spread_in_words(percentiles) + memory + best_in_words(rows);
}

std::string to_json(std::span<const StepRow> rows) { return json_array(rows, object); }
std::string to_json_lines(std::span<const StepRow> rows) { return json_lines(rows, object); }

std::string to_csv(std::span<const StepRow> rows) {
  const std::vector<std::string_view> columns = columns_of(rows);
  std::string text = fmt::format("{}\r\n", fmt::join(columns, ","));
  for (const StepRow& row : rows) {
    for (const std::string_view& column : columns) {
      const StepRow::Value* value = row.find(column);
      text += fmt::format("{}{}", &column == columns.data() ? "" : ",", value == nullptr ? "" : csv_cell(*value));
    }
    text += "\r\n";
  }
  return text;
}

}  // namespace commfuse::reports
