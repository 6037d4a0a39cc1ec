// SPDX-License-Identifier: Apache-2.0
#include "model/hardware/raised.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <thread>

#include "model/config/catalogue.h"
#include "model/cost/communication.h"
#include "tests/shipped.h"

namespace commfuse {
namespace {

using test::shipped_machine;

TEST(Raised, EveryParameterIsNamedUniquelyByItsPlaceInTheFile) {
  const std::vector<NamedParameter> parameters = parameters_of(shipped_machine("clusters/dgx-h100-x2.yaml"));
  std::set<std::string> names;
  for (const NamedParameter& parameter : parameters) {
    EXPECT_TRUE(names.insert(parameter.name).second) << parameter.name;
  }
  for (const char* name :
       {"accelerator.hbm_bandwidth", "accelerator.matrix_units.bf16.gemm.loop_efficiency",
        "accelerator.attention.overhead", "link.peer.rate", "link.collective.nccl.ll.fill_size",
        "link.collective.nccl.nvls.rate", "network.peer.latency", "network.collective.tree.level_latency"}) {
    EXPECT_TRUE(names.contains(name)) << name;
  }
}

TEST(Raised, ChangesOnlyOneParameter) {
  const Machine h100 = shipped_machine("hardware/h100-sxm.yaml");
  const Machine higher = raised(h100, "link.peer.rate", 0.25);
  EXPECT_EQ(higher.link.peer.rate.value.value, 1.25 * h100.link.peer.rate.value.value);
  EXPECT_EQ(higher.link.peer.latency.value, h100.link.peer.latency.value);
  const std::vector<NamedParameter> parameters = parameters_of(h100);
  for (const NamedParameter& parameter : parameters) {  // a change by 0 keeps every value
    EXPECT_EQ(raised(h100, parameter.name, 0.0).link.collective.nccl->ll.rate.value.value,
              h100.link.collective.nccl->ll.rate.value.value);
  }
  // Raising a parameter does not change the data that the machine shares with its copies.
  const Machine ll = raised(h100, "link.collective.nccl.ll.rate", 0.5);
  EXPECT_EQ(ll.link.collective.nccl->ll.rate.value.value, 1.5 * h100.link.collective.nccl->ll.rate.value.value);
  EXPECT_NE(ll.link.collective.nccl, h100.link.collective.nccl);
}

TEST(Raised, RoundsTimesToAPicosecond) {
  Machine h100 = shipped_machine("hardware/h100-sxm.yaml");
  h100.link.peer.latency.value = Duration{333};
  EXPECT_EQ(raised(h100, "link.peer.latency", 0.01).link.peer.latency.value, Duration{336});
}

TEST(Raised, RatesOfPairsAndGroupsMoveWithTheLink) {
  const Machine mesh = shipped_machine("hardware/pcie-rtx-pro-6000.yaml");
  ASSERT_NE(mesh.pair_peers, nullptr);
  ASSERT_NE(mesh.group_collectives, nullptr);
  const Machine higher = raised(mesh, "link.peer.rate", 0.5);
  for (std::size_t kind = 0; kind < mesh.pair_peers->kinds.size(); ++kind) {
    EXPECT_EQ(higher.pair_peers->kinds[kind].rate.value.value, 1.5 * mesh.pair_peers->kinds[kind].rate.value.value);
  }
  const Machine faster = raised(mesh, "link.collective.rate", 0.5);
  for (std::size_t group = 0; group < mesh.group_collectives->size(); ++group) {
    EXPECT_EQ((*faster.group_collectives)[group].rate.value.value,
              1.5 * (*mesh.group_collectives)[group].rate.value.value);
  }
}

TEST(Raised, PartsWithoutTheParameterAreShared) {
  const Machine rack = shipped_machine("clusters/gb200-nvl72-x2.yaml");
  ASSERT_NE(rack.network_groups, nullptr);
  const Machine hotter = raised(rack, "accelerator.hbm_bandwidth", 0.1);
  EXPECT_EQ(hotter.network_groups, rack.network_groups);
  EXPECT_EQ(hotter.link.collective.nccl, rack.link.collective.nccl);
  const Machine faster = raised(rack, "network.collective.rate", 0.1);
  EXPECT_NE(faster.network_groups, rack.network_groups);
  EXPECT_EQ(faster.link.collective.nccl, rack.link.collective.nccl);
}

TEST(Raised, OnlyParametersWithAnErrorAreUncertain) {
  const Machine h100 = shipped_machine("hardware/h100-sxm.yaml");
  const std::vector<NamedParameter> parameters = parameters_of(h100);
  const std::vector<RaisedMachine> uncertain = raised_by_error(h100);
  EXPECT_EQ(uncertain.size(),
            static_cast<std::size_t>(std::count_if(parameters.begin(), parameters.end(), [](const auto& parameter) {
              return parameter.standard_error > 0.0;
            })));
  EXPECT_GT(uncertain.size(), 20U);
}

TEST(Raised, StepsLeaveOutQuantization) {
  const Machine h100 = shipped_machine("hardware/h100-sxm.yaml");
  const auto is_of_quantization = [](const RaisedMachine& uncertain) {
    return uncertain.affects == AffectedOps::quantization;
  };
  const std::vector<RaisedMachine> all_uncertain = raised_by_error(h100);
  const std::vector<RaisedMachine> of_steps = raised_for_steps(h100);
  EXPECT_GT(std::ranges::count_if(all_uncertain, is_of_quantization), 5);
  EXPECT_EQ(std::ssize(of_steps), std::ssize(all_uncertain) - std::ranges::count_if(all_uncertain, is_of_quantization));
  EXPECT_TRUE(std::ranges::none_of(of_steps, [&](const RaisedMachine& uncertain) {
    return is_of_quantization(uncertain) || (*uncertain.machine).accelerator.quantization.has_value();
  }));
}

TEST(Raised, DecodingIsLeftOutBesideIt) {
  const Machine h100 = shipped_machine("hardware/h100-sxm.yaml");
  const auto is_of_decoding = [](const RaisedMachine& uncertain) {
    return uncertain.affects == AffectedOps::decoding || uncertain.affects == AffectedOps::experts ||
           uncertain.affects == AffectedOps::quantization;
  };
  const std::vector<RaisedMachine> all_uncertain = raised_by_error(h100);
  const std::vector<RaisedMachine> others = raised_beside_decoding(h100);
  EXPECT_GT(std::ranges::count_if(all_uncertain, is_of_decoding), 20);
  EXPECT_EQ(std::ranges::count_if(others, is_of_decoding), 0);
  EXPECT_EQ(std::ssize(others), std::ssize(all_uncertain) - std::ranges::count_if(all_uncertain, is_of_decoding));
}

TEST(Raised, MachinesAreMadeOnceAndSharedByCopies) {
  const Machine h100 = shipped_machine("hardware/h100-sxm.yaml");
  const std::vector<NamedParameter> parameters = parameters_of(h100);
  const std::vector<RaisedMachine> uncertain = raised_by_error(h100);
  for (const RaisedMachine& raised_machine : uncertain) {
    const RaisedMachine copy = raised_machine;
    const Machine* read_by_thread = nullptr;
    std::thread([&] { read_by_thread = &*copy.machine; }).join();
    EXPECT_EQ(read_by_thread, &*raised_machine.machine);
    const NamedParameter& parameter = parameters[copy.parameter];
    EXPECT_EQ(read_by_thread->accelerator.hbm_bandwidth.value.value,
              raised(h100, parameter.name, parameter.standard_error).accelerator.hbm_bandwidth.value.value);
  }
  const MachineOnDemand given(h100);
  EXPECT_EQ((*given).name, "h100-sxm");
}

TEST(Raised, PartsWithoutTheParameterStayShared) {
  const Machine h100 = shipped_machine("hardware/h100-sxm.yaml");
  EXPECT_EQ(raised(h100, "link.collective.rate", 0.1).link.collective.nccl, h100.link.collective.nccl);
  EXPECT_NE(raised(h100, "link.collective.nccl.ll.rate", 0.1).link.collective.nccl, h100.link.collective.nccl);
}

TEST(RaisedDeathTest, AnUnknownNameIsAProgrammingError) {
  const Machine h100 = shipped_machine("hardware/h100-sxm.yaml");
  EXPECT_DEATH(raised(h100, "link.peer.speed", 0.1), "the machine has this parameter");
}

}  // namespace
}  // namespace commfuse
