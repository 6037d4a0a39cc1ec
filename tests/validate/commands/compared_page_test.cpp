// SPDX-License-Identifier: Apache-2.0
#include "validate/commands/compared_page.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>

namespace commfuse::validate {
namespace {

TEST(ComparedPage, FactsHaveSingularsAndPlurals) {
  Compared compared;
  compared.record.warm_up = 1;
  compared.record.environment = {.cpu = "EPYC", .cores = 1, .mpi = "Open MPI v4", .hosts = {"a", "a"}};
  const auto fact = [&](std::string_view name) {
    const auto facts = page_of(compared, "").facts;
    return std::ranges::find(facts, name, [](const auto& entry) { return entry.first; })->second;
  };
  EXPECT_EQ(fact("processor"), "EPYC, 1 core");
  EXPECT_EQ(fact("MPI"), "Open MPI v4, 2 processes on 1 host");
  EXPECT_EQ(fact("warm-up"), "1 iteration of every schedule");
  compared.record.warm_up = 2;
  compared.record.environment.cores = 64;
  compared.record.environment.hosts = {"a", "b"};
  EXPECT_EQ(fact("processor"), "EPYC, 64 cores");
  EXPECT_EQ(fact("MPI"), "Open MPI v4, 2 processes on 2 hosts");
  EXPECT_EQ(fact("warm-up"), "2 iterations of every schedule");
}

}  // namespace
}  // namespace commfuse::validate
