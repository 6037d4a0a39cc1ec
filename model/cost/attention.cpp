// SPDX-License-Identifier: Apache-2.0
#include "model/cost/attention.h"

#include <algorithm>
#include <cmath>

#include "model/check.h"
#include "model/cost/gemm.h"
#include "model/cost/memory_bound.h"
#include "model/cost/op_time.h"

namespace commfuse {

namespace {

constexpr std::int64_t tile_rows = 128;  // Queries of a head that one SM processes at a time.
// FlashAttention-3 splits keys when a sequence's tiles leave a fifth of the SMs idle (Dao-AILab/flash-attention,
// hopper/heuristics.h, num_splits_heuristic).
constexpr double well_filled = 0.8;
constexpr double bytes_per_score = 8.0;  // Unfused: softmax and dropout each read and write a score in 16 bits.

bool is_narrow(const AttentionSize& size) { return size.head_dim <= narrow_head; }

/// Returns true if heads that share keys share tiles, as in FlashAttention-3.
bool is_packed(const AttentionParameters& parameters) { return parameters.split_cost.value > 0.0; }

/// Returns an overhead in seconds, scaled by `narrow_overhead` for narrow heads.
double overhead_seconds(const AttentionParameters& parameters, const AttentionSize& size, Duration overhead) {
  return to_seconds(overhead) * (is_narrow(size) ? parameters.narrow_overhead.value : 1.0);
}

/// Returns the seconds that one SM needs for one score: its part of both GEMMs, and its exponential.
double seconds_per_score(const Accelerator& accelerator, const AttentionSize& size) {
  const AttentionParameters& parameters = accelerator.attention;
  const double rate = accelerator.dense_peak(size.dtype).value * parameters.loop_efficiency.value;
  const double gemms = 4.0 * static_cast<double>(size.head_dim) / rate;
  const double rate_of_exponentials = parameters.exponentials.value.value;
  const double exponential = rate_of_exponentials > 0.0 ? 1.0 / rate_of_exponentials : 0.0;
  return accelerator.sms * root_of_fourths(gemms, exponential);
}

/// Seconds of HBM traffic.
struct Traffic {
  double queries = 0.0;  // queries and output
  double keys = 0.0;     // keys and values
};

Traffic traffic_of(const Accelerator& accelerator, const AttentionSize& size, const QueryRows& rows, int sms) {
  const auto width = static_cast<double>(size.batch * size.head_dim * bytes_of(size.dtype));
  const double queries = 2.0 * width * static_cast<double>(rows.queries * size.heads);
  const double keys = 2.0 * width * static_cast<double>(rows.keys * size.kv_heads);
  const double rate =
      std::min(accelerator.hbm_bandwidth.value.value, static_cast<double>(sms) * accelerator.sm_bandwidth.value.value);
  return {.queries = accelerator.attention.query_cost.value * queries / rate,
          .keys = accelerator.attention.key_cost.value * keys / rate};
}

/// Returns the number of tiles of one sequence, over all its heads.
std::int64_t tiles_of_sequence(const Accelerator& accelerator, const AttentionSize& size, const QueryRows& rows) {
  const std::int64_t packed =
      is_packed(accelerator.attention) ? std::max<std::int64_t>(1, size.heads / size.kv_heads) : 1;
  return (size.heads + packed - 1) / packed * ((rows.queries * packed + tile_rows - 1) / tile_rows);
}

/// Applies FlashAttention-3's rule, which assumes that all other sequences are short and uses the device's full number
/// of SMs.
bool splits_keys(const Accelerator& accelerator, const AttentionSize& size, const QueryRows& rows) {
  return is_packed(accelerator.attention) && static_cast<double>(size.seq) > accelerator.attention.unsplit_keys.value &&
         static_cast<double>(tiles_of_sequence(accelerator, size, rows)) < well_filled * accelerator.sms;
}

/// Returns the seconds that the tiles of all heads take on `sms` SMs, without their overhead; the longest tiles start
/// first.
double work_seconds(const Accelerator& accelerator, const AttentionSize& size, const QueryRows& rows, int sms) {
  const AttentionParameters& parameters = accelerator.attention;
  const auto heads = static_cast<double>(size.batch * size.heads);
  const auto seq = static_cast<double>(size.seq);
  const bool is_cut = rows.window.keys > 0 && rows.window.keys < rows.keys;
  const double edges = size.causal ? static_cast<double>(rows.queries) + rows.beyond : 0.0;
  const double masked = 0.5 * parameters.masked_width.value * edges;
  const bool is_split = splits_keys(accelerator, size, rows);
  const double score_time = seconds_per_score(accelerator, size) * (is_split ? parameters.split_cost.value : 1.0);
  const double shared_work = heads * (seq * seq * rows.share + masked) * score_time / sms;
  const std::int64_t visited_keys = is_cut ? std::min(rows.keys, rows.window.keys + tile_rows) : rows.keys;
  const double longest = static_cast<double>(tile_rows * visited_keys) * score_time;
  const double lone_tile = is_split ? 0.0 : longest * parameters.lone_tile.value;
  return std::max(shared_work + parameters.imbalance.value * std::min(longest, shared_work), lone_tile);
}

/// Returns the overhead of all tiles, in seconds: tiles begin in waves or, in FlashAttention-3's persistent blocks, as
/// SMs become free.
double tile_overhead_seconds(const Accelerator& accelerator, const AttentionSize& size, const QueryRows& rows,
                             int sms) {
  const AttentionParameters& parameters = accelerator.attention;
  const double tiles = static_cast<double>(size.batch * tiles_of_sequence(accelerator, size, rows));
  const double waves = is_packed(parameters) ? std::max(1.0, tiles / sms) : std::ceil(tiles / sms);
  return waves * overhead_seconds(parameters, size, parameters.tile_overhead.value);
}

QueryRows all_rows(const AttentionSize& size) { return {size.seq, size.seq, size.causal ? 0.5 : 1.0}; }

}  // namespace

AttentionWindow window_of(const LayerKind& kind) { return {.keys = kind.window, .chunked = kind.chunked}; }

double scores_in_window(const AttentionWindow& window, double first, double last) {
  const auto width = static_cast<double>(window.keys);
  // Returns the number of scores of all queries before `query`.
  const auto scores_before = [&](double query) {
    if (window.keys == 0) {
      return 0.5 * query * query;
    }
    if (window.chunked) {
      const double chunks = std::floor(query / width);
      const double rest = query - chunks * width;
      return 0.5 * (chunks * width * width + rest * rest);
    }
    return query <= width ? 0.5 * query * query : width * (query - 0.5 * width);
  };
  return scores_before(last) - scores_before(first);
}

double queries_beyond(const AttentionWindow& window, double first, double last) {
  const auto width = static_cast<double>(window.keys);
  return window.keys == 0 || window.chunked ? 0.0 : std::max(0.0, last - std::max(first, width));
}

Duration attention_time(const Accelerator& accelerator, const AttentionSize& size, int sms) {
  return attention_time(accelerator, size, all_rows(size), sms);
}

Duration attention_time(const Accelerator& accelerator, const AttentionSize& size, const QueryRows& rows, int sms) {
  check(sms >= 1 && sms <= accelerator.sms, "the SM budget lies between 1 and the accelerator's SMs");
  const AttentionParameters& parameters = accelerator.attention;
  const double work = work_seconds(accelerator, size, rows, sms);
  const Traffic traffic = traffic_of(accelerator, size, rows, sms);
  const double tiles =
      is_packed(parameters) && work > 0.0 ? root_of_fourths(work, traffic.queries) : work + traffic.queries;
  const double seconds = overhead_seconds(parameters, size, parameters.overhead.value) + tiles +
                         tile_overhead_seconds(accelerator, size, rows, sms) + traffic.keys;
  return std::max(accelerator.kernel_floor.value, op_time(seconds, "attention"));
}

Duration unfused_attention_time(const Accelerator& accelerator, const AttentionSize& size, int sms) {
  return unfused_attention_time(accelerator, size, all_rows(size), sms);
}

Duration unfused_attention_time(const Accelerator& accelerator, const AttentionSize& size, const QueryRows& rows,
                                int sms) {
  const std::int64_t queries = size.batch * size.heads * rows.queries;
  const Duration scores =
      estimate_gemm(accelerator, {.m = queries, .n = rows.keys, .k = size.head_dim, .dtype = size.dtype}, sms).time;
  const Duration output =
      estimate_gemm(accelerator, {.m = queries, .n = size.head_dim, .k = rows.keys, .dtype = size.dtype}, sms).time;
  const double touched = bytes_per_score * static_cast<double>(queries) * static_cast<double>(rows.keys);
  return scores + memory_bound_time(accelerator, Bytes{static_cast<std::int64_t>(touched)}, sms) + output;
}

Duration attention_time(const Accelerator& accelerator, AttentionKernel kernel, const AttentionSize& size,
                        const QueryRows& rows, int sms) {
  return kernel == AttentionKernel::fused ? attention_time(accelerator, size, rows, sms)
                                          : unfused_attention_time(accelerator, size, rows, sms);
}

Limit limit_of(const Accelerator& accelerator, const AttentionSize& size) {
  const QueryRows rows = all_rows(size);
  const int sms = accelerator.sms;
  const double overhead = overhead_seconds(accelerator.attention, size, accelerator.attention.overhead.value);
  const Traffic moved = traffic_of(accelerator, size, rows, sms);
  const double traffic = moved.queries + moved.keys;
  const double tiles = work_seconds(accelerator, size, rows, sms) + tile_overhead_seconds(accelerator, size, rows, sms);
  if (tiles + traffic <= overhead) {
    return Limit::latency;
  }
  if (size.batch * tiles_of_sequence(accelerator, size, rows) <= sms) {
    return Limit::few_tiles;
  }
  const auto seq = static_cast<double>(size.seq);
  const double scores = static_cast<double>(size.batch * size.heads) * seq * seq * rows.share;
  return traffic > scores * seconds_per_score(accelerator, size) / sms ? Limit::bandwidth : Limit::compute;
}

}  // namespace commfuse
