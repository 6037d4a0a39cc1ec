// SPDX-License-Identifier: Apache-2.0
#include "model/hardware/parameter.h"

#include <gtest/gtest.h>

#include "model/dtype.h"

namespace commfuse {
namespace {

TEST(Provenance, NamesReadBack) {
  for (const Provenance provenance : all_provenances) {
    EXPECT_EQ(provenance_named(name_of(provenance)), provenance);
  }
  EXPECT_EQ(provenance_named("guess"), std::nullopt);
}

TEST(DType, NamesReadBackAndBytesMatchTheFormat) {
  for (const DType dtype : all_dtypes) {
    EXPECT_EQ(dtype_named(name_of(dtype)), dtype);
  }
  EXPECT_EQ(dtype_named("int8"), std::nullopt);
  EXPECT_EQ(bytes_of(DType::bf16), 2);
  EXPECT_EQ(bytes_of(DType::fp16), 2);
  EXPECT_EQ(bytes_of(DType::fp32), 4);
  EXPECT_EQ(bytes_of(DType::fp8), 1);
}

}  // namespace
}  // namespace commfuse
