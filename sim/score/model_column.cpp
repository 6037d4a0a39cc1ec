// SPDX-License-Identifier: Apache-2.0
#include "sim/score/model_column.h"

#include <algorithm>
#include <array>
#include <cctype>

#include "model/config/catalogue.h"

namespace commfuse::score {

namespace {

bool changes_no_shape(std::string_view word) {
  constexpr std::array<std::string_view, 4> words{"instruct", "hf", "chat", "base"};
  return word.empty() || std::find(words.begin(), words.end(), word) != words.end();
}

/// Removes the suffix of a release with the same shape, such as "-v0.1". A suffix such as "-V3" is part of the name.
std::string_view without_release(std::string_view name) {
  const std::size_t last = name.rfind("-v0.");
  const bool is_release =
      last != std::string_view::npos && name.find_first_not_of("0123456789.", last + 2) == std::string_view::npos;
  return is_release ? name.substr(0, last) : name;
}

/// Joins the words of a name: "llama3370b". Keeps version numbers, since 3.1 and 3.3 are different models.
std::string reduced(std::string_view full) {
  const std::string_view name = without_release(full);
  std::string letters;
  std::string word;
  const auto end_word = [&] {
    letters += changes_no_shape(word) ? "" : word;
    word.clear();
  };
  for (const char c : name) {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0) {
      word += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    } else {
      end_word();
    }
  }
  end_word();
  return letters;
}

}  // namespace

ModelColumn::ModelColumn() : names_(known_names(Catalogue::models)) {}

const Transformer* ModelColumn::of(std::string_view cell) {
  const auto known = loaded_.find(cell);
  if (known != loaded_.end()) {
    return &known->second;
  }
  const auto file = std::find_if(names_.begin(), names_.end(),
                                 [&](const std::string& name) { return reduced(name) == reduced(cell); });
  return file == names_.end() ? nullptr : &loaded_.emplace(cell, load_model(*file)).first->second;
}

}  // namespace commfuse::score
