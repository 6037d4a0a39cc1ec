// SPDX-License-Identifier: Apache-2.0
#include "sim/lab/lab.h"

#include <gtest/gtest.h>

#include <chrono>
#include <fstream>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "model/config/catalogue.h"
#include "model/config_error.h"
#include "model/proof/check_program.h"
#include "tests/own_folder.h"
#include "tests/sim/message_of.h"

namespace commfuse::test {
namespace {

using namespace std::chrono_literals;

LabWorkload lab(const char* name, std::int32_t ranks) {
  LabWorkload lab = load_lab(std::string(COMMFUSE_SOURCE_DIR "/configs/lab/") + name + ".yaml");
  lab.ranks = ranks;
  return lab;
}

const std::array all_evaluators{LabOptions{.simulation = {.evaluator = Evaluator::automatic}},
                                LabOptions{.simulation = {.evaluator = Evaluator::replay, .symmetry = false}},
                                LabOptions{.simulation = {.evaluator = Evaluator::engine}}};

TEST(Lab, AnAllGatherOf256RanksTakes255MessagesOneAfterAnother) {
  // 32,768 B at 53.687 GB/s are 610,352.6 ps; 255 x (500,000 + 610,353).
  for (const LabOptions& options : all_evaluators) {
    EXPECT_EQ(run_lab(lab("ag", 256), options).makespan.count(), 255 * (500'000 + 610'353));
  }
}

TEST(Lab, AnAllReduceTakesTwiceTheStepsOfAnAllGather) {
  for (const LabOptions& options : all_evaluators) {
    EXPECT_EQ(run_lab(lab("ar", 256), options).makespan.count(), 2 * 255 * (500'000 + 610'353));
  }
}

TEST(Lab, TilesHideAllMessagesOfFuseAg) {
  for (const LabOptions& options : all_evaluators) {
    const LabRun run = run_lab(lab("fa", 256), options);
    EXPECT_EQ(run.makespan, 2'560'000ns);
    EXPECT_EQ(run.messages, 256U * 255);
    EXPECT_EQ(run.tiles, 256U * 256);
  }
}

TEST(Lab, RandomTilesAreWholeMicrosecondsAndTheSameForEveryEvaluator) {
  const LabWorkload random = lab("faj", 64);
  const LabRun by_engine = run_lab(random, {.simulation = {Evaluator::engine}});
  EXPECT_EQ(run_lab(random, {.simulation = {Evaluator::replay}}).makespan, by_engine.makespan);
  // A single rank has one tile of 10 to 1010 us, and nothing to wait for.
  const LabWorkload one_rank = lab("faj", 1);
  const Duration tile = run_lab(one_rank, {}).makespan;
  EXPECT_EQ(tile % 1us, 0us);
  EXPECT_GE(tile, 10us);
  EXPECT_LE(tile, 1010us);
}

/// Returns the message about a file of tiles of 1 us and longer; empty if the file is right.
std::string mistake_with(const std::string& tiles) {
  const OwnFolder folder;
  std::ofstream("lab.yaml") << "schema: commfuse.lab/1\nname: a\npattern: fuse_ag\nranks: 4\nchunk: 1 KiB\n"
                               "rate: 1 GB/s\nlatency: 5 us\ntile: 1 us\n"
                            << tiles;
  return message_of([] { load_lab("lab.yaml"); });
}

// The longest of 2^32 lengths exceeds the shortest by 2^32 - 1 = 4,294,967,295 ps.
TEST(Lab, RefusesMoreLengthsOfTilesThan32BitsChoose) {
  const std::string refusal =
      "lab.yaml:10:12: 'tile_step' gives more than 4294967296 lengths from 'tile' to 'longest_tile'; choose a longer "
      "step";
  EXPECT_EQ(mistake_with("longest_tile: 10 ms\ntile_step: 1 ps\n"), refusal);
  EXPECT_EQ(mistake_with("longest_tile: 4295967296 ps\ntile_step: 1 ps\n"), refusal);
  EXPECT_EQ(mistake_with("longest_tile: 4295967295 ps\ntile_step: 1 ps\n"), "");
  EXPECT_EQ(mistake_with("longest_tile: 10 ms\ntile_step: 3 ps\n"), "");
}

TEST(Lab, TimesOutOfRangeAreRefused) {
  LabWorkload slow = lab("fa", 256);
  slow.rate.value = 1.0;
  try {
    run_lab(slow, {});
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_STREQ(error.what(),
                 "'fa': 256 ranks take up to 1.68e+07 s, over the limit of 1e+05 s; choose a smaller chunk, a higher "
                 "rate, shorter tiles or fewer ranks");
  }
}

std::string refusal_of(const LabWorkload& lab, const LabOptions& options) {
  return test::message_of([&] { run_lab(lab, options); });
}

TEST(Lab, RefusesMoreOpsThanFitInMemory) {
  EXPECT_EQ(
      refusal_of(lab("faj", 1 << 14), {}),
      "'faj': tiles of random length over 16384 ranks keep the time of each of 536854528 ops, 4.3 GB, and the limit "
      "is 1 GB; choose fewer ranks");
  LabOptions jittered;
  jittered.monte_carlo.jitter = std::make_shared<const JitterTables>(load_jitter("default"));
  jittered.monte_carlo.samples = 1;
  EXPECT_EQ(refusal_of(lab("ag", 1 << 13), jittered),
            "'ag': jitter over 8192 ranks keeps the times of each of 67100672 ops, 5.4 GB, and the limit is 1 GB; "
            "choose fewer ranks");
}

TEST(Lab, RefusesMoreOpsThanCanBeSimulatedOneByOne) {
  const std::string sentence =
      "'fa': 262144 ranks simulated individually have more than 17179869184 ops; choose fewer ranks, or use "
      "--symmetry on and --evaluator replay without faults";
  EXPECT_EQ(refusal_of(lab("fa", 1 << 18), {.simulation = {.symmetry = false}}), sentence);
  EXPECT_EQ(refusal_of(lab("fa", 1 << 18), {.simulation = {Evaluator::engine}}), sentence);
}

/// Calls `body` for every index, from the last to the first.
void backwards(std::size_t count, const std::function<void(std::size_t)>& body) {
  for (std::size_t i = count; i-- > 0;) {
    body(i);
  }
}

TEST(Lab, SamplesDoNotDependOnTheOrderInWhichTheyRun) {
  LabOptions options;
  options.monte_carlo.jitter = std::make_shared<const JitterTables>(load_jitter("default"));
  options.monte_carlo.samples = 5000;
  const std::optional<Tails> in_order = run_lab(lab("fa", 8), options).tails;
  ASSERT_TRUE(in_order);
  options.for_each = backwards;
  EXPECT_EQ(run_lab(lab("fa", 8), options).tails, in_order);
}

TEST(Lab, AnotherSeedDrawsOtherTiles) {
  LabWorkload random = lab("faj", 16);
  const Duration first = run_lab(random, {}).makespan;
  random.seed = 2;
  EXPECT_NE(run_lab(random, {}).makespan, first);
}

TEST(Lab, EveryWorkloadIsProvedForFewAndManyRanks) {
  for (const char* name : {"ag", "ar", "fa", "faj"}) {
    for (const std::int32_t ranks : {1, 2, 3, 8, 100}) {
      EXPECT_TRUE(check_program(lab_program(lab(name, ranks))).ok()) << name << ' ' << ranks;
    }
  }
}

TEST(Lab, OneRankRepresentsAllUnlessForbiddenOrRanksDiffer) {
  EXPECT_TRUE(run_lab(lab("fa", 8), {}).simulated_one_rank);
  EXPECT_FALSE(run_lab(lab("fa", 8), {.simulation = {.symmetry = false}}).simulated_one_rank);
  EXPECT_FALSE(run_lab(lab("faj", 8), {}).simulated_one_rank);
}

TEST(Lab, ASlowRankDelaysTheRingOnlyByItsOwnTiles) {
  // Rank 1 takes 12 us per tile. No rank waits for tiles, and messages are hidden: 8 x 12 us.
  const auto faults = std::make_shared<const Faults>(Faults{.slow_ranks = {{.rank = 1, .factor = 1.2}}});
  EXPECT_EQ(run_lab(lab("fa", 8), {.faults = faults}).makespan, 96us);
  EXPECT_THROW(run_lab(lab("fa", 8), {.simulation = {Evaluator::replay}, .faults = faults}), ConfigError);
}

TEST(Lab, ASlowLinkDelaysEveryStepOfAnAllGather) {
  // In every step a rank waits for its neighbours, so each of the 7 steps takes as long as the step over the slow link.
  const auto faults = std::make_shared<const Faults>(Faults{.slow_links = {{.link = {0, 1}, .factor = 2.0}}});
  EXPECT_EQ(run_lab(lab("ag", 8), {.faults = faults}).makespan.count(), 7 * 2 * (500'000 + 610'353));
}

}  // namespace
}  // namespace commfuse::test
