// SPDX-License-Identifier: Apache-2.0
#include "model/config/catalogue.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <iterator>
#include <span>
#include <system_error>
#include <utility>

#include "model/config/meant.h"
#include "model/config_error.h"
#include "model/text/ranges.h"
#include "model/text/suggest.h"

namespace commfuse {

namespace {

namespace fs = std::filesystem;

/// Returns the folders in the order in which they are searched.
std::span<const std::string_view> folders_of(Catalogue catalogue) {
  static constexpr std::array<std::string_view, 1> models{"models"};
  static constexpr std::array<std::string_view, 2> machines{"hardware", "clusters"};
  static constexpr std::array<std::string_view, 1> schedules{"schedules"};
  static constexpr std::array<std::string_view, 1> jitter{"jitter"};
  static constexpr std::array<std::string_view, 1> faults{"faults"};
  static constexpr std::array<std::string_view, 1> plans{"plans"};
  static constexpr std::array<std::string_view, 1> sweeps{"sweeps"};
  static constexpr std::array<std::string_view, 1> implementations{"implementations"};
  static constexpr std::array<std::string_view, 1> frameworks{"frameworks"};
  switch (catalogue) {
    case Catalogue::models: return models;
    case Catalogue::hardware: return machines;
    case Catalogue::nodes: return std::span(machines).first(1);
    case Catalogue::schedules: return schedules;
    case Catalogue::jitter: return jitter;
    case Catalogue::faults: return faults;
    case Catalogue::plans: return plans;
    case Catalogue::sweeps: return sweeps;
    case Catalogue::implementations: return implementations;
    case Catalogue::frameworks: return frameworks;
  }
  return {};
}

constexpr std::string_view noun_of(Catalogue catalogue) {
  switch (catalogue) {
    case Catalogue::models: return "model";
    case Catalogue::hardware:
    case Catalogue::nodes: return "hardware";
    case Catalogue::schedules: return "schedule";
    case Catalogue::jitter: return "jitter";
    case Catalogue::faults: return "fault";
    case Catalogue::plans: return "plan";
    case Catalogue::sweeps: return "sweep";
    case Catalogue::implementations: return "implementation";
    case Catalogue::frameworks: return "framework";
  }
  return "";
}

bool is_folder(const fs::path& path) {
  std::error_code error;
  return fs::is_directory(path, error);
}

bool ends_with(std::string_view text, std::string_view end) {
  return text.size() >= end.size() && text.substr(text.size() - end.size()) == end;
}

bool may_be_json(Catalogue catalogue) { return catalogue == Catalogue::models || catalogue == Catalogue::schedules; }

bool is_path(Catalogue catalogue, std::string_view choice) {
  return choice.find('/') != std::string_view::npos || ends_with(choice, ".yaml") || ends_with(choice, ".yml") ||
         (may_be_json(catalogue) && ends_with(choice, ".json"));
}

/// Returns "llama" and "3" for "llama3-70b" and for "llama-3.1-70b". Suggestions compare the family first: by spelling
/// alone, llama-2-70b is nearer to llama3-70b than llama-3.1-70b is.
std::pair<std::string, std::string> family_of(std::string_view name) {
  std::pair<std::string, std::string> family;
  for (const char letter : name) {
    const bool is_digit = letter >= '0' && letter <= '9';
    if (is_digit) {
      family.second += letter;
    } else if (!family.second.empty()) {
      break;
    } else if (letter != '-' && letter != '_') {
      family.first += letter;
    }
  }
  return family;
}

/// Returns the nearest name, with a preference for names of the same family.
std::optional<std::string> nearest_of_family(std::string_view name, const std::vector<std::string_view>& known) {
  std::vector<std::string_view> related;
  std::copy_if(known.begin(), known.end(), std::back_inserter(related),
               [family = family_of(name)](std::string_view candidate) { return family_of(candidate) == family; });
  const std::optional<std::string> relative = nearest(name, related);
  return relative ? relative : nearest(name, known);
}

/// Returns the name to suggest for an unknown one. Implementations are also found by their names in tables.
std::optional<std::string> suggested_name(Catalogue catalogue, std::string_view name,
                                          const std::vector<std::string_view>& known) {
  const std::optional<std::string> implementation =
      catalogue == Catalogue::implementations ? implementation_meant(name) : std::nullopt;
  return implementation ? implementation : nearest_of_family(name, known);
}

/// Returns the folder of the Python module that contains this code; empty if a program contains it.
fs::path folder_of_module() {
#ifdef __EMSCRIPTEN__
  return {};
#else
  Dl_info info{};
  if (::dladdr(reinterpret_cast<const void*>(&folder_of_module), &info) == 0 || info.dli_fname == nullptr) {
    return {};
  }
  const fs::path file = info.dli_fname;
  return file.extension() == ".so" ? file.parent_path() : fs::path();
#endif
}

std::string unknown_name(Catalogue catalogue, std::string_view name, const std::vector<std::string>& names) {
  const std::vector<std::string_view> known(names.begin(), names.end());
  std::string message = fmt::format("unknown {} {}; ", noun_of(catalogue), in_quotes(name));
  if (const std::optional<std::string> suggestion = suggested_name(catalogue, name, known)) {
    message += fmt::format("did you mean '{}'? ", *suggestion);
  }
  return message + fmt::format("known: {}; a path contains '/' or ends in .yaml{}", fmt::join(names, ", "),
                               may_be_json(catalogue) ? " or .json" : "");
}

}  // namespace

fs::path config_directory() {
  // The variable is read once at start-up, and this program sets no environment variables.
  const char* chosen = std::getenv("COMMFUSE_CONFIG_DIR");  // NOLINT(concurrency-mt-unsafe)
  if (chosen != nullptr && *chosen != '\0') {
    if (!is_folder(chosen)) {
      throw ConfigError(
          fmt::format("COMMFUSE_CONFIG_DIR is {}, which is not a folder; set it to the folder that holds models/ "
                      "and hardware/, or unset it",
                      in_quotes(chosen)));
    }
    return chosen;
  }
  if (const fs::path module_configs = folder_of_module() / "configs";
      module_configs.is_absolute() && is_folder(module_configs)) {
    return module_configs;
  }
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error).parent_path();
  const std::array<fs::path, 2> places{program / "../share/commfuse/configs", program / "../../../configs"};
  for (const fs::path& place : places) {
    if (is_folder(place)) {
      return place.lexically_normal();
    }
  }
  throw ConfigError(
      fmt::format("no config folder at {} or {}; set COMMFUSE_CONFIG_DIR to the folder that holds models/ and "
                  "hardware/",
                  places[0].lexically_normal().string(), places[1].lexically_normal().string()));
}

std::vector<std::string> known_names(Catalogue catalogue) {
  const fs::path configs = config_directory();
  std::vector<std::string> names;
  for (const std::string_view folder : folders_of(catalogue)) {
    std::error_code error;
    for (const fs::directory_entry& entry : fs::directory_iterator(configs / folder, error)) {
      if (entry.path().extension() == ".yaml") {
        names.push_back(entry.path().stem().string());
      }
    }
  }
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

std::vector<std::string> listed_names(Catalogue catalogue, std::string_view list) {
  if (list == "all") {
    return known_names(catalogue);
  }
  std::vector<std::string> names;
  if (list != "none" && !list.empty()) {
    for (const std::string_view name : split_list(list)) {
      names.emplace_back(name);
    }
  }
  return names;
}

fs::path find_config(Catalogue catalogue, std::string_view name_or_path) {
  if (name_or_path.empty()) {
    throw ConfigError(
        fmt::format("the {} name is empty; known: {}", noun_of(catalogue), fmt::join(known_names(catalogue), ", ")));
  }
  if (is_path(catalogue, name_or_path)) {
    return name_or_path;
  }
  const std::vector<std::string> names = known_names(catalogue);
  if (std::find(names.begin(), names.end(), name_or_path) == names.end()) {
    const std::optional<SizedCluster> cluster =
        catalogue == Catalogue::hardware ? sized_cluster(name_or_path) : std::nullopt;
    if (cluster) {
      return find_config(catalogue, cluster->name);
    }
    throw ConfigError(unknown_name(catalogue, name_or_path, names));
  }
  const std::string file = fmt::format("{}.yaml", name_or_path);
  fs::path path;
  for (const std::string_view folder : folders_of(catalogue)) {
    std::error_code error;
    if (path = config_directory() / folder / file; fs::exists(path, error)) {
      break;
    }
  }
  return path;
}

std::string file_or_known(Catalogue catalogue, const std::string& name_or_path) {
  std::error_code error;
  if (name_or_path.empty() || fs::exists(name_or_path, error) || is_path(catalogue, name_or_path)) {
    return name_or_path;
  }
  return find_config(catalogue, name_or_path).string();
}

std::optional<SizedCluster> sized_cluster(std::string_view name) {
  constexpr int max_nodes = 100'000;
  const std::size_t at = name.rfind("-x");
  const std::string_view digits = at == std::string_view::npos ? std::string_view{} : name.substr(at + 2);
  int nodes = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), nodes);
  if (digits.empty() || error != std::errc{} || end != digits.data() + digits.size() || nodes < 2 ||
      nodes > max_nodes) {
    return std::nullopt;
  }
  const std::vector<std::string> names = known_names(Catalogue::hardware);
  std::string two_nodes = fmt::format("{}-x2", name.substr(0, at));
  const auto is_known = [&](std::string_view known) {
    return std::find(names.begin(), names.end(), known) != names.end();
  };
  return is_known(two_nodes) && !is_known(name) ? std::optional(SizedCluster{std::move(two_nodes), nodes})
                                                : std::nullopt;
}

std::string from_anywhere(Catalogue catalogue, const std::string& name_or_path) {
  std::error_code error;
  const bool is_file = is_path(catalogue, name_or_path) && fs::exists(name_or_path, error);
  return is_file ? fs::absolute(name_or_path).lexically_normal().string() : name_or_path;
}

std::string beside_file(const fs::path& file, Catalogue catalogue, std::string_view name_or_path) {
  const fs::path path(name_or_path);
  const fs::path folder = file.parent_path();
  if (!is_path(catalogue, name_or_path) || path.is_absolute() || folder.empty()) {
    return std::string(name_or_path);
  }
  const std::string joined = (folder / path).lexically_normal().string();
  return joined.find('/') == std::string::npos ? "./" + joined : joined;  // "./" makes it a path, not a name.
}

}  // namespace commfuse
