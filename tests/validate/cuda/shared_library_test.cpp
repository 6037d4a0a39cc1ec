// SPDX-License-Identifier: Apache-2.0
// Tests the search for libraries in a folder that represents a machine, and messages about missing libraries.
#include "validate/cuda/module/shared_library.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "tests/own_folder.h"

namespace commfuse::validate {
namespace {

namespace fs = std::filesystem;

constexpr auto soname = "libcommfuse_search_test.so.7";

class LibrarySearch : public testing::Test {
 protected:
  [[nodiscard]] const fs::path& root() const { return root_; }

  fs::path make(const fs::path& below) {
    fs::create_directories(root() / below);
    return root() / below;
  }
  void make_python(const fs::path& folder) { std::ofstream(make(folder) / "python3") << "#!/bin/sh\n"; }
  /// Copies a loadable library into the folder, under the name `soname`, and returns the path of the copy.
  fs::path put_library(const fs::path& folder) {
    Dl_info about{};
    EXPECT_NE(::dladdr(reinterpret_cast<const void*>(&::zlibVersion), &about), 0);
    fs::copy_file(fs::canonical(about.dli_fname), make(folder) / soname);
    return root() / folder / soname;
  }
  [[nodiscard]] SharedLibrary search(const LibraryPlaces& places) const {
    return SharedLibrary({.product = "Search", .sonames = {"libcommfuse_none.so.8", soname}, .remedy = "install it"},
                         places);
  }

 private:
  OwnFolder folder_;
  fs::path root_ = fs::current_path();
};

TEST_F(LibrarySearch, VirtualEnvironmentBelowOptIsFound) {
  const fs::path file = put_library("opt/torch/.venv/lib/python3.12/site-packages/nvidia/nccl/lib");
  const SharedLibrary library = search({.root = root()});
  EXPECT_TRUE(library.loaded()) << library.absence();
  EXPECT_EQ(library.file(), file.string());
  EXPECT_EQ(library.absence(), "");
  decltype(&::zlibVersion) version = nullptr;
  library.find(version, "zlibVersion");
  EXPECT_NE(version, nullptr);
  library.find(version, "no_such_function");
  EXPECT_EQ(version, nullptr);
}

TEST_F(LibrarySearch, ToolkitComesBeforePythonAndEveryLayoutOfPipIsSearched) {
  std::vector<fs::path> expected;
  for (const char* folder :
       {"usr/local/cuda/lib64", "usr/local/cuda/extras/CUPTI/lib64", "usr/local/cuda/targets/x86_64-linux/lib",
        "opt/torch/.venv/lib/python3.12/site-packages/nvidia/cu13/lib",
        "opt/torch/.venv/lib/python3.12/site-packages/nvidia/nccl/lib",
        "opt/conda/lib/python3.11/site-packages/nvidia/cublas/lib", "usr/lib/python3/dist-packages/nvidia/cudnn/lib",
        "usr/local/lib/python3.9/dist-packages/nvidia/cuda_cupti/lib"}) {
    expected.push_back(make(folder));
  }
  make("opt/torch/.venv/lib/python3.12/site-packages/nvidia/empty");
  make("opt/torch/.venv/lib/python2.7/site-packages/nvidia/nccl/lib");
  EXPECT_EQ(library_folders({.root = root()}), expected);
}

TEST_F(LibrarySearch, EnvironmentNamesPythonInstallationsInOrder) {
  const fs::path active = make("home/active");
  const fs::path conda = make("home/conda");
  make_python("home/tool/.venv/bin");
  make_python("home/base/bin");
  std::ofstream(root() / "home/tool/.venv/pyvenv.cfg")
      << "version = 3.12\nhome = " << (root() / "home/base/bin").string() << "\n";
  const fs::path user = make("home/user/.local");
  const std::vector<fs::path> expected{active, conda, root() / "home/tool/.venv", root() / "home/base", user};
  EXPECT_EQ(python_prefixes({.root = root() / "nothing",
                             .path = "/nowhere:" + (root() / "home/tool/.venv/bin").string(),
                             .virtual_env = active.string(),
                             .conda_prefix = conda.string(),
                             .home = (root() / "home/user").string()}),
            expected);
}

TEST_F(LibrarySearch, PythonBehindALinkIsSearchedAtBothEnds) {
  make_python("home/base/bin");
  const fs::path bin = make("home/links/bin");
  fs::create_symlink(root() / "home/base/bin/python3", bin / "python3");
  const std::vector<fs::path> expected{root() / "home/links", root() / "home/base"};
  EXPECT_EQ(python_prefixes({.root = root() / "nothing", .path = bin.string()}), expected);
}

TEST_F(LibrarySearch, AbsenceNamesTheLibraryThePlacesAndTheRemedyInOneLine) {
  make("opt/torch/.venv");
  EXPECT_EQ(search({.root = root()}).absence(),
            "Search was not found: the loader cannot find libcommfuse_none.so.8 or " + std::string(soname) +
                ", and it is neither in " + (root() / "usr/local/cuda").string() +
                " nor in lib/python3*/*-packages/nvidia/*/lib of " + (root() / "opt/torch/.venv").string() + ", " +
                (root() / "opt/torch").string() + "; install it or add its folder to LD_LIBRARY_PATH");
}

TEST_F(LibrarySearch, FileThatCannotBeLoadedIsReportedWithTheLoadersMessage) {
  const fs::path file = make("usr/local/cuda/lib64") / soname;
  std::ofstream(file) << "no library\n";
  const std::string absence = search({.root = root()}).absence();
  EXPECT_EQ(absence.find("Search cannot be loaded: " + file.string()), 0U) << absence;
}

TEST_F(LibrarySearch, BrokenFileDoesNotHideAWorkingOne) {
  std::ofstream(make("usr/local/cuda/lib64") / soname) << "no library\n";
  const fs::path file = put_library("opt/torch/.venv/lib/python3.12/site-packages/nvidia/cu13/lib");
  EXPECT_EQ(search({.root = root()}).file(), file.string());
}

TEST_F(LibrarySearch, RequiredFunctionThatIsMissingMakesTheLibraryAbsent) {
  const fs::path file = put_library("usr/local/cuda/lib64");
  SharedLibrary library = search({.root = root()});
  void (*function)() = nullptr;
  library.require(function, "no_such_function");
  EXPECT_FALSE(library.loaded());
  EXPECT_EQ(library.absence(), file.string() + " lacks no_such_function, which this program needs; install it");
}

}  // namespace
}  // namespace commfuse::validate
