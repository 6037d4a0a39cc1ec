// SPDX-License-Identifier: Apache-2.0
// Findings of check_program(): one sentence per mistake, and the number of mistakes that are not listed.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace commfuse {

enum class FindingKind : std::uint8_t {
  bounds,            // ids, extents, regions, waits: the program is not well-formed
  unmatched,         // a send or a receive without a matching partner
  collective_order,  // a collective that only a part of its group joins
  deadlock,
  hazard,    // a cell is read before it is written, or conflicting accesses of a cell have no order between them
  contents,  // a rank computes or ends with values that differ from those of the unfused operation
};

std::string_view name_of(FindingKind kind);

struct Finding {
  FindingKind kind = FindingKind::bounds;
  std::string sentence;  // names op, rank and region or buffer
  friend bool operator==(const Finding&, const Finding&) = default;
};

struct CheckReport {
  std::vector<Finding> findings;
  std::int64_t more = 0;  // findings not listed: beyond the limit, or of the same op on another rank or in another cell

  [[nodiscard]] bool ok() const { return findings.empty(); }
};

/// Collects findings: lists one per kind and op, up to twenty in all, and counts the rest.
class Findings {
 public:
  static constexpr std::size_t listed = 20;

  /// If `worded` is false, findings have kinds but no sentences, which takes less time.
  explicit Findings(bool worded = true) : worded_(worded) {}

  /// `about` tells findings of one kind apart: mostly the op, or -1 - i for the i-th content, counting initial contents
  /// before final ones. `sentence()` is called only for a finding that is listed.
  template <class Sentence>
  void add(FindingKind kind, std::int32_t about, const Sentence& sentence) {
    if (report_.findings.size() < listed && seen_.insert({kind, about}).second) {
      report_.findings.push_back({kind, worded_ ? sentence() : std::string{}});
    } else {
      ++report_.more;
    }
  }

  [[nodiscard]] bool empty() const { return report_.ok(); }
  /// Returns the kind of the first finding. Requires at least one finding.
  [[nodiscard]] FindingKind first_kind() const { return report_.findings.front().kind; }
  [[nodiscard]] CheckReport report() && { return std::move(report_); }

 private:
  bool worded_;
  CheckReport report_;
  std::set<std::pair<FindingKind, std::int32_t>> seen_;
};

}  // namespace commfuse
