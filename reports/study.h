// SPDX-License-Identifier: Apache-2.0
// Details that a report shows in addition to the result rows: the study of a point, measured times and fits.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "model/record/explanation.h"
#include "reports/traced_run.h"

namespace commfuse::reports {

/// Makespans of one schedule under jitter, ascending.
struct SampledRun {
  std::string name;  // "commfuse (ring)"
  std::vector<Duration> sorted;
};

/// A GEMM of a schedule in the roofline plot of its accelerator.
struct RoofedGemm {
  std::string schedule;
  std::string shape;  // "GEMM 4K x 3584 x 8K"
  Flops work;
  Bytes traffic;          // counts every operand once
  Duration time{};        // time of one GEMM, as priced
  std::size_t count = 0;  // on the critical rank
};
struct Roofline {
  std::string accelerator;
  std::string dtype;
  FlopsPerSecond peak;  // dense
  BytesPerSecond memory;
  std::vector<RoofedGemm> gemms;
};

/// Share of another schedule's time (serial's, else the next fastest's) that the fastest schedule saves, with a 90%
/// interval.
struct SavingInterval {
  std::string winner;
  std::string next;
  double saved = 0.0;
  double low = 0.0;
  double high = 0.0;
};

struct PointStudy {
  std::vector<TracedRun> runs;  // predicted runs, then measured runs
  std::optional<Explanation> explanation{};
  std::vector<SampledRun> samples{};
  std::optional<SavingInterval> saving{};
  std::optional<Roofline> roofline{};
};

/// Prediction and measurement of a schedule.
struct MeasuredPair {
  std::string name;   // "sliced (k=4)"
  std::string point;  // "ranks 8, seq 32K"
  Duration predicted{};
  Duration median{};
  Duration p10{};
  Duration p90{};
  std::size_t rounds = 0;
};

/// One measured time, and the time that the fitted formulas predict.
struct FitResidual {
  double measured_us = 0.0;
  double predicted_us = 0.0;
  bool held_out = false;
};
struct FitCheck {
  std::string name;  // "GEMMs in bf16"
  std::string source;
  std::vector<FitResidual> residuals;
};

}  // namespace commfuse::reports
