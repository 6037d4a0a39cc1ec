// SPDX-License-Identifier: Apache-2.0
#include "validate/bench/rates.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>

#include "model/program/names.h"
#include "validate/bench/copies.h"
#include "validate/measure/protocol.h"

namespace commfuse::validate {

namespace {

constexpr std::int64_t max_columns = 9;
constexpr std::array collectives{CollectiveKind::all_gather, CollectiveKind::reduce_scatter, CollectiveKind::all_reduce,
                                 CollectiveKind::all_to_all};

double gb_per_s(double bytes, Duration time) { return time > Duration{} ? bytes / to_seconds(time) / 1e9 : 0.0; }

Duration median_of(const MicroBenchmark& benchmark) { return summary_of(benchmark.samples).median.value; }

using Pair = std::pair<std::int64_t, std::int64_t>;

std::string line_of_matrix(std::int64_t from, std::int64_t ranks, const std::map<Pair, double>& rates) {
  std::string line = fmt::format("{:>4}", from);
  for (std::int64_t to = 0; to < ranks; ++to) {
    const auto rate = rates.find({std::min(from, to), std::max(from, to)});
    line += rate == rates.end() ? fmt::format("{:>8}", "-") : fmt::format("{:>8.2f}", rate->second);
  }
  return line + "\n";
}

/// A table's name, and the bytes that each direction moves.
using TableKey = std::pair<std::string, std::int64_t>;

std::string matrix(const TableKey& table, std::int64_t ranks, const std::map<Pair, double>& rates) {
  std::string text = fmt::format("{}, {} bytes each, GB/s in both directions together\n", table.first, table.second);
  if (ranks > max_columns) {
    for (const auto& [pair, rate] : rates) {
      text += fmt::format("  {:>4} and {:>4} {:>10.2f}\n", pair.first, pair.second, rate);
    }
    return text;
  }
  text += fmt::format("{:>4}", "");
  for (std::int64_t to = 0; to < ranks; ++to) {
    text += fmt::format("{:>8}", to);
  }
  text += "\n";
  for (std::int64_t from = 0; from < ranks; ++from) {
    text += line_of_matrix(from, ranks, rates);
  }
  return text;
}

/// Returns the matrices of pairs that sent or copied both ways. A pair's two transfers are one measurement; its two
/// copies are two.
std::string matrices(std::span<const MicroBenchmark> measured) {
  std::map<TableKey, std::map<Pair, double>> tables;
  std::int64_t ranks = 0;
  for (const MicroBenchmark& benchmark : measured) {
    const std::optional<CopyTest> copy = copy_test_named(benchmark.op);
    const bool is_transfer = benchmark.op == "both_ways";
    if (benchmark.samples.empty() || !(is_transfer || (copy && copy->both_ways && !copy->with_host))) {
      continue;
    }
    const double bytes = (is_transfer ? 2.0 : 1.0) * static_cast<double>(benchmark.bytes);
    tables[{is_transfer ? "both ways simultaneously" : benchmark.op, benchmark.bytes}]
          [{std::min(benchmark.rank, benchmark.peer), std::max(benchmark.rank, benchmark.peer)}] +=
        gb_per_s(bytes, median_of(benchmark));
    ranks = std::max(ranks, benchmark.ranks);
  }
  std::string text;
  for (const auto& [table, rates] : tables) {
    text += matrix(table, ranks, rates);
  }
  return text;
}

std::string table_of(std::string_view collective, bool in_place, std::span<const MicroBenchmark> measured) {
  std::string text;
  for (const MicroBenchmark& benchmark : measured) {
    const bool is_alone = benchmark.op == collective && benchmark.in_place == in_place && benchmark.beside.empty() &&
                          !benchmark.samples.empty();
    if (!is_alone) {
      continue;
    }
    if (text.empty()) {
      text = fmt::format("{}, {} ranks, {} place\n{:>12} {:>12} {:>14} {:>14}\n", collective, benchmark.ranks,
                         in_place ? "in" : "out of", "bytes", "time/us", "algbw GB/s", "busbw GB/s");
    }
    const Duration time = median_of(benchmark);
    const double rate = gb_per_s(static_cast<double>(benchmark.bytes), time);
    text += fmt::format("{:>12} {:>12.1f} {:>14.2f} {:>14.2f}\n", benchmark.bytes, to_microseconds(time), rate,
                        rate * bus_share(collective, benchmark.ranks));
  }
  return text;
}

}  // namespace

std::vector<MicroProgram> rate_programs(const RatePlan& plan) {
  std::vector<MicroProgram> programs;
  for (const Bytes bytes : plan.both_ways ? plan.sizes : std::vector<Bytes>{}) {
    for (Rank first = 0; first < plan.ranks; ++first) {
      for (Rank second = first + 1; second < plan.ranks; ++second) {
        programs.push_back(transfers_both_ways(plan.ranks, first, second, plan.dtype, bytes, transfers_per_run));
      }
    }
  }
  const std::int64_t granule = plan.ranks * row_elements * bytes_of(plan.dtype);
  for (const CollectiveKind kind : collectives) {
    for (const Bytes bytes : plan.collectives) {
      const Bytes rounded_up{(bytes.count + granule - 1) / granule * granule};
      programs.push_back(collective_alone(plan.ranks, kind, plan.dtype, rounded_up));
      if (can_be_in_place(kind)) {
        programs.push_back(collective_alone(plan.ranks, kind, plan.dtype, rounded_up, Placing::in_place));
      }
    }
  }
  return programs;
}

double bus_share(std::string_view collective, std::int64_t ranks) {
  const auto n = static_cast<double>(ranks);
  const bool is_known =
      std::ranges::any_of(collectives, [&](CollectiveKind kind) { return name_of(kind) == collective; });
  if (!is_known) {
    return 0.0;
  }
  return (collective == name_of(CollectiveKind::all_reduce) ? 2.0 : 1.0) * (n - 1.0) / n;
}

std::string rates_in_words(std::span<const MicroBenchmark> measured) {
  std::string text = matrices(measured);
  for (const CollectiveKind kind : collectives) {
    text += table_of(name_of(kind), false, measured) + table_of(name_of(kind), true, measured);
  }
  return text;
}

}  // namespace commfuse::validate
