// SPDX-License-Identifier: Apache-2.0
#include "reports/figure/terminal.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "model/check.h"
#include "model/math/functions.h"
#include "model/text/plain_text.h"
#include "model/wrapped.h"

namespace commfuse::reports {

namespace {

/// Characters for a colour, in Unicode and in ASCII.
struct Shade {
  const char* unicode;
  const char* ascii;
};
constexpr std::array<Shade, 14> shades{{{"\u2588", "#"},
                                        {"\u00b7", "."},
                                        {"\u2588", "#"},
                                        {"\u2592", "+"},
                                        {"\u2593", "="},
                                        {"\u2571", "/"},
                                        {"\u25cf", "*"},
                                        {"\u25cb", "o"},
                                        {"\u25b2", "^"},
                                        {"\u25c6", "x"},
                                        {"\u25a0", "@"},
                                        {"\u2591", "-"},
                                        {"\u25a1", "%"},
                                        {"\u2248", "~"}}};
static_assert(shades.size() == static_cast<std::size_t>(Role::tie) + 1, "every role has a character");
constexpr std::array<Shade, 5> level_shades{
    {{"\u2591", "."}, {"\u2592", ":"}, {"\u2592", "+"}, {"\u2593", "%"}, {"\u2588", "#"}}};

/// Returns the position of a value between the ends of an axis: 0 is left or bottom, 1 right or top.
double share(const FigureAxis& axis, double value) {
  const double part = axis.logarithmic ? math::log(value / axis.low) / math::log(axis.high / axis.low)
                                       : (value - axis.low) / (axis.high - axis.low);
  return axis.reversed ? 1.0 - part : part;
}

/// Returns the first `max_characters` characters of UTF-8 text.
std::string cut(const std::string& text, std::size_t max_characters) {
  std::string start;
  for (const char byte : text) {
    const bool begins = (static_cast<unsigned char>(byte) & 0xC0U) != 0x80U;
    if (begins && characters(start) == max_characters) {
      break;
    }
    start += byte;
  }
  return start;
}

/// Replaces characters that a terminal without UTF-8 lacks.
std::string plain(std::string text, bool unicode) {
  if (unicode) {
    return text;
  }
  for (const auto& [fancy, simple] :
       {std::pair{"\u00b5", "u"}, std::pair{"\u2212", "-"}, std::pair{"\u00b7", "-"}, std::pair{"\u2026", "..."},
        std::pair{"\u00b1", "+-"}, std::pair{"\u00d7", "x"}, std::pair{"\u2248", "~"}}) {
    for (std::size_t at = 0; (at = text.find(fancy)) != std::string::npos;) {
      text.replace(at, std::string_view(fancy).size(), simple);
    }
  }
  std::replace_if(
      text.begin(), text.end(), [](char byte) { return static_cast<unsigned char>(byte) > 126U; }, '?');
  return text;
}

/// A grid of characters, each stored as a short text, above a layer of dots, eight per character.
class Grid {
 public:
  Grid(int width, int height, bool unicode)
      : width_(width), height_(height), unicode_(unicode), cells_(size(), ""), dots_(size(), 0U) {}

  [[nodiscard]] int width() const { return width_; }
  [[nodiscard]] int height() const { return height_; }

  void put(int column, int row, const std::string& text) {
    if (inside(column, row)) {
      cells_[at(column, row)] = text;
    }
  }
  void write(int column, int row, const std::string& text) {
    std::string character;
    for (std::size_t i = 0; i < text.size(); ++i) {
      character += text[i];
      const bool ends = i + 1 == text.size() || (static_cast<unsigned char>(text[i + 1]) & 0xC0U) != 0x80U;
      if (ends) {
        put(column++, row, character);
        character.clear();
      }
    }
  }
  /// Sets a dot; a character has two columns and four rows of dots.
  void dot(double x, double y) {
    const int column = static_cast<int>(std::floor(x * 2.0));
    const int row = static_cast<int>(std::floor(y * 4.0));
    if (x >= 0.0 && y >= 0.0 && inside(column / 2, row / 4)) {
      constexpr std::array<std::array<unsigned, 4>, 2> bits{{{0x01, 0x02, 0x04, 0x40}, {0x08, 0x10, 0x20, 0x80}}};
      dots_[at(column / 2, row / 4)] |= bits[static_cast<std::size_t>(column % 2)][static_cast<std::size_t>(row % 4)];
    }
  }
  [[nodiscard]] std::string line(int row) const {
    std::string text;
    for (int column = 0; column < width_; ++column) {
      const std::string& cell = cells_[at(column, row)];
      const unsigned dots = dots_[at(column, row)];
      text += !cell.empty() ? cell : dots != 0 ? (unicode_ ? braille(dots) : "*") : " ";
    }
    text.erase(text.find_last_not_of(' ') + 1);
    return text;
  }

 private:
  [[nodiscard]] std::size_t size() const {
    return static_cast<std::size_t>(width_) * static_cast<std::size_t>(height_);
  }
  [[nodiscard]] bool inside(int column, int row) const {
    return column >= 0 && column < width_ && row >= 0 && row < height_;
  }
  [[nodiscard]] std::size_t at(int column, int row) const {
    return static_cast<std::size_t>(row) * static_cast<std::size_t>(width_) + static_cast<std::size_t>(column);
  }
  /// Returns U+2800 plus the dots.
  static std::string braille(unsigned dots) {
    return {static_cast<char>(0xE2), static_cast<char>(0xA0U | dots >> 6U), static_cast<char>(0x80U | (dots & 0x3FU))};
  }

  int width_;
  int height_;
  bool unicode_;
  std::vector<std::string> cells_;
  std::vector<unsigned> dots_;
};

class Plot {
 public:
  Plot(const Figure& figure, const TerminalOptions& options)
      : figure_(figure),
        options_(options),
        left_(label_width() + 1),
        grid_(plot_width(), plot_height(), options.unicode) {}

  std::string write() {
    for (const Mark& mark : figure_.marks) {
      std::visit([this](const auto& typed_mark) { draw(typed_mark); }, mark);
    }
    std::string text =
        wrapped(plain(figure_.title, options_.unicode), "", "", static_cast<std::size_t>(options_.columns));
    if (!figure_.y.label.empty()) {
      text += cut(title(figure_.y), static_cast<std::size_t>(options_.columns)) + "\n";
    }
    for (int row = 0; row < grid_.height(); ++row) {
      text += fmt::format("{}{}{}\n", label_at(row), options_.unicode ? "\u2502" : "|", grid_.line(row));
    }
    return text + axis() + legend();
  }

 private:
  [[nodiscard]] std::string title(const FigureAxis& axis) const {
    return plain(axis.unit.empty() ? axis.label : fmt::format("{} ({})", axis.label, axis.unit), options_.unicode);
  }
  [[nodiscard]] std::size_t label_width() const {
    std::size_t longest = 0;
    for (const Tick& tick : figure_.y.ticks) {
      longest = std::max(longest, characters(plain(tick.label, options_.unicode)));
    }
    return std::min<std::size_t>(longest, 26);
  }
  /// Returns whether every row has a name.
  [[nodiscard]] bool is_named() const {
    return figure_.y.high - figure_.y.low == static_cast<double>(figure_.y.ticks.size());
  }
  [[nodiscard]] bool is_map() const {
    return std::ranges::any_of(figure_.marks, [](const Mark& mark) { return std::holds_alternative<CellMark>(mark); });
  }
  [[nodiscard]] int plot_width() const { return options_.columns - static_cast<int>(left_) - 1; }
  /// Maps and bars have one line for each row, timelines two for each lane; line figures have 14.
  [[nodiscard]] int plot_height() const {
    const bool in_pixels = figure_.y.high == figure_.height;
    constexpr double lane = 12.0;  // pixels of half a lane
    constexpr int usual = 14;
    return is_named()  ? static_cast<int>(figure_.y.ticks.size())
           : is_map()  ? static_cast<int>(std::lround(figure_.y.high - figure_.y.low))
           : in_pixels ? static_cast<int>(figure_.height / lane)
                       : usual;
  }
  [[nodiscard]] double x_of(double value) const { return share(figure_.x, value) * grid_.width(); }
  [[nodiscard]] double y_of(double value) const { return (1.0 - share(figure_.y, value)) * grid_.height(); }
  [[nodiscard]] const char* character(Role role) const {
    const Shade& shade = shades[static_cast<std::size_t>(role)];
    return options_.unicode ? shade.unicode : shade.ascii;
  }

  void box(Place from, Place to, Role role, bool hatched) {
    const double x0 = std::min(x_of(from.x), x_of(to.x));
    const double x1 = std::max(x_of(from.x), x_of(to.x));
    const double y0 = std::min(y_of(from.y), y_of(to.y));
    const double y1 = std::max(y_of(from.y), y_of(to.y));
    const int first = static_cast<int>(std::lround(x0));
    const int last = std::max(static_cast<int>(std::lround(x1)), x1 - x0 >= 0.5 ? first + 1 : first);
    const int top = static_cast<int>(std::floor(y0 + 0.3));
    const int bottom = std::max(top + 1, static_cast<int>(std::floor(y1 - 0.3)) + 1);
    for (int row = top; row < bottom; ++row) {
      for (int column = first; column < last; ++column) {
        grid_.put(column, row, character(hatched ? Role::exposed : role));
      }
    }
  }

  void draw(const RectMark& mark) { box(mark.from, mark.to, mark.role, mark.hatched); }
  void draw(const BarMark& mark) {
    box({mark.x - mark.width / 2, mark.from}, {mark.x + mark.width / 2, mark.to}, mark.role, mark.hatched);
  }
  void draw(const LineMark& mark) {
    for (std::size_t i = 1; i < mark.points.size(); ++i) {
      const Place a{x_of(mark.points[i - 1].x), y_of(mark.points[i - 1].y)};
      const Place b{x_of(mark.points[i].x), y_of(mark.points[i].y)};
      const int steps = static_cast<int>(std::max(2.0 * std::abs(b.x - a.x), 4.0 * std::abs(b.y - a.y))) + 1;
      for (int step = 0; step <= steps; ++step) {
        const double part = static_cast<double>(step) / steps;
        grid_.dot(a.x + part * (b.x - a.x), a.y + part * (b.y - a.y));
      }
    }
    if (!mark.tips.empty() && mark.points.size() <= 40) {
      draw(PointsMark{.points = mark.points, .role = mark.role});
    }
  }
  void draw(const PointsMark& mark) {
    for (const Place& point : mark.points) {
      grid_.put(static_cast<int>(x_of(point.x)), static_cast<int>(y_of(point.y)), character(mark.role));
    }
  }
  void draw(const CellMark& mark) {
    const int first = static_cast<int>(std::lround(x_of(mark.at.x - 0.5)));
    const int last = static_cast<int>(std::lround(x_of(mark.at.x + 0.5)));
    const int row = static_cast<int>(std::floor(y_of(mark.at.y)));
    const std::string text = plain(mark.text, options_.unicode);
    if (static_cast<int>(characters(text)) < last - first) {
      grid_.write(first + (last - first - static_cast<int>(characters(text))) / 2, row, text);
      return;
    }
    // A role takes precedence over a level, as in the drawing: ties have both.
    const Shade shade = mark.role ? shades[static_cast<std::size_t>(*mark.role)]
                        : mark.level
                            ? level_shades[std::min<std::size_t>(static_cast<std::size_t>(*mark.level * 5.0), 4)]
                            : Shade{"\u00d7", "x"};
    for (int column = first; column < last; ++column) {
      grid_.put(column, row, options_.unicode ? shade.unicode : shade.ascii);
    }
  }
  void draw(const BandMark&) {}
  void draw(const TextMark& mark) {
    if (figure_.y.high == figure_.height) {  // These are the headings of timelines.
      const std::string text = cut(plain(fmt::format("{} {}", mark.strong, mark.text), options_.unicode),
                                   static_cast<std::size_t>(grid_.width()));
      grid_.write(static_cast<int>(x_of(mark.at.x)), static_cast<int>(y_of(mark.at.y)), text);
    } else if (is_named()) {  // These are the totals of bars, shown if they fit.
      const std::string text = plain(mark.strong, options_.unicode);
      const int first = static_cast<int>(std::lround(x_of(mark.at.x)));
      if (first + static_cast<int>(characters(text)) <= grid_.width()) {
        grid_.write(first, static_cast<int>(std::floor(y_of(mark.at.y))), text);
      }
    }
  }

  [[nodiscard]] std::string label_at(int row) const {
    std::string label;
    for (const Tick& tick : figure_.y.ticks) {
      if (std::min(static_cast<int>(std::floor(y_of(tick.at))), grid_.height() - 1) == row) {
        label = cut(plain(tick.label, options_.unicode), left_ - 1);
      }
    }
    return std::string(left_ - 1 - characters(label), ' ') + label;
  }

  [[nodiscard]] std::string axis() const {
    std::string rule;
    for (int column = 0; column < grid_.width(); ++column) {
      rule += options_.unicode ? "\u2500" : "-";
    }
    Grid labels(options_.columns, 1, options_.unicode);
    int free = 0;
    for (const Tick& tick : figure_.x.ticks) {
      const std::string label = plain(tick.label, options_.unicode);
      const int length = static_cast<int>(characters(label));
      const int middle = static_cast<int>(left_) + static_cast<int>(x_of(tick.at));
      const int start = std::clamp(middle - length / 2, 0, std::max(options_.columns - length, 0));
      if (start >= free) {
        labels.write(start, 0, label);
        free = start + length + 1;
      }
    }
    const std::string corner(left_ - 1, ' ');
    const std::string name = title(figure_.x);
    const std::string under =
        name.empty() ? "" : std::string(left_, ' ') + cut(name, static_cast<std::size_t>(grid_.width())) + "\n";
    return fmt::format("{}{}{}\n{}\n{}", corner, options_.unicode ? "\u2514" : "+", rule, labels.line(0), under);
  }

  [[nodiscard]] std::string legend() const {
    std::string words;
    for (const LegendEntry& entry : figure_.legend) {
      words += fmt::format("{}{} {}", words.empty() ? "" : "  ", character(entry.hatched ? Role::exposed : entry.role),
                           plain(entry.text, options_.unicode));
    }
    return words.empty() ? words : wrapped(words, "", "", static_cast<std::size_t>(options_.columns));
  }

  const Figure& figure_;
  TerminalOptions options_;
  std::size_t left_;
  Grid grid_;
};

}  // namespace

std::string terminal_plot(const Figure& figure, const TerminalOptions& options) {
  check(options.columns >= 40, "a plot in a terminal has at least 40 columns");
  return Plot(figure, options).write();
}

}  // namespace commfuse::reports
