// SPDX-License-Identifier: Apache-2.0
#include "reports/pages.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <vector>

#include "model/build_info.h"
#include "model/check.h"

namespace commfuse {

namespace {

using Visit = std::function<void(const CommandEntry&)>;

/// A command before those below it.
void for_all(const CommandEntry& command, const Visit& visit) {
  visit(command);
  for (const CommandEntry& below : command.commands) {
    for_all(below, visit);
  }
}

std::string words_of(const CommandEntry& command) { return fmt::format("{}", fmt::join(command.path, " ")); }

std::string replaced(std::string text, std::string_view from, std::string_view to) {
  for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
  }
  return text;
}

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

/// roff: backslashes and dashes stand for themselves, and no line is a request.
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
  for_all(program, [&](const CommandEntry& command) {
    if (&command != &program) {
      text += fmt::format(".SS {}\n{}.\n{}{}", roff(words_of(command)), roff(command.doc), man_options(command),
                          man_footer(command));
    }
  });
  return text + ".SH EXAMPLES\n" + man_footer(program);
}

std::string markdown(const CommandEntry& program) {
  std::string text;
  for_all(program, [&](const CommandEntry& command) {
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

/// What may stand behind the words of a command: commands and flags.
std::vector<std::string> followers(const CommandEntry& command) {
  std::vector<std::string> words;
  for (const CommandEntry& below : command.commands) {
    words.push_back(below.path.back());
  }
  for (const OptionEntry& option : command.options) {
    if (!option.by_place) {
      words.push_back(option.names.back());
    }
  }
  return words;
}

/// The words of the line up to the cursor that are commands choose the list; anything else is a file.
std::string bash(const CommandEntry& program) {
  const std::string& name = program.path.front();
  const std::string function = "_" + replaced(name, "-", "_");
  std::string text = fmt::format(
      "# bash completion of {} {}\n{}() {{\n  local at={} word i\n  for ((i = 1; i < COMP_CWORD; i++)); do\n"
      "    word=${{COMP_WORDS[i]}}\n    case \"$at $word\" in\n",
      name, build_info().version, function, name);
  for_all(program, [&](const CommandEntry& command) {
    if (&command != &program) {
      text += fmt::format("      '{0}') at='{0}' ;;\n", words_of(command));
    }
  });
  text += "    esac\n  done\n  local words=\n  case $at in\n";
  for_all(program, [&](const CommandEntry& command) {
    text += fmt::format("    '{}') words='{}' ;;\n", words_of(command), fmt::join(followers(command), " "));
  });
  return text + fmt::format(
                    "  esac\n  mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"${{COMP_WORDS[COMP_CWORD]}}\")\n"
                    "}}\ncomplete -o default -F {} {}\n",
                    function, name);
}

std::string zsh(const CommandEntry& program) {
  return "#compdef " + program.path.front() + "\nautoload -U +X bashcompinit && bashcompinit\n" + bash(program);
}

std::string in_single_quotes(const std::string& text) {
  return "'" + replaced(replaced(text, "\\", "\\\\"), "'", "\\'") + "'";
}

std::string fish(const CommandEntry& program) {
  const std::string& name = program.path.front();
  std::string text = fmt::format("# fish completion of {} {}\n", name, build_info().version);
  for_all(program, [&](const CommandEntry& command) {
    std::string when = "__fish_use_subcommand";
    if (&command != &program) {
      when.clear();
      for (std::size_t i = 1; i < command.path.size(); ++i) {
        when += fmt::format("{}__fish_seen_subcommand_from {}", i == 1 ? "" : "; and ", command.path[i]);
      }
    }
    for (const CommandEntry& below : command.commands) {
      text += fmt::format("complete -c {} -n '{}' -a {} -d {}\n", name, when, below.path.back(),
                          in_single_quotes(below.doc));
    }
    for (const OptionEntry& option : command.options) {
      if (!option.by_place) {
        text += fmt::format("complete -c {} -n '{}' -l {}{} -d {}\n", name, when, option.names.back().substr(2),
                            option.value.empty() ? "" : " -r", in_single_quotes(option.doc));
      }
    }
  });
  return text;
}

}  // namespace

std::string page_of(const CommandEntry& program, std::string_view form) {
  if (form == "man") {
    return man(program);
  }
  if (form == "bash") {
    return bash(program);
  }
  if (form == "zsh") {
    return zsh(program);
  }
  if (form == "fish") {
    return fish(program);
  }
  check(form == "markdown", "the form is one of page_forms");
  return markdown(program);
}

}  // namespace commfuse
