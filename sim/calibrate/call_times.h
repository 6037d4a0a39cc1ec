// SPDX-License-Identifier: Apache-2.0
// Calls of operators and the kernels they launched, as rows of the fits.
#pragma once

#include <cstddef>
#include <cstdint>
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

  /// A call is as long as its kernels together, and left out where communication ran beside one of them.
  Profile profile() &&;

 private:
  struct Call {
    Work work;
    bool runs_kernels = false;
  };
  struct Kernel {
    std::size_t call = 0;
    KernelSpan span;
  };
  struct Busy {
    double begin = 0.0;
    double end = 0.0;  ///< the latest so far
  };
  struct Lost {
    std::size_t count = 0;
    double duration = 0.0;
  };

  void add(const Call& call, const Kernel* first, const Kernel* last);
  [[nodiscard]] bool is_slowed(const KernelSpan& span) const;
  [[nodiscard]] std::string share(double duration) const;
  void say_others();

  std::vector<Call> calls_;
  std::vector<Kernel> kernels_;
  std::map<std::uint32_t, std::vector<Busy>> communication_;  // by device
  std::map<std::string, Lost, std::less<>> others_;           // by operator
  std::map<std::string, Lost> lost_;
  double total_ = 0.0;
  Profile profile_;
};

}  // namespace commfuse::calibrate
