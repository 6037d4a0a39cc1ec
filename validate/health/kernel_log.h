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
  bool of_switch = false;  ///< An SXid.
  friend auto operator<=>(const XidEvent&, const XidEvent&) = default;
};

/// Returns events in the log's order, each pair of address and code once. Lines may begin with dmesg's time or with the
/// priority of /dev/kmsg.
std::vector<XidEvent> xids_in(std::string_view log_text);

}  // namespace commfuse::validate
