// SPDX-License-Identifier: Apache-2.0
#include "model/formats/topology_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>

#include "model/config_error.h"

namespace commfuse {

namespace {

using Line = std::vector<TextWord>;

constexpr std::string_view separators = " \t\r\v\f|";

/// The terminal's escape character, and its spellings in copied text.
constexpr std::array escape_marks{std::string_view("\x1b"),        std::string_view("^["),  std::string_view("\\x1b"),
                                  std::string_view("\\033"),       std::string_view("\\e"), std::string_view("\\u001b"),
                                  std::string_view("\xe2\x90\x9b")};

/// First characters of the escape marks and of a bare bracket.
constexpr std::string_view escape_starts = "\x1b^\\\xe2[";

/// Returns the number of bytes of the escape sequence at the start of `text`; 0 if there is none. Without an escape
/// mark, only colours such as "[4m" count, because other brackets may be text.
std::size_t escape_length(std::string_view text) {
  if (escape_starts.find(text.front()) == std::string_view::npos) {
    return 0;
  }
  std::size_t length = 0;
  for (const std::string_view mark : escape_marks) {
    if (text.substr(0, mark.size()) == mark) {
      length = mark.size();
      break;
    }
  }
  const bool is_marked = length > 0;
  if (length >= text.size() || text[length] != '[') {
    return is_marked && text.front() == '\x1b' ? 1 : 0;
  }
  const std::size_t last = text.find_first_not_of("0123456789;?", length + 1);
  if (last == std::string_view::npos) {
    return is_marked ? text.size() : 0;
  }
  const bool is_colour = text[last] == 'm' && last > length + 1;
  return is_marked || is_colour ? last + 1 : 0;
}

Line words_of(std::string_view line, int number) {
  Line words;
  bool inside = false;
  std::size_t i = std::min(line.find_first_not_of("> #\t"), line.size());
  while (i < line.size()) {
    if (const std::size_t escape = escape_length(line.substr(i)); escape > 0) {
      inside = false;
      i += escape;
      continue;
    }
    if (separators.find(line[i]) != std::string_view::npos) {
      inside = false;
    } else if (inside) {
      std::string_view& word = words.back().text;
      word = std::string_view(word.data(), word.size() + 1);
    } else {
      words.push_back({line.substr(i, 1), {number, static_cast<int>(i) + 1}});
      inside = true;
    }
    ++i;
  }
  return words;
}

constexpr std::string_view nvidia_remedy = "give what `nvidia-smi topo -m` prints";

/// Output of another tool, known by a line whose first word begins with `first` and a later word with `second` ("" if
/// the first word is enough). Specific entries come before the general ones that they also match.
struct OtherTool {
  std::string_view first;
  std::string_view second;
  std::string_view what;
  std::string_view remedy;
};

constexpr std::string_view gaudi_remedy =
    "remove `file` and write `kind: full_mesh`, as configs/hardware/gaudi-2.yaml does";
constexpr std::string_view amd_remedy = "give what `rocm-smi --showtopo --shownodesbw` or `amd-smi topology` prints";

constexpr std::array other_tools{
    OtherTool{"modID", "Affinity", "`hl-smi topo` names the CPUs of each Gaudi, but no links between them",
              gaudi_remedy},
    OtherTool{"HL-SMI", "", "`hl-smi` does not show links between Gaudis", gaudi_remedy},
    OtherTool{"Link", "GB/s", "`nvidia-smi nvlink -s` states the rates of links, but not which GPUs they connect",
              nvidia_remedy},
    OtherTool{"Link", "<inactive>", "`nvidia-smi nvlink -s` states the rates of links, but not which GPUs they connect",
              nvidia_remedy},
    OtherTool{"NVIDIA-SMI", "Driver", "plain `nvidia-smi` does not show links", nvidia_remedy},
    OtherTool{"CA", "'mlx", "`ibstat` does not show links between GPUs", nvidia_remedy},
    OtherTool{"Machine", "total)", "`lstopo` does not show links between GPUs", nvidia_remedy},
    OtherTool{"NPU0", "NPU1", "the table of `npu-smi info -t topo` is not supported",
              "remove `file` and write `kind: full_mesh` or `kind: nvswitch`"},
    OtherTool{"GPU", "0/0", "the table of `xpu-smi topology -m` is not supported",
              "remove `file` and write the `kind` of the node"},
    OtherTool{"CPU", "Core", "`dcgmi topo` is not supported", nvidia_remedy},
    OtherTool{"\"HCCL_", "", "a configuration of HCCL does not state links between Gaudis", gaudi_remedy},
    OtherTool{"{", "", "JSON is not supported", amd_remedy},
    OtherTool{"[", "", "JSON is not supported", amd_remedy},
    OtherTool{"[{", "", "JSON is not supported", amd_remedy},
    OtherTool{"GPU", "UUID:", "`nvidia-smi -L` does not show links", nvidia_remedy},
    OtherTool{"GPU", "(UUID:", "`nvidia-smi -L` does not show links", nvidia_remedy}};

bool is_output_of(const OtherTool& tool, const Line& line) {
  if (line.empty() || line.front().text.substr(0, tool.first.size()) != tool.first) {
    return false;
  }
  return tool.second.empty() || std::any_of(line.begin() + 1, line.end(), [&](const TextWord& word) {
           return word.text.substr(0, tool.second.size()) == tool.second;
         });
}

[[noreturn]] void refuse_slice(const std::string& path, YamlPlace place) {
  throw ConfigError(
      at_place(path, place,
               "MIG slices have no NVLink and no peer access, so no link connects them; disable MIG with `nvidia-smi "
               "-mig 0` and print the table again, or remove `file` and write `gpus_per_node: 1` for one slice"));
}

}  // namespace

std::vector<Line> words_of_lines(std::string_view text) {
  std::vector<Line> lines;
  for (std::size_t start = 0; start <= text.size();) {
    const std::size_t end = std::min(text.find('\n', start), text.size());
    lines.push_back(words_of(text.substr(start, end - start), static_cast<int>(lines.size()) + 1));
    start = end + 1;
  }
  return lines;
}

void refuse_slices(const std::string& path, const std::vector<Line>& lines) {
  bool shows_modes = false;  // the table of nvidia-smi, whose last column is the mode
  for (const Line& line : lines) {
    for (std::size_t i = 0; i < line.size(); ++i) {
      const std::string_view word = line[i].text;
      const std::string_view next = i + 1 < line.size() ? line[i + 1].text : std::string_view();
      const bool is_profile = word == "MIG" && next.size() > 2 && next[1] == 'g' && next[2] == '.';  // "1g.10gb"
      if (is_profile || word.substr(0, 4) == "MIG-" || (shows_modes && word == "Enabled")) {
        refuse_slice(path, line[i].place);
      }
      shows_modes = shows_modes || (word == "MIG" && next == "M.");
    }
  }
}

void refuse_unknown_text(const std::string& path, const std::vector<Line>& lines) {
  for (const OtherTool& tool : other_tools) {
    const auto line =
        std::find_if(lines.begin(), lines.end(), [&](const Line& candidate) { return is_output_of(tool, candidate); });
    if (line != lines.end()) {
      throw ConfigError(at_place(path, line->front().place, fmt::format("{}; {}", tool.what, tool.remedy)));
    }
  }
  throw ConfigError(at_place(path, {1, 1},
                             "no line names the GPUs; give what `nvidia-smi topo -m`, `rocm-smi "
                             "--showtopo` or `amd-smi topology` prints"));
}

}  // namespace commfuse
