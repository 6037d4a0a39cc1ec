// SPDX-License-Identifier: Apache-2.0
// Copies between one GPU and its host, checked and timed. Copies between several GPUs are tested as whole commands.
#include "validate/cuda/copier.h"

#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <stdexcept>
#include <vector>

#include "tests/validate/cuda/on_device.h"

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
  const std::unique_ptr<Copier> copier = module().make_copier();
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

TEST_F(CudaCopies, ThatCannotBeAreRefused) {
  const std::unique_ptr<Copier> copier = module().make_copier();
  copier->make_room({1024});
  const auto refused = [&](TimedCopy copy) {
    const std::array copies{copy};
    EXPECT_THROW(copier->check(copies), std::runtime_error);
    EXPECT_THROW(static_cast<void>(copier->time(copies)), std::runtime_error);
  };
  refused(with_host(true, CopiedBy::kernel, 2048));  // no room
  refused(with_host(true, CopiedBy::kernel, 100));
  TimedCopy nowhere = with_host(true, CopiedBy::copy_engine, 512);
  nowhere.to = copier->gpus();
  refused(nowhere);
  TimedCopy endless = with_host(true, CopiedBy::copy_engine, 512);
  endless.repetitions = 1000;  // more than a stream takes behind a gate
  refused(endless);
  const TimedCopy copy = with_host(true, CopiedBy::copy_engine, 512);
  EXPECT_THROW(static_cast<void>(copier->time(std::array{copy, copy, copy})), std::runtime_error);
  copier->check(std::array{copy});  // the buffers are unchanged
}

}  // namespace
}  // namespace commfuse::validate
