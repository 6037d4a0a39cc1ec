// SPDX-License-Identifier: Apache-2.0
// NVTX ranges, which the user's profiler shows around our launches.
#pragma once

#include <cstdint>

namespace commfuse::validate {

/// A range "op" in the domain "commfuse", from one label to the next, with the label as its payload. It costs almost
/// nothing without a profiler.
class LabelRange {
 public:
  LabelRange() = default;
  LabelRange(const LabelRange&) = delete;
  LabelRange& operator=(const LabelRange&) = delete;
  ~LabelRange();

  void begin(std::uint64_t label);

 private:
  void end();
  bool open_ = false;
};

}  // namespace commfuse::validate
