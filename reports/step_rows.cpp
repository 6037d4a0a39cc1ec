// SPDX-License-Identifier: Apache-2.0
#include "reports/step_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "model/analysis/memory.h"
#include "model/text/amount.h"
#include "model/text/decimals.h"
#include "model/text/quantity.h"
#include "model/wrapped.h"
#include "reports/comparison.h"
#include "reports/json_rows.h"
#include "reports/plan_names.h"
#include "reports/plan_verdicts.h"
#include "reports/point_rows.h"
#include "reports/rows.h"
#include "reports/step_pays.h"

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

/// Describes the GPU that needs the most memory, below a block; empty without memory columns.
std::string memory_in_words(const StepRow& row) {
  if (!row.has("fits")) {
    return {};
  }
  const char* overflow_note = row.flag("fits") ? "" : ", out of memory";
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

/// Returns the remedies that are left for a step that does not fit. Sharing with ZeRO needs a second replica.
std::string step_remedy(const StepRow& row) {
  std::vector<std::string_view> remedies{"more GPUs"};
  const bool has_replicas = row.count("data") > 1 || row.count("context") > 1 || row.count("ulysses") > 1;
  if (has_replicas && row.count("zero") < 3) {
    remedies.emplace_back("ZeRO");
  }
  if (row.text("recompute") != "full") {
    remedies.emplace_back("recomputation");
  }
  if (row.count("micro_batch") > 1) {
    remedies.emplace_back("a smaller micro-batch");
  }
  return remedy_in_words(remedies);
}

std::string memory_remedy(const StepRow& row) {
  const std::string& scope = row.text("scope");
  return scope == "decode"    ? "use more tensor ranks, fewer sequences or shorter ones"
         : scope == "prefill" ? "use more tensor ranks or fewer tokens"
                              : step_remedy(row);
}

/// Returns the row's memory warning, which only prefills and decoding steps have; nothing without a warning.
std::optional<std::string> memory_warning_in(const StepRow& row) {
  if (!row.has("warnings") || !is_memory_warning(row.text("warnings"))) {
    return std::nullopt;
  }
  return warnings_in(row.text("warnings")).front();
}

/// Returns the GB that a GPU needs according to a memory warning; 0 if the warning states no number.
double needed_gb_of(std::string_view warning) {
  constexpr std::string_view needs = " needs ";
  const std::size_t at = warning.find(needs);
  const std::string_view number = at == std::string_view::npos ? "" : warning.substr(at + needs.size());
  return parse_number(number.substr(0, number.find(' '))).value_or(0.0);
}

/// Returns the largest memory need. Prefill rows of earlier versions have no memory columns: their warning states the
/// need if it does not fit. Decoding rows of earlier versions have no memory warning.
LargestNeed largest_need(std::span<const StepRow> rows) {
  LargestNeed largest;
  for (const StepRow& row : rows) {
    std::optional<std::string> warning = memory_warning_in(row);
    if (!row.has("fits")) {
      largest.add(warning ? needed_gb_of(*warning) : 0.0, warning);
      continue;
    }
    const double needed =
        row.has("cache_gb") ? row.number("weights_gb") + row.number("cache_gb") : row.number("memory_gb");
    if (row.flag("fits")) {
      warning.reset();
    } else if (!warning) {
      warning = memory_warning({.needed_gb = needed,
                                .capacity_gb = row.number("capacity_gb"),
                                .hardware = row.text("hardware"),
                                .remedy = memory_remedy(row)});
    }
    largest.add(needed, std::move(warning));
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
      rows, "time_p99_ms", "p50, p95, p99 and p99.9 over machines whose GPUs differ in speed", [](const StepRow& row) {
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
    width = std::max(width, label(*row).size());
  }
  return std::min(width, widest);
}

/// A name that does not fit in its column is printed on a line of its own, after `mark`, and its cell stays empty.
struct NameCell {
  std::string above;
  std::string text;
};

NameCell name_cell(const StepRow& row, char mark, std::size_t width) {
  const std::string name = label(row);
  return name.size() > width ? NameCell{fmt::format("{} {}\n", mark, name), ""} : NameCell{"", name};
}

std::string serial_cell(const StepRow& row, const StepRow* serial) {
  return serial == nullptr || &row == serial
             ? "-"
             : with_sign(100.0 * (row.number("time_ms") / serial->number("time_ms") - 1.0), 1) + "%";
}

std::string head(const PlanRows& rows, const StepRow* baseline, std::size_t width) {
  const bool is_training = std::ranges::any_of(rows, [](const StepRow* row) { return row->has("hfu"); });
  return fmt::format(step_line, ' ', "", width, "time/ms", "\u00b1",
                     baseline != nullptr && is_framework(*baseline) ? "change" : "vs serial", "tokens/s", "MFU",
                     is_training ? fmt::format(" {:>6}", "HFU") : "");
}

/// Returns a row of a block, or the reason why it has no result.
std::string table_row(const StepRow& row, char mark, const StepRow* serial, std::size_t width, TerminalStyle style) {
  if (!row.feasible()) {
    return wrapped(row.text("reason"), fmt::format("  {:<{}}  ", label(row), width + 1), "      ");
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

/// A part of a row's time, whose column exists where the parts of the row are known.
struct TimePart {
  std::string_view title;
  std::string_view column;
};
constexpr std::array step_parts{TimePart{"compute/ms", "compute_ms"}, TimePart{"waiting", "waiting_ms"},
                                TimePart{"gradients", "gradients_ms"}, TimePart{"optimizer", "optimizer_ms"}};
constexpr std::array pass_parts{TimePart{"attention/ms", "attention_ms"}, TimePart{"MLP", "mlp_ms"},
                                TimePart{"other", "other_ms"}, TimePart{"waiting", "waiting_ms"}};

/// Returns the parts of the time of a training step, a prefill or a decoding step, one line per strategy.
std::string parts(const PlanRows& rows, std::size_t width) {
  const std::string& scope = rows.front()->text("scope");
  const std::span<const TimePart> columns = scope == "prefill" || scope == "decode"
                                                ? std::span<const TimePart>(pass_parts)
                                                : std::span<const TimePart>(step_parts);
  const auto line = [&](std::string_view name, const auto& cell_of) {
    std::string text = fmt::format("  {:<{}}", name, width);
    for (const TimePart& part : columns) {
      text += fmt::format(" {:>{}}", cell_of(part), std::max<std::size_t>(9, part.title.size()));
    }
    return text + "\n";
  };
  std::string text;
  for (const StepRow* row : rows) {
    if (row->has(columns.front().column)) {
      text += text.empty() ? line("", [](const TimePart& part) { return std::string(part.title); }) : "";
      const NameCell name = name_cell(*row, ' ', width);
      text += name.above + line(name.text, [&](const TimePart& part) { return milliseconds(*row, part.column); });
    }
  }
  return text.empty() ? text : "\n" + text;
}

std::string block(const PlanRows& rows, const VerdictRule& rule, TerminalStyle style) {
  const StepRow* serial = serial_of(rows);
  const PlanVerdict verdict(rows, rule);
  const std::size_t width = name_width(rows);
  std::string text = head(rows, serial, width);
  for (const StepRow* row : rows) {
    text += table_row(*row, !verdict.in_front(row) ? ' ' : verdict.wins() ? '>' : '~', serial, width, style);
  }
  const std::vector<std::string> warnings = implementation_warnings(rows);
  for (const std::string& sentence :
       {verdict.sentence(), implemented_sites_in_words(rows),
        warnings.empty() ? std::string{} : fmt::format("Beyond the fit: {}.", fmt::join(warnings, "; "))}) {
    text += sentence.empty() ? sentence : wrapped(sentence, "  ", "  ");
  }
  return text + parts(rows, width);
}

}  // namespace

std::string label(const StepRow& row) {
  return is_bound(row) ? fmt::format("{} (ideal)", row.text("strategy")) : row.text("strategy");
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
        first.feasible() ? fmt::format("{} takes {} ms.", first.text("strategy"), milliseconds(first, "time_ms"))
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
