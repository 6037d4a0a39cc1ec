// SPDX-License-Identifier: Apache-2.0
// A check in progress, and the functions that check GPUs (gpu_checks.cpp), wires (wire_checks.cpp) and RoCE
// (roce_checks.cpp).
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/text/counted.h"
#include "validate/health/health_check.h"
#include "validate/health/management.h"
#include "validate/health/node_facts.h"

namespace commfuse::validate {

/// Collects the findings of one check, and what to report if there are none.
class CheckList {
 public:
  explicit CheckList(std::string name) : name_(std::move(name)) {}

  /// A finding about one subject.
  struct Finding {
    std::string subject{};
    std::string found{};
    std::string wrong{};
    std::string remedy{};
  };
  void bad(Finding finding) { add(HealthStatus::bad, std::move(finding)); }
  void warn(Finding finding) { add(HealthStatus::warn, std::move(finding)); }
  void unknown(Finding finding) { add(HealthStatus::unknown, std::move(finding)); }
  /// Sets the observation that is reported if there are no findings.
  void otherwise_ok(std::string observation) { ok_ = std::move(observation); }

  [[nodiscard]] bool empty() const { return checks_.empty(); }
  /// Returns the findings, or a single check with the status ok if there are none.
  [[nodiscard]] std::vector<HealthCheck> take();

 private:
  void add(HealthStatus status, Finding finding) {
    checks_.push_back({.name = name_,
                       .subject = std::move(finding.subject),
                       .status = status,
                       .found = std::move(finding.found),
                       .wrong = std::move(finding.wrong),
                       .remedy = std::move(finding.remedy)});
  }

  std::string name_;
  std::string ok_;
  std::vector<HealthCheck> checks_;
};

/// Returns a string such as "mlx5_0/1".
std::string name_of_port(const RdmaPort& port);

void look_at_driver(const NodeFacts& node, const ManagementFacts& management, CheckList& list);
void look_at_peers(const NodeFacts& node, const ManagementFacts& management, CheckList& list);
void look_at_fabric(const NodeFacts& node, const ManagementFacts& management, CheckList& list);
void look_at_ecc(const NodeFacts& node, const ManagementFacts& management, CheckList& list);
void look_at_xids(const NodeFacts& node, const ManagementFacts& management, CheckList& list);
void look_at_clocks(const NodeFacts& node, const ManagementFacts& management, CheckList& list);
void look_at_pcie(const NodeFacts& node, const ManagementFacts& management, CheckList& list);
void look_at_numa(const NodeFacts& node, const ManagementFacts& management, CheckList& list);
void look_at_rdma(const NodeFacts& node, const ManagementFacts& management, CheckList& list);
void look_at_roce(const NodeFacts& node, const ManagementFacts& management, CheckList& list);
void look_at_congestion(const NodeFacts& node, const ManagementFacts& management, CheckList& list);
void look_at_gdr(const NodeFacts& node, const ManagementFacts& management, CheckList& list);
void look_at_acs(const NodeFacts& node, const ManagementFacts& management, CheckList& list);
void look_at_iommu(const NodeFacts& node, const ManagementFacts& management, CheckList& list);

}  // namespace commfuse::validate
