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
#include <tuple>
#include <utility>

#include "model/check.h"
#include "model/config_error.h"
#include "model/fit/fit_quality.h"
#include "model/fit/parameter_yaml.h"
#include "model/fit/prior_fit.h"
#include "model/math/functions.h"
#include "model/text/counted.h"
#include "sim/point/request.h"
#include "sim/score/doubts.h"
#include "sim/score/implementation_residuals.h"
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
  [[nodiscard]] NcclGeneration generation() const { return point.machine.link.collective.nccl->tuning.generation; }
};
using Samples = std::vector<const Sample*>;

/// The rows that a fit may use.
struct Readable {
  std::set<std::string> without = {};                 ///< threads whose rows the fit leaves out
  std::optional<NcclGeneration> elsewhere_than = {};  ///< generation whose rows the fit leaves out
  [[nodiscard]] bool includes(const Sample& sample) const {
    return !without.contains(sample.thread) && sample.generation() != elsewhere_than;
  }
};

/// Values of parameters by name, times in us and rates in GB/s.
using Values = std::map<std::string, double>;

/// The prior of a parameter: an estimate over kernels of all kinds. Times are in us, rates in GB/s. For rate_share, the
/// share of the transport replaces `start`.
struct CostPrior {
  std::string_view name;
  double start, spread, lower, upper;
};
constexpr std::array cost_priors{
    CostPrior{"per_call", 60.0, 0.7, 0.1, 1000.0},   CostPrior{"per_step", 30.0, 1.0, 0.01, 500.0},
    CostPrior{"product_time", 1.06, 0.08, 0.5, 3.0}, CostPrior{"cut_cost", 0.4, 0.8, 0.01, 2.0},
    CostPrior{"rate_share", 0.0, 0.4, 0.02, 1.0},    CostPrior{"rate", 80.0, 0.7, 1.0, 2000.0}};
constexpr double noise = 0.12;  // relative scatter of a row around the fitted formula
constexpr std::size_t most_rows_of_source = 48;

const CostPrior& prior_of(std::string_view name) {
  const auto prior = std::ranges::find(cost_priors, name, &CostPrior::name);
  check(prior != cost_priors.end(), "the reader of the file supports the parameter");
  return *prior;
}

/// A fitted parameter: "ag_gemm.cut_cost" applies to one kind of site, "per_call" to all kinds.
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

double value_of(const Parameter<Duration>& parameter) { return to_microseconds(parameter.value); }
double value_of(const Parameter<double>& parameter) { return parameter.value; }
double value_of(const Parameter<int>& parameter) { return parameter.value; }
double value_of(const std::optional<Parameter<BytesPerSecond>>& parameter) { return parameter->value.value * 1e-9; }

bool is_determined(const std::optional<Parameter<BytesPerSecond>>& parameter) {
  return parameter && parameter->provenance == Provenance::fitted;
}
template <class T>
bool is_determined(const Parameter<T>& parameter) {
  return parameter.provenance == Provenance::fitted;
}

/// Calls `visit` with the parameter of each site that the implementation covers and to which the knob applies.
template <class Visit>
void for_each_parameter(const Implementation& implementation, ImplementedSites& sites, const Knob& knob,
                        const Visit& visit) {
  for (const ImplementedKind& kind : implemented_kinds) {
    ImplementedSite* const site = &(sites.*kind.costs);
    if (kind.is_fitted && covers(implementation, kind.kind) && knob.applies_to(name_of(kind.kind))) {
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

  [[nodiscard]] double log_ratio(const Sample& sample) { return log_ratio(sample, predict_best(point_of(sample))); }

  /// Compares the sample with this fit's prediction. `sample` must come from a source that the fit did not use.
  [[nodiscard]] HeldOutTime held_out(const Sample& sample, bool is_elsewhere) {
    const Point point = point_of(sample);
    const Prediction best = predict_best(point);
    sites_.residual.value = 0.0;
    return {.thread = sample.thread,
            .is_elsewhere = is_elsewhere,
            .log_ratio = log_ratio(sample, best),
            .stated_error = error_of(predictor_.uncertainty(point, best))};
  }

  /// Fits the parameters. Without samples, the parameters keep their priors. `family` has fitted parameters of similar
  /// implementations, which replace the starting values of their priors, except that of rate_share.
  void fit(const Samples& samples, const Values& family) {
    std::vector<PriorParameter> priors;
    for (const Knob& knob : knobs_) {
      const CostPrior& prior = prior_of(knob.leaf());
      const auto alike = family.find(knob.name);
      const bool has_family = alike != family.end() && knob.leaf() != "rate_share";
      // Kernels reach about the same share of the link rate as their transport.
      const double start = knob.leaf() == "rate_share"
                               ? rate_share_of(implementation_.transport, implementation_.generations.front()).value
                           : has_family ? std::clamp(alike->second, prior.lower, prior.upper)
                                        : prior.start;
      priors.push_back({knob.name, start, prior.lower, prior.upper, prior.spread});
      put(knob, start);
      const char* source = has_family ? "kernels of the same strategy and transport" : "kernels of all kinds";
      for_each_parameter(implementation_, sites_, knob,
                         [&](auto& parameter) { describe(parameter, prior.spread, "prior", source); });
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
      for_each_parameter(implementation_, sites_, knob, [&](auto& parameter) {
        describe(parameter, fit.parameters[i].standard_error, "fitted", fmt::format("{}", fmt::join(tables, ", ")));
      });
    }
  }

  /// Returns the values of the parameters that the rows determine.
  [[nodiscard]] Values fitted_values() {
    Values values;
    for (const Knob& knob : knobs_) {
      for_each_parameter(implementation_, sites_, knob, [&](const auto& parameter) {
        if (is_determined(parameter)) {
          values[knob.name] = value_of(parameter);
        }
      });
    }
    return values;
  }

  void set_residuals(double measured, double elsewhere) {
    const auto fitted = [](double value, const char* source) {
      return Parameter<double>{value, 0.0, Provenance::fitted, source};
    };
    sites_.residual = fitted(measured, "sources left out");
    sites_.elsewhere = implementation_.stands_in ? Parameter<double>{} : fitted(elsewhere, "generations left out");
  }

  [[nodiscard]] std::string yaml(int indent) const {
    const std::string space(static_cast<std::size_t>(indent), ' ');
    std::string text = parameter_line("residual", sites_.residual, indent);
    text += line_of("elsewhere", sites_.elsewhere, indent);
    for (const ImplementedKind& kind : implemented_kinds) {
      const std::string_view name = name_of(kind.kind);
      std::string lines;
      each_entry<ImplementedSite>([&, site = &(sites_.*kind.costs)](const auto& entry) {
        const bool is_of_transport = entry.key == "rate_share" && std::ranges::none_of(knobs_, [&](const Knob& knob) {
                                       return knob.leaf() == "rate_share" && knob.applies_to(name);
                                     });
        lines += is_of_transport ? "" : line_of(entry.key, site->*entry.member, indent + 2);
      });
      const bool is_shown = kind.is_fitted && covers(implementation_, kind.kind) && !lines.empty();
      text += is_shown ? fmt::format("{}{}:\n{}", space, name, lines) : "";
    }
    return text;
  }

 private:
  [[nodiscard]] Point point_of(const Sample& sample) const {
    Point point = priced_as(sample.point, implementation_, implementation_.costs);
    point.price.implementation = &sites_;
    return point;
  }
  [[nodiscard]] Prediction predict_best(const Point& point) {
    return predictor_.predict_best(point, *implementation_.strategy,
                                   schedules_of(implementation_, point.scope, point.ranks, point.dtype));
  }
  [[nodiscard]] static double log_ratio(const Sample& sample, const Prediction& best) {
    return math::log(to_microseconds(best.analysis.critical.makespan) / sample.us);
  }

  void put(const Knob& knob, double value) {
    for_each_parameter(implementation_, sites_, knob, [&](auto& parameter) { set(parameter, value); });
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
    require_possible(point_of(row, machine, Launch::stream));
    return true;
  } catch (const ConfigError&) {
    return false;
  }
}

std::vector<Sample> samples_of(const std::vector<std::filesystem::path>& tables, const KnownImplementations& known,
                               KnownMachines& machines, Doubts& doubts) {
  std::vector<Sample> samples;
  std::set<std::string> seen;
  for (const std::filesystem::path& path : tables) {
    const Table table = read_table(path);
    const Kind* kind = kind_of(table);
    if (kind == nullptr || kind->name != "overlap_pairs") {
      continue;
    }
    const std::string stem = path.stem().string();
    const std::string thread = thread_of(table, stem);
    const OverlapMachines known_machines(table, stem, machines);
    const OverlapColumns columns = overlap_columns(table, stem, known);
    if (!columns.says_operator) {
      continue;
    }
    for (std::size_t i = 0; i < table.rows(); ++i) {
      Row row(table, i);
      const OverlapRow overlap = overlap_row(row, columns);
      const FoundMachine known_machine = known_machines.of(row.text(columns.hw));
      if (!row.is_sound() || known_machine.machine == nullptr || !is_possible(overlap, *known_machine.machine)) {
        continue;
      }
      for (const auto& [column, us] : overlap.implemented) {
        const auto implementation = std::ranges::find(known, columns.implemented[column].implementation);
        Point point = point_of(overlap, *known_machine.machine, columns.launch);
        point.raised = doubts.raised(*known_machine.machine);
        // Several tables may repeat a row of the same thread.
        const bool is_new =
            seen.insert(fmt::format("{} {} {} {} {} {} {} {} {}", thread, known_machine.machine->name,
                                    columns.implemented[column].time.name, name_of(point.scope), overlap.m, overlap.n,
                                    overlap.k, overlap.ranks, name_of(overlap.dtype)))
                .second;
        if (implementation != known.end() && is_new && refusal_of(**implementation, point).empty()) {
          samples.push_back({thread, static_cast<std::size_t>(implementation - known.begin()), point, us});
        }
      }
    }
  }
  return samples;
}

/// Returns at most `most_rows_of_source` rows per source and implementation, evenly spread. Rows of one source share
/// its errors, so more of them would outweigh other sources without more information.
std::vector<Sample> without_excess(const std::vector<Sample>& samples) {
  using Group = std::pair<std::string, std::size_t>;
  std::map<Group, std::size_t> rows;
  for (const Sample& sample : samples) {
    ++rows[{sample.thread, sample.implementation}];
  }
  std::map<Group, std::size_t> places;
  std::vector<Sample> kept;
  for (const Sample& sample : samples) {
    const Group group{sample.thread, sample.implementation};
    const std::size_t place = places[group]++;
    if (place * most_rows_of_source % rows[group] < most_rows_of_source) {
      kept.push_back(sample);
    }
  }
  return kept;
}

/// Returns whether rows of `measured` belong to the fit of `implementation`: always its own rows, and rows of other
/// implementations of its strategy if it stands in for all of them.
bool belongs_to_fit(const Implementation& implementation, const Implementation& measured) {
  return &implementation == &measured || (implementation.stands_in && measured.strategy == implementation.strategy);
}

/// Fits implementations to subsets of their rows, and each subset only once.
class Fits {
 public:
  Fits(const KnownImplementations& known, std::span<const Sample> samples, Predictor& predictor)
      : known_(known), predictor_(predictor), samples_(known.size()) {
    for (std::size_t i = 0; i < known.size(); ++i) {
      for (const Sample& sample : samples) {
        if (!known[i]->fitted.empty() && belongs_to_fit(*known[i], *known[sample.implementation])) {
          samples_[i].push_back(&sample);
        }
      }
    }
  }

  [[nodiscard]] const Samples& samples(std::size_t implementation) const { return samples_[implementation]; }

  [[nodiscard]] Samples samples(std::size_t implementation, const Readable& readable) const {
    Samples kept;
    std::ranges::copy_if(samples_[implementation], std::back_inserter(kept),
                         [&](const Sample* sample) { return readable.includes(*sample); });
    return kept;
  }

  ImplementationFit& of(std::size_t implementation, const Readable& readable) {
    const Samples read = samples(implementation, readable);
    const Values family = read.empty() ? family_of(implementation, readable) : Values{};
    std::unique_ptr<ImplementationFit>& fit = fits_[{implementation, read, family}];
    if (fit == nullptr) {
      fit = std::make_unique<ImplementationFit>(*known_[implementation], predictor_);
      fit->fit(read, family);
    }
    return *fit;
  }

  /// Returns the times of all sources except `thread`, each predicted by a fit that used neither its source nor
  /// `thread`.
  std::vector<HeldOutTime> held_out(const std::string& thread) {
    std::vector<HeldOutTime> times;
    for (std::size_t i = 0; i < known_.size(); ++i) {
      for (const Sample* sample : samples_[i]) {
        if (sample->thread != thread) {
          add_held_out(i, *sample, thread, times);
        }
      }
    }
    return times;
  }

 private:
  /// Returns the geometric means of the parameters of other implementations with the same strategy and transport, as
  /// fits to the readable rows determine them.
  Values family_of(std::size_t implementation, const Readable& readable) {
    struct Mean {
      double sum_of_logs = 0.0;
      double count = 0.0;
    };
    std::map<std::string, Mean> means;
    const Implementation& wanted = *known_[implementation];
    for (std::size_t i = 0; i < known_.size(); ++i) {
      const Implementation& other = *known_[i];
      if (i == implementation || other.stands_in || other.strategy != wanted.strategy ||
          other.transport != wanted.transport || samples(i, readable).empty()) {
        continue;
      }
      for (const auto& [name, value] : of(i, readable).fitted_values()) {
        means[name].sum_of_logs += math::log(value);
        means[name].count += 1.0;
      }
    }
    Values values;
    for (const auto& [name, mean] : means) {
      values[name] = math::exp(mean.sum_of_logs / mean.count);
    }
    return values;
  }

  void add_held_out(std::size_t implementation, const Sample& sample, const std::string& thread,
                    std::vector<HeldOutTime>& times) {
    const auto add = [&](const Readable& readable, bool is_elsewhere) {
      times.push_back(of(implementation, readable).held_out(sample, is_elsewhere));
      times.back().implementation = implementation;
    };
    const auto is_near = [&](const Sample* other) { return other->generation() == sample.generation(); };
    const Readable others{.without = {thread, sample.thread}};
    if (known_[implementation]->stands_in) {
      return add(others, false);  // A stand-in always stands for a kernel that no row measures.
    }
    if (std::ranges::any_of(samples(implementation, others), is_near)) {
      add(others, false);
    }
    const Readable far{.without = others.without, .elsewhere_than = sample.generation()};
    if (!samples(implementation, far).empty()) {
      add(far, true);
    }
  }

  const KnownImplementations& known_;
  Predictor& predictor_;
  std::vector<Samples> samples_;  ///< By implementation.
  std::map<std::tuple<std::size_t, Samples, Values>, std::unique_ptr<ImplementationFit>> fits_;
};

/// Returns the lines of a fit with its residuals. The residuals of a stand-in come only from times of stand-ins; the
/// residuals of any other implementation come only from times of implementations that are not stand-ins.
std::string fit_yaml(ImplementationFit& fit, std::size_t implementation, const KnownImplementations& known,
                     std::vector<HeldOutTime> held_out, int indent) {
  std::erase_if(held_out, [&](const HeldOutTime& time) {
    return known[time.implementation]->stands_in != known[implementation]->stands_in;
  });
  fit.set_residuals(residual_where_measured(implementation, held_out), residual_elsewhere(held_out));
  return fit.yaml(indent);
}

std::string generations_in_words(const Samples& samples) {
  std::set<std::string_view> names;
  for (const Sample* sample : samples) {
    names.insert(name_of(sample->generation()));
  }
  std::string text;
  for (const std::string_view name : names) {
    text += fmt::format("{}{}: {{}}", text.empty() ? "" : ", ", name);
  }
  return text;
}

/// Results of Fits::held_out() by its argument; with "", no thread is left out.
using HeldOutBy = std::map<std::string, std::vector<HeldOutTime>>;

std::string fitted_yaml(const KnownImplementations& known, std::size_t index, Fits& fits, HeldOutBy& held_out) {
  const Implementation& implementation = *known[index];
  const Samples& samples = fits.samples(index);
  std::set<std::string> threads;
  for (const Sample* sample : samples) {
    threads.insert(sample->thread);
  }
  std::string without;
  std::vector<double> errors;
  for (const std::string& thread : threads) {
    const Readable others{.without = {thread}};
    ImplementationFit& fit = fits.of(index, others);
    for (const Sample* sample : samples) {
      if (sample->thread == thread) {
        errors.push_back(std::abs(math::exp(fit.log_ratio(*sample)) - 1.0));
      }
    }
    const std::string generations = generations_in_words(fits.samples(index, others));
    without += fmt::format(
        "  {}:\n{}    costs:\n{}", thread,
        generations.empty() || implementation.stands_in ? "" : fmt::format("    measured_on: {{{}}}\n", generations),
        fit_yaml(fit, index, known, held_out[thread], 6));
  }
  const FitQuality quality = fit_quality(errors);
  return fmt::format(
      "# {}: {} from {}; error with each source held out: median {:.1f}%, p90 {:.1f}%\ncosts:\n{}without:\n{}",
      implementation.name, counted(samples.size(), "row"), counted(threads.size(), "source"), 100.0 * quality.median,
      100.0 * quality.p90, fit_yaml(fits.of(index, {}), index, known, held_out[""], 2), without);
}

}  // namespace

std::string implementation_costs_yaml(const std::vector<std::filesystem::path>& tables) {
  const KnownImplementations known = load_implementations("all");
  KnownMachines machines;
  StructureCache structures;
  Predictor predictor(structures);
  Doubts doubts;
  const std::vector<Sample> samples = without_excess(samples_of(tables, known, machines, doubts));
  Fits fits(known, samples, predictor);
  HeldOutBy held_out{{"", fits.held_out("")}};
  for (const Sample& sample : samples) {
    if (!held_out.contains(sample.thread)) {
      held_out[sample.thread] = fits.held_out(sample.thread);
    }
  }
  std::string text;
  for (std::size_t i = 0; i < known.size(); ++i) {
    if (!fits.samples(i).empty()) {
      text += fitted_yaml(known, i, fits, held_out);
    }
  }
  if (text.empty()) {
    throw ConfigError("no table has times of an implementation whose parameters are fitted; name one with --data");
  }
  return text;
}

}  // namespace commfuse::score
