// SPDX-License-Identifier: Apache-2.0
#include "model/config/command_line.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cstdio>
#include <exception>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <span>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/config/meant.h"
#include "model/config/option_marks.h"
#include "model/config_error.h"
#include "model/stderr_text.h"
#include "model/text/plain_text.h"
#include "model/text/suggest.h"
#include "model/wrapped.h"

namespace commfuse {

namespace {

/// Number of help lines that the smallest terminal shows above its prompt.
constexpr std::size_t screen_lines = 23;

std::size_t lines_of(std::string_view text) {
  return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
}

/// Returns the examples below "Examples:", each with its continuation lines.
std::vector<std::string> examples_in(const std::string& footer) {
  std::vector<std::string> examples;
  bool continues = false;  // true when a backslash ends the previous line
  bool is_below = false;
  std::istringstream lines(footer);
  for (std::string line; std::getline(lines, line);) {
    if (is_below && line.starts_with("  ")) {
      continues ? static_cast<void>(examples.back() += line + "\n") : examples.push_back(line + "\n");
      continues = line.ends_with('\\');
    } else {
      is_below = line == "Examples:" || line == "Example:";
    }
  }
  return examples;
}

/// Returns true if `text` ends inside an open parenthesis.
bool is_open(std::string_view text) {
  return std::count(text.begin(), text.end(), '(') > std::count(text.begin(), text.end(), ')');
}

/// Returns the last position up to `width` at which one of `ends` begins outside parentheses; npos if there is none.
std::size_t last_of(std::string_view text, std::span<const std::string_view> ends, std::size_t width) {
  for (std::size_t at = std::min(width, text.size()); at > 0; --at) {
    const bool is_end =
        std::any_of(ends.begin(), ends.end(), [&](std::string_view end) { return text.substr(at).starts_with(end); });
    if (is_end && !is_open(text.substr(0, at))) {
      return at;
    }
  }
  return std::string_view::npos;
}

/// Returns the description. If it is longer than `width`, returns its longest beginning that fits: whole sentences or
/// clauses, else the part before a colon, else the part before a comma or a parenthesis. Returns the whole description
/// when no beginning fits.
std::string beginning_of(const std::string& description, std::size_t width) {
  constexpr std::array<std::string_view, 5> ends{"; ", ". ", ": ", ", ", " ("};
  constexpr std::array<std::pair<std::size_t, std::size_t>, 3> levels{{{0, 2}, {2, 1}, {3, 2}}};
  if (description.size() <= width) {
    return description;
  }
  for (const auto& [first, count] : levels) {
    const std::size_t end = last_of(description, std::span(ends).subspan(first, count), width);
    if (end != std::string::npos) {
      return description.substr(0, end);
    }
  }
  return description;
}

/// Help whose descriptions wrap at the width of the terminal. If the help of a command exceeds a screen, --help prints
/// the short help, which names the flag that prints everything.
class WrappedHelp : public CLI::Formatter {
 public:
  std::string make_option_desc(const CLI::Option* option) const override { return fitted(option->get_description()); }

  /// Omits CLI11's words for checks of the value and its list of excluded options, because the error messages state
  /// them.
  std::string make_option_opts(const CLI::Option* option) const override {
    std::string text = Formatter::make_option_opts(option);
    const std::string type = option->get_type_name();
    const std::size_t check = std::min(type.find(':'), type.size());
    if (const std::size_t at = text.find(type); !type.empty() && at != std::string::npos) {
      text.erase(at + check, type.size() - check);
    }
    return text.substr(0, text.find(" " + get_label("Excludes") + ":"));
  }

  std::string make_subcommand(const CLI::App* verb) const override {
    std::size_t column = 0;
    for (const CLI::App* other : verb->get_parent()->get_subcommands({})) {
      column = std::max(column, other->get_name().size() + 4);
    }
    return fmt::format("{:<{}}", "  " + verb->get_name(), column) +
           wrapped(verb->get_description(), "", std::string(column, ' '), terminal_width() - column);
  }

  std::string make_help(const CLI::App* app, std::string name, CLI::AppFormatMode mode) const override;

 protected:
  [[nodiscard]] std::size_t right_column() const { return terminal_width() - get_column_width(); }
  /// Returns the text of the right column, whose lines CLI11 indents.
  [[nodiscard]] std::string fitted(const std::string& description) const {
    std::string lines = wrapped(description, "", "", right_column());
    lines.pop_back();
    return lines;
  }
};

/// Short help: the options that most people need (all when none is marked), and as many examples as fit. Notes are
/// omitted.
class ShortHelp : public WrappedHelp {
 public:
  std::string make_option_desc(const CLI::Option* option) const override {
    return fitted(beginning_of(option->get_description(), right_column()));
  }

  std::string make_help(const CLI::App* app, std::string name, CLI::AppFormatMode /*mode*/) const override {
    std::string text = make_description(app) + make_usage(app, name) + "\n";
    for (const CLI::Option* option : shown_options(*app)) {
      text += make_option(option, option->get_positional());
    }
    const std::string end = fmt::format("\n{} --help-all prints everything.\n", name);
    const std::vector<std::string> examples = examples_in(app->get_footer());
    text += examples.empty() ? "" : "\nExamples:\n";
    for (std::size_t i = 0; i < examples.size(); ++i) {
      if (i == 0 || lines_of(text) + lines_of(examples[i]) + lines_of(end) <= screen_lines) {
        text += examples[i];
      }
    }
    return text + end;
  }

 private:
  /// Returns the options to show, positional arguments first.
  static std::vector<const CLI::Option*> shown_options(const CLI::App& app) {
    std::vector<const CLI::Option*> options = app.get_options(
        [&](const CLI::Option* option) { return option != app.get_help_ptr() && !option->get_group().empty(); });
    const auto is_wanted = [](const CLI::Option* option) { return option->get_positional() || is_usual(*option); };
    if (std::any_of(options.begin(), options.end(), [](const CLI::Option* option) { return is_usual(*option); })) {
      options.erase(std::remove_if(options.begin(), options.end(), std::not_fn(is_wanted)), options.end());
    }
    std::stable_partition(options.begin(), options.end(),
                          [](const CLI::Option* option) { return option->get_positional(); });
    return options;
  }
};

std::string WrappedHelp::make_help(const CLI::App* app, std::string name, CLI::AppFormatMode mode) const {
  std::string whole = Formatter::make_help(app, name, CLI::AppFormatMode::Normal);
  const bool is_short =
      mode == CLI::AppFormatMode::Normal && app->get_subcommands({}).empty() && lines_of(whole) > screen_lines;
  return is_short ? ShortHelp().make_help(app, std::move(name), mode) : whole;
}

void add_help_all(CLI::App& app) {
  app.set_help_all_flag("--help-all", "Print help on all options and exit")
      ->group("");  // hidden here because the short help names it
}

/// Sets the help; subcommands that are added later inherit it.
void wrap_help(CLI::App& app, const std::shared_ptr<WrappedHelp>& help) {
  app.formatter(help);
  for (CLI::App* verb : app.get_subcommands({})) {
    wrap_help(*verb, help);
  }
}

/// Synonyms of commands.
constexpr std::array verbs{Synonym{"compare", "run"},  Synonym{"predict", "run"},   Synonym{"simulate", "run"},
                           Synonym{"estimate", "run"}, Synonym{"optimize", "tune"}, Synonym{"autotune", "tune"},
                           Synonym{"search", "tune"},  Synonym{"ls", "list"}};

/// Command line in this program's words, and the flags that the user typed under other names.
struct MeantWords {
  std::vector<std::string> words;
  std::vector<std::pair<std::string, std::string_view>> renamed;  ///< typed flag and this program's flag
  std::vector<std::string> warnings;                              ///< about former names
};

/// Returns the command that the words name, with its flags added.
CLI::App& command_named(CLI::App& app, const std::vector<std::string>& words) {
  CLI::App* verb = &app;
  std::vector<std::string> path{app.get_name()};
  for (std::size_t i = 1; i < words.size(); ++i) {
    fill_verb(app, path);
    const std::vector<CLI::App*> below = verb->get_subcommands({});
    const auto command = std::find_if(below.begin(), below.end(),
                                      [&](const CLI::App* subcommand) { return subcommand->get_name() == words[i]; });
    if (command == below.end()) {
      break;
    }
    verb = *command;
    path.push_back(words[i]);
  }
  fill_verb(app, path);
  return *verb;
}

bool has_flag(const CLI::App& verb, std::string_view flag) {
  return verb.get_option_no_throw(std::string(flag)) != nullptr;
}

/// Replaces a former name, from `at` to `end` of a word, with the current name. Throws ConfigError for a name that is
/// no longer accepted.
void replace_former(const std::optional<FormerName>& former, std::size_t at, std::size_t end, std::string& word,
                    MeantWords& meant) {
  if (!former) {
    return;
  }
  if (!former->is_accepted) {
    throw ConfigError(former->sentence);
  }
  word.replace(at, end - at, former->now);
  meant.warnings.push_back(former->sentence);
}

/// Replaces former names of flags, up to "--", and of the setting that an --axis varies.
void take_former_names(const Renames& renames, MeantWords& meant) {
  constexpr std::string_view axis = "--axis";
  bool is_axis = false;  // true when the previous word was --axis
  for (std::string& word : meant.words) {
    if (word == "--") {
      return;
    }
    const std::size_t end = std::min(word.find('='), word.size());
    const bool has_key = is_axis || (word.starts_with("--axis=") && word.find('=', end + 1) != std::string::npos);
    is_axis = word == axis;
    if (has_key) {
      const std::size_t at = word.starts_with("--axis=") ? axis.size() + 1 : 0;
      const std::size_t key_end = std::min(word.find('=', at), word.size());
      replace_former(renames.key(std::string_view(word).substr(at, key_end - at)), at, key_end, word, meant);
    } else {
      replace_former(renames.flag(std::string_view(word).substr(0, end)), 0, end, word, meant);
    }
  }
}

/// Replaces flags of other tools, up to "--", when the command lacks the typed flag and has this program's. Also
/// replaces former names with current ones, --version with `version`, and in commfuse-sim the synonyms of commands.
MeantWords as_meant(CLI::App& app, std::span<const char* const> typed, const Renames& renames) {
  MeantWords meant{.words = {typed.begin(), typed.end()}, .renamed = {}, .warnings = {}};
  take_former_names(renames, meant);
  std::vector<std::string>& words = meant.words;
  if (words.size() == 2 && words[1] == "--version") {
    words[1] = "version";
  }
  if (words.size() > 1 && words[0].ends_with("commfuse-sim")) {
    const std::string_view meaning = found_in(verbs, words[1]);
    words[1] = meaning.empty() ? words[1] : std::string(meaning);
  }
  const CLI::App* verb = nullptr;  // Adding flags takes time, so they are added only if a flag may be renamed.
  for (std::size_t i = 1; i < words.size() && words[i] != "--"; ++i) {
    const std::string flag = words[i].substr(0, words[i].find('='));
    const std::string_view our_flag = flag_meant(flag);
    if (our_flag.empty()) {
      continue;
    }
    verb = verb == nullptr ? &command_named(app, words) : verb;
    if (!has_flag(*verb, flag) && has_flag(*verb, our_flag)) {
      words[i].replace(0, flag.size(), our_flag);
      meant.renamed.emplace_back(flag, our_flag);
    }
  }
  return meant;
}

/// Returns the sentence with every whole word `from` replaced.
std::string with_word(std::string sentence, std::string_view from, std::string_view to) {
  constexpr std::string_view inside = "abcdefghijklmnopqrstuvwxyz0123456789-";
  for (std::size_t at = sentence.find(from); at != std::string::npos; at = sentence.find(from, at)) {
    const std::size_t end = at + from.size();
    const bool is_word = (at == 0 || inside.find(sentence[at - 1]) == std::string_view::npos) &&
                         (end == sentence.size() || inside.find(sentence[end]) == std::string_view::npos);
    is_word ? static_cast<void>(sentence.replace(at, from.size(), to)) : static_cast<void>(0);
    at += is_word ? to.size() : from.size();
  }
  return sentence;
}

/// Returns the sentence with flags named as the user typed them.
std::string as_typed(std::string sentence, const MeantWords& meant, std::span<const char* const> typed) {
  for (const auto& [flag, our_flag] : meant.renamed) {
    const bool is_both = std::any_of(typed.begin(), typed.end(), [&, ours = our_flag](std::string_view word) {
      return word.substr(0, word.find('=')) == ours;
    });
    sentence = is_both ? sentence : with_word(std::move(sentence), our_flag, flag);
  }
  return sentence;
}

/// Returns the innermost subcommand that the command line named.
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

/// Returns the command that prints the help of the innermost subcommand: "commfuse-sim schedule check --help".
std::string help_command(const CLI::App& app) {
  std::string command = app.get_name();
  for (const CLI::App* verb = &app; !verb->get_subcommands().empty();) {
    verb = verb->get_subcommands().front();
    command += " " + verb->get_name();
  }
  return command + " --help";
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
    const std::vector<const CLI::Option*> arguments =
        verb.get_options([](const CLI::Option* option) { return option->get_positional(); });
    return fmt::format("{} takes no {}argument {}; see {}", verb.get_name(), arguments.empty() ? "" : "further ",
                       in_quotes(word), help_command(app));
  }
  return fmt::format("unknown command {}; {}", in_quotes(word), remedy_for(word, known, "commands"));
}

/// Returns CLI11's own sentence without its line break and with the remedy.
std::string reworded(const CLI::App& app, const CLI::ParseError& error) {
  std::string sentence = error.what();
  while (!sentence.empty() && (sentence.back() == '\n' || sentence.back() == '.')) {
    sentence.pop_back();
  }
  return fmt::format("{}; see {}", sentence, help_command(app));
}

/// Returns true if everything printed so far has reached stdout, and false after any failed write.
bool is_printed() { return std::fflush(stdout) == 0 && std::ferror(stdout) == 0; }

constexpr const char* not_printed = "the output could not be written";

}  // namespace

std::string exit_codes_in_words() {
  return wrapped(
      "Exit codes: 0 done; 1 failed; 2 the input is wrong; 3 some points failed; 4 a check failed, or a score or "
      "plan did not meet its limits; 69 required hardware is absent; 130, 143 interrupted.",
      "", "  ");
}

void add_verb(CLI::App& app, const std::string& name, const std::string& description,
              std::function<void(CLI::App& verb)> fill) {
  CLI::App* verb = app.add_subcommand(name, description);
  add_help_all(*verb);
  verb->group("Subcommands");  // CLI11 would give it the parent's group
  verb->footer("");            // CLI11 would give it the parent's footer, with examples of other commands
  verb->preparse_callback([verb, fill = std::move(fill), filled = false](std::size_t /*words left*/) mutable {
    if (!std::exchange(filled, true)) {
      fill(*verb);
    }
  });
}

void fill_verb(CLI::App& program, const std::vector<std::string>& path) {
  std::vector<std::string> words{"--help"};  // CLI11 takes the words from the last to the first
  words.insert(words.end(), path.rbegin(), path.rend() - 1);
  try {
    program.parse(words);
  } catch (const CLI::Success&) {
  }
}

namespace {

/// Runs the command line and leaves the translated words in `meant`.
LastWords run_meant(CLI::App& app, std::span<const char* const> typed, const Renames& renames, MeantWords& meant,
                    const int& status) {
  try {
    meant = as_meant(app, typed, renames);
    std::vector<const char*> pointers;
    std::transform(meant.words.begin(), meant.words.end(), std::back_inserter(pointers),
                   [](const std::string& word) { return word.c_str(); });
    app.parse(static_cast<int>(pointers.size()), pointers.data());
    return is_printed() ? LastWords{status} : LastWords{exit_code::failed, "", not_printed};
  } catch (const CLI::Success& help) {
    std::ostringstream out;
    const int code = app.exit(help, out, out);
    return {code, out.str()};
  } catch (const CLI::ParseError& error) {
    // Extra words are reported first, because a wrong word also explains why, say, a subcommand is missing.
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

}  // namespace

LastWords run_quietly(CLI::App& app, int argc, const char* const* argv, const int& status, const Renames& renames) {
  wrap_help(app, std::make_shared<WrappedHelp>());
  add_help_all(app);
  const std::span typed(argv, static_cast<std::size_t>(argc));
  MeantWords meant;
  LastWords last = run_meant(app, typed, renames, meant, status);
  last.sentence = as_typed(std::move(last.sentence), meant, typed);
  last.warnings = std::move(meant.warnings);
  return last;
}

int say(const LastWords& words) {
  std::fputs(words.help.c_str(), stdout);
  if (!words.help.empty() && !is_printed()) {
    std::fputs((std::string(not_printed) + "\n").c_str(), stderr);
    return exit_code::failed;
  }
  for (const std::string& warning : words.warnings) {
    std::fputs(for_stderr(warning + "\n").c_str(), stderr);
  }
  if (!words.sentence.empty()) {
    // The sentence may quote paths and names from untrusted files.
    std::fputs(for_stderr(with_escapes(words.sentence, "\t\n") + "\n").c_str(),
               stderr);  // if stderr is closed, nothing can report the error
  }
  return words.code;
}

int run_command_line(CLI::App& app, int argc, const char* const* argv, const int& status) {
  return say(run_quietly(app, argc, argv, status));
}

}  // namespace commfuse
