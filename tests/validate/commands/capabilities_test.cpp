// SPDX-License-Identifier: Apache-2.0
#include "validate/commands/capabilities.h"

#include <gtest/gtest.h>

#include <set>
#include <stdexcept>
#include <string>

namespace commfuse::validate {
namespace {

std::string text_with_faulty(const std::set<int>& faulty) {
  return gpus_in_words(3, [&](int gpu) -> std::string {
    if (faulty.contains(gpu)) {
      throw std::runtime_error("cudaSetDevice failed: out of memory");
    }
    return "H100 number " + std::to_string(gpu);
  });
}

TEST(Capabilities, AFaultyGpuDoesNotHideTheOthers) {
  EXPECT_EQ(text_with_faulty({}), "yes: H100 number 0; H100 number 1; H100 number 2");
  EXPECT_EQ(text_with_faulty({1}),
            "yes: H100 number 0; H100 number 2; these cannot be used: GPU 1: cudaSetDevice failed: out of memory");
  EXPECT_EQ(text_with_faulty({0, 1, 2}),
            "no: GPU 0: cudaSetDevice failed: out of memory; GPU 1: cudaSetDevice failed: out of memory; GPU 2: "
            "cudaSetDevice failed: out of memory");
}

}  // namespace
}  // namespace commfuse::validate
