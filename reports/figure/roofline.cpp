// SPDX-License-Identifier: Apache-2.0
#include "reports/figure/roofline.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "model/check.h"
#include "model/text/counted.h"
#include "reports/figure/line_styles.h"
#include "reports/figure/ticks.h"
#include "reports/figure/wording.h"
#include "reports/trace_label.h"

namespace commfuse::reports {

namespace {

constexpr double tera = 1e12;

double intensity(const RoofedGemm& product) { return product.work.count / static_cast<double>(product.traffic.count); }
double rate(const RoofedGemm& product) { return product.work.count / to_seconds(product.time); }

/// Formats a rate in TFLOP/s as "989" or "728.4", and as "0.02" far below 1 TFLOP/s.
std::string in_tera(double rate, int decimals) {
  return rate < tera ? fmt::format("{:.2g}", rate / tera) : fmt::format("{:.{}f}", rate / tera, decimals);
}

std::string title_of(const Roofline& roofline) {
  const auto share = [&](const RoofedGemm& product) { return rate(product) / roofline.peak.value; };
  const auto [least, highest] =
      std::minmax_element(roofline.gemms.begin(), roofline.gemms.end(),
                          [&](const RoofedGemm& a, const RoofedGemm& b) { return share(a) < share(b); });
  if (share(*highest) - share(*least) < 0.0005) {
    return fmt::format("GEMMs reach {} of the peak of {}", percent(share(*highest)), roofline.accelerator);
  }
  return fmt::format("GEMMs reach from {} ({}) to {} ({}) of the peak of {}", percent(share(*least)), least->schedule,
                     percent(share(*highest)), highest->schedule, roofline.accelerator);
}

void add_roof(const Roofline& roofline, Figure& figure) {
  const double ridge = roofline.peak.value / roofline.memory.value;
  const auto roof = [&](double at) { return std::min(roofline.peak.value, roofline.memory.value * at) / tera; };
  figure.marks.emplace_back(LineMark{
      .points = {{figure.x.low, roof(figure.x.low)}, {ridge, roof(ridge)}, {figure.x.high, roof(figure.x.high)}},
      .role = Role::ink,
      .name = "roof"});
  constexpr double above = 1.03;  // the text does not touch the line
  figure.marks.emplace_back(TextMark{{figure.x.high, above * roof(figure.x.high)},
                                     "",
                                     fmt::format("dense peak, {} TFLOP/s", in_tera(roofline.peak.value, 0)),
                                     Anchor::end});
}

void add_gemms(const Roofline& roofline, Figure& figure) {
  std::vector<std::string> names;
  std::vector<PointsMark> marks;
  for (const RoofedGemm& product : roofline.gemms) {
    const auto named = std::find(names.begin(), names.end(), product.schedule);
    const auto index = static_cast<std::size_t>(named - names.begin());
    if (named == names.end()) {
      names.push_back(product.schedule);
      const LineStyle style = style_of(index);
      marks.push_back({.role = style.role, .symbol = style.symbol, .size = 6.0, .name = product.schedule});
      figure.legend.push_back({.text = product.schedule, .role = style.role, .symbol = style.symbol});
    }
    const std::string text = fmt::format("{}: {}, {:.0f} FLOP/byte, {} TFLOP/s, {} of the peak",
                                         op_in_words(product.shape), counted(product.count, "time"), intensity(product),
                                         in_tera(rate(product), 1), percent(rate(product) / roofline.peak.value));
    marks[index].points.push_back({intensity(product), rate(product) / tera});
    marks[index].tips.push_back(fmt::format("{}, {}", product.schedule, text));
    figure.description += fmt::format("{}, {}. ", product.schedule, text);
    figure.data.rows.push_back({product.schedule, product.shape, fmt::format("{}", product.count),
                                fmt::format("{}", intensity(product)), fmt::format("{}", rate(product))});
  }
  for (PointsMark& mark : marks) {
    figure.marks.emplace_back(std::move(mark));
  }
}

}  // namespace

Figure roofline_figure(const Roofline& roofline, std::string id) {
  check(!roofline.gemms.empty(), "a roofline shows GEMMs");
  Figure figure;
  figure.id = std::move(id);
  figure.height = 300.0;
  figure.title = title_of(roofline);
  const double ridge = roofline.peak.value / roofline.memory.value;
  double low = ridge / 4.0;
  double high = ridge * 4.0;
  double least = roofline.memory.value * low / tera;
  for (const RoofedGemm& product : roofline.gemms) {
    low = std::min(low, intensity(product) / 2.0);
    high = std::max(high, intensity(product) * 2.0);
    least = std::min(least, rate(product) / tera / 1.5);
  }
  figure.x = {.label = "arithmetic intensity",
              .unit = "FLOP/byte",
              .low = low,
              .high = high,
              .logarithmic = true,
              .grid = true,
              .ticks = log_ticks(low, high)};
  // The ticks alone would also suit a linear axis from 0.
  figure.y = {.label = fmt::format("rate, {}, log scale", roofline.dtype),
              .unit = "TFLOP/s",
              .low = least,
              .high = roofline.peak.value / tera * 1.5,
              .logarithmic = true,
              .grid = true};
  figure.y.ticks = log_ticks(figure.y.low, figure.y.high);
  figure.data.columns = {"schedule", "shape", "count", "flops_per_byte", "flops_per_s"};
  add_roof(roofline, figure);
  add_gemms(roofline, figure);
  return figure;
}

}  // namespace commfuse::reports
