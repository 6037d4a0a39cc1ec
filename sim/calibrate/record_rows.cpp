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
#include "model/text/suggest.h"
#include "sim/calibrate/observations.h"
#include "sim/score/row.h"

namespace commfuse::calibrate {

namespace {

/// Smaller transfers stay in a core's cache, which the price of a kernel does not model.
constexpr std::int64_t least_traffic = 256 << 10;

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
    seen_.is_executor = !has_gpu;  // the peak of a GPU is known
    for (const MicroBenchmark& one : record.micro_benchmarks) {
      const Duration time = median_of(one.samples);
      if (one.rank >= 0) {
        ++left_out_["ops of single ranks and links, which commfuse-validate links compares"];
      } else if (!one.beside.empty() && one.beside != inside_schedule) {
        ++left_out_["two ops beside each other, which prices do not know of"];
      } else if (time > Duration{}) {
        add(one, time);
      }
    }
  }

  Observations observations() && {
    for (const auto& [sentence, count] : left_out_) {
      seen_.skipped.push_back(fmt::format("{}: {} ({} {})", source_, sentence, count, count == 1 ? "row" : "rows"));
    }
    return std::move(seen_);
  }

 private:
  void add(const MicroBenchmark& one, Duration time) {
    if (one.op == "product") {
      const DType dtype = dtype_of(one);
      put(seen_.gemm[index_of(dtype)],
          MeasuredGemm{{.m = extent(one.m), .n = extent(one.n), .k = extent(one.k), .dtype = dtype}, time});
    } else if (one.op == "copy" || one.op == "add") {
      add_traffic(one, time);
    } else if (one.op == "exchange") {
      put(seen_.peers, ObservedExchange{one.op, {.bytes = bytes_of(one), .time_us = to_microseconds(time)}});
    } else if (one.op == "next") {
      seen_.next_op = time;
    } else if (one.op == "wake") {
      seen_.wake_up = time;
    } else if (const std::optional<CollectiveKind> kind = collective_named(one.op); kind && one.ranks < 2) {
      ++left_out_["collectives of one rank, which send nothing"];
    } else if (kind) {
      put(seen_.collectives, ObservedCollective{one.op,
                                                {.kind = *kind,
                                                 .ranks = static_cast<int>(one.ranks),
                                                 .total = bytes_of(one),
                                                 .time_us = to_microseconds(time)}});
    } else {
      ++left_out_[fmt::format("{}, whose arithmetic no price knows of", one.op)];
    }
  }

  /// Keeps rows in one dtype, as a machine has one memory rate, and larger than a core's cache.
  void add_traffic(const MicroBenchmark& one, Duration time) {
    if (seen_.traffic.rows.empty() && moved_.empty()) {
      moved_ = one.dtype;
    }
    if (one.dtype != moved_) {
      ++left_out_[fmt::format("{} in {}, where that in {} counts", one.op, one.dtype, moved_)];
    } else if (one.bytes < least_traffic) {
      ++left_out_[fmt::format("{} of less than 256 KiB", one.op)];
    } else {
      put(seen_.traffic, MeasuredTraffic{bytes_of(one), time});
    }
  }

  [[nodiscard]] DType dtype_of(const MicroBenchmark& one) const {
    const auto* const found = std::ranges::find(all_dtypes, one.dtype, [](DType dtype) { return name_of(dtype); });
    if (found == all_dtypes.end()) {
      throw ConfigError(fmt::format("{}: {} is not a dtype of a GEMM; measure anew", source_, in_quotes(one.dtype)));
    }
    return *found;
  }

  [[nodiscard]] std::int64_t extent(std::int64_t size) const { return in_range(size, score::most_extent); }
  [[nodiscard]] Bytes bytes_of(const MicroBenchmark& one) const { return {in_range(one.bytes, score::most_bytes)}; }

  [[nodiscard]] std::int64_t in_range(std::int64_t size, std::int64_t most) const {
    if (size < 1) {
      throw ConfigError(fmt::format("{}: an op of no size was measured; measure anew", source_));
    }
    if (size > most) {
      throw ConfigError(
          fmt::format("{}: an op of size {} was measured, and {} is the most; measure anew", source_, size, most));
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
  std::string moved_;  // the dtype of the copies and adds that are kept
  std::map<std::string, int> left_out_;
  Observations seen_;
};

}  // namespace

Observations observations_of(const RunRecord& record, const std::string& source) {
  if (record.compute == "emulated") {
    throw ConfigError(
        fmt::format("{}: its ops lasted as long as they were priced, so there is nothing to learn from "
                    "them; give a record of commfuse-validate bench --out or run --compute real --spans",
                    source));
  }
  if (record.micro_benchmarks.empty()) {
    throw ConfigError(
        fmt::format("{}: it has times of schedules only, and nothing is fitted to makespans; give a "
                    "record of commfuse-validate bench --out or run --spans --out",
                    source));
  }
  return RecordRows(record, source).observations();
}

}  // namespace commfuse::calibrate
