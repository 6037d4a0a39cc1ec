// SPDX-License-Identifier: Apache-2.0
#include "model/config/command_line.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cstdio>
#include <exception>
#include <iterator>
#include <memory>
#include <sstream>
#include <utility>
#include <vector>

#include "model/config/meant.h"
#include "model/config_error.h"
#include "model/text/plain_text.h"
#include "model/text/suggest.h"
#include "model/wrapped.h"

namespace commfuse {

namespace {

/// Help whose descriptions break where a terminal's line ends.
class WrappedHelp : public CLI::Formatter {
 public:
  std::string make_option_desc(const CLI::Option* option) const override { return fitted(option->get_description()); }
  std::string make_subcommand(const CLI::App* verb) const override {
    std::ostringstream out;
    CLI::detail::format_help(out, verb->get_name(), fitted(verb->get_description()), get_column_width());
    return out.str();
  }

 private:
  /// What stands in the right column, whose lines CLI11 indents.
  [[nodiscard]] std::string fitted(const std::string& description) const {
    std::string lines = wrapped(description, "", "", terminal_width - get_column_width());
    lines.pop_back();
    return lines;
  }
};

/// Subcommands that come later take it from those above them.
void wrap_help(CLI::App& app, const std::shared_ptr<WrappedHelp>& help) {
  app.formatter(help);
  for (CLI::App* verb : app.get_subcommands({})) {
    wrap_help(*verb, help);
  }
}

/// What people call a flag elsewhere, and what it is here. None is a flag of any command but --cluster, of tune, and
/// --format, of schedule export.
constexpr std::array synonyms{Synonym{"--tp", "--ranks"},
                              Synonym{"--tensor-parallel", "--ranks"},
                              Synonym{"--tensor-parallel-size", "--ranks"},
                              Synonym{"--tensor-model-parallel-size", "--ranks"},
                              Synonym{"--pp", "--pipeline"},
                              Synonym{"--pipeline-parallel-size", "--pipeline"},
                              Synonym{"--pipeline-model-parallel-size", "--pipeline"},
                              Synonym{"--dp", "--data-parallel"},
                              Synonym{"--data-parallel-size", "--data-parallel"},
                              Synonym{"--cp", "--context"},
                              Synonym{"--context-parallel", "--context"},
                              Synonym{"--context-parallel-size", "--context"},
                              Synonym{"--ep", "--expert-parallel"},
                              Synonym{"--expert-parallel-size", "--expert-parallel"},
                              Synonym{"--expert-model-parallel-size", "--expert-parallel"},
                              Synonym{"--gpu", "--hardware"},
                              Synonym{"--cluster", "--hardware"},
                              Synonym{"--machine-type", "--hardware"},
                              Synonym{"--seq-len", "--seq"},
                              Synonym{"--seqlen", "--seq"},
                              Synonym{"--seq-length", "--seq"},
                              Synonym{"--sequence-length", "--seq"},
                              Synonym{"--batch-size", "--batch"},
                              Synonym{"--global-batch-size", "--batch"},
                              Synonym{"--micro-batch-size", "--micro-batch"},
                              Synonym{"--precision", "--dtype"},
                              Synonym{"--num-gpus", "--gpus"},
                              Synonym{"--world-size", "--gpus"},
                              Synonym{"--optimize", "--minimize"},
                              Synonym{"--objective", "--minimize"},
                              Synonym{"--format", "--output"}};

/// Other words for commands.
constexpr std::array verbs{Synonym{"compare", "run"},  Synonym{"predict", "run"},   Synonym{"simulate", "run"},
                           Synonym{"estimate", "run"}, Synonym{"optimize", "tune"}, Synonym{"autotune", "tune"},
                           Synonym{"search", "tune"},  Synonym{"ls", "list"}};

/// The words of a command line as we call them, up to "--".
std::vector<std::string> as_meant(int argc, const char* const* argv) {
  std::vector<std::string> words(argv, argv + argc);
  for (std::size_t i = 1; i < words.size() && words[i] != "--"; ++i) {
    const std::size_t end = words[i].find('=');
    const std::string_view flag = std::string_view(words[i]).substr(0, end);
    const std::string_view means = found_in(synonyms, flag);
    const bool is_own = (flag == "--cluster" && words[1] == "tune") || (flag == "--format" && words[1] == "schedule");
    if (!means.empty() && !is_own) {
      words[i].replace(0, flag.size(), means);
    }
  }
  if (words.size() == 2 && words[1] == "--version") {
    words[1] = "version";
  }
  if (words.size() > 1 && words[0].ends_with("commfuse-sim")) {
    const std::string_view means = found_in(verbs, words[1]);
    words[1] = means.empty() ? words[1] : std::string(means);
  }
  return words;
}

/// The innermost subcommand that the command line named.
const CLI::App& chosen(const CLI::App& app) {
  const CLI::App* current = &app;
  while (!current->get_subcommands().empty()) {
    current = current->get_subcommands().front();
  }
  return *current;
}

std::vector<std::string> flag_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) {
      names.push_back("--" + name);
    }
  }
  return names;
}

std::vector<std::string> verb_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* verb : app.get_subcommands({})) {
    names.push_back(verb->get_name());
  }
  return names;
}

std::string unknown_word(const CLI::App& app, const std::string& word) {
  const CLI::App& verb = chosen(app);
  const bool is_flag = word.size() > 1 && word.front() == '-';
  const std::vector<std::string> names = is_flag ? flag_names(verb) : verb_names(verb);
  const std::vector<std::string_view> known(names.begin(), names.end());
  if (is_flag) {
    const std::string flag = word.substr(0, word.find('='));
    return fmt::format("unknown flag {}; {}", in_quotes(flag), remedy_for(flag, known, "flags"));
  }
  if (known.empty()) {
    return fmt::format("{} takes no argument {}; see {} --help", verb.get_name(), in_quotes(word), verb.get_name());
  }
  return fmt::format("unknown command {}; {}", in_quotes(word), remedy_for(word, known, "commands"));
}

/// CLI11's own sentence, without its line break and with the remedy.
std::string reworded(const CLI::App& app, const CLI::ParseError& error) {
  std::string sentence = error.what();
  while (!sentence.empty() && (sentence.back() == '\n' || sentence.back() == '.')) {
    sentence.pop_back();
  }
  const CLI::App& verb = chosen(app);
  const std::string name =
      verb.get_parent() == nullptr ? app.get_name() : fmt::format("{} {}", app.get_name(), verb.get_name());
  return fmt::format("{}; see {} --help", sentence, name);
}

/// Whether all that was printed has gone out; what failed earlier counts too.
bool is_printed() { return std::fflush(stdout) == 0 && std::ferror(stdout) == 0; }

constexpr const char* not_printed = "the output could not be written";

}  // namespace

std::string exit_codes_in_words() {
  return wrapped(
      "Exit codes: 0 done; 1 failed; 2 the input is wrong; 3 some points failed; 4 a check, score or plan missed its "
      "gate; 69 needed hardware is absent; 130, 143 interrupted.",
      "", "  ");
}

void add_verb(CLI::App& app, const std::string& name, const std::string& description,
              std::function<void(CLI::App& verb)> fill) {
  CLI::App* verb = app.add_subcommand(name, description);
  verb->footer("");  // It would be the parent's, whose examples are of other verbs.
  verb->preparse_callback([verb, fill = std::move(fill), filled = false](std::size_t /*words left*/) mutable {
    if (!std::exchange(filled, true)) {
      fill(*verb);
    }
  });
}

LastWords run_quietly(CLI::App& app, int argc, const char* const* argv, const int& status) {
  wrap_help(app, std::make_shared<WrappedHelp>());
  try {
    const std::vector<std::string> words = as_meant(argc, argv);
    std::vector<const char*> pointers;
    std::transform(words.begin(), words.end(), std::back_inserter(pointers),
                   [](const std::string& word) { return word.c_str(); });
    app.parse(static_cast<int>(pointers.size()), pointers.data());
    return is_printed() ? LastWords{status} : LastWords{exit_code::failed, "", not_printed};
  } catch (const CLI::Success& help) {
    std::ostringstream out;
    const int code = app.exit(help, out, out);
    return {code, out.str()};
  } catch (const CLI::ParseError& error) {
    // A wrong word also explains why, say, a subcommand is missing.
    const std::vector<std::string> extras = app.remaining(true);
    return {exit_code::user_mistake, "", extras.empty() ? reworded(app, error) : unknown_word(app, extras.front())};
  } catch (const ConfigError& error) {
    return {exit_code::user_mistake, "", error.what()};
  } catch (const HardwareAbsent& error) {
    return {exit_code::hardware_absent, "", error.what()};
  } catch (const std::exception& error) {
    return {exit_code::failed, "", error.what()};
  }
}

int say(const LastWords& words) {
  std::fputs(words.help.c_str(), stdout);
  if (!words.help.empty() && !is_printed()) {
    std::fputs((std::string(not_printed) + "\n").c_str(), stderr);
    return exit_code::failed;
  }
  if (!words.sentence.empty()) {
    // It may quote paths and names of strangers.
    std::fputs((with_escapes(words.sentence, "\t\n") + "\n").c_str(),
               stderr);  // it may be closed, and then there is nobody to tell
  }
  return words.code;
}

int run_command_line(CLI::App& app, int argc, const char* const* argv, const int& status) {
  return say(run_quietly(app, argc, argv, status));
}

}  // namespace commfuse
