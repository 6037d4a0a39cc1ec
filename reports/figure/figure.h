// SPDX-License-Identifier: Apache-2.0
// A figure as plain data: shapes in the units of its axes, and the size of the plot in pixels. Writers (SVG, JSON for
// the page, terminal) turn it into pictures; only they convert shapes to pixels.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace commfuse::reports {

/// The meaning of a colour. The writer's themes choose the colour, light and dark. The numbered roles distinguish
/// series, such as strategies.
enum class Role : std::uint8_t {
  ink,
  muted,
  essential,
  local,
  communication,
  exposed,
  first,
  second,
  third,
  fourth,
  fifth,
  sixth,
  seventh,
  tie  // cells that are too close to call
};
inline constexpr std::array series_roles{Role::first, Role::second, Role::third,  Role::fourth,
                                         Role::fifth, Role::sixth,  Role::seventh};
/// Returns the name of a role, such as "essential".
std::string_view name_of(Role role);

struct Tick {
  double at = 0.0;
  std::string label;
};

/// An axis from low to high, left to right and bottom to top; `reversed` runs the other way. Requires low < high, and 0
/// < low if it is logarithmic.
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

/// A box. It shows the first of `labels` that fits inside, and `tip` while a pointer rests on it.
struct RectMark {
  Place from;
  Place to;
  Role role = Role::ink;
  bool hatched = false;
  std::vector<std::string> labels;
  std::string tip;
};

/// A line through all points; with steps it keeps the value up to the next point.
struct LineMark {
  std::vector<Place> points;
  Role role = Role::ink;
  bool dashed = false;
  bool steps = false;
  std::string name{};               // name of the series
  std::vector<std::string> tips{};  // one per point, or none
  std::string dashes{};             // "6 3": lengths of dash and gap; if empty, `dashed` applies
};

/// A band between two lines, with one point of each line for every x.
struct BandMark {
  std::vector<Place> low;
  std::vector<Place> high;
  Role role = Role::ink;
};

enum class Symbol : std::uint8_t { circle, square, diamond, triangle };
inline constexpr std::array all_symbols{Symbol::circle, Symbol::square, Symbol::diamond, Symbol::triangle};
std::string_view name_of(Symbol symbol);

struct PointsMark {
  std::vector<Place> points;
  Role role = Role::ink;
  Symbol symbol = Symbol::circle;
  double size = 4.0;  // pixels from the middle to the edge
  std::string name{};
  std::vector<std::string> tips{};  // one per point, or none
};

/// A bar from the axis up (or down) to a value.
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

/// Text with `strong` in bold before `text`.
struct TextMark {
  Place at;
  std::string strong;
  std::string text;
  Anchor anchor = Anchor::start;
};

/// A cell of a map, one unit wide and high around its place. The level runs from 0 to 1; on a diverging scale 0.5 is
/// neutral. A cell with neither a level nor a role has no value and is crossed out.
struct CellMark {
  Place at;
  std::optional<double> level;
  std::string text;
  std::string tip;
  bool framed = false;
  std::optional<Role> role{};  // role in place of a level, for maps of names
};

using Mark = std::variant<RectMark, LineMark, BarMark, TextMark, CellMark, BandMark, PointsMark>;

struct LegendEntry {
  std::string text;
  Role role = Role::ink;
  bool hatched = false;
  bool line = false;
  std::string dashes{};            // dashes of the line
  bool band = false;               // drawn as pale as a BandMark
  std::optional<Symbol> symbol{};  // symbol in place of a box
};

/// Data of a figure as a table, for files and for readers.
struct FigureData {
  std::vector<std::string> columns;  // unit last: makespan_us
  std::vector<std::vector<std::string>> rows;
};

/// Meaning of the levels of cells; drawn as a strip of colours.
struct LevelScale {
  std::string label;
  std::string low;
  std::string middle;
  std::string high;
  bool diverging = false;
};

struct Figure {
  std::string id;           // lower-case letters, digits and dashes; unique among the figures of a page
  std::string title;        // states the finding
  std::string description;  // the figure in words, for readers who cannot see it
  double width = 960.0;     // total, in pixels of a screen
  double height = 240.0;    // between the axes
  double plot_width = 0.0;  // between the axes; 0: the rest of `width`
  FigureAxis x;
  FigureAxis y;
  std::vector<Mark> marks;  // later marks on top
  std::vector<LegendEntry> legend;
  std::optional<LevelScale> scale;
  FigureData data{};
};

}  // namespace commfuse::reports
