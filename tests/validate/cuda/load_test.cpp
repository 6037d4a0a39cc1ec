// SPDX-License-Identifier: Apache-2.0
// Tests the plugin without a GPU: it loads, reports its build, and names what is missing. Skipped if no plugin was
// built.
#include "validate/cuda/load.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>

#include "model/build_info.h"
#include "validate/cuda/build_id.h"

namespace commfuse::validate {
namespace {

const CudaPlugin& plugin() {
  static const CudaPlugin loaded = load_cuda_plugin();
  return loaded;
}

TEST(CudaPluginFile, AMissingPluginIsReportedWithTheLibrariesOfTheBuild) {
  const CudaPlugin none = load_cuda_plugin("/nowhere/libcommfuse_cuda.so");
  EXPECT_EQ(none.module, nullptr);
  EXPECT_FALSE(none.usable());
  EXPECT_EQ(none.missing, "this build has no CUDA (" + std::string(build_info().cuda) +
                              "); install the CUDA Toolkit, 12.4 or later, and build again");
}

TEST(CudaPluginFile, AnInvalidLibraryIsReportedWithTheLoadersMessage) {
  const std::filesystem::path path = std::filesystem::path(testing::TempDir()) / "commfuse_no_library.so";
  std::ofstream(path) << "no library\n";
  const CudaPlugin none = load_cuda_plugin(path);
  std::filesystem::remove(path);
  EXPECT_EQ(none.module, nullptr);
  EXPECT_EQ(none.missing.find("CUDA cannot be loaded: "), 0U) << none.missing;
}

class BuiltPlugin : public testing::Test {
 protected:
  void SetUp() override {
    if (plugin().module == nullptr) {
      GTEST_SKIP() << plugin().missing;
    }
  }
};

TEST_F(BuiltPlugin, IsFromTheBuildOfItsProgram) { EXPECT_EQ(plugin().module->build_id(), build_id_in_words()); }

TEST_F(BuiltPlugin, ExplainsAMissingDeviceInOneSentence) {
  if (plugin().usable()) {
    EXPECT_GT(plugin().module->devices(), 0);
    return;
  }
  EXPECT_EQ(plugin().missing.find('\n'), std::string::npos);
  EXPECT_NE(plugin().missing.find("; "), std::string::npos) << "a remedy: " << plugin().missing;
  EXPECT_THROW(static_cast<void>(plugin().module->open(0)), std::runtime_error);
}

TEST_F(BuiltPlugin, MakesKeysWithoutADriver) {
  if (!plugin().module->has_nccl()) {
    EXPECT_THROW(static_cast<void>(plugin().module->make_key()), std::runtime_error);
    return;
  }
  EXPECT_NE(plugin().module->make_key(), NetworkKey{});
  EXPECT_NE(plugin().module->make_key(), plugin().module->make_key());
}

}  // namespace
}  // namespace commfuse::validate
