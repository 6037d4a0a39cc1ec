// SPDX-License-Identifier: Apache-2.0
#include "validate/standing.h"

#include <fmt/format.h>

#include <algorithm>

namespace commfuse::validate {

std::string standing_in_words(std::span<const std::string> sentences) {
  constexpr std::size_t most = 4;
  const std::string text = fmt::format("{}", fmt::join(sentences.first(std::min(most, sentences.size())), ", "));
  return sentences.size() <= most ? text : fmt::format("{}, and {} more", text, sentences.size() - most);
}

}  // namespace commfuse::validate
