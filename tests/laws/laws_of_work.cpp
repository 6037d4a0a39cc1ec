// SPDX-License-Identifier: Apache-2.0
// Less work never takes longer: tokens, batch, ranks, memory, scopes.
#include <algorithm>
#include <array>
#include <utility>

#include "sim/point/request.h"
#include "tests/laws/law.h"

namespace commfuse::laws {

namespace {

double link_bound(const Outcome& outcome) { return static_cast<double>(outcome.prediction->link.count()); }
double compute(const Outcome& outcome) { return static_cast<double>(outcome.parts().compute.count()); }
/// Compares layers only if both results have the same schedule, because the best schedule for fewer tokens may have
/// more messages or buffers.
template <double (*measure)(const Outcome&)>
std::optional<double> must_not_grow_by_one_schedule(const Outcome& before, const Outcome& after) {
  const bool is_one_schedule = before.whole_model || before.prediction->options == after.prediction->options;
  return is_one_schedule ? must_not_grow<measure>(before, after) : std::nullopt;
}

bool has_op(const Outcome& outcome, OpKind kind) {
  return std::ranges::any_of(outcome.prediction->structure->program().ops,
                             [kind](const Op& op) { return op.kind == kind; });
}

/// Returns the factor by which a time may jump where FlashAttention-3 begins to split keys. Its rule looks at one
/// sequence at a time: split tiles may take longer, and so may an unsplit tile that has its SM to itself
/// (model/cost/attention.h). 1 for other kernels, and for whole models, whose other ops hide the jump.
double split_jump(const Outcome& before) {
  return before.whole_model || !has_op(before, OpKind::attention)
             ? 1.0
             : std::max(1.0, before.machine->accelerator.attention.split_cost.value);
}

/// Returns the larger of two jumps: where NCCL changes kernels, as tables show (1 without collectives), and where
/// attention splits keys.
double jump_at(const Outcome& before) {
  double jump = split_jump(before);
  const bool has_collectives = before.whole_model || has_op(before, OpKind::collective);
  const Machine& machine = *before.machine;
  for (const Link* link : {&machine.link, machine.network ? &*machine.network : nullptr}) {
    if (link != nullptr && link->collective.nccl != nullptr && has_collectives) {
      jump = std::max(jump, measured_step(link->collective.nccl->tuning.wire));
    }
  }
  return jump;
}

std::optional<double> beyond_jumps(std::optional<double> factor, const Outcome& before) {
  return factor ? std::optional(std::max(1.0, *factor / jump_at(before))) : std::nullopt;
}

std::optional<double> messages_must_not_grow(const Outcome& before, const Outcome& after) {
  return beyond_jumps(must_not_grow_by_one_schedule<link_bound>(before, after), before);
}

std::optional<double> time_must_not_grow(const Outcome& before, const Outcome& after) {
  return beyond_jumps(must_not_grow<time_of>(before, after), before);
}

double weights(const Outcome& outcome) { return outcome.cell("weights_gb"); }

bool is_step(const Setting& setting) { return setting.text("scope") == "step"; }

/// Halves a setting that is a count; returns nothing if the count is odd.
std::optional<Setting> halved(const Setting& setting, std::string_view key) {
  const std::int64_t count = setting.count(key);
  return count % 2 == 0 ? std::optional(setting.with(key, count / 2)) : std::nullopt;
}

std::optional<Setting> doubled(const Setting& setting, std::string_view key) {
  return setting.with(key, 2 * setting.count(key));
}

/// Returns whether a decoded token may attend to few keys though many tokens precede it, because layers attend within
/// blocks of keys (Llama 4).
bool decodes_in_blocks(const Setting& setting) {
  if (setting.text("scope") != "decode") {
    return false;
  }
  const Transformer model = load_model(setting.text("model"));
  return std::any_of(model.kinds.begin(), model.kinds.end(), [](const LayerKind& kind) { return kind.chunked; });
}

std::optional<Setting> fewer_tokens(const Setting& setting, Draws&) {
  return decodes_in_blocks(setting) ? std::nullopt : halved(setting, "seq");
}
std::optional<Setting> smaller_batch(const Setting& setting, Draws&) { return halved(setting, "batch"); }

std::optional<Setting> fewer_tokens_of_a_layer(const Setting& setting, Draws&) {
  return is_whole_model(setting) ? std::nullopt : halved(setting, "seq");
}

bool attends(const Setting& setting) { return has_attention(*scope_named(setting.text("scope"))); }

/// Returns the setting with half as many sequences of twice the length; nothing if the batch is odd.
std::optional<Setting> longer_sequences(const Setting& setting) {
  const std::optional<Setting> half = halved(setting, "batch");
  return half ? doubled(*half, "seq") : std::nullopt;
}

std::optional<Setting> same_tokens(const Setting& setting, Draws&) {
  return is_whole_model(setting) || attends(setting) ? std::nullopt : longer_sequences(setting);
}

/// Attention takes 128 queries of a head at a time (model/cost/attention.h). Unless 128 divides the length of a
/// sequence, its last tile is only partly full: two sequences of 160 tokens have four tiles, and one of 320 has three,
/// so the longer sequence may take less time.
std::optional<Setting> longer_sequences_that_attend(const Setting& setting, Draws&) {
  constexpr std::int64_t tile_rows = 128;
  const bool fills_tiles = !is_whole_model(setting) && setting.count("seq") % tile_rows == 0;
  return fills_tiles && attends(setting) ? longer_sequences(setting) : std::nullopt;
}

/// Compares uncut attention, because slices of short sequences fill no tile.
std::optional<double> longer_take_longer(const Outcome& before, const Outcome& after) {
  const auto is_whole = [](const Outcome& outcome) {
    return outcome.prediction->options.attention == AttentionCut::whole;
  };
  const std::optional<double> factor =
      is_whole(before) && is_whole(after) ? must_not_shrink<time_of>(before, after) : std::nullopt;
  return factor ? std::optional(std::max(1.0, *factor / split_jump(before))) : std::nullopt;
}

std::optional<Setting> fewer_ranks_of_a_layer(const Setting& setting, Draws&) {
  return is_whole_model(setting) ? std::nullopt : halved(setting, "ranks");
}

std::optional<Setting> fewer_tensor_ranks(const Setting& setting, Draws&) {
  return is_step(setting) || setting.text("scope") == "decode" ? halved(setting, "ranks") : std::nullopt;
}

/// ZeRO 3 gathers two layers at a time, which may be all layers of a small model.
std::optional<Setting> more_sharing(const Setting& setting, Draws&) {
  const std::int64_t zero = setting.count("parallel.zero");
  const bool has_many_layers = setting.text("model") != "commfuse-paper-mlp";
  return is_step(setting) && has_many_layers && zero < 3 ? std::optional(setting.with("parallel.zero", zero + 1))
                                                         : std::nullopt;
}

std::optional<Setting> full_recomputation(const Setting& setting, Draws&) {
  return is_step(setting) && setting.text("step.recompute") != "full"
             ? std::optional(setting.with("step.recompute", "full"))
             : std::nullopt;
}

std::optional<Setting> lighter_optimizer(const Setting& setting, Draws&) {
  return is_step(setting) && setting.text("step.optimizer") == "adam"
             ? std::optional(setting.with("step.optimizer", "sgd"))
             : std::nullopt;
}

std::optional<Setting> with_dropout(const Setting& setting, Draws&) {
  return is_step(setting) ? std::optional(setting.with("step.dropout", "on")) : std::nullopt;
}

/// Does not apply to ranks that share a sequence, which always use a fused kernel, nor to fp8, in which a fused kernel
/// keeps its output twice: in 16 bits, and in 8 for the projection.
std::optional<Setting> unfused_attention(const Setting& setting, Draws&) {
  return is_step(setting) && setting.count("parallel.context") == 1 && setting.text("dtype") != "fp8"
             ? std::optional(setting.with("attention_kernel", "unfused"))
             : std::nullopt;
}

std::optional<Setting> narrow_gradients(const Setting& setting, Draws&) {
  return is_step(setting) ? std::optional(setting.with("step.gradient_dtype", "bf16")) : std::nullopt;
}

/// Returns a part of the scope with the same schedule.
std::optional<Setting> part_of_scope(const Setting& setting, Draws& draws) {
  using Part = std::pair<std::string_view, std::string_view>;
  constexpr std::array parts{Part{"mlp", "gate_up"},   Part{"mlp", "down"},        Part{"attention", "qkv"},
                             Part{"layer", "mlp"},     Part{"layer", "attention"}, Part{"attention", "out_proj"},
                             Part{"layer", "gate_up"}, Part{"layer", "down"}};
  const Part& part = draws.pick(parts);
  return setting.text("scope") == part.first ? std::optional(setting.with("scope", part.second)) : std::nullopt;
}

std::optional<Setting> longer_kernels(const Setting& setting, Draws&) {
  return setting.text("jitter") != "none" && !is_whole_model(setting)
             ? std::optional(setting.with({"accelerator.kernel_floor", 2.0}))
             : std::nullopt;
}

std::optional<double> every_sample_grows(const Outcome& before, const Outcome& after) {
  if (before.meets_others) {
    return std::nullopt;
  }
  double worst = 1.0;
  for (std::size_t i = 0; i < before.samples.size(); ++i) {
    const double ratio = static_cast<double>(before.samples[i].count()) / static_cast<double>(after.samples[i].count());
    worst = std::max(worst, ratio / tolerance_of(before, after));
  }
  return worst;
}

constexpr std::array work_laws{
    Law{"fewer-tokens", "Half the tokens never take longer, beyond measured jumps", fewer_tokens, time_must_not_grow},
    Law{"smaller-batch", "Half the batch never takes longer, beyond measured jumps", smaller_batch, time_must_not_grow},
    Law{"smaller-messages", "Smaller messages never take longer, beyond measured jumps", fewer_tokens_of_a_layer,
        messages_must_not_grow},
    Law{"tokens-alone-count", "Without attention only the number of tokens matters", same_tokens, must_stay<time_of>},
    Law{"longer-sequences",
        "One sequence never takes less time than two of half its length that fill tiles, beyond the jump of split keys",
        longer_sequences_that_attend, longer_take_longer},
    Law{"more-ranks-less-compute", "With more ranks no rank has more to compute", fewer_ranks_of_a_layer,
        must_not_shrink<compute>},
    Law{"more-ranks-fewer-weights", "With more tensor ranks no GPU holds more weights", fewer_tensor_ranks,
        must_not_shrink<weights>},
    Law{"fewer-tokens-less-memory", "Half the tokens never need more memory", fewer_tokens,
        must_not_grow_by_one_schedule<memory_of>},
    Law{"more-sharing-less-memory", "A higher ZeRO stage never needs more memory", more_sharing,
        must_not_grow<memory_of>},
    Law{"recomputation-less-memory", "Full recomputation never needs more memory", full_recomputation,
        must_not_grow<memory_of>},
    Law{"recomputation-more-time", "Full recomputation never makes a step faster", full_recomputation,
        must_not_shrink<time_of>},
    Law{"lighter-optimizer-time", "SGD never takes longer than Adam", lighter_optimizer, must_not_grow<time_of>},
    Law{"lighter-optimizer-memory", "SGD never needs more memory than Adam", lighter_optimizer,
        must_not_grow<memory_of>},
    Law{"dropout-more-time", "Dropout never makes a step faster", with_dropout, must_not_shrink<time_of>},
    Law{"dropout-more-memory", "Dropout never needs less memory", with_dropout, must_not_shrink<memory_of>},
    Law{"unfused-more-memory", "Unfused attention, which stores its scores, never needs less memory", unfused_attention,
        must_not_shrink<memory_of>},
    Law{"narrow-gradients-memory", "16-bit gradients never need more memory than 32-bit gradients", narrow_gradients,
        must_not_grow<memory_of>},
    Law{"part-of-a-scope", "A part of a scope never takes longer than the whole", part_of_scope,
        must_not_grow<time_of>},
    Law{"every-sample", "Longer kernels make no sample shorter", longer_kernels, every_sample_grows},
};

}  // namespace

std::span<const Law> laws_of_work() { return work_laws; }

}  // namespace commfuse::laws
