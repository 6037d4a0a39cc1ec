// SPDX-License-Identifier: Apache-2.0
// Tests files of configs/implementations: their content, their mistakes, and where an implementation can run.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "model/config/catalogue.h"
#include "model/config/implementation.h"
#include "model/config_error.h"
#include "tests/own_folder.h"

namespace commfuse {
namespace {

using namespace std::chrono_literals;

constexpr std::string_view loom_implementation = R"(schema: commfuse.implementation/1
name: loom
summary: "weaves shards into a GEMM"
use: "pip install loom"
known_as: [weaver, loom_v2]
strategy: sliced
options: {slices: 4}
transport: tma
supports:
  sites: [ag_gemm, gemm_rs]
  dtypes: [bf16, fp8]
  ranks: 16
  nodes: 2
  generations: [hopper, blackwell]
fit: [per_call, gemm_rs.rate]
measured_on:
  blackwell:
    gemm_rs:
      per_call: {value: 7 us, provenance: "measured: b"}
costs:
  residual: {value: 0.11, provenance: "prior: a"}
  ag_gemm:
    per_call: {value: 20 us, error: 0.5, provenance: "prior: a"}
    sms: {value: 16, provenance: "published: a"}
  gemm_rs:
    per_call: {value: 9 us, error: 0.25, provenance: "prior: a"}
    cut_cost: {value: 0.5, provenance: "prior: a"}
    rate: {value: 90 GB/s, error: 0.1, provenance: "fitted: a"}
    separate_sum: {value: 1, provenance: "published: a"}
    sum_time: {value: 2.5, provenance: "published: a"}
    host_per_call: {value: 5, provenance: "published: a"}
    host_per_step: {value: 2, provenance: "published: a"}
without:
  weavers/loom/issues/7:
    costs:
      ag_gemm:
        rate_share: {value: 0.5, provenance: "fitted: b"}
)";

/// Loads texts as loom.yaml, in a separate folder.
class LoadImplementationTest : public ::testing::Test {
 protected:
  static std::shared_ptr<const Implementation> loaded(std::string_view text) {
    std::ofstream("loom.yaml", std::ios::binary) << text;
    return load_implementation("./loom.yaml");
  }
  /// Returns the example with one string in place of another.
  static std::string with(std::string_view from, std::string_view to) {
    std::string text(loom_implementation);
    const std::size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    return at == std::string::npos ? text : text.replace(at, from.size(), to);
  }
  /// Returns the message about the changed example.
  static std::string refusal(std::string_view from, std::string_view to) {
    try {
      loaded(with(from, to));
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "accepted";
  }

  OwnFolder folder_;
};

const ImplementedSites& on(const ImplementationCosts& costs, NcclGeneration generation) {
  return costs.generations[static_cast<std::size_t>(generation)];
}

TEST_F(LoadImplementationTest, EveryFileOfTheCatalogueLoadsUnderItsOwnName) {
  const std::vector<std::string> names = known_names(Catalogue::implementations);
  EXPECT_GE(names.size(), 11U);
  for (const std::string& name : names) {
    const auto implementation = load_implementation(name);
    EXPECT_EQ(implementation->name, name);
    EXPECT_FALSE(implementation->summary.empty()) << name;
    EXPECT_FALSE(implementation->use.empty()) << name;
    for (const NcclGeneration generation : all_nccl_generations) {
      const bool runs = std::ranges::find(implementation->generations, generation) != implementation->generations.end();
      EXPECT_TRUE(runs || !implementation->costs.measured[static_cast<std::size_t>(generation)])
          << name << " was measured on " << name_of(generation) << ", which it does not support";
    }
    const auto has = [&](SiteKind kind) {
      return std::ranges::find(implementation->sites, kind) != implementation->sites.end();
    };
    for (const std::string& fitted : implementation->fitted) {
      EXPECT_TRUE(!fitted.starts_with("ag_gemm.") || has(SiteKind::ag_gemm)) << name << ": " << fitted;
      EXPECT_TRUE(!fitted.starts_with("gemm_rs.") || has(SiteKind::gemm_rs)) << name << ": " << fitted;
    }
  }
}

TEST_F(LoadImplementationTest, LoadsEveryKeyOfTheExample) {
  const auto loom = loaded(loom_implementation);
  EXPECT_EQ(loom->name, "loom");
  EXPECT_EQ(loom->summary, "weaves shards into a GEMM");
  EXPECT_EQ(loom->use, "pip install loom");
  EXPECT_EQ(loom->known_as, (std::vector<std::string>{"weaver", "loom_v2"}));
  EXPECT_EQ(loom->transport, Transport::tma);
  EXPECT_EQ(loom->strategy, &sliced_strategy);
  EXPECT_EQ(loom->options.slices, 4);
  EXPECT_TRUE(loom->fixed.has(Option::slices));
  EXPECT_FALSE(loom->fixed.has(Option::form));
  EXPECT_EQ(loom->sites, (std::vector{SiteKind::ag_gemm, SiteKind::gemm_rs}));
  EXPECT_EQ(loom->dtypes, (std::vector{DType::bf16, DType::fp8}));
  EXPECT_EQ(loom->max_ranks, 16);
  EXPECT_EQ(loom->max_nodes, 2);
  EXPECT_EQ(loom->generations, (std::vector{NcclGeneration::hopper, NcclGeneration::blackwell}));
  EXPECT_EQ(loom->fitted, (std::vector<std::string>{"per_call", "gemm_rs.rate"}));

  const ImplementedSites& sites = on(loom->costs, NcclGeneration::hopper);
  EXPECT_EQ(sites.name, "loom");
  EXPECT_EQ(sites.residual.value, 0.11);
  EXPECT_EQ(sites.ag_gemm.per_call.value, Duration{20us});
  EXPECT_EQ(sites.ag_gemm.per_call.standard_error, 0.5);
  EXPECT_EQ(sites.ag_gemm.per_call.provenance, Provenance::prior);
  EXPECT_EQ(sites.ag_gemm.per_call.source, "a");
  EXPECT_EQ(sites.ag_gemm.sms.value, 16);
  EXPECT_EQ(sites.gemm_rs.per_call.value, Duration{9us});
  EXPECT_EQ(sites.gemm_rs.cut_cost.value, 0.5);
  ASSERT_TRUE(sites.gemm_rs.rate);
  EXPECT_EQ(sites.gemm_rs.rate->value, BytesPerSecond{90e9});
  EXPECT_EQ(sites.gemm_rs.separate_sum.value, 1);
  EXPECT_EQ(sites.gemm_rs.sum_time.value, 2.5);
  EXPECT_EQ(sites.gemm_rs.host_per_call.value, 5);
  EXPECT_EQ(sites.gemm_rs.host_per_step.value, 2);
}

TEST_F(LoadImplementationTest, OmittedKeysHaveTheValuesOfIdealKernels) {
  const auto loom = loaded(loom_implementation);
  const ImplementedSite& site = on(loom->costs, NcclGeneration::hopper).ag_gemm;
  EXPECT_EQ(site.per_step.value, Duration{});
  EXPECT_EQ(site.product_time.value, 1.0);
  EXPECT_EQ(site.cut_cost.value, 0.0);
  EXPECT_FALSE(site.rate);
  EXPECT_EQ(site.separate_sum.value, 0);
  EXPECT_EQ(on(loaded(with("  residual: {value: 0.11, provenance: \"prior: a\"}\n", ""))->costs, NcclGeneration::hopper)
                .residual.value,
            0.25);
  EXPECT_EQ(loaded(with("  nodes: 2\n", ""))->max_nodes, 1);
  EXPECT_TRUE(loaded(with("known_as: [weaver, loom_v2]\n", ""))->known_as.empty());
  EXPECT_TRUE(loaded(with("fit: [per_call, gemm_rs.rate]\n", ""))->fitted.empty());
}

TEST_F(LoadImplementationTest, ElsewhereIsTheResidualWithoutMeasurements) {
  const auto residual = [](const std::string& text, NcclGeneration generation) {
    return on(loaded(text)->costs, generation).residual.value;
  };
  const std::string wide = with("  ag_gemm:\n", "  elsewhere: {value: 0.4, provenance: \"prior: a\"}\n  ag_gemm:\n");
  EXPECT_EQ(residual(wide, NcclGeneration::blackwell), 0.11);  // measured on Blackwell
  EXPECT_EQ(residual(wide, NcclGeneration::hopper), 0.4);
  const std::string narrow = with("  ag_gemm:\n", "  elsewhere: {value: 0.05, provenance: \"prior: a\"}\n  ag_gemm:\n");
  EXPECT_EQ(residual(narrow, NcclGeneration::hopper), 0.11);  // no surer than with measurements
}

TEST_F(LoadImplementationTest, OnlyMultimemSumsInTheSwitch) {
  EXPECT_FALSE(on(loaded(loom_implementation)->costs, NcclGeneration::hopper).gemm_rs.sums_in_switch);
  const auto multimem = loaded(with("transport: tma", "transport: multimem"));
  EXPECT_TRUE(on(multimem->costs, NcclGeneration::hopper).gemm_rs.sums_in_switch);
  EXPECT_FALSE(on(multimem->costs, NcclGeneration::hopper).ag_gemm.sums_in_switch);
}

TEST_F(LoadImplementationTest, MeasuredOnOverridesCostsWhichOverrideTheTransport) {
  const auto loom = loaded(loom_implementation);
  // Values measured on one generation hold only for that generation.
  const ImplementedSites& blackwell = on(loom->costs, NcclGeneration::blackwell);
  EXPECT_EQ(blackwell.gemm_rs.per_call.value, Duration{7us});
  EXPECT_EQ(blackwell.gemm_rs.per_call.provenance, Provenance::measured);
  EXPECT_EQ(blackwell.gemm_rs.rate->value, BytesPerSecond{90e9});
  EXPECT_EQ(blackwell.ag_gemm.per_call.value, Duration{20us});
  EXPECT_EQ(on(loom->costs, NcclGeneration::ampere).gemm_rs.per_call.value, Duration{9us});
  // ParallelKittens: TMA moves 350 of 450 GB/s on H100, 669 of 900 on B200.
  EXPECT_EQ(on(loom->costs, NcclGeneration::hopper).ag_gemm.rate_share.value, 350.0 / 450.0);
  EXPECT_EQ(blackwell.ag_gemm.rate_share.value, 669.0 / 900.0);
  EXPECT_EQ(blackwell.ag_gemm.rate_share.provenance, Provenance::published);
  const auto with_rate_share = loaded(with("    sms: {value: 16, provenance: \"published: a\"}\n",
                                           "    rate_share: {value: 0.6, provenance: \"prior: a\"}\n"));
  EXPECT_EQ(on(with_rate_share->costs, NcclGeneration::hopper).ag_gemm.rate_share.value, 0.6);
  EXPECT_EQ(on(with_rate_share->costs, NcclGeneration::hopper).gemm_rs.rate_share.value, 350.0 / 450.0);
  EXPECT_EQ(on(loaded(with("tma", "nccl"))->costs, NcclGeneration::hopper).ag_gemm.rate_share.value, 1.0);
}

TEST_F(LoadImplementationTest, MeasuredOnNamesTheMeasuredGenerations) {
  const auto loom = loaded(loom_implementation);
  EXPECT_TRUE(loom->costs.was_measured_on(load_machine("b200-sxm")));
  EXPECT_FALSE(loom->costs.was_measured_on(load_machine("h100-sxm")));
  EXPECT_FALSE(loom->costs.was_measured_on(load_machine("ascend-910b-mesh")));  // Ascend has no NCCL.
  EXPECT_EQ(loom->costs.on(load_machine("b200-sxm")).gemm_rs.per_call.value, Duration{7us});
  EXPECT_EQ(loom->costs.on(load_machine("h100-sxm")).gemm_rs.per_call.value, Duration{9us});
}

TEST_F(LoadImplementationTest, CostsWithoutAThreadIgnoreTheOtherCosts) {
  const auto loom = loaded(loom_implementation);
  ASSERT_EQ(loom->without.size(), 1U);
  EXPECT_EQ(loom->without.begin()->first, "weavers/loom/issues/7");
  const ImplementedSites& sites = on(loom->without.begin()->second, NcclGeneration::hopper);
  EXPECT_EQ(sites.name, "loom");
  EXPECT_EQ(sites.ag_gemm.rate_share.value, 0.5);
  EXPECT_EQ(sites.gemm_rs.rate_share.value, 350.0 / 450.0);  // The share of the transport still applies.
  EXPECT_EQ(sites.ag_gemm.per_call.value, Duration{});
  EXPECT_FALSE(sites.gemm_rs.rate);
}

TEST_F(LoadImplementationTest, AcceptsNamesSeparatedByCommasAllOrNone) {
  const auto names = [](std::string_view as) {
    std::vector<std::string> chosen;
    for (const auto& implementation : load_implementations(as)) {
      chosen.push_back(implementation->name);
    }
    return chosen;
  };
  EXPECT_EQ(names("none"), std::vector<std::string>{});
  EXPECT_EQ(names(""), std::vector<std::string>{});
  EXPECT_EQ(names("te,flux"), (std::vector<std::string>{"te", "flux"}));
  EXPECT_EQ(names("all"), known_names(Catalogue::implementations));
  EXPECT_THROW(load_implementations("flux,te2"), ConfigError);
}

TEST_F(LoadImplementationTest, UnknownKeysAndWordsAreNamedWithTheirPlace) {
  EXPECT_EQ(refusal("strategy: sliced", "strategy: slicd"),
            "./loom.yaml:6:11: unknown strategy 'slicd'; did you mean 'sliced'?");
  EXPECT_EQ(refusal("transport: tma", "transport: dma"),
            "./loom.yaml:8:12: unknown transport 'dma'; did you mean 'tma'?");
  EXPECT_EQ(refusal("[ag_gemm, gemm_rs]", "[ag_gemm, gemm_ag]"),
            "./loom.yaml:10:10: unknown site 'gemm_ag'; did you mean 'gemm_ar'?");
  EXPECT_EQ(refusal("[hopper, blackwell]", "[hoper]"),
            "./loom.yaml:14:16: unknown generation 'hoper'; did you mean 'hopper'?");
  EXPECT_EQ(refusal("[bf16, fp8]", "[bf16, fp9]"), "./loom.yaml:11:11: unknown dtype 'fp9'; did you mean 'fp8'?");
  EXPECT_EQ(refusal("transport: tma", "transport: pigeon"),
            "./loom.yaml:8:12: unknown transport 'pigeon'; known transports: nccl, copy_engine, stores, tma, multimem, "
            "rdma");
  EXPECT_EQ(refusal("  blackwell:\n", "  rubin:\n"),
            "./loom.yaml:17:3: unknown key 'rubin'; known keys: volta, ampere, hopper, blackwell");
  EXPECT_EQ(refusal("summary:", "sumary: x\nsummary:"),
            "./loom.yaml:3:1: unknown key 'sumary'; did you mean 'summary'?");
  EXPECT_EQ(refusal("    sms:", "    smss:"), "./loom.yaml:24:5: unknown key 'smss'; did you mean 'sms'?");
}

TEST_F(LoadImplementationTest, SitesWithoutAScheduleOfTheStrategyAreRefused) {
  EXPECT_EQ(refusal("sliced\noptions: {slices: 4}\ntransport: tma\nsupports:\n  sites: [ag_gemm, gemm_rs]",
                    "async_tp\ntransport: tma\nsupports:\n  sites: [ag_gemm, gemm_ar]"),
            "./loom.yaml:9:10: strategy async_tp has no schedule for gemm_ar sites; remove gemm_ar, or choose another "
            "strategy");
}

TEST_F(LoadImplementationTest, AcceptsOnlyOptionsOfTheStrategy) {
  EXPECT_EQ(refusal("slices: 4", "reserved_sms: 4"),
            "./loom.yaml:7:25: sliced has no option 'reserved_sms'; remove it");
  EXPECT_EQ(refusal("slices: 4", "slice: 4"), "./loom.yaml:7:18: sliced has no option 'slice'; remove it");
  EXPECT_EQ(refusal("slices: 4", "slices: many"),
            "./loom.yaml:7:19: 'many' is not a whole number; write one, such as 4");
  EXPECT_EQ(refusal("{slices: 4}", "4"),
            "./loom.yaml:7:10: 'options' is not a map; write fields below it, as in \"options: {key: value}\"");
}

TEST_F(LoadImplementationTest, AcceptsEveryFormOfACountOfAnOption) {
  EXPECT_EQ(loaded(with("slices: 4", "slices: 1K"))->options.slices, 1024);
  EXPECT_EQ(loaded(with("slices: 4", "slices: 8.0"))->options.slices, 8);
  EXPECT_EQ(refusal("slices: 4", "slices: 2K"), "./loom.yaml:7:19: '2K' is out of range; choose 1 to 1K slices");
}

TEST_F(LoadImplementationTest, FittedKeysNameOnlyFittedParameters) {
  const auto not_fitted = [](const std::string& name) {
    return "./loom.yaml:15:6: unknown parameter '" + name +
           "'; choose from per_call, per_step, product_time, cut_cost, rate_share, rate, with a prefix such as "
           "ag_gemm. for one kind of site (ag_gemm, gemm_rs, gemm_ar)";
  };
  EXPECT_EQ(refusal("[per_call, gemm_rs.rate]", "[sms]"), not_fitted("sms"));
  EXPECT_EQ(refusal("[per_call, gemm_rs.rate]", "[mlp_ar.rate]"), not_fitted("mlp_ar.rate"));
  EXPECT_EQ(refusal("[per_call, gemm_rs.rate]", "[gemm_rs.x.rate]"), not_fitted("gemm_rs.x.rate"));
  EXPECT_EQ(refusal("[per_call, gemm_rs.rate]", "[gemm_rs]"), not_fitted("gemm_rs"));
  EXPECT_EQ(refusal("[per_call, gemm_rs.rate]", "[[per_call]]"),
            "./loom.yaml:15:6: fit must be a list of words, as in fit: [one, another]");
  EXPECT_EQ(refusal("[per_call, gemm_rs.rate]", "per_call"),
            "./loom.yaml:15:6: fit must be a list of words, as in fit: [one, another]");
  EXPECT_EQ(refusal("[per_call, gemm_rs.rate]", "[]"),
            "./loom.yaml:15:6: fit must be a list of words, as in fit: [one, another]");
  EXPECT_EQ(refusal("[per_call, gemm_rs.rate]", "[per_call, per_call]"),
            "./loom.yaml:15:6: 'per_call' is given twice; keep one of them");
  EXPECT_EQ(refusal("[per_call, gemm_rs.rate]", "[per_call, per_step, product_time, cut_cost, rate]"),
            "./loom.yaml:15:6: 5 parameters are too many for the few measured rows; keep at most 4");
}

TEST_F(LoadImplementationTest, MayHaveKernelsForExperts) {
  EXPECT_FALSE(loaded(loom_implementation)->experts);
  EXPECT_TRUE(loaded(with("  ranks: 16\n", "  ranks: 16\n  experts: true\n"))->experts);
  EXPECT_FALSE(loaded(with("  ranks: 16\n", "  ranks: 16\n  experts: false\n"))->experts);
  EXPECT_TRUE(load_implementation("flux")->experts);
}

TEST_F(LoadImplementationTest, MissingKeysAreNamed) {
  EXPECT_EQ(refusal("name: loom\n", ""), "./loom.yaml:1:1: missing key 'name'; add it, as in \"name: text\"");
  EXPECT_EQ(refusal("strategy: sliced\noptions: {slices: 4}\n", ""),
            "./loom.yaml:1:1: missing key 'strategy'; add it, as in \"strategy: text\"");
  EXPECT_EQ(refusal("  sites: [ag_gemm, gemm_rs]\n", ""), "./loom.yaml:10:3: sites is missing; write a list");
  EXPECT_EQ(refusal("sites: [ag_gemm, gemm_rs]", "sites: ag_gemm"),
            "./loom.yaml:10:10: sites must be a list of words, as in sites: [one, another]");
  EXPECT_EQ(refusal("  ranks: 16\n", ""),
            "./loom.yaml:10:3: missing key 'ranks' in 'supports'; add it, as in \"ranks: 8\"");
  EXPECT_EQ(
      refusal("provenance: \"published: a\"", "error: 0.1"),
      "./loom.yaml:24:10: missing key 'provenance' in 'costs.ag_gemm.sms'; add it, as in \"provenance: 'prior: why'\"");
  EXPECT_EQ(refusal("costs:\n", "cost:\n"), "./loom.yaml:20:1: unknown key 'cost'; did you mean 'costs'?");
  EXPECT_EQ(refusal("    costs:\n", "    cost:\n"), "./loom.yaml:35:5: unknown key 'cost'; did you mean 'costs'?");
}

TEST_F(LoadImplementationTest, NumbersHaveTheirRanges) {
  EXPECT_EQ(refusal("ranks: 16", "ranks: 1"), "./loom.yaml:12:10: 'ranks' is 1; choose 2 to 1024");
  EXPECT_EQ(refusal("nodes: 2", "nodes: 0"), "./loom.yaml:13:10: 'nodes' is 0; choose 1 to 4096");
  EXPECT_EQ(refusal("value: 20 us", "value: 20"),
            "./loom.yaml:23:23: '20' is not a time; write a number and a unit, as in \"5 us\"");
  EXPECT_EQ(refusal("cut_cost: {value: 0.5", "cut_cost: {value: 2.5"),
            "./loom.yaml:27:23: 'value' is 2.5; choose 0 to 2");
  EXPECT_EQ(refusal("rate_share: {value: 0.5", "rate_share: {value: 1.5"),
            "./loom.yaml:37:29: 'value' is 1.5; choose 0.001 to 1");
  EXPECT_EQ(refusal("separate_sum: {value: 1", "separate_sum: {value: 2"),
            "./loom.yaml:29:27: 'value' is 2; choose 0 to 1");
}

TEST_F(LoadImplementationTest, TwoFilesMustNotHaveTheSameName) {
  loaded(with("name: loom\n", "name: te\n"));
  try {
    load_implementations("flux,te,./loom.yaml");
    FAIL() << "accepted";
  } catch (const ConfigError& error) {
    EXPECT_STREQ(error.what(),
                 "'te' and './loom.yaml' are both implementations called 'te'; give one of them another name");
  }
  EXPECT_EQ(load_implementations("flux,./loom.yaml").size(), 2U);
}

TEST_F(LoadImplementationTest, AnotherSchemaIsRefused) {
  EXPECT_EQ(refusal("commfuse.implementation/1", "commfuse.implementation/2"),
            "./loom.yaml:1:9: schema is 'commfuse.implementation/2', but 'commfuse.implementation/1' is required here; "
            "give a file of that kind");
  EXPECT_EQ(refusal("commfuse.implementation/1", "commfuse.hardware/1"),
            "./loom.yaml:1:9: schema is 'commfuse.hardware/1', but 'commfuse.implementation/1' is required here; give "
            "a file of that kind");
}

TEST_F(LoadImplementationTest, ReportsWhereItCannotRun) {
  const auto loom = loaded(loom_implementation);
  const auto refusal_on = [&](const char* hardware, std::int32_t ranks, DType dtype) {
    return refusal_of(*loom, load_machine(hardware), ranks, dtype);
  };
  EXPECT_EQ(refusal_on("h100-sxm", 8, DType::bf16), "");
  EXPECT_EQ(refusal_on("dgx-h100-x2", 16, DType::fp8), "");
  EXPECT_EQ(refusal_on("a100-sxm-80", 8, DType::bf16), "loom does not run on a100-sxm-80; it is for hopper, blackwell");
  EXPECT_EQ(refusal_on("ascend-910b-mesh", 8, DType::bf16),
            "loom does not run on ascend-910b-mesh; it is for hopper, blackwell");
  EXPECT_EQ(refusal_on("gb200", 16, DType::bf16), "");
  EXPECT_EQ(refusal_on("dgx-h100-x2", 32, DType::bf16), "loom supports up to 16 ranks on 2 nodes; choose fewer ranks");
  EXPECT_EQ(refusal_on("h100-sxm", 8, DType::fp16), "loom has no kernels for fp16; choose bf16, fp8");
  const auto one_node = loaded(with("  nodes: 2\n", ""));
  EXPECT_EQ(refusal_of(*one_node, load_machine("dgx-h100-x2"), 16, DType::bf16),
            "loom supports up to 8 ranks on one node; choose fewer ranks");
  Machine small_nodes = load_machine("dgx-h100-x2");
  small_nodes.gpus_per_node = 1;
  EXPECT_EQ(refusal_of(*one_node, small_nodes, 2, DType::bf16),
            "loom supports up to 1 rank on one node; choose fewer ranks");
}

}  // namespace
}  // namespace commfuse
