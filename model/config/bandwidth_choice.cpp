// SPDX-License-Identifier: Apache-2.0
#include "model/config/bandwidth_choice.h"

#include <fmt/format.h>

#include <cmath>
#include <optional>
#include <utility>

#include "model/check.h"
#include "model/config/catalogue.h"
#include "model/config/choices.h"
#include "model/config_error.h"
#include "model/hardware/link_rates.h"
#include "model/text/quantity.h"

namespace commfuse {

namespace {

/// Returns the chosen bandwidth as a multiple of the link's own. Throws ConfigError that names the setting.
double factor_of(const Settings& settings, std::string_view key, const Link& link) {
  const std::optional<BandwidthChoice> choice = parse_bandwidth_choice(settings.text(key));
  check(choice.has_value(), "a setting is checked where it is written");
  if (choice->times) {
    return *choice->times;
  }
  const double factor = choice->rate->value / link.nominal_rate.value.value;
  if (!is_rate_factor(factor)) {
    throw ConfigError(
        fmt::format("{} is {}, and {} has {}: a link's rate may differ by a factor of at most {}; choose a closer rate",
                    key, settings.text(key), link.name, bandwidth_in_words(link.nominal_rate.value), max_rate_factor));
  }
  return factor;
}

}  // namespace

std::optional<BandwidthChoice> parse_bandwidth_choice(std::string_view text) {
  if (text.starts_with('x')) {
    const std::optional<double> factor = parse_number(text.substr(1));
    return factor && is_rate_factor(*factor) ? std::optional(BandwidthChoice{.times = factor, .rate = {}})
                                             : std::nullopt;
  }
  const std::optional<BytesPerSecond> rate = parse_bandwidth(text);
  return rate && rate->value > 0.0 ? std::optional(BandwidthChoice{.times = {}, .rate = rate}) : std::nullopt;
}

std::string format_bandwidth_choice(const BandwidthChoice& choice) {
  return choice.times ? fmt::format("x{}", *choice.times) : format_bandwidth(*choice.rate);
}

std::vector<BandwidthChoice> bandwidth_range(const BandwidthChoice& first, const BandwidthChoice& last, double factor) {
  check(factor > 1.0 && first.times.has_value() == last.times.has_value(),
        "both ends of a range are of one kind, and its factor is above 1");
  constexpr double rounding = 1.0 + 1e-9;
  const double end = last.times ? *last.times : last.rate->value;
  std::vector<BandwidthChoice> values;
  double value = first.times ? *first.times : first.rate->value;
  double previous = 0.0;
  // Rounding can leave the smallest numbers unchanged by a small factor, so the loop ends when the value does not grow.
  while (value <= end * rounding && value > previous && std::isfinite(value)) {
    values.push_back(first.times ? BandwidthChoice{.times = value, .rate = {}}
                                 : BandwidthChoice{.times = {}, .rate = BytesPerSecond{value}});
    previous = value;
    value *= factor;
  }
  return values;
}

namespace {

/// Applies the choice of an all-reduce kernel. Throws ConfigError if the machine has no measurements of this kernel.
void choose_all_reduce(Machine& machine, const Settings& settings) {
  const AllReduceKernel chosen = choices_of(settings).machine.all_reduce_kernel;
  std::optional<Machine> with_kernel = with_all_reduce_kernel(machine, chosen);
  if (!with_kernel) {
    throw ConfigError(fmt::format(
        "{}: the all-reduce of {} was not measured on {}; remove all_reduce_kernel, or give its times as "
        "link.collective.custom_all_reduce.{} in a hardware file",
        settings.at(*find_field("all_reduce_kernel")).origin.where, name_of(chosen), machine.name, name_of(chosen)));
  }
  machine = *std::move(with_kernel);
}

}  // namespace

Machine with_chosen_links(Machine machine, const Settings& settings) {
  choose_all_reduce(machine, settings);
  LinkRates rates;
  rates.node = factor_of(settings, "link_bandwidth", machine.link);
  if (machine.network) {
    rates.network = factor_of(settings, "network_bandwidth", *machine.network);
  } else if (const Setting& wanted = settings.at(*find_field("network_bandwidth"));
             wanted.text != find_field("network_bandwidth")->preset) {
    throw ConfigError(fmt::format(
        "{}: {} is one node without a network; remove network_bandwidth, or choose hardware of several nodes",
        wanted.origin.where, machine.name));
  }
  return with_link_rates(machine, rates);
}

Machine machine_of(const Settings& settings) {
  return with_chosen_links(load_machine(settings.text("hardware")), settings);
}

}  // namespace commfuse
