// SPDX-License-Identifier: Apache-2.0
#include "validate/cuda/module/shared_library.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string_view>
#include <system_error>

namespace commfuse::validate {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view any = "*";

/// Returns true if `name` matches `pattern`, in which one "*" may stand for any characters.
bool matches(std::string_view pattern, std::string_view name) {
  const std::size_t star = pattern.find(any);
  if (star == std::string_view::npos) {
    return pattern == name;
  }
  const std::string_view before = pattern.substr(0, star);
  const std::string_view after = pattern.substr(star + any.size());
  return name.size() >= before.size() + after.size() && name.starts_with(before) && name.ends_with(after);
}

/// Appends the folders below `base` that match the components of `pattern`, in the order of their names.
void expand(const fs::path& base, fs::path::const_iterator next, const fs::path& pattern,
            std::vector<fs::path>& folders) {
  std::error_code error;
  if (next == pattern.end()) {
    if (fs::is_directory(base, error) && std::ranges::find(folders, base) == folders.end()) {
      folders.push_back(base);
    }
    return;
  }
  const std::string component = next->string();
  ++next;
  if (component.find(any) == std::string::npos) {
    expand(base / component, next, pattern, folders);
    return;
  }
  std::vector<fs::path> matching;
  for (auto entry = fs::directory_iterator(base, error); entry != fs::directory_iterator(); entry.increment(error)) {
    if (matches(component, entry->path().filename().string())) {
      matching.push_back(entry->path());
    }
    if (error) {
      break;
    }
  }
  std::ranges::sort(matching);
  for (const fs::path& folder : matching) {
    expand(folder, next, pattern, folders);
  }
}

void expand(const fs::path& base, const fs::path& pattern, std::vector<fs::path>& folders) {
  expand(base, pattern.begin(), pattern, folders);
}

/// Returns the folder of the interpreter from which a virtual environment was created, from the line "home = /usr/bin"
/// of its pyvenv.cfg.
fs::path home_in(const fs::path& configuration) {
  std::ifstream lines(configuration);
  std::string line;
  while (std::getline(lines, line)) {
    const std::size_t equals = line.find('=');
    if (equals == std::string::npos) {
      continue;
    }
    std::istringstream key(line.substr(0, equals));
    std::istringstream value(line.substr(equals + 1));
    std::string word;
    key >> word;
    if (word == "home") {
      value >> std::ws;
      std::getline(value, word);
      return word;
    }
  }
  return {};
}

std::string variable(const char* name) {
  const char* value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): only read
  return value == nullptr ? "" : value;
}

std::string last_error() {
  const char* why = ::dlerror();  // NOLINT(concurrency-mt-unsafe): glibc keeps one for each thread
  return why == nullptr ? "unknown" : why;
}

}  // namespace

LibraryPlaces LibraryPlaces::of_this_process() {
  return {.path = variable("PATH"),
          .virtual_env = variable("VIRTUAL_ENV"),
          .conda_prefix = variable("CONDA_PREFIX"),
          .home = variable("HOME")};
}

std::vector<fs::path> python_prefixes(const LibraryPlaces& places) {
  std::vector<fs::path> prefixes;
  const auto add = [&](const fs::path& prefix) {
    std::error_code error;
    if (!prefix.empty() && prefix != prefix.root_path() && fs::is_directory(prefix, error) &&
        std::ranges::find(prefixes, prefix) == prefixes.end()) {
      prefixes.push_back(prefix);
    }
  };
  add(places.virtual_env);
  add(places.conda_prefix);
  std::istringstream folders(places.path);
  for (std::string folder; std::getline(folders, folder, ':');) {
    const fs::path program = fs::path(folder) / "python3";
    std::error_code error;
    if (folder.empty() || !fs::exists(program, error)) {
      continue;
    }
    const fs::path prefix = program.parent_path().parent_path();
    add(prefix);
    add(home_in(prefix / "pyvenv.cfg").parent_path());
    add(fs::canonical(program, error).parent_path().parent_path());
  }
  if (!places.home.empty()) {
    add(fs::path(places.home) / ".local");
  }
  for (const char* pattern : {"opt/*/.venv", "opt/*", "usr", "usr/local"}) {
    std::vector<fs::path> matching;
    expand(places.root, pattern, matching);
    std::ranges::for_each(matching, add);
  }
  return prefixes;
}

std::vector<fs::path> library_folders(const LibraryPlaces& places) {
  std::vector<fs::path> folders;
  for (const char* pattern :
       {"usr/local/cuda/lib64", "usr/local/cuda/extras/CUPTI/lib64", "usr/local/cuda/targets/*/lib"}) {
    expand(places.root, pattern, folders);
  }
  for (const fs::path& prefix : python_prefixes(places)) {
    for (const char* packages : {"site-packages", "dist-packages"}) {
      expand(prefix, fs::path("lib*/python3*") / packages / "nvidia/*/lib", folders);
    }
  }
  return folders;
}

SharedLibrary::SharedLibrary(const LibraryName& name, const LibraryPlaces& places) : name_(name) {
  std::vector<std::string> failures;
  const auto load = [&](const std::string& file) {
    handle_ = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle_ != nullptr) {
      file_ = file;
    }
    return loaded();
  };
  for (const std::string& soname : name.sonames) {
    if (load(soname)) {
      return;
    }
    // A missing file is reported below; for a file that exists but does not load, the loader's reason is needed.
    const std::string why = last_error();
    if (why.find("No such file") == std::string::npos || !why.starts_with(soname + ":")) {
      failures.push_back(why);
    }
  }
  const std::vector<fs::path> folders = library_folders(places);
  for (const std::string& soname : name.sonames) {
    for (const fs::path& folder : folders) {
      std::error_code error;
      if (!fs::exists(folder / soname, error)) {
        continue;
      }
      if (load((folder / soname).string())) {
        return;
      }
      failures.push_back(last_error());
    }
  }
  const std::string sonames = fmt::format("{}", fmt::join(name.sonames, " or "));
  std::vector<std::string> prefixes;
  for (const fs::path& prefix : python_prefixes(places)) {
    prefixes.push_back(prefix.string());
  }
  absence_ = failures.empty()
                 ? fmt::format(
                       "{} was not found: the loader cannot find {}, and it is neither in {} nor in "
                       "lib/python3*/*-packages/nvidia/*/lib of {}",
                       name.product, sonames, (places.root / "usr/local/cuda").string(), fmt::join(prefixes, ", "))
                 : fmt::format("{} cannot be loaded: {}", name.product, fmt::join(failures, "; "));
  absence_ += fmt::format("; {} or add its folder to LD_LIBRARY_PATH", name.remedy);
}

void* SharedLibrary::address_of(const char* symbol) const {
  return handle_ == nullptr ? nullptr : ::dlsym(handle_, symbol);
}

void SharedLibrary::refuse(const char* symbol) {
  absence_ = fmt::format("{} lacks {}, which this program needs; {}", file_, symbol, name_.remedy);
  handle_ = nullptr;
}

}  // namespace commfuse::validate
