// SPDX-License-Identifier: Apache-2.0
#include "sim/point/axis.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "model/config_error.h"
#include "tests/sim/message_of.h"

namespace commfuse {
namespace {

using Texts = std::vector<std::string>;

Texts values(std::string_view text) {
  Texts texts;
  for (const std::vector<Setting>& step : parse_axis(text).steps) {
    texts.push_back(step.at(0).text);
  }
  return texts;
}

std::string axis_refusal(std::string_view text) {
  return test::message_of([&] { parse_axis(text); });
}

TEST(Axis, IsAListARangeOrBoth) {
  EXPECT_EQ(values("ranks=2,4,8"), (Texts{"2", "4", "8"}));
  EXPECT_EQ(values("ranks=1..4"), (Texts{"1", "2", "3", "4"}));
  EXPECT_EQ(values("seq=1K..8K"), (Texts{"1K", "2K", "4K", "8K"}));
  EXPECT_EQ(values("seq=1K..7K"), (Texts{"1K", "2K", "4K"}));
  EXPECT_EQ(values("seq=4K..16K+4K"), (Texts{"4K", "8K", "12K", "16K"}));
  EXPECT_EQ(values("seq=4k..16k+4k"), values("seq=4K..16K+4K"));
  EXPECT_EQ(values("seq=1K..64K*4"), (Texts{"1K", "4K", "16K", "64K"}));
  EXPECT_EQ(values("ranks=1..3,8"), (Texts{"1", "2", "3", "8"}));
  EXPECT_EQ(values("scope=mlp,qkv"), (Texts{"mlp", "qkv"}));
  EXPECT_EQ(values("strategy.name=serial,sliced"), (Texts{"serial", "sliced"}));
  EXPECT_EQ(values("seq=1G..1G"), (Texts{"1G"}));
  EXPECT_EQ(values("link_bandwidth=x0.25..x3"), (Texts{"x0.25", "x0.5", "x1", "x2"}));
  EXPECT_EQ(values("link_bandwidth=x0.1..x10*10,450GB/s"), (Texts{"x0.1", "x1", "x10", "450GB/s"}));
  EXPECT_EQ(values("network_bandwidth=25GB/s..0.1TB/s"), (Texts{"25 GB/s", "50 GB/s", "100 GB/s"}));
}

TEST(Axis, ARangeToTheEndsOfNumbersEnds) {
  EXPECT_EQ(values("link_bandwidth=1e308B/s..1.7976931348623157e308B/s").size(), 1U);
  EXPECT_EQ(values("link_bandwidth=5e-324B/s..1GB/s*1.01").size(), 1U);  // 1.01 times this number rounds to itself
}

TEST(Axis, AcceptsTheNamesThatOtherToolsUse) {
  EXPECT_EQ(parse_axis("tp=2,4").fields, parse_axis("ranks=2,4").fields);
  EXPECT_EQ(parse_axis("seq_len=1K").fields, parse_axis("seq=1K").fields);
  EXPECT_EQ(parse_axis("pipeline-parallel-size=1,2").fields, parse_axis("parallel.pipeline=1,2").fields);
  EXPECT_EQ(axis_refusal("tp=0"), "--axis tp=0: '0' is out of range; choose 1 to 1M ranks");
}

TEST(Axis, EveryMistakeNamesTheAxis) {
  EXPECT_EQ(axis_refusal("seq"),
            "--axis seq: '=' is missing; write a setting and its values, as in ranks=2,4,8 or seq=1K..128K");
  EXPECT_EQ(axis_refusal("sqe=1K"), "--axis sqe=1K: unknown setting 'sqe'; did you mean 'seq'?");
  EXPECT_EQ(axis_refusal("strategy=sliced"),
            "--axis strategy=sliced: 'strategy' is a group of settings; name one, as in strategy.name");
  EXPECT_EQ(axis_refusal("threads=1,2"),
            "--axis threads=1,2: 'threads' does not change results; give it once, as --threads");
  EXPECT_EQ(axis_refusal("seq=1K,,2K"), "--axis seq=1K,,2K: '' is not a whole number; write one, such as 4K");
  EXPECT_EQ(axis_refusal("seq="), "--axis seq=: '' is not a whole number; write one, such as 4K");
  EXPECT_EQ(axis_refusal("seq=8K..1K"), "--axis seq=8K..1K: '8K..1K' is descending; write 1K..8K");
  EXPECT_EQ(axis_refusal("seq=1..x"),
            "--axis seq=1..x: '1..x' is not a range; write a list or a range, as in 2,4,8 or 1K..128K or 4K..16K+4K");
  EXPECT_EQ(axis_refusal("seq=1..8*1"), "--axis seq=1..8*1: '1..8*1' never ends; multiply by at least 2");
  EXPECT_EQ(axis_refusal("seq=1..8+0"), "--axis seq=1..8+0: '1..8+0' never ends; add at least 1");
  EXPECT_EQ(axis_refusal("seq=0..8"), "--axis seq=0..8: '0..8' never ends; begin at 1 or more");
  EXPECT_EQ(axis_refusal("seq=1..1M+1"), "--axis seq=1..1M+1: '1..1M+1' has more than 10000 values; take larger steps");
  EXPECT_EQ(axis_refusal("link_bandwidth=1B/s..1e300B/s*1.01"),
            "--axis link_bandwidth=1B/s..1e300B/s*1.01: '1B/s..1e300B/s*1.01' has more than 10000 values; take larger "
            "steps");
  EXPECT_EQ(axis_refusal("link_bandwidth=x2..x1"),
            "--axis link_bandwidth=x2..x1: 'x2..x1' is descending; write x1..x2");
  for (const char* wrong : {"x1..", "x1..900GB/s", "x1..x4*1", "x1..x4+1", "1..4"}) {
    EXPECT_EQ(axis_refusal(fmt::format("link_bandwidth={}", wrong)),
              fmt::format("--axis link_bandwidth={0}: '{0}' is not a range; write two factors or two rates, as in "
                          "x0.25..x4, which doubles, or x1..x100*10",
                          wrong));
  }
  EXPECT_EQ(axis_refusal("ranks=0..2"), "--axis ranks=0..2: '0' is out of range; choose 1 to 1M ranks");
  EXPECT_EQ(axis_refusal("ranks=8,4,8"), "--axis ranks=8,4,8: '8' is given twice; keep one of them");
  EXPECT_EQ(axis_refusal("seq=4K..16K+4K,8192"), "--axis seq=4K..16K+4K,8192: '8192' is given twice; keep one of them");
  EXPECT_EQ(axis_refusal("link_bandwidth=450GB/s,x1,0.45 TB/s"),
            "--axis link_bandwidth=450GB/s,x1,0.45 TB/s: '0.45 TB/s' is given twice; keep one of them");
  EXPECT_EQ(axis_refusal("hardware=h100,h100-sxm"),
            "--axis hardware=h100,h100-sxm: 'h100-sxm' is given twice; keep one of them");
  EXPECT_EQ(axis_refusal("dtype=bf16,bf61"), "--axis dtype=bf16,bf61: unknown dtype 'bf61'; did you mean 'bf16'?");
}

}  // namespace
}  // namespace commfuse
