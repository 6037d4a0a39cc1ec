// SPDX-License-Identifier: Apache-2.0
#include "sim/commands/run_steps.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "model/config/catalogue.h"
#include "model/config/choices.h"
#include "model/config/command_line.h"
#include "model/config/quantity.h"
#include "model/config_error.h"
#include "model/record/result.h"
#include "model/wrapped.h"
#include "sim/commands/commands.h"
#include "sim/commands/setting_flags.h"
#include "sim/step/step.h"

namespace commfuse::sim {

namespace {

using Json = nlohmann::ordered_json;

/// A machine of the size that a plan needs, with what was played on it.
struct Site {
  Machine machine;
  SiteTimes times;
  Site(Machine of, StructureCache& structures) : machine(std::move(of)), times(structures, machine) {}
};

class Sites {
 public:
  Site& of(const Machine& machine, const TrainingPlan& plan) {
    Machine sized = resized(machine, plan);
    std::unique_ptr<Site>& site = sites_[{machine.name, sized.nodes}];
    if (!site) {
      site = std::make_unique<Site>(std::move(sized), structures_);
    }
    return *site;
  }

 private:
  StructureCache structures_;
  std::map<std::pair<std::string, int>, std::unique_ptr<Site>> sites_;
};

TrainingPlan plan_of(const Settings& settings) {
  TrainingPlan plan;
  const bool is_decode = settings.text("scope") == "decode";
  const bool is_inference = is_decode || settings.text("scope") == "prefill";
  plan.tensor = settings.count("ranks");
  plan.sequence_parallel = chosen(switch_choices, settings.text("parallel.sequence_parallel")) && plan.tensor > 1;
  plan.pipeline = settings.count("parallel.pipeline");
  plan.interleave = settings.count("parallel.interleave");
  plan.data = settings.count("parallel.data");
  plan.context = settings.count("parallel.context");
  plan.expert = settings.count("parallel.experts");
  plan.zero = static_cast<Zero>(settings.count("parallel.zero"));
  plan.global_batch = settings.count("batch");
  plan.micro_batch = is_inference ? plan.global_batch : settings.count("step.micro_batch");
  plan.seq = is_decode ? 1 : settings.count("seq");
  plan.recompute = *recompute_named(settings.text("step.recompute"));
  plan.optimizer = *optimizer_named(settings.text("step.optimizer"));
  plan.dtype = *dtype_named(settings.text("dtype"));
  plan.gradient_dtype = DType::fp32;
  if (is_inference && plan.pipeline * plan.data != 1) {
    throw ConfigError(
        fmt::format("scope {} is a pass of one replica, and pipeline or data parallelism is above 1; leave both at 1",
                    settings.text("scope")));
  }
  if (is_decode && plan.context != 1) {
    throw ConfigError("scope decode has one token a sequence, which context parallelism cannot share; leave it at 1");
  }
  return plan;
}

/// Those named; of "all" strategies_for_steps.
std::vector<const Strategy*> strategies_of(const Settings& settings, const TrainingPlan& plan) {
  for (const Field& field : run_fields()) {
    if (field.key.starts_with("strategy.") && field.key != "strategy.name" && settings.at(field).text != field.preset) {
      throw ConfigError(fmt::format("{}: whole models take the best schedule of a strategy at every site; leave {} out",
                                    settings.at(field).origin.where, field.key));
    }
  }
  const std::vector<const Strategy*> all = strategies_for_steps();
  std::vector<const Strategy*> chosen_ones;
  const std::string& list = settings.text("strategy.name");
  for (const Strategy& strategy : strategies()) {
    const bool is_named = list == "all"
                              ? std::find(all.begin(), all.end(), &strategy) != all.end()
                              : ("," + list + ",").find(fmt::format(",{},", strategy.name)) != std::string::npos;
    // Without a collective beside a product, and in fp8, every strategy is the same.
    const bool differs =
        (plan.sequence_parallel && plan.dtype != DType::fp8) || list != "all" || strategy.name == "serial";
    if (is_named && differs) {
      chosen_ones.push_back(&strategy);
    }
  }
  return chosen_ones;
}

Json asked(const Settings& settings, const TrainingPlan& plan, std::string_view strategy) {
  return {{"schema", "commfuse.step/1"},
          {"model_version", model_version},
          {"model", settings.text("model")},
          {"hardware", settings.text("hardware")},
          {"scope", settings.text("scope")},
          {"gpus", plan.gpus()},
          {"tensor", plan.tensor},
          {"sequence_parallel", plan.sequence_parallel},
          {"pipeline", plan.pipeline},
          {"interleave", plan.interleave},
          {"data", plan.data},
          {"context", plan.context},
          {"experts", plan.expert},
          {"zero", static_cast<int>(plan.zero)},
          {"batch", plan.global_batch},
          {"micro_batch", plan.micro_batch},
          {"seq", settings.count("seq")},
          {"dtype", name_of(plan.dtype)},
          {"recompute", name_of(plan.recompute)},
          {"optimizer", name_of(plan.optimizer)},
          {"strategy", strategy}};
}

double gigabytes(Bytes bytes) { return static_cast<double>(bytes.count) / 1e9; }

void add(Json& row, const StepPrediction& step, const StepPoint& point) {
  row["time_ms"] = 1e3 * to_seconds(step.time);
  row["tokens_per_second"] = step.tokens_per_second;
  row["tokens_per_second_gpu"] = step.tokens_per_second / static_cast<double>(point.plan.gpus());
  row["mfu"] = step.mfu;
  row["hfu"] = step.hfu;
  row["compute_ms"] = 1e3 * to_seconds(step.parts.compute);
  row["waiting_ms"] = 1e3 * to_seconds(step.parts.waiting);
  row["gradients_ms"] = 1e3 * to_seconds(step.parts.gradients);
  row["optimizer_ms"] = 1e3 * to_seconds(step.parts.optimizer);
  row["weights_gb"] = gigabytes(step.memory.weights);
  row["gradients_gb"] = gigabytes(step.memory.gradients);
  row["optimizer_gb"] = gigabytes(step.memory.optimizer);
  row["activations_gb"] = gigabytes(step.memory.activations);
  row["memory_gb"] = gigabytes(step.memory.total());
  row["capacity_gb"] = gigabytes(point.machine->accelerator.hbm_capacity);
  row["fits"] = step.fits;
}

void add(Json& row, const PrefillPrediction& prefill, const StepPoint& point) {
  row["time_ms"] = 1e3 * to_seconds(prefill.time);
  row["tokens_per_second"] = prefill.tokens_per_second;
  row["tokens_per_second_gpu"] = prefill.tokens_per_second / static_cast<double>(point.plan.gpus());
  row["mfu"] = prefill.mfu;
}

void add(Json& row, const DecodePrediction& decode, const StepPoint& point) {
  row["time_ms"] = 1e3 * to_seconds(decode.time);
  row["tokens_per_second"] = decode.tokens_per_second;
  row["tokens_per_second_gpu"] = decode.tokens_per_second / static_cast<double>(point.plan.gpus());
  row["mfu"] = decode.mfu;
  row["weights_gb"] = gigabytes(decode.weights);
  row["cache_gb"] = gigabytes(decode.cache);
  row["capacity_gb"] = gigabytes(point.machine->accelerator.hbm_capacity);
  row["fits"] = decode.fits;
}

void warn_of_nodes(const StepPoint& point) {
  if (point.plan.tensor > point.machine->gpus_per_node) {
    fmt::print(stderr, "warning: {} tensor ranks spread over several nodes of {}, whose network is slower\n",
               point.plan.tensor, point.machine->name);
  }
}

/// What every engine does first, sums of whole outputs; then the strategies, for which the ranks share the tokens of
/// the batch. One that cannot cut so few tokens is a row with its reason.
std::vector<Json> decode_rows(const Settings& settings, StepPoint point, SiteTimes& times) {
  point.cached = settings.count("seq");
  const TrainingPlan shared = point.plan;
  point.plan.sequence_parallel = false;
  require_possible(point);
  warn_of_nodes(point);
  std::vector<Json> rows{asked(settings, point.plan, "all_reduce")};
  add(rows.back(), predict_decode(point, times), point);
  if (!shared.sequence_parallel) {
    return rows;
  }
  point.plan = shared;
  for (const Strategy* strategy : strategies_of(settings, shared)) {
    point.strategies = {strategy};
    rows.push_back(asked(settings, point.plan, strategy->name));
    try {
      if (shared.micro_batch % shared.tensor != 0) {
        throw ConfigError(
            fmt::format("{} tensor ranks cannot share the {} tokens of the batch; choose a multiple of {}",
                        shared.tensor, shared.micro_batch, shared.tensor));
      }
      require_possible(point);
      add(rows.back(), predict_decode(point, times), point);
    } catch (const ConfigError& error) {
      rows.back()["reason"] = error.what();
    }
  }
  return rows;
}

std::vector<Json> rows_of(const Settings& settings, const Library& library, Sites& sites) {
  const TrainingPlan plan = plan_of(settings);
  const Transformer& model = library.model(settings.text("model"));
  Site& site = sites.of(library.machine(settings.text("hardware")), plan);
  StepPoint point{.model = &model, .machine = &site.machine, .plan = plan};
  if (settings.text("jitter") != "none") {
    point.rank_sigma = load_jitter(settings.text("jitter")).rank_sigma.value;
  }
  if (chosen(launch_choices, settings.text("launch")) == Launch::graph) {
    point.framework.issue.value = Duration::zero();
    point.framework.graph_gap = site.machine.accelerator.graph_node_gap.value;
  }
  if (settings.text("scope") == "decode") {
    return decode_rows(settings, point, site.times);
  }
  require_possible(point);
  warn_of_nodes(point);
  std::vector<Json> rows;
  for (const Strategy* strategy : strategies_of(settings, plan)) {
    point.strategies = {strategy};
    Json row = asked(settings, plan, strategy->name);
    if (settings.text("scope") == "prefill") {
      add(row, predict_prefill(point, site.times), point);
    } else {
      add(row, predict_step(point, site.times), point);
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

std::string plain(const Json& value) { return value.is_string() ? value.get<std::string>() : value.dump(); }

std::string csv(const std::vector<Json>& rows) {
  std::string text;
  std::string header;
  for (const Json& row : rows) {
    std::string names;
    std::string values;
    for (const auto& [name, value] : row.items()) {
      names += (names.empty() ? "" : ",") + name;
      values += (values.empty() ? "" : ",") + plain(value);
    }
    text += (names == header ? "" : names + "\n") + values + "\n";
    header = names;
  }
  return text;
}

/// "8 tensor x 4 pipeline"; one alone: "1 tensor".
std::string spread(const Json& row) {
  std::string text = fmt::format("{} tensor", plain(row["tensor"]));
  for (const char* axis : {"pipeline", "data", "context"}) {
    text += row[axis] == 1 ? "" : fmt::format(" x {} {}", plain(row[axis]), axis);
  }
  return text;
}

std::string heading(const Json& row) {
  return fmt::format("{} {} on {}, {} GPUs ({}), batch {}, seq {}, {}\n", plain(row["model"]), plain(row["scope"]),
                     plain(row["hardware"]), plain(row["gpus"]), spread(row), plain(row["batch"]),
                     format_count(row["seq"].get<std::int64_t>()), plain(row["dtype"]));
}

/// Of the GPU that needs the most, under a block; empty where nobody asked.
std::string memory_in_words(const Json& row) {
  if (!row.contains("fits")) {
    return {};
  }
  const char* full = row["fits"].get<bool>() ? "" : ", out of memory";
  const auto gb = [&](const char* name) { return row[name].get<double>(); };
  if (row.contains("cache_gb")) {
    return fmt::format("\n  memory of a GPU: weights {:.1f} GB, keys and values {:.1f}, of {:.1f} GB{}\n",
                       gb("weights_gb"), gb("cache_gb"), gb("capacity_gb"), full);
  }
  return fmt::format(
      "\n  memory of the fullest GPU: {:.1f} of {:.1f} GB{}; weights {:.1f}, gradients {:.1f}, "
      "optimizer {:.1f}, activations {:.1f}\n",
      gb("memory_gb"), gb("capacity_gb"), full, gb("weights_gb"), gb("gradients_gb"), gb("optimizer_gb"),
      gb("activations_gb"));
}

/// A row of a block, or why there is none.
std::string table_row(const Json& row) {
  if (row.contains("reason")) {
    return wrapped(plain(row["reason"]), fmt::format("  {:<14}  ", plain(row["strategy"])), "      ");
  }
  std::string text = fmt::format("  {:<14}{:>11.{}f}{:>13.0f}{:>7.1f}%", plain(row["strategy"]),
                                 row["time_ms"].get<double>(), row.contains("cache_gb") ? 3 : 1,
                                 row["tokens_per_second"].get<double>(), 100.0 * row["mfu"].get<double>());
  if (row.contains("hfu")) {
    text += fmt::format("{:>7.1f}%{:>10.1f}{:>10.1f}{:>11.1f}{:>11.1f}", 100.0 * row["hfu"].get<double>(),
                        row["compute_ms"].get<double>(), row["waiting_ms"].get<double>(),
                        row["gradients_ms"].get<double>(), row["optimizer_ms"].get<double>());
  }
  return text + "\n";
}

std::string table(const std::vector<Json>& rows) {
  std::string text;
  std::string above;
  std::string memory;
  for (const Json& row : rows) {
    if (const std::string here = heading(row); here != above) {
      text += memory + (above.empty() ? "" : "\n") + here +
              fmt::format("\n  {:<14}{:>11}{:>13}{:>8}", "", "time/ms", "tokens/s", "MFU");
      text += row.contains("hfu") ? fmt::format("{:>8}{:>10}{:>10}{:>11}{:>11}\n", "HFU", "compute", "waiting",
                                                "gradients", "optimizer")
                                  : "\n";
      above = here;
    }
    text += table_row(row);
    memory = row.contains("reason") ? memory : memory_in_words(row);
  }
  return text + memory;
}

}  // namespace

int run_steps(const std::vector<Settings>& points, const Library& library, std::string_view format) {
  constexpr std::array<std::string_view, 4> formats{"table", "json", "jsonl", "csv"};
  require_word("--output", format, formats, "format");
  Sites sites;
  std::vector<Json> rows;
  for (const Settings& settings : points) {
    if (!is_whole_model(settings)) {
      throw ConfigError(fmt::format("scope {} beside a whole model; run them apart", settings.text("scope")));
    }
    for (Json& row : rows_of(settings, library, sites)) {
      rows.push_back(std::move(row));
    }
  }
  std::string text;
  if (format == "json") {
    text = Json(rows).dump() + "\n";
  } else if (format == "jsonl") {
    for (const Json& row : rows) {
      text += row.dump() + "\n";
    }
  } else {
    text = format == "csv" ? csv(rows) : table(rows);
  }
  fmt::print("{}", text);
  return exit_code::done;
}

}  // namespace commfuse::sim
