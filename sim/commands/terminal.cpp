// SPDX-License-Identifier: Apache-2.0
#include "sim/commands/terminal.h"

#include <unistd.h>

#include <csignal>
#include <cstdio>

namespace commfuse::sim {

namespace {

// These variables are global, because a signal handler cannot access a Terminal.
std::atomic<bool> interrupted{false};
std::atomic<int> signal_number{0};

}  // namespace

void Terminal::take(const Answer& answer) {
  constexpr int by_signal = 128;  // Shells add this to the signal number for the exit code of a killed program.
  status_ = answer.is_interrupted ? by_signal + signal_number.load() : answer.code;
  if (answer.write) {
    answer.write(answer.format, [](std::string_view bytes) { std::fwrite(bytes.data(), 1, bytes.size(), stdout); });
  }
  if (!answer.notes.empty()) {
    note(answer.notes);
  }
}

void Terminal::note(const std::string& lines) {
  std::fputs(lines.c_str(), stderr);
  std::fflush(stderr);
}

void Terminal::progress(const std::string& text) { note(text); }

bool Terminal::shows_bars() const { return ::isatty(STDERR_FILENO) != 0; }

const std::atomic<bool>& Terminal::stop() {
  struct sigaction action {};
  action.sa_handler = [](int number) {
    signal_number = number;
    interrupted = true;
  };
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  ::sigaction(SIGINT, &action, nullptr);
  ::sigaction(SIGTERM, &action, nullptr);
  return interrupted;
}

}  // namespace commfuse::sim
