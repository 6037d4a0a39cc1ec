// SPDX-License-Identifier: Apache-2.0
#include "model/fit/link_fit.h"

#include <Eigen/Dense>
#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <iterator>
#include <memory>
#include <numeric>
#include <utility>

#include "model/check.h"
#include "model/cost/communication.h"
#include "model/hardware/machine.h"
#include "model/math/functions.h"

namespace commfuse {

namespace {

constexpr double residual_of_a_row = 0.05;  // What a good fit leaves; the prior's rows weigh as much.
constexpr double widest = 1e3;              // Times what a parameter starts at, or over it.
constexpr double nudge = 0.01;              // Of a logarithm, to see what depends on a parameter.
constexpr double worth_a_protocol = 0.9;
constexpr std::ptrdiff_t least_rows_of_a_protocol = 6;

double number_of(Duration duration) { return to_microseconds(duration); }
double number_of(BytesPerSecond rate) { return rate.value; }
double number_of(Bytes size) { return static_cast<double>(size.count); }

void put(double number, Duration& duration) { duration = from_seconds(1e-6 * number); }
void put(double number, BytesPerSecond& rate) { rate = {number}; }
void put(double number, Bytes& size) { size = {std::llround(number)}; }

/// A parameter of a machine as one of a fit.
struct Slot {
  std::string name;
  double start = 0.0;
  double upper = 0.0;
  std::function<void(double)> put;
  std::function<void(const FittedParameter&)> conclude;
};

/// The parameters of a machine that may be fitted, and where their values go.
class Slots {
 public:
  explicit Slots(const LinkFitOptions& options) : source_(options.source), most_(options.most) {}

  template <class T>
  void add(const std::string& name, Parameter<T>& parameter) {
    const double start = number_of(parameter.value);
    if (start <= 0.0) {
      return;  // Not there: no share of it can be moved.
    }
    slots_.push_back({name, start, start * widest,
                      [&parameter](double number) { commfuse::put(number, parameter.value); },
                      [&parameter, this](const FittedParameter& fitted) {
                        commfuse::put(fitted.value, parameter.value);
                        parameter.standard_error = fitted.standard_error;
                        parameter.provenance = Provenance::fitted;
                        parameter.source = source_;
                      }});
  }

  /// A rate over the wires, which are built for no more than the options say.
  void add_wires(const std::string& name, Parameter<BytesPerSecond>& rate) {
    rate.value.value = std::min(rate.value.value, most_.value);
    add(name, rate);
    if (rate.value.value > 0.0) {
      slots_.back().upper = std::min(slots_.back().upper, most_.value);
    }
  }

  void add(const std::string& name, ProtocolParameters& protocol) {
    add(name + "base_latency", protocol.base_latency);
    add(name + "step_latency", protocol.step_latency);
    add_wires(name + "rate", protocol.rate);
    add(name + "own_copy_rate", protocol.own_copy_rate);
    add(name + "ramp_size", protocol.ramp_size);
  }

  [[nodiscard]] std::size_t size() const { return slots_.size(); }
  Slot& operator[](std::size_t i) { return slots_[i]; }
  void keep(const std::vector<bool>& kept) {
    std::size_t i = 0;
    std::erase_if(slots_, [&](const Slot&) { return !kept[i++]; });
  }

 private:
  std::string source_;
  BytesPerSecond most_;
  std::vector<Slot> slots_;
};

/// The rows of one fit: what is predicted with the values that stand in the slots.
struct Rows {
  std::size_t count = 0;
  std::function<double(std::size_t)> predicted_us;
  std::function<double(std::size_t)> measured_us;
  std::function<double(std::size_t)> weight;
};

/// On which slots some row depends, by slot.
std::vector<bool> felt(Slots& slots, const Rows& rows) {
  std::vector<double> before(rows.count);
  for (std::size_t i = 0; i < rows.count; ++i) {
    before[i] = rows.predicted_us(i);
  }
  std::vector<bool> felt;
  for (std::size_t slot = 0; slot < slots.size(); ++slot) {
    slots[slot].put(slots[slot].start * math::exp(nudge));
    bool any = false;
    for (std::size_t i = 0; i < rows.count && !any; ++i) {
      any = std::abs(rows.predicted_us(i) / before[i] - 1.0) > 1e-7;
    }
    felt.push_back(any);
    slots[slot].put(slots[slot].start);
  }
  return felt;
}

/// How sure each logarithm is, a posteriori: the prior's spread and what the rows say, taken as linear where they stand
/// (Gelman et al., "Bayesian Data Analysis", 2013, section 14.8).
std::vector<double> posterior_errors(Slots& slots, const Rows& rows, std::span<const double> values, double spread,
                                     double prior_spread) {
  const auto slot_count = static_cast<Eigen::Index>(slots.size());
  const auto row_count = static_cast<Eigen::Index>(rows.count);
  Eigen::MatrixXd jacobian(row_count, slot_count);
  const auto logs = [&] {
    Eigen::VectorXd predicted(row_count);
    for (Eigen::Index i = 0; i < row_count; ++i) {
      const auto row = static_cast<std::size_t>(i);
      predicted(i) = rows.weight(row) * math::log(rows.predicted_us(row));
    }
    return predicted;
  };
  for (Eigen::Index slot = 0; slot < slot_count; ++slot) {
    const auto place = static_cast<std::size_t>(slot);
    slots[place].put(values[place] * math::exp(nudge));
    const Eigen::VectorXd above = logs();
    slots[place].put(values[place] * math::exp(-nudge));
    jacobian.col(slot) = (above - logs()) / (2.0 * nudge);
    slots[place].put(values[place]);
  }
  const double noise = std::max(spread, residual_of_a_row);
  const Eigen::MatrixXd precision = jacobian.transpose() * jacobian / (noise * noise) +
                                    Eigen::MatrixXd::Identity(slot_count, slot_count) / (prior_spread * prior_spread);
  const Eigen::MatrixXd covariance = precision.ldlt().solve(Eigen::MatrixXd::Identity(slot_count, slot_count));
  std::vector<double> errors;
  for (Eigen::Index slot = 0; slot < slot_count; ++slot) {
    errors.push_back(std::sqrt(std::max(0.0, covariance(slot, slot))));
  }
  return errors;
}

/// Residuals: one a row, weighted; then one a parameter, its distance from the start.
RobustFit fitted_to(Slots& slots, const Rows& rows, const LinkFitOptions& options) {
  std::vector<FitParameter> parameters;
  for (std::size_t i = 0; i < slots.size(); ++i) {
    const double start = slots[i].start;
    parameters.push_back({slots[i].name, start, start / widest, slots[i].upper});
  }
  const double pull = residual_of_a_row / options.prior_spread;
  const Residuals residuals = [&](std::span<const double> values, std::span<double> out) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      slots[i].put(values[i]);
      out[rows.count + i] = pull * math::log(values[i] / parameters[i].start);
    }
    for (std::size_t i = 0; i < rows.count; ++i) {
      out[i] = rows.weight(i) * math::log(rows.predicted_us(i) / rows.measured_us(i));
    }
  };
  RobustFit fitted = robust_fit(parameters, rows.count + slots.size(), residuals, options.fit);
  for (std::size_t i = 0; i < slots.size(); ++i) {
    slots[i].put(fitted.parameters[i].value);
  }
  return fitted;
}

double spread_of(const Rows& rows) {
  std::vector<double> sizes;
  for (std::size_t i = 0; i < rows.count; ++i) {
    sizes.push_back(std::abs(math::log(rows.predicted_us(i) / rows.measured_us(i))));
  }
  return 1.4826 * quantile(std::move(sizes), 0.5);
}

/// Leaves to few rows the parameters that they decide; the others stand where they stood. Names of these. The one that
/// is decided least goes first: two that rows know only together (a base latency and a step's) are not both lost.
std::vector<std::string> drop_undecided(Slots& slots, const Rows& rows, const LinkFitOptions& options) {
  std::vector<std::string> left;
  while (slots.size() > 0) {
    const RobustFit fitted = fitted_to(slots, rows, options);
    const std::vector<double> errors =
        posterior_errors(slots, rows, fitted.values(), spread_of(rows), options.prior_spread);
    const auto worst = std::max_element(errors.begin(), errors.end());
    for (std::size_t i = 0; i < slots.size(); ++i) {
      slots[i].put(slots[i].start);
    }
    if (*worst < 0.5 * options.prior_spread) {
      break;
    }
    const auto place = static_cast<std::size_t>(worst - errors.begin());
    left.push_back(slots[place].name);
    std::vector<bool> kept(slots.size(), true);
    kept[place] = false;
    slots.keep(kept);
  }
  return left;
}

LinkFitReport fit(Slots& slots, const Rows& rows, const LinkFitOptions& options) {
  check(rows.count > 0, "a fit has rows");
  slots.keep(felt(slots, rows));
  const bool has_few = rows.count < options.few_rows;
  LinkFitReport report;
  if (has_few && slots.size() > 0) {
    report.left = drop_undecided(slots, rows, options);
  }
  if (slots.size() > 0) {
    const RobustFit fitted = fitted_to(slots, rows, options);
    report.parameters = fitted.parameters;
    report.converged = fitted.converged;
  }
  std::vector<double> sizes;
  for (std::size_t i = 0; i < rows.count; ++i) {
    report.errors.push_back(rows.predicted_us(i) / rows.measured_us(i) - 1.0);
    sizes.push_back(std::abs(math::log1p(report.errors.back())));
  }
  report.spread = 1.4826 * quantile(std::move(sizes), 0.5);
  std::vector<double> values;
  for (const FittedParameter& one : report.parameters) {
    values.push_back(one.value);
  }
  const std::vector<double> errors =
      has_few ? posterior_errors(slots, rows, values, report.spread, options.prior_spread) : std::vector<double>{};
  for (std::size_t i = 0; i < slots.size(); ++i) {
    FittedParameter& one = report.parameters[i];
    one.at_capacity = one.undecided && one.value >= options.most.value * (1.0 - 1e-9);
    one.undecided = one.undecided && !one.at_capacity;
    const double error = has_few ? errors[i] : one.standard_error;
    one.standard_error = one.at_capacity ? report.spread : one.undecided ? 1.0 : std::min(error, 1.0);
    slots[i].conclude(one);
  }
  return report;
}

/// A copy of what several machines may share, to be changed; null stays null.
template <class T>
std::shared_ptr<T> own(std::shared_ptr<const T>& shared) {
  std::shared_ptr<T> copy = shared == nullptr ? nullptr : std::make_shared<T>(*shared);
  shared = copy;
  return copy;
}

void add_nccl(Slots& slots, NcclKernels& nccl) {
  slots.add("nccl.ll.", nccl.ll);
  slots.add("nccl.ll.fill_size", nccl.ll_fill);
  if (nccl.ll128) {
    slots.add("nccl.ll128.", *nccl.ll128);
  }
  if (nccl.nvls) {
    slots.add("nccl.nvls.base_latency", nccl.nvls->base_latency);
    slots.add_wires("nccl.nvls.rate", nccl.nvls->rate);
    slots.add("nccl.nvls.ramp_size_per_rank", nccl.nvls->ramp_size_per_rank);
  }
}

void add_tree(Slots& slots, const std::string& name, TreeProtocol& protocol) {
  slots.add(name + "base_latency", protocol.base_latency);
  slots.add(name + "level_latency", protocol.level_latency);
  slots.add_wires(name + "rate", protocol.rate);
  if (protocol.two_nodes_rate) {
    slots.add_wires(name + "two_nodes_rate", *protocol.two_nodes_rate);
  }
}

void add_tree(Slots& slots, TreeParameters& tree) {
  add_tree(slots, "tree.", static_cast<TreeProtocol&>(tree));
  slots.add("tree.ramp_size_per_rank", tree.ramp_size_per_rank);
  if (tree.ll) {
    add_tree(slots, "tree.ll.", *tree.ll);
  }
  if (tree.ll128) {
    add_tree(slots, "tree.ll128.", *tree.ll128);
  }
}

double weight_of(Bytes size, const LinkFitOptions& options) {
  return size < options.small_below ? options.small_weight : 1.0;
}

PeerFit fit_peer_as_it_is(PeerParameters start, std::span<const PeerRow> rows, const LinkFitOptions& options) {
  const bool shares_a_port = start.aggregate_rate.value == start.rate.value;
  Slots slots(options);
  slots.add("latency", start.latency);
  slots.add_wires("rate", start.rate);
  if (start.small) {
    slots.add("small.latency", start.small->latency);
    slots.add_wires("small.rate", start.small->rate);
  }
  LinkFitReport report =
      fit(slots,
          {.count = rows.size(),
           .predicted_us = [&](std::size_t i) { return to_microseconds(p2p_time(start, rows[i].bytes)); },
           .measured_us = [&](std::size_t i) { return rows[i].time_us; },
           .weight = [&](std::size_t i) { return weight_of(rows[i].bytes, options); }},
          options);
  if (shares_a_port) {
    start.aggregate_rate = start.rate;
  }
  return {.parameters = std::move(start), .report = std::move(report)};
}

double mean_error(const LinkFitReport& report) {
  const double sum = std::accumulate(report.errors.begin(), report.errors.end(), 0.0,
                                     [](double so_far, double error) { return so_far + std::abs(error); });
  return sum / static_cast<double>(report.errors.size());
}

bool splits(std::span<const PeerRow> rows, Bytes up_to) {
  const auto small = std::count_if(rows.begin(), rows.end(), [&](const PeerRow& row) { return row.bytes <= up_to; });
  return small >= least_rows_of_a_protocol && std::ssize(rows) - small >= least_rows_of_a_protocol;
}

}  // namespace

double collective_microseconds(const CollectiveParameters& parameters, const CollectiveRow& row) {
  if (row.rates != 1.0) {
    CollectiveRow plain = row;
    plain.rates = 1.0;
    return collective_microseconds(with_rates(parameters, row.rates), plain);
  }
  switch (row.kind) {
    case CollectiveKind::all_gather:
      return to_microseconds(all_gather_time(parameters, row.ranks, row.total, row.nodes));
    case CollectiveKind::reduce_scatter:
      return to_microseconds(reduce_scatter_time(parameters, row.ranks, row.total, row.nodes));
    case CollectiveKind::all_reduce:
      return to_microseconds(all_reduce_time(parameters, row.ranks, row.total, row.nodes));
    case CollectiveKind::all_to_all: return to_microseconds(all_to_all_time(parameters, row.ranks, row.total));
  }
  return 0.0;
}

CollectiveFit fit_collectives(const CollectiveParameters& start, std::span<const CollectiveRow> rows,
                              const LinkFitOptions& options) {
  CollectiveFit result{.parameters = start, .report = {}};
  CollectiveParameters& fitted = result.parameters;
  const std::shared_ptr<NcclKernels> nccl = own(fitted.nccl);
  const std::shared_ptr<AllToAllParameters> direct = own(fitted.all_to_all);
  const std::shared_ptr<TreeParameters> tree = own(fitted.tree);
  Slots slots(options);
  slots.add("", fitted);
  if (nccl != nullptr) {
    add_nccl(slots, *nccl);
  }
  if (direct != nullptr) {
    slots.add("all_to_all.small.", direct->small);
    slots.add("all_to_all.large.", direct->large);
  }
  if (tree != nullptr) {
    add_tree(slots, *tree);
  }
  result.report = fit(slots,
                      {.count = rows.size(),
                       .predicted_us = [&](std::size_t i) { return collective_microseconds(fitted, rows[i]); },
                       .measured_us = [&](std::size_t i) { return rows[i].time_us; },
                       .weight = [&](std::size_t i) { return weight_of(rows[i].total, options); }},
                      options);
  return result;
}

PeerFit fit_peer(const PeerParameters& start, std::span<const PeerRow> rows, const LinkFitOptions& options) {
  PeerParameters one = start;
  one.small.reset();
  PeerFit best = fit_peer_as_it_is(one, rows, options);
  double least = worth_a_protocol * mean_error(best.report);
  for (std::int64_t up_to = std::int64_t{1} << 14; up_to <= std::int64_t{1} << 26; up_to *= 2) {
    if (!splits(rows, Bytes{up_to})) {
      continue;
    }
    PeerParameters two = one;
    two.small =
        SmallMessages{.up_to = {.value = Bytes{up_to}, .provenance = Provenance::fitted, .source = options.source},
                      .latency = one.latency,
                      .rate = one.rate};
    PeerFit split = fit_peer_as_it_is(std::move(two), rows, options);
    if (const double error = mean_error(split.report); error < least) {
      least = error;
      best = std::move(split);
    }
  }
  return best;
}

}  // namespace commfuse
