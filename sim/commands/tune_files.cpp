// SPDX-License-Identifier: Apache-2.0
#include "sim/commands/tune_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "model/config/catalogue.h"
#include "model/config/field.h"
#include "model/text/decimals.h"
#include "model/text/shell_word.h"
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

/// Returns whether the model itself has the shape of a site. Each other site gets a separate model whose MLP has the
/// site's shape.
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
      "name: {}\n"
      "layers: 1\n"
      "hidden: {}\n"
      "ffn: {}\n"
      "heads: {}\n"
      "kv_heads: {}\n"
      "head_dim: {}\n"
      "vocab: {}\n"
      "gated_mlp: false\n",
      name_of(site.scope), site.name, yaml_scalar(fmt::format("{}-{}", shape.name, site.name)), shape.hidden, shape.ffn,
      shape.heads, shape.kv_heads, shape.head_dim, shape.vocab);
}

/// Returns the entry of a GEMM's forward pass. A GEMM without overlap has a comment instead of an entry, because the
/// file cannot switch its overlap off.
std::string forward_yaml(const OverlapChoice& choice, const OverlapChoices& choices, int ctas) {
  const std::string key = fmt::format("{}_fprop", choice.gemm.name);
  switch (choice.method) {
    case OverlapMethod::pipeline:
      return fmt::format("{}: {{method: pipeline, num_splits: {}, num_sm: {}, set_sm_margin: 1}}\n", key,
                         choice.overlapped.options.slices, ctas);
    case OverlapMethod::ring_exchange:
      return fmt::format("{}: {{method: ring_exchange, aggregate: {}}}\n", key,
                         choice.overlapped.options.group > 1 ? 1 : 0);
    case OverlapMethod::none: break;
  }
  return fmt::format("# {}: no overlap ({}); ring_exchange would change its time by {}%\n", key,
                     off_switch(choice, choices), with_sign(100.0 * choice.change(), 1));
}

/// Returns the command that prices TransformerEngine's own kernels at the sites of these GEMMs.
std::string priced_as_te(const Settings& chosen, const TrainingPlan& plan, const OverlapChoices& choices) {
  std::string command = "commfuse-sim run --as te --strategy serial";
  for (const char* key : {"model", "hardware", "link_bandwidth", "network_bandwidth", "dtype"}) {
    const Field& field = *find_field(key);
    if (chosen.at(field).origin.source != Source::preset) {
      command += fmt::format(" --{} {}", field.flag, shell_word(chosen.text(key)));
    }
  }
  std::vector<std::string_view> scopes;
  for (const OverlapChoice& choice : choices.gemms) {
    scopes.push_back(name_of(choice.gemm.scope));
  }
  return command + fmt::format(" --ranks {} --seq {} --axis scope={}", plan.tensor, plan.tokens_per_pass(),
                               fmt::join(scopes, ","));
}

/// Returns the comment at the beginning of the file, which states how the methods were chosen.
std::string overlap_heading(const Settings& chosen, const TrainingPlan& plan, const OverlapChoices& choices) {
  const std::string use = "# For Megatron-LM's --tp-comm-overlap-cfg. ";
  if (!choices.by_own_prices()) {
    return use + fmt::format(
                     "All methods are chosen for ideal kernels, because the prices of\n"
                     "# TransformerEngine's kernels are unknown: {}.\n",
                     choices.no_prices);
  }
  return use +
         fmt::format(
             "Methods of forward passes (fprop) are chosen by the prices of\n"
             "# TransformerEngine's kernels; pipeline, the default of proj_fprop and fc2_fprop, has no published\n"
             "# times. Methods of backward passes (dgrad, wgrad) assume ideal kernels. To see the prices:\n"
             "#   {}\n",
             priced_as_te(chosen, plan, choices));
}

/// Returns the file for Megatron-LM. GEMMs of the backward pass have fixed methods: the ring for dgrad GEMMs after an
/// all-gather, bulk overlap for the others.
std::string megatron_yaml(const Settings& chosen, const PlanSpace& space, const TrainingPlan& plan,
                          const OverlapChoices& choices) {
  const int ctas = space.machine->link.collective.ctas.value;
  std::string text = overlap_heading(chosen, plan, choices);
  std::string backward;
  for (const OverlapChoice& choice : choices.gemms) {
    text += forward_yaml(choice, choices, ctas);
    if (choice.gemm.scatters) {
      backward += fmt::format("{}_dgrad: {{method: ring_exchange, aggregate: 0}}\n", choice.gemm.name);
      continue;
    }
    for (const char* pass : {"dgrad", "wgrad"}) {
      backward += fmt::format("{}_{}: {{method: bulk, num_sm: {}, set_sm_margin: 0}}\n", choice.gemm.name, pass, ctas);
    }
  }
  return text + backward;
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
  for (const OverlapChoice& choice : tuning.overlap.gemms) {
    SitePoint point = site_point(plan, *space.model, choice.gemm.scope);
    point.strategy = &sliced_strategy;
    if (times.has_schedule(point)) {
      const SiteTime site = times.of(point);
      by_parts[site.options.slices] += site.time;
    }
  }
  if (by_parts.empty()) {
    return {};
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
  if (tuning.overlap.overlap_somewhere()) {
    files.emplace_back(overlap_config_file, megatron_yaml(settings, space, plan, tuning.overlap));
  }
  return files;
}

}  // namespace commfuse::sim
