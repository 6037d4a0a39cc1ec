// SPDX-License-Identifier: Apache-2.0
// Scores tables of attention kernels: causal prefills, decoding, and decoding over the narrow keys of latent attention.
#include "model/cost/attention.h"

#include <fmt/format.h>

#include "model/cost/decode_attention.h"
#include "model/cost/latent_decode.h"
#include "model/text/plain_text.h"
#include "sim/score/scored_calls.h"
#include "sim/score/sizes.h"

namespace commfuse::score {

namespace {

std::string cache_in_words(std::string_view cache) {
  return fmt::format("a cache in {}, a dtype that no setting can select", with_escapes(cache));
}

struct PrefillCalls {
  using Columns = AttentionColumns;
  static constexpr bool has_frameworks = true;

  static std::string group(std::string_view hw, const AttentionSize& size) {
    return attention_group("attention", hw, size);
  }
  static std::string why_not(const Columns& columns, const Row& row, const AttentionSize& size,
                             const Machine& machine) {
    const bool has_dtype = !row.has(columns.dtype) || dtype_in_table(row.text(columns.dtype));
    return has_dtype && machine.accelerator.supports(size.dtype)
               ? ""
               : fmt::format("{} does not support GEMMs in {}", machine.name,
                             has_dtype ? std::string(name_of(size.dtype)) : with_escapes(row.text(columns.dtype)));
  }
  static std::string_view part(const AttentionSize& size) {
    return size.seq >= 1024 ? "sequence >= 1K" : "sequence < 1K";
  }
  static std::string_view interval_kind(const AttentionSize& size) {
    return size.seq >= 1024 ? "attention >= 1K" : "attention < 1K";
  }
  static PricedShape shape(const AttentionSize& size) { return shape_of(size); }
  static ShapeKey key(const AttentionSize& size) { return {size.heads, size.kv_heads, size.head_dim}; }
  static Duration time(const Accelerator& accelerator, const AttentionSize& size) {
    return attention_time(accelerator, size, accelerator.sms);
  }
};

struct DecodeCalls {
  using Columns = DecodeColumns;
  static constexpr bool has_frameworks = true;

  static std::string group(std::string_view hw, const AttentionSize& size) { return decode_attention_group(hw, size); }
  static std::string why_not(const Columns& columns, const Row& row, const AttentionSize&, const Machine&) {
    const bool has_cache = !row.has(columns.cache) || dtype_in_table(row.text(columns.cache));
    return has_cache ? "" : cache_in_words(row.text(columns.cache));
  }
  static std::string_view part(const AttentionSize& size) { return part_of_decoding(size.seq, size.dtype); }
  static std::string_view interval_kind(const AttentionSize& size) {
    return size.dtype == DType::fp8 ? "attention, decoding, fp8" : "attention, decoding";
  }
  static PricedShape shape(const AttentionSize& size) { return shape_of_decoding(size); }
  static ShapeKey key(const AttentionSize& size) { return {size.heads, size.kv_heads, size.head_dim}; }
  static Duration time(const Accelerator& accelerator, const AttentionSize& size) {
    return decode_attention_time(accelerator, size);
  }
};

struct LatentCalls {
  using Columns = LatentDecodeColumns;
  static constexpr bool has_frameworks = true;

  static std::string group(std::string_view hw, const LatentDecodeSize& size) { return latent_decode_group(hw, size); }
  static std::string why_not(const Columns& columns, const Row& row, const LatentDecodeSize& size,
                             const Machine& machine) {
    if (!dtype_in_table(row.text(columns.cache))) {
      return cache_in_words(row.text(columns.cache));
    }
    return machine.accelerator.supports(size.dtype)
               ? ""
               : fmt::format("{} has no peak rate for a cache in {}", machine.name, name_of(size.dtype));
  }
  static std::string_view part(const LatentDecodeSize& size) { return part_of_decoding(size.seq, size.dtype); }
  static std::string_view interval_kind(const LatentDecodeSize& size) {
    return size.dtype == DType::fp8 ? "latent attention, decoding, fp8" : "latent attention, decoding";
  }
  static PricedShape shape(const LatentDecodeSize& size) { return shape_of(size); }
  static ShapeKey key(const LatentDecodeSize& size) { return {size.heads, size.batch}; }
  static Duration time(const Accelerator& accelerator, const LatentDecodeSize& size) {
    return latent_decode_time(accelerator, size);
  }
};

}  // namespace

void score_attention(const Table& table, Context& context, Tally& tally) {
  score_calls<PrefillCalls>(table, context, tally);
}

void score_decode_attention(const Table& table, Context& context, Tally& tally) {
  score_calls<DecodeCalls>(table, context, tally);
}

void score_latent_decode(const Table& table, Context& context, Tally& tally) {
  score_calls<LatentCalls>(table, context, tally);
}

}  // namespace commfuse::score
