// SPDX-License-Identifier: Apache-2.0
#include "model/record/engine_agreement.h"

#include "model/record/score.h"

namespace commfuse {

namespace {

/// Static prices withhold the compute units of a collective from every GEMM that may overlap it, even if it overlaps
/// little of the GEMM. On MI308X, RCCL's channels hold 40% of the compute units; on no other machine do collectives
/// hold so many.
constexpr double largest_difference = 0.35;

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
