// SPDX-License-Identifier: Apache-2.0
#include "reports/figure/distribution.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <vector>

#include "model/analysis/percentiles.h"
#include "model/analysis/verdict.h"
#include "model/check.h"
#include "reports/figure/line_styles.h"
#include "reports/figure/ticks.h"
#include "reports/figure/wording.h"

namespace commfuse::reports {

namespace {

constexpr std::array per_milles{1,   10,  20,  50,  100, 150, 200, 250, 300, 350, 400, 450, 500, 550, 600, 650, 700,
                                750, 800, 850, 900, 920, 940, 950, 960, 970, 980, 985, 990, 993, 995, 997, 998, 999};
constexpr std::array labelled{std::pair{500, "p50"}, std::pair{950, "p95"}, std::pair{990, "p99"},
                              std::pair{999, "p99.9"}};

std::string name_of(int per_mille) {
  return per_mille % 10 == 0 ? fmt::format("p{}", per_mille / 10)
                             : fmt::format("p{}.{}", per_mille / 10, per_mille % 10);
}

void add_run(const SampledRun& run, std::size_t index, const TimeUnit& unit, Figure& figure) {
  const LineStyle style = style_of(index);
  LineMark line{.role = style.role, .name = run.name, .dashes = std::string{style.dashes}};
  BandMark band{.role = style.role};
  for (const int per_mille : per_milles) {
    const double share = 1.0 - per_mille / 1000.0;
    if (static_cast<std::size_t>(1000 - per_mille) * run.sorted.size() < 1000) {
      break;  // Less than one sample is above this percentile.
    }
    const Estimate estimate = percentile(run.sorted, per_mille);
    line.points.push_back({unit.value(estimate.value), share});
    std::string tip = fmt::format("{}, {}: {}", run.name, name_of(per_mille), unit.text(estimate.value));
    std::vector<std::string> row{run.name, fmt::format("{}", per_mille / 10.0),
                                 fmt::format("{}", to_microseconds(estimate.value)), "", ""};
    if (estimate.range) {
      band.low.push_back({unit.value(estimate.range->low), share});
      band.high.push_back({unit.value(estimate.range->high), share});
      tip += fmt::format(" (95%: {} to {})", unit.digits(estimate.range->low), unit.text(estimate.range->high));
      row[3] = fmt::format("{}", to_microseconds(estimate.range->low));
      row[4] = fmt::format("{}", to_microseconds(estimate.range->high));
    }
    line.tips.push_back(std::move(tip));
    figure.data.rows.push_back(std::move(row));
  }
  if (band.low.size() > 1) {
    figure.marks.emplace_back(std::move(band));
  }
  figure.marks.emplace_back(std::move(line));
  figure.legend.push_back({.text = run.name, .role = style.role, .line = true, .dashes = std::string{style.dashes}});
}

std::string title_of(std::span<const SampledRun> runs, const TimeUnit& unit) {
  const auto p99 = [](const SampledRun& run) { return percentile(run.sorted, 990).value; };
  const auto best =
      std::min_element(runs.begin(), runs.end(), [&](const auto& a, const auto& b) { return p99(a) < p99(b); });
  const Duration median = percentile(best->sorted, 500).value;
  const std::string best_in_words = fmt::format("{}, {} above its median", unit.text(p99(*best)),
                                                percent(to_seconds(p99(*best)) / to_seconds(median) - 1.0));
  const std::optional<TimeRange> range = percentile(best->sorted, 990).range;
  std::vector<std::string> close;
  for (const SampledRun& run : runs) {
    if (&run != &*best && range && p99(run) <= range->high) {
      close.push_back(run.name);
    }
  }
  return close.empty() ? fmt::format("{} has the lowest p99: {}", best->name, best_in_words)
                       : fmt::format("The p99 of {} is {}; {} of {} {} within its 95% interval", best->name,
                                     best_in_words, close.size() == 1 ? "the p99" : "those", names_in_words(close),
                                     close.size() == 1 ? "lies" : "lie");
}

void set_axes(std::span<const SampledRun> runs, const TimeUnit& unit, Figure& figure) {
  Duration least = Duration::max();
  Duration longest{1};
  for (const SampledRun& run : runs) {
    least = std::min(least, run.sorted.front());
    const Estimate highest = percentile(run.sorted, 999);
    longest = std::max(longest, highest.range ? highest.range->high : highest.value);
    figure.description += fmt::format("{}: median {}, p99 {}. ", run.name, unit.text(percentile(run.sorted, 500).value),
                                      unit.text(percentile(run.sorted, 990).value));
  }
  const double padding = std::max(unit.value(longest - least) * 0.04, unit.value(longest) * 1e-6);
  figure.x = {.label = "time of a run",
              .unit = unit.name(),
              .low = unit.value(least) - padding,
              .high = unit.value(longest) + 3 * padding,
              .grid = true};
  figure.x.ticks = round_ticks(figure.x.low, figure.x.high, 7);
  figure.y = {.label = "share of runs that take longer", .low = 0.0008, .high = 1.0, .logarithmic = true, .grid = true};
  for (const auto& [per_mille, name] : labelled) {
    const double share = 1.0 - per_mille / 1000.0;
    figure.y.ticks.push_back({share, fmt::format("{} ({:g}%)", name, 100.0 * share)});
  }
}

}  // namespace

Figure distribution_figure(std::span<const SampledRun> runs, std::string id) {
  check(!runs.empty(), "a distribution needs at least one run");
  Duration longest{1};
  for (const SampledRun& run : runs) {
    longest = std::max(longest, run.sorted.back());
  }
  const TimeUnit unit(longest);
  Figure figure;
  figure.id = std::move(id);
  figure.height = 300.0;
  figure.title = title_of(runs, unit);
  figure.data.columns = {"schedule", "percentile", "time_us", "low_us", "high_us"};
  set_axes(runs, unit, figure);
  for (std::size_t i = 0; i < runs.size(); ++i) {
    add_run(runs[i], i, unit, figure);
  }
  return figure;
}

}  // namespace commfuse::reports
