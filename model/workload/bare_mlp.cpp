// SPDX-License-Identifier: Apache-2.0
#include "model/workload/bare_mlp.h"

#include <charconv>
#include <string>

namespace commfuse {

namespace {

constexpr std::int64_t most_width = std::int64_t{1} << 20;
constexpr std::int64_t most_experts = 1024;

std::optional<std::int64_t> size_in(std::string_view text, std::int64_t limit) {
  std::int64_t size = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), size);
  return error == std::errc{} && end == text.data() + text.size() && size > 0 && size <= limit ? std::optional(size)
                                                                                               : std::nullopt;
}

std::optional<MlpWidths> widths_in(std::string_view text) {
  const std::size_t times = text.find('x');
  if (times == std::string_view::npos) {
    return std::nullopt;
  }
  const std::optional<std::int64_t> hidden = size_in(text.substr(0, times), most_width);
  const std::optional<std::int64_t> ffn = size_in(text.substr(times + 1), most_width);
  return hidden && ffn ? std::optional(MlpWidths{.hidden = *hidden, .ffn = *ffn}) : std::nullopt;
}

/// Takes the count of a part such as "-top4" from the beginning of the text; nullopt if the text begins differently or
/// the count is out of range.
std::optional<std::int64_t> taken(std::string_view& text, std::string_view label) {
  if (!text.starts_with(label)) {
    return std::nullopt;
  }
  text.remove_prefix(label.size());
  const std::string_view digits = text.substr(0, text.find('-'));
  text.remove_prefix(digits.size());
  return size_in(digits, most_experts);
}

/// Reads the part of a name after the widths: "-e32-top4" or "-e32-top4-ep2".
std::optional<BareExperts> experts_in(std::string_view text) {
  const std::optional<std::int64_t> count = taken(text, "-e");
  const std::optional<std::int64_t> active = taken(text, "-top");
  const std::optional<std::int64_t> ranks = text.empty() ? 1 : taken(text, "-ep");
  if (!count || !active || !ranks || !text.empty() || *active > *count || *count % *ranks != 0) {
    return std::nullopt;
  }
  return BareExperts{.count = *count, .active = *active, .ranks = *ranks};
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

Transformer bare_mixture(const MlpWidths& widths, const BareExperts& experts) {
  Transformer model = bare_mlp(widths);
  model.name += "-e" + std::to_string(experts.count) + "-top" + std::to_string(experts.active);
  model.name += experts.ranks > 1 ? "-ep" + std::to_string(experts.ranks) : "";
  model.experts =
      Experts{.count = experts.count, .active = experts.active, .ffn = widths.ffn, .layer_ranks = experts.ranks};
  return model;
}

std::optional<Transformer> bare_mlp_named(std::string_view name) {
  const std::size_t dash = name.find('-');
  const std::optional<MlpWidths> widths = widths_in(name.substr(0, dash));
  if (!widths) {
    return std::nullopt;
  }
  if (dash == std::string_view::npos) {
    return bare_mlp(*widths);
  }
  const std::optional<BareExperts> experts = experts_in(name.substr(dash));
  return experts ? std::optional(bare_mixture(*widths, *experts)) : std::nullopt;
}

}  // namespace commfuse
