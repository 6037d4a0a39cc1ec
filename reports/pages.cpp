// SPDX-License-Identifier: Apache-2.0
#include "reports/pages.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "model/build_info.h"
#include "model/check.h"
#include "reports/command_words.h"
#include "reports/completions.h"

namespace commfuse {

namespace {

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::size_t begin = 0;
  while (begin < text.size()) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    lines.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return lines;
}

/// Escapes text for roff: backslashes and dashes are literal, and the text is no request.
std::string roff(std::string_view text) {
  std::string escaped = replaced(replaced(std::string(text), "\\", "\\e"), "-", "\\-");
  return !escaped.empty() && (escaped.front() == '.' || escaped.front() == '\'') ? "\\&" + escaped : escaped;
}

std::string man_options(const CommandEntry& command) {
  std::string text;
  for (const OptionEntry& option : command.options) {
    text += fmt::format(".TP\n\\fB{}\\fR{}\n{}\n", roff(fmt::format("{}", fmt::join(option.names, ", "))),
                        option.value.empty() ? "" : " \\fI" + roff(option.value) + "\\fR", roff(option.doc));
  }
  return text;
}

std::string man_footer(const CommandEntry& command) {
  std::string text;
  for (const std::string& line : lines_of(command.footer)) {
    text += roff(line) + "\n";
  }
  return text.empty() ? text : fmt::format(".PP\n.nf\n{}.fi\n", text);
}

std::string man(const CommandEntry& program) {
  const std::string& name = program.path.front();
  std::string text = fmt::format(".TH {} 1 \"\" \"{} {}\" \"User Commands\"\n.SH NAME\n{} \\- {}\n.SH SYNOPSIS\n", name,
                                 name, build_info().version, roff(name), roff(program.doc));
  text +=
      fmt::format("\\fB{}\\fR \\fICOMMAND\\fR [\\fIOPTIONS\\fR]\n.SH OPTIONS\n{}", roff(name), man_options(program));
  text += ".SH COMMANDS\n";
  for_each_command(program, [&](const CommandEntry& command) {
    if (&command != &program) {
      text += fmt::format(".SS {}\n{}.\n{}{}", roff(words_of(command)), roff(command.doc), man_options(command),
                          man_footer(command));
    }
  });
  return text + ".SH EXAMPLES\n" + man_footer(program);
}

std::string markdown(const CommandEntry& program) {
  std::string text;
  for_each_command(program, [&](const CommandEntry& command) {
    text += fmt::format("{} `{}`\n\n{}.\n\n", &command == &program ? "#" : "##", words_of(command), command.doc);
    for (const OptionEntry& option : command.options) {
      text += fmt::format("- `{}{}{}`: {}\n", fmt::join(option.names, ", "), option.value.empty() ? "" : " ",
                          option.value, replaced(replaced(option.doc, "<", "&lt;"), "*", "\\*"));
    }
    text += "\n";
    if (!command.footer.empty()) {
      text += fmt::format("```text\n{}\n```\n\n", fmt::join(lines_of(command.footer), "\n"));
    }
  });
  return text;
}

}  // namespace

std::string render_page(const CommandEntry& program, std::string_view format) {
  if (format == "man") {
    return man(program);
  }
  if (format == "bash") {
    return bash_completion(program);
  }
  if (format == "zsh") {
    return zsh_completion(program);
  }
  if (format == "fish") {
    return fish_completion(program);
  }
  check(format == "markdown", "the format is one of page_formats");
  return markdown(program);
}

}  // namespace commfuse
