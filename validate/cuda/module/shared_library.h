// SPDX-License-Identifier: Apache-2.0
// Libraries that are loaded at run time, so that this plugin loads without them and reports what is missing.
#pragma once

#include <filesystem>
#include <string>
#include <type_traits>
#include <vector>

namespace commfuse::validate {

/// Places to search for NVIDIA's libraries. Tests set `root` to a tree of their own.
struct LibraryPlaces {
  std::filesystem::path root = "/";
  std::string path{};          ///< PATH: the prefix of every python3 in it is searched.
  std::string virtual_env{};   ///< VIRTUAL_ENV
  std::string conda_prefix{};  ///< CONDA_PREFIX
  std::string home{};          ///< HOME, for packages of pip install --user

  /// Returns the places in the environment of this process.
  static LibraryPlaces of_this_process();
};

/// Returns the prefixes of the Python installations, in search order.
std::vector<std::filesystem::path> python_prefixes(const LibraryPlaces& places);
/// Returns the existing folders of the CUDA toolkit, then nvidia/*/lib of every Python installation, where pip puts
/// libraries.
std::vector<std::filesystem::path> library_folders(const LibraryPlaces& places);

struct LibraryName {
  std::string product;               ///< "NCCL"
  std::vector<std::string> sonames;  ///< Best first.
  std::string remedy;                ///< "install NCCL 2.18 or later"
};

/// A library of this process, which stays loaded until the process ends.
class SharedLibrary {
 public:
  /// Tries the dynamic loader first, which uses LD_LIBRARY_PATH and its cache, then searches the folders.
  explicit SharedLibrary(const LibraryName& name, const LibraryPlaces& places = LibraryPlaces::of_this_process());

  [[nodiscard]] bool loaded() const { return handle_ != nullptr; }
  /// Returns the name or the path that was loaded.
  [[nodiscard]] const std::string& file() const { return file_; }
  /// Returns why the library is not loaded, where it was searched for, and the remedy, in one line; empty if loaded.
  [[nodiscard]] const std::string& absence() const { return absence_; }

  /// Sets `function` to the function named `symbol`; to null if the library lacks it.
  template <class Function>
  void find(Function& function, const char* symbol) const {
    // NOLINTNEXTLINE(*-reinterpret-cast): the purpose of dlsym()
    function = reinterpret_cast<std::remove_reference_t<Function>>(address_of(symbol));
  }
  /// Like find(), but a missing function makes the library absent.
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
