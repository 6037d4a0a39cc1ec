// SPDX-License-Identifier: Apache-2.0
// Calls of operators and the kernels they launched, as rows of the fits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/calibrate/operators.h"
#include "sim/calibrate/profile.h"

namespace commfuse::calibrate {

/// Microseconds. The duration is kept as the profile writes it: begin may be counted from 1970.
struct KernelSpan {
  std::uint32_t device = 0;
  double begin = 0.0;
  double duration = 0.0;
};

class CallTimes {
 public:
  /// One call, from 0 on. `runs_kernels`: it launches kernels itself, so that to find none is worth a sentence.
  std::size_t call(Work work, bool runs_kernels);
  /// Of the call, one of several.
  void kernel(std::size_t call, const KernelSpan& span);
  /// Slows the products beside it.
  void communication(const KernelSpan& span);
  /// The same of a kernel of which `why`, a plural, says all.
  void lost_communication(const KernelSpan& span, const std::string& why);
  /// Of an operator that no fit takes.
  void other(const KernelSpan& span, std::string_view op);
  /// A kernel of which `why`, a plural, says all.
  void lost(const KernelSpan& span, const std::string& why);
  /// The profile does not say when kernels began, so nothing tells which ran beside each other.
  void forget_starts() { device_.clear(); }

  /// A call is as long as its kernels together, and left out where communication, or another call's kernel, ran beside
  /// one of them on its device. Kernels that overlap by a microsecond at most are one after the other: old profiles
  /// round to it.
  Profile profile() &&;

 private:
  static constexpr std::size_t none = std::numeric_limits<std::size_t>::max();

  struct Call {
    Work work;
    bool runs_kernels = false;
  };
  struct Kernel {
    std::size_t call = 0;
    KernelSpan span;
    bool is_disturbed = false;
  };
  /// What a device ran, and when.
  struct Run {
    double begin = 0.0;
    double end = 0.0;
    std::size_t call = none;    ///< of calls_; none: another kernel
    std::size_t kernel = none;  ///< of kernels_, before they are sorted
  };
  struct Busy {
    double begin = 0.0;
    double end = 0.0;  ///< the latest so far
  };
  struct Lost {
    std::size_t count = 0;
    double duration = 0.0;
  };

  void runs(const KernelSpan& span, std::size_t call, std::size_t kernel);
  void find_disturbed();
  static bool is_disturbed_by_later(const std::vector<Run>& runs, std::size_t at);
  void add(const Call& call, const Kernel* first, const Kernel* last);
  [[nodiscard]] bool is_slowed(const KernelSpan& span) const;
  [[nodiscard]] std::string share(double duration) const;
  void say_others();

  std::vector<Call> calls_;
  std::vector<Kernel> kernels_;
  std::map<std::uint32_t, std::vector<Busy>> communication_;  // by device
  std::map<std::uint32_t, std::vector<Run>> device_;          // all kernels, by device
  std::map<std::string, Lost, std::less<>> others_;           // by operator
  std::map<std::string, Lost> lost_;
  double total_ = 0.0;
  Profile profile_;
};

}  // namespace commfuse::calibrate
