// SPDX-License-Identifier: Apache-2.0
#include "sim/tune/overlap_choices.h"

#include <algorithm>
#include <memory>
#include <optional>

#include "model/config/catalogue.h"
#include "model/config/implementation.h"
#include "model/config_error.h"
#include "model/strategies/strategies.h"
#include "sim/step/layer_sites.h"

namespace commfuse {

namespace {

constexpr std::string_view kernels_of_transformer_engine = "te";

/// Returns TransformerEngine's implementation; null if the catalogue lacks it.
std::shared_ptr<const Implementation> transformer_engine() {
  const std::vector<std::string> known = known_names(Catalogue::implementations);
  return std::ranges::find(known, kernels_of_transformer_engine) == known.end()
             ? nullptr
             : load_implementation(kernels_of_transformer_engine);
}

/// Returns the time of the site; nullopt if the schedule cannot split so few tokens.
std::optional<SiteTime> time_or_nothing(SiteTimes& times, const SitePoint& site) {
  try {
    return times.of(site);
  } catch (const ConfigError&) {
    return std::nullopt;
  }
}

/// Prices the methods of the GEMMs of one plan.
class Prices {
 public:
  Prices(const PlanSpace& space, const TrainingPlan& plan)
      : space_(space), plan_(plan), times_(structures_, *space.machine) {}

  [[nodiscard]] SiteTime serial(const OverlapGemm& gemm) { return times_.of(site_of(gemm, serial_strategy)); }

  [[nodiscard]] std::optional<SiteTime> with(const Implementation& kernels, const OverlapGemm& gemm) {
    SitePoint site = site_of(gemm, *kernels.strategy);
    site.implementation = &kernels;
    return time_or_nothing(times_, site);
  }

  [[nodiscard]] std::optional<SiteTime> with_ideal(const Strategy& strategy, const OverlapGemm& gemm) {
    return time_or_nothing(times_, site_of(gemm, strategy));
  }

 private:
  [[nodiscard]] SitePoint site_of(const OverlapGemm& gemm, const Strategy& strategy) const {
    SitePoint site = site_point(plan_, *space_.model, gemm.scope);
    site.strategy = &strategy;
    return site;
  }

  const PlanSpace& space_;
  const TrainingPlan& plan_;
  StructureCache structures_;
  SiteTimes times_;
};

/// Chooses the ring exchange if the kernels run it in less time than serial.
OverlapChoice chosen_by(const Implementation& kernels, const OverlapGemm& gemm, Prices& prices) {
  OverlapChoice choice{.gemm = gemm, .serial = prices.serial(gemm)};
  const std::optional<SiteTime> ring = prices.with(kernels, gemm);
  choice.overlapped = ring.value_or(choice.serial);
  choice.method = choice.overlapped.time < choice.serial.time ? OverlapMethod::ring_exchange : OverlapMethod::none;
  return choice;
}

OverlapChoice chosen_by_ideal_kernels(const OverlapGemm& gemm, Prices& prices) {
  OverlapChoice choice{.gemm = gemm, .serial = prices.serial(gemm)};
  const std::optional<SiteTime> ring = prices.with_ideal(ring_exchange_strategy, gemm);
  const std::optional<SiteTime> pipeline =
      gemm.scatters ? prices.with_ideal(sliced_strategy, gemm) : std::optional<SiteTime>{};
  const bool is_pipeline = pipeline && (!ring || pipeline->time < ring->time);
  choice.overlapped = is_pipeline ? *pipeline : ring.value_or(choice.serial);
  choice.method = is_pipeline ? OverlapMethod::pipeline : ring ? OverlapMethod::ring_exchange : OverlapMethod::none;
  return choice;
}

/// Switches all reduce-scatters together, because Megatron-LM has one switch for them (--disable-tp-comm-overlap-rs).
void switch_scatters_together(std::vector<OverlapChoice>& gemms) {
  Duration overlapped{};
  Duration serial{};
  for (const OverlapChoice& choice : gemms) {
    overlapped += choice.gemm.scatters ? choice.overlapped.time : Duration{};
    serial += choice.gemm.scatters ? choice.serial.time : Duration{};
  }
  for (OverlapChoice& choice : gemms) {
    if (choice.gemm.scatters) {
      choice.method = overlapped < serial ? OverlapMethod::ring_exchange : OverlapMethod::none;
    }
  }
}

}  // namespace

std::string_view name_of(OverlapMethod method) {
  switch (method) {
    case OverlapMethod::none: return "none";
    case OverlapMethod::ring_exchange: return "ring_exchange";
    case OverlapMethod::pipeline: return "pipeline";
  }
  return "";
}

double OverlapChoice::change() const { return to_seconds(overlapped.time) / to_seconds(serial.time) - 1.0; }

bool OverlapChoices::overlaps(bool scatters) const {
  return std::ranges::any_of(gemms, [&](const OverlapChoice& choice) {
    return choice.gemm.scatters == scatters && choice.method != OverlapMethod::none;
  });
}

OverlapChoices overlap_choices(const PlanSpace& space, const TrainingPlan& plan) {
  OverlapChoices choices;
  if (!plan.sequence_parallel) {
    return choices;
  }
  const std::shared_ptr<const Implementation> kernels = transformer_engine();
  choices.no_prices = kernels == nullptr
                          ? "the catalogue has no implementation te"
                          : refusal_of(*kernels, *space.machine, static_cast<std::int32_t>(plan.tensor), plan.dtype);
  if (choices.by_own_prices()) {
    choices.unmeasured = unmeasured_in_words(*kernels, *space.machine);
  }
  const std::vector<LayerSite> sites = layer_sites(*space.model, plan);
  Prices prices(space, plan);
  for (const OverlapGemm& gemm : overlap_gemms) {
    const auto is_of_layers = [&](const LayerSite& site) { return site.name == name_of(gemm.scope); };
    if (std::ranges::any_of(sites, is_of_layers)) {
      choices.gemms.push_back(choices.by_own_prices() ? chosen_by(*kernels, gemm, prices)
                                                      : chosen_by_ideal_kernels(gemm, prices));
    }
  }
  if (choices.by_own_prices()) {
    switch_scatters_together(choices.gemms);
  }
  return choices;
}

}  // namespace commfuse
