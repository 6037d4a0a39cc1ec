// SPDX-License-Identifier: Apache-2.0
#include "sim/request.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <utility>

#include "model/config/catalogue.h"
#include "model/config/quantity.h"
#include "model/config/suggest.h"
#include "model/config_error.h"
#include "sim/axis.h"

namespace commfuse {

namespace {

using Setting = std::pair<std::string_view, std::string PointRequest::*>;
constexpr std::array settings{
    Setting{"model", &PointRequest::model},  Setting{"hardware", &PointRequest::hardware},
    Setting{"ranks", &PointRequest::ranks},  Setting{"batch", &PointRequest::batch},
    Setting{"seq", &PointRequest::seq},      Setting{"dtype", &PointRequest::dtype},
    Setting{"scope", &PointRequest::scope},  Setting{"interference", &PointRequest::interference},
    Setting{"launch", &PointRequest::launch}};

/// Files are read once, however many points name them.
struct Library {
  std::map<std::string, Transformer> models;
  std::map<std::string, Machine> machines;

  const Transformer& model(const std::string& name) {
    const auto found = models.find(name);
    return found != models.end() ? found->second : models.emplace(name, load_model(name)).first->second;
  }
  const Machine& machine(const std::string& name) {
    const auto found = machines.find(name);
    return found != machines.end() ? found->second : machines.emplace(name, load_machine(name)).first->second;
  }
};

std::int64_t number(std::string_view flag, std::string_view text, std::int64_t most) {
  const std::optional<std::int64_t> value = parse_count(text);
  if (!value || *value < 1) {
    throw ConfigError(fmt::format("--{} {} is not a whole number of at least 1; write one, as in --{} 8 or --{} 32K",
                                  flag, in_quotes(text), flag, flag));
  }
  if (*value > most) {
    throw ConfigError(fmt::format("--{} {} is too large; the most is {}", flag, in_quotes(text), most));
  }
  return *value;
}

/// The choice that `text` names among `known`, or a ConfigError with the nearest.
template <class T, class Table>
T choice(std::string_view flag, std::string_view text, const Table& known) {
  std::vector<std::string_view> names;
  for (const auto& [name, value] : known) {
    if (name == text) {
      return value;
    }
    names.push_back(name);
  }
  throw ConfigError(fmt::format("--{} does not know {}; {}", flag, in_quotes(text),
                                remedy_for(text, names, fmt::format("{}s", flag))));
}

template <class T, class All>
std::vector<std::pair<std::string_view, T>> table_of(const All& all) {
  std::vector<std::pair<std::string_view, T>> table;
  for (const T value : all) {
    table.emplace_back(name_of(value), value);
  }
  return table;
}

constexpr std::array interferences{std::pair<std::string_view, Interference>{"none", Interference::none},
                                   std::pair<std::string_view, Interference>{"static", Interference::constant}};
constexpr std::array launches{std::pair<std::string_view, Launch>{"stream", Launch::stream},
                              std::pair<std::string_view, Launch>{"graph", Launch::graph}};

Point point_of(const PointRequest& request, Library& library) {
  constexpr std::int64_t most_tokens = std::int64_t{1} << 30;
  Point point{.model = library.model(request.model), .machine = library.machine(request.hardware)};
  point.scope = choice<Scope>("scope", request.scope, table_of<Scope>(all_scopes));
  point.ranks = static_cast<std::int32_t>(number("ranks", request.ranks, 1 << 20));
  point.batch = number("batch", request.batch, most_tokens);
  point.seq = number("seq", request.seq, most_tokens);
  if (point.batch > most_tokens / point.seq) {
    throw ConfigError(
        fmt::format("batch {} times seq {} is too large; the most is {} tokens", point.batch, point.seq, most_tokens));
  }
  point.dtype = choice<DType>("dtype", request.dtype, table_of<DType>(all_dtypes));
  point.price.interference = choice<Interference>("interference", request.interference, interferences);
  point.price.launch = choice<Launch>("launch", request.launch, launches);
  require_possible(point);
  return point;
}

std::vector<PointRequest> spread(const std::vector<PointRequest>& requests, const GridAxis& axis) {
  std::vector<PointRequest> result;
  for (PointRequest request : requests) {
    for (const std::string& value : axis.values) {
      std::string* setting = request.find(axis.key);
      if (setting == nullptr) {
        std::vector<std::string_view> names;
        std::transform(settings.begin(), settings.end(), std::back_inserter(names),
                       [](const Setting& s) { return s.first; });
        throw ConfigError(
            fmt::format("--axis does not know {}; {}", in_quotes(axis.key), remedy_for(axis.key, names, "axes")));
      }
      *setting = value;
      result.push_back(request);
    }
  }
  return result;
}

std::vector<const Strategy*> strategies_named(const std::string& list) {
  std::vector<const Strategy*> chosen;
  std::vector<std::string_view> names{"all"};
  for (const Strategy& strategy : strategies()) {
    names.push_back(strategy.name);
    if (list == "all") {
      chosen.push_back(&strategy);
    }
  }
  for (std::size_t start = 0; list != "all" && start <= list.size();) {
    const std::size_t comma = std::min(list.find(',', start), list.size());
    const std::string name = list.substr(start, comma - start);
    const Strategy* strategy = find_strategy(name);
    if (strategy == nullptr) {
      throw ConfigError(
          fmt::format("--strategy does not know {}; {}", in_quotes(name), remedy_for(name, names, "strategies")));
    }
    chosen.push_back(strategy);
    start = comma + 1;
  }
  return chosen;
}

/// The variants of one strategy that agree with what the user fixed.
std::vector<StrategyOptions> variants_of(const Strategy& strategy, const StrategyRequest& request, DType dtype) {
  StrategyOptions base;
  base.dtype = dtype;
  if (request.slices && strategy.uses_slices) {
    base.slices = static_cast<std::int32_t>(number("slices", *request.slices, 1024));
    return {base};
  }
  constexpr std::array forms{std::pair<std::string_view, Form>{"ring", Form::ring},
                             std::pair<std::string_view, Form>{"direct", Form::direct}};
  constexpr std::array lanes{std::pair<std::string_view, LaneKind>{"compute", LaneKind::compute},
                             std::pair<std::string_view, LaneKind>{"aux", LaneKind::aux}};
  std::vector<StrategyOptions> variants = strategy.variants(base);
  if (!strategy.uses_form) {
    return variants;
  }
  const auto drop = [&](const auto& unwanted) {
    variants.erase(std::remove_if(variants.begin(), variants.end(), unwanted), variants.end());
  };
  if (request.form) {
    const Form form = choice<Form>("form", *request.form, forms);
    drop([&](const StrategyOptions& options) { return options.form != form; });
  }
  if (request.add_lane) {
    const auto lane = choice<LaneKind>("add-lane", *request.add_lane, lanes);
    drop([&](const StrategyOptions& options) { return options.form == Form::ring && options.add_lane != lane; });
  }
  return variants;
}

}  // namespace

std::string* PointRequest::find(std::string_view name) {
  for (const auto& [known, member] : settings) {
    if (known == name) {
      return &(this->*member);
    }
  }
  return nullptr;
}

std::vector<Point> points_of(const PointRequest& request, const std::vector<std::string>& axes) {
  std::vector<PointRequest> requests{request};
  for (const std::string& text : axes) {
    requests = spread(requests, parse_axis(text));
  }
  Library library;
  std::vector<Point> points;
  for (const PointRequest& one : requests) {
    points.push_back(point_of(one, library));
  }
  return points;
}

std::vector<Candidates> candidates_of(const StrategyRequest& request, DType dtype) {
  constexpr std::array modes{std::pair<std::string_view, bool>{"best", false},
                             std::pair<std::string_view, bool>{"all", true}};
  const bool each = choice<bool>("variants", request.variants, modes);
  std::vector<Candidates> result;
  for (const Strategy* strategy : strategies_named(request.strategies)) {
    std::vector<StrategyOptions> options = variants_of(*strategy, request, dtype);
    if (!each) {
      result.push_back({strategy, std::move(options)});
      continue;
    }
    for (const StrategyOptions& one : options) {
      result.push_back({strategy, {one}});
    }
  }
  return result;
}

}  // namespace commfuse
