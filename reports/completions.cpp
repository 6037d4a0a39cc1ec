// SPDX-License-Identifier: Apache-2.0
#include "reports/completions.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <iterator>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "model/build_info.h"
#include "model/config/catalogue.h"
#include "model/config/option_marks.h"
#include "reports/command_words.h"

namespace commfuse {

namespace {

std::vector<std::string> flags_of(const CommandEntry& command) {
  std::vector<std::string> words;
  for (const OptionEntry& option : command.options) {
    std::copy_if(option.names.begin(), option.names.end(), std::back_inserter(words),
                 [](const std::string& name) { return name.starts_with("--"); });
  }
  return words;
}

std::vector<std::string> commands_below(const CommandEntry& command) {
  std::vector<std::string> words;
  for (const CommandEntry& below : command.commands) {
    words.push_back(below.path.back());
  }
  return words;
}

/// Returns the first positional argument; null if there is none.
const OptionEntry* first_argument(const CommandEntry& command) {
  const auto argument = std::find_if(command.options.begin(), command.options.end(),
                                     [](const OptionEntry& option) { return option.by_place; });
  return argument == command.options.end() ? nullptr : &*argument;
}

/// Returns the assignments that hold an offer in the bash script.
std::string assignments(OfferKind kind, const std::string& words) {
  constexpr std::array kinds{std::pair(OfferKind::nothing, "nothing"), std::pair(OfferKind::words, "words"),
                             std::pair(OfferKind::names, "names"),     std::pair(OfferKind::settings, "settings"),
                             std::pair(OfferKind::axes, "axes"),       std::pair(OfferKind::files, "files"),
                             std::pair(OfferKind::folders, "folders")};
  const auto* const word =
      std::find_if(kinds.begin(), kinds.end(), [&](const auto& entry) { return entry.first == kind; });
  return fmt::format("kind={} words='{}'", word->second, words);
}

std::string assignments(const Offer& offer) {
  return assignments(offer.kind, offer.kind == OfferKind::names ? std::string(name_of(offer.catalogue))
                                                                : fmt::format("{}", fmt::join(offer.words, " ")));
}

/// Returns the assignments after a command where no flag waits for its value: they offer subcommands, else the first
/// argument, else flags.
std::string assignments_behind(const CommandEntry& command) {
  if (!command.commands.empty()) {
    return assignments(OfferKind::words, fmt::format("{}", fmt::join(commands_below(command), " ")));
  }
  if (const OptionEntry* const argument = first_argument(command)) {
    return argument->offer.kind == OfferKind::nothing ? assignments(OfferKind::files, "")
                                                      : assignments(argument->offer);
  }
  return assignments(OfferKind::words, fmt::format("{}", fmt::join(flags_of(command), " ")));
}

/// Offers after "COMMAND FLAG": for each flag and offer, the commands. A flag without a value offers ""; the flag "@"
/// stands for a place where no flag waits for its value.
using Offers = std::map<std::string, std::map<std::string, std::vector<std::string>>>;

Offers offers_by_flag(const CommandEntry& program) {
  Offers offers;
  for_each_command(program, [&](const CommandEntry& command) {
    offers["@"][assignments_behind(command)].push_back(words_of(command));
    for (const OptionEntry& option : command.options) {
      for (const std::string& name : option.by_place ? std::vector<std::string>{} : option.names) {
        offers[name][option.value.empty() ? "" : assignments(option.offer)].push_back(words_of(command));
      }
    }
  });
  return offers;
}

/// Returns the cases of a script: a flag with one offer in all commands has one case.
std::string cases_of(const Offers& offers) {
  std::map<std::string, std::vector<std::string>> patterns;
  for (const auto& [flag, by_offer] : offers) {
    for (const auto& [offer, commands] : by_offer) {
      if (by_offer.size() == 1) {
        patterns[offer].push_back(fmt::format("*' {}'", flag));
        continue;
      }
      for (const std::string& command : commands) {
        patterns[offer].push_back(fmt::format("'{} {}'", command, flag));
      }
    }
  }
  patterns.erase("");
  std::string text;
  for (const auto& [offer, words] : patterns) {
    text += fmt::format("    {}) {} ;;\n", fmt::join(words, "|"), offer);
  }
  return text;
}

/// The part that the scripts of all programs share. FUNCTION and PROGRAM are placeholders for names. Words are compared
/// directly, because compgen would expand them.
constexpr std::string_view bash_script = R"(
FUNCTION() {
  local IFS=$' \t\n' line=() list='' i word last='' cur typed head lead='' value at='PROGRAM' flag='' kind='' words=''
  for ((i = 0; i <= COMP_CWORD; i++)); do  # bash breaks words at '=', zsh does not
    word=${COMP_WORDS[i]}
    if ((i > 1)) && [[ $word == =* || $last == *= ]]; then
      line[${#line[@]}-1]+=$word
    else
      line+=("$word")
    fi
    last=$word
  done
  cur=${line[${#line[@]}-1]}
  for ((i = 1; i < ${#line[@]} - 1; i++)); do
    word=${line[i]}
    if [[ -n $flag ]]; then
      flag=''
    elif [[ $word == -* ]]; then
      kind=''
      FUNCTION_offer "$at $word"
      if [[ -n $kind ]]; then flag=$word; fi
    else
      FUNCTION_command "$word"
    fi
  done
  kind='' words='' value=$cur
  if [[ -n $flag ]]; then
    FUNCTION_offer "$at $flag"
  elif [[ $cur == -*=* ]]; then
    lead=${cur%%=*}= value=${cur#*=}
    FUNCTION_offer "$at ${cur%%=*}"
  elif [[ $cur == -* ]]; then
    kind=words
    FUNCTION_flags
  else
    FUNCTION_offer "$at @"
  fi
  case $kind in
    files) return ;;
    folders) compopt -o dirnames +o default 2>/dev/null; return ;;
    names) words=$("${COMP_WORDS[0]}" pages names "$words" 2>/dev/null) ;;
    settings|axes)
      words=$("${COMP_WORDS[0]}" pages names "$kind" 2>/dev/null)
      last=''
      if [[ $value == *=* ]]; then
        lead+=${value%%=*}=
        for word in $words; do
          if [[ ${word%%=*} == "${value%%=*}" ]]; then list+=" ${word#*=}"; fi
        done
        value=${value#*=}
      else
        compopt -o nospace 2>/dev/null
        for word in $words; do
          if [[ ${word%%=*} != "$last" ]]; then list+=" ${word%%=*}="; fi
          last=${word%%=*}
        done
      fi
      words=$list ;;
  esac
  if [[ $kind != names && $kind != '' ]]; then compopt +o default 2>/dev/null; fi
  if [[ $value == *,* ]]; then
    lead+=${value%,*},
    value=${value##*,}
  fi
  typed=${COMP_WORDS[COMP_CWORD]}
  if [[ $typed == '=' ]]; then typed=''; fi
  head=${cur%"$typed"}
  COMPREPLY=()
  for word in $words; do
    if [[ $word == "$value"* ]]; then
      word=$lead$word
      COMPREPLY+=("${word#"$head"}")
    fi
  done
}
)";

/// Returns the functions of the script. They run the program to get the names of catalogues when they complete a word,
/// and contain all other words themselves.
std::string bash_functions(const CommandEntry& program) {
  const std::string& name = program.path.front();
  const std::string function = "_" + replaced(name, "-", "_");
  std::string commands;
  std::string flags;
  for_each_command(program, [&](const CommandEntry& command) {
    if (&command != &program) {
      commands += fmt::format("    '{0}') at='{0}' ;;\n", words_of(command));
    }
    flags += fmt::format("    '{}') words='{}' ;;\n", words_of(command), fmt::join(flags_of(command), " "));
  });
  return fmt::format(
             "{0}_command() {{\n  case \"$at $1\" in\n{1}  esac\n}}\n\n"
             "{0}_flags() {{\n  case $at in\n{2}  esac\n}}\n\n"
             "{0}_offer() {{\n  case $1 in\n{3}  esac\n}}\n",
             function, commands, flags, cases_of(offers_by_flag(program))) +
         replaced(replaced(std::string(bash_script), "FUNCTION", function), "PROGRAM", name);
}

std::string in_single_quotes(const std::string& text) {
  return "'" + replaced(replaced(text, "\\", "\\\\"), "'", "\\'") + "'";
}

/// Returns the arguments of fish's `complete` for a value.
std::string fish_offer(const std::string& program, const Offer& offer) {
  const auto names_from_program = [&](std::string_view list) {
    return fmt::format("-a '({} pages names {} 2>/dev/null)'", program, list);
  };
  switch (offer.kind) {
    case OfferKind::nothing: return "-f";
    case OfferKind::words: return fmt::format("-f -a '(__fish_append , {})'", fmt::join(offer.words, " "));
    case OfferKind::names: return names_from_program(name_of(offer.catalogue));
    case OfferKind::settings: return "-f " + names_from_program("settings");
    case OfferKind::axes: return "-f " + names_from_program("axes");
    case OfferKind::files: return "-F";
    case OfferKind::folders: return "-f -a '(__fish_complete_directories)'";
  }
  return "";
}

/// Returns the condition that this command was typed.
std::string fish_condition(const CommandEntry& command) {
  std::string when;
  for (std::size_t i = 1; i < command.path.size(); ++i) {
    when += fmt::format("{}__fish_seen_subcommand_from {}", i == 1 ? "" : "; and ", command.path[i]);
  }
  return when.empty() ? "__fish_use_subcommand" : when;
}

/// Returns the names of a flag as arguments of fish's `complete`: " -s o -l output".
std::string fish_names(const OptionEntry& option) {
  std::string names;
  for (const std::string& name : option.names) {
    names += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
  }
  return names;
}

std::string fish_flag(const std::string& program, const std::string& when, const OptionEntry& option) {
  return fmt::format("complete -c {} -n '{}'{}{} -d {}\n", program, when, fish_names(option),
                     option.value.empty() ? "" : " -r " + fish_offer(program, option.offer),
                     in_single_quotes(option.doc));
}

}  // namespace

std::string bash_completion(const CommandEntry& program) {
  const std::string& name = program.path.front();
  return fmt::format("# bash completion of {0} {1}\n{2}complete -o default -F _{3} {0}\n", name, build_info().version,
                     bash_functions(program), replaced(name, "-", "_"));
}

std::string zsh_completion(const CommandEntry& program) {
  const std::string& name = program.path.front();
  const std::string function = "_" + replaced(name, "-", "_");
  return fmt::format(
      "#compdef {0}\n# zsh completion of {0} {1}\nautoload -U +X bashcompinit && bashcompinit\n{2}"
      "complete -o default -F {3} {0}\n"
      "if [ \"${{funcstack[1]}}\" = _{0} ]; then _bash_complete -o default -F {3}; fi\n",
      name, build_info().version, bash_functions(program), function);
}

std::string fish_completion(const CommandEntry& program) {
  const std::string& name = program.path.front();
  std::string text = fmt::format("# fish completion of {} {}\n", name, build_info().version);
  for_each_command(program, [&](const CommandEntry& command) {
    const std::string when = fish_condition(command);
    for (const CommandEntry& below : command.commands) {
      text += fmt::format("complete -c {} -n '{}' -f -a {} -d {}\n", name, when, below.path.back(),
                          in_single_quotes(below.doc));
    }
    const OptionEntry* const argument = first_argument(command);
    if (argument != nullptr && argument->offer.kind != OfferKind::nothing && command.commands.empty()) {
      text += fmt::format("complete -c {} -n '{}' {}\n", name, when, fish_offer(name, argument->offer));
    }
    for (const OptionEntry& option : command.options) {
      text += option.by_place ? "" : fish_flag(name, when, option);
    }
  });
  return text;
}

}  // namespace commfuse
