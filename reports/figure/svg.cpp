// SPDX-License-Identifier: Apache-2.0
#include "reports/figure/svg.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>

#include "model/check.h"
#include "model/math/functions.h"
#include "model/text/plain_text.h"
#include "reports/figure/markup.h"
#include "reports/figure/wording.h"

namespace commfuse::reports {

namespace {

// Width of a character in a wide screen font, as a share of the font size. Widths of text are upper estimates.
constexpr double character_width = 0.62;
constexpr double text_size = 12.0;
constexpr double mark_size = 11.0;
constexpr double title_size = 15.0;
constexpr double margin = 12.0;
// A line with more points than this has no dots.
constexpr std::size_t max_dots = 40;

double width_of(std::string_view text, double size) {
  return static_cast<double>(characters(text)) * size * character_width;
}

std::string_view name_of(Anchor anchor) {
  return anchor == Anchor::start ? "start" : anchor == Anchor::middle ? "middle" : "end";
}

/// Formats a length in pixels with at most two decimals and no trailing zeros.
std::string px(double value) {
  const double rounded = std::round(value * 100.0) / 100.0;
  return fmt::format("{}", rounded == 0.0 ? 0.0 : rounded);
}

/// Returns the dash attribute of a line; empty for a solid line.
std::string dash_array(const std::string& dashes, bool dashed) {
  return dashes.empty() && !dashed ? "" : fmt::format(R"( stroke-dasharray="{}")", dashes.empty() ? "5 4" : dashes);
}

/// Breaks text between words into lines that fit.
std::vector<std::string> wrapped_lines(std::string_view text, double width, double size) {
  std::vector<std::string> lines(1);
  while (!text.empty()) {
    const std::string_view word = text.substr(0, text.find(' '));
    if (!lines.back().empty() && width_of(lines.back(), size) + width_of(word, size) + size > width) {
      lines.emplace_back();
    }
    lines.back() += (lines.back().empty() ? "" : " ") + std::string{word};
    text.remove_prefix(std::min(text.size(), word.size() + 1));
  }
  return lines;
}

/// Places of all parts, from top to bottom and left to right.
struct Layout {
  std::vector<std::string> title;
  double legend_top = 0.0;
  std::vector<Place> legend;                                // below legend_top
  double left = 0.0, top = 0.0, right = 0.0, bottom = 0.0;  // edges of the plot
  double scale_top = 0.0;
  double height = 0.0;
};

double widest(const std::vector<Tick>& ticks) {
  double width = 0.0;
  for (const Tick& tick : ticks) {
    width = std::max(width, width_of(tick.label, text_size));
  }
  return width;
}

constexpr double swatch = 22.0;

/// Places entries side by side, and starts a new line at the end of the width.
std::vector<Place> places_of(const std::vector<LegendEntry>& legend, double width) {
  std::vector<Place> places;
  Place next{margin, 0.0};
  for (const LegendEntry& entry : legend) {
    const double length = swatch + width_of(entry.text, text_size);
    if (next.x > margin && next.x + length > width - margin) {
      next = {margin, next.y + 18.0};
    }
    places.push_back(next);
    next.x += length + 12.0;
  }
  return places;
}

Layout layout_of(const Figure& figure, bool titled) {
  Layout layout;
  if (titled) {
    layout.title = wrapped_lines(figure.title, figure.width - 2 * margin, title_size);
  }
  double y = titled ? margin + 20.0 * static_cast<double>(layout.title.size()) : 0.0;
  layout.legend_top = y;
  layout.legend = places_of(figure.legend, figure.width);
  y += figure.legend.empty() ? 0.0 : layout.legend.back().y + 24.0;
  layout.top = y + (figure.y.label.empty() ? 6.0 : 22.0);
  layout.bottom = layout.top + figure.height;
  layout.left = margin + widest(figure.y.ticks) + 8.0;
  layout.right = figure.plot_width > 0.0 ? layout.left + figure.plot_width : figure.width - margin - 8.0;
  y = layout.bottom + (figure.x.ticks.empty() ? 0.0 : 20.0) + (figure.x.label.empty() ? 0.0 : 20.0);
  layout.scale_top = y + 8.0;
  layout.height = y + margin + (figure.scale ? 58.0 : 0.0);
  return layout;
}

std::string axis_title(const FigureAxis& axis) {
  return axis.unit.empty() ? axis.label : fmt::format("{} ({})", axis.label, axis.unit);
}

/// Writes one figure from top to bottom.
class Writer {
 public:
  Writer(const Figure& figure, bool standalone)
      : figure_(figure), layout_(layout_of(figure, standalone)), standalone_(standalone) {
    check(
        !figure.id.empty() && figure.id.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-") == std::string::npos,
        "the id of a figure consists of lower-case letters, digits and dashes");
    check(figure.x.low < figure.x.high && figure.y.low < figure.y.high, "an axis has a length");
  }

  std::string write() {
    open();
    legend();
    axes();
    for (const Mark& mark : figure_.marks) {
      std::visit(*this, mark);
    }
    scale();
    text_ += "</svg>\n";
    return std::move(text_);
  }

  void operator()(const RectMark& mark) { box(mark.from, mark.to, mark.role, mark.hatched, mark.labels, mark.tip); }
  void operator()(const BarMark& mark) {
    box({mark.x - mark.width / 2, mark.from}, {mark.x + mark.width / 2, mark.to}, mark.role, mark.hatched, {},
        mark.tip);
  }
  void operator()(const LineMark& mark);
  void operator()(const TextMark& mark);
  void operator()(const CellMark& mark);
  void operator()(const BandMark& mark);
  void operator()(const PointsMark& mark);

 private:
  template <class... Args>
  void add(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(text_), format, std::forward<Args>(args)...);
  }
  void words(double x, double y, std::string_view classes, Anchor anchor, std::string_view text) {
    add(R"(<text x="{}" y="{}" class="{}" text-anchor="{}">{}</text>)"
        "\n",
        px(x), px(y), classes, name_of(anchor), escaped(text));
  }
  void line(double x1, double y1, double x2, double y2, std::string_view classes) {
    add(R"(<line x1="{}" y1="{}" x2="{}" y2="{}" class="{}"/>)"
        "\n",
        px(x1), px(y1), px(x2), px(y2), classes);
  }
  static double share(const FigureAxis& axis, double value) {
    const double part = axis.logarithmic ? math::log(value / axis.low) / math::log(axis.high / axis.low)
                                         : (value - axis.low) / (axis.high - axis.low);
    return axis.reversed ? 1.0 - part : part;
  }
  [[nodiscard]] double x_of(double value) const {
    return layout_.left + share(figure_.x, value) * (layout_.right - layout_.left);
  }
  [[nodiscard]] double y_of(double value) const {
    return layout_.bottom - share(figure_.y, value) * (layout_.bottom - layout_.top);
  }

  void symbol(Place at, const PointsMark& like, const std::string& tip);
  void shape(Place pixels, const PointsMark& like, const std::string& tip);
  void open();
  void legend();
  void axes();
  void scale();
  void box(Place from, Place to, Role role, bool hatched, const std::vector<std::string>& labels,
           const std::string& tip);

  const Figure& figure_;
  Layout layout_;
  bool standalone_;
  std::string text_;
};

void Writer::open() {
  const std::string& id = figure_.id;
  add(R"(<svg xmlns="http://www.w3.org/2000/svg" class="cf-figure" viewBox="0 0 {0} {1}" width="{0}" height="{1}")"
      R"( role="img" aria-labelledby="{2}-title {2}-description">)"
      "\n",
      px(figure_.width), px(layout_.height), id);
  add("<title id=\"{}-title\">{}</title>\n<desc id=\"{}-description\">{}</desc>\n", id, escaped(figure_.title), id,
      escaped(figure_.description));
  if (standalone_) {
    add("<style>\n{}</style>\n", figure_style());
  }
  add(R"(<defs><pattern id="{}-hatch" width="6" height="6" patternUnits="userSpaceOnUse" )"
      R"~(patternTransform="rotate(45)"><rect width="6" height="6" class="cf-ground"/>)~"
      R"(<line x1="0" y1="0" x2="0" y2="6" class="cf-hatch"/></pattern></defs>)"
      "\n",
      id);
  add(R"(<rect width="{}" height="{}" class="cf-ground"/>)"
      "\n",
      px(figure_.width), px(layout_.height));
  for (std::size_t i = 0; i < layout_.title.size(); ++i) {
    words(margin, margin + title_size + 20.0 * static_cast<double>(i), "cf-title", Anchor::start, layout_.title[i]);
  }
}

void Writer::legend() {
  for (std::size_t i = 0; i < figure_.legend.size(); ++i) {
    const LegendEntry& entry = figure_.legend[i];
    const double x = layout_.legend[i].x;
    const double y = layout_.legend_top + layout_.legend[i].y + 8.0;
    if (entry.line) {
      add(R"(<line x1="{}" y1="{}" x2="{}" y2="{}" class="cf-line cf-line-{}"{}/>)"
          "\n",
          px(x), px(y + 6.0), px(x + 18.0), px(y + 6.0), name_of(entry.role), dash_array(entry.dashes, false));
      words(x + swatch, y + 10.5, "cf-quiet", Anchor::start, entry.text);
      continue;
    }
    if (entry.symbol) {
      shape({x + 8.0, y + 6.0}, {.role = entry.role, .symbol = *entry.symbol, .size = 7.0}, "");
      words(x + swatch, y + 10.5, "cf-quiet", Anchor::start, entry.text);
      continue;
    }
    const std::string fill = entry.hatched
                                 ? fmt::format(R"~(fill="url(#{}-hatch)" class="cf-hatched")~", figure_.id)
                                 : fmt::format(R"(class="{}cf-{}")", entry.band ? "cf-band " : "", name_of(entry.role));
    add(R"(<rect x="{}" y="{}" width="16" height="12" {}/>)"
        "\n",
        px(x), px(y), fill);
    words(x + swatch, y + 10.5, "cf-quiet", Anchor::start, entry.text);
  }
}

void Writer::axes() {
  for (const Tick& tick : figure_.x.ticks) {
    const double x = x_of(tick.at);
    if (figure_.x.grid) {
      line(x, layout_.top, x, layout_.bottom, "cf-grid");
    }
    words(x, layout_.bottom + 16.0, "cf-quiet", Anchor::middle, with_minus(tick.label));
  }
  for (const Tick& tick : figure_.y.ticks) {
    const double y = y_of(tick.at);
    if (figure_.y.grid) {
      line(layout_.left, y, layout_.right, y, "cf-grid");
    }
    words(layout_.left - 8.0, y + 4.0, "cf-quiet", Anchor::end, with_minus(tick.label));
  }
  if (figure_.x.grid || figure_.y.grid) {
    line(layout_.left, layout_.bottom, layout_.right, layout_.bottom, "cf-axis");
  }
  if (!figure_.x.label.empty()) {
    const std::string title = axis_title(figure_.x);
    const double middle = std::max((layout_.left + layout_.right) / 2, margin + width_of(title, text_size) / 2);
    words(middle, layout_.bottom + (figure_.x.ticks.empty() ? 16.0 : 36.0), "cf-quiet", Anchor::middle, title);
  }
  if (!figure_.y.label.empty()) {
    words(margin, layout_.top - 8.0, "cf-quiet", Anchor::start, axis_title(figure_.y));
  }
}

void Writer::box(Place from, Place to, Role role, bool hatched, const std::vector<std::string>& labels,
                 const std::string& tip) {
  const double left = std::min(x_of(from.x), x_of(to.x));
  const double width = std::max(std::abs(x_of(to.x) - x_of(from.x)), 0.5);
  const double top = std::min(y_of(from.y), y_of(to.y));
  const double height = std::abs(y_of(to.y) - y_of(from.y));
  const std::string title = tip.empty() ? "" : fmt::format("<title>{}</title>", escaped(tip));
  const std::string fill = hatched ? fmt::format(R"~(fill="url(#{}-hatch)" class="cf-hatched")~", figure_.id)
                                   : fmt::format(R"(class="cf-{}{}")", name_of(role), width >= 4.0 ? " cf-bar" : "");
  add(R"(<rect x="{}" y="{}" width="{}" height="{}" {})", px(left), px(top), px(width), px(height), fill);
  text_ += title.empty() ? "/>\n" : ">" + title + "</rect>\n";
  const auto fits = std::find_if(labels.begin(), labels.end(),
                                 [&](const std::string& label) { return width_of(label, mark_size) + 6.0 <= width; });
  if (fits != labels.end()) {
    words(left + width / 2, top + height / 2 + 4.0,
          hatched ? std::string{"cf-mark cf-strong cf-halo"} : fmt::format("cf-mark cf-on-{}", name_of(role)),
          Anchor::middle, *fits);
  }
}

void Writer::operator()(const LineMark& mark) {
  std::string path;
  for (std::size_t i = 0; i < mark.points.size(); ++i) {
    const Place& point = mark.points[i];
    if (i > 0 && mark.steps) {
      path += "H" + px(x_of(point.x));
    }
    path += fmt::format("{}{} {}", i == 0 ? "M" : "L", px(x_of(point.x)), px(y_of(point.y)));
  }
  add(R"(<path d="{}" class="cf-line cf-line-{}"{}/>)"
      "\n",
      path, name_of(mark.role), dash_array(mark.dashes, mark.dashed));
  if (mark.tips.empty() || mark.points.size() > max_dots) {
    return;
  }
  for (std::size_t i = 0; i < mark.points.size(); ++i) {
    symbol(mark.points[i], {.role = mark.role, .size = 3.0}, mark.tips[i]);
  }
}

void Writer::operator()(const BandMark& mark) {
  std::string path;
  for (const Place& place : mark.low) {
    path += fmt::format("{}{} {}", path.empty() ? "M" : "L", px(x_of(place.x)), px(y_of(place.y)));
  }
  std::for_each(mark.high.rbegin(), mark.high.rend(),
                [&](const Place& place) { path += fmt::format("L{} {}", px(x_of(place.x)), px(y_of(place.y))); });
  add(R"(<path d="{}Z" class="cf-band cf-{}"/>)"
      "\n",
      path, name_of(mark.role));
}

void Writer::symbol(Place at, const PointsMark& like, const std::string& tip) {
  shape({x_of(at.x), y_of(at.y)}, like, tip);
}

/// Draws the symbol at a place in pixels.
void Writer::shape(Place pixels, const PointsMark& like, const std::string& tip) {
  const double x = pixels.x;
  const double y = pixels.y;
  const double r = like.size;
  const std::string title = tip.empty() ? "" : fmt::format("<title>{}</title>", escaped(tip));
  const auto outline = [&]() -> std::string {
    switch (like.symbol) {
      case Symbol::circle:
        return fmt::format("M{} {}a{r} {r} 0 1 0 {d} 0a{r} {r} 0 1 0 -{d} 0", px(x - r), px(y), fmt::arg("r", px(r)),
                           fmt::arg("d", px(2 * r)));
      case Symbol::square: return fmt::format("M{} {}h{d}v{d}h-{d}", px(x - r), px(y - r), fmt::arg("d", px(2 * r)));
      case Symbol::diamond:
        return fmt::format("M{} {}l{r} {r}l{r} -{r}l-{r} -{r}", px(x - r), px(y), fmt::arg("r", px(r)));
      case Symbol::triangle: return fmt::format("M{} {}h{}L{} {}", px(x - r), px(y + r), px(2 * r), px(x), px(y - r));
    }
    return "";
  };
  add(R"(<path d="{}Z" class="cf-point cf-{}">{}</path>)"
      "\n",
      outline(), name_of(like.role), title);
}

void Writer::operator()(const PointsMark& mark) {
  for (std::size_t i = 0; i < mark.points.size(); ++i) {
    symbol(mark.points[i], mark, mark.tips.empty() ? "" : mark.tips[i]);
  }
}

void Writer::operator()(const TextMark& mark) {
  add(R"(<text x="{}" y="{}" class="cf-halo" text-anchor="{}">)", px(x_of(mark.at.x)), px(y_of(mark.at.y)),
      name_of(mark.anchor));
  if (!mark.strong.empty()) {
    add(R"(<tspan class="cf-strong">{}</tspan>{})", escaped(mark.strong), mark.text.empty() ? "" : " ");
  }
  add("{}</text>\n", mark.text.empty() ? "" : fmt::format(R"(<tspan class="cf-quiet">{}</tspan>)", escaped(mark.text)));
}

constexpr int level_count = 9;

std::string level_class(double level, bool diverging) {
  const int step = std::clamp(static_cast<int>(std::floor(level * level_count)), 0, level_count - 1);
  return fmt::format("{}{}", diverging ? 'd' : 's', step);
}

void Writer::operator()(const CellMark& mark) {
  const double left = std::min(x_of(mark.at.x - 0.5), x_of(mark.at.x + 0.5));
  const double top = std::min(y_of(mark.at.y - 0.5), y_of(mark.at.y + 0.5));
  const double width = std::abs(x_of(mark.at.x + 0.5) - x_of(mark.at.x - 0.5));
  const double height = std::abs(y_of(mark.at.y + 0.5) - y_of(mark.at.y - 0.5));
  const std::string level = mark.role    ? std::string{name_of(*mark.role)}
                            : mark.level ? level_class(*mark.level, figure_.scale && figure_.scale->diverging)
                                         : std::string{"nothing"};
  add(R"(<rect x="{}" y="{}" width="{}" height="{}" class="cf-cell cf-{}"><title>{}</title></rect>)"
      "\n",
      px(left), px(top), px(width), px(height), level, escaped(mark.tip));
  if (!mark.level && !mark.role) {
    line(left + 4.0, top + 4.0, left + width - 4.0, top + height - 4.0, "cf-cross");
    line(left + 4.0, top + height - 4.0, left + width - 4.0, top + 4.0, "cf-cross");
  } else if (width_of(mark.text, mark_size) + 2.0 <= width && height >= 14.0) {
    words(left + width / 2, top + height / 2 + 4.0, "cf-mark cf-on-" + level, Anchor::middle, mark.text);
  }
  if (mark.framed) {
    add(R"(<rect x="{}" y="{}" width="{}" height="{}" class="cf-frame"/>)"
        "\n",
        px(left + 2.0), px(top + 2.0), px(width - 4.0), px(height - 4.0));
  }
}

void Writer::scale() {
  if (!figure_.scale) {
    return;
  }
  constexpr double step = 26.0;
  const LevelScale& scale = *figure_.scale;
  const double left = layout_.left;
  const double top = layout_.scale_top;
  for (int i = 0; i < level_count; ++i) {
    add(R"(<rect x="{}" y="{}" width="{}" height="12" class="cf-{}"/>)"
        "\n",
        px(left + step * i), px(top), px(step), level_class((i + 0.5) / level_count, scale.diverging));
  }
  const double end = left + step * level_count;
  words(left, top + 27.0, "cf-quiet", Anchor::start, scale.low);
  words((left + end) / 2, top + 27.0, "cf-quiet", Anchor::middle, scale.middle);
  words(end, top + 27.0, "cf-quiet", Anchor::end, scale.high);
  words(left, top + 45.0, "cf-quiet", Anchor::start, scale.label);
}

}  // namespace

std::string svg(const Figure& figure) { return Writer(figure, true).write(); }
std::string svg_in_page(const Figure& figure) { return Writer(figure, false).write(); }

}  // namespace commfuse::reports
