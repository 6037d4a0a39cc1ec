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

/// Result of a command. The functions hold everything they need, so they may be called long after the command returned.
struct Answer {
  int code = exit_code::done;    ///< Exit code of the command.
  std::string format = "table";  ///< The format that -o asked for.
  bool is_interrupted = false;   ///< True if the command stopped before its end; then nothing below is set.
  /// Writes the result as -o does, byte for byte. Throws ConfigError for a format that the command does not have.
  std::function<void(std::string_view format, const Sink& sink)> write{};
  /// Returns the rows of layers in the order of CSV; null where the command has none.
  std::function<std::shared_ptr<const RowTable>()> layers{};
  /// Returns the rows of whole models; null where the command has none.
  std::function<std::vector<StepRow>()> models{};
  /// Draws the result; null where there is nothing to draw. Throws ConfigError for rows that no figure shows.
  std::function<std::vector<reports::Figure>()> figures{};
  std::vector<std::string> files{};  ///< Files and folders that the command wrote.
  std::string notes{};               ///< Remarks that follow the output, in whole lines.
};

/// Returns an answer that is the same text in every format.
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

  /// Takes the result of the command. Called once, last.
  virtual void take(const Answer& answer) = 0;
  /// Takes a remark beside the answer, in whole lines.
  virtual void note(const std::string& lines) = 0;
  /// Takes a piece of the progress of a long command, which may redraw its line. Called from any thread.
  virtual void progress(const std::string& text) = 0;
  /// True if `--progress auto` draws a bar.
  [[nodiscard]] virtual bool shows_bars() const = 0;
  /// Returns a flag that is set when a sweep should stop in order. It outlives the command.
  virtual const std::atomic<bool>& stop() = 0;
  /// Returns a flag that is set when a command without a store should throw Interrupted; null where a signal ends the
  /// process anyway.
  virtual const std::atomic<bool>* cancel() { return nullptr; }
};

}  // namespace commfuse::sim
