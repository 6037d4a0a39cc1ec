// SPDX-License-Identifier: Apache-2.0
// Libraries that are loaded at run time, so that this plugin loads, and says what is missing, where they are absent.
#pragma once

#include <filesystem>
#include <string>
#include <type_traits>
#include <vector>

namespace commfuse::validate {

/// Where to look for NVIDIA's libraries. Tests set `root` to a tree of their own.
struct LibraryPlaces {
  std::filesystem::path root = "/";
  std::string path{};          ///< PATH: the prefix of every python3 in it is searched.
  std::string virtual_env{};   ///< VIRTUAL_ENV
  std::string conda_prefix{};  ///< CONDA_PREFIX
  std::string home{};          ///< HOME, for packages of pip install --user

  /// The environment of this process.
  static LibraryPlaces here();
};

/// The prefixes of the Python installations, in the order they are searched.
std::vector<std::filesystem::path> python_prefixes(const LibraryPlaces& places);
/// The existing folders of the CUDA toolkit, then nvidia/*/lib of every Python installation: where pip puts libraries.
std::vector<std::filesystem::path> library_folders(const LibraryPlaces& places);

struct LibraryName {
  std::string product;               ///< "NCCL"
  std::vector<std::string> sonames;  ///< The best first.
  std::string remedy;                ///< "install NCCL 2.18 or later"
};

/// A library of this process, which stays loaded until the process ends.
class SharedLibrary {
 public:
  /// Asks the dynamic loader first, which knows LD_LIBRARY_PATH and its cache, then searches the folders.
  explicit SharedLibrary(const LibraryName& name, const LibraryPlaces& places = LibraryPlaces::here());

  [[nodiscard]] bool loaded() const { return handle_ != nullptr; }
  /// The name or the path that was loaded.
  [[nodiscard]] const std::string& file() const { return file_; }
  /// Why it is not loaded, where it was looked for, and the remedy, in one line; empty where it is loaded.
  [[nodiscard]] const std::string& absence() const { return absence_; }

  /// Sets `function` to null where the library lacks it.
  template <class Function>
  void find(Function& function, const char* symbol) const {
    // NOLINTNEXTLINE(*-reinterpret-cast): the purpose of dlsym()
    function = reinterpret_cast<std::remove_reference_t<Function>>(address_of(symbol));
  }
  /// As find(); a missing function makes the library absent.
  template <class Function>
  void require(Function& function, const char* symbol) {
    find(function, symbol);
    if (function == nullptr && loaded()) {
      refuse(symbol);
    }
  }

 private:
  [[nodiscard]] void* address_of(const char* symbol) const;
  void refuse(const char* symbol);

  LibraryName name_;
  void* handle_ = nullptr;
  std::string file_;
  std::string absence_;
};

}  // namespace commfuse::validate
