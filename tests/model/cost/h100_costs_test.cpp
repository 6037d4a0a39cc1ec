// SPDX-License-Identifier: Apache-2.0
// A few costs of the H100 node to the picosecond: whoever changes its numbers or a formula sees it here.
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "model/config/catalogue.h"
#include "model/cost/communication.h"
#include "model/cost/gemm.h"
#include "model/cost/memory_bound.h"

namespace commfuse {
namespace {

Machine h100() {
  setenv("COMMFUSE_CONFIG_DIR", (std::string(COMMFUSE_SOURCE_DIR) + "/configs").c_str(), 1);
  Machine machine = load_machine("h100-sxm");
  unsetenv("COMMFUSE_CONFIG_DIR");
  return machine;
}

TEST(H100Costs, products_and_copies) {
  const Accelerator accelerator = h100().accelerator;
  const auto product = [&](std::int64_t m, std::int64_t n, std::int64_t k, int sms) {
    return estimate_gemm(accelerator, {.m = m, .n = n, .k = k}, sms).time;
  };
  EXPECT_EQ(product(8192, 7168, 8192, 132), Duration{1'247'275'538});
  EXPECT_EQ(product(1024, 7168, 8192, 116), Duration{162'950'978});
  EXPECT_EQ(product(1024, 8192, 3584, 108), Duration{85'991'507});
  EXPECT_EQ(memory_bound_time(accelerator, Bytes{std::int64_t{1} << 28}, 132), Duration{93'556'803});
}

TEST(H100Costs, exchanges_and_collectives) {
  const Machine machine = h100();
  // 7.59 us + 64 MiB / 361 GB/s.
  EXPECT_EQ(p2p_time(peer_between(machine, 0, 7), Bytes{64 << 20}), Duration{193'487'130});
  // 4.22 us + 7 x 811 ns + (wire + sqrt(wire x 4.85 MB)) / 404 GB/s + 32 MiB / 738 GB/s, wire = 7 x 32 MiB.
  EXPECT_EQ(all_gather_time(collective_over(machine, 0, 8), 8, Bytes{256 << 20}), Duration{720'296'038});
  EXPECT_EQ(reduce_scatter_time(collective_over(machine, 0, 4), 4, Bytes{16 << 20}), Duration{62'818'759});
  EXPECT_EQ(all_reduce_time(collective_over(machine, 0, 8), 8, Bytes{256 << 20}), Duration{1'341'966'626});
}

TEST(H100Costs, the_link_stands_for_what_a_pair_and_a_group_of_the_node_see) {
  const Machine machine = h100();
  EXPECT_EQ(&peer_between(machine, 0, 1), &machine.link.peer);
  EXPECT_EQ(&collective_over(machine, 0, 8), &machine.link.collective);
  EXPECT_EQ(p2p_time(machine.link, Bytes{1 << 20}), p2p_time(machine.link.peer, Bytes{1 << 20}));
  EXPECT_EQ(all_to_all_time(machine.link, 4, Bytes{1 << 20}),
            all_to_all_time(machine.link.collective, 4, Bytes{1 << 20}));
}

}  // namespace
}  // namespace commfuse
