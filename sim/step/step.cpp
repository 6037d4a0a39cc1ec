// SPDX-License-Identifier: Apache-2.0
#include "sim/step/step.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "model/check.h"
#include "model/config_error.h"
#include "model/cost/memory_bound.h"
#include "model/workload/layers.h"
#include "sim/step/exchange.h"
#include "sim/step/group_link.h"
#include "sim/step/passes.h"
#include "sim/step/pipeline.h"

namespace commfuse {

namespace {

/// Returns the layers of every chunk of the model, in order.
std::vector<std::vector<LayerRun>> runs_by_chunk(const Transformer& model, const TrainingPlan& plan) {
  std::vector<std::vector<LayerRun>> runs;
  std::int64_t first = 0;
  for (const std::int64_t layers : layers_by_chunk(model, plan)) {
    runs.push_back(layer_runs(model, first, layers));
    first += layers;
  }
  return runs;
}

/// Passes of a layer; each kind of layer is priced once.
struct LayerPasses {
  LayerKind kind;
  Stream forward;
  Stream backward;
  Stream weights;          ///< Used if gradients of weights are separate.
  PassTime forward_time;   ///< Device time, without and with an overlapping exchange of the replicas.
  PassTime gradient_time;  ///< Time of the pass in which gradients become final.
};

/// Adds an exchange of the replicas to a pass of a layer: weights are gathered before the pass, and gradients are
/// scattered after it, while a neighbouring layer runs. Neighbours are assumed to take as long as this layer.
/// `overlapped` is the layer's time during an exchange.
Stream with_overlap(const Stream& stream, Duration overlapped, Duration exchange) {
  return stream.longer(with_exchange({stream.device, std::max(stream.device, overlapped)}, exchange) - stream.device);
}

Stream followed_by(Stream stream, Duration communication) {
  stream.device = counted(stream.device + communication);
  stream.end = counted(stream.end + communication);
  return stream;
}

/// Parameters of one GPU, separated by which GPUs have a copy: all replicas have `others`; only replicas with the same
/// routed experts have `experts`.
struct ParameterCounts {
  std::int64_t others = 0;
  std::int64_t experts = 0;
  std::int64_t around_layers = 0;  ///< The part of `others` that belongs to no layer: StageParameters::around_layers.
  [[nodiscard]] ParameterCounts over(std::int64_t parts) const {
    return {others / parts, experts / parts, around_layers / parts};
  }
};

class Step {
 public:
  Step(const StepPoint& point, SiteTimes& sites)
      : point_(point),
        model_(*point.model),
        plan_(point.plan),
        costs_(point, sites),
        overlapped_costs_(point, sites, exchange_sms(point)),
        runs_(runs_by_chunk(model_, plan_)),
        parameters_(parameters_by_stage(model_, plan_)),
        replicas_(costs_.group_at({.stride = plan_.tensor, .ranks = plan_.replicas()})),
        expert_replicas_(
            costs_.group_at({.stride = plan_.tensor * plan_.expert, .ranks = plan_.replicas() / plan_.expert})) {}

  StepPrediction predict() {
    const std::vector<StageTimes> stages = simulate(pipeline());
    std::vector<StepBreakdown> breakdowns;
    for (std::int64_t stage = 0; stage < plan_.pipeline; ++stage) {
      breakdowns.push_back(breakdown(stage, stages[static_cast<std::size_t>(stage)]));
    }
    StepPrediction prediction;
    for (const StepBreakdown& parts : breakdowns) {
      prediction.time = std::max(prediction.time, total_of(parts));
    }
    // The parts of the busiest stage, not of the last one to end: stages with less work wait for it, which is not a
    // bubble. Ties go to the stage that ends last.
    prediction.parts = *std::ranges::max_element(
        breakdowns, {}, [](const StepBreakdown& parts) { return std::pair(parts.compute, total_of(parts)); });
    prediction.parts.waiting += prediction.time - total_of(prediction.parts);
    return prediction;
  }

  /// Returns a lower bound of the step's time. Before a stage's first pass and after its last pass, the earlier chunks
  /// run the passes of one micro-batch; separate gradients of weights may run later.
  Duration least() {
    const Pipeline pipeline = this->pipeline();
    Duration before{};
    Duration longest{};
    Duration optimizer = Duration::max();
    for (std::int64_t stage = 0; stage < plan_.pipeline; ++stage) {
      Duration busy{};
      for (std::int64_t chunk = stage; chunk < std::ssize(pipeline.chunks); chunk += plan_.pipeline) {
        const PipelineChunk& chunk_passes = pipeline.chunks[static_cast<std::size_t>(chunk)];
        const Duration pass =
            counted(chunk_passes.forward.device + chunk_passes.backward.device + chunk_passes.weights.device);
        // Throws if the product below would be too long for a stream; in integers it might overflow.
        stream_time(static_cast<double>(pipeline.micro_batches) * to_seconds(pass));
        busy = counted(busy + pipeline.micro_batches * pass);
      }
      longest = std::max(longest, before + busy);
      const PipelineChunk& own_chunk = pipeline.chunks[static_cast<std::size_t>(stage)];
      before = counted(before + own_chunk.forward.device +
                       (pipeline.splits_backward ? Duration{} : own_chunk.backward.device));
      optimizer = std::min(optimizer, optimizer_of(stage));
    }
    return longest + optimizer;
  }

 private:
  static Duration total_of(const StepBreakdown& parts) {
    return parts.compute + parts.waiting + parts.gradients + parts.optimizer;
  }

  Pipeline pipeline() {
    Pipeline pipeline{.stages = plan_.pipeline, .interleave = plan_.interleave, .micro_batches = plan_.micro_batches()};
    pipeline.splits_backward = splits();
    for (const std::vector<LayerRun>& runs : runs_) {
      PipelineChunk chunk;
      for (const LayerRun& run : runs) {  // in the backward pass, later layers come first
        chunk.forward = chunk.forward.then(repeated(passes(run.kind).forward, run.count));
        chunk.backward = repeated(passes(run.kind).backward, run.count).then(chunk.backward);
        chunk.weights = repeated(passes(run.kind).weights, run.count).then(chunk.weights);
      }
      exchange_once(chunk, std::ssize(pipeline.chunks));
      pipeline.chunks.push_back(chunk);
    }
    PipelineChunk& first = pipeline.chunks.front();
    first.forward = begun(costs_.embedding_forward()).then(first.forward);
    first.backward = first.backward.then(begun(costs_.embedding_backward()));
    PipelineChunk& last = pipeline.chunks.back();
    last.forward = last.forward.then(begun(costs_.logits_forward()));
    if (splits()) {
      const LayerCost::SplitPasses logits = costs_.logits_backward_split();
      last.backward = begun(logits.inputs).then(last.backward);
      last.weights = begun(logits.weights).then(last.weights);
    } else {
      last.backward = begun(costs_.logits_backward()).then(last.backward);
    }
    if (plan_.pipeline > 1) {
      pipeline.sends = sends();
    }
    return pipeline;
  }

  /// Lengthens the first forward and the last backward pass of a chunk by the exchanges that happen once per step.
  void exchange_once(PipelineChunk& chunk, std::int64_t number) {
    if (replicas_.ranks == 1 || !plan_.overlap_gradients || plan_.zero == Zero::weights) {
      return;
    }
    std::vector<PassTime> forward;
    std::vector<PassTime> gradient;
    for (const LayerRun& run : runs_[static_cast<std::size_t>(number)]) {
      const LayerPasses& layer = passes(run.kind);
      forward.insert(forward.end(), static_cast<std::size_t>(run.count), layer.forward_time);
      gradient.insert(gradient.end(), static_cast<std::size_t>(run.count), layer.gradient_time);
    }
    std::reverse(gradient.begin(), gradient.end());
    const std::int64_t stage = number % plan_.pipeline;
    const ParameterCounts bucket = bucket_parameters(stage);
    chunk.last_longer = longer_by_reductions(gradient, reduction(bucket));
    if (shares_state()) {
      const Duration gather = all_gather(bucket);
      chunk.first_longer = number < plan_.pipeline ? longer_by_gathers(forward, gather) : slowed_by(forward, gather);
    }
  }

  [[nodiscard]] std::vector<Duration> sends() const {
    const std::int64_t sharers = plan_.sequence_parallel ? plan_.tensor : 1;
    const StageSend send{.stages = plan_.pipeline,
                         .gpus_per_stage = plan_.gpus() / plan_.pipeline,
                         .bytes = Bytes{2 * plan_.tokens_per_pass() * model_.hidden / sharers}};
    const double slower = slowest_of(2, point_.communication_sigma);
    const auto time_of = [&](std::int64_t stage) {
      return stream_time(slower * to_seconds(send_time(*point_.machine, send, stage)));
    };
    // All stages but the last send equally far, so sends from the same position in a node take equally long.
    std::map<std::int64_t, Duration> known;
    std::vector<Duration> sends;
    for (std::int64_t stage = 0; stage + 1 < plan_.pipeline; ++stage) {
      const auto [time, is_new] = known.try_emplace(stage * send.gpus_per_stage % point_.machine->gpus_per_node);
      if (is_new) {
        time->second = time_of(stage);
      }
      sends.push_back(time->second);
    }
    sends.push_back(time_of(plan_.pipeline - 1));
    return sends;
  }

  [[nodiscard]] Stream begun(const Stream& stream) const {
    return point_.framework.host_runs_ahead ? stream : stream.in_step();
  }

  [[nodiscard]] bool splits() const { return plan_.schedule == PipelineSchedule::zero_bubble; }

  const LayerPasses& passes(const LayerKind& kind) {
    const auto known =
        std::find_if(passes_.begin(), passes_.end(), [&](const auto& passes) { return passes.kind == kind; });
    return known != passes_.end() ? *known : passes_.emplace_back(priced(kind));
  }

  LayerPasses priced(const LayerKind& kind) {
    LayerPasses layer{kind, begun(costs_.forward(kind)), {}, {}};
    if (splits()) {
      const LayerCost::SplitPasses split = costs_.backward_split(kind);
      layer.backward = begun(split.inputs);
      layer.weights = begun(split.weights);
    } else {
      layer.backward = begun(costs_.backward(kind));
    }
    if (replicas_.ranks > 1) {
      price_overlapped(layer);
      exchange_in_passes(layer);
    }
    return layer;
  }

  void price_overlapped(LayerPasses& layer) {
    Stream& gradients = splits() ? layer.weights : layer.backward;
    layer.forward_time = {layer.forward.device, layer.forward.device};
    layer.gradient_time = {gradients.device, gradients.device};
    if (plan_.overlap_gradients || plan_.zero == Zero::weights) {  // gathers of weights overlap passes in any case
      const Duration forward = overlapped_costs_.forward(layer.kind).device;
      const Duration gradient = splits() ? overlapped_costs_.backward_split(layer.kind).weights.device
                                         : overlapped_costs_.backward(layer.kind).device;
      layer.forward_time.overlapped = std::max(layer.forward_time.alone, forward);
      layer.gradient_time.overlapped = std::max(layer.gradient_time.alone, gradient);
    }
  }

  void exchange_in_passes(LayerPasses& layer) const {
    const ParameterCounts parameters = layer_parameters(first_stage_with_layers());
    const Duration scattered = plan_.scatters_each_pass() ? reduce_scatter(parameters) : Duration::zero();
    Stream& gradients = splits() ? layer.weights : layer.backward;
    const Duration last = layer.gradient_time.overlapped;
    if (plan_.zero == Zero::weights) {
      const Duration gathered = all_gather(parameters);
      layer.forward = with_overlap(layer.forward, layer.forward_time.overlapped, gathered);
      const bool is_joint = !splits() && plan_.overlap_gradients;
      layer.backward = with_overlap(layer.backward, splits() ? layer.backward.device : last,
                                    is_joint ? gathered + scattered : gathered);
      if (!splits() && !is_joint) {
        layer.backward = followed_by(layer.backward, scattered);
      }
    }
    if (plan_.zero != Zero::weights || splits()) {
      gradients =
          plan_.overlap_gradients ? with_overlap(gradients, last, scattered) : followed_by(gradients, scattered);
    }
  }

  /// Returns the number of SMs that the kernels of the replicas' collectives hold.
  static int exchange_sms(const StepPoint& point) {
    const TrainingPlan& plan = point.plan;
    return plan.replicas() > 1
               ? group_of(*point.machine, {.stride = plan.tensor, .ranks = plan.replicas(), .gpus = plan.gpus()})
                     .wires->ctas.value
               : 0;
  }

  /// With ZeRO 3, nothing runs while the first layer's weights are gathered before the first pass, or while gradients
  /// are scattered after the last pass. exchange_in_passes() overlaps each exchange with its own layer; this function
  /// returns the part of these two exchanges that exchange_in_passes() hides. Without overlap of gradients, it hides no
  /// scatter.
  [[nodiscard]] Duration exposed_at_the_ends() {
    const ParameterCounts parameters = layer_parameters(first_stage_with_layers());
    const auto chunk = std::find_if(runs_.begin(), runs_.end(), [](const auto& runs) { return !runs.empty(); });
    const LayerPasses& first = passes(chunk->front().kind);
    const Duration scattered = plan_.overlap_gradients ? reduce_scatter(parameters) : Duration::zero();
    return std::min(all_gather(parameters), first.forward_time.alone) + std::min(scattered, first.gradient_time.alone);
  }

  [[nodiscard]] ParameterCounts parameters_on(std::int64_t stage) const {
    const StageParameters& parameters = parameters_[static_cast<std::size_t>(stage)];
    const std::int64_t experts = plan_.expert > 1 ? parameters.experts : 0;
    return {parameters.whole - experts, experts, parameters.around_layers};
  }

  [[nodiscard]] std::int64_t layers_on(std::int64_t stage) const {
    std::int64_t layers = 0;
    for (std::int64_t chunk = stage; chunk < std::ssize(runs_); chunk += plan_.pipeline) {
      layers += layers_of(chunk);
    }
    return std::max<std::int64_t>(1, layers);
  }

  /// Returns the first stage with layers: the first stage of a pipeline may have only the embedding.
  [[nodiscard]] std::int64_t first_stage_with_layers() const {
    const auto has_layers = [&](std::int64_t stage) {
      for (std::int64_t chunk = stage; chunk < std::ssize(runs_); chunk += plan_.pipeline) {
        if (!runs_[static_cast<std::size_t>(chunk)].empty()) {
          return true;
        }
      }
      return false;
    };
    std::int64_t stage = 0;
    while (stage + 1 < plan_.pipeline && !has_layers(stage)) {
      ++stage;
    }
    return stage;
  }

  /// Returns the parameters of one layer of a stage, with its share of the parts around the layers.
  [[nodiscard]] ParameterCounts layer_parameters(std::int64_t stage) const {
    return parameters_on(stage).over(layers_on(stage));
  }

  /// Returns the embedding's parameters on a GPU of the stage. No kernel of a step hides their exchanges: the first
  /// pass needs them first, and their gradients become final last.
  [[nodiscard]] ParameterCounts embedding_parameters(std::int64_t stage) const {
    const std::int64_t embedding = parameters_[static_cast<std::size_t>(stage)].embedding;
    return {embedding, 0, embedding};
  }

  [[nodiscard]] ParameterCounts without_embedding(std::int64_t stage) const {
    ParameterCounts parameters = parameters_on(stage);
    parameters.others -= embedding_parameters(stage).others;
    parameters.around_layers -= embedding_parameters(stage).around_layers;
    return parameters;
  }

  /// Returns the parameters of one layer of a stage, with its share of the last norm and the logits, where exchanges
  /// happen once per step.
  [[nodiscard]] ParameterCounts bucket_parameters(std::int64_t stage) const {
    return without_embedding(stage).over(layers_on(stage));
  }

  /// Returns the time to gather weights: in 16 bits, except that a framework may narrow the weights of layers to 8
  /// bits. Before Blackwell, each GPU transposes narrow weights itself.
  [[nodiscard]] Duration all_gather(const ParameterCounts& parameters) const {
    const bool is_narrow = plan_.dtype == DType::fp8 && point_.framework.narrows_weights;
    const DType of_layers = is_narrow ? DType::fp8 : DType::bf16;
    const Bytes others =
        in(of_layers, parameters.others - parameters.around_layers) + in(DType::bf16, parameters.around_layers);
    return both(&Group::all_gather, others, in(of_layers, parameters.experts));
  }
  /// Returns the time to scatter gradients.
  [[nodiscard]] Duration reduce_scatter(const ParameterCounts& parameters) const {
    return both(&Group::reduce_scatter, in(plan_.gradient_dtype, parameters.others),
                in(plan_.gradient_dtype, parameters.experts));
  }
  [[nodiscard]] Duration all_reduce(const ParameterCounts& parameters) const {
    return both(&Group::all_reduce, in(plan_.gradient_dtype, parameters.others),
                in(plan_.gradient_dtype, parameters.experts));
  }
  [[nodiscard]] Duration both(Duration (Group::*collective)(Bytes) const, Bytes others, Bytes experts) const {
    const Duration time = others.count == 0 ? Duration::zero() : (replicas_.*collective)(others);
    return experts.count == 0 ? time : time + (expert_replicas_.*collective)(experts);
  }
  static Bytes in(DType dtype, std::int64_t parameters) { return Bytes{parameters * bytes_of(dtype)}; }

  /// Returns the time in which the replicas reduce these gradients: an all-reduce, or a reduce-scatter if each
  /// optimizer rank owns a part of them.
  [[nodiscard]] Duration reduction(const ParameterCounts& parameters) const {
    if (replicas_.ranks == 1 || plan_.scatters_each_pass()) {
      return Duration::zero();
    }
    return plan_.zero == Zero::none ? all_reduce(parameters) : reduce_scatter(parameters);
  }

  /// Returns when the gradients of a stage are reduced: layer by layer as they become final, or all after the last
  /// pass.
  [[nodiscard]] Duration reduced(std::int64_t stage, const StageTimes& times) const {
    if (!plan_.overlap_gradients) {
      return times.end + reduction(parameters_on(stage));
    }
    std::int64_t layers = 0;
    for (const LastBackward& last : times.last_backward) {
      layers += std::max<std::int64_t>(1, layers_of(last.chunk));
    }
    const Duration bucket = reduction(without_embedding(stage).over(layers));
    Duration done{};
    for (const LastBackward& last : times.last_backward) {
      const std::int64_t layers_of_chunk = std::max<std::int64_t>(1, layers_of(last.chunk));
      for (std::int64_t i = 1; i <= layers_of_chunk; ++i) {
        // The remainder is added separately, because the whole difference multiplied by i may exceed 64 bits.
        const Duration layer = (last.end - last.start) / layers_of_chunk;
        const Duration final = last.start + layer * i + (last.end - last.start) % layers_of_chunk * i / layers_of_chunk;
        done = counted(std::max(done, final) + bucket);
      }
    }
    return std::max(done, times.end) + reduction(embedding_parameters(stage));
  }

  [[nodiscard]] std::int64_t layers_of(std::int64_t chunk) const {
    std::int64_t layers = 0;
    for (const LayerRun& run : runs_[static_cast<std::size_t>(chunk)]) {
      layers += run.count;
    }
    return layers;
  }

  [[nodiscard]] bool shares_state() const { return plan_.zero != Zero::none && replicas_.ranks > 1; }

  [[nodiscard]] Duration optimizer_of(std::int64_t stage) const {
    const StageParameters& parameters = parameters_[static_cast<std::size_t>(stage)];
    const Duration buffer = gradient_buffer(parameters.whole);
    if (!shares_state()) {
      return buffer + costs_.optimizer(parameters.whole);
    }
    const std::int64_t shared = (parameters.whole - parameters.experts) / replicas_.ranks;
    return buffer + costs_.optimizer(shared + parameters.experts * plan_.expert / replicas_.ranks);
  }

  /// Returns the time of the kernels that only prepare the sums of gradients: the sums are set to zero before a step
  /// and, where they are reduced, divided by the number of replicas first (Megatron-LM, DistributedDataParallel). Where
  /// gradients are scattered in each pass or are not summed by GEMMs, there is no such buffer.
  [[nodiscard]] Duration gradient_buffer(std::int64_t parameters) const {
    if (!point_.framework.fuses_accumulation || plan_.scatters_each_pass()) {
      return Duration::zero();
    }
    const std::int64_t accesses = replicas_.ranks > 1 ? 3 : 1;  // a write; a read and a write
    const Accelerator& accelerator = point_.machine->accelerator;
    const Bytes traffic = accesses * in(plan_.gradient_dtype, parameters);
    return costs_.slowed(memory_bound_time(accelerator, traffic, accelerator.sms));
  }

  [[nodiscard]] StepBreakdown breakdown(std::int64_t stage, const StageTimes& times) {
    StepBreakdown parts;
    parts.compute = times.busy;
    parts.waiting = times.end - times.busy;
    parts.gradients = reduced(stage, times) - times.end;
    parts.optimizer = optimizer_of(stage);
    if (shares_state() && plan_.zero != Zero::weights) {
      // New weights are gathered after the step, or during the next forward pass, except for the weights of the
      // embedding and the first layer, for which all stages wait.
      parts.gradients += plan_.overlap_gradients
                             ? all_gather(embedding_parameters(0)) + all_gather(bucket_parameters(0))
                             : all_gather(parameters_on(stage));
    }
    if (shares_state() && plan_.zero == Zero::weights) {
      parts.gradients += exposed_at_the_ends();
    }
    return parts;
  }

  const StepPoint& point_;
  const Transformer& model_;
  const TrainingPlan& plan_;
  LayerCost costs_;
  LayerCost overlapped_costs_;               // costs on the SMs that no exchange of replicas holds
  std::vector<std::vector<LayerRun>> runs_;  // by chunk
  std::vector<StageParameters> parameters_;  // by stage
  std::vector<LayerPasses> passes_;          // by kind of layer
  Group replicas_;
  Group expert_replicas_;
};

/// Returns the names of the degrees whose product is the number of GPUs.
std::string_view degrees_of(const TrainingPlan& plan) {
  return plan.ulysses > 1 ? "tensor x pipeline x data x context x ulysses" : "tensor x pipeline x data x context";
}

}  // namespace

Machine resized(Machine machine, const TrainingPlan& plan) {
  constexpr std::int64_t max_gpus = std::int64_t{1} << 30;  // the range of ranks
  if (plan.gpus() > max_gpus) {
    throw ConfigError(fmt::format("{} is more than {} GPUs; choose fewer", degrees_of(plan), max_gpus));
  }
  const std::int64_t nodes = (plan.gpus() + machine.gpus_per_node - 1) / machine.gpus_per_node;
  if (machine.network) {
    machine.nodes = static_cast<int>(nodes);
  } else if (nodes > 1) {
    throw ConfigError(fmt::format("{} is {} GPUs, and {} is one node of {}; choose a cluster, such as dgx-h100-x2",
                                  degrees_of(plan), plan.gpus(), machine.name, machine.gpus_per_node));
  }
  return machine;
}

Fp8Weights fp8_weights_of(const Framework& framework, const Machine& machine) {
  const auto& nccl = machine.link.collective.nccl;
  const bool reads_any_layout = nccl != nullptr && nccl->tuning.generation == NcclGeneration::blackwell;
  return framework.narrows_weights && reads_any_layout ? Fp8Weights::narrow : Fp8Weights::wide;
}

MemoryRules memory_rules_of(const Framework& framework, const Machine& machine) {
  return {.fp8_weights = fp8_weights_of(framework, machine),
          .selective = framework.selective,
          .loss_memory = framework.loss_memory.value};
}

namespace {

void require_possible_latent(const StepPoint& point) {
  const Transformer& model = *point.model;
  for (const auto& [name, ranks] :
       {std::pair{"context parallelism", point.plan.context}, {"ulysses", point.plan.ulysses}}) {
    if (ranks > 1) {
      throw ConfigError(
          fmt::format("{} {} is not supported for the latent attention of {}; set it to 1", name, ranks, model.name));
    }
  }
}

}  // namespace

void require_possible(const StepPoint& point) {
  require_possible(*point.model, point.plan, point.serves ? KeyHeads::copied : KeyHeads::split);
  require_supported(point.machine->accelerator, point.plan.dtype);
  if (point.plan.dtype == DType::fp32) {
    throw ConfigError(
        "dtype fp32 is not supported for whole models, which use 16-bit activations; choose bf16 or fp16");
  }
  if (point.plan.gpus() > total_gpus(*point.machine)) {
    throw ConfigError(fmt::format("{} is {} GPUs, and {} has {}; choose fewer", degrees_of(point.plan),
                                  point.plan.gpus(), point.machine->name, total_gpus(*point.machine)));
  }
  if (point.model->latent) {
    require_possible_latent(point);
  }
  if (point.plan.context > 1 && !point.plan.fused_attention) {
    throw ConfigError(
        fmt::format("context parallelism {} requires fused attention; choose --attention-kernel fused, or context 1",
                    point.plan.context));
  }
}

Duration least_step_time(const StepPoint& point, SiteTimes& sites) { return Step(on_average(point), sites).least(); }

StepPercentiles step_percentiles(const StepPoint& point, SiteTimes& sites) {
  return over_machines(point, [&](const StepPoint& of) { return Step(of, sites).predict().time; });
}

Duration step_time(const StepPoint& point, SiteTimes& sites) { return Step(on_average(point), sites).predict().time; }

StepPrediction predict_step(const StepPoint& point, SiteTimes& sites) {
  StepPrediction prediction = Step(on_average(point), sites).predict();
  const TrainingPlan& plan = point.plan;
  const Tokens tokens{plan.global_batch, plan.seq};
  const double seconds = to_seconds(prediction.time);
  const double peak_flops = seconds * peak_of(point);
  prediction.tokens_per_second = static_cast<double>(tokens.count()) / seconds;
  prediction.mfu = training_flops(*point.model, tokens, AttentionCount::causal).count / peak_flops;
  const Flops hardware = hardware_flops(*point.model, tokens, AttentionCount::causal, plan.recompute,
                                        point.framework.selective, plan.tensor > 1);
  prediction.hfu = hardware.count / peak_flops;
  prediction.memory = largest_step_memory(*point.model, plan, memory_rules_of(point.framework, *point.machine));
  prediction.fits = prediction.memory.total() <= point.machine->accelerator.hbm_capacity;
  return prediction;
}

}  // namespace commfuse
