// SPDX-License-Identifier: Apache-2.0
#include "model/workload/training_plan.h"

#include <fmt/format.h>

#include <algorithm>

#include "model/check.h"
#include "model/config_error.h"
#include "model/text/counted.h"
#include "model/workload/layers.h"

namespace commfuse {

namespace {

/// A setting and its value, as a message names them.
struct Named {
  std::string_view what;
  std::int64_t value = 0;
};

void require_multiple(const Named& whole, const Named& part, std::string_view remedy) {
  if (whole.value % part.value != 0) {
    throw ConfigError(
        fmt::format("{} {} is not a multiple of {} {}; {}", whole.what, whole.value, part.what, part.value, remedy));
  }
}

void require_pipeline(const Transformer& model, const TrainingPlan& plan) {
  if (plan.interleave > 1 && plan.pipeline == 1) {
    throw ConfigError(
        fmt::format("interleave {} needs several stages, but pipeline is 1; set interleave to 1", plan.interleave));
  }
  const std::int64_t chunks = plan.pipeline * plan.interleave;
  if (!splits_over(model, chunks)) {
    throw ConfigError(
        fmt::format("{} of {} {} not split into pipeline {} x interleave {} chunks; choose a number of chunks that "
                    "divides {} or {}",
                    counted(model.layers, "layer"), model.name, model.layers == 1 ? "does" : "do", plan.pipeline,
                    plan.interleave, model.layers, model.layers + 2));
  }
  if (plan.interleave > 1) {
    require_multiple({"the number of micro-batches", plan.micro_batches()}, {"pipeline", plan.pipeline},
                     "choose another global batch, or interleave 1");
  }
}

void require_zero_bubble(const TrainingPlan& plan) {
  if (plan.schedule != PipelineSchedule::zero_bubble) {
    return;
  }
  if (plan.pipeline == 1 || plan.interleave > 1) {
    throw ConfigError(
        fmt::format("schedule zero_bubble needs several stages with one chunk each, but {}; choose 1f1b",
                    plan.pipeline == 1 ? "pipeline is 1" : fmt::format("interleave is {}", plan.interleave)));
  }
  if (plan.recompute == Recompute::full) {
    throw ConfigError(
        "schedule zero_bubble keeps activations for the gradients of weights, but recompute full drops them; choose "
        "1f1b, or recompute none");
  }
}

void require_experts(const Transformer& model, const TrainingPlan& plan) {
  if (plan.expert > 1 && !model.experts) {
    throw ConfigError(
        fmt::format("expert parallelism {} needs experts, and {} has none; choose 1", plan.expert, model.name));
  }
  if (model.experts && model.experts->layer_ranks > 1) {
    throw ConfigError(
        fmt::format("{0} splits its experts for scopes of a layer only; remove -ep{1} from its name and choose expert "
                    "parallelism {1}",
                    model.name, model.experts->layer_ranks));
  }
  if (model.experts) {
    require_multiple({"the number of experts", model.experts->count}, {"expert parallelism", plan.expert},
                     "choose an expert parallelism that divides it");
    require_multiple({"the number of replicas (data x context x ulysses)", plan.replicas()},
                     {"expert parallelism", plan.expert}, "choose an expert parallelism that divides it");
  }
}

/// Checks that tensor ranks divide the columns of every MLP.
void require_columns(const Transformer& model, const Named& tensor) {
  const auto require_shared = [&](std::string_view what, std::int64_t columns) {
    require_multiple({what, columns}, tensor, "choose tensor ranks that divide it");
  };
  if (model.experts) {
    require_shared("the number of ffn columns", model.experts->ffn);
    require_shared("the number of ffn columns of shared experts", model.experts->shared_ffn);
  }
  if (!model.experts || layer_counts(model).dense > 0) {
    require_shared("the number of ffn columns", model.ffn);
  }
  for (const LayerKind& kind : model.kinds) {
    if (kind.ffn > 0) {
      require_shared("the number of ffn columns of some layers", kind.ffn);
    }
  }
}

/// Checks heads, which tensor ranks share and, during attention, Ulysses ranks too; all ranks of a sequence share the
/// heads of a state space.
void require_heads(const Transformer& whole, const TrainingPlan& plan, KeyHeads key_heads) {
  const std::optional<Transformer> copied =
      key_heads == KeyHeads::copied ? with_copied_heads(whole, plan.tensor) : std::nullopt;
  const Transformer& model = copied ? *copied : whole;
  constexpr std::string_view remedy = "choose tensor ranks that divide it";
  const Named tensor{"tensor parallelism", plan.tensor};
  const Named tensor_and_ulysses{"tensor parallelism x ulysses", plan.tensor * plan.ulysses};
  const auto require_shared = [&](const Named& heads) {
    require_multiple(heads, tensor, remedy);
    require_multiple(heads, tensor_and_ulysses, "choose fewer ulysses ranks, or context ranks instead");
  };
  require_shared({"the number of heads", model.heads});
  require_shared({"the number of kv heads", model.kv_heads});
  for (const LayerKind& kind : model.kinds) {
    if (kind.kv_heads > 0) {
      require_shared({"the number of kv heads of some layers", kind.kv_heads});
    }
  }
  if (model.state_space) {
    const Named groups{"the number of state-space groups", model.state_space->groups};
    require_multiple({"the number of state-space heads", model.state_space->heads()}, tensor, remedy);
    require_multiple(groups, tensor, remedy);
    require_multiple(groups,
                     {"tensor parallelism x context parallelism x ulysses", plan.tensor * plan.sequence_ranks()},
                     "choose fewer ranks that share a sequence");
  }
}

/// Upper estimates for one token: the bytes kept in all layers, and the bytes of the widest row that a kernel moves.
struct TokenBytes {
  double kept = 0.0;
  double widest = 0.0;
};

TokenBytes token_bytes(const Transformer& model, const TrainingPlan& plan) {
  const auto number = [](std::int64_t count) { return static_cast<double>(count); };
  double columns = number(model.hidden + model.qkv_columns());
  double ffn = number(model.ffn);
  double widest = number(model.vocab);
  double state = 0.0;
  if (model.latent) {
    const LatentAttention& latent = *model.latent;
    const std::int64_t head_columns = model.head_dim + latent.position_dim + latent.value_dim;
    columns += number(model.heads * head_columns + latent.query_rank);
    widest += number(model.heads * 2 * latent.key_value_rank);
  }
  if (model.experts) {
    const Experts& experts = *model.experts;
    ffn += number(experts.active * experts.ffn + experts.shared_ffn);
    widest += number(experts.count) + number((experts.active + 1) * model.hidden);
  }
  if (model.state_space) {
    const StateSpace& space = *model.state_space;
    columns += number(space.projected() * (1 + space.convolution) + space.groups * space.chunk);
    state = number(space.inner * space.state);
  }
  columns += plan.fused_attention ? 0.0 : number(model.heads) * number(plan.seq);
  constexpr double bytes_per_column = 16.0;  // Largest number of bytes per column that a kernel moves or a layer keeps.
  return {.kept = bytes_per_column * (columns + ffn) * number(model.layers),
          .widest = bytes_per_column * (columns + ffn + widest + state)};
}

/// Ensures that all products of the plan's and the model's numbers fit into 64 bits.
void require_countable(const Transformer& model, const TrainingPlan& plan) {
  constexpr std::int64_t max_tokens = std::int64_t{1} << 30;
  constexpr std::int64_t max_passes = std::int64_t{1} << 26;
  constexpr double max_bytes = 4e18;
  if (plan.micro_batch > max_tokens / plan.seq) {
    throw ConfigError(fmt::format("micro-batch {} times seq {} is too large; the limit is {} tokens", plan.micro_batch,
                                  plan.seq, max_tokens));
  }
  const TokenBytes token = token_bytes(model, plan);
  const double bytes = static_cast<double>(plan.micro_batch * plan.seq) * std::max(token.kept, token.widest);
  if (bytes > max_bytes) {
    throw ConfigError(
        fmt::format("micro-batch {} times seq {} is too large for {}, whose activations would take "
                    "{:.1g} bytes; choose a smaller batch or sequence",
                    plan.micro_batch, plan.seq, model.name, bytes));
  }
  if (plan.micro_batches() > max_passes / (plan.pipeline * plan.interleave)) {
    throw ConfigError(
        fmt::format("{} micro-batches x {} model chunks are too many passes; the limit is "
                    "{}, so choose a larger micro-batch, or a smaller batch",
                    plan.micro_batches(), plan.pipeline * plan.interleave, max_passes));
  }
}

}  // namespace

std::string_view name_of(PipelineSchedule schedule) {
  switch (schedule) {
    case PipelineSchedule::one_forward_one_backward: return "1f1b";
    case PipelineSchedule::zero_bubble: return "zero_bubble";
  }
  return "";
}

std::optional<PipelineSchedule> pipeline_schedule_named(std::string_view name) {
  const auto* const match = std::find_if(all_pipeline_schedules.begin(), all_pipeline_schedules.end(),
                                         [&](PipelineSchedule schedule) { return name_of(schedule) == name; });
  return match == all_pipeline_schedules.end() ? std::nullopt : std::optional(*match);
}

std::string_view name_of(Optimizer optimizer) {
  switch (optimizer) {
    case Optimizer::adam: return "adam";
    case Optimizer::sgd: return "sgd";
  }
  return "";
}

std::optional<Optimizer> optimizer_named(std::string_view name) {
  const auto* const match = std::find_if(all_optimizers.begin(), all_optimizers.end(),
                                         [&](Optimizer optimizer) { return name_of(optimizer) == name; });
  return match == all_optimizers.end() ? std::nullopt : std::optional(*match);
}

void require_possible(const Transformer& model, const TrainingPlan& plan, KeyHeads key_heads) {
  const Named tensor{"tensor parallelism", plan.tensor};
  require_heads(model, plan, key_heads);
  require_columns(model, tensor);
  if (model.vocab < plan.tensor) {
    throw ConfigError(fmt::format("a vocabulary of {} is less than tensor parallelism {}; choose fewer tensor ranks",
                                  model.vocab, plan.tensor));
  }
  require_multiple({"seq", plan.seq}, {"context parallelism", plan.context}, "choose another sequence length");
  require_multiple({"seq", plan.seq}, {"context parallelism x ulysses", plan.sequence_ranks()},
                   "choose another sequence length");
  if (plan.sequence_parallel) {
    require_multiple({"the number of tokens of a pass", plan.tokens_per_pass()}, tensor,
                     "choose another sequence length, or no sequence parallelism");
  }
  require_multiple({"global batch", plan.global_batch},
                   {"data parallelism x micro-batch", plan.data * plan.micro_batch}, "choose a multiple of it");
  require_countable(model, plan);
  require_pipeline(model, plan);
  require_zero_bubble(plan);
  require_experts(model, plan);
}

bool splits_over(const Transformer& model, std::int64_t chunks) {
  return model.layers % chunks == 0 || (chunks > 1 && (model.layers + 2) % chunks == 0);
}

std::vector<std::int64_t> layers_by_chunk(const Transformer& model, const TrainingPlan& plan) {
  const std::int64_t chunks = plan.pipeline * plan.interleave;
  check(splits_over(model, chunks), "the layers split over the chunks");
  const bool is_even = model.layers % chunks == 0;
  std::vector<std::int64_t> layers(static_cast<std::size_t>(chunks), (model.layers + (is_even ? 0 : 2)) / chunks);
  if (!is_even) {
    --layers.front();
    --layers.back();
  }
  return layers;
}

}  // namespace commfuse
