// SPDX-License-Identifier: Apache-2.0
// Tests the libraries that the plugin is linked with: machines keep NVIDIA's libraries where the loader does not look,
// so the plugin may require none of them. The plugin of the software GPU has the same sources, and also loads its
// doubles at run time. Skipped if no plugin was built or readelf is missing.
#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <cstdlib>
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

/// Returns the text of the first capture group in every match of `pattern`.
std::vector<std::string> matches_in(const std::string& text, const std::regex& pattern) {
  std::vector<std::string> matches;
  for (std::sregex_iterator match(text.begin(), text.end(), pattern), end; match != end; ++match) {
    matches.push_back((*match)[1].str());
  }
  return matches;
}

/// Returns COMMFUSE_CUDA_PLUGIN if it is set, otherwise the plugin of the software GPU.
std::filesystem::path software_plugin() {
  const char* chosen = std::getenv("COMMFUSE_CUDA_PLUGIN");  // NOLINT(concurrency-mt-unsafe): nobody changes it
  return chosen == nullptr ? COMMFUSE_SOFTWARE_GPU : chosen;
}

class PluginFile : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    const std::filesystem::path plugin =
        GetParam() ? software_plugin() : COMMFUSE_BIN_DIR "/../lib/commfuse/libcommfuse_cuda.so";
    if (!std::filesystem::exists(plugin)) {
      GTEST_SKIP() << "no plugin was built";
    }
    dynamic_section_ = output_of("readelf --wide --dynamic --dyn-syms '" + plugin.string() + "'");
    if (dynamic_section_.empty()) {
      GTEST_SKIP() << "readelf is missing";
    }
  }

  std::string dynamic_section_;
};
INSTANTIATE_TEST_SUITE_P(Files, PluginFile, testing::Bool(), [](const testing::TestParamInfo<bool>& file) {
  return std::string(file.param ? "OfTheSoftwareGpu" : "OfTheToolkit");
});

TEST_P(PluginFile, NeedsNoLibraryOfNvidia) {
  const std::regex needed(R"(\(NEEDED\)[^\[]*\[([^\]]*)\])");
  const std::regex nvidia_library("lib(cu|nccl|nv).*");
  const std::vector<std::string> libraries = matches_in(dynamic_section_, needed);
  EXPECT_FALSE(libraries.empty());
  for (const std::string& library : libraries) {
    EXPECT_FALSE(std::regex_match(library, nvidia_library)) << library;
  }
}

TEST_P(PluginFile, ExportsOnlyItsEntryPoint) {
  // The columns are number, value, size, type, binding, visibility and section; an undefined symbol has section UND.
  const std::regex defined(R"(\d+: [0-9a-f]+ +\S+ +\S+ +(?:GLOBAL|WEAK|UNIQUE) +DEFAULT +\d+ (\S+))");
  EXPECT_EQ(matches_in(dynamic_section_, defined), std::vector<std::string>{cuda_module_entry});
}

}  // namespace
}  // namespace commfuse::validate
