// SPDX-License-Identifier: Apache-2.0
#include "model/workload/bare_mlp.h"

#include <gtest/gtest.h>

#include "model/config/catalogue.h"

namespace commfuse {
namespace {

TEST(BareMlp, IsNamedByItsSizes) {
  const auto model = bare_mlp_named("8192x28672");
  ASSERT_TRUE(model);
  EXPECT_EQ(model->name, "8192x28672");
  EXPECT_EQ(model->hidden, 8192);
  EXPECT_EQ(model->ffn, 28672);
  EXPECT_EQ(model->layers, 1);
  EXPECT_EQ(bare_mlp_named("1x1048576")->ffn, 1048576);
}

TEST(BareMlp, OtherTextsAreNotRecognised) {
  for (const char* name :
       {"", "x", "8192", "8192x", "x28672", "0x28672", "8192x0", "-1x8", "8192x28672x8", "8192X28672", " 8192x28672",
        "8192x28672 ", "8Kx28K", "1x1048577", "8192x99999999999999999999", "mixtral-8x7b"}) {
    EXPECT_FALSE(bare_mlp_named(name)) << name;
  }
}

TEST(BareMlp, IsLoadedLikeAModelOfTheCatalogue) {
  const Transformer model = load_model("4096x14336");
  EXPECT_EQ(model.name, "4096x14336");
  EXPECT_EQ(model.hidden, 4096);
  EXPECT_EQ(model.ffn, 14336);
}

}  // namespace
}  // namespace commfuse
