// SPDX-License-Identifier: Apache-2.0
#include "model/workload/bare_mlp.h"

#include <charconv>
#include <string>

namespace commfuse {

namespace {

std::optional<std::int64_t> size_in(std::string_view text) {
  constexpr std::int64_t largest = std::int64_t{1} << 20;
  std::int64_t size = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), size);
  return error == std::errc{} && end == text.data() + text.size() && size > 0 && size <= largest ? std::optional(size)
                                                                                                 : std::nullopt;
}

}  // namespace

Transformer bare_mlp(const MlpWidths& widths) {
  const auto [hidden, ffn] = widths;
  return {.name = std::to_string(hidden) + "x" + std::to_string(ffn),
          .layers = 1,
          .hidden = hidden,
          .ffn = ffn,
          .heads = 1,
          .kv_heads = 1,
          .head_dim = 1,
          .vocab = 1};
}

std::optional<Transformer> bare_mlp_named(std::string_view name) {
  const std::size_t times = name.find('x');
  if (times == std::string_view::npos) {
    return std::nullopt;
  }
  const std::optional<std::int64_t> hidden = size_in(name.substr(0, times));
  const std::optional<std::int64_t> ffn = size_in(name.substr(times + 1));
  return hidden && ffn ? std::optional(bare_mlp({.hidden = *hidden, .ffn = *ffn})) : std::nullopt;
}

}  // namespace commfuse
