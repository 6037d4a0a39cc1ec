// SPDX-License-Identifier: Apache-2.0
// Tests that a process that may not start enough threads ends with the reason instead of waiting forever. The limit is
// one of address space, because limits on processes do not apply to root.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <stdexcept>

#include "tests/slow_build.h"
#include "tests/validate/shift.h"
#include "validate/cpu/cpu_executor.h"
#include "validate/measure/protocol.h"

namespace commfuse::validate {
namespace {

constexpr int too_many = 300;
constexpr rlim_t spare_bytes = rlim_t{256} << 20U;  // a few tens of stacks of 8 MiB
constexpr int code_of_refusal = 7;

/// Runs `work` with `spare_bytes` bytes of additional address space. Exits with `code_of_refusal` if `work`
/// throws a runtime_error, and prints the error's text on stderr.
template <class Work>
[[noreturn]] void exit_after(const Work& work) {
  rlim_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  const rlim_t max_bytes = pages * static_cast<rlim_t>(::sysconf(_SC_PAGESIZE)) + spare_bytes;
  const rlimit limit{.rlim_cur = max_bytes, .rlim_max = max_bytes};
  ::setrlimit(RLIMIT_AS, &limit);
  try {
    work();
  } catch (const std::runtime_error& error) {
    std::fputs(error.what(), stderr);
    std::_Exit(code_of_refusal);
  }
  std::_Exit(EXIT_SUCCESS);
}

TEST(TooFewThreads, EndTheMeasurementOfNoise) {
  if (slow_build) {
    GTEST_SKIP() << "sanitizers reserve address space";
  }
  EXPECT_EXIT(exit_after([] { (void)noise_floor(too_many); }), testing::ExitedWithCode(code_of_refusal),
              "[0-9]+ of 300 threads started: Resource temporarily unavailable; use fewer ranks");
}

TEST(TooFewThreads, EndARunOnTheCpu) {
  if (slow_build) {
    GTEST_SKIP() << "sanitizers reserve address space";
  }
  test::Shift shift(too_many);
  shift.exchange();
  const Costs costs{.duration = {std::chrono::microseconds(1)}, .issue = {Duration{}}};
  CpuExecutor executor(lower(std::make_shared<const Program>(shift.program())), Sizes{{1, 1}},
                       {.costs = std::make_shared<const Costs>(costs)});
  EXPECT_EXIT(exit_after([&] { executor.run({}); }), testing::ExitedWithCode(code_of_refusal),
              "[0-9]+ of 300 threads started: Resource temporarily unavailable; use fewer ranks");
}

}  // namespace
}  // namespace commfuse::validate
