// SPDX-License-Identifier: Apache-2.0
#include "sim/sweep/progress.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>

namespace commfuse {

namespace {

using Seconds = std::chrono::duration<double>;

constexpr std::size_t widest_bar = 20;
constexpr std::size_t narrowest_bar = 5;  // A shorter bar shows nothing, so only the words are printed.
constexpr std::size_t line_width = 79;

/// Returns the time between two updates.
Seconds pause_of(ProgressForm form) {
  switch (form) {
    case ProgressForm::none:
    case ProgressForm::bar: return Seconds(0.1);
    case ProgressForm::plain: return Seconds(10.0);
    case ProgressForm::json: return Seconds(1.0);
  }
  return Seconds(1.0);
}

/// Returns "95 s", "4 min 10 s" or "3 h 5 min".
std::string time_in_words(Seconds time) {
  const auto seconds = static_cast<std::int64_t>(std::ceil(time.count()));
  if (seconds < 120) {
    return fmt::format("{} s", seconds);
  }
  return seconds < 7200 ? fmt::format("{} min {} s", seconds / 60, seconds % 60)
                        : fmt::format("{} h {} min", seconds / 3600, seconds % 3600 / 60);
}

/// Returns the rate with this many digits after the point; a slow rate, which would be 0.0, has two significant digits.
std::string with_decimals(int decimals, double rate) {
  return rate > 0.0 && rate < 0.05 ? fmt::format("{:.2g}", rate) : fmt::format("{:.{}f}", rate, decimals);
}

std::string rate_in_words(double rate) { return with_decimals(rate < 9.95 ? 1 : 0, rate); }

/// Returns "points", or "point" for a total of 1.
std::string_view noun_of(const ProgressState& state) {
  return state.noun.substr(0, state.noun.size() - (state.total == 1 ? 1 : 0));
}

}  // namespace

ProgressForm progress_form(std::string_view word, bool on_terminal) {
  if (word == "auto") {
    return on_terminal ? ProgressForm::bar : ProgressForm::none;
  }
  return word == "plain" ? ProgressForm::plain : word == "json" ? ProgressForm::json : ProgressForm::none;
}

double ProgressState::rate() const { return elapsed.count() > 0.0 ? static_cast<double>(done) / elapsed.count() : 0.0; }

Seconds ProgressState::left() const {
  return rate() > 0.0 ? Seconds(static_cast<double>(total - done) / rate()) : Seconds(0.0);
}

std::string in_words(const ProgressState& state) {
  const std::size_t percent = state.total == 0 ? 100 : 100 * state.done / state.total;
  std::string text = fmt::format("{} of {} {} ({}%)", state.done, state.total, noun_of(state), percent);
  if (state.rate() > 0.0) {
    text += state.done < state.total ? fmt::format(", {} left", time_in_words(state.left()))
                                     : fmt::format(", took {}", time_in_words(state.elapsed));
    text += fmt::format(", {} {}/s", rate_in_words(state.rate()), state.noun);
  }
  return text + (state.infeasible > 0 ? fmt::format(", {} infeasible", state.infeasible) : "");
}

std::string in_json(const ProgressState& state) {
  const std::string left = state.rate() > 0.0 ? fmt::format("{:.1f}", state.left().count()) : "null";
  return fmt::format(R"({{"done":{},"total":{},"infeasible":{},"rate_per_s":{},"left_s":{}}})", state.done, state.total,
                     state.infeasible, with_decimals(1, state.rate()), left);
}

std::string as_bar(const ProgressState& state) {
  const std::string words = in_words(state);
  constexpr std::size_t frame = 3;  // brackets and a blank
  const std::size_t space = line_width - std::min(line_width, words.size() + frame);
  const std::size_t width = std::min(widest_bar, space);
  if (width < narrowest_bar) {
    return words.substr(0, line_width);
  }
  const std::size_t full = state.total == 0 ? width : width * state.done / state.total;
  return fmt::format("[{}{}] {}", std::string(full, '='), std::string(width - full, ' '), words);
}

Progress::Progress(ProgressForm form, std::size_t total, Clock clock, Write write, std::string_view noun)
    : form_(form), clock_(std::move(clock)), write_(std::move(write)), next_(pause_of(form)) {
  state_.noun = noun;
  state_.total = total;
}

void Progress::finished(bool feasible) {
  const std::lock_guard lock(mutex_);
  ++state_.done;
  state_.infeasible += feasible ? 0 : 1;
  if (form_ == ProgressForm::none) {
    return;
  }
  state_.elapsed = clock_();
  if (state_.elapsed >= next_) {
    next_ = state_.elapsed + pause_of(form_);
    show(false);
  }
}

void Progress::end() {
  const std::lock_guard lock(mutex_);
  state_.elapsed = clock_();
  show(true);
}

void Progress::show(bool last) {
  switch (form_) {
    case ProgressForm::none: return;
    // Goes back to the start of the line, erases it, and writes the bar.
    case ProgressForm::bar: return write_(fmt::format("\r{}\x1b[K{}", as_bar(state_), last ? "\n" : ""));
    case ProgressForm::plain: return write_(in_words(state_) + "\n");
    case ProgressForm::json: return write_(in_json(state_) + "\n");
  }
}

}  // namespace commfuse
