// SPDX-License-Identifier: Apache-2.0
// Tests readings of NVIDIA's management library, with functions of this file as the library.
#include "validate/health/management.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <map>
#include <string>

namespace commfuse::validate {
namespace {

/// A handle points to its index.
using Handle = const unsigned*;
constexpr std::array<unsigned, 2> indices{0, 1};
constexpr int not_supported = 3;

unsigned index_of(Handle handle) { return *handle; }

int start() { return 0; }
int version(char* text, unsigned size) {
  std::strncpy(text, "550.54.15", size);
  return 0;
}
int count(unsigned* gpus) {
  *gpus = 2;
  return 0;
}
int handle(unsigned index, Handle* device) {
  *device = &indices.at(index);
  return 0;
}
int name(Handle /*device*/, char* text, unsigned size) {
  std::strncpy(text, "NVIDIA H100 80GB HBM3", size);
  return 0;
}
int pci(Handle device, char* info) {
  const std::string address = index_of(device) == 0 ? "00000000:1B:00.0" : "00010000:C3:00.0";
  std::memcpy(info + 36, address.c_str(), address.size() + 1);
  return 0;
}
int clock(Handle /*device*/, unsigned which, unsigned* mhz) {
  *mhz = which == 1 ? 1980 : 2619;
  return 0;
}
int reasons(Handle device, unsigned long long* bits) {
  *bits = index_of(device) == 0 ? 0x1 : 0x40;
  return 0;
}
struct Utilization {
  unsigned gpu;
  unsigned memory;
};
int utilization(Handle device, Utilization* percent) {
  *percent = {index_of(device) == 0 ? 97U : 4000U, 12U};
  return 0;
}
int power(Handle /*device*/, unsigned* milliwatts) {
  *milliwatts = 650'500;
  return 0;
}
int power_limit(Handle /*device*/, unsigned* milliwatts) {
  *milliwatts = 700'000;
  return 0;
}
int errors(Handle device, unsigned kind, unsigned counter, unsigned long long* errors_out) {
  *errors_out = kind == 1 && counter == 0 ? index_of(device) : 99;
  return 0;
}
int rows(Handle device, unsigned* corrected, unsigned* uncorrected, unsigned* pending, unsigned* failed) {
  *corrected = *uncorrected = 7;
  *pending = index_of(device);
  *failed = 0;
  return 0;
}
int link(Handle device, unsigned which, unsigned* up) {
  *up = index_of(device) == 0 || which < 10 ? 1 : 0;
  return which < 12 ? 0 : not_supported;
}
int fabric(Handle device, unsigned char* info) {
  std::uint32_t version = 0;
  std::memcpy(&version, info, sizeof version);
  EXPECT_EQ(version, 0x02000024U);  // nvmlGpuFabricInfo_v2: version 2 of 36 bytes
  info[28] = index_of(device) == 0 ? 3 : 2;
  return 0;
}
int peer(Handle from, Handle to, unsigned capability, unsigned* status) {
  EXPECT_NE(from, to);
  *status = index_of(from) == 1 && capability == 1 ? 4 : 0;
  return 0;
}

template <class Function>
void* at(Function* function) {
  return reinterpret_cast<void*>(function);
}

std::map<std::string, void*> library() {
  return {{"nvmlInit_v2", at(start)},
          {"nvmlShutdown", at(start)},
          {"nvmlSystemGetDriverVersion", at(version)},
          {"nvmlDeviceGetCount_v2", at(count)},
          {"nvmlDeviceGetHandleByIndex_v2", at(handle)},
          {"nvmlDeviceGetName", at(name)},
          {"nvmlDeviceGetPciInfo_v3", at(pci)},
          {"nvmlDeviceGetClockInfo", at(clock)},
          {"nvmlDeviceGetCurrentClocksThrottleReasons", at(reasons)},
          {"nvmlDeviceGetUtilizationRates", at(utilization)},
          {"nvmlDeviceGetPowerUsage", at(power)},
          {"nvmlDeviceGetEnforcedPowerLimit", at(power_limit)},
          {"nvmlDeviceGetTotalEccErrors", at(errors)},
          {"nvmlDeviceGetRemappedRows", at(rows)},
          {"nvmlDeviceGetNvLinkState", at(link)},
          {"nvmlDeviceGetGpuFabricInfoV", at(fabric)},
          {"nvmlDeviceGetP2PStatus", at(peer)}};
}

FindFunction finds(const std::map<std::string, void*>& functions) {
  return [functions](const char* wanted) {
    const auto function = functions.find(wanted);
    return function == functions.end() ? nullptr : function->second;
  };
}

TEST(Management, PairsKeepTheirIndicesIfAGpuIsLost) {
  auto functions = library();
  functions["nvmlDeviceGetCount_v2"] = at(+[](unsigned* gpus) {
    *gpus = 3;
    return 0;
  });
  functions["nvmlDeviceGetHandleByIndex_v2"] = at(+[](unsigned index, Handle* device) {
    constexpr int lost = 15;
    static constexpr std::array<unsigned, 3> all_indices{0, 1, 2};
    *device = &all_indices.at(index);
    return index == 1 ? lost : 0;
  });
  const ManagementFacts facts = management_facts(finds(functions));
  EXPECT_EQ(facts.gpus.size(), 2U);
  ASSERT_EQ(facts.peers.size(), 2U);
  EXPECT_EQ(facts.peers[0].from, 0);
  EXPECT_EQ(facts.peers[0].to, 2);
  EXPECT_EQ(facts.peers[1].from, 2);
  EXPECT_EQ(facts.peers[1].to, 0);
}

TEST(Management, ReadsEveryGpuAndPair) {
  const ManagementFacts facts = management_facts(finds(library()));
  EXPECT_EQ(facts.missing, "");
  EXPECT_EQ(facts.driver, "550.54.15");
  ASSERT_EQ(facts.gpus.size(), 2U);
  const GpuFacts& first = facts.gpus[0];
  EXPECT_EQ(first.name, "NVIDIA H100 80GB HBM3");
  EXPECT_EQ(first.address, "0000:1b:00.0");
  EXPECT_EQ(first.clock_mhz, 1980);
  EXPECT_EQ(first.max_clock_mhz, std::nullopt);  // this library does not have the function
  EXPECT_EQ(first.throttled_by, 0x1U);
  EXPECT_EQ(first.busy_percent, 97);
  EXPECT_EQ(first.watts, 650.5);
  EXPECT_EQ(first.limit_watts, 700.0);
  EXPECT_EQ(first.default_watts, std::nullopt);
  EXPECT_EQ(facts.gpus[1].busy_percent, std::nullopt);  // 4,000% is not a percentage
  EXPECT_EQ(first.uncorrected, 0U);
  EXPECT_EQ(first.remap_pending, false);
  EXPECT_EQ(first.links, 12);
  EXPECT_EQ(first.links_up, 12);
  EXPECT_EQ(first.fabric, FabricState::completed);
  const GpuFacts& second = facts.gpus[1];
  EXPECT_EQ(second.address, "0000:c3:00.0");
  EXPECT_EQ(second.uncorrected, 1U);
  EXPECT_EQ(second.remap_pending, true);
  EXPECT_EQ(second.links_up, 10);
  EXPECT_EQ(second.fabric, FabricState::in_progress);
  ASSERT_EQ(facts.peers.size(), 2U);
  EXPECT_EQ(facts.peers[0].write, 0);
  EXPECT_EQ(facts.peers[1].from, 1);
  EXPECT_EQ(facts.peers[1].read, 0);
  EXPECT_EQ(facts.peers[1].write, 4);
}

TEST(Management, ALibraryThatDoesNotStartIsMissing) {
  const ManagementFacts none = management_facts(finds({}));
  EXPECT_EQ(none.missing, "NVIDIA's management library does not start: it has no nvmlInit_v2");
  EXPECT_TRUE(none.is_broken);
  const auto mismatch = []() { return 18; };
  EXPECT_EQ(management_facts(finds({{"nvmlInit_v2", at(static_cast<int (*)()>(mismatch))}})).missing,
            "NVIDIA's management library does not start: the kernel module is of another version");
}

TEST(Management, ALibraryThatOnlyStartsShowsNoGpu) {
  const ManagementFacts facts = management_facts(finds({{"nvmlInit_v2", at(start)}}));
  EXPECT_EQ(facts.missing, "");
  EXPECT_TRUE(facts.gpus.empty());
}

}  // namespace
}  // namespace commfuse::validate
