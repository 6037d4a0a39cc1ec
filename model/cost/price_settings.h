// SPDX-License-Identifier: Apache-2.0
// The settings that change the price of an op in a layer, each described once: run settings, flags, columns of results,
// words of reports and links to the page follow. To add a setting, add a member to PriceOptions and to PricedAs, and an
// entry.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/cost/attention.h"
#include "model/cost/expert_split.h"
#include "model/describe/choice_words.h"
#include "model/describe/setting.h"
#include "model/dtype.h"

namespace commfuse {

/// none: every kernel has all SMs; lanes still share the wires. constant ("static"): a kernel loses the SMs of
/// communication that may run concurrently, for its whole duration, so that prices stay fixed. dynamic: prices assume
/// that each op has all SMs and wires to itself; the simulated run determines which ops meet (fluid.h).
enum class Interference : std::uint8_t { none, constant, dynamic };

/// stream: the host issues op by op, and the device waits before each GEMM and memory-bound kernel. eager: like stream,
/// but Python issues each op. graph: one launch, then a gap per node.
enum class Launch : std::uint8_t { stream, eager, graph };

struct ImplementedSites;

struct PriceOptions {
  Interference interference = Interference::constant;
  Launch launch = Launch::stream;
  AttentionKernel attention = AttentionKernel::fused;
  /// Dtype of GEMMs; every other tensor keeps the program's dtype, as with Transformer Engine's fp8, where tensors
  /// between GEMMs, sums and wires use 16 bits. If omitted, GEMMs use the program's dtype too.
  std::optional<DType> gemm_dtype = std::nullopt;
  /// Window of causal fused attention; unfused attention computes all scores.
  AttentionWindow window{};
  double weight_bits = 0.0;  ///< GemmSize::weight_bits of the GEMMs
  ExpertSplit experts{};     ///< experts of every GEMM
  /// Costs of an implementation's kernels compared with ideal ones (implemented.h); null for ideal kernels. Must
  /// outlive the options.
  const ImplementedSites* implementation = nullptr;
  friend bool operator==(const PriceOptions&, const PriceOptions&) = default;
};

inline constexpr std::array interference_choices{Choice<Interference>{"static", Interference::constant},
                                                 Choice<Interference>{"dynamic", Interference::dynamic},
                                                 Choice<Interference>{"none", Interference::none}};
inline constexpr std::array launch_choices{Choice<Launch>{"stream", Launch::stream},
                                           Choice<Launch>{"eager", Launch::eager},
                                           Choice<Launch>{"graph", Launch::graph}};
inline constexpr std::array attention_choices{Choice<AttentionKernel>{"fused", AttentionKernel::fused},
                                              Choice<AttentionKernel>{"unfused", AttentionKernel::unfused}};

/// Words of these settings in a row of results.
struct PricedAs {
  std::string interference;
  std::string launch;
  std::string attention_kernel;
};

/// Conversion between the words of a setting and a member of PriceOptions.
struct PriceWord {
  std::vector<std::string_view> (*choices)();
  void (*put)(std::string_view word, PriceOptions& options);  ///< Requires one of the choices.
  std::string_view (*word)(const PriceOptions& options);
};

/// PriceWord for a table of words and values.
template <const auto& table, auto member>
inline constexpr PriceWord price_word{
    words_of_table<table>, [](std::string_view word, PriceOptions& options) { options.*member = chosen(table, word); },
    [](const PriceOptions& options) { return word_of(table, options.*member); }};

struct PriceSetting {
  std::string_view key;     ///< key of the setting, and name of its column in results
  std::string_view flag;    ///< name of the flag: "attention-kernel"
  std::string_view doc;     ///< description of the setting, one line
  std::string_view column;  ///< description of the column, one line
  std::string_view preset;  ///< default
  std::string_view example;
  Uses uses;
  std::string PricedAs::*member;
  PriceWord value;
};

/// All settings, in the order that all listings use.
inline constexpr std::array price_settings{
    PriceSetting{.key = "interference",
                 .flag = "interference",
                 .doc = "static: slowed by all that could overlap; dynamic: by what does; none",
                 .column = "how communication slows concurrent kernels",
                 .preset = "static",
                 .example = "none",
                 .uses = {Use::layer, Use::measure, Use::price},
                 .member = &PricedAs::interference,
                 .value = price_word<interference_choices, &PriceOptions::interference>},
    PriceSetting{.key = "launch",
                 .flag = "launch",
                 .doc = "stream: one launch per op; eager: from Python; graph: one CUDA graph",
                 .column = "host issue: op by op, from Python, or one graph",
                 .preset = "stream",
                 .example = "graph",
                 .uses = {Use::layer, Use::step, Use::prefill, Use::decode, Use::measure, Use::price},
                 .member = &PricedAs::launch,
                 .value = price_word<launch_choices, &PriceOptions::launch>},
    PriceSetting{.key = "attention_kernel",
                 .flag = "attention-kernel",
                 .doc = "fused: one kernel; unfused: scores pass through memory",
                 .column = "fused, or with scores in memory",
                 .preset = "fused",
                 .example = "unfused",
                 .uses = {Use::layer, Use::step, Use::tune, Use::plan, Use::measure, Use::price},
                 .member = &PricedAs::attention_kernel,
                 .value = price_word<attention_choices, &PriceOptions::attention>}};

/// Returns the index of a member's entry in price_settings.
consteval std::size_t price_place(std::string PricedAs::*member) {
  std::size_t place = 0;
  while (price_settings[place].member != member) {
    ++place;
  }
  return place;
}

/// Returns the words of these options in a row.
inline PricedAs priced_as(const PriceOptions& options) {
  PricedAs words;
  for (const PriceSetting& setting : price_settings) {
    words.*setting.member = setting.value.word(options);
  }
  return words;
}

}  // namespace commfuse
