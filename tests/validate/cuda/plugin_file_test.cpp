// SPDX-License-Identifier: Apache-2.0
// The file of the plugin, as it was linked: machines keep NVIDIA's libraries where their loader does not look, so it
// may need none of them. Skipped where no plugin was built or readelf is missing.
#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <regex>
#include <string>
#include <vector>

#include "validate/cuda/cuda_module.h"

namespace commfuse::validate {
namespace {

std::string output_of(const std::string& command) {
  const auto close = [](std::FILE* pipe) { ::pclose(pipe); };
  // NOLINTNEXTLINE(*-env33-c): a fixed command on a file of the build
  const std::unique_ptr<std::FILE, decltype(close)> pipe(::popen((command + " 2>/dev/null").c_str(), "r"), close);
  std::string output;
  std::array<char, 4096> part{};
  while (pipe != nullptr && std::fgets(part.data(), static_cast<int>(part.size()), pipe.get()) != nullptr) {
    output += part.data();
  }
  return output;
}

/// What the first group of `pattern` matches, line by line.
std::vector<std::string> matches_in(const std::string& text, const std::regex& pattern) {
  std::vector<std::string> matches;
  for (std::sregex_iterator match(text.begin(), text.end(), pattern), end; match != end; ++match) {
    matches.push_back((*match)[1].str());
  }
  return matches;
}

class PluginFile : public testing::Test {
 protected:
  void SetUp() override {
    const std::filesystem::path plugin = COMMFUSE_BIN_DIR "/../lib/commfuse/libcommfuse_cuda.so";
    if (!std::filesystem::exists(plugin)) {
      GTEST_SKIP() << "no plugin was built";
    }
    read_ = output_of("readelf --wide --dynamic --dyn-syms '" + plugin.string() + "'");
    if (read_.empty()) {
      GTEST_SKIP() << "readelf is missing";
    }
  }

  std::string read_;
};

TEST_F(PluginFile, NeedsNoLibraryOfNvidias) {
  const std::regex needed(R"(\(NEEDED\)[^\[]*\[([^\]]*)\])");
  const std::regex of_nvidia("lib(cu|nccl|nv).*");
  const std::vector<std::string> libraries = matches_in(read_, needed);
  EXPECT_FALSE(libraries.empty());
  for (const std::string& library : libraries) {
    EXPECT_FALSE(std::regex_match(library, of_nvidia)) << library;
  }
}

TEST_F(PluginFile, ExportsItsEntryPointAlone) {
  // Number, value, size, type, binding, visibility, and a section: what is undefined has UND.
  const std::regex defined(R"(\d+: [0-9a-f]+ +\S+ +\S+ +(?:GLOBAL|WEAK|UNIQUE) +DEFAULT +\d+ (\S+))");
  EXPECT_EQ(matches_in(read_, defined), std::vector<std::string>{cuda_module_entry});
}

}  // namespace
}  // namespace commfuse::validate
