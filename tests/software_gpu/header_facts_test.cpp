// SPDX-License-Identifier: Apache-2.0
// Tests that our headers agree with NVIDIA's, if NVIDIA's are found at build time.
#include "tests/software_gpu/header_facts.h"

#include <gtest/gtest.h>

namespace software_gpu {
namespace {

[[maybe_unused]] void expect_equal(const HeaderFacts& ours, const HeaderFacts& theirs) {
  ASSERT_EQ(ours.size(), theirs.size());
  EXPECT_GT(ours.size(), 20U);
  for (std::size_t i = 0; i < ours.size(); ++i) {
    EXPECT_EQ(ours[i].value, theirs[i].value) << ours[i].name;
  }
}

TEST(SoftwareGpuHeaders, MatchThoseOfTheRuntime) {
#ifdef COMMFUSE_HAS_CUDA_HEADERS
  expect_equal(our_runtime(), their_runtime());
#else
  GTEST_SKIP() << "no CUDA 13 headers";
#endif
}

TEST(SoftwareGpuHeaders, RoundToEightBitsAsTheRuntimeDoes) {
#ifdef COMMFUSE_HAS_CUDA_HEADERS
  expect_equal(our_fp8(), their_fp8());
#else
  GTEST_SKIP() << "no CUDA 13 headers";
#endif
}

TEST(SoftwareGpuHeaders, MatchThoseOfCublasLt) {
#ifdef COMMFUSE_HAS_CUBLASLT_HEADERS
  expect_equal(our_cublaslt(), their_cublaslt());
#else
  GTEST_SKIP() << "no headers of cuBLASLt 13";
#endif
}

TEST(SoftwareGpuHeaders, MatchThatOfNccl) {
#ifdef COMMFUSE_HAS_NCCL_HEADERS
  HeaderFacts theirs = their_nccl();
  for (HeaderFact& fact : theirs) {  // NVIDIA's type names contain the version that last changed the type
    if (const std::size_t at = fact.value.find("ncclConfig_v"); at != std::string::npos) {
      fact.value.replace(at, sizeof "ncclConfig_v22800" - 1, "ncclConfig_t");
    }
  }
  expect_equal(our_nccl(), theirs);
#else
  GTEST_SKIP() << "no headers of NCCL 2.28";
#endif
}

TEST(SoftwareGpuHeaders, MatchThoseOfCupti) {
#ifdef COMMFUSE_HAS_CUPTI_HEADERS
  expect_equal(our_cupti(), their_cupti());
#else
  GTEST_SKIP() << "no headers of CUPTI 13";
#endif
}

}  // namespace
}  // namespace software_gpu
