// SPDX-License-Identifier: Apache-2.0
#include "sim/import/shell_words.h"

#include <algorithm>
#include <cctype>

namespace commfuse::import {

namespace {

bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n' || c == '(' || c == ')' || c == ';'; }
bool is_name(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

/// The name of NAME=value, empty where it is none.
std::string_view assigned(std::string_view word) {
  const std::size_t end = word.find('=');
  const std::string_view name = end == std::string_view::npos ? std::string_view{} : word.substr(0, end);
  return std::all_of(name.begin(), name.end(), is_name) ? name : std::string_view{};
}

class Splitter {
 public:
  explicit Splitter(std::string_view text) : text_(text) {}

  std::vector<ShellWord> words() {
    while (at_ < text_.size()) {
      if (is_blank(text_[at_])) {
        line_ += text_[at_++] == '\n' ? 1 : 0;
      } else if (text_[at_] == '#') {
        at_ = std::min(text_.find('\n', at_), text_.size());
      } else if (const ShellWord word{.text = next(), .line = begun_}; !word.text.empty()) {
        words_.push_back(word);
      }
    }
    return std::move(words_);
  }

 private:
  std::string next() {
    begun_ = line_;
    std::string word;
    char quote = '\0';
    for (; at_ < text_.size(); ++at_) {
      const char c = text_[at_];
      if (quote == '\0' && (is_blank(c) && !in_expansion(word))) {
        break;
      }
      line_ += c == '\n' ? 1 : 0;
      if (c == '\\' && quote != '\'' && at_ + 1 < text_.size()) {
        ++at_;
        line_ += text_[at_] == '\n' ? 1 : 0;
        word += text_[at_] == '\n' ? std::string{} : std::string(1, text_[at_]);
      } else if (c == quote) {
        quote = '\0';
      } else if (quote == '\0' && (c == '"' || c == '\'')) {
        quote = c;
      } else {
        word += c;
      }
    }
    return word;
  }

  /// Inside ${...}, or $(...), whose blanks and parentheses belong to it.
  static bool in_expansion(const std::string& word) {
    return word.find("$(") != std::string::npos
               ? std::count(word.begin(), word.end(), '(') > std::count(word.begin(), word.end(), ')')
               : word.ends_with('$');
  }

  std::string_view text_;
  std::size_t at_ = 0;
  int line_ = 1;
  int begun_ = 1;
  std::vector<ShellWord> words_;
};

}  // namespace

std::vector<ShellWord> shell_words(std::string_view text) {
  std::vector<ShellWord> all;
  for (ShellWord& word : Splitter(text).words()) {
    const std::string_view name = assigned(word.text);
    if (!name.empty() && word.text.find("--", name.size()) != std::string::npos) {
      for (ShellWord& inner : shell_words(std::string_view(word.text).substr(name.size() + 1))) {
        all.push_back({std::move(inner.text), word.line + inner.line - 1});
      }
    } else {
      all.push_back(std::move(word));
    }
  }
  return all;
}

std::map<std::string, std::string, std::less<>> assignments(const std::vector<ShellWord>& words) {
  std::map<std::string, std::string, std::less<>> variables;
  for (const ShellWord& word : words) {
    if (const std::string_view name = assigned(word.text); !name.empty()) {
      variables.emplace(name, word.text.substr(name.size() + 1));
    }
  }
  return variables;
}

std::optional<std::string> expanded(std::string_view text,
                                    const std::map<std::string, std::string, std::less<>>& variables) {
  const std::size_t dollar = text.find('$');
  if (dollar == std::string_view::npos) {
    return std::string(text);
  }
  std::string_view rest = text.substr(dollar + 1);
  const bool braced = rest.starts_with('{');
  rest.remove_prefix(braced ? 1 : 0);
  const auto end = std::find_if_not(rest.begin(), rest.end(), is_name);
  const std::string_view name = rest.substr(0, static_cast<std::size_t>(end - rest.begin()));
  rest.remove_prefix(name.size());
  std::optional<std::string> fallback;
  if (braced) {
    const std::size_t close = rest.find('}');
    if (close == std::string_view::npos || (close > 0 && !rest.starts_with(":-"))) {
      return std::nullopt;
    }
    fallback = close > 0 ? std::optional(std::string(rest.substr(2, close - 2))) : std::nullopt;
    rest.remove_prefix(close + 1);
  }
  const auto known = variables.find(name);
  // A variable that stands for itself, X=${X:-1}, has its fallback.
  const bool is_itself = known != variables.end() && known->second.find('$') != std::string::npos &&
                         known->second.find(name) != std::string::npos;
  const std::optional<std::string> value = known == variables.end() ? fallback
                                           : is_itself && !fallback ? expanded(known->second, {})
                                           : is_itself              ? fallback
                                                                    : expanded(known->second, variables);
  const std::optional<std::string> tail = expanded(rest, variables);
  return value && tail && !name.empty() ? std::optional(std::string(text.substr(0, dollar)) + *value + *tail)
                                        : std::nullopt;
}

}  // namespace commfuse::import
