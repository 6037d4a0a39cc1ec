// SPDX-License-Identifier: Apache-2.0
// What both programs do the same way around CLI11: exit codes, one-sentence errors, "did you mean".
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "model/config/renames.h"

namespace CLI {
class App;
}

namespace commfuse {

/// The exit codes of both programs; every --help ends with them.
namespace exit_code {
inline constexpr int done = 0;
inline constexpr int failed = 1;
inline constexpr int user_mistake = 2;
inline constexpr int failed_points = 3;
inline constexpr int gate_missed = 4;
inline constexpr int hardware_absent = 69;
}  // namespace exit_code

/// The footer of the top-level help.
std::string exit_codes_in_words();

/// A subcommand whose flags `fill` adds once the command line has named it. To add those of all subcommands takes
/// longer than many a run.
void add_verb(CLI::App& app, const std::string& name, const std::string& description,
              std::function<void(CLI::App& verb)> fill);

/// Adds the flags of the command that a path of words names, the program's own the first.
void fill_verb(CLI::App& program, const std::vector<std::string>& path);

/// What a program says last, and its exit code.
struct LastWords {
  int code = exit_code::done;
  std::string help{};                   ///< Asked for; belongs on stdout.
  std::string sentence{};               ///< What went wrong; belongs on stderr.
  std::vector<std::string> warnings{};  ///< Of former names on the command line; belong on stderr, before the sentence.
};

/// Parses the command line; the chosen subcommand's callback runs and leaves its exit code in `status`. A user's
/// mistake is one sentence with the remedy and 2, any other failure one sentence and 1. A sentence calls a flag what
/// the user called it: "--tp" for "--ranks". Former names of flags, and of settings that --axis varies, are taken as
/// `renames` has it.
LastWords run_quietly(CLI::App& app, int argc, const char* const* argv, const int& status,
                      const Renames& renames = program_renames());
/// The same, and says it.
int run_command_line(CLI::App& app, int argc, const char* const* argv, const int& status);
/// Prints what there is to say.
int say(const LastWords& words);

}  // namespace commfuse
