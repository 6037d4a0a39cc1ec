// SPDX-License-Identifier: Apache-2.0
// The result of a command, for its caller: a terminal, or a program that calls the simulator as a library.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "model/config/command_line.h"
#include "model/record/row_table.h"
#include "model/record/step_row.h"
#include "reports/figure/figure.h"
#include "sim/commands/sink.h"

namespace commfuse::sim {

/// Result of a command. Its functions own all their data, so they may be called long after the command has returned.
struct Answer {
  int code = exit_code::done;    ///< Exit code of the command.
  std::string format = "table";  ///< The format chosen with -o.
  bool is_interrupted = false;   ///< True if the command stopped early; then the answer has only `files` and `notes`.
  /// Writes the result as -o does, byte for byte. Throws ConfigError for a format that the command does not support.
  std::function<void(std::string_view format, const Sink& sink)> write{};
  /// Returns the rows of layers in the order of the CSV output; null if the command has none.
  std::function<std::shared_ptr<const RowTable>()> layers{};
  /// Returns the rows of whole models; null if the command has none.
  std::function<std::vector<StepRow>()> models{};
  /// Draws the result; null if there is nothing to draw. Throws ConfigError for rows that no figure can show.
  std::function<std::vector<reports::Figure>()> figures{};
  std::vector<std::string> files{};  ///< Files and folders that the command wrote.
  std::string notes{};               ///< Remarks that follow the output, in whole lines.
};

/// Returns an answer whose text is the same in every format.
inline Answer text_answer(std::string text) {
  return {.write = [text = std::move(text)](std::string_view /*format*/, const Sink& sink) { sink(text); }};
}

/// The terminal or the program that a command works for.
class Caller {
 public:
  Caller() = default;
  Caller(const Caller&) = delete;
  Caller& operator=(const Caller&) = delete;
  virtual ~Caller() = default;

  /// Takes the result of the command. This is the last call; it happens once.
  virtual void take(const Answer& answer) = 0;
  /// Takes a remark that is not part of the answer, in whole lines.
  virtual void note(const std::string& lines) = 0;
  /// Takes a piece of a long command's progress display; the piece may redraw the current line. Called from any thread.
  virtual void progress(const std::string& text) = 0;
  /// Returns whether `--progress auto` draws a bar.
  [[nodiscard]] virtual bool shows_bars() const = 0;
  /// Returns a flag that the caller sets to stop a sweep cleanly. The flag must outlive the command.
  virtual const std::atomic<bool>& stop() = 0;
  /// Returns a flag that the caller sets to make a command without a store throw Interrupted; null if a signal ends the
  /// process anyway.
  virtual const std::atomic<bool>* cancel() { return nullptr; }
};

}  // namespace commfuse::sim
