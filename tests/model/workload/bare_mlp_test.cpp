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

TEST(BareMlp, MayHaveExperts) {
  const auto model = bare_mlp_named("8192x4096-e32-top4");
  ASSERT_TRUE(model && model->experts);
  EXPECT_EQ(model->name, "8192x4096-e32-top4");
  EXPECT_EQ(model->hidden, 8192);
  EXPECT_EQ(model->ffn, 4096);
  EXPECT_EQ(model->experts->count, 32);
  EXPECT_EQ(model->experts->active, 4);
  EXPECT_EQ(model->experts->ffn, 4096);
  EXPECT_EQ(model->experts->shared_ffn, 0);
  EXPECT_EQ(model->experts->layer_ranks, 1);
  const auto shared = bare_mlp_named("8192x4096-e32-top4-ep2");
  ASSERT_TRUE(shared && shared->experts);
  EXPECT_EQ(shared->name, "8192x4096-e32-top4-ep2");
  EXPECT_EQ(shared->experts->layer_ranks, 2);
  EXPECT_EQ(bare_mlp_named("8x8-e1024-top1024-ep1")->name, "8x8-e1024-top1024");
}

TEST(BareMlp, OtherExpertsAreNotRecognized) {
  for (const char* name : {"8x8-", "8x8-e", "8x8-e4", "8x8-top2", "8x8-top2-e4", "8x8-e4-top", "8x8-e4-top5",
                           "8x8-e0-top0", "8x8-e1025-top1", "8x8-e4-top2-ep3", "8x8-e4-top2-ep8", "8x8-e4-top2-",
                           "8x8-e4-top2-ep", "8x8-e4-top2-ep2-ep2", "8x8-e4-top2x"}) {
    EXPECT_FALSE(bare_mlp_named(name)) << name;
  }
}

TEST(BareMlp, OtherTextsAreNotRecognized) {
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
