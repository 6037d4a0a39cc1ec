// SPDX-License-Identifier: Apache-2.0
#include "model/record/engine_agreement.h"

#include "model/record/score.h"

namespace commfuse {

namespace {

/// A static price counts all communication that a kernel may meet, as if transfers of several lanes followed one
/// another. Nested rings over two nodes of H20 differ most: their transfers are long and run on several lanes.
constexpr double largest_difference = 0.25;

}  // namespace

std::vector<AgreementBar> agreement_bars(std::span<const EngineAgreement> machines) {
  std::vector<double> differences;
  std::size_t conflicts = 0;
  for (const EngineAgreement& machine : machines) {
    differences.insert(differences.end(), machine.differences.begin(), machine.differences.end());
    conflicts += machine.conflicts.size();
  }
  const ErrorSummary summary = summary_of(differences);
  return {{"median difference", 0.10, summary.median},
          {"largest difference", largest_difference, summary.max},
          {"conflicts", 0.0, static_cast<double>(conflicts), false}};
}

}  // namespace commfuse
