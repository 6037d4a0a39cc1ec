// SPDX-License-Identifier: Apache-2.0
#include "sim/score/sizes.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "model/text/plain_text.h"
#include "model/text/suggest.h"

namespace commfuse::score {

namespace {

constexpr int max_copies = 5;

template <class T, std::size_t n>
std::optional<T> among(const std::array<std::pair<std::string_view, T>, n>& words, std::string_view word) {
  const auto match = std::find_if(words.begin(), words.end(), [&](const auto& known) { return known.first == word; });
  return match == words.end() ? std::nullopt : std::optional(match->second);
}

}  // namespace

std::optional<DType> dtype_in_table(std::string_view word) {
  constexpr std::array<std::pair<std::string_view, DType>, 8> words{{{"bfloat16", DType::bf16},
                                                                     {"float16", DType::fp16},
                                                                     {"half", DType::fp16},
                                                                     {"float8", DType::fp8},
                                                                     {"fp8_e4m3", DType::fp8},
                                                                     {"e4m3", DType::fp8},
                                                                     {"float8_e4m3fn", DType::fp8},
                                                                     {"float32", DType::fp32}}};
  const std::optional<DType> dtype = among(words, word);
  return dtype ? dtype : dtype_named(word);
}

ProductColumns::ProductColumns(const Table& table)
    : hw(table.column("hw")),
      dtype(table.column("dtype")),
      m(table.column("m")),
      n(table.column("n")),
      k(table.column("k")),
      weight_copies(table.comment("software").find("weight copies") != std::string_view::npos ? max_copies : 0) {}

GemmSize ProductColumns::size(Row& row) const {
  GemmSize size{.m = row.count(m),
                .n = row.count(n),
                .k = row.count(k),
                .dtype = dtype_in_table(row.text(dtype)).value_or(DType::bf16),
                .weight_copies = weight_copies};
  if (size.dtype == DType::fp8) {
    size.out = DType::bf16;
  }
  return size;
}

namespace {

void require_whole_groups(Row& row, const AttentionSize& size) {
  if (row.is_sound() && size.heads % size.kv_heads != 0) {
    row.fault(fmt::format("{} heads are not a multiple of {} kv_heads", size.heads, size.kv_heads));
  }
}

}  // namespace

AttentionColumns::AttentionColumns(const Table& table)
    : hw(table.column("hw")),
      batch(table.column("batch")),
      seq(table.column("seqlen")),
      heads(table.column("heads")),
      kv_heads(table.column("kv_heads")),
      head_dim(table.column("head_dim")),
      dtype(table.column("dtype")) {}

AttentionSize AttentionColumns::size(Row& row) const {
  const AttentionSize size{.batch = row.count(batch),
                           .seq = row.count(seq),
                           .heads = row.count(heads),
                           .kv_heads = row.count(kv_heads),
                           .head_dim = row.count(head_dim),
                           .dtype = dtype_in_table(row.text(dtype)).value_or(DType::bf16)};
  require_whole_groups(row, size);
  return size;
}

DecodeColumns::DecodeColumns(const Table& table)
    : hw(table.column("hw")),
      batch(table.column("batch")),
      keys(table.column("kv_len")),
      heads(table.column("heads")),
      kv_heads(table.column("kv_heads")),
      head_dim(table.column("head_dim")),
      cache(table.column("kv_dtype")) {}

AttentionSize DecodeColumns::size(Row& row) const {
  const AttentionSize size{.batch = row.count(batch),
                           .seq = row.count(keys),
                           .heads = row.count(heads),
                           .kv_heads = row.count(kv_heads),
                           .head_dim = row.count(head_dim),
                           .dtype = dtype_in_table(row.text(cache)).value_or(DType::bf16)};
  require_whole_groups(row, size);
  return size;
}

LatentDecodeColumns::LatentDecodeColumns(const Table& table)
    : hw(table.column("hw")),
      batch(table.column("batch")),
      keys(table.column("kv_len")),
      heads(table.column("heads")),
      cache(table.column("kv_dtype")) {}

LatentDecodeSize LatentDecodeColumns::size(Row& row) const {
  return {.batch = row.count(batch),
          .seq = row.count(keys),
          .heads = row.count(heads),
          .dtype = dtype_in_table(row.text(cache)).value_or(DType::bf16)};
}

ExpertColumns::ExpertColumns(const Table& table)
    : hw(table.column("hw")),
      dtype(table.column("dtype")),
      kernel(table.column("kernel")),
      tokens(table.column("tokens")),
      hidden(table.column("hidden")),
      ffn(table.column("inter")),
      active(table.column("topk")),
      experts(table.column("experts")),
      tp(table.column("tp")),
      ep(table.column("ep")),
      distribution(table.column("distribution")) {}

namespace {

constexpr double steepest_law = 10.0;

/// Reads "balanced" as 0 and "power_law_1.2" as 1.2. Returns nothing for other texts and for exponents above 10.
std::optional<double> exponent_in(std::string_view loads) {
  constexpr std::string_view law = "power_law_";
  if (loads == "balanced") {
    return 0.0;
  }
  if (!loads.starts_with(law)) {
    return std::nullopt;
  }
  loads.remove_prefix(law.size());
  double exponent = 0.0;
  const auto [end, error] = std::from_chars(loads.data(), loads.data() + loads.size(), exponent);
  const bool is_number = error == std::errc() && end == loads.data() + loads.size();
  return is_number && exponent > 0.0 && exponent <= steepest_law ? std::optional(exponent) : std::nullopt;
}

}  // namespace

ExpertLayerSize ExpertColumns::size(Row& row) const {
  ExpertLayerSize size{.tokens = row.count(tokens),
                       .hidden = row.count(hidden),
                       .ffn = row.count(ffn),
                       .active = row.count(active),
                       .experts = row.count(experts),
                       .tp = row.count(tp),
                       .ep = row.count(ep),
                       .gated = row.text(kernel).find("nongated") == std::string_view::npos,
                       .dtype = dtype_in_table(row.text(dtype)).value_or(DType::bf16)};
  const std::optional<double> exponent = exponent_in(row.text(distribution));
  size.exponent = exponent.value_or(0.0);
  if (!row.is_sound()) {
    return size;
  }
  if (!exponent) {
    row.fault(fmt::format("distribution is {}; write balanced, or a power law such as power_law_1.2",
                          in_quotes(row.text(distribution))));
  } else if (size.active > size.experts) {
    row.fault(fmt::format("topk is {}, but there are {} experts", size.active, size.experts));
  } else if (size.experts % size.ep != 0) {
    row.fault(fmt::format("{} experts are not a multiple of ep {}", size.experts, size.ep));
  }
  return size;
}

std::string ExpertColumns::why_not(const Row& row) const {
  if (row.has(dtype) && !dtype_in_table(row.text(dtype))) {
    return fmt::format("experts in {}, a dtype that no setting can select", with_escapes(row.text(dtype)));
  }
  if (row.text(kernel).starts_with("sglang")) {
    return "experts of SGLang, whose rows do not tell which layers are gated";
  }
  return "";
}

QuantizationColumns::QuantizationColumns(const Table& table)
    : hw(table.column("hw")),
      op(table.column("op")),
      m(table.column("m")),
      k(table.column("k")),
      input(table.column("in_dtype")),
      output(table.column("out_dtype")) {}

QuantizationSize QuantizationColumns::size(Row& row) const {
  const std::string_view word = row.text(op);
  if (word != "scale_matrix" && word != "compute_scale") {
    row.fault(fmt::format(
        "op is {}; write scale_matrix (a conversion with a given scale) or compute_scale (what finding the scale adds)",
        in_quotes(word)));
  }
  return {.rows = row.count(m),
          .width = row.count(k),
          .part = word == "compute_scale" ? QuantizationPart::scale : QuantizationPart::conversion};
}

std::string QuantizationColumns::why_not(const Row& row) const {
  const std::optional<DType> from = dtype_in_table(row.text(input));
  const bool is_from_16_bits = from == DType::bf16 || from == DType::fp16;
  return is_from_16_bits && dtype_in_table(row.text(output)) == DType::fp8
             ? ""
             : fmt::format("quantization from {} to {}, which no fit covers", with_escapes(row.text(input)),
                           with_escapes(row.text(output)));
}

}  // namespace commfuse::score
