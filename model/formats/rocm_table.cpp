// SPDX-License-Identifier: Apache-2.0
// Reads the output of `rocm-smi --showtopo` (with --shownodesbw) and `amd-smi topology`: a series of tables, all for
// the same GPUs.
//
//   ======================== Link Type between two GPUs ======      LINK TYPE TABLE:
//          GPU0         GPU1                                                     0000:0c:00.0 0000:22:00.0
//   GPU0   0            XGMI                                        0000:0c:00.0 SELF         XGMI
//   GPU1   XGMI         0                                           0000:22:00.0 XGMI         SELF
//
// The tables are interpreted as in RCCL (src/misc/rocm_smi_wrap.cc). A weight of 15 is one hop over xGMI, so only pairs
// with this weight have direct links; the number of links is the largest bandwidth of the pair divided by the smallest.
// The bandwidths themselves are not used, because the driver assumes 25 GT/s for any link. The number of hops is 1 for
// any path over xGMI; over PCIe it is 2 below one CPU and 3 across two CPUs.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "model/config_error.h"
#include "model/formats/topology_table.h"
#include "model/formats/topology_text.h"
#include "model/text/counted.h"
#include "model/text/quantity.h"
#include "model/text/suggest.h"

namespace commfuse {

namespace {

using Level = MeetingLevel;
using Line = std::vector<TextWord>;

constexpr std::string_view how_a_rocm_table_is_made =
    "give all that `rocm-smi --showtopo --shownodesbw` or `amd-smi topology` prints";

constexpr std::int64_t weight_of_a_hop = 15;
constexpr std::int64_t weight_in_a_gpu = 13;  // between partitions

/// Property of pairs that a table shows. `ignored` covers caches, atomics and DMA, which do not change the route of
/// data.
enum class TableKind : std::uint8_t { weight, hops, type, bandwidth, access, ignored, numa };
constexpr std::size_t table_kinds = 7;

struct Title {
  std::string_view text;
  TableKind kind;
};
constexpr std::array titles{Title{"Weight between two GPUs", TableKind::weight},
                            Title{"Hops between two GPUs", TableKind::hops},
                            Title{"Link Type between two GPUs", TableKind::type},
                            Title{"Bandwidth", TableKind::bandwidth},
                            Title{"Link accessibility between two GPUs", TableKind::access},
                            Title{"Numa Nodes", TableKind::numa},
                            Title{"WEIGHT TABLE:", TableKind::weight},
                            Title{"HOPS TABLE:", TableKind::hops},
                            Title{"LINK TYPE TABLE:", TableKind::type},
                            Title{"NUMA BW TABLE:", TableKind::bandwidth},
                            Title{"ACCESS TABLE:", TableKind::access},
                            Title{"CACHE COHERANCY TABLE:", TableKind::ignored},  // the tool's spelling
                            Title{"CACHE COHERENCY TABLE:", TableKind::ignored},
                            Title{"ATOMICS TABLE:", TableKind::ignored},
                            Title{"DMA TABLE:", TableKind::ignored},
                            Title{"BI-DIRECTIONAL TABLE:", TableKind::ignored}};

/// Returns the words of a title without its rules: "==== Hops between two GPUs ====".
std::string title_of(const Line& line) {
  std::string title;
  for (const TextWord& word : line) {
    if (word.text.find_first_not_of('=') != std::string_view::npos) {
      title += title.empty() ? "" : " ";
      title += word.text;
    }
  }
  return title;
}

const Title* find_title(const Line& line) {
  const bool is_candidate = line.size() > 1 && (line.front().text.front() == '=' || line.back().text == "TABLE:");
  const std::string text = is_candidate ? title_of(line) : std::string();
  const auto* const title =
      std::find_if(titles.begin(), titles.end(), [&](const Title& known) { return known.text == text; });
  return title == titles.end() ? nullptr : title;
}

class RocmReader {
 public:
  RocmReader(const std::string& path, std::string_view text) : path_(path), lines_(words_of_lines(text)) {}

  TopologyTable read() {
    for (std::size_t i = 0; i < lines_.size(); ++i) {
      if (const Title* const title = find_title(lines_[i])) {
        i = title->kind == TableKind::numa ? read_numa(i) : read_table(i, *title);
      } else if (lines_[i].size() > 1 && lines_[i].back().text == "TABLE:") {
        refuse(lines_[i].front().place,
               fmt::format("unknown table {}; remove it from the file if it does not describe links",
                           in_quotes(title_of(lines_[i]))));
      }
    }
    require(TableKind::type, "types of links");
    table_.tool = how_a_rocm_table_is_made;
    table_.link = "an xGMI link";
    table_.may_have_crossbar = false;
    table_.gpus = static_cast<int>(table_.names.size());
    has_bandwidths_ = has_any_bandwidth();
    fill_cells();
    fill_numa();
    return std::move(table_);
  }

 private:
  using Rows = std::vector<Line>;  // for each GPU, its cells

  [[noreturn]] void refuse(YamlPlace place, const std::string& message) const {
    throw ConfigError(at_place(path_, place, message));
  }

  [[nodiscard]] const Rows& rows(TableKind kind) const { return tables_[static_cast<std::size_t>(kind)]; }

  void require(TableKind kind, std::string_view what) const {
    if (rows(kind).empty()) {
      refuse({1, 1}, fmt::format("no table of {}; {}", what, how_a_rocm_table_is_made));
    }
  }

  [[nodiscard]] std::size_t next_line(std::size_t after) const {
    std::size_t i = after + 1;
    while (i < lines_.size() && lines_[i].empty()) {
      ++i;
    }
    return i;
  }

  /// Reads one table; returns the line of its last row.
  std::size_t read_table(std::size_t title_line, const Title& title) {
    const std::size_t head = next_line(title_line);
    const YamlPlace place = lines_[title_line].front().place;
    if (head == lines_.size()) {
      refuse(place, fmt::format("the table is cut off; {}", how_a_rocm_table_is_made));
    }
    read_names(lines_[head]);
    Rows& rows = tables_[static_cast<std::size_t>(title.kind)];
    if (title.kind != TableKind::ignored && !rows.empty()) {
      refuse(place, fmt::format("this table appears twice; give the tables of one node"));
    }
    rows.clear();
    std::size_t i = head;
    for (const std::string& name : table_.names) {
      i = next_line(i);
      rows.push_back(row_of(name, i, place));
    }
    return i;
  }

  void read_names(const Line& head) {
    std::vector<std::string> names;
    for (const TextWord& word : head) {
      names.emplace_back(word.text);
    }
    if (names.size() > max_gpus_of_a_file) {
      refuse(head.front().place, fmt::format("more than {} GPUs; give the table of one node", max_gpus_of_a_file));
    }
    if (!table_.names.empty() && names != table_.names) {
      refuse(head.front().place,
             fmt::format("the GPUs differ from those of the previous table; {}", how_a_rocm_table_is_made));
    }
    table_.names = std::move(names);
  }

  /// Returns the cells of a GPU's row.
  [[nodiscard]] Line row_of(const std::string& name, std::size_t line, YamlPlace title) const {
    if (line >= lines_.size() || lines_[line].front().text != name) {
      refuse(line < lines_.size() ? lines_[line].front().place : title,
             fmt::format("the row of {} is missing; {}", in_quotes(name), how_a_rocm_table_is_made));
    }
    Line cells(lines_[line].begin() + 1, lines_[line].end());
    if (cells.size() != table_.names.size()) {
      const std::size_t gpus = table_.names.size();
      refuse(lines_[line].front().place,
             fmt::format("{} has {}, but the table has {}; {}", in_quotes(name), counted(cells.size(), "cell"),
                         counted(gpus, "GPU"), how_a_rocm_table_is_made));
    }
    return cells;
  }

  /// Reads lines such as "GPU[0] : (Topology) Numa Node: 0" and skips lines about the affinity, which repeat them.
  /// Returns the last line.
  std::size_t read_numa(std::size_t title_line) {
    std::size_t i = title_line + 1;
    for (; i < lines_.size() && !is_rule(lines_[i]); ++i) {
      const Line& line = lines_[i];
      const bool names_node = line.size() > 3 && line[line.size() - 2].text == "Node:";
      if (names_node && line[line.size() - 3].text == "Numa") {
        numa_.push_back(line.back());
      }
    }
    return i - 1;
  }
  [[nodiscard]] static bool is_rule(const Line& line) { return !line.empty() && line.front().text.front() == '='; }

  [[nodiscard]] const TextWord& cell(TableKind kind, int a, int b) const {
    return rows(kind)[static_cast<std::size_t>(a)][static_cast<std::size_t>(b)];
  }

  [[nodiscard]] std::int64_t number(TableKind kind, int a, int b, std::string_view what) const {
    require(kind, what);
    const TextWord& word = cell(kind, a, b);
    const std::optional<std::int64_t> value = parse_integer(word.text);
    if (!value || *value < 0 || *value > 1'000'000) {
      refuse(word.place, fmt::format("{} is not a whole number from 0 to 1000000; {}", in_quotes(word.text),
                                     how_a_rocm_table_is_made));
    }
    return *value;
  }

  /// Returns true if any cell has a bandwidth; virtual machines print "0-0" everywhere.
  [[nodiscard]] bool has_any_bandwidth() const {
    const Rows& bandwidths = rows(TableKind::bandwidth);
    return std::any_of(bandwidths.begin(), bandwidths.end(), [](const Line& row) {
      return std::any_of(row.begin(), row.end(), [](const TextWord& word) { return is_bandwidth(word.text); });
    });
  }
  [[nodiscard]] static bool is_bandwidth(std::string_view word) { return word != "N/A" && word != "0-0"; }

  void fill_cells() {
    for (int a = 0; a < table_.gpus; ++a) {
      std::vector<MeetingCell> row;
      for (int b = 0; b < table_.gpus; ++b) {
        row.push_back(a == b ? MeetingCell{Level::self, 0, cell(TableKind::type, a, b).place} : cell_of(a, b));
      }
      table_.cells.push_back(std::move(row));
    }
  }

  [[nodiscard]] MeetingCell cell_of(int a, int b) const {
    const TextWord& type = cell(TableKind::type, a, b);
    if (type.text == "PCIE") {
      return {pcie_level(a, b), 0, type.place};
    }
    if (type.text != "XGMI") {
      refuse(type.place, fmt::format("unknown type of link {}; known types: XGMI, PCIE", in_quotes(type.text)));
    }
    const std::int64_t weight = number(TableKind::weight, a, b, "weights");
    if (weight == weight_in_a_gpu) {
      refuse(cell(TableKind::weight, a, b).place,
             fmt::format("{} and {} are partitions of one GPU (weight {}), which this program does not model; merge "
                         "them with `amd-smi set --compute-partition SPX` and print the tables again",
                         in_quotes(table_.names[static_cast<std::size_t>(a)]),
                         in_quotes(table_.names[static_cast<std::size_t>(b)]), weight));
    }
    if (weight == 0 || weight % weight_of_a_hop != 0) {
      refuse(cell(TableKind::weight, a, b).place,
             fmt::format("a weight of {} is not a multiple of {}, the weight of one xGMI hop; {}", weight,
                         weight_of_a_hop, how_a_rocm_table_is_made));
    }
    require_access(a, b);
    return {weight == weight_of_a_hop ? Level::nvlink : Level::relayed, links_of(a, b, weight), type.place};
  }

  /// Refuses a pair without peer access, whose data goes through the CPU regardless of its links.
  void require_access(int a, int b) const {
    if (rows(TableKind::access).empty()) {
      return;
    }
    const TextWord& word = cell(TableKind::access, a, b);
    if (word.text != "ENABLED" && word.text != "True") {
      refuse(
          word.place,
          fmt::format("peer access over xGMI is {}, so these links carry no data; enable it and print the tables again",
                      in_quotes(word.text)));
    }
  }

  [[nodiscard]] Level pcie_level(int a, int b) const {
    const std::int64_t hops = number(TableKind::hops, a, b, "hops");
    if (hops != 2 && hops != 3) {
      refuse(cell(TableKind::hops, a, b).place,
             fmt::format("a PCIe path cannot have {}; it has 2 below one CPU and 3 across two CPUs",
                         counted(hops, "hop")));
    }
    return hops == 2 ? Level::phb : Level::sys;
  }

  /// Returns the number of xGMI links of a pair; 0 if other GPUs forward its data.
  [[nodiscard]] int links_of(int a, int b, std::int64_t weight) const {
    const bool is_direct = weight == weight_of_a_hop;
    if (!has_bandwidths_) {
      if (!is_direct) {
        refuse(cell(TableKind::type, a, b).place,
               "some GPUs forward data for other pairs, so the number of xGMI links differs by pair, and these tables "
               "do not state it; add the output of `rocm-smi --shownodesbw`");
      }
      return 1;
    }
    const TextWord& word = cell(TableKind::bandwidth, a, b);
    if (is_bandwidth(word.text) != is_direct) {
      refuse(word.place, fmt::format("a bandwidth of {} contradicts a weight of {}; {}", in_quotes(word.text), weight,
                                     how_a_rocm_table_is_made));
    }
    return is_direct ? ratio_of(word) : 0;
  }

  /// Returns the number of links of a range: 4 for "50000-200000".
  [[nodiscard]] int ratio_of(const TextWord& word) const {
    const std::size_t dash = std::min(word.text.find('-'), word.text.size());
    const std::optional<std::int64_t> least = parse_integer(word.text.substr(0, dash));
    const std::optional<std::int64_t> largest = parse_integer(word.text.substr(std::min(dash + 1, word.text.size())));
    if (!least || !largest || *least < 1 || *largest < *least || *largest % *least != 0 ||
        *largest / *least > max_nvlinks) {
      refuse(word.place, fmt::format("{} is not a range from the bandwidth of one link to that of 1 to {} links; {}",
                                     in_quotes(word.text), max_nvlinks, how_a_rocm_table_is_made));
    }
    return static_cast<int>(*largest / *least);
  }

  /// Sets the NUMA nodes if each GPU has one; virtual machines print -1.
  void fill_numa() {
    for (const TextWord& word : numa_) {
      const std::optional<std::int64_t> node = parse_integer(word.text);
      if (!node || *node < 0 || *node > 1023) {
        table_.numa.clear();
        return;
      }
      table_.numa.push_back(static_cast<int>(*node));
    }
    if (table_.numa.size() != table_.names.size()) {
      table_.numa.clear();
    }
  }

  const std::string& path_;
  std::vector<Line> lines_;
  TopologyTable table_;
  std::array<Rows, table_kinds> tables_;
  std::vector<TextWord> numa_;
  bool has_bandwidths_ = false;
};

}  // namespace

bool is_rocm_topology(std::string_view text) {
  const std::vector<Line> lines = words_of_lines(text);
  return std::any_of(lines.begin(), lines.end(), [](const Line& line) { return find_title(line) != nullptr; });
}

TopologyTable read_rocm_table(const std::string& path, std::string_view text) { return RocmReader(path, text).read(); }

}  // namespace commfuse
