// SPDX-License-Identifier: Apache-2.0
#include "sim/score/implementation_fit.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <utility>

#include "model/check.h"
#include "model/config_error.h"
#include "model/fit/fit_quality.h"
#include "model/fit/parameter_yaml.h"
#include "model/fit/prior_fit.h"
#include "model/math/functions.h"
#include "sim/point/request.h"
#include "sim/score/kinds.h"
#include "sim/score/machine_column.h"
#include "sim/score/overlap_pairs.h"

namespace commfuse::score {

namespace {

/// A measured time of an implementation.
struct Sample {
  std::string thread;
  std::size_t implementation = 0;
  Point point;
  double us = 0.0;
};

/// The prior of a parameter: an estimate over kernels of all kinds. Times are in us, rates in GB/s.
struct CostPrior {
  std::string_view name;
  double start, spread, lower, upper;
};
constexpr std::array cost_priors{
    CostPrior{"per_call", 60.0, 0.7, 0.1, 1000.0},   CostPrior{"per_step", 30.0, 1.0, 0.01, 500.0},
    CostPrior{"product_time", 1.06, 0.08, 0.5, 3.0}, CostPrior{"cut_cost", 0.4, 0.8, 0.01, 2.0},
    CostPrior{"rate_share", 0.6, 0.4, 0.02, 1.0},    CostPrior{"rate", 80.0, 0.7, 1.0, 2000.0}};
constexpr double noise = 0.12;           // relative scatter of a row around the fitted formula
constexpr double residual_before = 0.2;  // prior of the residual, relative
constexpr double rows_before = 3.0;      // weight of that prior, as a number of rows

const CostPrior& prior_of(std::string_view name) {
  const auto prior = std::ranges::find(cost_priors, name, &CostPrior::name);
  check(prior != cost_priors.end(), "the reader of the file supports the parameter");
  return *prior;
}

/// A fitted parameter: "ag_gemm.cut_cost" applies to one kind of site, "per_call" to both.
struct Knob {
  std::string name;
  [[nodiscard]] std::string_view leaf() const { return std::string_view(name).substr(name.rfind('.') + 1); }
  [[nodiscard]] bool applies_to(std::string_view site) const {
    return name.find('.') == std::string::npos || name.starts_with(site);
  }
};

void set(Parameter<Duration>& parameter, double us) { parameter.value = from_seconds(us * 1e-6); }
void set(Parameter<double>& parameter, double value) { parameter.value = value; }
void set(Parameter<int>&, double) {}
void set(std::optional<Parameter<BytesPerSecond>>& parameter, double gb_s) {
  parameter.emplace().value = BytesPerSecond{gb_s * 1e9};
}

/// Calls `visit` with the parameter of each site to which the knob applies.
template <class Visit>
void for_each_parameter(ImplementedSites& sites, const Knob& knob, const Visit& visit) {
  for (const auto& [site, name] : {std::pair(&sites.ag_gemm, "ag_gemm"), std::pair(&sites.gemm_rs, "gemm_rs")}) {
    if (knob.applies_to(name)) {
      each_entry<ImplementedSite>([&, current = site](const auto& entry) {
        if (entry.key == knob.leaf()) {
          visit(current->*entry.member);
        }
      });
    }
  }
}

class ImplementationFit {
 public:
  ImplementationFit(const Implementation& implementation, Predictor& predictor)
      : implementation_(implementation),
        predictor_(predictor),
        sites_(implementation.costs.generations[static_cast<std::size_t>(NcclGeneration::hopper)]) {
    for (const std::string& name : implementation.fitted) {
      knobs_.push_back({name});
    }
  }

  [[nodiscard]] double log_ratio(const Sample& sample) {
    Point point = priced_as(sample.point, implementation_, implementation_.costs);
    point.price.implementation = &sites_;
    const Prediction best = predictor_.predict_best(
        point, *implementation_.strategy, schedules_of(implementation_, point.scope, point.ranks, point.dtype));
    return math::log(to_microseconds(best.analysis.critical.makespan) / sample.us);
  }

  /// Fits the parameters. Without samples, the priors remain.
  void fit(std::span<const Sample* const> samples) {
    std::vector<PriorParameter> priors;
    for (const Knob& knob : knobs_) {
      const CostPrior& prior = prior_of(knob.leaf());
      priors.push_back({knob.name, prior.start, prior.lower, prior.upper, prior.spread});
      put(knob, prior.start);
      for_each_parameter(sites_, knob,
                         [&](auto& parameter) { describe(parameter, prior.spread, "prior", "kernels of all kinds"); });
    }
    if (samples.empty()) {
      return;
    }
    const PriorRows rows{.count = samples.size(),
                         .put = [&](std::size_t index, double value) { put(knobs_[index], value); },
                         .log_ratio = [&](std::size_t row) { return log_ratio(*samples[row]); },
                         .weight = [](std::size_t) { return 1.0; }};
    const PriorFit fit = prior_fit(priors, rows,
                                   {.decided = 0.98,
                                    .noise = noise,
                                    .max_spreads = 4.0,
                                    .is_noise_known = true,
                                    .fit = {.max_iterations = 60, .tolerance = 1e-5, .difference_step = 1e-3}});
    std::set<std::string> tables;
    for (const Sample* sample : samples) {
      tables.insert(sample->thread);
    }
    for (std::size_t i = 0; i < fit.places.size(); ++i) {
      const Knob& knob = knobs_[fit.places[i]];
      for_each_parameter(sites_, knob, [&](auto& parameter) {
        describe(parameter, fit.parameters[i].standard_error, "fitted", fmt::format("{}", fmt::join(tables, ", ")));
      });
    }
  }

  void set_residual(double residual) {
    sites_.residual = {
        .value = residual, .standard_error = 0.0, .provenance = Provenance::fitted, .source = "tables left out"};
  }

  [[nodiscard]] std::string yaml(int indent) const {
    const std::string space(static_cast<std::size_t>(indent), ' ');
    std::string text = parameter_line("residual", sites_.residual, indent);
    for (const auto& [site, name] : {std::pair(&sites_.ag_gemm, "ag_gemm"), std::pair(&sites_.gemm_rs, "gemm_rs")}) {
      std::string lines;
      each_entry<ImplementedSite>([&, current = site, site_name = std::string_view(name)](const auto& entry) {
        const bool is_of_transport = entry.key == "rate_share" && std::ranges::none_of(knobs_, [&](const Knob& knob) {
                                       return knob.leaf() == "rate_share" && knob.applies_to(site_name);
                                     });
        lines += is_of_transport ? "" : line_of(entry.key, current->*entry.member, indent + 2);
      });
      text += lines.empty() ? "" : fmt::format("{}{}:\n{}", space, name, lines);
    }
    return text;
  }

 private:
  void put(const Knob& knob, double value) {
    for_each_parameter(sites_, knob, [&](auto& parameter) { set(parameter, value); });
  }

  template <class T>
  static void describe(Parameter<T>& parameter, double error, std::string_view kind, const std::string& source) {
    parameter.standard_error = error;
    parameter.provenance = *provenance_named(kind);
    parameter.source = source;
  }
  template <class T>
  static void describe(std::optional<Parameter<T>>& parameter, double error, std::string_view kind,
                       const std::string& source) {
    describe(*parameter, error, kind, source);
  }

  /// Returns the line of a parameter; empty for defaults, which have no source.
  template <class T>
  static std::string line_of(std::string_view key, const Parameter<T>& parameter, int indent) {
    return parameter.source.empty() ? "" : parameter_line(key, parameter, indent);
  }
  template <class T>
  static std::string line_of(std::string_view key, const std::optional<Parameter<T>>& parameter, int indent) {
    return parameter ? line_of(key, *parameter, indent) : "";
  }

  const Implementation& implementation_;
  Predictor& predictor_;
  ImplementedSites sites_;
  std::vector<Knob> knobs_;
};

bool is_possible(const OverlapRow& row, const Machine& machine) {
  try {
    require_possible(point_of(row, machine));
    return true;
  } catch (const ConfigError&) {
    return false;
  }
}

std::vector<Sample> samples_of(const std::vector<std::filesystem::path>& tables, const KnownImplementations& known,
                               KnownMachines& machines, Predictor& predictor) {
  std::vector<Sample> samples;
  std::set<std::string> seen;
  for (const std::filesystem::path& path : tables) {
    const Table table = read_table(path);
    const Kind* kind = kind_of(table);
    if (kind == nullptr || kind->name != "overlap_pairs") {
      continue;
    }
    const std::string stem = path.stem().string();
    const std::string thread = thread_of(table);
    const OverlapMachines known_machines(table, stem, machines);
    const OverlapColumns columns = overlap_columns(table, stem, known);
    if (!columns.says_operator) {
      continue;
    }
    for (std::size_t i = 0; i < table.rows(); ++i) {
      Row row(table, i);
      const OverlapRow overlap = overlap_row(row, columns);
      const FoundMachine known_machine = known_machines.of(row.text(columns.hw));
      if (!row.is_sound() || overlap.reduces_all || known_machine.machine == nullptr ||
          !is_possible(overlap, *known_machine.machine)) {
        continue;
      }
      if (columns.is_eager && is_host_bound(overlap, *known_machine.machine, predictor)) {
        continue;
      }
      for (const auto& [column, us] : overlap.implemented) {
        const auto implementation = std::ranges::find(known, columns.implemented[column].implementation);
        const Point point = point_of(overlap, *known_machine.machine);
        // Several tables may repeat a row of the same thread.
        const bool is_new = seen.insert(fmt::format("{} {} {} {} {} {} {} {} {}", thread, known_machine.machine->name,
                                                    columns.implemented[column].time.name, overlap.scatters, overlap.m,
                                                    overlap.n, overlap.k, overlap.ranks, name_of(overlap.dtype)))
                                .second;
        if (implementation != known.end() && is_new &&
            refusal_of(**implementation, *known_machine.machine, overlap.ranks, overlap.dtype).empty()) {
          samples.push_back({thread, static_cast<std::size_t>(implementation - known.begin()), point, us});
        }
      }
    }
  }
  return samples;
}

/// Returns whether rows of `measured` belong to the fit of `implementation`: always its own rows, and rows of other
/// implementations of its strategy if it stands in for all of them.
bool belongs_to_fit(const Implementation& implementation, const Implementation& measured) {
  return &implementation == &measured || (implementation.stands_in && measured.strategy == implementation.strategy);
}

std::string fitted_yaml(const Implementation& implementation, std::span<const Sample* const> samples,
                        Predictor& predictor) {
  std::set<std::string> threads;
  for (const Sample* sample : samples) {
    threads.insert(sample->thread);
  }
  std::string without;
  std::vector<double> errors;
  double squares = rows_before * residual_before * residual_before;
  for (const std::string& thread : threads) {
    ImplementationFit fit(implementation, predictor);
    std::vector<const Sample*> other_samples;
    std::ranges::copy_if(samples, std::back_inserter(other_samples),
                         [&](const auto* sample) { return sample->thread != thread; });
    fit.fit(other_samples);
    for (const Sample* sample : samples) {
      if (sample->thread == thread) {
        const double log_ratio = fit.log_ratio(*sample);
        squares += log_ratio * log_ratio;
        errors.push_back(std::abs(math::exp(log_ratio) - 1.0));
      }
    }
    fit.set_residual(residual_before);
    without += fmt::format("  {}:\n    costs:\n{}", thread, fit.yaml(6));
  }
  ImplementationFit fit(implementation, predictor);
  fit.fit(samples);
  fit.set_residual(std::sqrt(squares / (rows_before + static_cast<double>(samples.size()))));
  const FitQuality quality = fit_quality(errors);
  return fmt::format(
      "# {}: {} {} from {} {}; error with each source held out: median {:.1f}%, p90 {:.1f}%\n"
      "costs:\n{}without:\n{}",
      implementation.name, samples.size(), samples.size() == 1 ? "row" : "rows", threads.size(),
      threads.size() == 1 ? "source" : "sources", 100.0 * quality.median, 100.0 * quality.p90, fit.yaml(2), without);
}

}  // namespace

std::string implementation_costs_yaml(const std::vector<std::filesystem::path>& tables) {
  const KnownImplementations known = load_implementations("all");
  KnownMachines machines;
  StructureCache structures;
  Predictor predictor(structures);
  const std::vector<Sample> samples = samples_of(tables, known, machines, predictor);
  std::string text;
  for (const auto& implementation : known) {
    std::vector<const Sample*> own_samples;
    for (const Sample& sample : samples) {
      if (belongs_to_fit(*implementation, *known[sample.implementation])) {
        own_samples.push_back(&sample);
      }
    }
    if (!own_samples.empty() && !implementation->fitted.empty()) {
      text += fitted_yaml(*implementation, own_samples, predictor);
    }
  }
  if (text.empty()) {
    throw ConfigError("no table has times of an implementation whose parameters are fitted; name one with --data");
  }
  return text;
}

}  // namespace commfuse::score
