// SPDX-License-Identifier: Apache-2.0
// Reports the progress of a sweep on stderr.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

namespace commfuse {

/// Forms of the report. bar: one line, redrawn. plain: a line every 10 s, for logs. json: an object every second, for
/// programs. Each of these three ends with a final report.
enum class ProgressForm : std::uint8_t { none, bar, plain, json };

/// The values of --progress; "auto" is a bar on a terminal, otherwise none.
inline constexpr std::array<std::string_view, 4> progress_words{"auto", "plain", "json", "none"};
ProgressForm progress_form(std::string_view word, bool on_terminal);

struct ProgressState {
  std::string_view noun = "points";  ///< Plural noun for what is counted; it ends in "s".
  std::size_t done = 0;
  std::size_t total = 0;
  std::size_t infeasible = 0;
  std::chrono::duration<double> elapsed{};

  /// Returns points per second; 0 before the first point.
  [[nodiscard]] double rate() const;
  /// Returns the remaining time at the current rate; 0 before the first point.
  [[nodiscard]] std::chrono::duration<double> left() const;
};

/// Returns "12 of 24 points (50%), 1 s left, 120 points/s, 3 infeasible".
std::string in_words(const ProgressState& state);
/// Returns `{"done":12,"total":24,"infeasible":3,"rate_per_s":120.0,"left_s":0.1}`; left_s is null before the first
/// point.
std::string in_json(const ProgressState& state);
/// Returns "[=====     ] 12 of 24 points ...", cut at 79 columns.
std::string as_bar(const ProgressState& state);

/// Counts points from any thread and writes at intervals. The clock is an argument, so that tests can set the time.
class Progress {
 public:
  using Clock = std::function<std::chrono::duration<double>()>;  ///< Returns the time since the start.
  using Write = std::function<void(const std::string&)>;

  Progress(ProgressForm form, std::size_t total, Clock clock, Write write, std::string_view noun = "points");

  void finished(bool feasible);
  /// Writes the final line.
  void end();

 private:
  void show(bool last);

  ProgressForm form_;
  Clock clock_;
  Write write_;
  std::mutex mutex_;
  ProgressState state_;
  std::chrono::duration<double> next_{};
};

}  // namespace commfuse
