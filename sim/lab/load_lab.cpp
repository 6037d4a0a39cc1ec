// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <utility>

#include "model/config/yaml_reader.h"
#include "model/text/suggest.h"
#include "sim/lab/lab.h"

namespace commfuse {

namespace {

constexpr std::array<std::string_view, 3> patterns{"all_gather", "all_reduce", "fuse_ag"};
constexpr std::int64_t max_tile_lengths = std::int64_t{1} << 32;  // 32 random bits choose a length

LabPattern read_pattern(YamlMap& map) {
  const std::string word = map.text("pattern");
  for (std::size_t i = 0; i < patterns.size(); ++i) {
    if (word == patterns[i]) {
      return static_cast<LabPattern>(i);
    }
  }
  map.mistake("pattern",
              fmt::format("unknown pattern {}; {}", in_quotes(word), remedy_for(word, patterns, "patterns")));
  return LabPattern::all_gather;
}

void read_tiles(YamlMap& map, LabWorkload& lab) {
  lab.shortest_tile = lab.longest_tile = map.duration("tile");
  if (map.has("longest_tile")) {
    lab.longest_tile = map.duration("longest_tile");
    lab.tile_step = map.duration("tile_step");
    if (lab.longest_tile < lab.shortest_tile) {
      map.mistake("longest_tile", "'longest_tile' is shorter than 'tile'; swap them");
    }
    if (lab.tile_step <= Duration{}) {
      map.mistake("tile_step", "'tile_step' is not a time; write a duration above 0, as in \"tile_step: 1 us\"");
    } else if ((lab.longest_tile - lab.shortest_tile) / lab.tile_step >= max_tile_lengths) {
      map.mistake("tile_step", fmt::format("'tile_step' gives more than {} lengths from 'tile' to 'longest_tile'; "
                                           "choose a longer step",
                                           max_tile_lengths));
    }
  }
}

}  // namespace

LabWorkload load_lab(const std::string& path) {
  YamlFile file(path);
  YamlMap map = file.root();
  map.schema(lab_schema);
  LabWorkload lab;
  lab.name = map.text("name");
  lab.pattern = read_pattern(map);
  lab.ranks = static_cast<std::int32_t>(map.count("ranks", {1, max_lab_ranks}));
  lab.chunk = map.size("chunk");
  lab.rate = map.bandwidth("rate");
  lab.latency = map.duration("latency");
  if (lab.pattern == LabPattern::fuse_ag) {
    read_tiles(map, lab);
  }
  file.finish();
  return lab;
}

}  // namespace commfuse
