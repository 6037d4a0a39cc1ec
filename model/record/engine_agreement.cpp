// SPDX-License-Identifier: Apache-2.0
#include "model/record/engine_agreement.h"

#include "model/record/score.h"

namespace commfuse {

std::vector<AgreementBar> agreement_bars(std::span<const EngineAgreement> machines) {
  std::vector<double> differences;
  std::size_t conflicts = 0;
  for (const EngineAgreement& machine : machines) {
    differences.insert(differences.end(), machine.differences.begin(), machine.differences.end());
    conflicts += machine.conflicts.size();
  }
  const ErrorSummary summary = summary_of(differences);
  return {{"median difference", 0.10, summary.median},
          {"largest difference", 0.25, summary.max},
          {"conflicts", 0.0, static_cast<double>(conflicts), false}};
}

}  // namespace commfuse
