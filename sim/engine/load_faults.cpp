// SPDX-License-Identifier: Apache-2.0
#include "sim/engine/load_faults.h"

#include <fmt/format.h>

#include <string>

#include "model/config/catalogue.h"
#include "model/config/yaml_reader.h"
#include "model/text/quantity.h"
#include "model/text/suggest.h"

namespace commfuse {

namespace {

constexpr Range<double> factor_range{1.0, 1e6};
constexpr std::int64_t max_rank = 1 << 20;

std::optional<Rank> parse_rank(std::string_view text) {
  const std::optional<std::int64_t> rank = parse_count(text);
  return rank && *rank >= 0 && *rank < max_rank ? std::optional(static_cast<Rank>(*rank)) : std::nullopt;
}

std::optional<RankPair> parse_pair(std::string_view text) {
  const std::size_t arrow = text.find("->");
  if (arrow == std::string_view::npos) {
    return std::nullopt;
  }
  const std::optional<Rank> from = parse_rank(text.substr(0, arrow));
  const std::optional<Rank> to = parse_rank(text.substr(arrow + 2));
  return from && to ? std::optional(RankPair{*from, *to}) : std::nullopt;
}

/// Calls read(map, entry, who) for every entry below `key`. The key of the entry names a rank or a link: `who`.
template <class Who, class Read>
void for_each_entry(YamlMap& top, std::string_view key, std::optional<Who> (*parse)(std::string_view),
                    std::string_view example, const Read& read) {
  std::optional<YamlMap> map = top.optional_map(key);
  if (!map) {
    return;
  }
  for (const std::string& entry : map->keys()) {
    const std::optional<Who> who = parse(entry);
    if (!who) {
      map->mistake(entry, fmt::format("{} is not a {}; write it as in \"{}: {{{}}}\"", in_quotes(entry),
                                      std::is_same_v<Who, Rank> ? "rank" : "link", key, example));
      map->text(entry);
      continue;
    }
    read(*map, entry, *who);
  }
}

/// Reads an outage such as "100 us..1 ms" or "100 us..".
void read_outage(YamlMap& map, const std::string& key, RankPair link, Faults& faults) {
  const std::string text = map.text(key);
  const std::size_t dots = text.find("..");
  const std::optional<Duration> from = parse_duration(text.substr(0, dots));
  const std::string until_text = dots == std::string::npos ? "" : text.substr(dots + 2);
  const std::optional<Duration> until = parse_duration(until_text);
  if (is_too_long(text.substr(0, dots)) || is_too_long(until_text)) {
    map.mistake(key,
                fmt::format("{} is too long; write times below 9.2e6 s, or \"100 us..\" for no end", in_quotes(text)));
    return;
  }
  if (dots == std::string::npos || !from || (!until_text.empty() && !until)) {
    map.mistake(key,
                fmt::format("{} is not a span of time; write one, as in \"100 us..1 ms\", or \"100 us..\" for no end",
                            in_quotes(text)));
    return;
  }
  if (until && *until <= *from) {
    map.mistake(key, fmt::format("{} ends before it begins; write the earlier time first", in_quotes(text)));
    return;
  }
  faults.links_down.push_back(
      {.link = link, .from = Instant{*from}, .until = until ? std::optional(Instant{*until}) : std::nullopt});
}

}  // namespace

std::shared_ptr<const Faults> load_faults(std::string_view name_or_path) {
  YamlFile file(find_config(Catalogue::faults, name_or_path));
  YamlMap map = file.root();
  map.schema("commfuse.faults/1");
  map.text("name");
  Faults faults;
  for_each_entry<Rank>(map, "slow_ranks", parse_rank, "3: 1.2",
                       [&](YamlMap& entries, const std::string& key, Rank rank) {
                         faults.slow_ranks.push_back({.rank = rank, .factor = entries.number(key, factor_range)});
                       });
  for_each_entry<RankPair>(map, "slow_links", parse_pair, "2->3: 2",
                           [&](YamlMap& entries, const std::string& key, RankPair link) {
                             faults.slow_links.push_back({.link = link, .factor = entries.number(key, factor_range)});
                           });
  for_each_entry<RankPair>(
      map, "links_down", parse_pair, "2->3: 100 us..1 ms",
      [&](YamlMap& entries, const std::string& key, RankPair link) { read_outage(entries, key, link, faults); });
  for_each_entry<Rank>(map, "late_starts", parse_rank, "3: 50 us",
                       [&](YamlMap& entries, const std::string& key, Rank rank) {
                         faults.late_starts.push_back({.rank = rank, .by = entries.duration(key)});
                       });
  file.finish();
  const bool none =
      faults.slow_ranks.empty() && faults.slow_links.empty() && faults.links_down.empty() && faults.late_starts.empty();
  return none ? nullptr : std::make_shared<const Faults>(std::move(faults));
}

}  // namespace commfuse
