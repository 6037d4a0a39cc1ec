// SPDX-License-Identifier: Apache-2.0
#include "validate/standing.h"

#include <fmt/format.h>

#include <algorithm>

namespace commfuse::validate {

std::string standing_in_words(std::span<const std::string> sentences) {
  constexpr std::size_t limit = 4;
  const std::string text = fmt::format("{}", fmt::join(sentences.first(std::min(limit, sentences.size())), ", "));
  return sentences.size() <= limit ? text : fmt::format("{}, and {} more", text, sentences.size() - limit);
}

}  // namespace commfuse::validate
