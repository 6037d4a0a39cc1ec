// SPDX-License-Identifier: Apache-2.0
#include "tests/cli/doc_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>
#include <regex>
#include <sstream>
#include <string_view>

namespace commfuse::test {

Lines lines_of(const std::string& text) {
  std::istringstream in(text);
  Lines lines;
  for (std::string line; std::getline(in, line);) {
    lines.push_back(line);
  }
  return lines;
}

std::string text_of(const Lines& lines) {
  std::string text;
  for (const std::string& line : lines) {
    text += line + "\n";
  }
  return text;
}

namespace {

constexpr std::string_view mark_begins = "<!-- test: ";
constexpr std::string_view mark_ends = " -->";

/// Returns the exit codes in `words`, which may be `4` or `0 or 4`; none if `words` has another form.
std::vector<int> exit_codes(const std::string& words) {
  std::smatch codes;
  if (!std::regex_match(words, codes, std::regex("([0-9]{1,3})(?: or ([0-9]{1,3}))?"))) {
    return {};
  }
  return codes[2].matched ? std::vector{std::stoi(codes[1]), std::stoi(codes[2])} : std::vector{std::stoi(codes[1])};
}

/// Returns whether a line of a block that is neither `console` nor a file is a command.
bool is_command(std::string_view line) {
  constexpr std::array words{"commfuse-sim", "commfuse-validate", "./dev", "mpirun", "srun",
                             "sbatch",       "torchrun",          "cmake", "ctest",  "git",
                             "docker",       "apt-get",           "$"};
  const std::size_t begin = line.find_first_not_of(' ');
  line.remove_prefix(begin == std::string_view::npos ? line.size() : begin);
  return std::ranges::any_of(words, [&](std::string_view word) {
    return line.starts_with(word) && line.size() > word.size() && line[word.size()] == ' ';
  });
}

/// Reads a page line by line.
class Reader {
 public:
  explicit Reader(const std::string& text) { page_.lines = lines_of(text); }

  DocPage read() {
    for (; at_ < page_.lines.size(); ++at_) {
      const std::string& line = page_.lines[at_];
      if (line.starts_with(mark_begins) && line.ends_with(mark_ends)) {
        mark(line.substr(mark_begins.size(), line.size() - mark_begins.size() - mark_ends.size()));
      } else if (line.starts_with("```")) {
        block(line.substr(3));
        marks_ = {};
      } else {
        complain_if(marks_begun(), "a mark is not directly above its block");
        complain_if(line.starts_with("    ") && is_command(line), "a command outside a console block");
        marks_ = {};
      }
    }
    return std::move(page_);
  }

 private:
  [[nodiscard]] bool marks_begun() const {
    return !marks_.file.empty() || !marks_.skip.empty() || !marks_.needs.empty() || marks_.exits != DocStep{}.exits ||
           marks_.measured || marks_.gpu;
  }

  void complain_if(bool wrong, const std::string& sentence) {
    if (wrong) {
      page_.mistakes.push_back(fmt::format("line {}: {}", at_ + 1, sentence));
    }
  }

  void mark(const std::string& words) {
    const std::size_t space = words.find(' ');
    const std::string key = words.substr(0, space);
    const std::string value = space == std::string::npos ? "" : words.substr(space + 1);
    if (key == "file") {
      marks_.file = value;
    } else if (key == "skip") {
      marks_.skip = value;
    } else if (key == "needs") {
      marks_.needs = value;
    } else if (key == "exit" && !exit_codes(value).empty()) {
      marks_.exits = exit_codes(value);
    } else if (key == "measured") {
      marks_.measured = true;
    } else if (key == "gpu") {
      marks_.gpu = true;
    } else {
      complain_if(true, "unknown mark '" + words + "'");
    }
  }

  void block(const std::string& kind) {
    const std::size_t opened = at_++;
    const bool is_console = kind == "console";
    complain_if(is_console && !marks_.file.empty(), "a console block is not a file");
    if (!marks_.file.empty()) {
      begin("", at_);
    }
    for (; at_ < page_.lines.size() && !page_.lines[at_].starts_with("```"); ++at_) {
      if (is_console) {
        console_line();
      } else if (!marks_.file.empty()) {
        page_.steps.back().lines.push_back(page_.lines[at_]);
      } else {
        complain_if(is_command(page_.lines[at_]), "a command outside a console block");
      }
    }
    complain_if(at_ == page_.lines.size(), fmt::format("the block of line {} has no end", opened + 1));
    in_console_ = false;
  }

  void begin(const std::string& command, std::size_t first) {
    page_.steps.push_back(marks_);
    page_.steps.back().command = command;
    page_.steps.back().begin = first;
  }

  void console_line() {
    const std::string& line = page_.lines[at_];
    if (line.starts_with("$ ")) {
      std::string command = line.substr(2);
      while (command.ends_with('\\') && at_ + 1 < page_.lines.size()) {
        command += "\n" + page_.lines[++at_];
      }
      begin(command, at_ + 1);
      in_console_ = true;
    } else {
      complain_if(!in_console_, "a console block begins with a command");
      if (in_console_) {
        page_.steps.back().lines.push_back(line);
      }
    }
  }

  DocPage page_;
  std::size_t at_ = 0;
  DocStep marks_;
  bool in_console_ = false;
};

}  // namespace

std::vector<std::string> doc_pages() {
  const std::filesystem::path source = COMMFUSE_SOURCE_DIR;
  std::vector<std::string> paths{"CHANGELOG.md", "README.md", "SECURITY.md"};
  for (const auto& entry : std::filesystem::recursive_directory_iterator(source / "docs")) {
    const std::string path = std::filesystem::relative(entry.path(), source);
    if (entry.path().extension() == ".md" && !path.starts_with("docs/decisions/")) {
      paths.push_back(path);
    }
  }
  std::ranges::sort(paths);
  return paths;
}

DocPage read_page(const std::string& text) { return Reader(text).read(); }

std::string with_steps(const DocPage& page, const std::vector<DocStep>& steps) {
  Lines lines;
  std::size_t at = 0;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const DocStep& old = page.steps[i];
    const auto from = page.lines.begin();
    lines.insert(lines.end(), from + static_cast<std::ptrdiff_t>(at), from + static_cast<std::ptrdiff_t>(old.begin));
    lines.insert(lines.end(), steps[i].lines.begin(), steps[i].lines.end());
    at = old.begin + old.lines.size();
  }
  lines.insert(lines.end(), page.lines.begin() + static_cast<std::ptrdiff_t>(at), page.lines.end());
  return text_of(lines);
}

}  // namespace commfuse::test
