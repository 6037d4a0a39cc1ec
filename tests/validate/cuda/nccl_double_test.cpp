// SPDX-License-Identifier: Apache-2.0
// Tests the network over a double of NCCL: the thread that launches, what ends a call that hangs, and the order in
// which memory is registered. Needs NCCL's header but no GPU.
#include <gtest/gtest.h>

#ifdef COMMFUSE_NCCL_DOUBLE

#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/software_gpu/nccl_double.h"
#include "tests/validate/thrown_by.h"
#include "validate/cuda/module/nccl_network.h"

namespace commfuse::validate {
namespace {

using test::NcclDouble;
using test::thrown_by;

SharedLibrary library_at(const char* path) {
  return SharedLibrary({.product = "NCCL", .sonames = {path}, .remedy = "build the double"});
}

class DeviceDouble final : public NcclDevice {
 public:
  void make_current() override {}
  [[nodiscard]] cudaStream_t stream_of(StreamId /*id*/) const override { return nullptr; }
  void take_memory_from(std::shared_ptr<MemorySource> source) override { source_ = std::move(source); }
  void take_plain_memory() override { source_.reset(); }
  void end_graphs() override {}

  [[nodiscard]] MemorySource& memory() { return *source_; }
  [[nodiscard]] std::shared_ptr<MemorySource> source() const { return source_; }

 private:
  std::shared_ptr<MemorySource> source_;
};

/// Connects rank 0 of two ranks through the double of NCCL, which accepts that rank 1 does not exist.
class NcclDoubleTest : public testing::Test {
 protected:
  explicit NcclDoubleTest(const char* path = COMMFUSE_NCCL_DOUBLE) : library_(library_at(path)), nccl_(library_) {
    test::NcclDoubleEntry entry = nullptr;
    library_.find(entry, test::nccl_double_entry);
    facts_ = &entry();
    facts_->slowness = std::chrono::milliseconds(5);
    facts_->hangs_in_init = facts_->hangs_in_group = facts_->hangs_in_register = facts_->hangs_in_finalize = false;
    facts_->communicators.clear();
    facts_->launches.clear();
    facts_->registrations.clear();
    facts_->aborts.clear();
    facts_->destroyed = 0;
    facts_->misuses.clear();
  }

  void TearDown() override {
    network_.reset();
    EXPECT_EQ(facts().misuses, std::vector<std::string>{});
  }

  [[nodiscard]] NcclDouble& facts() { return *facts_; }
  [[nodiscard]] Network& network() { return *network_; }
  [[nodiscard]] DeviceDouble& device() { return device_; }
  [[nodiscard]] const NcclLibrary& nccl() const { return nccl_; }

  void connect(const NetworkOptions& options = {}) {
    network_ = connect_nccl(nccl_, device_, make_nccl_key(nccl_), {.rank = 0, .ranks = 2}, options);
  }
  void disconnect() { network_.reset(); }

  void exchange(std::size_t lane) {
    const std::vector<MessageEnd> messages{{.peer = 1, .data = panel}};
    network().exchange(lane, StreamId{0}, messages, messages);
  }

  static constexpr Panel panel{.at = 4096, .rows = 2, .columns = 8, .stride = 8, .dtype = DType::bf16};

 private:
  SharedLibrary library_;
  NcclLibrary nccl_;
  NcclDouble* facts_ = nullptr;
  DeviceDouble device_;
  std::unique_ptr<Network> network_;
};

TEST_F(NcclDoubleTest, TheParentCommunicatorDoesNotBlockButThoseOfLanesDo) {
  connect();
  static_cast<void>(network().split(0));
  static_cast<void>(network().split(0));
  ASSERT_EQ(facts().communicators.size(), 3U);
  EXPECT_FALSE(facts().communicators[0].blocks);
  for (const std::size_t lane : {1U, 2U}) {
    EXPECT_TRUE(facts().communicators[lane].is_child);
    EXPECT_TRUE(facts().communicators[lane].blocks);
    EXPECT_FALSE(facts().communicators[lane].shares);
  }
}

TEST_F(NcclDoubleTest, GroupsLaunchInTheCallingThread) {
  connect();
  const std::size_t lane = network().split(0);
  exchange(lane);
  network().collective(lane, StreamId{0}, CollectiveKind::all_gather, panel, panel);
  network().collective(lane, StreamId{0}, CollectiveKind::all_to_all, panel, panel);
  ASSERT_EQ(facts().launches.size(), 3U);
  EXPECT_EQ(facts().launches[0].operations, (std::vector<std::string>{"send", "recv"}));
  EXPECT_EQ(facts().launches[1].operations, std::vector<std::string>{"all-gather"});
  EXPECT_EQ(facts().launches[2].operations, std::vector<std::string>{"all-to-all"});
  for (const test::NcclDoubleLaunch& launch : facts().launches) {
    EXPECT_EQ(launch.thread, std::this_thread::get_id());
  }
}

TEST_F(NcclDoubleTest, NonblockingGroupsLaunchInAThreadOfNccl) {
  connect({.blocking = false});
  exchange(network().split(0));
  ASSERT_EQ(facts().launches.size(), 1U);
  EXPECT_NE(facts().launches[0].thread, std::this_thread::get_id());
}

TEST_F(NcclDoubleTest, AHangingGroupIsAbortedByAnotherThread) {
  connect({.patience = std::chrono::milliseconds(100)});
  const std::size_t stuck = network().split(0);
  const std::size_t working = network().split(0);
  facts().hangs_in_group = true;
  EXPECT_EQ(
      thrown_by([&] { exchange(stuck); }),
      "an exchange by NCCL did not return within 0.1 s, so its communicator was aborted; check that all ranks are "
      "running");
  ASSERT_EQ(facts().aborts.size(), 1U);
  EXPECT_NE(facts().aborts[0], std::this_thread::get_id());

  facts().hangs_in_group = false;
  EXPECT_EQ(thrown_by([&] { exchange(stuck); }), "no such communicator of the network, or it was aborted");
  EXPECT_EQ(network().failure(), std::nullopt);
  exchange(working);
  network().abort();
  EXPECT_EQ(facts().aborts.size(), 3U);  // the other lane and the parent
}

TEST_F(NcclDoubleTest, CallsThatFinishInTimeAreNotAborted) {
  connect({.patience = std::chrono::milliseconds(40)});
  const std::size_t lane = network().split(0);
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(150);
  while (std::chrono::steady_clock::now() < end) {
    exchange(lane);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  disconnect();
  EXPECT_TRUE(facts().aborts.empty());
  EXPECT_EQ(facts().destroyed, 2);
}

TEST_F(NcclDoubleTest, AMissingRankEndsTheWaitForIt) {
  facts().hangs_in_init = true;
  EXPECT_EQ(thrown_by([&] { connect({.patience = std::chrono::milliseconds(50)}); }),
            "ncclCommInitRankConfig did not end within 0.05 s; check that all ranks are running");
  EXPECT_EQ(facts().aborts.size(), 1U);
}

TEST_F(NcclDoubleTest, AHangingFinalizeEndsInAnAbort) {
  connect({.patience = std::chrono::milliseconds(50)});
  static_cast<void>(network().split(0));
  facts().hangs_in_finalize = true;
  disconnect();
  EXPECT_EQ(facts().aborts.size(), 2U);
  EXPECT_EQ(facts().destroyed, 0);
}

TEST_F(NcclDoubleTest, MemoryIsRegisteredInTheOrderOfItsAllocation) {
  connect({.cta_policy = 2, .registered = true});
  std::vector<void*> at;
  for (const std::size_t pages : {3U, 1U, 2U}) {
    at.push_back(device().memory().allocate(pages * 4096));
  }
  ASSERT_TRUE(std::ranges::is_sorted(at, std::ranges::greater())) << "the double allocates at descending addresses";
  device().memory().release(at[1]);
  at[1] = device().memory().allocate(4 * 4096);
  static_cast<void>(network().split(0));
  ASSERT_EQ(facts().registrations.size(), 3U);
  std::vector<std::size_t> pages;
  for (const test::NcclDoubleRegistration& registration : facts().registrations) {
    EXPECT_TRUE(registration.window);
    pages.push_back(registration.bytes / 4096);
  }
  EXPECT_EQ(pages, (std::vector<std::size_t>{3, 2, 4}));
  const std::shared_ptr<MemorySource> memory = device().source();
  disconnect();
  std::ranges::for_each(at, [&](void* address) { memory->release(address); });
}

TEST_F(NcclDoubleTest, AHangingRegistrationIsAborted) {
  connect({.registered = true, .patience = std::chrono::milliseconds(50)});
  static_cast<void>(network().split(0));
  facts().hangs_in_register = true;
  const std::string failure = thrown_by([&] { static_cast<void>(device().memory().allocate(1)); });
  EXPECT_EQ(failure.find("ncclCommRegister did not return within 0.05 s"), 0U) << failure;
  facts().hangs_in_register = false;
  const std::shared_ptr<MemorySource> memory = device().source();
  void* const at = memory->allocate(1);  // memory that no longer belongs to a lane
  disconnect();
  memory->release(at);
  EXPECT_TRUE(facts().registrations.empty());
}

TEST_F(NcclDoubleTest, BuffersBecomeWindowsOnRequest) {
  connect({.registered = true, .windows = true});
  EXPECT_TRUE(network().has_windows());
  EXPECT_FALSE(network().has_puts());
  static_cast<void>(network().split(0));
  void* const at = device().memory().allocate(1);
  ASSERT_EQ(facts().registrations.size(), 1U);
  EXPECT_TRUE(facts().registrations[0].window);
  const std::shared_ptr<MemorySource> memory = device().source();
  disconnect();
  memory->release(at);
}

TEST_F(NcclDoubleTest, CollectivesWithoutCtasHaveWindows) {
  connect({.cta_policy = 2});
  EXPECT_TRUE(network().has_windows());
  static_cast<void>(network().split(0));
  ASSERT_NE(device().source(), nullptr);
  void* const at = device().memory().allocate(1);
  ASSERT_EQ(facts().registrations.size(), 1U);
  EXPECT_TRUE(facts().registrations[0].window);
  const std::shared_ptr<MemorySource> memory = device().source();
  disconnect();
  memory->release(at);
}

TEST_F(NcclDoubleTest, PutsAreRefusedWhereTheLibraryLacksThem) {
  EXPECT_EQ(nccl().put_signal, nullptr);
  EXPECT_EQ(thrown_by([&] { connect({.puts = true}); }),
            "NCCL 2.28.9 has no ncclPutSignal; install 2.29.2 or later, or exchange by messages");
}

/// A library that has functions which are missing in the header of this build.
class LaterNcclDoubleTest : public NcclDoubleTest {
 protected:
  LaterNcclDoubleTest() : NcclDoubleTest(COMMFUSE_NCCL_DOUBLE_LATER) {}
};

TEST_F(LaterNcclDoubleTest, PutsAreFoundAtRunTimeAndWriteIntoWindows) {
  ASSERT_NE(nccl().put_signal, nullptr);
  connect({.puts = true});
  EXPECT_TRUE(network().has_windows());
  EXPECT_TRUE(network().has_puts());
  const std::size_t lane = network().split(0);
  auto* const at = static_cast<std::byte*>(device().memory().allocate(4096));
  ASSERT_EQ(facts().registrations.size(), 2U);  // the first window, which NCCL needs before signals, and `at`
  EXPECT_TRUE(facts().registrations[0].window && facts().registrations[1].window);
  const auto address = [](const std::byte* byte) { return reinterpret_cast<Address>(byte); };
  Panel data = panel;
  data.at = address(at);
  network().signal(lane, StreamId{0}, 1);
  network().await_signals(lane, StreamId{0}, {.peer = 1, .count = 2});
  network().put(lane, StreamId{0}, {.peer = 1, .data = data}, address(at) + 256);
  ASSERT_EQ(facts().launches.size(), 3U);
  EXPECT_EQ(facts().launches[0].operations, std::vector<std::string>{"signal 1"});
  EXPECT_EQ(facts().launches[1].operations, std::vector<std::string>{"wait for 2 of 1"});
  EXPECT_EQ(facts().launches[2].operations, std::vector<std::string>{"put 32 bytes to 1 at 256"});
  EXPECT_EQ(thrown_by([&] { network().put(lane, StreamId{0}, {.peer = 1, .data = data}, address(at) + 4090); }),
            "the target of a put into another rank's memory is in no window of its communicator");
  const std::shared_ptr<MemorySource> memory = device().source();
  disconnect();
  memory->release(at);
}

class OldNcclDoubleTest : public NcclDoubleTest {
 protected:
  OldNcclDoubleTest() : NcclDoubleTest(COMMFUSE_NCCL_DOUBLE_OLD) {}
};

TEST_F(OldNcclDoubleTest, FunctionsThatAVersionLacksAreNotCalled) {
  EXPECT_EQ(nccl().absence(), "");
  EXPECT_EQ(nccl().version(), 21805);
  EXPECT_EQ(nccl().mem_alloc, nullptr);
  connect({.cta_policy = 2, .registered = true});
  EXPECT_EQ(network().version(), "2.18.5");
  EXPECT_FALSE(network().notes().empty());
  EXPECT_EQ(device().source(), nullptr);
  network().collective(network().split(0), StreamId{0}, CollectiveKind::all_to_all, panel, panel);
  ASSERT_EQ(facts().launches.size(), 1U);
  EXPECT_EQ(facts().launches[0].operations, (std::vector<std::string>{"send", "recv", "send", "recv"}));
}

TEST(NcclAbsence, IsNamedByEveryUserOfNccl) {
  const NcclLibrary none(SharedLibrary({.product = "NCCL", .sonames = {"libno_nccl.so.2"}, .remedy = "install NCCL"},
                                       {.root = testing::TempDir()}));
  EXPECT_EQ(none.version(), 0);
  EXPECT_EQ(thrown_by([&] { static_cast<void>(make_nccl_key(none)); }), none.absence());
  DeviceDouble device;
  EXPECT_EQ(thrown_by([&] { static_cast<void>(connect_nccl(none, device, {}, {}, {})); }), none.absence());
  EXPECT_EQ(none.absence().find("NCCL was not found: the loader cannot find libno_nccl.so.2, and it is neither in "),
            0U)
      << none.absence();
}

TEST(NcclAbsence, CoversALibraryWithoutItsFunctions) {
  const NcclLibrary wrong(SharedLibrary({.product = "NCCL", .sonames = {"libc.so.6"}, .remedy = "install NCCL"}));
  EXPECT_EQ(wrong.absence(), "libc.so.6 lacks ncclGetVersion, which this program needs; install NCCL");
}

}  // namespace
}  // namespace commfuse::validate

#else

TEST(NcclDoubleTest, NeedsTheHeaderOfNccl) { GTEST_SKIP() << "this build was made without the header of NCCL"; }

#endif
