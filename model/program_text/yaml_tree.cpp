// SPDX-License-Identifier: Apache-2.0
#include "model/program_text/yaml_tree.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "model/config_error.h"
#include "model/text/yaml_document.h"

namespace commfuse::text {

namespace {

std::string line_of(const std::string& path, const Wrong& wrong) {
  return at_place(path, {wrong.place.line, wrong.place.column}, wrong.message);
}

/// Makes the nodes of a document, and finds the positions of its scalars' characters in the text.
class TreeMaker {
 public:
  TreeMaker(const YamlDocument& document, std::string_view text) : document_(document), text_(text) {
    for (std::size_t i = 0; i < text.size(); ++i) {
      if (text[i] == '\n') {
        line_starts_.push_back(i + 1);
      }
    }
  }

  [[nodiscard]] Node node(std::size_t id) const {
    const YamlNode& from = document_.nodes[id];
    Node made{.place = {from.place.line, from.place.column}};
    switch (from.kind) {
      case YamlKind::null: break;
      case YamlKind::scalar:
        made.kind = Node::Kind::scalar;
        made.scalar = from.text;
        find_letters(made);
        break;
      case YamlKind::list:
        made.kind = Node::Kind::list;
        for (const int item : from.items) {
          made.items.push_back(node(static_cast<std::size_t>(item)));
        }
        break;
      case YamlKind::map:
        made.kind = Node::Kind::map;
        for (const YamlField& field : from.fields) {
          made.keys.push_back(
              {Node::Kind::scalar, {field.place.line, field.place.column}, 0, false, field.key, {}, {}});
          made.items.push_back(node(static_cast<std::size_t>(field.value)));
          if (made.items.back().kind == Node::Kind::empty) {
            made.items.back().place = made.keys.back().place;  // an empty value has no position
          }
        }
        break;
    }
    return made;
  }

 private:
  void find_letters(Node& scalar) const {
    const auto line = static_cast<std::size_t>(scalar.place.line) - 1;
    if (line >= line_starts_.size()) {
      return;
    }
    const std::size_t begin = line_starts_[line] + static_cast<std::size_t>(scalar.place.column) - 1;
    if (begin >= text_.size()) {
      return;
    }
    scalar.quotes = text_[begin] == '"' || text_[begin] == '\'' ? 1 : 0;
    scalar.verbatim = text_.substr(begin + static_cast<std::size_t>(scalar.quotes)).starts_with(scalar.scalar);
  }

  const YamlDocument& document_;
  std::string_view text_;
  std::vector<std::size_t> line_starts_{0};
};

/// Control characters are refused here, because yaml-cpp treats some as the end of the file and interprets NULs as
/// another encoding.
void refuse_control_characters(const std::string& text) {
  Place place;
  for (const char letter : text) {
    const auto code = static_cast<unsigned char>(letter);
    if ((code < 0x20 && letter != '\n' && letter != '\r' && letter != '\t') || code == 0x7f) {
      throw Wrong{place, fmt::format("control character 0x{:02x}; write plain text in UTF-8", code)};
    }
    place = letter == '\n' ? Place{place.line + 1, 1} : Place{place.line, place.column + 1};
  }
}

void refuse_size(const std::string& text) {
  if (text.size() > max_bytes) {
    throw Wrong{{}, fmt::format("{} bytes are too many; a schedule is at most 1 MiB ({})", text.size(), max_bytes)};
  }
}

}  // namespace

Node read_yaml(const std::string& text, const std::string& path) {
  Mistakes mistakes(path);
  mistakes.attempt([&] {
    refuse_size(text);
    refuse_control_characters(text);
  });
  mistakes.report();
  const YamlDocument document = parse_yaml(path, text);
  for (const YamlMistake& mistake : document.mistakes) {
    mistakes.add({{mistake.place.line, mistake.place.column}, mistake.message});
  }
  mistakes.report();
  return TreeMaker(document, text).node(0);
}

void Mistakes::add(const Wrong& wrong) {
  if (wrong.message.empty()) {
    return;
  }
  wrongs_.push_back(wrong);
  if (wrongs_.size() == limit) {
    report();
  }
}

void Mistakes::report() const {
  if (wrongs_.empty()) {
    return;
  }
  std::vector<Wrong> sorted = wrongs_;
  std::stable_sort(sorted.begin(), sorted.end(), [](const Wrong& a, const Wrong& b) { return a.place < b.place; });
  std::string lines;
  for (const Wrong& wrong : sorted) {
    lines += (lines.empty() ? "" : "\n") + line_of(path_, wrong);
  }
  if (wrongs_.size() == limit) {
    lines += fmt::format("\n{}: there may be more mistakes; first correct those listed above", path_);
  }
  throw ConfigError(lines);
}

}  // namespace commfuse::text
