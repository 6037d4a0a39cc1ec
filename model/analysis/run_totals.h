// SPDX-License-Identifier: Apache-2.0
// Time, cost and energy of a whole training run, from its throughput and its failures. `docs/plan.md` has a worked
// example.
//
//   failures            L = GPUs x failures per GPU-hour / 3600 per second   M = 1 / L, the mean time between them
//   checkpoints         one per T of work, each takes d; T by Daly (2006), who refines Young's (1974) sqrt(2 d M):
//                       T = sqrt(2 d M) (1 + sqrt(d / 2 M) / 3 + (d / 2 M) / 9) - d   where d < 2 M, else M
//   goodput             g = T / (M exp(R / M) (exp((T + d) / M) - 1))            Daly (2006): work over wall time;
//                       R is the time from a failure until training resumes; g = 1 without failures
//   days                tokens / (tokens per second x g) / 86400
//   cost                GPUs x hours x price + energy x its price
//   energy              GPUs x power of one GPU x PUE x hours
#pragma once

#include "model/units.h"

namespace commfuse {

struct RunTerms {
  double tokens = 0.0;
  double tokens_per_second = 0.0;  ///< Throughput while nothing fails; above 0.
  double gpus = 1.0;
  double price = 0.0;         ///< Price of one GPU for one hour.
  double per_gpu_hour = 0.0;  ///< Failures that stop the run, per GPU-hour.
  Seconds checkpoint{};       ///< Time that training pauses for one checkpoint.
  Seconds restart{};          ///< Time from a failure until training resumes.
  Watts power{};              ///< Power of one GPU, including its share of the node; 0 when unknown.
  double pue = 1.0;
  double energy_price = 0.0;  ///< Price of one kilowatt-hour.
};

struct RunTotals {
  double goodput = 1.0;
  Seconds checkpoint_every{};  ///< Working time between two checkpoints, at least 1 s; 0 when none is needed.
  double failures = 0.0;       ///< Expected number of failures in the whole run.
  double days = 0.0;
  double gpu_hours = 0.0;
  double energy_kwh = 0.0;
  double cost = 0.0;
  double cost_per_mtok = 0.0;  ///< Cost per million tokens.
};

RunTotals totals_of(const RunTerms& terms);

/// Times on which the best interval between checkpoints depends.
struct CheckpointTimes {
  Seconds checkpoint{};        ///< Time that training pauses for one checkpoint.
  Seconds between_failures{};  ///< Mean time between failures; above 0.
};

/// Returns the working time between two checkpoints that loses the least time (Daly, "A higher order estimate of the
/// optimum checkpoint interval for restart dumps", Future Generation Computer Systems 22, 2006).
Seconds checkpoint_interval(const CheckpointTimes& times);

}  // namespace commfuse
