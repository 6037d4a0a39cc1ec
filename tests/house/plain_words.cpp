// SPDX-License-Identifier: Apache-2.0
#include "tests/house/plain_words.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <fstream>
#include <iterator>
#include <optional>
#include <utility>

namespace fs = std::filesystem;

namespace commfuse::house {

namespace {

// Folders of the root with C++ sources, without build folders.
constexpr std::array<std::string_view, 9> rooms{"bench",   "cmake", "model", "page",    "python",
                                                "reports", "sim",   "tests", "validate"};

constexpr double largest_share = 0.003;

// A comment that begins with one of these is nearly always a bare noun clause that has lost its subject.
constexpr std::array<std::string_view, 14> fragments{"of",    "so many", "so much", "those",   "the same",
                                                     "as",    "how",     "what",    "whether", "where",
                                                     "whose", "who",     "which",   "that of"};

constexpr std::array<std::string_view, 8> names{"one", "all", "here", "there", "found", "most", "own", "some"};

struct AllowedName {
  std::string_view path;
  std::string_view code;  // part of the line that may keep its name
  std::string_view reason;
};

constexpr std::string_view is_member = "a public member that other rooms use; it is read with its object before it";
constexpr std::string_view is_enumerator = "an enumerator; it is read with its type before it";
constexpr std::array allowed_names{
    AllowedName{"model/describe/setting.h", "std::int64_t least = 1, most = 1;", is_member},
    AllowedName{"model/describe/setting.h", ".most = most,", is_member},
    AllowedName{"model/config/yaml_reader.h", "T most;", is_member},
    AllowedName{"model/describe/describe.h", "double least = 0.0, most = 0.0;", is_member},
    AllowedName{"model/describe/describe.h", "false, least, most}", is_member},
    AllowedName{"model/hardware/fit_scope.h", "std::int64_t most = 0;", is_member},
    AllowedName{"model/program/program.h", "Region here;", is_member},
    AllowedName{"model/config/hf_families.h", "  all,", is_enumerator},
    AllowedName{"model/config/hf_quantization.cpp", "experts, all, other", is_enumerator},
    AllowedName{"model/proof/symmetry.h", "  all,", is_enumerator},
    AllowedName{"model/strategies/fuse_steps.h", "{ two, all }", is_enumerator},
    AllowedName{"sim/replay/replay.h", "    all,", is_enumerator},
    AllowedName{"validate/health/check_list.h", "std::string found{};", is_member},
    AllowedName{"validate/health/health_check.h", "std::string found;", is_member},
    AllowedName{"model/strategies/options.h", "{ one, halves, shards }", is_enumerator},
};

bool is_name_letter(char letter) { return std::isalnum(static_cast<unsigned char>(letter)) != 0 || letter == '_'; }

std::string in_lower_case(std::string_view text) {
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char letter) { return static_cast<char>(std::tolower(letter)); });
  return lower;
}

struct Comment {
  std::size_t line = 0;
  std::size_t last_line = 0;
  std::size_t column = 0;
  std::string text;
};

/// A source split into code, with blanks for comments and literals, and comments.
struct Source {
  std::string code;
  std::vector<Comment> comments;
};

/// Splits a source. Recognizes `//`, `/* */`, strings, raw strings and characters.
class Splitter {
 public:
  explicit Splitter(std::string_view text) : text_(text) {}

  Source split() {
    while (at_ < text_.size()) {
      const std::string_view rest = text_.substr(at_);
      if (rest.starts_with("//")) {
        take_comment(rest.substr(0, rest.find('\n')));
      } else if (rest.starts_with("/*")) {
        blank(rest.find("*/", 2), 2);
      } else if (rest.starts_with("R\"") && !follows_name()) {
        const std::string end = ")" + std::string(rest.substr(2, rest.find('(') - 2)) + "\"";
        blank(rest.find(end), end.size());
      } else if (rest.front() == '"' || (rest.front() == '\'' && !follows_name())) {
        blank(end_of_literal(rest), 1);
      } else {
        take(rest.front());
      }
    }
    return std::move(source_);
  }

 private:
  [[nodiscard]] bool follows_name() const { return !source_.code.empty() && is_name_letter(source_.code.back()); }

  static std::size_t end_of_literal(std::string_view literal) {
    std::size_t end = 1;
    while (end < literal.size() && literal[end] != literal.front()) {
      end += literal[end] == '\\' ? 2 : 1;
    }
    return end;
  }

  void take(char letter) {
    source_.code += letter;
    ++at_;
    ++column_;
    if (letter == '\n') {
      ++line_;
      column_ = 0;
    }
  }

  /// Blanks everything before `end` and the `length` characters of the end itself.
  void blank(std::size_t end, std::size_t length) {
    const std::size_t stop = end == std::string_view::npos ? text_.size() : std::min(text_.size(), at_ + end + length);
    while (at_ < stop) {
      const char letter = text_[at_];
      take(letter);
      source_.code.back() = letter == '\n' ? '\n' : ' ';
    }
  }

  /// Adds a comment, or another line of the comment above it.
  void take_comment(std::string_view comment) {
    std::string_view text = comment.substr(std::min(comment.find_first_not_of("/<"), comment.size()));
    text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
    const std::size_t begin = source_.code.rfind('\n') + 1;  // npos + 1 is the start of the first line
    const bool is_alone = source_.code.find_first_not_of(' ', begin) == std::string::npos;
    std::vector<Comment>& comments = source_.comments;
    if (is_alone && !comments.empty() && comments.back().last_line + 1 == line_ && comments.back().column == column_) {
      comments.back().last_line = line_;
      comments.back().text += " " + std::string(text);
    } else if (!is_marker(text)) {
      comments.push_back({.line = line_, .last_line = line_, .column = column_, .text = std::string(text)});
    }
    blank(comment.size(), 0);
  }

  /// Comments for tools, which are not read as sentences.
  static bool is_marker(std::string_view text) {
    return text.empty() || text.starts_with("SPDX") || text.starts_with("NOLINT") || text.starts_with("namespace") ||
           text.starts_with("clang-format");
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::size_t line_ = 1;
  std::size_t column_ = 0;
  Source source_;
};

/// Returns the fragment that a comment begins with, in lower case.
std::optional<std::string_view> fragment_of(std::string_view comment) {
  const std::string beginning = in_lower_case(comment.substr(0, 16));
  const auto* const fragment = std::find_if(fragments.begin(), fragments.end(), [&](std::string_view candidate) {
    return beginning.starts_with(candidate) &&
           (beginning.size() == candidate.size() || !is_name_letter(beginning[candidate.size()]));
  });
  return fragment == fragments.end() ? std::nullopt : std::optional(*fragment);
}

/// Returns the C++ files of a folder, without those of the folders below it, in order of path.
std::vector<fs::path> sources_in(const fs::path& folder) {
  std::vector<fs::path> sources;
  if (fs::is_directory(folder)) {
    for (const auto& entry : fs::directory_iterator(folder)) {
      const std::string extension = entry.path().extension().string();
      if (extension == ".cpp" || extension == ".h" || extension == ".cu" || extension == ".cuh") {
        sources.push_back(entry.path());
      }
    }
  }
  std::sort(sources.begin(), sources.end());
  return sources;
}

/// Returns the folders of all rooms, at any depth, in order of path.
std::vector<fs::path> source_folders(const fs::path& root) {
  std::vector<fs::path> folders;
  for (const std::string_view room : rooms) {
    if (!fs::is_directory(root / room)) {
      continue;
    }
    folders.push_back(root / room);
    for (auto entry = fs::recursive_directory_iterator(root / room); entry != fs::recursive_directory_iterator();
         ++entry) {
      if (entry->is_directory() && entry->path().filename() == "build") {
        entry.disable_recursion_pending();  // setup.py compiles the Python module there
      } else if (entry->is_directory()) {
        folders.push_back(entry->path());
      }
    }
  }
  std::sort(folders.begin(), folders.end());
  return folders;
}

Source source_of(const fs::path& file) {
  std::ifstream in(file);
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  return Splitter(text).split();
}

/// Adds the breaches of one line. `path` and `number` appear in the sentences.
void find_names(std::string_view line, const std::string& path, std::size_t number,
                std::vector<std::string>& breaches) {
  for (std::size_t at = 0; at < line.size();) {
    if (!is_name_letter(line[at])) {
      ++at;
      continue;
    }
    std::size_t end = at;
    while (end < line.size() && is_name_letter(line[end])) {
      ++end;
    }
    std::string_view name = line.substr(at, end - at);
    name.remove_suffix(name.ends_with('_') ? 1 : 0);
    const std::string lower = in_lower_case(name);  // types may not have these names either
    const std::string_view before = line.substr(0, at);
    const bool is_qualified = before.ends_with('.') || before.ends_with("->") || before.ends_with("::");
    const bool is_retired = !is_qualified && std::find(names.begin(), names.end(), lower) != names.end();
    const bool is_allowed =
        is_retired && std::any_of(allowed_names.begin(), allowed_names.end(), [&](const AllowedName& entry) {
          return path == entry.path && line.find(entry.code) != std::string_view::npos;
        });
    if (is_retired && !is_allowed) {
      breaches.push_back(fmt::format("{}:{}: '{}' does not say what it holds; name its contents", path, number, name));
    }
    at = end;
  }
}

constexpr std::array<std::string_view, 4> test_macros{"TEST(", "TEST_F(", "TEST_P(", "TYPED_TEST("};
constexpr std::size_t longest_test_name = 60;

/// Returns the name of a test, the second argument of the macro that begins at `begin`; empty if no macro begins there.
std::string_view test_name_at(std::string_view code, std::size_t begin) {
  const std::string_view rest = code.substr(begin);
  if (std::none_of(test_macros.begin(), test_macros.end(), [&](auto macro) { return rest.starts_with(macro); })) {
    return {};
  }
  const std::size_t comma = std::min(rest.find(','), rest.size());
  const std::size_t first = std::min(rest.find_first_not_of(" \n", comma + 1), rest.size());
  std::size_t end = first;
  while (end < rest.size() && is_name_letter(rest[end])) {
    ++end;
  }
  std::string_view name = rest.substr(first, end - first);
  constexpr std::string_view disabled = "DISABLED_";  // GoogleTest's word for tests that run only on request
  name.remove_prefix(name.starts_with(disabled) ? disabled.size() : 0);
  return name;
}

}  // namespace

std::vector<std::string> comment_fragments(const fs::path& root) {
  std::vector<std::string> breaches;
  for (const fs::path& folder : source_folders(root)) {
    std::vector<std::string> fragments;
    std::size_t comments = 0;
    for (const fs::path& file : sources_in(folder)) {
      for (const Comment& comment : source_of(file).comments) {
        ++comments;
        if (const auto fragment = fragment_of(comment.text)) {
          fragments.push_back(fmt::format("{}:{}: a comment begins with '{}'; begin with its subject or verb",
                                          file.lexically_relative(root).generic_string(), comment.line, *fragment));
        }
      }
    }
    if (static_cast<double>(fragments.size()) > largest_share * static_cast<double>(comments)) {
      breaches.insert(breaches.end(), fragments.begin(), fragments.end());
    }
  }
  return breaches;
}

namespace {

/// Calls visit(path, number, code, begin) for every line of every source. `code` is the code of the whole source, and
/// `begin` is the index of the line's first character.
template <class Visit>
void for_each_line(const fs::path& root, const Visit& visit) {
  for (const fs::path& folder : source_folders(root)) {
    for (const fs::path& file : sources_in(folder)) {
      const std::string path = file.lexically_relative(root).generic_string();
      const std::string code = source_of(file).code;
      std::size_t number = 1;
      for (std::size_t begin = 0; begin < code.size(); ++number) {
        visit(path, number, std::string_view(code), begin);
        begin = std::min(code.find('\n', begin), code.size()) + 1;
      }
    }
  }
}

}  // namespace

std::vector<std::string> retired_names(const fs::path& root) {
  std::vector<std::string> breaches;
  for_each_line(root, [&](const std::string& path, std::size_t number, std::string_view code, std::size_t begin) {
    const std::size_t end = std::min(code.find('\n', begin), code.size());
    find_names(code.substr(begin, end - begin), path, number, breaches);
  });
  return breaches;
}

std::vector<std::string> odd_test_names(const fs::path& root) {
  std::vector<std::string> breaches;
  for_each_line(root, [&](const std::string& path, std::size_t number, std::string_view code, std::size_t begin) {
    const std::string_view name = test_name_at(code, begin);
    const bool is_camel = !name.empty() && std::isupper(static_cast<unsigned char>(name.front())) != 0 &&
                          name.find('_') == std::string_view::npos && name.size() <= longest_test_name;
    if (!name.empty() && !is_camel) {
      breaches.push_back(fmt::format("{}:{}: test '{}'; name it in CamelCase of at most {} characters", path, number,
                                     name, longest_test_name));
    }
  });
  return breaches;
}

}  // namespace commfuse::house
