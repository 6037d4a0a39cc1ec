// SPDX-License-Identifier: Apache-2.0
#include "sim/step/measured_step.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>

#include "model/analysis/error_tail.h"
#include "model/check.h"
#include "model/config_error.h"
#include "model/math/functions.h"

namespace commfuse {

double StepEvidence::correction(const Uncertainty& uncertainty) const {
  return math::exp(expected_log_ratio(uncertainty, evidence));
}

StepEvidence step_evidence(std::string hardware, Duration measured, Duration predicted, Uncertainty doubts) {
  doubts.doubts.push_back({StepDoubt{"~ the measurement"}, measured_step_error});
  // Doubts are sorted, and a layout's doubt, whose text begins with the name of a model, may sort after "~".
  std::ranges::sort(doubts.doubts, std::less{}, &Doubt::of);
  const double error = error_of(doubts);
  const double log_ratio = math::log(to_seconds(measured) / to_seconds(predicted));
  return {.evidence = {std::move(doubts), log_ratio},
          .hardware = std::move(hardware),
          .measured = measured,
          .predicted = predicted,
          .error = error};
}

void require_within_peak(Duration measured, const StepPrediction& predicted) {
  const double factor = to_seconds(measured) / to_seconds(predicted.time);
  const double limited = limited_to_peak({factor, predicted.mfu});
  if (factor < limited) {
    throw ConfigError(fmt::format(
        "--measured-step: {:.4g} s is impossible for this configuration, whose model FLOPs take {:.4g} s at "
        "the dense peak of its GPUs; correct the time and its unit (s or ms), or give the configuration "
        "that ran",
        to_seconds(measured), to_seconds(predicted.time) * limited));
  }
}

void require_matching_evidence(const std::string& hardware, const StepEvidence& evidence) {
  if (hardware != evidence.hardware) {
    throw ConfigError(
        fmt::format("--measured-step: measured on {}, which does not apply to {}; choose the same machine",
                    evidence.hardware, hardware));
  }
}

double limited_to_peak(const FactorOnStep& correction) { return std::max(correction.factor, correction.mfu); }

StepPrediction corrected(StepPrediction step, double factor) {
  check(factor > 0.0, "a time stays above 0");
  factor = limited_to_peak({factor, step.mfu});
  for (Duration* part : {&step.parts.compute, &step.parts.waiting, &step.parts.gradients, &step.parts.optimizer}) {
    *part = from_seconds(to_seconds(*part) * factor);
  }
  step.time = step.parts.compute + step.parts.waiting + step.parts.gradients + step.parts.optimizer;
  step.tokens_per_second /= factor;
  step.mfu /= factor;
  step.hfu /= factor;
  return step;
}

namespace {

std::string share_in_words(double share) {
  return share < 0.01 ? "Fewer than 1%" : fmt::format("{:.0f}%", 100.0 * share);
}

}  // namespace

std::string peak_note(const std::vector<std::string>& names) {
  return names.empty() ? std::string{}
                       : fmt::format(
                             "note: corrected by the measured step, {} would take less time than the model "
                             "FLOPs at the dense peak of the GPUs, so this limit is stated instead; check the "
                             "measured step and the settings\n",
                             fmt::join(names, " and "));
}

std::string in_words(const StepEvidence& evidence) {
  constexpr double surprising = 3.0;
  const double off = to_seconds(evidence.measured) / to_seconds(evidence.predicted) - 1.0;
  const double errors = std::abs(evidence.evidence.log_ratio) / evidence.error;
  const char* advice = errors > surprising ? " The errors do not explain this: first look for a difference in settings "
                                             "or machine (docs/howto/is-my-step-slow.md)."
                                           : "";
  return fmt::format(
      "Measured {:.1f} ms, predicted {:.1f} ms: {:.1f}% {}. {} of healthy steps {} ({:.1f} standard errors).{} Times "
      "below take the measurement into account.",
      1e3 * to_seconds(evidence.measured), 1e3 * to_seconds(evidence.predicted), 100.0 * std::abs(off),
      off < 0.0 ? "shorter" : "longer", share_in_words(1.0 - share_below(errors)),
      off < 0.0 ? "are as short" : "take as long", errors, advice);
}

}  // namespace commfuse
