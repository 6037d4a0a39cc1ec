// SPDX-License-Identifier: Apache-2.0
#include "sim/commands/tune_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "model/config/catalogue.h"
#include "model/config/field.h"
#include "sim/commands/tune_text.h"

namespace commfuse::sim {

namespace {

void put(Settings& settings, std::string_view key, const std::string& text) {
  const Field& field = *find_field(key);
  settings.put(field, {.text = text, .origin = settings.at(field).origin});
}

void put(Settings& settings, std::string_view key, std::int64_t count) { put(settings, key, fmt::format("{}", count)); }

std::string plan_yaml(Settings settings, const TrainingPlan& plan, const Strategy& strategy) {
  put(settings, "scope", "step");
  put(settings, "ranks", plan.tensor);
  put(settings, "seq", plan.seq);
  put(settings, "batch", plan.global_batch);
  put(settings, "parallel.sequence_parallel", plan.sequence_parallel ? "on" : "off");
  put(settings, "parallel.pipeline", plan.pipeline);
  put(settings, "parallel.interleave", plan.interleave);
  put(settings, "parallel.data", plan.data);
  put(settings, "parallel.context", plan.context);
  put(settings, "parallel.ulysses", plan.ulysses);
  put(settings, "parallel.experts", plan.expert);
  put(settings, "parallel.zero", static_cast<int>(plan.zero));
  put(settings, "step.micro_batch", plan.micro_batch);
  put(settings, "step.recompute", std::string{name_of(plan.recompute)});
  put(settings, "strategy.name", std::string{strategy.name});
  return "# Uses the best single strategy at every site; site-*.yaml has the best schedule of each site.\n" +
         to_yaml(settings, false);
}

/// Returns whether the model itself has the shape of a site. Each other site gets a separate model whose MLP has that
/// shape.
bool has_its_shape(const Transformer& model, const TunedSite& site) {
  return site.shape.ffn == model.ffn && site.shape.gated_mlp == model.gated_mlp;
}

/// Returns the settings of a single site: the tokens of one pass, and no whole-model setting.
std::string site_yaml(const Settings& chosen, const TrainingPlan& plan, const TunedSite& site,
                      const std::string& model) {
  Settings settings;
  put(settings, "model", model);
  for (const char* key : {"hardware", "link_bandwidth", "network_bandwidth", "dtype"}) {
    put(settings, key, chosen.text(key));
  }
  put(settings, "scope", std::string{name_of(site.scope)});
  put(settings, "ranks", plan.tensor);
  put(settings, "seq", plan.tokens_per_pass());
  put(settings, "strategy.name", std::string{site.best.strategy->name});
  const OptionSet relevant = relevant_options(*site.best.strategy, kinds_of(site.scope), site.best.options);
  for (const Option option : all_options()) {
    if (relevant.has(option)) {
      put(settings, fmt::format("strategy.{}", name_of(option)), text_of(option, site.best.options));
    }
  }
  return fmt::format("# {}\n{}", schedule_in_words(site.scope, site.best), to_yaml(settings, false));
}

/// Returns a one-layer model with the hidden size of the tuned model and an ungated MLP of the site's shape.
std::string model_yaml(const TunedSite& site) {
  const Transformer& shape = site.shape;
  return fmt::format(
      "# The {} of this layer has the shape of {}.\n"
      "schema: commfuse.model/1\n"
      "name: {}-{}\n"
      "layers: 1\n"
      "hidden: {}\n"
      "ffn: {}\n"
      "heads: {}\n"
      "kv_heads: {}\n"
      "head_dim: {}\n"
      "vocab: {}\n"
      "gated_mlp: false\n",
      name_of(site.scope), site.name, shape.name, site.name, shape.hidden, shape.ffn, shape.heads, shape.kv_heads,
      shape.head_dim, shape.vocab);
}

/// A GEMM in Transformer Engine's settings, which follows an all-gather or precedes a reduce-scatter.
struct Knob {
  std::string_view name;
  Scope scope = Scope::qkv;
  bool scatters = false;
};
constexpr std::array knobs{Knob{"qkv_fprop", Scope::qkv, false}, Knob{"proj_fprop", Scope::out_proj, true},
                           Knob{"fc1_fprop", Scope::gate_up, false}, Knob{"fc2_fprop", Scope::down, true}};

std::string knob_yaml(const Knob& knob, const SiteTime& ring, const SiteTime& pipeline, int ctas) {
  if (knob.scatters && pipeline.time < ring.time) {
    return fmt::format("{}: {{method: pipeline, num_splits: {}, num_sm: {}, set_sm_margin: 1}}\n", knob.name,
                       pipeline.options.slices, ctas);
  }
  return fmt::format("{}: {{method: ring_exchange, aggregate: {}}}\n", knob.name, ring.options.group > 1 ? 1 : 0);
}

/// Returns the command that prices TransformerEngine's own kernels at the sites of the knobs.
std::string priced_as_te(const Settings& chosen, const TrainingPlan& plan) {
  std::string command = "commfuse-sim run --as te --strategy serial";
  for (const char* key : {"model", "hardware", "link_bandwidth", "network_bandwidth", "dtype"}) {
    const Field& field = *find_field(key);
    if (chosen.at(field).origin.source != Source::preset) {
      command += fmt::format(" --{} {}", field.flag, chosen.text(key));
    }
  }
  command += fmt::format(" --ranks {} --seq {} --axis scope=", plan.tensor, plan.tokens_per_pass());
  for (const Knob& knob : knobs) {
    command += fmt::format("{}{}", &knob == knobs.data() ? "" : ",", name_of(knob.scope));
  }
  return command;
}

/// Returns the file for Megatron-LM. GEMMs of the backward pass have fixed methods: the ring for dgrad GEMMs after an
/// all-gather, bulk overlap for the others.
std::string megatron_yaml(const Settings& chosen, const PlanSpace& space, const TrainingPlan& plan) {
  StructureCache structures;
  SiteTimes times(structures, *space.machine);
  const int ctas = space.machine->link.collective.ctas.value;
  std::string text = fmt::format(
      "# For Megatron-LM's --tp-comm-overlap-cfg: ring_exchange or pipeline, whichever is predicted faster with ideal\n"
      "# kernels. TransformerEngine's kernels may take longer, even longer than serial collectives. To price them:\n"
      "#   {}\n",
      priced_as_te(chosen, plan));
  for (const Knob& knob : knobs) {
    SitePoint site{.model = space.model,
                   .scope = knob.scope,
                   .ranks = static_cast<std::int32_t>(plan.tensor),
                   .tokens = plan.tokens_per_pass(),
                   .dtype = plan.dtype,
                   .strategy = &ring_exchange_strategy};
    const SiteTime ring = times.of(site);
    site.strategy = &sliced_strategy;
    text += knob_yaml(knob, ring, times.of(site), ctas);
  }
  for (const char* name : {"proj_dgrad", "fc2_dgrad"}) {
    text += fmt::format("{}: {{method: ring_exchange, aggregate: 0}}\n", name);
  }
  for (const char* name : {"qkv_dgrad", "qkv_wgrad", "fc1_dgrad", "fc1_wgrad"}) {
    text += fmt::format("{}: {{method: bulk, num_sm: {}, set_sm_margin: 0}}\n", name, ctas);
  }
  return text;
}

}  // namespace

std::string mindspeed_arguments(const PlanSpace& space, const Tuning& tuning) {
  if (!space.machine->name.starts_with("ascend") || tuning.best.empty() || tuning.sites.empty()) {
    return {};
  }
  StructureCache structures;
  SiteTimes times(structures, *space.machine);
  const TrainingPlan& plan = tuning.best.front().plan;
  std::map<std::int32_t, Duration> by_parts;
  for (const Knob& knob : knobs) {
    const SiteTime site = times.of({.model = space.model,
                                    .scope = knob.scope,
                                    .ranks = static_cast<std::int32_t>(plan.tensor),
                                    .tokens = plan.tokens_per_pass(),
                                    .dtype = plan.dtype,
                                    .strategy = &sliced_strategy});
    by_parts[site.options.slices] += site.time;
  }
  const auto dominant = std::ranges::max_element(by_parts, {}, [](const auto& parts) { return parts.second; });
  return fmt::format("--use-ascend-coc --coc-parallel-num {}", dominant->first);
}

std::vector<std::pair<std::string, std::string>> tune_files(const Settings& chosen, const PlanSpace& space,
                                                            const Tuning& tuning) {
  Settings settings = chosen;
  for (const Field& field : run_fields()) {
    if (field.type == FieldType::name && settings.has(field.key)) {
      put(settings, field.key, from_anywhere(field.catalogue, settings.text(field.key)));
    }
  }
  const TrainingPlan& plan = tuning.best.front().plan;
  std::vector<std::pair<std::string, std::string>> files;
  files.emplace_back("plan.yaml", plan_yaml(settings, plan, *tuning.single));
  for (const TunedSite& site : tuning.sites) {
    const bool has_model_shape = has_its_shape(*space.model, site);
    const std::string model = fmt::format("model-{}.yaml", site.name);
    if (!has_model_shape) {
      files.emplace_back(model, model_yaml(site));
    }
    files.emplace_back(fmt::format("site-{}.yaml", site.name),
                       site_yaml(settings, plan, site, has_model_shape ? settings.text("model") : "./" + model));
  }
  if (!tuning.sites.empty()) {
    files.emplace_back(overlap_config_file, megatron_yaml(settings, space, plan));
  }
  return files;
}

}  // namespace commfuse::sim
