// SPDX-License-Identifier: Apache-2.0
#include "model/analysis/memory.h"

#include <fmt/format.h>

#include <utility>

#include "model/check.h"

namespace commfuse {

namespace {

constexpr std::string_view opening = "out of memory: ";

}  // namespace

std::string remedy_in_words(std::span<const std::string_view> names) {
  check(!names.empty(), "a remedy has a name");
  const auto before_last = names.first(names.size() - 1);
  return fmt::format("use {}{}{}", fmt::join(before_last, ", "), before_last.empty() ? "" : " or ", names.back());
}

std::string memory_warning(const MemoryNeed& need) {
  return fmt::format("{}a GPU needs {:.2f} GB, but {} has {:.2f} GB per GPU, so {}", opening, need.needed_gb,
                     need.hardware, need.capacity_gb, need.remedy);
}

bool is_memory_warning(std::string_view warning) { return warning.starts_with(opening); }

void LargestNeed::add(double needed, std::optional<std::string> warning) {
  ++rows_;
  if (!warning) {
    return;
  }
  ++exceeding_rows_;
  if (needed > needed_ || warning_.empty()) {
    needed_ = needed;
    warning_ = *std::move(warning);
  }
}

std::string LargestNeed::sentence() const {
  if (exceeding_rows_ == 0) {
    return {};
  }
  std::string text = warning_.substr(opening.size());
  if (exceeding_rows_ > 1) {
    constexpr std::string_view needs = " needs ";
    if (const std::size_t at = text.find(needs); at != std::string::npos) {  // Rows of a file may have any text.
      text.insert(at + needs.size(), "up to ");
    }
  }
  const std::string where = rows_ == 1 ? "" : fmt::format(" in {} of {} rows", exceeding_rows_, rows_);
  return fmt::format("Out of memory{}: {}.", where, text);
}

}  // namespace commfuse
