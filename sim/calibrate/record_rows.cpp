// SPDX-License-Identifier: Apache-2.0
// Converts the micro-benchmarks of a record to rows of the fits.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "model/analysis/percentiles.h"
#include "model/config_error.h"
#include "model/program/names.h"
#include "model/text/counted.h"
#include "model/text/suggest.h"
#include "sim/calibrate/observations.h"
#include "sim/score/row.h"

namespace commfuse::calibrate {

namespace {

/// Smaller transfers stay in the cache of a core, which the price of a kernel does not model.
constexpr std::int64_t min_traffic_bytes = 256 << 10;

Duration median_of(std::vector<Duration> samples) {
  std::sort(samples.begin(), samples.end());
  return percentile(samples, 500).value;
}

class RecordRows {
 public:
  RecordRows(const RunRecord& record, std::string source) : source_(std::move(source)) {
    const bool has_gpu = !record.environment.gpu.empty();
    seen_.machine =
        has_gpu ? record.environment.gpu : fmt::format("{}, links {}", record.environment.cpu, record.links);
    seen_.measured_on_cpus = !has_gpu;  // peaks of GPUs are known
    for (const MicroBenchmark& benchmark : record.micro_benchmarks) {
      const Duration time = median_of(benchmark.samples);
      if (benchmark.rank >= 0) {
        ++skipped_["ops of single ranks and links, which commfuse-validate links compares"];
      } else if (!benchmark.beside.empty() && benchmark.beside != inside_schedule) {
        ++skipped_["two concurrent ops, which prices do not cover"];
      } else if (benchmark.in_place) {
        ++skipped_["collectives in place, which avoid the copy of a rank's own part that prices include"];
      } else if (time > Duration{}) {
        add(benchmark, time);
      }
    }
  }

  Observations observations() && {
    for (const auto& [sentence, count] : skipped_) {
      seen_.skipped.push_back(fmt::format("{}: {} ({})", source_, sentence, counted(count, "row")));
    }
    return std::move(seen_);
  }

 private:
  void add(const MicroBenchmark& benchmark, Duration time) {
    if (benchmark.op == "product") {
      const DType dtype = dtype_of(benchmark);
      put(seen_.gemm[index_of(dtype)],
          MeasuredGemm{{.m = extent(benchmark.m), .n = extent(benchmark.n), .k = extent(benchmark.k), .dtype = dtype},
                       time});
    } else if (benchmark.op == "copy" || benchmark.op == "add") {
      add_traffic(benchmark, time);
    } else if (benchmark.op == "exchange") {
      put(seen_.peers,
          ObservedExchange{benchmark.op, {.bytes = bytes_of(benchmark), .time_us = to_microseconds(time)}});
    } else if (benchmark.op == "next") {
      seen_.next_op = time;
    } else if (benchmark.op == "wake") {
      seen_.wake_up = time;
    } else if (const std::optional<CollectiveKind> kind = collective_named(benchmark.op); kind && benchmark.ranks < 2) {
      ++skipped_["collectives of one rank, which send nothing"];
    } else if (kind) {
      put(seen_.collectives, ObservedCollective{benchmark.op,
                                                {.kind = *kind,
                                                 .ranks = static_cast<int>(benchmark.ranks),
                                                 .total = bytes_of(benchmark),
                                                 .time_us = to_microseconds(time)}});
    } else {
      ++skipped_[fmt::format("{}, whose arithmetic no price covers", benchmark.op)];
    }
  }

  /// Keeps rows in one dtype, because a machine has one memory rate, and only sizes larger than a core's cache.
  void add_traffic(const MicroBenchmark& benchmark, Duration time) {
    if (seen_.traffic.rows.empty() && traffic_dtype_.empty()) {
      traffic_dtype_ = benchmark.dtype;
    }
    if (benchmark.dtype != traffic_dtype_) {
      ++skipped_[fmt::format("{} in {}; only {} is fitted", benchmark.op, benchmark.dtype, traffic_dtype_)];
    } else if (benchmark.bytes < min_traffic_bytes) {
      ++skipped_[fmt::format("{} of less than 256 KiB", benchmark.op)];
    } else {
      put(seen_.traffic, MeasuredTraffic{bytes_of(benchmark), time});
    }
  }

  [[nodiscard]] DType dtype_of(const MicroBenchmark& benchmark) const {
    const auto* const match =
        std::ranges::find(all_dtypes, benchmark.dtype, [](DType dtype) { return name_of(dtype); });
    if (match == all_dtypes.end()) {
      throw ConfigError(
          fmt::format("{}: {} is not a dtype of a GEMM; measure again", source_, in_quotes(benchmark.dtype)));
    }
    return *match;
  }

  [[nodiscard]] std::int64_t extent(std::int64_t size) const { return in_range(size, score::max_extent); }
  [[nodiscard]] Bytes bytes_of(const MicroBenchmark& benchmark) const {
    return {in_range(benchmark.bytes, score::max_bytes)};
  }

  [[nodiscard]] std::int64_t in_range(std::int64_t size, std::int64_t limit) const {
    if (size < 1) {
      throw ConfigError(fmt::format("{}: an op without a size was measured; measure again", source_));
    }
    if (size > limit) {
      throw ConfigError(
          fmt::format("{}: an op of size {} was measured, and the limit is {}; measure again", source_, size, limit));
    }
    return size;
  }

  static std::optional<CollectiveKind> collective_named(const std::string& op) {
    for (const CollectiveKind kind : {CollectiveKind::all_gather, CollectiveKind::reduce_scatter,
                                      CollectiveKind::all_reduce, CollectiveKind::all_to_all}) {
      if (name_of(kind) == op) {
        return kind;
      }
    }
    return std::nullopt;
  }

  template <class Measured>
  void put(Measurements<Measured>& into, Measured row) {
    into.source = source_;
    into.rows.push_back(std::move(row));
  }

  std::string source_;
  std::string traffic_dtype_;  // the dtype of the copies and adds that are kept
  std::map<std::string, int> skipped_;
  Observations seen_;
};

}  // namespace

Observations observations_of(const RunRecord& record, const std::string& source) {
  if (record.compute == "emulated") {
    throw ConfigError(
        fmt::format("{}: its ops slept for their predicted times, so nothing can be fitted; give a record of "
                    "commfuse-validate bench --out or run --compute real --spans",
                    source));
  }
  if (record.micro_benchmarks.empty()) {
    throw ConfigError(
        fmt::format("{}: it contains only times of schedules, and makespans are not fitted; give a record of "
                    "commfuse-validate bench --out or run --spans --out",
                    source));
  }
  return RecordRows(record, source).observations();
}

}  // namespace commfuse::calibrate
