// SPDX-License-Identifier: Apache-2.0
// Converts calls of operators, and the kernels that they launched, to rows of the fits.
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

/// A kernel's time on a device, in microseconds. The duration is kept as the profile writes it, because `begin` may be
/// counted from 1970 and lose digits.
struct KernelSpan {
  std::uint32_t device = 0;
  double begin = 0.0;
  double duration = 0.0;
};

class CallTimes {
 public:
  /// Adds a call and returns its number, counted from 0. `runs_kernels`: the operator launches kernels itself, so a
  /// call without kernels is reported.
  std::size_t add_call(Work work, bool runs_kernels);
  /// Adds one kernel of the call.
  void add_kernel(std::size_t call, const KernelSpan& span);
  /// Adds communication, which slows concurrent kernels.
  void add_communication(const KernelSpan& span);
  /// Adds communication that no fit can use; `why`, a plural noun, states the reason.
  void add_unusable_communication(const KernelSpan& span, const std::string& why);
  /// Adds a kernel of an operator that no fit uses.
  void add_other_kernel(const KernelSpan& span, std::string_view op);
  /// Adds a kernel that no fit can use; `why`, a plural noun, states the reason.
  void add_unusable_kernel(const KernelSpan& span, const std::string& why);
  /// Forgets which kernels overlapped. Call this for profiles that do not record when kernels begin.
  void forget_starts() { device_.clear(); }

  /// Returns the calls with their times. The time of a call is the sum of its kernels. Omits calls if communication, or
  /// a kernel of another call, ran at the same time as one of their kernels on the same device. A kernel that overlaps
  /// another by up to 1 us, and by up to half of its own duration, counts as consecutive, because old profiles round to
  /// microseconds; for communication, any overlap counts.
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
  /// A kernel that ran on a device.
  struct Run {
    double begin = 0.0;
    double end = 0.0;
    std::size_t call = none;    ///< index into calls_; none: a kernel of no call
    std::size_t kernel = none;  ///< index into kernels_ before they are sorted
  };
  struct Busy {
    double begin = 0.0;
    double end = 0.0;  ///< the latest end so far
  };
  struct KernelTotals {
    std::size_t count = 0;
    double duration = 0.0;
  };

  /// Records that a kernel ran during the span.
  void record_run(const KernelSpan& span, Run run);
  void find_disturbed();
  static bool is_disturbed_by_later(const std::vector<Run>& runs, std::size_t at);
  void add(const Call& call, const Kernel* first, const Kernel* last);
  [[nodiscard]] bool is_slowed(const KernelSpan& span) const;
  [[nodiscard]] std::string share(double duration) const;
  void report_skipped_kernels();

  std::vector<Call> calls_;
  std::vector<Kernel> kernels_;
  std::map<std::uint32_t, std::vector<Busy>> communication_;  // by device
  std::map<std::uint32_t, std::vector<Run>> device_;          // all kernels, by device
  std::map<std::string, KernelTotals, std::less<>> others_;   // by operator
  std::map<std::string, KernelTotals> unusable_;
  double total_ = 0.0;
  Profile profile_;
};

}  // namespace commfuse::calibrate
