// SPDX-License-Identifier: Apache-2.0
#include "sim/import/shell_words.h"

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <set>
#include <utility>

namespace commfuse::import {

namespace {

bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n' || c == '(' || c == ')' || c == ';'; }
bool is_name(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

/// The parts of NAME=value or NAME+=value; the name is empty for other words.
struct Assigned {
  std::string_view name;
  std::string_view value;
  bool appends = false;
};

Assigned assigned(std::string_view word) {
  const std::size_t end = word.find('=');
  if (end == std::string_view::npos) {
    return {};
  }
  const bool appends = end > 0 && word[end - 1] == '+';
  const std::string_view name = word.substr(0, end - (appends ? 1 : 0));
  return std::all_of(name.begin(), name.end(), is_name) ? Assigned{name, word.substr(end + 1), appends} : Assigned{};
}

/// A word under construction. Blanks and parentheses inside $(...) belong to the word.
class GrowingWord {
 public:
  explicit GrowingWord(int line) : word_{.text = {}, .line = line, .joins = {}} {}
  void add(char c) {
    has_command_ = has_command_ || (c == '(' && word_.text.ends_with('$'));
    open_ += c == '(' ? 1 : c == ')' ? -1 : 0;
    word_.text += c;
  }
  /// Continues the word on the next line, which is `line`.
  void join(int line) {
    if (word_.text.empty()) {
      word_.line = line;
    } else {
      word_.joins.push_back(word_.text.size());
    }
  }
  [[nodiscard]] bool in_expansion() const { return has_command_ ? open_ > 0 : word_.text.ends_with('$'); }
  [[nodiscard]] ShellWord word() && { return std::move(word_); }

 private:
  ShellWord word_;
  bool has_command_ = false;  // the word contains $(
  std::int64_t open_ = 0;
};

/// A string to split, the line on which it begins, and the places where a backslash joined two lines.
struct TextAtLine {
  std::string_view text;
  int line = 1;
  std::vector<std::size_t> joins;
};

class Splitter {
 public:
  explicit Splitter(TextAtLine source)
      : text_(source.text), line_(source.line), earlier_joins_(std::move(source.joins)) {}

  const std::vector<ShellWord>& words() {
    while (at_ < text_.size()) {
      while (begins_joined_line()) {
        ++line_;
      }
      if (is_blank(text_[at_])) {
        note_array();
        line_ += text_[at_++] == '\n' ? 1 : 0;
      } else if (text_[at_] == '#') {
        at_ = std::min(text_.find('\n', at_), text_.size());
      } else {
        if (ShellWord word = next(); !word.text.empty()) {
          words_.push_back(std::move(word));
        }
      }
    }
    return words_;
  }

  /// Maps the index of the first word in every NAME=(...) to the index after its last word. Valid after words() has
  /// run.
  [[nodiscard]] const std::map<std::size_t, std::size_t>& arrays() const { return arrays_; }

 private:
  void note_array() {
    if (text_[at_] == '(' && at_ > 0 && text_[at_ - 1] == '=' && !words_.empty()) {
      array_ = words_.size();
    } else if (text_[at_] == ')' && array_ > 0) {
      arrays_[std::exchange(array_, 0)] = words_.size();
    }
  }

  /// Returns true once for each line that begins at or before the current place and that a backslash joined to the line
  /// before.
  bool begins_joined_line() {
    const bool begins = next_join_ < earlier_joins_.size() && earlier_joins_[next_join_] <= at_;
    next_join_ += begins ? 1 : 0;
    return begins;
  }

  ShellWord next() {
    GrowingWord word(line_);
    char quote = '\0';
    for (; at_ < text_.size(); ++at_) {
      while (begins_joined_line()) {
        word.join(++line_);
      }
      const char c = text_[at_];
      if (quote == '\0' && is_blank(c) && !word.in_expansion()) {
        break;
      }
      line_ += c == '\n' ? 1 : 0;
      if (c == '\\' && quote != '\'' && at_ + 1 < text_.size()) {
        at_ += text_.substr(at_ + 1).starts_with("\r\n") ? 2 : 1;
        if (text_[at_] == '\n') {
          word.join(++line_);
        } else {
          word.add(text_[at_]);
        }
      } else if (c == quote) {
        quote = '\0';
      } else if (quote == '\0' && (c == '"' || c == '\'')) {
        quote = c;
      } else {
        word.add(c);
      }
    }
    return std::move(word).word();
  }

  std::string_view text_;
  std::size_t at_ = 0;
  int line_ = 1;
  std::vector<std::size_t> earlier_joins_;
  std::size_t next_join_ = 0;
  std::vector<ShellWord> words_;
  std::size_t array_ = 0;  // first word of the array that is open
  std::map<std::size_t, std::size_t> arrays_;
};

/// Each level reads its input once, so a small number of levels keeps the work proportional to the size of the text.
constexpr int max_levels = 8;

/// Returns the last part of a word as a string of its own.
TextAtLine end_of(const ShellWord& word, std::string_view end) {
  const std::size_t begin = word.text.size() - end.size();
  TextAtLine source{.text = end, .line = word.line, .joins = {}};
  for (const std::size_t join : word.joins) {
    if (join <= begin) {
      ++source.line;
    } else {
      source.joins.push_back(join - begin);
    }
  }
  return source;
}

void add_words(TextAtLine source, int level, std::vector<ShellWord>& words) {
  Splitter splitter(std::move(source));
  for (const ShellWord& word : splitter.words()) {
    const Assigned assignment = assigned(word.text);
    const bool is_pair = word.text.starts_with("--") && word.text.find_first_of(" \t\n") != std::string::npos;
    if (level < max_levels && is_pair) {  // "--flag value" in an array that is expanded without quotes
      add_words(end_of(word, word.text), level + 1, words);
    } else if (level < max_levels && !assignment.name.empty() &&
               assignment.value.find("--") != std::string_view::npos) {
      add_words(end_of(word, assignment.value), level + 1, words);
    } else {
      words.push_back(word);
    }
  }
}

// --- variables -------------------------------------------------------------------------------------------------------

/// A reference $NAME, ${NAME} or ${NAME:-fallback}.
struct Reference {
  std::string_view name;
  std::optional<std::string_view> fallback;
};

/// Removes the reference at the start of `rest`, after its dollar sign, and returns it. Returns nothing for any other
/// expression.
std::optional<Reference> take_reference(std::string_view& rest) {
  const bool braced = rest.starts_with('{');
  rest.remove_prefix(braced ? 1 : 0);
  const auto end = std::find_if_not(rest.begin(), rest.end(), is_name);
  Reference reference{rest.substr(0, static_cast<std::size_t>(end - rest.begin())), std::nullopt};
  rest.remove_prefix(reference.name.size());
  if (braced) {
    const std::size_t close = rest.find('}');
    if (close == std::string_view::npos || (close > 0 && !rest.starts_with(":-"))) {
      return std::nullopt;
    }
    reference.fallback = close > 0 ? std::optional(rest.substr(2, close - 2)) : std::nullopt;
    rest.remove_prefix(close + 1);
  }
  return reference.name.empty() ? std::nullopt : std::optional(reference);
}

/// Returns whether the value is ${NAME:-...} with the variable's own name; such a value keeps the variable's earlier
/// value.
bool is_own_fallback(std::string_view name, std::string_view value) {
  if (!value.starts_with('$')) {
    return false;
  }
  value.remove_prefix(1);
  const std::optional<Reference> reference = take_reference(value);
  return reference && value.empty() && reference->name == name;
}

/// Expands a string and, recursively, the variables that it names. A variable is unknown inside its own value, which
/// breaks cycles and makes X=${X:-1} use its fallback.
class Expansion {
 public:
  explicit Expansion(const Variables& variables) : variables_(variables) {}

  std::optional<std::string> of(std::string_view text) {
    open_.push_back({text, {}});
    while (!open_.empty()) {
      std::string_view& rest = open_.back().rest;
      const std::size_t dollar = std::min(rest.find('$'), rest.size());
      put(rest.substr(0, dollar));
      rest.remove_prefix(dollar);
      if (rest.empty()) {
        names_.erase(open_.back().name);
        open_.pop_back();
        continue;
      }
      rest.remove_prefix(1);
      const std::optional<Reference> reference = take_reference(rest);
      if (!reference || !begin_value(*reference) || work_ > longest_expansion) {
        return std::nullopt;
      }
    }
    return work_ > longest_expansion ? std::nullopt : std::optional(std::move(expanded_));
  }

 private:
  struct Open {
    std::string_view rest;
    std::string_view name;  // the variable with this value; empty for the text itself and for fallbacks
  };

  /// Makes the variable's value, or its fallback, the next text to expand. Returns false if it has neither.
  bool begin_value(const Reference& reference) {
    ++work_;  // counts empty values too
    const auto variable = variables_.find(reference.name);
    if (variable != variables_.end() && names_.insert(reference.name).second) {
      open_.push_back({variable->second, reference.name});
      return true;
    }
    open_.push_back({reference.fallback.value_or(""), {}});
    return reference.fallback.has_value();
  }

  void put(std::string_view text) {
    work_ += text.size();
    if (work_ <= longest_expansion) {
      expanded_ += text;
    }
  }

  const Variables& variables_;
  std::vector<Open> open_;
  std::set<std::string_view> names_;  // variables whose values are being expanded
  std::string expanded_;
  std::size_t work_ = 0;
};

/// Returns whether a string contains $NAME or ${NAME.
bool uses(std::string_view text, std::string_view name) {
  for (std::size_t at = text.find(name); at != std::string_view::npos; at = text.find(name, at + 1)) {
    const std::string_view before = text.substr(0, at);
    const std::size_t end = at + name.size();
    if ((before.ends_with('$') || before.ends_with("${")) && (end == text.size() || !is_name(text[end]))) {
      return true;
    }
  }
  return false;
}

bool has_flag(std::string_view value) { return value.find("--") != std::string_view::npos; }

std::string joined(const std::vector<ShellWord>& words, std::size_t begin, std::size_t end) {
  std::string text;
  for (std::size_t i = begin; i < end; ++i) {
    text += (i > begin ? " " : "") + words[i].text;
  }
  return text;
}

}  // namespace

std::vector<ShellWord> shell_words(std::string_view text) {
  std::vector<ShellWord> words;
  add_words({.text = text, .line = 1, .joins = {}}, 0, words);
  return words;
}

Variables assignments(const std::vector<ShellWord>& words) {
  Variables variables;
  for (const ShellWord& word : words) {
    const Assigned assignment = assigned(word.text);
    if (assignment.name.empty()) {
      continue;
    }
    const auto [known, is_new] = variables.emplace(assignment.name, assignment.value);
    if (!is_new && assignment.appends) {
      known->second += assignment.value;
    } else if (!is_new && !is_own_fallback(assignment.name, assignment.value)) {
      known->second = assignment.value;
    }
  }
  return variables;
}

std::vector<Reassigned> reassigned(std::string_view text) {
  constexpr std::size_t max_values = 8;
  constexpr std::size_t max_names = 50;  // bounds the work: the whole text is searched for each name
  Splitter splitter({.text = text, .line = 1, .joins = {}});
  const std::vector<ShellWord>& words = splitter.words();
  std::map<std::string_view, std::vector<std::string>> values;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const Assigned assignment = assigned(words[i].text);
    const auto array = splitter.arrays().find(i + 1);
    const bool is_array = assignment.value.empty() && array != splitter.arrays().end();
    const std::string value = is_array ? joined(words, i + 1, array->second) : std::string(assignment.value);
    if (assignment.name.empty() || assignment.appends || uses(value, assignment.name)) {
      continue;
    }
    std::vector<std::string>& seen_values = values[assignment.name];
    if (seen_values.size() < max_values && std::ranges::find(seen_values, value) == seen_values.end()) {
      seen_values.push_back(value);
    }
  }
  std::vector<Reassigned> reassigned_names;
  std::size_t searched_names = 0;
  for (auto& [name, seen_values] : values) {
    if (seen_values.size() > 1 && searched_names++ < max_names && uses(text, name)) {
      const bool holds_flags = std::ranges::any_of(seen_values, &has_flag);
      reassigned_names.push_back({std::string(name), std::move(seen_values), holds_flags});
    }
  }
  return reassigned_names;
}

std::optional<std::string> expanded(std::string_view text, const Variables& variables) {
  return Expansion(variables).of(text);
}

}  // namespace commfuse::import
