// SPDX-License-Identifier: Apache-2.0
#include "model/formats/topology_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "model/config_error.h"
#include "model/formats/topology_file.h"
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
    LevelName{"X", Level::self},  LevelName{"PIX", Level::pix}, LevelName{"PSB", Level::pix},  // On one board.
    LevelName{"PXB", Level::pxb}, LevelName{"PHB", Level::phb}, LevelName{"NODE", Level::node},
    LevelName{"SYS", Level::sys}, LevelName{"SOC", Level::sys}};

struct Word {
  std::string_view text;
  YamlPlace place;
};

[[noreturn]] void refuse(const std::string& path, YamlPlace place, const std::string& message) {
  throw ConfigError(at_place(path, place, message));
}

/// Words between blanks and the escapes that underline a terminal's head line.
std::vector<Word> words_of(std::string_view line, int number) {
  std::vector<Word> words;
  bool inside = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '\x1b') {
      i = std::min(line.find('m', i), line.size());
      inside = false;
    } else if (line[i] == ' ' || line[i] == '\t' || line[i] == '\r') {
      inside = false;
    } else if (inside) {
      words.back().text = line.substr(i - words.back().text.size(), words.back().text.size() + 1);
    } else {
      words.push_back({line.substr(i, 1), {number, static_cast<int>(i) + 1}});
      inside = true;
    }
  }
  return words;
}

std::vector<std::vector<Word>> lines_of(std::string_view text) {
  std::vector<std::vector<Word>> lines;
  for (std::size_t start = 0; start <= text.size();) {
    const std::size_t end = std::min(text.find('\n', start), text.size());
    lines.push_back(words_of(text.substr(start, end - start), static_cast<int>(lines.size()) + 1));
    start = end + 1;
  }
  return lines;
}

bool is_gpu(std::string_view word) { return word.substr(0, 3) == "GPU" && parse_integer(word.substr(3)).has_value(); }

/// Reads the table.
class TableReader {
 public:
  TableReader(const std::string& path, std::string_view text) : path_(path), lines_(lines_of(text)) {}

  Table read() {
    const std::size_t head = head_line();
    Table table;
    for (const Word& word : lines_[head]) {
      if (word.text == "CPU" || (table.gpus > 0 && word.text == "GPU")) {
        break;
      }
      if (is_gpu(word.text)) {
        require_next_gpu(word, table);
        ++table.gpus;
      }
      table.names.emplace_back(word.text);
    }
    table.cells.resize(static_cast<std::size_t>(table.gpus));
    for (std::size_t i = head + 1; i < lines_.size(); ++i) {
      read_row(lines_[i], table);
    }
    for (int gpu = 0; gpu < table.gpus; ++gpu) {
      if (table.cells[static_cast<std::size_t>(gpu)].empty()) {
        refuse(path_, lines_[head].front().place,
               fmt::format("there is no row for GPU{}; {}", gpu, how_a_table_is_made));
      }
    }
    return table;
  }

 private:
  /// A row begins with a GPU too, but goes on with a cell.
  [[nodiscard]] std::size_t head_line() const {
    for (std::size_t i = 0; i < lines_.size(); ++i) {
      const std::vector<Word>& words = lines_[i];
      if (!words.empty() && is_gpu(words[0].text) && (words.size() == 1 || words[1].text != "X")) {
        return i;
      }
    }
    refuse(path_, {1, 1}, fmt::format("there is no line with the names of GPUs; {}", how_a_table_is_made));
  }

  void require_next_gpu(const Word& word, const Table& table) const {
    if (word.text != fmt::format("GPU{}", table.gpus) || table.names.size() != static_cast<std::size_t>(table.gpus)) {
      refuse(path_, word.place,
             fmt::format("{} stands where GPU{} is expected; {}", word.text, table.gpus, how_a_table_is_made));
    }
    if (table.gpus == most_gpus_of_a_file) {
      refuse(path_, word.place,
             fmt::format("more than {} GPUs are too many; give the table of one node", most_gpus_of_a_file));
    }
  }

  void read_row(const std::vector<Word>& words, Table& table) const {
    if (words.empty() || !is_gpu(words.front().text)) {
      return;  // of a NIC, whose cells the GPUs have too, or the legend
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
    if (words.size() <= table.names.size()) {
      refuse(path_, words.front().place,
             fmt::format("{} has {} cells, but the first line names {} devices; {}", *name, words.size() - 1,
                         table.names.size(), how_a_table_is_made));
    }
    for (std::size_t i = 0; i < table.names.size(); ++i) {
      row.push_back(cell_of(words[i + 1]));
    }
  }

  [[nodiscard]] Cell cell_of(const Word& word) const {
    if (word.text.substr(0, 2) == "NV") {
      const std::optional<std::int64_t> links = parse_integer(word.text.substr(2));
      if (!links || *links < 1 || *links > most_nvlinks) {
        refuse(path_, word.place,
               fmt::format("{} is not a number of NVLinks; a GPU has NV1 to NV{}", in_quotes(word.text), most_nvlinks));
      }
      return {Level::nvlink, static_cast<int>(*links), word.place};
    }
    const auto* const found = std::find_if(level_names.begin(), level_names.end(),
                                           [&](const LevelName& one) { return one.word == word.text; });
    if (found == level_names.end()) {
      refuse(path_, word.place,
             fmt::format("unknown connection {}; known connections: X, NV1 to NV{}, PIX, PXB, PHB, NODE, SYS",
                         in_quotes(word.text), most_nvlinks));
    }
    return {found->level, 0, word.place};
  }

  const std::string& path_;
  std::vector<std::vector<Word>> lines_;
};

}  // namespace

TopologyTable read_topology_table(const std::string& path, std::string_view text) {
  return TableReader(path, text).read();
}

}  // namespace commfuse
