// SPDX-License-Identifier: Apache-2.0
#include "model/fit/link_fit.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <memory>
#include <numeric>
#include <string_view>
#include <type_traits>
#include <utility>

#include "model/check.h"
#include "model/cost/communication.h"
#include "model/fit/prior_fit.h"
#include "model/hardware/described.h"
#include "model/hardware/machine.h"
#include "model/math/functions.h"

namespace commfuse {

namespace {

constexpr double max_factor = 1e3;             // largest factor on a parameter's start, up or down
constexpr double second_protocol_below = 0.9;  // error, relative to one protocol, at which a second is worthwhile
constexpr std::ptrdiff_t least_rows_per_protocol = 6;

double number_of(Duration duration) { return to_microseconds(duration); }
double number_of(BytesPerSecond rate) { return rate.value; }
double number_of(Bytes size) { return static_cast<double>(size.count); }

void put(double number, Duration& duration) { duration = from_seconds(1e-6 * number); }
void put(double number, BytesPerSecond& rate) { rate = {number}; }
void put(double number, Bytes& size) { size = {std::llround(number)}; }

/// A parameter of a machine that a fit may move.
struct Slot {
  std::string name;
  double start = 0.0;
  double upper = 0.0;
  std::function<void(double)> put;
  std::function<void(const FittedParameter&)> conclude;
};

/// Parameters of a machine that may be fitted, and the members that receive their values.
class Slots {
 public:
  explicit Slots(const LinkFitOptions& options) : source_(options.source), limit_(options.physical_rate) {}

  template <class T>
  void add(const std::string& name, Parameter<T>& parameter) {
    const double start = number_of(parameter.value);
    if (start <= 0.0) {
      return;  // A value of 0 has no logarithm to move.
    }
    slots_.push_back({name, start, start * max_factor,
                      [&parameter](double number) { commfuse::put(number, parameter.value); },
                      [&parameter, this](const FittedParameter& fitted) {
                        commfuse::put(fitted.value, parameter.value);
                        parameter.standard_error = fitted.standard_error;
                        parameter.provenance = Provenance::fitted;
                        parameter.source = source_;
                      }});
  }

  /// Adds a rate of the wires, limited to the physical rate in the options.
  void add_wires(const std::string& name, Parameter<BytesPerSecond>& rate) {
    rate.value.value = std::min(rate.value.value, limit_.value);
    add(name, rate);
    if (rate.value.value > 0.0) {
      slots_.back().upper = std::min(slots_.back().upper, limit_.value);
    }
  }

  /// Adds all parameters of a described struct, under their keys in files after `prefix`.
  template <class S>
  void add_all(const std::string& prefix, S& described) {
    each_parameter(described, prefix, [&]<class T>(const std::string& name, Parameter<T>& parameter) {
      if constexpr (std::is_same_v<T, BytesPerSecond>) {
        if (!is_own_rate(std::string_view(name).substr(name.rfind('.') + 1))) {
          add_wires(name, parameter);
          return;
        }
      }
      add(name, parameter);
    });
  }

  [[nodiscard]] std::size_t size() const { return slots_.size(); }
  Slot& operator[](std::size_t i) { return slots_[i]; }

 private:
  std::string source_;
  BytesPerSecond limit_;
  std::vector<Slot> slots_;
};

/// Rows of one fit, predicted with the current values of the slots.
struct Rows {
  std::size_t count = 0;
  std::function<double(std::size_t)> predicted_us;
  std::function<double(std::size_t)> measured_us;
  std::function<double(std::size_t)> weight;
};

LinkFitReport fit(Slots& slots, const Rows& rows, const LinkFitOptions& options) {
  std::vector<PriorParameter> parameters;
  for (std::size_t i = 0; i < slots.size(); ++i) {
    const double start = slots[i].start;
    parameters.push_back({.name = slots[i].name,
                          .start = start,
                          .lower = start / max_factor,
                          .upper = slots[i].upper,
                          .spread = options.prior_spread});
  }
  const auto ratio = [&](std::size_t row) { return rows.predicted_us(row) / rows.measured_us(row); };
  const PriorFit fitted = prior_fit(std::move(parameters),
                                    {.count = rows.count,
                                     .put = [&](std::size_t slot, double value) { slots[slot].put(value); },
                                     .log_ratio = [&](std::size_t row) { return math::log(ratio(row)); },
                                     .weight = rows.weight},
                                    {.has_few = rows.count < options.few_rows, .fit = options.fit});
  LinkFitReport report{.parameters = fitted.parameters,
                       .errors = {},
                       .left = fitted.left,
                       .spread = fitted.spread,
                       .converged = fitted.converged};
  for (std::size_t row = 0; row < rows.count; ++row) {
    report.errors.push_back(ratio(row) - 1.0);
  }
  for (std::size_t i = 0; i < report.parameters.size(); ++i) {
    FittedParameter& parameter = report.parameters[i];
    parameter.at_capacity = parameter.undecided && parameter.value >= options.physical_rate.value * (1.0 - 1e-9);
    parameter.undecided = parameter.undecided && !parameter.at_capacity;
    parameter.standard_error = parameter.at_capacity ? report.spread
                               : parameter.undecided ? 1.0
                                                     : std::min(parameter.standard_error, 1.0);
    slots[fitted.places[i]].conclude(parameter);
  }
  return report;
}

/// Replaces `shared`, which several machines may share, with a copy, and returns the copy for changes; null stays null.
template <class T>
std::shared_ptr<T> copy_of(std::shared_ptr<const T>& shared) {
  std::shared_ptr<T> copy = shared == nullptr ? nullptr : std::make_shared<T>(*shared);
  shared = copy;
  return copy;
}

void add_nccl(Slots& slots, NcclKernels& nccl) {
  slots.add_all("nccl.ll.", nccl.ll);
  slots.add_all("nccl.ll128.", nccl.ll128);
  slots.add_all("nccl.nvls.", nccl.nvls);
}

double weight_of(Bytes size, const LinkFitOptions& options) {
  return size < options.small_below ? options.small_weight : 1.0;
}

PeerFit fit_peer_with_fixed_split(PeerParameters start, std::span<const PeerRow> rows, const LinkFitOptions& options) {
  const bool aggregate_follows_rate = start.aggregate_rate.value == start.rate.value;
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
  if (aggregate_follows_rate || start.aggregate_rate.value < start.rate.value) {
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
  return small >= least_rows_per_protocol && std::ssize(rows) - small >= least_rows_per_protocol;
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
  const std::shared_ptr<NcclKernels> nccl = copy_of(fitted.nccl);
  const std::shared_ptr<AllToAllParameters> direct = copy_of(fitted.all_to_all);
  Slots slots(options);
  slots.add_all("", static_cast<RingParameters&>(fitted));
  if (nccl != nullptr) {
    add_nccl(slots, *nccl);
  }
  if (direct != nullptr) {
    slots.add_all("all_to_all.small.", direct->small);
    slots.add_all("all_to_all.large.", direct->large);
  }
  each_algorithm([&](const auto& entry) {
    if constexpr (is_of_library<AlgorithmOf<decltype(entry)>>) {
      if (const auto algorithm = copy_of(fitted.*entry.member)) {
        slots.add_all(std::string(entry.key) + ".", *algorithm);  // `fitted` owns it too
      }
    }
  });
  result.report = fit(slots,
                      {.count = rows.size(),
                       .predicted_us = [&](std::size_t i) { return collective_microseconds(fitted, rows[i]); },
                       .measured_us = [&](std::size_t i) { return rows[i].time_us; },
                       .weight = [&](std::size_t i) { return weight_of(rows[i].total, options); }},
                      options);
  return result;
}

PeerFit fit_peer(const PeerParameters& start, std::span<const PeerRow> rows, const LinkFitOptions& options) {
  PeerParameters candidate = start;
  candidate.small.reset();
  PeerFit best = fit_peer_with_fixed_split(candidate, rows, options);
  double least = second_protocol_below * mean_error(best.report);
  for (std::int64_t up_to = std::int64_t{1} << 14; up_to <= std::int64_t{1} << 26; up_to *= 2) {
    if (!splits(rows, Bytes{up_to})) {
      continue;
    }
    PeerParameters with_small = candidate;
    with_small.small =
        SmallMessages{.up_to = {.value = Bytes{up_to}, .provenance = Provenance::fitted, .source = options.source},
                      .latency = candidate.latency,
                      .rate = candidate.rate};
    PeerFit split = fit_peer_with_fixed_split(std::move(with_small), rows, options);
    if (const double error = mean_error(split.report); error < least) {
      least = error;
      best = std::move(split);
    }
  }
  if (start.small && !best.parameters.small) {
    // The fitted file extends the file of `start` and would inherit its small messages, so small messages get the
    // fitted times of all messages.
    best.parameters.small =
        SmallMessages{.up_to = start.small->up_to, .latency = best.parameters.latency, .rate = best.parameters.rate};
  }
  return best;
}

}  // namespace commfuse
