// SPDX-License-Identifier: Apache-2.0
#include "model/config/read_kernel_choice.h"

#include <fmt/format.h>

#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

#include "model/config/catalogue.h"
#include "model/config_error.h"
#include "model/text/counted.h"
#include "model/text/suggest.h"

namespace commfuse {

namespace {

constexpr double thousandths = 1000.0;
constexpr Range<std::int64_t> factor_range{100, 10'000};

void read_row(YamlMap map, const std::string& key, std::span<double, KernelChoice::k_knots.size()> row) {
  const std::vector<std::int64_t> factors = map.counts(key, factor_range);
  const std::optional<YamlValue> list = map.optional_value(key);
  if (!list || list->kind() != YamlKind::list) {
    return;  // noted by counts
  }
  const std::size_t items = list->items().size();
  if (items != row.size()) {
    map.mistake(key, fmt::format("'{}' has {}; write {}, in thousandths of the formula's time, for k of 2^{} to 2^{}",
                                 key, counted(items, "item"), row.size(), KernelChoice::k_knots.front(),
                                 KernelChoice::k_knots.back()));
  }
  if (factors.size() != row.size()) {
    return;  // an item is not a factor, or the list has another length
  }
  for (std::size_t i = 0; i < row.size(); ++i) {
    row[i] = static_cast<double>(factors[i]) / thousandths;
  }
}

void read_narrow(YamlMap map, std::span<double> factors) {
  std::size_t first = 0;
  for (const int log2_of_m : KernelChoice::m_knots) {
    YamlMap rows = map.map(m_key(log2_of_m));
    for (std::size_t n = 0; n + 1 < KernelChoice::narrow_knots.size(); ++n) {
      read_row(rows, n_key(KernelChoice::narrow_knots[n]),
               factors.subspan(first).first<KernelChoice::k_knots.size()>());
      first += KernelChoice::k_knots.size();
    }
  }
}

std::shared_ptr<const KernelChoice> read_table(YamlMap map) {
  KernelChoice choice;
  std::tie(choice.provenance, choice.source) = map.provenance();
  const std::span<double> factors(choice.factors);
  std::size_t first = 0;
  for (const int log2_of_m : KernelChoice::m_knots) {
    YamlMap rows = map.map(m_key(log2_of_m));
    for (const int log2_of_tiles : KernelChoice::tiles_knots) {
      read_row(rows, tiles_key(log2_of_tiles), factors.subspan(first).first<KernelChoice::k_knots.size()>());
      first += KernelChoice::k_knots.size();
    }
  }
  if (std::optional<YamlMap> narrow = map.optional_map("narrow")) {
    read_narrow(*narrow, choice.narrow);
  }
  return std::make_shared<const KernelChoice>(std::move(choice));
}

/// Returns the map at the path `keys` below `map`; nullopt when a key is absent.
std::optional<YamlMap> map_at(YamlMap map, std::initializer_list<std::string_view> keys) {
  std::optional<YamlMap> inner = map;
  for (const std::string_view key : keys) {
    inner = inner->optional_map(key);
    if (!inner) {
      return std::nullopt;
    }
  }
  return inner;
}

/// Reads the table that `as: <hardware file>/<dtype>` names; a relative path starts at the folder of `naming_file`.
std::shared_ptr<const KernelChoice> read_named(const std::filesystem::path& naming_file, YamlMap map) {
  const std::string name = map.text("as", "h100-sxm/bf16");
  const std::size_t slash = name.rfind('/');  // a path may contain others
  if (name.empty() || slash == std::string::npos) {
    if (!name.empty()) {
      map.mistake("as", fmt::format("{} names no table; write a hardware file and a dtype, as in h100-sxm/bf16",
                                    in_quotes(name)));
    }
    return nullptr;
  }
  try {
    YamlFile file(find_config(Catalogue::nodes, beside_file(naming_file, Catalogue::nodes, name.substr(0, slash))));
    const std::string dtype = name.substr(slash + 1);
    if (std::optional<YamlMap> table = map_at(file.root(), {"accelerator", "matrix_units", dtype, "kernel_choice"});
        table && !table->has("as")) {
      std::shared_ptr<const KernelChoice> choice = read_table(*table);
      if (!file.has_mistakes()) {
        return choice;
      }
      map.mistake("as", fmt::format("the table kernel_choice under {} in {} has mistakes; correct them there",
                                    in_quotes(dtype), file.path()));
      return nullptr;
    }
    map.mistake("as", fmt::format("{} has no table kernel_choice under {}; name a file that has one", file.path(),
                                  in_quotes(dtype)));
  } catch (const ConfigError& error) {
    map.mistake("as", error.what());
  }
  return nullptr;
}

}  // namespace

std::shared_ptr<const KernelChoice> read_kernel_choice(const std::filesystem::path& naming_file, YamlMap unit) {
  std::optional<YamlMap> map = unit.optional_map("kernel_choice");
  if (!map) {
    return nullptr;
  }
  if (!map->has("as")) {
    return read_table(*map);
  }
  bool has_table = map->optional_value("provenance").has_value() || map->optional_value("narrow").has_value();
  for (const int log2_of_m : KernelChoice::m_knots) {
    has_table = map->optional_value(m_key(log2_of_m)).has_value() || has_table;
  }
  if (has_table) {
    map->mistake("as", "'as' names the table of another file, but this map also has a table; remove one of them");
  }
  return read_named(naming_file, *map);
}

}  // namespace commfuse
