// SPDX-License-Identifier: Apache-2.0
#include "sim/engine/load_faults.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>
#include <fstream>

#include "model/config/catalogue.h"
#include "model/config_error.h"
#include "tests/own_folder.h"

namespace commfuse::test {
namespace {

using namespace std::chrono_literals;

/// Writes a file into the current folder, which belongs to the test.
std::string written(const std::string& text) {
  std::ofstream("faults.yaml") << "schema: commfuse.faults/1\nname: x\n" << text;
  return "faults.yaml";
}

/// Returns the message without the path.
std::string faults_refusal(const std::string& text) {
  const std::string path = written(text);
  try {
    load_faults(path);
  } catch (const ConfigError& error) {
    std::string message = error.what();
    return message.starts_with(path) ? message.substr(path.size()) : message;
  }
  return "";
}

TEST(LoadFaults, EveryShippedFileLoads) {
  for (const std::string& name : known_names(Catalogue::faults)) {
    EXPECT_EQ(load_faults(name) == nullptr, name == "none") << name;
  }
}

TEST(LoadFaults, AcceptsManySlowRanks) {
  const OwnFolder folder;
  std::string many;
  for (int rank = 0; rank < 20'000; ++rank) {
    many += fmt::format("  {}: 2\n", rank);
  }
  EXPECT_EQ(load_faults(written("slow_ranks:\n" + many))->slow_ranks.size(), 20'000U);
}

TEST(LoadFaults, ReadsAllKinds) {
  const OwnFolder folder;
  const auto faults = load_faults(
      written("slow_ranks: {3: 1.2}\nslow_links: {2->3: 2}\nlinks_down: {0->1: 100 us..1 ms, 1->0: 5 us..}\n"
              "late_starts: {1: 50 us}\n"));
  ASSERT_NE(faults, nullptr);
  ASSERT_EQ(faults->slow_ranks.size(), 1U);
  EXPECT_EQ(faults->slow_ranks[0].rank, 3);
  EXPECT_EQ(faults->slow_ranks[0].factor, 1.2);
  ASSERT_EQ(faults->slow_links.size(), 1U);
  EXPECT_EQ(faults->slow_links[0].link, (RankPair{2, 3}));
  ASSERT_EQ(faults->links_down.size(), 2U);
  EXPECT_EQ(faults->links_down[0].from, Instant{100us});
  EXPECT_EQ(faults->links_down[0].until, Instant{1ms});
  EXPECT_EQ(faults->links_down[1].until, std::nullopt);
  ASSERT_EQ(faults->late_starts.size(), 1U);
  EXPECT_EQ(faults->late_starts[0].by, 50us);
}

TEST(LoadFaults, MistakesNameTheirPlaceAndTheRemedy) {
  const OwnFolder folder;
  EXPECT_EQ(faults_refusal("slow_ranks: {first: 2}\n"),
            ":3:21: 'first' is not a rank; write it as in \"slow_ranks: {3: 1.2}\"");
  EXPECT_EQ(faults_refusal("slow_links: {2-3: 2}\n"),
            ":3:19: '2-3' is not a link; write it as in \"slow_links: {2->3: 2}\"");
  EXPECT_EQ(faults_refusal("links_down: {0->1: 5}\n"),
            ":3:20: '5' is not a span of time; write one, as in \"100 us..1 ms\", or \"100 us..\" for no end");
  EXPECT_EQ(faults_refusal("links_down: {0->1: 5 us..4 us}\n"),
            ":3:20: '5 us..4 us' ends before it begins; write the earlier time first");
  EXPECT_EQ(faults_refusal("late_starts: {3: 9999999 s}\n"),
            ":3:18: '9999999 s' is too long; write a time below 9.2e6 s");
  EXPECT_EQ(faults_refusal("links_down: {0->1: 5 us..9999999 s}\n"),
            ":3:20: '5 us..9999999 s' is too long; write times below 9.2e6 s, or \"100 us..\" for no end");
  EXPECT_NE(faults_refusal("slow_ranks: {3: 0.5}\n"), "");
  EXPECT_NE(faults_refusal("slow_rank: {3: 2}\n"), "");
}

}  // namespace
}  // namespace commfuse::test
