// SPDX-License-Identifier: Apache-2.0
#include "sim/commands/expect_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>
#include <vector>

#include "model/text/counted.h"
#include "model/text/quantity.h"
#include "model/wrapped.h"
#include "reports/fitted_table.h"
#include "reports/json_rows.h"
#include "reports/rows.h"

namespace commfuse::sim {

namespace {

using expect::ExpectedKernelRow;
using expect::ExpectedRow;
using expect::ExpectedRun;
using reports::FittedColumn;
using reports::FittedTable;

constexpr double giga = 1e9;

constexpr std::array<std::string_view, 16> expected_columns{
    "schema",     "machine",     "collective",       "ranks",       "nodes",      "bytes",
    "time_us",    "fast_us",     "slow_us",          "algbw_gb_s",  "busbw_gb_s", "busbw_floor_gb_s",
    "limited_by", "nccl_kernel", "saturation_bytes", "false_alarms"};

/// Rounds to six digits, because the model is no more precise.
double rounded(double value) { return std::stod(fmt::format("{:.6g}", value)); }

double gigabytes(BytesPerSecond rate) { return rounded(rate.value / giga); }

std::vector<Value> values_of(const ExpectedRow& row, const SharedValues& shared) {
  const Message& message = row.message;
  return {std::string("commfuse.expectation/1"),
          shared.machine,
          std::string(name_of(message.op)),
          message.gpus,
          message.nodes,
          message.bytes.count,
          rounded(to_microseconds(row.time)),
          rounded(to_microseconds(row.range.fast)),
          rounded(to_microseconds(row.range.slow)),
          gigabytes(algorithm_bandwidth(message, row.time)),
          gigabytes(bus_bandwidth(message, row.time)),
          gigabytes(bus_bandwidth(message, row.range.slow)),
          std::string(name_of(row.limit)),
          row.kernel.empty() ? Value{} : Value{row.kernel},
          row.saturation.count,
          shared.false_alarms};
}

constexpr std::array<std::string_view, 13> run_columns{"schema",  "machine",    "scope",       "model",   "strategy",
                                                       "ranks",   "batch",      "seq",         "time_us", "fast_us",
                                                       "slow_us", "time_error", "false_alarms"};

std::vector<Value> run_values(const ExpectedRun& row, const SharedValues& shared) {
  return {std::string("commfuse.expectation_run/1"),
          shared.machine,
          row.scope,
          row.model,
          row.strategy,
          row.ranks,
          row.batch,
          row.seq,
          rounded(to_microseconds(row.time)),
          rounded(to_microseconds(row.range.fast)),
          rounded(to_microseconds(row.range.slow)),
          rounded(row.error),
          shared.false_alarms};
}

constexpr std::array<std::string_view, 15> kernel_columns{
    "schema",  "machine",    "kernel",           "dtype",      "m",           "n", "k", "bytes", "time_us", "fast_us",
    "slow_us", "rate_per_s", "rate_floor_per_s", "limited_by", "false_alarms"};

std::vector<Value> kernel_values(const ExpectedKernelRow& row, const SharedValues& shared) {
  const auto extent = [&](std::int64_t GemmSize::*member) { return row.gemm ? Value{(*row.gemm).*member} : Value{}; };
  return {std::string("commfuse.expectation_kernel/1"),
          shared.machine,
          std::string(row.gemm ? "gemm" : "copy"),
          row.gemm ? Value{std::string(name_of(row.gemm->dtype))} : Value{},
          extent(&GemmSize::m),
          extent(&GemmSize::n),
          extent(&GemmSize::k),
          row.gemm ? Value{} : Value{row.copied.count},
          rounded(to_microseconds(row.time)),
          rounded(to_microseconds(row.range.fast)),
          rounded(to_microseconds(row.range.slow)),
          rounded(rate_of(row, row.time)),
          rounded(rate_of(row, row.range.slow)),
          std::string(name_of(row.limit)),
          shared.false_alarms};
}

std::string name_of(const ExpectedKernelRow& row) {
  return row.gemm ? fmt::format("gemm {}x{}x{} {}", row.gemm->m, row.gemm->n, row.gemm->k, name_of(row.gemm->dtype))
                  : fmt::format("copy {}", format_size(row.copied));
}

/// Returns a map as an item of a YAML list.
std::string yaml_map(std::span<const std::string_view> names, const std::vector<Value>& values) {
  const auto object = nlohmann::ordered_json::parse(reports::json_object(names, values));
  std::string text;
  for (const auto& [key, value] : object.items()) {
    text += fmt::format("{}{}: {}\n", text.empty() ? "- " : "  ", key, value.dump());  // JSON values are valid YAML.
  }
  return text;
}

std::string title_of(const ExpectedRow& row) {
  const Message& message = row.message;
  const std::string nodes = message.nodes == 1 ? "one node" : fmt::format("{} nodes", message.nodes);
  return wrapped(fmt::format("{}, {} GPUs, {}: reaches 90% of its bus bandwidth at {}", name_of(message.op),
                             message.gpus, nodes, format_size(row.saturation)),
                 "", "  ");
}

bool begins_group(std::span<const ExpectedRow> rows, std::size_t i) {
  const Message& message = rows[i].message;
  if (i == 0) {
    return true;
  }
  const Message& before = rows[i - 1].message;
  return message.op != before.op || message.gpus != before.gpus || message.nodes != before.nodes;
}

std::string time_text(Duration time) { return fmt::format("{:.2f}", to_microseconds(time)); }

std::string rate_text(BytesPerSecond rate) { return fmt::format("{:.2f}", rate.value / giga); }

FittedColumn number_column(std::string name, int expendable = 0) {
  return {.name = std::move(name), .at_right = true, .expendable = expendable};
}

std::string text_of(const FittedTable& table) {
  std::string text;
  table.write({.below = "; -o csv has every column"}, [&](const std::string& lines) { text += lines; });
  return text;
}

/// Returns the table of one collective on one number of GPUs.
std::string collectives_table(std::span<const ExpectedRow> rows) {
  std::vector<FittedColumn> shown{number_column("size"),     number_column("time us"),
                                  number_column("fast", 1),  number_column("slow"),
                                  number_column("algbw", 3), number_column("busbw"),
                                  number_column("floor"),    {.name = "limited by", .expendable = 2}};
  const bool has_kernels = std::ranges::any_of(rows, [](const ExpectedRow& row) { return !row.kernel.empty(); });
  if (has_kernels) {
    shown.push_back({.name = "kernel", .expendable = 2});
  }
  FittedTable table(std::move(shown), terminal_width());
  for (const ExpectedRow& row : rows) {
    const Message& message = row.message;
    std::vector<Value> values{format_size(message.bytes),
                              time_text(row.time),
                              time_text(row.range.fast),
                              time_text(row.range.slow),
                              rate_text(algorithm_bandwidth(message, row.time)),
                              rate_text(bus_bandwidth(message, row.time)),
                              rate_text(bus_bandwidth(message, row.range.slow)),
                              std::string(name_of(row.limit))};
    if (has_kernels) {
      values.emplace_back(row.kernel);
    }
    table.add(values);
  }
  return text_of(table);
}

}  // namespace

std::string expected_table(std::span<const ExpectedRow> rows, const SharedValues& shared) {
  std::string text = wrapped(fmt::format("{}; one healthy measurement in {:g} is slower than 'slow' and below 'floor'",
                                         shared.machine, 1.0 / shared.false_alarms),
                             "", "  ");
  text += shared.note.empty() ? "" : wrapped(shared.note, "", "  ");
  for (std::size_t first = 0; first < rows.size();) {
    std::size_t end = first + 1;
    while (end < rows.size() && !begins_group(rows, end)) {
      ++end;
    }
    text += "\n" + title_of(rows[first]) + collectives_table(rows.subspan(first, end - first));
    first = end;
  }
  return text;
}

std::string expected_json(std::span<const ExpectedRow> rows, const SharedValues& shared) {
  return reports::json_array(
      rows, [&](const ExpectedRow& row) { return reports::json_object(expected_columns, values_of(row, shared)); });
}

std::string expected_csv(std::span<const ExpectedRow> rows, const SharedValues& shared) {
  std::string text = reports::csv_line(std::span<const std::string_view>(expected_columns));
  for (const ExpectedRow& row : rows) {
    text += reports::csv_line(values_of(row, shared));
  }
  return text;
}

std::string expected_yaml(std::span<const ExpectedRow> rows, const SharedValues& shared) {
  std::string text;
  for (const ExpectedRow& row : rows) {
    text += yaml_map(expected_columns, values_of(row, shared));
  }
  return text;
}

std::string kernel_table(std::span<const ExpectedKernelRow> rows, const SharedValues& shared) {
  FittedTable table({{.name = "kernel"},
                     number_column("time us"),
                     number_column("fast", 1),
                     number_column("slow"),
                     number_column("rate"),
                     number_column("floor"),
                     {.name = "limited by", .expendable = 2}},
                    terminal_width());
  for (const ExpectedKernelRow& row : rows) {
    const double unit = row.gemm ? 1e12 : giga;
    table.add(std::vector<Value>{
        name_of(row), time_text(row.time), time_text(row.range.fast), time_text(row.range.slow),
        fmt::format("{:.1f} {:>7}", rate_of(row, row.time) / unit, row.gemm ? "TFLOP/s" : "GB/s"),
        fmt::format("{:.1f}", rate_of(row, row.range.slow) / unit), std::string(name_of(row.limit))});
  }
  return wrapped(fmt::format("one GPU of {}; one healthy measurement in {:g} is slower than 'slow' and below 'floor'",
                             shared.machine, 1.0 / shared.false_alarms),
                 "", "  ") +
         "\n" + text_of(table);
}

std::string kernel_json(std::span<const ExpectedKernelRow> rows, const SharedValues& shared) {
  return reports::json_array(rows, [&](const ExpectedKernelRow& row) {
    return reports::json_object(kernel_columns, kernel_values(row, shared));
  });
}

std::string kernel_csv(std::span<const ExpectedKernelRow> rows, const SharedValues& shared) {
  std::string text = reports::csv_line(std::span<const std::string_view>(kernel_columns));
  for (const ExpectedKernelRow& row : rows) {
    text += reports::csv_line(kernel_values(row, shared));
  }
  return text;
}

std::string kernel_yaml(std::span<const ExpectedKernelRow> rows, const SharedValues& shared) {
  std::string text;
  for (const ExpectedKernelRow& row : rows) {
    text += yaml_map(kernel_columns, kernel_values(row, shared));
  }
  return text;
}

std::string run_table(std::span<const ExpectedRun> rows, const SharedValues& shared) {
  const ExpectedRun& first = rows.front();
  const std::string text =
      wrapped(fmt::format("{} of {} on {}, {}, batch {}, {}", first.scope, first.model, shared.machine,
                          counted(first.ranks, "GPU"), first.batch, counted(first.seq, "token")),
              "", "  ") +
      fmt::format("one healthy measurement in {:g} is slower than 'slow'\n\n", 1.0 / shared.false_alarms);
  FittedTable table({{.name = "strategy"},
                     number_column("time us"),
                     number_column("fast", 1),
                     number_column("slow"),
                     number_column("error")},
                    terminal_width());
  for (const ExpectedRun& row : rows) {
    table.add(std::vector<Value>{row.strategy, time_text(row.time), time_text(row.range.fast),
                                 time_text(row.range.slow), fmt::format("{:.1f}%", 100.0 * row.error)});
  }
  return text + text_of(table);
}

std::string run_json(std::span<const ExpectedRun> rows, const SharedValues& shared) {
  return reports::json_array(
      rows, [&](const ExpectedRun& row) { return reports::json_object(run_columns, run_values(row, shared)); });
}

std::string run_csv(std::span<const ExpectedRun> rows, const SharedValues& shared) {
  std::string text = reports::csv_line(std::span<const std::string_view>(run_columns));
  for (const ExpectedRun& row : rows) {
    text += reports::csv_line(run_values(row, shared));
  }
  return text;
}

std::string run_yaml(std::span<const ExpectedRun> rows, const SharedValues& shared) {
  std::string text;
  for (const ExpectedRun& row : rows) {
    text += yaml_map(run_columns, run_values(row, shared));
  }
  return text;
}

}  // namespace commfuse::sim
