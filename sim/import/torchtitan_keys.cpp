// SPDX-License-Identifier: Apache-2.0
// Source: pytorch/torchtitan, torchtitan/config/job_config.py.
#include "sim/import/torchtitan_keys.h"

#include <array>

namespace commfuse::import {

namespace {

constexpr std::array irrelevant_torchtitan_keys{
    Irrelevant{"files that are written", "job.* profiling.* metrics.* checkpoint.* comm.* memory_estimation.* debug.*"},
    Irrelevant{"data and tokens",
               "training.dataset* model.tokenizer* model.hf_assets_path dataloader.* tokenizer.* "
               "hf_tokenizer.* validation.*"},
    Irrelevant{"training hyperparameters",
               "lr_scheduler.* optimizer.lr optimizer.beta1 optimizer.beta2 optimizer.eps optimizer.weight_decay "
               "optimizer.moe_* optimizer.momentum loss.* training.max_norm training.steps training.warmup_steps "
               "training.seed "
               "training.deterministic debug.seed"},
    Irrelevant{"the kernel of the optimizer, which is simulated as fused",
               "optimizer.implementation optimizer.fused optimizer.foreach"},
    Irrelevant{"garbage collection of Python", "training.gc_*"},
    Irrelevant{"code that is loaded", "experimental.custom_* model.print_after_conversion model.args.*"},
    Irrelevant{"compilation, because the times of kernels come from the machine's table",
               "compile.backend compile.mode parallelism.enable_compiled_autograd training.enable_compiled_autograd "
               "experimental.enable_compiled_autograd"},
    Irrelevant{"scales of 8-bit GEMMs",
               "float8.precompute_* float8.force_recompute_fp8_weight_in_bwd float8.recipe_name float8.filter_fqns "
               "float8.moe_fqns* float8.emulate float8.scaling_type* mx.* quantize.*"},
    Irrelevant{"recomputation within a layer",
               "activation_checkpoint.per_op_* activation_checkpoint.early_stop "
               "activation_checkpoint.determinism_check activation_checkpoint.preserve_rng_state "
               "activation_checkpoint.debug activation_checkpoint.visualize_* activation_checkpoint.memory_budget"},
    Irrelevant{"splitting of the loss over tensor ranks, which affects no GEMM",
               "parallelism.disable_loss_parallel training.disable_loss_parallel parallelism.enable_loss_parallel "
               "training.enable_loss_parallel"},
    Irrelevant{"the file of a schedule that pipeline_parallel_schedule names",
               "parallelism.pipeline_parallel_schedule_csv "
               "experimental.pipeline_parallel_schedule_csv"}};

constexpr std::array unsupported_torchtitan_keys{
    Unsupported{"model.norm_type", "norms are those of the model", "rmsnorm fused_rmsnorm compiled_rmsnorm"},
    Unsupported{"training.enable_cpu_offload", "weights, gradients and optimizer state stay on the GPU"},
    Unsupported{"training.dtype", "the optimizer keeps 32-bit weights", "float32"},
    Unsupported{"training.data_parallel_type", "replicas share weights, gradients and optimizer state", "fsdp"},
    Unsupported{"optimizer.early_step_in_backward", "the optimizer runs after the last backward pass"},
    Unsupported{"parallelism.context_parallel_load_balancer", "context ranks have equal work", "headtail"},
    Unsupported{"parallelism.expert_tensor_parallel_degree", "experts are split over the tensor ranks", "1"},
    Unsupported{"parallelism.expert_parallel_comm_backend", "tokens go to experts by all-to-all", "standard"},
    Unsupported{"parallelism.enable_sequence_parallel", "sequence parallelism is on", "true"},
    Unsupported{"parallelism.pipeline_parallel_split_points", even_stages},
    Unsupported{"experimental.pipeline_parallel_split_points", even_stages},
    Unsupported{"parallelism.module_fqns_per_model_part", even_stages},
    Unsupported{"parallelism.pipeline_parallel_first_stage_less_layers", even_stages, "0"},
    Unsupported{"parallelism.pipeline_parallel_last_stage_less_layers", even_stages, "0"},
    Unsupported{"parallelism.pipeline_parallel_expert_parallel_overlap", "experts' transfers are not overlapped"},
    Unsupported{"float8.enable_fsdp_float8_all_gather", "weights are gathered in 16 bits"},
    Unsupported{"quantize.linear.float8.enable_fsdp_float8_all_gather", "weights are gathered in 16 bits"},
    Unsupported{"fault_tolerance.enable", "all replicas reduce gradients in every step"},
    Unsupported{"fault_tolerance.semi_sync_method", "all replicas reduce gradients in every step"},
    Unsupported{"experimental.enable_simplefsdp_passes", "gradients and weights are exchanged layer by layer"}};

}  // namespace

KeyLists torchtitan_keys() { return {irrelevant_torchtitan_keys, unsupported_torchtitan_keys}; }

}  // namespace commfuse::import
