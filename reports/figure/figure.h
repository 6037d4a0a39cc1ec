// SPDX-License-Identifier: Apache-2.0
// A figure as plain data: what is drawn, in the units of its axes. Writers (SVG; later canvas and terminal) turn it
// into pictures; nobody else knows about pixels.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace commfuse::reports {

/// What a colour means. The writer's themes say which colour that is, light and dark.
enum class Role : std::uint8_t { ink, muted, essential, local, communication, exposed };

struct Tick {
  double at = 0.0;
  std::string label;
};

/// From low to high, left to right and bottom to top; `reversed` the other way round. Requires low < high, and 0 < low
/// where logarithmic.
struct FigureAxis {
  std::string label;
  std::string unit;  // "ms"; empty for counts and names
  double low = 0.0;
  double high = 1.0;
  bool logarithmic = false;
  bool reversed = false;
  bool grid = false;  // a faint line across the figure at every tick
  std::vector<Tick> ticks;
};

struct Place {
  double x = 0.0;
  double y = 0.0;
};

/// A box. The first of `labels` that fits inside is written there; `tip` is shown while a pointer rests on it.
struct RectMark {
  Place from;
  Place to;
  Role role = Role::ink;
  bool hatched = false;
  std::vector<std::string> labels;
  std::string tip;
};

/// Through all points; as steps it keeps the value up to the next point.
struct LineMark {
  std::vector<Place> points;
  Role role = Role::ink;
  bool dashed = false;
  bool steps = false;
};

/// From the axis up (or down) to a value.
struct BarMark {
  double x = 0.0;
  double width = 1.0;
  double from = 0.0;
  double to = 0.0;
  Role role = Role::ink;
  bool hatched = false;
  std::string tip;
};

enum class Anchor : std::uint8_t { start, middle, end };

/// `strong` in bold, then `text`.
struct TextMark {
  Place at;
  std::string strong;
  std::string text;
  Anchor anchor = Anchor::start;
};

/// A cell of a map, one unit wide and high around its place. The level runs from 0 to 1; on a diverging scale 0.5 is
/// neutral. Without a level there is no value: the cell is crossed.
struct CellMark {
  Place at;
  std::optional<double> level;
  std::string text;
  std::string tip;
  bool framed = false;
};

using Mark = std::variant<RectMark, LineMark, BarMark, TextMark, CellMark>;

struct LegendEntry {
  std::string text;
  Role role = Role::ink;
  bool hatched = false;
};

/// What the levels of cells mean; drawn as a strip of colours.
struct LevelScale {
  std::string label;
  std::string low;
  std::string middle;
  std::string high;
  bool diverging = false;
};

struct Figure {
  std::string id;           // lower-case letters, digits and dashes; unlike that of any other figure on a page
  std::string title;        // states the finding
  std::string description;  // the figure in words, for those who do not see it
  double width = 960.0;     // all in all, in pixels of a screen
  double height = 240.0;    // between the axes
  double plot_width = 0.0;  // between the axes; 0: what `width` leaves
  FigureAxis x;
  FigureAxis y;
  std::vector<Mark> marks;  // later ones on top
  std::vector<LegendEntry> legend;
  std::optional<LevelScale> scale;
};

}  // namespace commfuse::reports
