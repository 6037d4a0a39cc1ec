// SPDX-License-Identifier: Apache-2.0
// Scores tables of whole prefill passes of an inference engine: serial, without communication, and with the tokens
// split in two halves, one of which communicates while the other computes (TokenWeave, arXiv 2505.11329).
//
// A layer has GEMMs, attention and memory-bound kernels under tensor parallelism without sequence parallelism, with an
// all-reduce and a norm after the attention block and after the MLP. The overlap is that of
// model/strategies/tokenweave.cpp, simulated here over the blocks of a whole model.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <optional>
#include <utility>

#include "model/cost/attention.h"
#include "model/cost/communication.h"
#include "model/cost/gemm.h"
#include "model/cost/memory_bound.h"
#include "model/text/suggest.h"
#include "sim/score/kinds.h"
#include "sim/score/machine_column.h"
#include "sim/score/model_column.h"

namespace commfuse::score {

namespace {

/// vLLM with TokenWeave's kernels. It launches every kernel separately. While GEMMs run, power limits the clock to 1.59
/// GHz. While only the links work, the chip boosts to 1.98 GHz. The kernel that sums in the switch moves 273 GB/s with
/// clocks locked to 1.59 GHz (the tables of figures 5 and 7), and speeds up in proportion to the clock. Both clocks are
/// priors. The time between kernels is fitted to a single time: 1024 tokens of a dense model on 8 ranks without
/// communication.
struct Engine {
  double clock_share = 0.8;  ///< Clock while GEMMs run, as a share of the clock in short bursts.
  double boost = 1.98 / 1.59;
  Duration between_kernels{};  ///< Sum of the gaps between the kernels of a pass.
  std::string_view fitted_model = "llama-3.3-70b";
  std::int64_t fitted_ranks = 8;
  std::int64_t fitted_tokens = 1024;
  /// With fewer tokens, the host launches the many kernels of a mixture of experts more slowly than they run:
  /// overlapped passes over 1K and 2K tokens take the same time.
  std::int64_t min_mixture_tokens = 4096;
  int ctas = 16;  ///< CTAs of TokenWeave's kernel; they use most of the link rate (the table of figure 10).
};
constexpr Engine vllm{.between_kernels = std::chrono::microseconds(4140)};

/// Returns the machine with its matrix units at a lower, sustained clock. Memory and links are unchanged.
Machine at_clock(Machine machine, double share) {
  for (std::optional<MatrixUnit>& unit : machine.accelerator.matrix_units) {
    if (unit) {
      unit->dense_peak.value = share * unit->dense_peak.value;
      unit->gemm.sustained_share.value = 1.0;
    }
  }
  return machine;
}

/// A forward pass of a model over one sequence on several ranks.
struct Pass {
  const Machine& machine;
  const Transformer& model;
  int ranks = 1;
};

/// Part of a prompt: `tokens` tokens, the last of which attends to `seen` tokens.
struct PromptPart {
  std::int64_t tokens = 0;
  std::int64_t seen = 0;
};

class Blocks {
 public:
  Blocks(const Pass& pass, int sms) : pass_(pass), model_(pass.model), sms_(sms) {}

  /// Time of QKV, rotation, attention over all tokens seen, and output projection.
  [[nodiscard]] Duration attention(const PromptPart& part) const {
    const std::int64_t heads = model_.heads / pass_.ranks;
    const std::int64_t kv = std::max<std::int64_t>(1, model_.kv_heads / pass_.ranks);
    const std::int64_t width = heads * model_.head_dim;
    const std::int64_t keys_width = kv * model_.head_dim;
    const AttentionSize size{.seq = part.seen, .heads = heads, .kv_heads = kv, .head_dim = model_.head_dim};
    const double earlier_share = static_cast<double>(part.seen - part.tokens) / static_cast<double>(part.seen);
    const QueryRows rows{
        .queries = part.tokens, .keys = part.seen, .share = (1.0 - earlier_share * earlier_share) / 2.0};
    return gemm(part.tokens, width + 2 * keys_width, model_.hidden) + moved(part.tokens * 2 * (width + keys_width)) +
           attention_time(pass_.machine.accelerator, size, rows, sms_) + gemm(part.tokens, model_.hidden, width);
  }

  [[nodiscard]] Duration mlp(const PromptPart& part) const {
    if (model_.experts) {
      return mixture(part.tokens, *model_.experts);
    }
    const std::int64_t inner = model_.ffn / pass_.ranks;
    const std::int64_t up = model_.gated_mlp ? 2 : 1;
    return gemm(part.tokens, up * inner, model_.hidden) + moved(part.tokens * (up + 1) * inner) +
           gemm(part.tokens, model_.hidden, inner);
  }

  /// Time of a kernel that adds the residual and normalises `rows` rows of the hidden state. It reads two and writes
  /// two tensors.
  [[nodiscard]] Duration norm(std::int64_t rows) const { return moved(4 * rows * model_.hidden); }

  /// Time of the logits of the last token.
  [[nodiscard]] Duration head() const { return gemm(1, model_.vocab / pass_.ranks, model_.hidden); }

 private:
  /// Time of a mixture of experts: the router, then for each projection one kernel with the GEMMs of all experts,
  /// priced as a single GEMM with all their rows. Rows are gathered for the experts by index, and the results are added
  /// up.
  [[nodiscard]] Duration mixture(std::int64_t tokens, const Experts& experts) const {
    const std::int64_t inner = experts.ffn / pass_.ranks;
    const std::int64_t up = model_.gated_mlp ? 2 : 1;
    const std::int64_t rows = tokens * experts.active;
    return gemm(tokens, experts.count, model_.hidden) + gemm(rows, up * inner, model_.hidden) +
           moved(rows * (up + 1) * inner) + gemm(rows, model_.hidden, inner) + moved((rows + tokens) * model_.hidden);
  }

  [[nodiscard]] Duration gemm(std::int64_t m, std::int64_t n, std::int64_t k) const {
    return estimate_gemm(pass_.machine.accelerator, {.m = m, .n = n, .k = k}, sms_).time;
  }
  [[nodiscard]] Duration moved(std::int64_t elements) const {
    return memory_bound_time(pass_.machine.accelerator, Bytes{elements * bytes_of(DType::bf16)}, sms_);
  }

  const Pass& pass_;
  const Transformer& model_;
  int sms_;
};

Bytes state_of(const Pass& pass, std::int64_t tokens) {
  return Bytes{tokens * pass.model.hidden * bytes_of(DType::bf16)};
}

/// Time of a sum in the switch by the engine's own kernel: one launch, one exchange to synchronize, then the bytes at
/// the switch's rate, without a pipeline to fill. `clock` scales the rate relative to the rate while GEMMs run. If the
/// switch cannot sum, returns the time of NCCL's all-reduce.
Duration sum_time(const Pass& pass, Bytes bytes, double clock) {
  const CollectiveParameters& collective = pass.machine.link.collective;
  if (pass.ranks == 1 || !collective.nccl || !collective.nccl->nvls) {
    return all_reduce_time(collective, pass.ranks, bytes);
  }
  return pass.machine.accelerator.kernel_floor.value + pass.machine.link.peer.latency.value +
         bytes / BytesPerSecond{clock * collective.nccl->nvls->rate.value.value};
}

Duration compute_only(const Pass& pass, std::int64_t tokens) {
  const Blocks blocks(pass, pass.machine.accelerator.sms);
  const PromptPart prompt{tokens, tokens};
  return vllm.between_kernels +
         pass.model.layers * (blocks.attention(prompt) + blocks.mlp(prompt) + 2 * blocks.norm(tokens)) + blocks.head();
}

Duration serial(const Pass& pass, std::int64_t tokens) {
  return compute_only(pass, tokens) + 2 * pass.model.layers * sum_time(pass, state_of(pass, tokens), vllm.boost);
}

/// Time of an overlapped pass. While one half computes a block, one kernel runs the reduce-scatter of the other half,
/// the residual and norm of the rank's own rows, and the all-gather. Each half launches all kernels.
Duration woven(const Pass& pass, std::int64_t tokens) {
  const Blocks blocks(pass, std::max(1, pass.machine.accelerator.sms - vllm.ctas));
  const std::array halves{PromptPart{tokens / 2, tokens / 2}, PromptPart{tokens - tokens / 2, tokens}};
  std::array<Duration, 2> ready{};
  Duration computing{};
  Duration communicating{};
  for (std::int64_t block = 0; block < 2 * pass.model.layers; ++block) {
    for (std::size_t half = 0; half < halves.size(); ++half) {
      const PromptPart& part = halves[half];
      const Duration work = block % 2 == 0 ? blocks.attention(part) : blocks.mlp(part);
      const Duration reduced = sum_time(pass, state_of(pass, part.tokens), 1.0) + blocks.norm(part.tokens / pass.ranks);
      computing = std::max(computing, ready[half]) + work;
      communicating = std::max(communicating, computing) + reduced;
      ready[half] = communicating;
    }
  }
  return 2 * vllm.between_kernels + std::max(ready[0], ready[1]) + blocks.head();
}

}  // namespace

void score_prefill(const Table& table, Context& context, Tally& tally) {
  const Column model = table.column("model");
  const Column ranks = table.column("tp");
  const Column tokens = table.column("prompt_tokens");
  const Column serial_ms = table.column("serial_ms");
  const Column compute_ms = table.column("compute_only_ms");
  const Column overlapped_ms = table.column("overlapped_ms");
  const FoundMachine known = machine_of_table(table, context);
  const Machine machine = known.machine == nullptr ? Machine{} : at_clock(*known.machine, vllm.clock_share);
  ModelColumn models;
  tally.result().remarks.push_back(fmt::format(
      "Power limits the clock of matrix units to {} of the clock in short bursts. Sums that run alone reach {:.3f} "
      "times the rate of NCCL's sums, because the chip then boosts (both priors). The gaps between the kernels of a "
      "pass add {:.2f} ms, or twice that where two halves launch the kernels. This time is fitted to one row, which is "
      "not scored: {} tokens of {} on {} ranks without communication.",
      vllm.clock_share, vllm.boost, to_seconds(vllm.between_kernels) * 1e3, vllm.fitted_tokens, vllm.fitted_model,
      vllm.fitted_ranks));
  constexpr std::array<std::string_view, 3> parts{"serial", "compute only", "overlapped"};
  for (std::size_t i = 0; i < table.rows(); ++i) {
    Row row(table, i);
    const std::int64_t degree = row.count(ranks, max_gpus);
    const std::int64_t prompt = row.count(tokens);
    const double measured_serial = row.amount(serial_ms);
    const double measured_compute = row.amount(compute_ms);
    const double measured_overlapped = row.amount(overlapped_ms);
    if (!tally.takes(row, true)) {
      continue;
    }
    const Transformer* shape = models.of(row.text(model));
    if (known.machine == nullptr) {
      tally.skip(known.why_not);
    } else if (shape == nullptr) {
      tally.skip(fmt::format("no model file is known as {}", in_quotes(row.text(model))));
    } else if (shape->latent || !shape->kinds.empty() || (shape->experts && shape->experts->shared_ffn > 0)) {
      tally.skip(fmt::format("{} has other layers than plain attention with an MLP or routed experts", shape->name));
    } else if (shape->experts && prompt < vllm.min_mixture_tokens) {
      tally.skip("too few tokens: the host launches kernels more slowly than they run");
    } else if (degree > known.machine->gpus_per_node || shape->heads % degree != 0 ||
               (shape->experts ? shape->experts->ffn : shape->ffn) % degree != 0) {
      tally.skip(fmt::format("{} cannot be split over {} ranks of {}", shape->name, degree, known.machine->name));
    } else if (shape->name == vllm.fitted_model && prompt == vllm.fitted_tokens && degree == vllm.fitted_ranks) {
      tally.skip("the time between kernels is fitted to this row");
    } else if (prompt < 2 * degree) {
      tally.skip("too few tokens to split them in two halves");
    } else {
      const Pass pass{machine, *shape, static_cast<int>(degree)};
      const double predicted_serial = to_microseconds(serial(pass, prompt));
      const double predicted_compute = to_microseconds(compute_only(pass, prompt));
      const double predicted_overlapped = to_microseconds(woven(pass, prompt));
      const std::span<const std::string_view> names(parts);
      if (tally.score(row, *known.machine, true,
                      {{1e3 * measured_serial, predicted_serial, names.subspan(0, 1)},
                       {1e3 * measured_compute, predicted_compute, names.subspan(1, 1)},
                       {1e3 * measured_overlapped, predicted_overlapped, names.subspan(2, 1)}})) {
        tally.compare(measured_overlapped / measured_serial, predicted_overlapped / predicted_serial);
        tally.ratio(*known.machine, "serial over compute only", measured_serial / measured_compute,
                    predicted_serial / predicted_compute);
        tally.ratio(*known.machine, "overlapped over compute only", measured_overlapped / measured_compute,
                    predicted_overlapped / predicted_compute);
      }
    }
  }
}

}  // namespace commfuse::score
