// SPDX-License-Identifier: Apache-2.0
// Runs the benchmarks and reports how the time of each family grows with P, the number of ranks (of points in
// sweep_bench.cpp, of nodes in verdict_bench.cpp): the least-squares slope of log(time) over log(P).
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <cmath>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "bench/child.h"

namespace {

using Points = std::vector<std::pair<double, double>>;  // log P, log seconds

double slope(const Points& points) {
  double x = 0.0;
  double y = 0.0;
  for (const auto& [p, t] : points) {
    x += p / static_cast<double>(points.size());
    y += t / static_cast<double>(points.size());
  }
  double covariance = 0.0;
  double variance = 0.0;
  for (const auto& [p, t] : points) {
    covariance += (p - x) * (t - y);
    variance += (p - x) * (p - x);
  }
  return covariance / variance;
}

/// Prints to the console, with the growth exponents at the end.
class Reporter : public benchmark::ConsoleReporter {
 public:
  void ReportRuns(const std::vector<Run>& runs) override {
    for (const Run& run : runs) {
      const auto ranks = run.counters.find("P");
      if (ranks != run.counters.end() && run.run_type == Run::RT_Iteration) {
        growth_[run.run_name.function_name].emplace_back(std::log(ranks->second.value),
                                                         std::log(run.GetAdjustedRealTime()));
      }
    }
    ConsoleReporter::ReportRuns(runs);
  }

  void Finalize() override {
    for (const auto& [name, points] : growth_) {
      if (points.size() > 1) {
        GetOutputStream() << fmt::format("{}: time grows as P^{:.2f}\n", name, slope(points));
      }
    }
  }

 private:
  std::map<std::string, Points> growth_;
};

}  // namespace

int main(int argc, char** argv) {
  if (commfuse::bench::is_launch(argc, argv)) {
    return commfuse::bench::launch(argv);
  }
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) {
    return 2;
  }
  Reporter reporter;
  benchmark::RunSpecifiedBenchmarks(&reporter);
  return 0;
}
