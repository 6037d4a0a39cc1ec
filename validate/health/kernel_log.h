// SPDX-License-Identifier: Apache-2.0
// Errors that NVIDIA's driver reports in the kernel's log: Xid of GPUs, SXid of NVSwitches.
#pragma once

#include <compare>
#include <string>
#include <string_view>
#include <vector>

namespace commfuse::validate {

struct XidEvent {
  std::string address;     ///< "0000:1b:00"
  int code = 0;            ///< 79
  bool of_switch = false;  ///< SXid.
  friend auto operator<=>(const XidEvent&, const XidEvent&) = default;
};

/// In the log's order, whatever stands before them in a line: dmesg's time, /dev/kmsg's priority. Each of an address
/// and code once.
std::vector<XidEvent> xids_in(std::string_view log_text);

}  // namespace commfuse::validate
