// SPDX-License-Identifier: Apache-2.0
#include "reports/figure/figure_json.h"

#include <nlohmann/json.hpp>

#include "reports/rows.h"

namespace commfuse::reports {

namespace {

using Json = nlohmann::ordered_json;

Json json_of(Place place) { return Json::array({place.x, place.y}); }

Json json_of(const std::vector<Place>& places) {
  Json places_json = Json::array();
  for (const Place& place : places) {
    places_json.push_back(json_of(place));
  }
  return places_json;
}

Json json_of(const FigureAxis& axis) {
  Json ticks = Json::array();
  for (const Tick& tick : axis.ticks) {
    ticks.push_back(Json::array({tick.at, tick.label}));
  }
  return {{"label", axis.label},       {"unit", axis.unit},        {"low", axis.low},
          {"high", axis.high},         {"grid", axis.grid},        {"logarithmic", axis.logarithmic},
          {"reversed", axis.reversed}, {"ticks", std::move(ticks)}};
}

Json box(Place from, Place to, Role role, bool hatched, const std::vector<std::string>& labels,
         const std::string& tip) {
  return {{"kind", "box"}, {"from", json_of(from)}, {"to", json_of(to)}, {"role", name_of(role)},
          {"tip", tip},    {"hatched", hatched},    {"labels", labels}};
}

Json json_of(const RectMark& mark) { return box(mark.from, mark.to, mark.role, mark.hatched, mark.labels, mark.tip); }

Json json_of(const BarMark& mark) {
  const double half = mark.width / 2.0;
  return box({mark.x - half, mark.from}, {mark.x + half, mark.to}, mark.role, mark.hatched, {}, mark.tip);
}

void put_tips(const std::vector<std::string>& tips, Json& json) {
  if (!tips.empty()) {
    json["tips"] = tips;
  }
}

Json json_of(const LineMark& mark) {
  Json json{
      {"kind", "line"},        {"name", mark.name},  {"points", json_of(mark.points)}, {"role", name_of(mark.role)},
      {"dashed", mark.dashed}, {"steps", mark.steps}};
  if (!mark.dashes.empty()) {
    json["dashes"] = mark.dashes;
  }
  put_tips(mark.tips, json);
  return json;
}

Json json_of(const TextMark& mark) {
  const char* anchor = mark.anchor == Anchor::start ? "start" : mark.anchor == Anchor::middle ? "middle" : "end";
  return {{"kind", "text"}, {"at", json_of(mark.at)}, {"strong", mark.strong}, {"text", mark.text}, {"anchor", anchor}};
}

Json json_of(const CellMark& mark) {
  Json json{
      {"kind", "cell"}, {"at", json_of(mark.at)}, {"text", mark.text}, {"tip", mark.tip}, {"framed", mark.framed}};
  if (mark.level) {
    json["level"] = *mark.level;
  }
  if (mark.role) {
    json["role"] = name_of(*mark.role);
  }
  return json;
}

Json json_of(const BandMark& mark) {
  return {{"kind", "band"}, {"low", json_of(mark.low)}, {"high", json_of(mark.high)}, {"role", name_of(mark.role)}};
}

Json json_of(const PointsMark& mark) {
  Json json{{"kind", "points"},
            {"name", mark.name},
            {"points", json_of(mark.points)},
            {"role", name_of(mark.role)},
            {"symbol", name_of(mark.symbol)},
            {"size", mark.size}};
  put_tips(mark.tips, json);
  return json;
}

Json legend_of(const Figure& figure) {
  Json legend = Json::array();
  for (const LegendEntry& entry : figure.legend) {
    Json object{{"text", entry.text}, {"role", name_of(entry.role)}, {"hatched", entry.hatched}, {"line", entry.line}};
    if (!entry.dashes.empty()) {
      object["dashes"] = entry.dashes;
    }
    if (entry.band) {
      object["band"] = true;
    }
    if (entry.symbol) {
      object["symbol"] = name_of(*entry.symbol);
    }
    legend.push_back(std::move(object));
  }
  return legend;
}

}  // namespace

std::string figure_json(const Figure& figure) {
  Json marks = Json::array();
  for (const Mark& mark : figure.marks) {
    marks.push_back(std::visit([](const auto& drawn) { return json_of(drawn); }, mark));
  }
  Json json{{"id", figure.id},         {"title", figure.title},           {"description", figure.description},
            {"height", figure.height}, {"plot_width", figure.plot_width}, {"x", json_of(figure.x)},
            {"y", json_of(figure.y)},  {"marks", std::move(marks)},       {"legend", legend_of(figure)}};
  if (figure.scale) {
    const LevelScale& scale = *figure.scale;
    json["scale"] = {{"label", scale.label},
                     {"low", scale.low},
                     {"middle", scale.middle},
                     {"high", scale.high},
                     {"diverging", scale.diverging}};
  }
  if (!figure.data.columns.empty()) {
    json["data"] = {{"columns", figure.data.columns}, {"rows", figure.data.rows}};
  }
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string figure_csv(const Figure& figure) {
  const auto line = [](const std::vector<std::string>& cells) {
    std::string text;
    for (const std::string& cell : cells) {
      text += (text.empty() && &cell == cells.data() ? "" : ",") + csv_text(cell);
    }
    return text + "\r\n";
  };
  std::string text = line(figure.data.columns);
  for (const std::vector<std::string>& row : figure.data.rows) {
    text += line(row);
  }
  return text;
}

}  // namespace commfuse::reports
