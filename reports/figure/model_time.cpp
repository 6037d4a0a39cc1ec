// SPDX-License-Identifier: Apache-2.0
#include "reports/figure/model_time.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <vector>

#include "model/check.h"
#include "reports/figure/bar_rows.h"
#include "reports/figure/ticks.h"
#include "reports/figure/wording.h"
#include "reports/step_rows.h"

namespace commfuse::reports {

namespace {

struct ModelPart {
  std::string_view name;
  std::string_view column;
  Role role = Role::essential;
  bool hatched = false;
  std::string_view legend{};
};
constexpr std::array training_parts{
    ModelPart{"compute", "compute_ms", Role::essential, false, "compute, and the collectives between kernels"},
    ModelPart{"waiting", "waiting_ms", Role::exposed, true, "waiting: pipeline bubble, sends, host"},
    ModelPart{"gradients", "gradients_ms", Role::communication, false, "gradients: exposed reduction"},
    ModelPart{"optimizer", "optimizer_ms", Role::local, false, "optimizer"}};
constexpr std::array whole{ModelPart{"time", "time_ms"}};

std::span<const ModelPart> parts_of(const StepRow& row) {
  return row.has("compute_ms") ? std::span<const ModelPart>(training_parts) : std::span<const ModelPart>(whole);
}

std::string text_of(const StepRow& row, double ms) {
  return fmt::format("{:.{}f} ms", ms, row.text("scope") == "decode" ? 3 : 1);
}

void add_bar(const StepRow& row, double y, Figure& figure, std::vector<TextMark>& totals) {
  double start = 0.0;
  for (const ModelPart& part : parts_of(row)) {
    const double ms = row.number(part.column);
    figure.data.rows.push_back({label(row), std::string(part.name), fmt::format("{}", ms)});
    if (ms > 0.0) {
      const std::string length = text_of(row, ms);
      figure.marks.emplace_back(
          RectMark{.from = {start, y - bar_share / 2},
                   .to = {start + ms, y + bar_share / 2},
                   .role = part.role,
                   .hatched = part.hatched,
                   .labels = {fmt::format("{} {}", part.name, length), std::string(part.name)},
                   .tip = fmt::format("{}: {} {}, {} of {}", label(row), part.name, length,
                                      percent(ms / row.number("time_ms")), model_time_text(row))});
    }
    start += ms;
  }
  totals.push_back({.at = {start * 1.01, y + 0.15}, .strong = model_time_text(row), .text = ""});
  figure.description += fmt::format("{}: {}. ", label(row), model_time_text(row));
}

}  // namespace

std::string model_time_text(const StepRow& row) { return text_of(row, row.number("time_ms")); }

Figure model_time_figure(std::span<const StepRow* const> plan, std::string id, const VerdictRule& rule) {
  std::vector<const StepRow*> feasible;
  std::ranges::copy_if(plan, std::back_inserter(feasible), &StepRow::feasible);
  check(!feasible.empty(), "a figure of times needs at least one result");
  double longest = 1e-9;  // An axis needs a length.
  for (const StepRow* row : feasible) {
    longest = std::max(longest, row->number("time_ms"));
  }
  const std::string sentence = PlanVerdict(plan, rule).sentence();
  Figure figure;
  figure.id = std::move(id);
  const std::optional<PlanSaving> saving = plan_saving(plan, rule);
  figure.title =
      saving ? fmt::format("{}{} takes {} {} time than {}", saving->pays == Pays::close ? "Too close to call: " : "",
                           saving->overlap->text("strategy"), percent(std::abs(saving->saved)),
                           saving->saved < 0.0 ? "more" : "less", saving->baseline->text("strategy"))
      : sentence.empty()
          ? fmt::format("{} takes {}", feasible.front()->text("strategy"), model_time_text(*feasible.front()))
          : sentence.substr(0, sentence.size() - 1);
  figure.height = row_height * static_cast<double>(feasible.size());
  figure.x = {.label = "time", .unit = "ms", .low = 0.0, .high = longest * 1.14, .grid = true};
  figure.y = {.low = -0.5, .high = static_cast<double>(feasible.size()) - 0.5, .reversed = true};
  figure.data.columns = {"strategy", "part", "time_ms"};
  std::vector<TextMark> totals;  // at the end of each bar, drawn after all bars
  for (std::size_t i = 0; i < feasible.size(); ++i) {
    figure.y.ticks.push_back({static_cast<double>(i), label(*feasible[i])});
    add_bar(*feasible[i], static_cast<double>(i), figure, totals);
  }
  figure.marks.insert(figure.marks.end(), totals.begin(), totals.end());
  figure.x.ticks = round_ticks(figure.x.low, figure.x.high, 8);
  if (feasible.front()->has("compute_ms")) {
    for (const ModelPart& part : training_parts) {
      if (std::ranges::none_of(feasible,
                               [&](const StepRow* row) { return row->number(part.column) > 1e-3 * longest; })) {
        continue;  // No bar shows this part.
      }
      figure.legend.push_back({std::string(part.legend), part.role, part.hatched});
    }
  }
  return figure;
}

}  // namespace commfuse::reports
