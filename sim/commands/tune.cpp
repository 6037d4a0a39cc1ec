// SPDX-License-Identifier: Apache-2.0
// commfuse-sim tune: finds the best plan for a training step, and the best schedule at each of its sites.
#include "sim/tune/tune.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "model/config/bandwidth_choice.h"
#include "model/config/catalogue.h"
#include "model/config/choices.h"
#include "model/config/command_line.h"
#include "model/config/framework.h"
#include "model/config/meant.h"
#include "model/config/option_marks.h"
#include "model/config_error.h"
#include "model/stderr_text.h"
#include "model/text/counted.h"
#include "model/text/quantity.h"
#include "sim/commands/answer.h"
#include "sim/commands/commands.h"
#include "sim/commands/measured_step_flags.h"
#include "sim/commands/setting_flags.h"
#include "sim/commands/spread.h"
#include "sim/commands/tune_files.h"
#include "sim/commands/tune_text.h"
#include "sim/commands/write_new.h"
#include "sim/point/request.h"
#include "sim/point/unused_variables.h"
#include "sim/tune/wishes.h"

namespace commfuse::sim {

namespace {

constexpr std::size_t usual_samples = 10'000;  // Per site; a p99 needs more samples than the 1,000 of `run`.

struct TuneRequest {
  SettingArguments settings;
  std::string cluster;
  std::string gpus;
  std::string format = "table";
  std::string out;
  std::string minimize = "mean";
  MeasuredArguments measured;
  std::size_t keep = 5;
};

/// Settings that a file for tune may contain, but that are not flags. Tune itself writes the first two into its files,
/// the number of threads changes no result, and training has no decoding steps.
constexpr std::array<std::string_view, 4> only_in_files{"scope", "strategy.name", "threads", "step.latent_decode"};

/// Settings that tuning chooses unless the user does, so they have no default.
constexpr std::array<std::string_view, 12> free_settings{"ranks",
                                                         "batch",
                                                         "parallel.sequence_parallel",
                                                         "parallel.pipeline",
                                                         "parallel.interleave",
                                                         "parallel.data",
                                                         "parallel.context",
                                                         "parallel.ulysses",
                                                         "parallel.experts",
                                                         "parallel.zero",
                                                         "step.micro_batch",
                                                         "step.recompute"};

bool is_flag(const Field& field) {
  return field.uses.has(Use::tune) &&
         std::find(only_in_files.begin(), only_in_files.end(), field.key) == only_in_files.end();
}

/// Throws ConfigError for settings from a file or --set that tune does not use.
void require_used(const Settings& settings) {
  if (const Field* const unused = unused_setting(settings, Use::tune)) {
    throw ConfigError(
        fmt::format("{}: tune does not use '{}'; remove it", settings.at(*unused).origin.where, unused->key));
  }
}

/// Returns the catalogue name of a cluster that is named without its number of nodes: "dgx-h100" is dgx-h100-x2. Tuning
/// uses as many nodes as it needs.
std::string cluster_named(const std::string& name) {
  const std::vector<std::string> known = known_names(Catalogue::hardware);
  const std::string with_nodes = name + "-x2";
  const auto has = [&](const std::string& cluster) {
    return std::find(known.begin(), known.end(), cluster) != known.end();
  };
  return !has(name) && has(with_nodes) ? with_nodes : name;
}

std::int64_t gpus_of(const TuneRequest& request, const Machine& machine) {
  return request.gpus.empty() ? total_gpus(machine) : gpus_in(request.gpus, "1024");
}

/// Replaces a node by a cluster of such nodes if the user requests more GPUs than the node has.
void choose_cluster(const TuneRequest& request, Settings& settings) {
  const Machine machine = load_machine(settings.text("hardware"));
  if (machine.nodes == 1 && gpus_of(request, machine) > machine.gpus_per_node) {
    settings.put(*find_field("hardware"), {cluster_of_nodes(settings.text("hardware")), {Source::flag, "--gpus"}});
  }
}

/// Returns the evidence of a measured step. The settings of the step must be in a file, because tuning does not fix the
/// layout.
std::optional<StepEvidence> evidence_for(const TuneRequest& request, const Settings& settings) {
  const std::string& hardware = settings.text("hardware");
  const std::optional<MeasuredStep> measured =
      measured_of(request.measured, nullptr, {.hardware = hardware, .jitter = settings.text("jitter")});
  if (!measured) {
    return std::nullopt;
  }
  if (!choices_of(settings).uncertainty) {
    throw ConfigError(
        "--measured-step requires --uncertainty on, which determines how far the measurement applies to other "
        "settings; add it, or remove --measured-step");
  }
  StepEvidence evidence = evidence_of(*measured);
  require_matching_evidence(hardware, evidence);
  return evidence;
}

/// Returns a note about the steps whose corrected time is limited to the dense peak.
std::string peak_note_of(const Tuning& tuning) {
  std::vector<std::string> names;
  const auto plans = std::ranges::count_if(tuning.best, [](const auto& plan) { return is_at_peak(plan.step.mfu); });
  if (plans > 0) {
    names.push_back(counted(plans, "plan"));
  }
  if (is_at_peak(tuning.serial.mfu)) {
    names.emplace_back("serial collectives");
  }
  if (tuning.baseline && is_at_peak(tuning.baseline->mfu)) {
    names.emplace_back("the framework's own schedules");
  }
  return peak_note(names);
}

constexpr std::array<std::string_view, 2> tune_formats{"table", "json"};

/// Question and result of tuning. Its members refer to each other, so it can be neither copied nor moved.
struct Tuned {
  Tuned() = default;
  Tuned(const Tuned&) = delete;
  Tuned& operator=(const Tuned&) = delete;
  ~Tuned() = default;

  Transformer model;
  Machine sized;  ///< The machine with the requested number of GPUs.
  TuneHeading heading;
  Tuning tuning;
};

/// Sets the jitter. The variation of whole ranks applies once per step, so kernels are sampled without it.
void put_jitter(const RunChoices& run, TuneOptions& options) {
  if (run.jitter == "none") {
    return;
  }
  Jitter jitter = load_jitter(run.jitter);
  options.rank_sigma = jitter.rank_sigma.value;
  options.communication_sigma = jitter.communication_sigma.value;
  jitter.rank_sigma.value = 0.0;
  options.kernel_jitter = std::make_shared<const JitterTables>(jitter);
  options.monte_carlo = monte_carlo_of(run, load_jitter_tables(run.jitter).tables);
  options.monte_carlo.samples = run.samples ? options.monte_carlo.samples : usual_samples;
}

/// Adds the cluster of --cluster to the flags. Throws ConfigError if a flag names a machine too.
void take_cluster(TuneRequest& request) {
  const auto& flags = request.settings.flags;
  if (std::any_of(flags.begin(), flags.end(), [](const auto& flag) { return flag.first->key == "hardware"; })) {
    throw ConfigError("--cluster: --hardware names a machine too; remove one of them");
  }
  const Field* const hardware = find_field("hardware");
  const std::string cluster = cluster_named(request.cluster);
  if (const std::optional<std::string> mistake = mistake_in(*hardware, meant_name(Catalogue::hardware, cluster))) {
    throw ConfigError(fmt::format("--cluster: {}", *mistake));
  }
  request.settings.flags.emplace_back(hardware, cluster);
}

Answer run_tune(TuneRequest request, Caller& caller) {
  require_word("--output", request.format, tune_formats, "format");
  if (!request.cluster.empty()) {
    take_cluster(request);
  }
  constexpr std::array<std::string_view, 2> minimized{"mean", "p99"};
  require_word("--minimize", request.minimize, minimized, "choice");
  Settings settings = settings_of(request.settings);
  caller.note(for_stderr(ignore_unused_variables(settings, Use::tune, "tune")));
  require_used(settings);
  if (request.minimize == "p99" && !is_chosen(settings, "jitter")) {
    settings.put(*find_field("jitter"), {"default", {}});
  }
  caller.note(for_stderr(notes_on_unused_draws(settings)));
  const Framework framework = load_framework(settings.text("framework"));
  settings = with_defaults_of(framework, std::move(settings));
  if (!request.out.empty()) {
    require_new(request.out, {"plan.yaml"});  // before a long search
  }
  const auto tuned = std::make_shared<Tuned>();
  tuned->model = load_model(choices_of(settings).model);
  choose_cluster(request, settings);
  const RunChoices run = choices_of(settings);
  const Machine machine = machine_of(settings);
  PlanSpace space{.model = &tuned->model,
                  .gpus = gpus_of(request, machine),
                  .base = base_of(settings),
                  .wish = wish_of(settings),
                  .framework = framework};
  TrainingPlan data_parallel;
  data_parallel.data = space.gpus;
  tuned->sized = resized(machine, data_parallel);
  space.machine = &tuned->sized;
  TuneOptions options{.keep = request.keep};
  options.minimize = chosen(minimize_choices, request.minimize);
  options.rule = run.verdict;
  options.errors = run.uncertainty;
  options.other_exchange = !is_chosen(settings, "parallel.context_exchange");
  put_jitter(run, options);
  if (options.minimize == Minimize::p99 && options.monte_carlo.jitter == nullptr) {
    throw ConfigError(
        "--minimize p99: --jitter none has no percentiles; choose another --jitter, or remove --jitter none");
  }
  options.evidence = evidence_for(request, settings);
  tuned->tuning = tune(space, options);
  caller.note(for_stderr(options.evidence ? peak_note_of(tuned->tuning) : std::string{}));
  tuned->heading = {.model = tuned->model.name,
                    .hardware = machine.name,
                    .link_bandwidth = run.machine.link_bandwidth,
                    .network_bandwidth = run.machine.network_bandwidth,
                    .space = space,
                    .default_batch = !is_chosen(settings, "batch"),
                    .minimize = options.minimize,
                    .rule = options.rule,
                    .jitter = run.jitter,
                    .samples = options.monte_carlo.jitter == nullptr ? 0 : options.monte_carlo.samples,
                    .evidence = options.evidence,
                    .folder = request.out};
  const bool fits = !tuned->tuning.best.empty();
  Answer answer{.code = fits ? exit_code::done : exit_code::failed_points, .format = request.format};
  if (!request.out.empty() && fits) {
    caller.note(write_new(request.out, tune_files(settings, space, tuned->tuning)));
    answer.files.push_back(request.out);
  }
  answer.write = [tuned](std::string_view format, const Sink& sink) {
    require_word("--output", format, tune_formats, "format");
    sink(format == "json" ? tune_json(tuned->heading, tuned->tuning) : tune_text(tuned->heading, tuned->tuning));
  };
  return answer;
}

}  // namespace

void add_tune(CLI::App& app, Caller& caller) {
  add_verb(app, "tune", "Find the best layout and schedules to train a model", [&caller](CLI::App& command) {
    const auto request = std::make_shared<TuneRequest>();
    add_setting_flags(command, request->settings, is_flag);
    for (const std::string_view key : free_settings) {
      command.get_option(fmt::format("--{}", find_field(key)->flag))->default_str("");
    }
    const auto add = [&](const char* flags, std::string& value, const char* doc, const char* type) {
      return command.add_option(flags, value, doc)
          ->group("Tuning")
          ->type_name(type)
          ->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
    };
    offers_names(usual(add("--cluster", request->cluster,
                           "Cluster, for example dgx-h100; the number of nodes follows from --gpus", "NAME")),
                 Catalogue::hardware);
    usual(add("--gpus", request->gpus, "Number of GPUs (default: those of the machine)", "COUNT"));
    usual(offers_words(add("--minimize", request->minimize,
                           "mean of every site, or p99 of the step, which implies --jitter default", "WORD")
                           ->capture_default_str(),
                       {"mean", "p99"}));
    command.add_option("--keep", request->keep, "Number of plans to print")
        ->group("Tuning")
        ->type_name("COUNT")
        ->check(CLI::Range(1, 1000))
        ->capture_default_str();
    add_measured_flags(command, request->measured);
    usual(offers_words(add("-o,--output", request->format, "table, json", "FORMAT")->capture_default_str(),
                       {"table", "json"}));
    usual(
        add("--out", request->out, "Folder for plan.yaml, one YAML per site, and tp_comm_overlap_cfg.yaml", "FOLDER"));
    command.footer(
        "Degrees of parallelism, micro-batch, recomputation and ZeRO are fixed if given,\n"
        "and free otherwise. A plan may use 90% of a GPU's memory. Without --jitter, ops\n"
        "take nominal times; with it, sites are chosen by samples, and steps wait for\n"
        "the slowest GPU. See docs/tuning.md.\n"
        "\n"
        "Examples:\n"
        "  commfuse-sim tune --model llama-3.1-405b --cluster dgx-h100 --gpus 1024 \\\n"
        "    --seq 8192\n"
        "  commfuse-sim tune --model llama-3.1-8b --hardware h100-sxm --seq 8K --batch 64\n"
        "  commfuse-sim tune --model gpt-3-175b --cluster dgx-a100 --gpus 512 --ranks 8 \\\n"
        "    --seq 2K --out plan\n"
        "  commfuse-sim tune --model llama-3.1-8b --hardware h100-sxm --seq 4K \\\n"
        "    --minimize p99");
    command.callback([request, &caller] { caller.take(run_tune(*request, caller)); });
  });
}

}  // namespace commfuse::sim
