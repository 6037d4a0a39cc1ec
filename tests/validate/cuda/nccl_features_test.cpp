// SPDX-License-Identifier: Apache-2.0
// Tests which features NCCL has by version: header and library both matter, and a missing feature is reported.
#include "validate/cuda/nccl_features.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

namespace commfuse::validate {
namespace {

/// Returns the same version for header and library.
NcclVersions same_versions(int major, int minor, int patch) {
  return {nccl_code(major, minor, patch), nccl_code(major, minor, patch)};
}

TEST(NcclFeatures, VersionsAreCountedAsNcclDoes) {
  EXPECT_EQ(nccl_code(2, 28, 9), 22809);
  EXPECT_EQ(nccl_in_words(22809), "2.28.9");
  EXPECT_EQ(nccl_in_words(nccl_code(2, 30, 7)), "2.30.7");
}

TEST(NcclFeatures, AFeatureNeedsTheHeaderAndTheLibrary) {
  EXPECT_TRUE(has({22809, 22809}, NcclFeature::all_to_all));
  EXPECT_FALSE(has({22809, 22703}, NcclFeature::all_to_all));
  EXPECT_FALSE(has({22703, 22809}, NcclFeature::all_to_all));
  EXPECT_FALSE(has({22802, 22802}, NcclFeature::all_to_all));  // it came with 2.28.3
  EXPECT_TRUE(has(same_versions(2, 19, 3), NcclFeature::registration));
  EXPECT_FALSE(has(same_versions(2, 18, 6), NcclFeature::registration));
  EXPECT_FALSE(has(same_versions(2, 28, 9), NcclFeature::graph_usage));
  EXPECT_TRUE(has(same_versions(2, 29, 2), NcclFeature::graph_usage));
}

TEST(NcclFeatures, RefusesVersionsWithoutCommunicatorSplits) {
  EXPECT_EQ(refused({}, {22809, 21703}), "NCCL 2.17.3 cannot give every lane a communicator; install 2.18 or later");
  EXPECT_EQ(refused({}, {22809, 21801}), "");
}

TEST(NcclFeatures, PutsNeedTheLibraryAndWindowsOfTheHeader) {
  EXPECT_TRUE(has({22809, 22902}, NcclFeature::put_signal));
  EXPECT_FALSE(has({22809, 22901}, NcclFeature::put_signal));
  EXPECT_FALSE(has({22605, 23007}, NcclFeature::put_signal));
  EXPECT_EQ(refused({.puts = true}, {22809, 23007}), "");
  EXPECT_EQ(refused({.puts = true}, {22809, 22809}),
            "NCCL 2.28.9 has no ncclPutSignal; install 2.29.2 or later, or exchange by messages");
  EXPECT_EQ(
      refused({.puts = true}, {22605, 23007}),
      "the plugin was compiled for NCCL 2.26.5, which has no windows to put into; compile it for 2.27.0 or later, "
      "or exchange by messages");
  EXPECT_EQ(refused({.puts = true, .graphs = true}, {23007, 23007}).find("the host counts signals of puts"), 0U);
}

TEST(NcclFeatures, WindowsAreRegisteredOnRequest) {
  const NetworkOptions windows{.registered = true, .windows = true};
  EXPECT_TRUE(registers_windows(windows, same_versions(2, 27, 0)));
  EXPECT_FALSE(registers_windows(windows, same_versions(2, 26, 5)));
  EXPECT_FALSE(registers_windows({.registered = true}, same_versions(2, 30, 7)));
  EXPECT_TRUE(registers_windows({.cta_policy = 2, .registered = true}, same_versions(2, 28, 3)));
  EXPECT_FALSE(registers_windows({.cta_policy = 2, .registered = true}, same_versions(2, 27, 5)));
  EXPECT_TRUE(registers_windows({.cta_policy = 2}, same_versions(2, 28, 3)));  // NCCL needs windows for the policy
  EXPECT_FALSE(registers_windows({.cta_policy = 2}, same_versions(2, 27, 5)));
  EXPECT_FALSE(registers_windows({.cta_policy = 1}, same_versions(2, 30, 7)));
  EXPECT_TRUE(registers_windows({.puts = true}, same_versions(2, 29, 2)));
  EXPECT_EQ(
      notes_on(windows, same_versions(2, 26, 5)),
      std::vector<std::string>{
          "NCCL 2.26.5 has no symmetric windows, so buffers are registered without windows; use 2.27.0 or later"});
  EXPECT_EQ(notes_on(windows, same_versions(2, 28, 9)), std::vector<std::string>{});
}

TEST(NcclFeatures, NothingIsNotedWhereAllOptionsHaveTheirEffect) {
  const NetworkOptions every_option{
      .max_ctas = 8, .least_p2p_channels = 32, .nvls = false, .cta_policy = 2, .registered = true};
  EXPECT_EQ(notes_on(every_option, same_versions(2, 28, 9)), std::vector<std::string>{});
}

TEST(NcclFeatures, UnsupportedOptionsOfAVersionAreNoted) {
  const std::vector<std::string> expected{
      "NCCL 2.18.5 cannot register buffers, so they are copied; use 2.19.0 or later",
      "NCCL 2.18.5 has no CTA policy, so the default is used; use 2.27.0 or later",
      "NCCL 2.18.5 keeps no order among communicators, so lanes may wait; use 2.26.0 or later",
  };
  EXPECT_EQ(notes_on({.cta_policy = 1, .registered = true}, same_versions(2, 18, 5)), expected);
}

TEST(NcclFeatures, CollectivesWithoutCtasNeedALaterNcclThanOtherPolicies) {
  const std::vector<std::string> expected{
      "NCCL 2.27.5 has no collectives without CTAs, so the default is used; use 2.28.3 or later"};
  EXPECT_EQ(notes_on({.cta_policy = 2}, same_versions(2, 27, 5)), expected);
  EXPECT_EQ(notes_on({.cta_policy = 1}, same_versions(2, 27, 5)), std::vector<std::string>{});
}

TEST(NcclFeatures, AHeaderOfAnotherMinorVersionIsNoted) {
  EXPECT_EQ(notes_on({}, {22809, 23007}), std::vector<std::string>{"compiled for NCCL 2.28.9, running with 2.30.7"});
  EXPECT_EQ(notes_on({}, {22803, 22809}), std::vector<std::string>{});
}

TEST(NcclFeatures, ProcessVariablesSetLaunchOrderAndChannels) {
  const std::vector<NcclVariable> plain{{"NCCL_LAUNCH_ORDER_IMPLICIT", "1", false}};
  EXPECT_EQ(process_variables({}), plain);
  std::vector<NcclVariable> tuned = plain;
  tuned.push_back({"NCCL_MIN_P2P_NCHANNELS", "32", true});
  EXPECT_EQ(process_variables({.least_p2p_channels = 32}), tuned);
}

TEST(NcclFeatures, GraphsDoNotMixWhereNcclSupportsIt) {
  const NetworkOptions graphs{.graphs = true};
  EXPECT_EQ(graph_usage_mode(graphs, same_versions(2, 26, 0)), std::nullopt);
  EXPECT_EQ(graph_usage_mode(graphs, same_versions(2, 28, 9)), std::nullopt);
  EXPECT_EQ(graph_usage_mode(graphs, same_versions(2, 29, 2)), 1);
  EXPECT_EQ(graph_usage_mode(graphs, same_versions(2, 30, 3)), 1);
  EXPECT_EQ(graph_usage_mode(graphs, same_versions(2, 30, 7)), 1);
  EXPECT_EQ(graph_usage_mode(graphs, {22809, 23007}), std::nullopt);  // the header's structure lacks the field
  EXPECT_EQ(graph_usage_mode({}, same_versions(2, 30, 7)), std::nullopt);
}

// NCCL allows NCCL_GRAPH_STREAM_ORDERING=0 only without mixing, and with one operation at a time on a GPU; lanes
// overlap.
TEST(NcclFeatures, TheOrderOfGraphsIsLeftToNccl) {
  for (const bool graphs : {false, true}) {
    for (const NcclVariable& variable : process_variables({.graphs = graphs})) {
      EXPECT_NE(variable.name, "NCCL_GRAPH_STREAM_ORDERING");
    }
  }
}

TEST(NcclFeatures, CostsOfGraphsAreNoted) {
  const std::vector<std::string> mixing{
      "NCCL 2.28.9 adds nodes to graphs that order them among other operations, which costs time; use 2.29.2 or later"};
  EXPECT_EQ(notes_on({.graphs = true}, same_versions(2, 28, 9)), mixing);
  const std::vector<std::string> ordered{
      "NCCL 2.30.7 runs captured operations one after another, so lanes wait for each other in a graph; use another "
      "launch "
      "mode to see them overlap"};
  EXPECT_EQ(notes_on({.graphs = true}, same_versions(2, 30, 7)), ordered);
  EXPECT_EQ(notes_on({.graphs = true}, same_versions(2, 29, 2)), std::vector<std::string>{});
  EXPECT_EQ(notes_on({}, same_versions(2, 30, 7)), std::vector<std::string>{});
}

TEST(NcclFeatures, WithoutNvlsAllOtherAlgorithmsRemain) {
  EXPECT_EQ(algorithms_without_nvls({.nvls = false}), "^NVLS,NVLSTree");
  EXPECT_EQ(algorithms_without_nvls({}), "");
}

}  // namespace
}  // namespace commfuse::validate
