// SPDX-License-Identifier: Apache-2.0
// Tests copies between one GPU and its host, checked and timed. Copies between several GPUs are tested through whole
// commands.
#include "validate/cuda/copier.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/validate/cuda/on_device.h"
#include "validate/executor.h"

namespace commfuse::validate {
namespace {

class CudaCopies : public test::OnDevice {
 protected:
  static TimedCopy with_host(bool to_gpu, CopiedBy by, std::int64_t bytes = 64 << 10) {
    return {.issuer = 0,
            .from = to_gpu ? host_end : 0,
            .to = to_gpu ? 0 : host_end,
            .by = by,
            .bytes = {bytes},
            .repetitions = 3};
  }
};

TEST_F(CudaCopies, ArriveAndTakeTimeInBothDirectionsByBothEngines) {
  const std::unique_ptr<Copier> copier = module().make_copier(patience);
  ASSERT_GE(copier->gpus(), 1);
  copier->make_room({128 << 10});
  for (const CopiedBy by : {CopiedBy::copy_engine, CopiedBy::kernel}) {
    const std::array both{with_host(true, by), with_host(false, by, 512)};
    copier->check(both);
    const std::vector<Duration> times = copier->time(both);
    ASSERT_EQ(times.size(), 2U);
    EXPECT_GT(times[0], Duration{});
    EXPECT_GT(times[1], Duration{});
  }
}

TEST_F(CudaCopies, ImpossibleCopiesAreRefused) {
  const std::unique_ptr<Copier> copier = module().make_copier(patience);
  copier->make_room({1024});
  const auto refused = [&](TimedCopy copy) {
    const std::array copies{copy};
    EXPECT_THROW(copier->check(copies), std::runtime_error);
    EXPECT_THROW(static_cast<void>(copier->time(copies)), std::runtime_error);
  };
  refused(with_host(true, CopiedBy::kernel, 2048));  // larger than the reserved memory
  refused(with_host(true, CopiedBy::kernel, 100));
  TimedCopy nowhere = with_host(true, CopiedBy::copy_engine, 512);
  nowhere.to = copier->gpus();
  refused(nowhere);
  TimedCopy endless = with_host(true, CopiedBy::copy_engine, 512);
  endless.repetitions = 1000;  // more than a stream holds behind a gate
  refused(endless);
  const TimedCopy copy = with_host(true, CopiedBy::copy_engine, 512);
  EXPECT_THROW(static_cast<void>(copier->time(std::array{copy, copy, copy})), std::runtime_error);
  copier->check(std::array{copy});  // the buffers are unchanged
}

/// Holds the copies of the software GPU for the lifetime of this object.
class HeldCopies {
 public:
  HeldCopies() : hold_(function_of_the_double()) { hold_(1); }
  HeldCopies(const HeldCopies&) = delete;
  HeldCopies& operator=(const HeldCopies&) = delete;
  ~HeldCopies() { hold_(0); }

 private:
  using Hold = void (*)(int);
  static Hold function_of_the_double() {
    void* loaded =
        ::dlopen("libcommfuse_software_gpu.so", RTLD_NOW | RTLD_NOLOAD);  // from wherever the plugin was loaded
    // NOLINTNEXTLINE(*-reinterpret-cast): dlsym() needs the cast
    return reinterpret_cast<Hold>(::dlsym(loaded, "software_gpu_hold_copies"));
  }
  Hold hold_;
};

TEST_F(CudaCopies, AreAbandonedIfTheyNeverFinish) {
  if (!driver().facts().is_software()) {
    GTEST_SKIP() << "copies of a real GPU always finish";
  }
  std::unique_ptr<Copier> copier = module().make_copier(std::chrono::milliseconds(300));
  copier->make_room({1024});
  const std::array copies{with_host(true, CopiedBy::copy_engine, 512)};
  copier->check(copies);
  const HeldCopies no_copy_ends;
  const auto sentence = [&](const auto& call) {
    try {
      call();
    } catch (const Stuck& stuck) {
      return std::string(stuck.what());
    }
    return std::string("none");
  };
  const std::string stuck = "copies did not finish within 0.3 s; look for GPU errors (Xid) in the kernel's log";
  EXPECT_EQ(sentence([&] { copier->check(copies); }), stuck);
  // After a copy that does not end, nothing waits again: neither clearing the target, nor timing, nor the destructor.
  EXPECT_EQ(sentence([&] { copier->check(copies); }), stuck);
  EXPECT_EQ(sentence([&] { static_cast<void>(copier->time(copies)); }), stuck);
  copier = nullptr;
}

}  // namespace
}  // namespace commfuse::validate
