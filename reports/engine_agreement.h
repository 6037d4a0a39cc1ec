// SPDX-License-Identifier: Apache-2.0
// Compares default predictions with predictions of the dynamic engine: the section "Static against dynamic" of
// docs/accuracy.md, text and JSON.
#pragma once

#include <span>
#include <string>

#include "model/record/engine_agreement.h"

namespace commfuse::reports {

std::string agreement_section(std::span<const EngineAgreement> machines);
std::string agreement_table(std::span<const EngineAgreement> machines);
std::string agreement_json(std::span<const EngineAgreement> machines);

}  // namespace commfuse::reports
