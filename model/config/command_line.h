// SPDX-License-Identifier: Apache-2.0
// Command-line behaviour that both programs share on top of CLI11: exit codes, one-sentence errors, "did you mean".
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

/// Exit codes of both programs; the top-level --help ends with them.
namespace exit_code {
inline constexpr int done = 0;
inline constexpr int failed = 1;
inline constexpr int user_mistake = 2;
inline constexpr int failed_points = 3;
inline constexpr int gate_missed = 4;
inline constexpr int hardware_absent = 69;
}  // namespace exit_code

/// Returns the footer of the top-level help.
std::string exit_codes_in_words();

/// Adds a subcommand. `fill`, which adds the subcommand's flags, runs only when the command line names the subcommand,
/// because adding the flags of all subcommands takes longer than many runs.
void add_verb(CLI::App& app, const std::string& name, const std::string& description,
              std::function<void(CLI::App& verb)> fill);

/// Adds the flags of the command that a path of words names; `path` begins with the program's own name.
void fill_verb(CLI::App& program, const std::vector<std::string>& path);

/// Final output of a program, and its exit code.
struct LastWords {
  int code = exit_code::done;
  std::string help{};                   ///< Requested help; belongs on stdout.
  std::string sentence{};               ///< Error message; belongs on stderr.
  std::vector<std::string> warnings{};  ///< About former names; belong on stderr, before the sentence.
};

/// Parses the command line; the chosen subcommand's callback runs and leaves its exit code in `status`. A user error
/// returns code 2 and one line with a remedy for each mistake; absent hardware returns code 69 and any other failure
/// code 1, each with one sentence. Messages name a flag as the user typed it: "--tp" for "--ranks". Former names of
/// flags, and of settings that --axis varies, are accepted as `renames` specifies.
LastWords run_quietly(CLI::App& app, int argc, const char* const* argv, const int& status,
                      const Renames& renames = program_renames());
/// Runs run_quietly and prints its words; returns the exit code.
int run_command_line(CLI::App& app, int argc, const char* const* argv, const int& status);
/// Prints the words and returns the exit code.
int say(const LastWords& words);

}  // namespace commfuse
