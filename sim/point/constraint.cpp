// SPDX-License-Identifier: Apache-2.0
#include "sim/point/constraint.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "model/check.h"
#include "model/text/misread.h"
#include "model/text/quantity.h"
#include "model/text/suggest.h"

namespace commfuse {

namespace {

constexpr std::array<std::string_view, 6> comparisons{"==", "!=", "<=", ">=", "<", ">"};
constexpr std::string_view example = "as in \"batch*seq == 128K\"";
constexpr std::size_t deepest_nesting = 64;

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_word(char c) { return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '.'; }

std::string remedy_for_count(std::string_view wrong) {
  std::vector<std::string_view> known;
  for (const Field& field : run_fields()) {
    if (field.type == FieldType::count && field.of_point) {
      known.push_back(field.key);
      if (field.flag == wrong) {
        return fmt::format("did you mean '{}'?", field.key);
      }
    }
  }
  return remedy_for(wrong, known, "numbers");
}

bool compare(std::string_view comparison, std::int64_t a, std::int64_t b) {
  if (comparison == "==") {
    return a == b;
  }
  if (comparison == "!=") {
    return a != b;
  }
  if (comparison == "<=") {
    return a <= b;
  }
  if (comparison == ">=") {
    return a >= b;
  }
  return comparison == "<" ? a < b : a > b;
}

std::int64_t calculate(std::string_view operation, std::int64_t a, std::int64_t b, std::size_t column) {
  const bool divides = operation == "/" || operation == "%";
  if (divides && b == 0) {
    throw ConstraintError(column, fmt::format("'{}' divides by 0 at a point; change the divisor", operation));
  }
  std::int64_t result = 0;
  // The only quotient that overflows is the smallest number divided by -1.
  const bool overflows = operation == "+"   ? __builtin_add_overflow(a, b, &result)
                         : operation == "-" ? __builtin_sub_overflow(a, b, &result)
                         : operation == "*" ? __builtin_mul_overflow(a, b, &result)
                                            : b == -1 && __builtin_sub_overflow(std::int64_t{0}, a, &result);
  if (overflows) {
    throw ConstraintError(column, fmt::format("'{}' exceeds 64 bits at a point; use smaller numbers", operation));
  }
  if (divides && b != -1) {
    result = operation == "/" ? a / b : a % b;
  } else if (operation == "%") {
    result = 0;
  }
  return result;
}

}  // namespace

/// Recursive descent: comparison = sum op sum; sum = term {+- term}; term = factor {*/% factor}; factor = number, name,
/// -factor, (sum).
class ConstraintParser {
 public:
  explicit ConstraintParser(Constraint& constraint) : constraint_(constraint), text_(constraint.text_) {}

  void parse() {
    sum();
    skip_blanks();
    const std::size_t column = at_;
    const std::string_view symbol = comparison();
    sum();
    skip_blanks();
    if (at_ < text_.size()) {
      refuse(at_,
             fmt::format("{} is not expected here; compare two sums once, {}", in_quotes(text_.substr(at_)), example));
    }
    operation(symbol, column);
  }

 private:
  [[noreturn]] static void refuse(std::size_t column, const std::string& message) {
    throw ConstraintError(column, message);
  }

  void skip_blanks() {
    while (at_ < text_.size() && text_[at_] == ' ') {
      ++at_;
    }
  }

  /// Returns the next character if it is one of `wanted`, otherwise 0.
  char take(std::string_view wanted) {
    skip_blanks();
    return at_ < text_.size() && wanted.find(text_[at_]) != std::string_view::npos ? text_[at_++] : '\0';
  }

  void operation(std::string_view symbol, std::size_t column) {
    constraint_.steps_.push_back({.kind = Constraint::Kind::operation, .operation = symbol, .column = column});
  }

  std::string_view comparison() {
    for (const std::string_view symbol : comparisons) {
      if (text_.substr(at_, symbol.size()) == symbol) {
        at_ += symbol.size();
        return symbol;
      }
    }
    if (at_ == text_.size()) {
      refuse(at_, fmt::format("it ends without a comparison; add one of ==, !=, <, <=, >, >=, {}", example));
    }
    refuse(at_, fmt::format("{} is not a comparison; write one of ==, !=, <, <=, >, >=, {}", in_quotes(letter_here()),
                            example));
  }

  /// Returns all UTF-8 bytes of the next character.
  [[nodiscard]] std::string_view letter_here() const {
    std::size_t end = at_ + 1;
    while (end < text_.size() && (static_cast<unsigned char>(text_[end]) & 0xc0U) == 0x80U) {
      ++end;
    }
    return text_.substr(at_, end - at_);
  }

  void sum() {
    term();
    while (const char sign = take("+-")) {
      const std::size_t column = at_ - 1;
      term();
      operation(sign == '+' ? "+" : "-", column);
    }
  }

  void term() {
    factor();
    while (const char sign = take("*/%")) {
      const std::size_t column = at_ - 1;
      factor();
      operation(sign == '*' ? "*" : sign == '/' ? "/" : "%", column);
    }
  }

  void factor() {
    skip_blanks();
    if (++depth_ > deepest_nesting) {
      refuse(at_, fmt::format("more than {} nested parentheses and signs; simplify it", deepest_nesting));
    }
    const std::size_t column = at_;
    if (take("(") != '\0') {
      sum();
      if (take(")") == '\0') {
        refuse(at_, "')' is missing; close the parenthesis");
      }
    } else if (take("-") != '\0') {
      factor();
      operation("neg", column);
    } else {
      word();
    }
    --depth_;
  }

  void word() {
    const std::size_t column = at_;
    while (at_ < text_.size() && is_word(text_[at_])) {
      ++at_;
    }
    const std::string_view word = text_.substr(column, at_ - column);
    if (word.empty()) {
      refuse(column, column == text_.size()
                         ? fmt::format("it ends where a number or a setting is expected; complete it, {}", example)
                         : fmt::format("{} is neither a number nor a setting; write one, {}", in_quotes(letter_here()),
                                       example));
    }
    is_digit(word[0]) ? number(word, column) : setting(word, column);
  }

  void number(std::string_view word, std::size_t column) {
    const std::optional<std::int64_t> value = parse_count(word);
    if (!value) {
      refuse(column, misread(word, "a whole number", "write one, such as 4K"));
    }
    constraint_.steps_.push_back({.kind = Constraint::Kind::number, .number = *value, .column = column});
  }

  void setting(std::string_view word, std::size_t column) {
    const Field* field = find_field(word);
    if (field == nullptr) {
      refuse(column, fmt::format("unknown setting {}; {}", in_quotes(word), remedy_for_count(word)));
    }
    if (field->type != FieldType::count || !field->of_point) {
      refuse(column, fmt::format("'{}' is not a numeric setting; {}", word, remedy_for_count("")));
    }
    constraint_.steps_.push_back({.kind = Constraint::Kind::setting, .field = field, .column = column});
  }

  Constraint& constraint_;
  std::string_view text_;
  std::size_t at_ = 0;
  std::size_t depth_ = 0;
};

Constraint::Constraint(std::string_view text) : text_(text) { ConstraintParser(*this).parse(); }

bool Constraint::holds(const Settings& settings) const {
  std::vector<std::int64_t> stack;
  for (const Step& step : steps_) {
    if (step.kind == Kind::number) {
      stack.push_back(step.number);
    } else if (step.kind == Kind::setting) {
      if (settings.at(*step.field).text.empty()) {
        throw ConstraintError(step.column, fmt::format("'{0}' has no value at a point; set it, as in {0}: {1}",
                                                       step.field->key, step.field->example));
      }
      stack.push_back(settings.count(step.field->key));
    } else if (step.operation == "neg") {
      stack.back() = calculate("-", 0, stack.back(), step.column);
    } else {
      const std::int64_t right = stack.back();
      stack.pop_back();
      const bool compares = std::find(comparisons.begin(), comparisons.end(), step.operation) != comparisons.end();
      stack.back() = compares ? compare(step.operation, stack.back(), right)
                              : calculate(step.operation, stack.back(), right, step.column);
    }
  }
  check(stack.size() == 1, "a constraint leaves one value");
  return stack.front() != 0;
}

}  // namespace commfuse
