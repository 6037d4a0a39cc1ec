// SPDX-License-Identifier: Apache-2.0
#include "reports/html/inputs.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <set>
#include <span>
#include <string_view>

#include "model/analysis/verdict.h"
#include "model/check.h"
#include "model/strategies/strategies.h"
#include "model/text/quantity.h"
#include "reports/commas.h"
#include "reports/figure/markup.h"
#include "reports/figure/wording.h"
#include "reports/plan_verdicts.h"
#include "reports/point_rows.h"

namespace commfuse::reports {

namespace {

constexpr std::size_t max_values = 24;
constexpr std::size_t max_digests = 60;

/// Returns each different text once, in order of first appearance; `columns` are the columns that the text depends on.
std::vector<std::string> distinct(const RowTable& rows, const RowTable::Columns& columns,
                                  const std::function<std::string(const ResultRow&)>& text) {
  std::set<std::string> known;
  std::vector<std::string> values;
  const RowTable::Groups groups = rows.groups(columns);
  std::uint32_t next = 0;
  for (std::size_t row = 0; row < groups.size(); ++row) {
    if (groups[row] == next) {
      ++next;
      if (std::string value = text(rows[row]); known.insert(value).second) {
        values.push_back(std::move(value));
      }
    }
  }
  return values;
}

std::string joined(std::span<const std::string> values, std::size_t limit) {
  const std::size_t shown = std::min(values.size(), limit);
  const std::string text = fmt::format("{}", fmt::join(values.first(shown), ", "));
  return values.size() > limit ? fmt::format("{} and {} more", text, values.size() - limit) : text;
}

/// Lists values as "2, 4, 8"; many values by the smallest and the largest: "1K to 128K (8 values)".
std::string ends_of(std::span<const std::string> values) {
  constexpr std::size_t max_listed = 5;
  if (values.size() <= max_listed) {
    return joined(values, max_listed);
  }
  const auto count = [](const std::string& value) { return parse_count(value).value_or(0); };
  return fmt::format("{} to {} ({} values)", *std::ranges::min_element(values, {}, count),
                     *std::ranges::max_element(values, {}, count), values.size());
}

std::string counted_with_commas(std::size_t count, std::string_view noun) {
  return fmt::format("{} {}{}", with_commas(static_cast<std::int64_t>(count)), noun, count == 1 ? "" : "s");
}

/// Lists values as "llama-3.1-8b and llama-3.1-70b"; more than three as "20 models".
std::string named_or_counted(const std::vector<std::string>& values, std::string_view noun) {
  constexpr std::size_t max_named = 3;
  return values.size() <= max_named ? names_in_words(values) : counted_with_commas(values.size(), noun);
}

/// Formats the rates of the machines' links, after the machines: ", links x2" or " at 5 link rates"; empty if all are
/// the machines' own.
std::string rates_in_words(const std::vector<std::string>& links, const std::vector<std::string>& networks) {
  std::string text;
  std::vector<std::string> counts;
  for (const auto& [name, rates] : {std::pair("links", links), std::pair("network", networks)}) {
    if (rates.size() == 1 && rates.front() != "x1") {
      text += fmt::format(", {} {}", name, rates.front());
    } else if (rates.size() > 1) {
      counts.push_back(fmt::format("{} {} rates", rates.size(), name == std::string_view("links") ? "link" : name));
    }
  }
  return counts.empty() ? text : fmt::format("{} at {}", text, names_in_words(counts));
}

/// Describes each strategy; implementations and strategies of other versions have no entry.
std::string strategies_html(std::span<const std::string> names) {
  std::string items;
  for (const std::string& name : names) {
    if (const Strategy* strategy = find_strategy(name)) {
      items += fmt::format("<div><dt>{}</dt><dd>{}</dd></div>\n", name, escaped(strategy->summary));
    }
  }
  return items.empty() ? items
                       : fmt::format(
                             "<h3>What the strategies do</h3>\n"
                             "<dl class=\"words\">\n"
                             "{}</dl>\n"
                             "<p class=\"quiet\">Options of a schedule are in parentheses: k slices, m sub-slices per "
                             "shard, g shards per GEMM, its form and lanes. <code>commfuse-sim list strategies</code> "
                             "lists all strategies, <code>commfuse-sim run --help-all</code> all options.</p>\n",
                             items);
}

}  // namespace

const std::vector<std::string>& RequestedSettings::values(std::string_view name) const {
  const auto field = std::ranges::find(fields, name, [](const auto& entry) { return entry.first; });
  check(field != fields.end(), "a setting that is requested by name is among the fields");
  return field->second;
}

namespace {

/// Returns each different list of unusual settings once.
std::vector<std::string> conditions_of(const RowTable& rows) {
  std::vector<std::string> conditions;
  const RowTable::Groups settings = rows.runs(rows.setting_columns());
  for (std::size_t i = 0; i + 1 < settings.size(); ++i) {
    std::string text;
    for (const std::string& words : unusual(rows[settings[i]])) {
      text += ", " + words;
    }
    if (std::ranges::find(conditions, text) == conditions.end()) {
      conditions.push_back(std::move(text));
    }
  }
  return conditions;
}

}  // namespace

RequestedSettings requested_settings(const RowTable& rows) {
  struct Field {
    const char* name;
    RowTable::Columns columns;
    std::string (*text)(const ResultRow&);
  };
  const RowColumns& columns = rows.columns();
  const std::array<Field, 11> fields{{
      {"Model", {&columns.model.numbers()}, [](const ResultRow& row) { return row.model; }},
      {"Hardware",
       {&columns.hardware.numbers(), &columns.link_bandwidth.numbers(), &columns.network_bandwidth.numbers()},
       [](const ResultRow& row) { return machine_in_words(row); }},
      {"Scope", {&columns.scope.numbers()}, [](const ResultRow& row) { return row.scope; }},
      {"Ranks", {&columns.ranks}, [](const ResultRow& row) { return fmt::format("{}", row.ranks); }},
      {"Batch", {&columns.batch}, [](const ResultRow& row) { return format_count(row.batch); }},
      {"Sequence length", {&columns.seq}, [](const ResultRow& row) { return format_count(row.seq); }},
      {"Dtype", {&columns.dtype.numbers()}, [](const ResultRow& row) { return row.dtype; }},
      {"Strategies", {&columns.strategy.numbers()}, [](const ResultRow& row) { return row.strategy; }},
      {"Evaluator", {&columns.evaluator.numbers()}, [](const ResultRow& row) { return row.evaluator; }},
      {"Interference",
       {&columns.priced_as[price_place(&PricedAs::interference)].numbers()},
       [](const ResultRow& row) { return row.interference; }},
      {"Launch",
       {&columns.priced_as[price_place(&PricedAs::launch)].numbers()},
       [](const ResultRow& row) { return row.launch; }},
  }};
  RequestedSettings settings;
  for (const Field& field : fields) {
    settings.fields.emplace_back(field.name, distinct(rows, field.columns, field.text));
  }
  settings.hardware = distinct(rows, {&columns.hardware.numbers()}, [](const ResultRow& row) { return row.hardware; });
  settings.links =
      distinct(rows, {&columns.link_bandwidth.numbers()}, [](const ResultRow& row) { return row.link_bandwidth; });
  settings.networks = distinct(rows, {&columns.network_bandwidth.numbers()},
                               [](const ResultRow& row) { return row.network_bandwidth; });
  settings.conditions = conditions_of(rows);
  return settings;
}

std::string subject_in_words(const RequestedSettings& settings, std::size_t points) {
  if (settings.values("Model").empty()) {
    return {};
  }
  const std::string scopes = named_or_counted(settings.values("Scope"), "scope");
  const std::vector<std::string>& models = settings.values("Model");
  return fmt::format("{} on {}, batch {}, {}{}; ranks {}; seq {}; {}, predicted",
                     models.size() == 1 ? fmt::format("{} {}", models.front(), scopes)
                                        : fmt::format("{} of {}", scopes, named_or_counted(models, "model")),
                     named_or_counted(settings.hardware, "machine") + rates_in_words(settings.links, settings.networks),
                     ends_of(settings.values("Batch")), named_or_counted(settings.values("Dtype"), "dtype"),
                     settings.conditions.size() == 1 ? settings.conditions.front() : std::string{},
                     ends_of(settings.values("Ranks")), ends_of(settings.values("Sequence length")),
                     counted_with_commas(points, "point"));
}

std::string subject_in_words(const std::vector<StepRow>& models) {
  if (models.empty()) {
    return {};
  }
  const auto values_of = [&](std::string_view column) {
    std::vector<std::string> values;
    for (const StepRow& row : models) {
      if (row.has(column) && std::ranges::find(values, row.text(column)) == values.end()) {
        values.push_back(row.text(column));
      }
    }
    return values;
  };
  constexpr std::size_t max_named = 3;
  return fmt::format("{} {} on {}{}; {}, predicted", joined(values_of("model"), max_named),
                     joined(values_of("scope"), max_named), joined(values_of("hardware"), max_named),
                     rates_in_words(values_of("link_bandwidth"), values_of("network_bandwidth")),
                     counted_with_commas(plans_of(models).size(), "plan"));
}

std::string settings_html(const RequestedSettings& settings) {
  std::string html = "<dl class=\"words\">\n";
  for (const auto& [name, values] : settings.fields) {
    html += fmt::format("<div><dt>{}</dt><dd>{}</dd></div>\n", name, escaped(joined(values, max_values)));
  }
  return html + "</dl>\n" + strategies_html(settings.values("Strategies"));
}

std::vector<std::string> kinds_of(const RowTable& rows) {
  std::vector<std::string> kinds;
  for (const std::string& text :
       distinct(rows, {&rows.columns().provenances.numbers()}, [](const ResultRow& row) { return row.provenances; })) {
    for (std::size_t from = 0; from < text.size();) {
      const std::size_t to = std::min(text.find('+', from), text.size());
      kinds.push_back(text.substr(from, to - from));
      from = to + 1;
    }
  }
  return kinds;
}

std::string digests_html(const RowTable& rows) {
  const RowColumns& columns = rows.columns();
  std::vector<std::string> digests = distinct(
      rows,
      {&columns.strategy.numbers(), &columns.parameters.numbers(), &columns.ranks, &columns.schedule_sha256.numbers()},
      [](const ResultRow& row) {
        return row.schedule_sha256.empty() ? std::string{}
                                           : fmt::format("{}, {} rank{}: {}", label_of(row), row.ranks,
                                                         row.ranks == 1 ? "" : "s", row.schedule_sha256);
      });
  std::erase(digests, "");  // Points that could not be run have no schedule.
  if (digests.empty()) {
    return {};
  }
  std::string html = fmt::format("<details><summary>SHA-256 of the schedules ({})</summary>\n<ul>\n", digests.size());
  for (std::size_t i = 0; i < digests.size() && i < max_digests; ++i) {
    html += fmt::format("<li><code>{}</code></li>\n", escaped(digests[i]));
  }
  return html + (digests.size() > max_digests ? "<li>the rest are in the CSV and JSON</li>\n</ul></details>\n"
                                              : "</ul></details>\n");
}

}  // namespace commfuse::reports
