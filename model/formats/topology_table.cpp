// SPDX-License-Identifier: Apache-2.0
#include "model/formats/topology_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "model/config_error.h"
#include "model/formats/topology_file.h"
#include "model/formats/topology_text.h"
#include "model/text/counted.h"
#include "model/text/quantity.h"
#include "model/text/suggest.h"

namespace commfuse {

namespace {

using Level = MeetingLevel;
using Cell = MeetingCell;
using Table = TopologyTable;

struct LevelName {
  std::string_view word;
  Level level;
};
constexpr std::array level_names{
    LevelName{"X", Level::self},  LevelName{"PIX", Level::pix}, LevelName{"PSB", Level::pix},  // on one board
    LevelName{"PXB", Level::pxb}, LevelName{"PHB", Level::phb}, LevelName{"NODE", Level::node},
    LevelName{"SYS", Level::sys}, LevelName{"SOC", Level::sys}};

/// Words that `nvidia-smi topo -p2p` prints instead of connections.
constexpr std::array peer_states{std::string_view("OK"),  std::string_view("CNS"), std::string_view("GNS"),
                                 std::string_view("TNS"), std::string_view("NS"),  std::string_view("DR"),
                                 std::string_view("U")};

using Word = TextWord;

[[noreturn]] void refuse(const std::string& path, YamlPlace place, const std::string& message) {
  throw ConfigError(at_place(path, place, message));
}

bool is_peer_state(std::string_view word) {
  return std::find(peer_states.begin(), peer_states.end(), word) != peer_states.end();
}

/// Returns the connection in a cell that runs into the CPU affinity: in long rows, the tool cuts the cell short, so
/// that "PH0-115" is PHB followed by CPUs 0 to 115.
std::string_view without_affinity(std::string_view word) {
  const std::string_view letters = word.substr(0, word.find_first_of("0123456789"));
  const auto begins = [&](const LevelName& level) { return level.word.substr(0, letters.size()) == letters; };
  const bool is_unique = !letters.empty() && letters.size() < word.size() &&
                         std::count_if(level_names.begin(), level_names.end(), begins) == 1;
  return is_unique ? std::find_if(level_names.begin(), level_names.end(), begins)->word : word;
}

std::optional<std::int64_t> gpu_number(std::string_view word) {
  const std::optional<std::int64_t> number = word.substr(0, 3) == "GPU" ? parse_integer(word.substr(3)) : std::nullopt;
  return number && *number >= 0 ? number : std::nullopt;
}
bool is_gpu(std::string_view word) { return gpu_number(word).has_value(); }

/// Reads the table.
class TableReader {
 public:
  TableReader(const std::string& path, std::string_view text) : path_(path), lines_(words_of_lines(text)) {}

  Table read() {
    refuse_slices(path_, lines_);
    const std::size_t head = head_line();
    Table table;
    for (const Word& word : lines_[head]) {
      if (word.text == "CPU" || word.text == "NUMA" || (table.gpus > 0 && word.text == "GPU")) {
        break;
      }
      if (is_gpu(word.text)) {
        require_next_gpu(word, table);
        ++table.gpus;
      }
      table.names.emplace_back(word.text);
    }
    table.cells.resize(static_cast<std::size_t>(table.gpus));
    for (std::size_t i = head + 1; i < lines_.size() && !begins_peer_table(i); ++i) {
      read_row(lines_[i], table);
    }
    for (int gpu = 0; gpu < table.gpus; ++gpu) {
      if (table.cells[static_cast<std::size_t>(gpu)].empty()) {
        refuse(path_, lines_[head].front().place,
               fmt::format("no row for {}; {}", table.names[static_cast<std::size_t>(gpu)], how_a_table_is_made));
      }
    }
    return table;
  }

 private:
  /// Returns true if the table of `nvidia-smi topo -p2p` begins at this line; it may follow the table of connections.
  [[nodiscard]] bool begins_peer_table(std::size_t head) const {
    const auto begins_with_gpus = [](const std::vector<Word>& words) {
      return words.size() > 1 && is_gpu(words[0].text) && is_gpu(words[1].text);
    };
    const bool has_row = head + 1 < lines_.size() && lines_[head + 1].size() > 2;
    return begins_with_gpus(lines_[head]) && has_row && is_peer_state(lines_[head + 1][2].text);
  }

  /// Returns the first line that lists GPUs. A row also begins with a GPU, but its second word is a cell.
  [[nodiscard]] std::size_t head_line() const {
    for (std::size_t i = 0; i < lines_.size(); ++i) {
      const std::vector<Word>& words = lines_[i];
      if (!words.empty() && is_gpu(words[0].text) && (words.size() == 1 || words[1].text != "X")) {
        return i;
      }
    }
    refuse_unknown_text(path_, lines_);
  }

  /// Checks that GPUs come first and in order. Some GPUs may be missing, as in a container.
  void require_next_gpu(const Word& word, const Table& table) const {
    const std::optional<std::int64_t> before = table.names.empty() ? -1 : gpu_number(table.names.back());
    if (!before || *gpu_number(word.text) <= *before) {
      refuse(path_, word.place,
             fmt::format("{} comes after {}, but GPUs must be in ascending order; {}", word.text, table.names.back(),
                         how_a_table_is_made));
    }
    if (table.gpus == max_gpus_of_a_file) {
      refuse(path_, word.place, fmt::format("more than {} GPUs; give the table of one node", max_gpus_of_a_file));
    }
  }

  void read_row(const std::vector<Word>& words, Table& table) const {
    if (words.empty() || !is_gpu(words.front().text)) {
      return;  // the row of a NIC, whose cells the GPUs' rows repeat, or the legend
    }
    const auto name = std::find(table.names.begin(), table.names.end(), words.front().text);
    if (name == table.names.end()) {
      refuse(path_, words.front().place,
             fmt::format("{} is not in the first line; {}", words.front().text, how_a_table_is_made));
    }
    std::vector<Cell>& row = table.cells[static_cast<std::size_t>(name - table.names.begin())];
    if (!row.empty()) {
      refuse(path_, words.front().place, fmt::format("{} has two rows; {}", *name, how_a_table_is_made));
    }
    if (const std::size_t cells = words.size() - 1; cells < table.names.size()) {
      refuse(path_, words.front().place,
             fmt::format("{} has {}, but the first line names {}; {}", *name, counted(cells, "cell"),
                         counted(table.names.size(), "device"), how_a_table_is_made));
    }
    for (std::size_t i = 0; i < table.names.size(); ++i) {
      Word word = words[i + 1];
      if (i >= static_cast<std::size_t>(table.gpus) && i + 1 == table.names.size()) {
        word.text = without_affinity(word.text);
      }
      row.push_back(cell_of(word));
    }
  }

  [[nodiscard]] Cell cell_of(const Word& word) const {
    if (word.text.substr(0, 2) == "NV") {
      const std::optional<std::int64_t> links = parse_integer(word.text.substr(2));
      if (!links || *links < 1 || *links > max_nvlinks) {
        refuse(path_, word.place,
               fmt::format("{} is not a number of NVLinks; a GPU has NV1 to NV{}", in_quotes(word.text), max_nvlinks));
      }
      return {Level::nvlink, static_cast<int>(*links), word.place};
    }
    const auto* const level = std::find_if(level_names.begin(), level_names.end(),
                                           [&](const LevelName& known) { return known.word == word.text; });
    if (is_peer_state(word.text)) {
      refuse(path_, word.place,
             fmt::format("{} is a cell of `nvidia-smi topo -p2p`, which states whether GPUs reach each other, but not "
                         "over which links; {}",
                         in_quotes(word.text), how_a_table_is_made));
    }
    if (level == level_names.end()) {
      refuse(path_, word.place,
             fmt::format("unknown connection {}; known connections: X, NV1 to NV{}, PIX, PXB, PHB, NODE, SYS",
                         in_quotes(word.text), max_nvlinks));
    }
    return {level->level, 0, word.place};
  }

  const std::string& path_;
  std::vector<std::vector<Word>> lines_;
};

}  // namespace

TopologyTable read_topology_table(const std::string& path, std::string_view text) {
  return TableReader(path, text).read();
}

}  // namespace commfuse
