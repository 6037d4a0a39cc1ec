// SPDX-License-Identifier: Apache-2.0
#include "tests/house/house_rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <initializer_list>
#include <iterator>
#include <map>
#include <optional>
#include <regex>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/texts.h"

namespace fs = std::filesystem;

namespace commfuse::house {

namespace {

constexpr std::array<std::string_view, 4> layers = {"model", "sim", "validate", "reports"};
constexpr std::array<std::string_view, 9> read_folders = {"model", "sim",   "validate", "reports", "python",
                                                          "tests", "bench", "cmake",    ".ci"};
/// Top-level folders below which every folder with C++ or CUDA needs a README.md.
constexpr std::array<std::string_view, 6> explained_folders = {"model",   "sim",    "validate",
                                                               "reports", "python", "bench"};
constexpr std::array<std::string_view, 9> libraries_for_sources = {
    "CLI", "nlohmann", "yaml-cpp", "Eigen", "boost", "google", "pugixml.hpp", "sqlite3.h", "toml++"};
constexpr std::string_view spdx = "SPDX-License-Identifier: Apache-2.0";

template <typename Container>
bool contains(const Container& container, std::string_view element) {
  return std::find(std::begin(container), std::end(container), element) != std::end(container);
}

bool starts_with_any(std::string_view text, std::initializer_list<std::string_view> beginnings) {
  return std::any_of(beginnings.begin(), beginnings.end(), [&](auto beginning) { return text.starts_with(beginning); });
}

struct File {
  std::string path;    // Relative to the root, with forward slashes: "sim/commands/run.cpp".
  std::string folder;  // First part of the path: "sim"; empty for a file of the root.
  bool is_code = false;
  bool is_header = false;
};

/// Returns the file with the properties that rules need; nullopt if no rule applies to it.
std::optional<File> classify(const fs::path& relative) {
  const std::string extension = relative.extension().string();
  const std::string name = relative.filename().string();
  const bool is_header = extension == ".h" || extension == ".cuh";
  const bool is_code = is_header || extension == ".cpp" || extension == ".cu";
  const bool is_build = extension == ".cmake" || extension == ".in" || name == "CMakeLists.txt";
  const bool is_script = extension == ".sh" || relative == fs::path("dev") || relative.parent_path() == fs::path(".ci");
  if (!is_code && !is_build && !is_script) {
    return std::nullopt;
  }
  const std::string folder = relative.has_parent_path() ? relative.begin()->string() : "";
  return File{.path = relative.generic_string(), .folder = folder, .is_code = is_code, .is_header = is_header};
}

std::vector<File> files_below(const fs::path& root) {
  std::vector<File> files;
  const auto take = [&](const fs::directory_entry& entry) {
    if (!entry.is_regular_file()) {
      return;
    }
    if (auto file = classify(entry.path().lexically_relative(root))) {
      files.push_back(*std::move(file));
    }
  };
  std::for_each(fs::directory_iterator(root), fs::directory_iterator(), take);
  for (const auto folder : read_folders) {
    if (fs::is_directory(root / folder)) {
      std::for_each(fs::recursive_directory_iterator(root / folder), fs::recursive_directory_iterator(), take);
    }
  }
  std::sort(files.begin(), files.end(), [](const File& a, const File& b) { return a.path < b.path; });
  return files;
}

/// Returns true for the mains and subcommands of the two programs: they tie the rooms together, so they may render
/// reports.
bool belongs_to_program(const File& file) {
  return starts_with_any(file.path,
                         {"sim/commfuse_sim.", "sim/commands/", "validate/commfuse_validate.", "validate/commands/"});
}

/// Returns true for the validator's main and subcommands. `compare` compares measurements with predictions, so these
/// files, and no others of validate, may include sim.
bool compares(const File& file) {
  return starts_with_any(file.path, {"validate/commfuse_validate.", "validate/commands/"});
}

bool may_include_layer(const File& file, std::string_view layer) {
  return layer == file.folder || layer == "model" || (layer == "reports" && belongs_to_program(file)) ||
         (layer == "sim" && compares(file));
}

bool is_cuda_header(std::string_view header) {
  return header == "cuda.h" || starts_with_any(header, {"cuda_", "cublas", "cudnn", "curand", "cupti", "nccl", "nvml"});
}

/// Returns the rule that this include breaks, as a sentence; nullopt if it breaks none. `quoted` distinguishes "..."
/// from <...>.
std::optional<std::string> breach(const File& file, std::string_view header, bool quoted) {
  const std::string name = "'" + std::string(header) + "'";
  const std::string_view first = header.substr(0, header.find('/'));
  const bool below_folder = first.size() < header.size();
  if (contains(layers, file.folder)) {
    if (below_folder && contains(layers, first) && !may_include_layer(file, first)) {
      return file.folder + " may not include " + name;
    }
    if (below_folder && (first == "tests" || first == "bench")) {
      return file.folder + " may not include " + name;
    }
    if (quoted && !(below_folder && contains(layers, first))) {
      return "write " + name + " from the repository root, or <...> where it is not ours";
    }
  }
  const bool is_forward = header == "nlohmann/json_fwd.hpp";  // made for headers
  if (file.is_header && contains(libraries_for_sources, first) && !is_forward) {
    return name + " belongs in a .cpp file, not in a header";
  }
  if (header.starts_with("boost/math/")) {
    return name + " calls functions of the C library, whose results depend on the machine; use model/math";
  }
  const bool may_know_cuda = file.path.starts_with("validate/cuda/") || file.path.starts_with("tests/software_gpu/");
  if (is_cuda_header(header) && !may_know_cuda) {
    return name + " is only for validate/cuda";
  }
  if (header == "mpi.h" && !file.path.starts_with("model/process/module/")) {
    return name + " is only for model/process/module";
  }
  return std::nullopt;
}

std::string folder_of(const std::string& path) { return fs::path(path).parent_path().generic_string(); }

/// For every two folders of layers, the first place where the first folder includes the second. A program's main
/// belongs to no folder.
using Arrows = std::map<std::pair<std::string, std::string>, std::string>;

void note_arrow(const File& file, const std::string& header, int number, Arrows& arrows) {
  const bool is_main = starts_with_any(file.path, {"sim/commfuse_sim.", "validate/commfuse_validate."});
  const std::string from = folder_of(file.path);
  const std::string to = folder_of(header);
  if (!is_main && from != to && contains(layers, file.folder) && contains(layers, header.substr(0, header.find('/')))) {
    arrows.try_emplace({from, to}, file.path + ":" + std::to_string(number));
  }
}

void read_file(const fs::path& root, const File& file, Arrows& arrows, std::vector<std::string>& breaches) {
  static const std::regex include(R"re(^\s*#\s*include\s*([<"])([^>"]+)[>"].*)re");
  std::ifstream in(root / file.path);
  bool has_spdx = false;
  std::string line;
  for (int number = 1; std::getline(in, line); ++number) {
    const bool follows_shebang = number == 2 && !file.is_code;
    has_spdx = has_spdx || ((number == 1 || follows_shebang) && line.find(spdx) != std::string::npos);
    std::smatch match;
    if (!file.is_code || !std::regex_match(line, match, include)) {
      continue;
    }
    note_arrow(file, match[2].str(), number, arrows);
    if (const auto sentence = breach(file, match[2].str(), match[1] == "\"")) {
      breaches.push_back(file.path + ":" + std::to_string(number) + ": " + *sentence);
    }
  }
  if (!has_spdx) {
    breaches.push_back(file.path + ":1: the first line lacks '" + std::string(spdx) + "'");
  }
}

/// File that defines each type whose name other files can see, by its qualified name.
using Types = std::map<std::string, std::string>;

/// Adds the types that a file defines, and types that another file defines too. Relies on clang-format, which puts
/// namespaces and their types at the start of a line.
void read_types(const fs::path& root, const File& file, Types& types, std::vector<std::string>& breaches) {
  static const std::regex opens(R"re(^(?:inline )?namespace ([\w:]*) ?\{.*)re");
  static const std::regex closes(R"re(^\}  // namespace.*)re");
  static const std::regex defines(
      R"re(^(?:struct|class|enum class) (?:\[\[\w+\]\] )?(\w+)(?: final)?(?: : .*)? \{.*)re");
  std::ifstream in(root / file.path);
  static const std::regex declares(R"re(^(?:struct|class) \w+;$)re");
  std::vector<std::string> inside;
  bool declares_only = false;  // true inside `namespace CLI {`, `class App;` and `}`
  std::string line;
  for (int number = 1; std::getline(in, line); ++number) {
    std::smatch match;
    if (std::regex_match(line, match, opens)) {
      inside.push_back(match[1].str());
      declares_only = true;
    } else if (!inside.empty() && (std::regex_match(line, closes) || (declares_only && line == "}"))) {
      inside.pop_back();
      declares_only = false;
    } else if (!inside.empty() && !contains(inside, "") && std::regex_match(line, match, defines)) {
      std::string name;
      for (const std::string& scope : inside) {
        name += scope + "::";
      }
      name += match[1].str();
      const auto [entry, is_new] = types.emplace(name, file.path);
      if (!is_new && entry->second != file.path) {
        breaches.push_back(file.path + ":" + std::to_string(number) + ": " + name + " is also in " + entry->second +
                           "; a linker takes them for one type");
      }
    }
    declares_only = declares_only && (std::regex_match(line, opens) || std::regex_match(line, declares));
  }
}

/// Returns true for files outside the layers, for model/math, and for GPU code, which calls functions of CUDA that
/// exist nowhere else.
bool may_call_libm(const File& file) {
  return !contains(layers, file.folder) || file.path.starts_with("model/math/") || file.path.ends_with(".cu") ||
         file.path.ends_with(".cuh");
}

/// Returns the line without string literals and without its comment.
std::string without_words(const std::string& line) {
  static const std::regex quoted(R"re("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)')re");
  const std::string code = std::regex_replace(line, quoted, "");
  return code.substr(0, code.find("//"));
}

/// Finds calls of functions that C libraries round differently, including as members, because Eigen's members call the
/// C library. Functions of model/math have `math::` before their name.
void read_calls(const fs::path& root, const File& file, std::vector<std::string>& breaches) {
  static const std::regex call(
      R"re((?:^|[^\w:])(?:(?:std)?::)?((?:exp|exp2|expm1|log|log2|log10|log1p|pow|cbrt|hypot|erf|erfc|tgamma|lgamma|)re"
      R"re(sin|cos|tan|asin|acos|atan|atan2|sinh|cosh|tanh|asinh|acosh|atanh)[fl]?)\()re");
  std::ifstream in(root / file.path);
  std::string line;
  for (int number = 1; std::getline(in, line); ++number) {
    std::smatch match;
    const std::string code = without_words(line);
    if (std::regex_search(code, match, call)) {
      breaches.push_back(fmt::format("{}:{}: the results of the C library's '{}' depend on the machine; use model/math",
                                     file.path, number, match[1].str()));
    }
  }
}

/// Adds the mistakes in the README.md of a folder such as "sim/engine".
void read_page(const fs::path& root, const std::string& folder, std::vector<std::string>& breaches) {
  static const std::regex file_name(R"re(`([\w./-]+\.(?:h|cuh|cpp|cu|md|yaml|sh))`)re");
  const std::string page = folder + "/README.md";
  std::ifstream in(root / page);
  std::string line;
  for (int number = 1; std::getline(in, line) || number == 1; ++number) {  // A missing page counts as one empty line.
    const auto add = [&](const std::string& sentence) {
      breaches.push_back(fmt::format("{}:{}: {}", page, number, sentence));
    };
    if (number == 1 && line != "# " + folder) {
      add(fmt::format("the first line is not '# {}'", folder));
    }
    for (std::sregex_iterator at(line.begin(), line.end(), file_name), end; at != end; ++at) {
      const std::string name = (*at)[1].str();
      const bool from_root = name.find('/') != std::string::npos;
      if (!fs::is_regular_file(from_root ? root / name : root / folder / name)) {
        add(fmt::format("'{}' {}", name, from_root ? "does not exist" : "is not in " + folder));
      }
    }
  }
}

}  // namespace

std::vector<std::string> violations(const fs::path& root) {
  std::vector<std::string> breaches;
  Types types;
  Arrows arrows;
  for (const auto& file : files_below(root)) {
    read_file(root, file, arrows, breaches);
    if (file.is_code && contains(layers, file.folder)) {
      read_types(root, file, types, breaches);
    }
    if (file.is_code && !may_call_libm(file)) {
      read_calls(root, file, breaches);
    }
  }
  for (const auto& [folders, place] : arrows) {
    const auto back = arrows.find({folders.second, folders.first});
    if (folders.first < folders.second && back != arrows.end()) {
      breaches.push_back(place + ": " + folders.first + " and " + folders.second +
                         " include each other, the other way in " + back->second);
    }
  }
  return breaches;
}

namespace {

/// Returns the C++ sources in a folder of the root, in order of path, as paths from the root.
std::set<fs::path> sources_below(const fs::path& root, std::string_view folder) {
  std::set<fs::path> sources;
  if (fs::exists(root / folder)) {
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(root / folder)) {
      if (const std::string extension = entry.path().extension().string(); extension == ".cpp" || extension == ".h") {
        sources.insert(entry.path().lexically_relative(root));
      }
    }
  }
  return sources;
}

}  // namespace

std::vector<std::string> unexplained_folders(const fs::path& root) {
  std::set<std::string> folders;
  for (const auto& file : files_below(root)) {
    if (file.is_code && contains(explained_folders, file.folder)) {
      folders.insert(fs::path(file.path).parent_path().generic_string());
    }
  }
  std::vector<std::string> breaches;
  for (const auto& folder : folders) {
    read_page(root, folder, breaches);
  }
  return breaches;
}

std::vector<std::string> algorithms_the_page_lacks(const fs::path& root) {
  const fs::path shim = root / "page" / "shim" / "libcxx14.h";
  const std::regex defined(R"(constexpr (?:auto|bool|void) (\w+))");
  const std::regex named(R"(std::ranges::(\w+))");
  std::set<std::string> known{"greater", "less"};  // function objects, not algorithms
  std::ifstream definitions(shim);
  for (std::string line; std::getline(definitions, line);) {
    if (std::smatch match; std::regex_search(line, match, defined)) {
      known.insert(match[1]);
    }
  }
  std::vector<std::string> breaches;
  for (const std::string_view folder : {"model", "page", "reports", "sim"}) {
    for (const fs::path& path : sources_below(root, folder)) {
      std::ifstream source(root / path);
      std::string line;
      for (int number = 1; std::getline(source, line); ++number) {
        for (std::sregex_iterator name(line.begin(), line.end(), named), end; name != end; ++name) {
          if (const std::string algorithm = (*name)[1]; known.insert(algorithm).second) {
            breaches.push_back(
                fmt::format("{}:{}: page/shim/libcxx14.h has no {}", path.generic_string(), number, algorithm));
          }
        }
      }
    }
  }
  return breaches;
}

namespace {

/// Returns the text without comments of CSS.
std::string without_css_comments(std::string text) {
  for (std::size_t begin = text.find("/*"); begin != std::string::npos; begin = text.find("/*", begin)) {
    const std::size_t end = text.find("*/", begin);
    text.erase(begin, end == std::string::npos ? end : end + 2 - begin);
  }
  return text;
}

/// Adds the selectors of a style sheet that occur twice in the same place.
void read_style(const fs::path& root, const fs::path& file, std::vector<std::string>& breaches) {
  std::ifstream in(file);
  const std::string text = without_css_comments({std::istreambuf_iterator<char>(in), {}});
  std::vector<std::string> places;
  std::set<std::string> seen;
  std::string head;
  for (const char letter : text) {
    if (letter == '{') {
      const std::string selector = test::in_one_line(head);
      std::string place;
      for (const std::string& outer : places) {
        place += outer + " { ";
      }
      if (!selector.starts_with("@") && !seen.insert(place + selector).second) {
        breaches.push_back(file.lexically_relative(root).generic_string() + ": '" + place + selector +
                           "' has two rules; join them");
      }
      places.push_back(selector);
    }
    if (letter == '}' && !places.empty()) {
      places.pop_back();
    }
    head = letter == '{' || letter == '}' || letter == ';' ? "" : head + letter;
  }
}

}  // namespace

std::vector<std::string> selectors_styled_twice(const fs::path& root) {
  std::vector<fs::path> sheets;
  for (const char* folder : {"reports/assets", "page/ui"}) {
    if (fs::is_directory(root / folder)) {
      for (const auto& entry : fs::directory_iterator(root / folder)) {
        if (entry.path().extension() == ".css") {
          sheets.push_back(entry.path());
        }
      }
    }
  }
  std::sort(sheets.begin(), sheets.end());
  std::vector<std::string> breaches;
  for (const fs::path& sheet : sheets) {
    read_style(root, sheet, breaches);
  }
  return breaches;
}

std::size_t files_read(const fs::path& root) { return files_below(root).size(); }

}  // namespace commfuse::house
