// SPDX-License-Identifier: Apache-2.0
#include "reports/step_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "model/analysis/memory.h"
#include "model/record/result.h"
#include "model/text/amount.h"
#include "model/text/decimals.h"
#include "model/text/quantity.h"
#include "model/wrapped.h"
#include "reports/comparison.h"
#include "reports/json_rows.h"
#include "reports/point_rows.h"
#include "reports/rows.h"

namespace commfuse::reports {

namespace {

std::string step_object(const StepRow& row) {
  nlohmann::ordered_json object;
  for (const auto& [name, value] : row.cells) {
    std::visit([&, key = std::string(name)](const auto& cell) { object[key] = cell; }, value);
  }
  return object.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

std::string csv_cell(const StepRow::Value& value) {
  struct Writer {
    std::string operator()(bool is_true) const { return is_true ? "true" : "false"; }
    std::string operator()(std::int64_t number) const { return fmt::format("{}", number); }
    std::string operator()(double number) const { return fmt::format("{}", number); }
    std::string operator()(const std::string& text) const { return csv_text(text); }
  };
  return std::visit(Writer{}, value);
}

/// Returns every name once, in order of appearance.
std::vector<std::string_view> columns_of(std::span<const StepRow> rows) {
  std::vector<std::string_view> columns;
  for (const StepRow& row : rows) {
    for (const auto& [name, value] : row.cells) {
      if (std::find(columns.begin(), columns.end(), name) == columns.end()) {
        columns.push_back(name);
      }
    }
  }
  return columns;
}

/// Names attention, dropout and gradients if they are unusual; rows of older versions lack these columns.
std::string unusual_kernels(const StepRow& row) {
  if (!row.has("attention_kernel")) {
    return {};
  }
  std::string text = row.text("attention_kernel") == "fused" ? "" : ", unfused attention";
  text += row.holds("dropout") ? ", dropout" : "";
  text += row.text("gradient_dtype") == "fp32" ? "" : fmt::format(", {} gradients", row.text("gradient_dtype"));
  return text + (row.holds("overlap_gradients") ? "" : ", gradients after the backward pass");
}

/// Names unusual settings of a plan: ", ZeRO 1, micro-batch 2".
std::string unusual(const StepRow& row) {
  std::string text;
  const auto add = [&](std::string_view name, std::string_view words, std::int64_t usual) {
    text += row.count(name) == usual ? "" : fmt::format(", {} {}", words, row.count(name));
  };
  add("interleave", "interleave", 1);
  text += row.count("experts") == 1 ? "" : fmt::format(", experts over {} ranks", row.count("experts"));
  add("zero", "ZeRO", 0);
  if (row.text("scope") == "step") {
    add("micro_batch", "micro-batch", 1);
  }
  text += !row.has("all_reduce_kernel") || row.text("all_reduce_kernel") == "nccl"
              ? ""
              : fmt::format(", all-reduce of {}", row.text("all_reduce_kernel"));
  text += row.text("recompute") == "none" ? "" : fmt::format(", recompute {}", row.text("recompute"));
  return text + unusual_kernels(row);
}

/// Formats "8 tensor x 4 pipeline"; a single degree as "1 tensor".
std::string layout_in_words(const StepRow& row) {
  std::string text = fmt::format("{} tensor", row.count("tensor"));
  for (const char* axis : {"pipeline", "data", "context", "ulysses"}) {
    text += row.count(axis) == 1 ? "" : fmt::format(" x {} {}", row.count(axis), axis);
  }
  text += row.text("pipeline_schedule") == "1f1b" ? "" : ", " + row.text("pipeline_schedule");
  return text;
}

/// Describes the GPU that needs the most memory, below a block; empty without memory columns.
std::string memory_in_words(const StepRow& row) {
  if (!row.has("fits")) {
    return {};
  }
  const char* overflow_note = row.holds("fits") ? "" : ", out of memory";
  const auto gb = [&](const char* name) { return row.number(name); };
  if (row.has("cache_gb")) {
    return "\n" + wrapped(fmt::format("memory of a GPU: weights {:.1f} GB, keys and values {:.1f}, of {:.1f} GB{}",
                                      gb("weights_gb"), gb("cache_gb"), gb("capacity_gb"), overflow_note),
                          "  ", "    ");
  }
  const bool gathers = row.has("gathered_gb") && gb("gathered_gb") > 0.0;
  return "\n" +
         wrapped(fmt::format("memory of the fullest GPU: {:.1f} of {:.1f} GB{}; weights {:.1f}, gradients {:.1f}, "
                             "optimizer {:.1f}, activations {:.1f}{}",
                             gb("memory_gb"), gb("capacity_gb"), overflow_note, gb("weights_gb"), gb("gradients_gb"),
                             gb("optimizer_gb"), gb("activations_gb"),
                             gathers ? fmt::format(", gathered {:.1f}", gb("gathered_gb")) : ""),
                 "  ", "    ");
}

std::string_view memory_remedy(const StepRow& row) {
  const std::string& scope = row.text("scope");
  return scope == "decode"    ? "use more tensor ranks, fewer sequences or shorter ones"
         : scope == "prefill" ? prefill_remedy
                              : "use more GPUs, ZeRO, recomputation or a smaller micro-batch";
}

/// Returns the GB that a GPU needs according to a memory warning; 0 if it states no number.
double needed_gb_of(std::string_view warning) {
  constexpr std::string_view needs = " needs ";
  const std::size_t at = warning.find(needs);
  const std::string_view number = at == std::string_view::npos ? "" : warning.substr(at + needs.size());
  return parse_number(number.substr(0, number.find(' '))).value_or(0.0);
}

/// Returns the largest memory need. Rows of prefill of former versions have no memory columns: their warning states the
/// need if it does not fit.
LargestNeed largest_need(std::span<const StepRow> rows) {
  LargestNeed largest;
  for (const StepRow& row : rows) {
    if (!row.has("fits")) {
      const bool is_full = row.has("warnings") && is_memory_warning(row.text("warnings"));
      const std::string warnings = is_full ? row.text("warnings") : std::string{};
      const std::string warning = warnings.substr(0, warnings.find("; "));
      largest.add(is_full ? needed_gb_of(warning) : 0.0, is_full ? std::optional(warning) : std::nullopt);
      continue;
    }
    const double needed =
        row.has("cache_gb") ? row.number("weights_gb") + row.number("cache_gb") : row.number("memory_gb");
    const MemoryNeed need{.needed_gb = needed,
                          .capacity_gb = row.number("capacity_gb"),
                          .hardware = row.text("hardware"),
                          .remedy = memory_remedy(row)};
    largest.add(needed, row.holds("fits") ? std::nullopt : std::optional(memory_warning(need)));
  }
  return largest;
}

using PlanRows = std::vector<const StepRow*>;

/// Returns a time of the row in milliseconds; a decoding step is short and has more digits.
std::string milliseconds(const StepRow& row, std::string_view column) {
  return fmt::format("{:.{}f}", row.number(column), row.text("scope") == "decode" ? 3 : 1);
}

/// Returns "<begin>: serial <words>; sliced <words>", a line below a block with the rows that have the column; empty if
/// none has it.
std::string line_of_rows(const PlanRows& rows, std::string_view column, const std::string& begin,
                         std::string (*in_words)(const StepRow& row)) {
  std::string line;
  for (const StepRow* row : rows) {
    if (row->has(column)) {
      line += fmt::format("{} {} {}", line.empty() ? begin + ":" : ";", row->text("strategy"), in_words(*row));
    }
  }
  return line.empty() ? line : "\n" + wrapped(line, "  ", "    ");
}

/// Returns the line of percentiles below a block; empty if all GPUs have the same speed.
std::string percentile_line(const PlanRows& rows) {
  return line_of_rows(
      rows, "time_p99_ms", "p50, p95, p99 and p99.9 over machines with different GPUs", [](const StepRow& row) {
        return fmt::format("{}, {}, {} and {}", milliseconds(row, "time_p50_ms"), milliseconds(row, "time_p95_ms"),
                           milliseconds(row, "time_p99_ms"), milliseconds(row, "time_p99_9_ms"));
      });
}

/// Returns the line of costs below a block; empty without a price.
std::string cost_line(const PlanRows& rows) {
  const StepRow& first = *rows.front();
  if (!first.has("price")) {
    return {};
  }
  return line_of_rows(
      rows, "cost_per_mtok",
      fmt::format("cost of a million {} tokens at {} per GPU-hour",
                  first.text("scope") == "decode" ? "generated" : "prompt", amount_of_money("", first.number("price"))),
      [](const StepRow& row) { return amount_of_money("", row.number("cost_per_mtok")); });
}

constexpr const char* step_line = "{} {:<{}} {:>9} {:>5} {:>9} {:>9} {:>6}{}\n";

/// Returns the width of the name column of a block, limited so that lines stay within page_width.
std::size_t name_width(const PlanRows& rows) {
  constexpr std::size_t narrowest = 13;
  constexpr std::size_t widest = 28;
  std::size_t width = narrowest;
  for (const StepRow* row : rows) {
    width = std::max(width, row->text("strategy").size());
  }
  return std::min(width, widest);
}

/// A name that does not fit in its column is printed on a line of its own, after `mark`, and its cell stays empty.
struct NameCell {
  std::string above;
  std::string text;
};

NameCell name_cell(const StepRow& row, char mark, std::size_t width) {
  const std::string& name = row.text("strategy");
  return name.size() > width ? NameCell{fmt::format("{} {}\n", mark, name), ""} : NameCell{"", name};
}

std::string serial_cell(const StepRow& row, const StepRow* serial) {
  return serial == nullptr || &row == serial
             ? "-"
             : with_sign(100.0 * (row.number("time_ms") / serial->number("time_ms") - 1.0), 1) + "%";
}

bool is_framework(const StepRow& row) { return row.has("framework") && row.text("framework") == row.text("strategy"); }

std::string head(const PlanRows& rows, const StepRow* baseline, std::size_t width) {
  const bool is_training = std::ranges::any_of(rows, [](const StepRow* row) { return row->has("hfu"); });
  return fmt::format(step_line, ' ', "", width, "time/ms", "\u00b1",
                     baseline != nullptr && is_framework(*baseline) ? "change" : "vs serial", "tokens/s", "MFU",
                     is_training ? fmt::format(" {:>6}", "HFU") : "");
}

/// Returns a row of a block, or the reason why it has no result.
std::string table_row(const StepRow& row, char mark, const StepRow* serial, std::size_t width, TerminalStyle style) {
  if (!row.feasible()) {
    return wrapped(row.text("reason"), fmt::format("  {:<{}}  ", row.text("strategy"), width + 1), "      ");
  }
  const NameCell name = name_cell(row, mark, width);
  const std::string text =
      name.above + fmt::format(step_line, name.above.empty() ? mark : ' ', name.text, width,
                               milliseconds(row, "time_ms"),
                               row.has("time_error") ? fmt::format("{:.1f}%", 100.0 * row.number("time_error")) : "-",
                               serial_cell(row, serial), fmt::format("{:.0f}", row.number("tokens_per_second")),
                               fmt::format("{:.1f}%", 100.0 * row.number("mfu")),
                               row.has("hfu") ? fmt::format(" {:>5.1f}%", 100.0 * row.number("hfu")) : "");
  return mark == '>' ? style.bold(text) : text;
}

/// Returns the parts of a training step's time, one line per strategy.
std::string parts(const PlanRows& rows, std::size_t width) {
  std::string text;
  for (const StepRow* row : rows) {
    if (row->has("compute_ms")) {
      text += text.empty() ? fmt::format("  {:<{}} {:>10} {:>9} {:>9} {:>9}\n", "", width, "compute/ms", "waiting",
                                         "gradients", "optimizer")
                           : "";
      const NameCell name = name_cell(*row, ' ', width);
      text += name.above + fmt::format("  {:<{}} {:>10.1f} {:>9.1f} {:>9.1f} {:>9.1f}\n", name.text, width,
                                       row->number("compute_ms"), row->number("waiting_ms"),
                                       row->number("gradients_ms"), row->number("optimizer_ms"));
    }
  }
  return text.empty() ? text : "\n" + text;
}

Contender contender_of(const StepRow& row) {
  const auto share = [&](std::string_view name) {
    return row.has(name) ? std::optional(row.number(name)) : std::nullopt;
  };
  return {row.number("time_ms"), share("time_error"), share("win_probability")};
}

std::string block(const PlanRows& rows, const VerdictRule& rule, TerminalStyle style) {
  const StepRow* serial = serial_of(rows);
  const PlanVerdict verdict(rows, rule);
  const std::size_t width = name_width(rows);
  std::string text = head(rows, serial, width);
  for (const StepRow* row : rows) {
    text += table_row(*row, !verdict.in_front(row) ? ' ' : verdict.wins() ? '>' : '~', serial, width, style);
  }
  const std::string sentence = verdict.sentence();
  return text + (sentence.empty() ? sentence : wrapped(sentence, "  ", "  ")) + parts(rows, width);
}

/// Returns the settings of a row except the strategy: the cells before the strategy.
std::string plan_key(const StepRow& row) {
  StepRow settings;
  const bool is_decode = row.text("scope") == "decode";
  for (const auto& cell : row.cells) {
    if (cell.first == "strategy") {
      break;
    }
    // One decode plan compares schedules that sum whole outputs with schedules whose ranks split the tokens.
    if (!is_decode || cell.first != "sequence_parallel") {
      settings.cells.push_back(cell);
    }
  }
  return step_object(settings);
}

std::string gpus_in_words(const StepRow& row) {
  return row.count("gpus") == 1 ? "1 GPU" : fmt::format("{} GPUs", row.count("gpus"));
}

std::string machine_of(const StepRow& row) {
  return machine_in_words(row.text("hardware"), row.text("link_bandwidth"), row.text("network_bandwidth"));
}

/// Returns the value of a column of settings: "recompute full", "micro-batch 2", "no dropout".
std::string setting_in_words(std::string_view name, const StepRow::Value& value) {
  if (const bool* is_on = std::get_if<bool>(&value)) {
    return name == "overlap_gradients" ? fmt::format("gradients {} the backward pass", *is_on ? "during" : "after")
                                       : fmt::format("{}{}", *is_on ? "" : "no ", name);
  }
  constexpr std::array<std::pair<std::string_view, std::string_view>, 6> words{{
      {"zero", "ZeRO"},
      {"micro_batch", "micro-batch"},
      {"experts", "expert ranks"},
      {"all_reduce_kernel", "all-reduce of"},
      {"attention_kernel", "attention"},
      {"gradient_dtype", "gradients"},
  }};
  const auto known = std::ranges::find(words, name, &std::pair<std::string_view, std::string_view>::first);
  const std::string_view title = known == words.end() ? name : known->second;
  return name == "seq" ? fmt::format("seq {}", format_count(std::get<std::int64_t>(value)))
                       : fmt::format("{} {}", title, csv_cell(value));
}

/// Words for the plans of a list, which name the settings that tell them apart. The rows must outlive it.
class PlanNames {
 public:
  explicit PlanNames(std::span<const StepRow> rows) {
    const StepRow& first = rows.front();
    for (const StepRow& row : rows) {
      has_several_machines_ = has_several_machines_ || machine_of(row) != machine_of(first);
      for_each_setting(row, [&](std::string_view name, const StepRow::Value& value) {
        const bool is_known = std::ranges::find(varying_, name) != varying_.end();
        if (!is_known && !has_value(first, name, value)) {
          varying_.push_back(name);
        }
      });
    }
  }

  /// Returns "commfuse on dgx-h100-x8, 64 GPUs (8 tensor x 8 pipeline), batch 64, seq 4K, recompute full"; without the
  /// machine if all plans have the same one.
  [[nodiscard]] std::string first_name(const StepRow& row) const {
    std::string text =
        fmt::format("{}, batch {}, seq {}", layout_name(row), row.count("batch"), format_count(row.count("seq")));
    for_each_setting(row, [&](std::string_view name, const StepRow::Value& value) {
      const bool is_named = name == "batch" || name == "seq" || std::ranges::find(varying_, name) == varying_.end();
      text += is_named ? "" : ", " + setting_in_words(name, value);
    });
    return text;
  }

  /// Returns the same with only the settings that differ from those of `first`, batch and seq included.
  [[nodiscard]] std::string name_after(const StepRow& row, const StepRow& first) const {
    std::string text = layout_name(row);
    for_each_setting(row, [&](std::string_view name, const StepRow::Value& value) {
      text += has_value(first, name, value) ? "" : ", " + setting_in_words(name, value);
    });
    return text;
  }

 private:
  static bool has_value(const StepRow& row, std::string_view name, const StepRow::Value& value) {
    const StepRow::Value* other = row.find(name);
    return other != nullptr && *other == value;
  }

  /// Calls `each` with the settings that layout_name() does not name.
  template <class Each>
  static void for_each_setting(const StepRow& row, const Each& each) {
    constexpr std::array<std::string_view, 13> named_otherwise{"schema", "model_version", "hardware", "link_bandwidth",
                                                               "network_bandwidth", "gpus", "tensor", "pipeline",
                                                               "pipeline_schedule", "data", "context", "ulysses",
                                                               // The name of the schedule says it.
                                                               "sequence_parallel"};
    for (const auto& [name, value] : row.cells) {
      if (name == "strategy") {
        return;
      }
      if (std::ranges::find(named_otherwise, name) == named_otherwise.end()) {
        each(name, value);
      }
    }
  }

  [[nodiscard]] std::string layout_name(const StepRow& row) const {
    return fmt::format("{} on {}{} ({})", row.text("strategy"), has_several_machines_ ? machine_of(row) + ", " : "",
                       gpus_in_words(row), layout_in_words(row));
  }

  bool has_several_machines_ = false;
  std::vector<std::string_view> varying_;  ///< Settings in which a plan differs from the first.
};

}  // namespace

std::string plan_heading(const StepRow& row) {
  return fmt::format("{} {} on {}, {} ({}), batch {}, seq {}, {}{}", row.text("model"), row.text("scope"),
                     machine_of(row), gpus_in_words(row), layout_in_words(row), row.count("batch"),
                     format_count(row.count("seq")), row.text("dtype"), unusual(row));
}

const StepRow* serial_of(std::span<const StepRow* const> rows) {
  for (const StepRow* row : rows) {
    if (row->feasible() && is_framework(*row)) {
      return row;
    }
  }
  const auto serial = std::ranges::find_if(
      rows, [](const StepRow* row) { return row->feasible() && row->text("strategy") == "serial"; });
  return serial == rows.end() ? nullptr : *serial;
}

namespace {

/// Returns whether the schedule hides no communication under GEMMs. A decoding step has two such schedules.
bool has_no_overlap(const StepRow& row) {
  return row.text("strategy") == "serial" || row.text("strategy") == "all_reduce";
}

/// Returns the framework's own row, or else the fastest schedule without overlap; null if the plan has neither.
const StepRow* baseline_of(std::span<const StepRow* const> plan) {
  const StepRow* baseline = serial_of(plan);
  if (baseline != nullptr && is_framework(*baseline)) {
    return baseline;
  }
  for (const StepRow* row : plan) {
    const bool is_faster = row->feasible() && has_no_overlap(*row) &&
                           (baseline == nullptr || row->number("time_ms") < baseline->number("time_ms"));
    baseline = is_faster ? row : baseline;
  }
  return baseline;
}

}  // namespace

std::optional<PlanSaving> plan_saving(std::span<const StepRow* const> plan, const VerdictRule& rule) {
  PlanSaving saving{.baseline = baseline_of(plan)};
  for (const StepRow* row : plan) {
    const bool is_other = row->feasible() && row != saving.baseline && !has_no_overlap(*row);
    const bool is_faster =
        is_other && (saving.overlap == nullptr || row->number("time_ms") < saving.overlap->number("time_ms"));
    saving.overlap = is_faster ? row : saving.overlap;
  }
  if (saving.baseline == nullptr || saving.overlap == nullptr) {
    return std::nullopt;
  }
  saving.saved = 1.0 - saving.overlap->number("time_ms") / saving.baseline->number("time_ms");
  const Verdict verdict = verdict_of(std::array{contender_of(*saving.overlap), contender_of(*saving.baseline)}, rule);
  saving.pays = !verdict.wins() ? Pays::close : verdict.front.front() == 0 ? Pays::yes : Pays::no;
  return saving;
}

PlanSavings plan_savings(std::span<const StepRow> rows, const VerdictRule& rule) {
  PlanSavings savings;
  SavingTally tally;
  std::vector<std::string> baselines;
  const std::vector<PlanRows> plans = plans_of(rows);
  std::optional<PlanSaving> decisive_saving;
  const auto fits = [](const StepRow& row) { return !row.has("fits") || row.holds("fits"); };
  const bool any_fits = std::ranges::any_of(rows, [&](const StepRow& row) { return row.feasible() && fits(row); });
  for (std::size_t i = 0; i < plans.size(); ++i) {
    const std::optional<PlanSaving> saving = plan_saving(plans[i], rule);
    if (!saving) {
      continue;
    }
    tally.add(saving->saved, saving->pays);
    // A sure saving outweighs a sure loss, and a sure loss outweighs a difference that is too close to call.
    const auto weight = [&](const PlanSaving& plan) {
      return std::tuple(!any_fits || fits(*plan.overlap),
                        plan.pays == Pays::yes  ? 2
                        : plan.pays == Pays::no ? 1
                                                : 0,
                        plan.pays == Pays::close ? 0.0 : std::abs(plan.saved));
    };
    if (!decisive_saving || weight(*saving) > weight(*decisive_saving)) {
      decisive_saving = saving;
      savings.decisive = i;
    }
    if (const std::string& name = saving->baseline->text("strategy");
        std::ranges::find(baselines, name) == baselines.end()) {
      baselines.push_back(name);
    }
  }
  savings.baseline = fmt::format("{}", fmt::join(baselines, " or "));
  savings.count = tally.count();
  return savings;
}

PlanVerdict::PlanVerdict(std::span<const StepRow* const> rows, const VerdictRule& rule) : rule_(rule) {
  std::ranges::copy_if(rows, std::back_inserter(feasible_), &StepRow::feasible);
  std::vector<Contender> contenders;
  std::ranges::transform(feasible_, std::back_inserter(contenders),
                         [](const StepRow* row) { return contender_of(*row); });
  if (!feasible_.empty()) {
    verdict_ = verdict_of(contenders, rule);
  }
}

bool PlanVerdict::in_front(const StepRow* row) const {
  return feasible_.size() > 1 &&
         std::ranges::any_of(verdict_.front, [&](std::size_t index) { return feasible_[index] == row; });
}

std::string PlanVerdict::sentence() const {
  if (feasible_.size() < 2) {
    return {};
  }
  if (verdict_.wins()) {
    const char* wins = is_framework(*feasible_[verdict_.order.front()]) ? "is already the fastest" : "wins";
    return fmt::format("{} {}{}: {:.1f}% less time than {}.", name(0), wins, sure_in_words(verdict_.probability),
                       100.0 * (1.0 - time(0) / time(1)), name(1));
  }
  std::vector<std::string> names;
  double slowest = 0.0;
  for (const std::size_t index : verdict_.front) {
    names.push_back(feasible_[index]->text("strategy"));
    slowest = std::max(slowest, feasible_[index]->number("time_ms"));
  }
  return fmt::format("Tie: {} are within {:.1f}%; a win needs {}.", names_in_words(names),
                     100.0 * (slowest / time(0) - 1.0), rule_in_words(rule_));
}

/// The correlation between errors of different plans is unknown, so the difference alone decides.
std::string best_plan(std::span<const StepRow> rows, const VerdictRule& rule) {
  std::vector<const StepRow*> fitting;
  std::vector<Contender> contenders;
  bool has_several_plans = false;
  for (const StepRow& row : rows) {
    has_several_plans = has_several_plans || plan_heading(row) != plan_heading(rows.front());
    if (row.feasible() && (!row.has("fits") || row.holds("fits"))) {
      fitting.push_back(&row);
      contenders.push_back({1.0 / row.number("tokens_per_second_gpu")});
    }
  }
  if (!has_several_plans || fitting.empty()) {
    return {};
  }
  const Verdict verdict = verdict_of(contenders, rule);
  const StepRow& best = *fitting[verdict.front.front()];
  const PlanNames names(rows);
  constexpr std::size_t max_named = 3;
  std::vector<std::string> ties;
  for (std::size_t i = 1; i < verdict.front.size() && ties.size() < max_named; ++i) {
    ties.push_back(names.name_after(*fitting[verdict.front[i]], best));
  }
  if (verdict.front.size() - 1 > max_named) {
    ties.push_back(fmt::format("{} more", verdict.front.size() - 1 - max_named));
  }
  const std::string tied =
      ties.empty() ? "" : fmt::format("; within {:.3g}%: {}", 100.0 * rule.difference, fmt::join(ties, "; "));
  return fmt::format("Most tokens per second and GPU among plans that fit: {:.0f}, by {}{}",
                     best.number("tokens_per_second_gpu"), names.first_name(best), tied);
}

std::vector<std::vector<const StepRow*>> plans_of(std::span<const StepRow> rows) {
  std::map<std::string, std::size_t> plan_indices;
  std::vector<std::vector<const StepRow*>> plans;
  for (const StepRow& row : rows) {
    const auto [entry, is_new] = plan_indices.try_emplace(plan_key(row), plans.size());
    if (is_new) {
      plans.emplace_back();
    }
    plans[entry->second].push_back(&row);
  }
  return plans;
}

std::string memory_sentence(std::span<const StepRow> rows) { return largest_need(rows).sentence(); }

std::string step_table(std::span<const StepRow> rows, const VerdictRule& rule, const ModelWords& words,
                       TerminalStyle style) {
  const std::string memory_text = memory_sentence(rows);
  std::string text = memory_text.empty() ? memory_text : wrapped(memory_text, "", "  ");
  for (const PlanRows& plan : plans_of(rows)) {
    std::string memory;
    for (const StepRow* row : plan) {
      memory = row->feasible() ? memory_in_words(*row) : memory;
    }
    text += (text.empty() ? "" : "\n") + wrapped(plan_heading(*plan.front()), "", "  ") +
            line_on(plan.front()->text("model"), words) + "\n" + block(plan, rule, style) + percentile_line(plan) +
            cost_line(plan) + memory;
  }
  const std::string best = best_plan(rows, rule);
  return text + (best.empty() ? best : wrapped(best, "\n", ""));
}

std::string step_verdicts(std::span<const StepRow> rows, const VerdictRule& rule) {
  const std::vector<PlanRows> plans = plans_of(rows);
  const std::string memory_text = memory_sentence(rows);
  std::string text = memory_text.empty() ? memory_text : wrapped(memory_text, "", "  ");
  for (const PlanRows& plan : plans) {
    const std::string heading = plans.size() == 1 ? std::string{} : plan_heading(*plan.front()) + ": ";
    const PlanVerdict verdict(plan, rule);
    const StepRow& first = *plan.front();
    const std::string only_result =
        first.feasible() ? fmt::format("{} takes {:.1f} ms.", first.text("strategy"), first.number("time_ms"))
                         : fmt::format("{} cannot be run: {}.", first.text("strategy"), first.text("reason"));
    const std::string sentence = verdict.sentence();
    text += wrapped(heading + (sentence.empty() ? only_result : sentence), "", "  ");
  }
  const std::string best = best_plan(rows, rule);
  return text + (best.empty() ? best : wrapped(best, "", "  "));
}

std::string step_verdict(std::span<const StepRow> rows, const VerdictRule& rule) {
  PlanRows plan;
  for (const StepRow& row : rows) {
    plan.push_back(&row);
  }
  return PlanVerdict(plan, rule).sentence();
}

std::string to_json(std::span<const StepRow> rows) { return json_array(rows, step_object); }
std::string to_json_lines(std::span<const StepRow> rows) { return json_lines(rows, step_object); }

std::string to_csv(std::span<const StepRow> rows) {
  const std::vector<std::string_view> columns = columns_of(rows);
  std::string text = fmt::format("{}\r\n", fmt::join(columns, ","));
  for (const StepRow& row : rows) {
    for (const std::string_view& column : columns) {
      const StepRow::Value* value = row.find(column);
      text += fmt::format("{}{}", &column == columns.data() ? "" : ",", value == nullptr ? "" : csv_cell(*value));
    }
    text += "\r\n";
  }
  return text;
}

}  // namespace commfuse::reports
