// SPDX-License-Identifier: Apache-2.0
// Source: deepspeedai/DeepSpeed, docs/_pages/config-json.md.
#include "sim/import/deepspeed_keys.h"

#include <array>

namespace commfuse::import {

namespace {

constexpr std::array irrelevant_deepspeed_keys{
    Irrelevant{
        "logging, traces and files",
        "steps_per_print wall_clock_breakdown dump_state memory_breakdown flops_profiler.* tensorboard.* wandb.* "
        "comet.* csv_monitor.* comms_logger.* monitor_config.* checkpoint.* nebula.* timers.* logging* "
        "zero_optimization.log_trace_cache_warnings load_universal_checkpoint use_data_before_expert_parallelism"},
    Irrelevant{"training hyperparameters",
               "optimizer.params.* optimizer.legacy_fusion scheduler.* gradient_clipping seed "
               "gradient_predivide_factor prescale_gradients gradient_allreduce_op loss_scale* dataloader_drop_last "
               "disable_allgather managed_gradient_accumulation"},
    Irrelevant{"scales of 16-bit numbers",
               "fp16.loss_scale* fp16.initial_scale_power fp16.hysteresis fp16.consecutive_hysteresis "
               "fp16.min_loss_scale fp16.auto_cast amp.opt_level bf16.immediate_grad_update bf16.check_grad_overflow "
               "torch_autocast.lower_precision_safe_modules"},
    Irrelevant{"checks and permissions",
               "zero_allow_untested_optimizer zero_force_ds_cpu_optimizer zero_optimization.ignore_unused_parameters "
               "zero_optimization.elastic_checkpoint zero_optimization.load_from_fp32_weights "
               "zero_optimization.legacy_stage1 zero_optimization.compute_grad_norm "
               "zero_optimization.override_module_apply"},
    Irrelevant{"buckets and buffers, because weights and gradients are exchanged layer by layer",
               "zero_optimization.allgather_bucket_size zero_optimization.reduce_bucket_size "
               "zero_optimization.contiguous_gradients zero_optimization.allgather_partitions "
               "zero_optimization.sub_group_size zero_optimization.stage3_prefetch_bucket_size "
               "zero_optimization.stage3_max_live_parameters zero_optimization.stage3_max_reuse_distance "
               "zero_optimization.stage3_param_persistence_threshold zero_optimization.prefetch_bucket_size "
               "zero_optimization.stage3_model_persistence_threshold zero_optimization.model_persistence_threshold "
               "zero_optimization.param_persistence_threshold zero_optimization.max_live_parameters "
               "zero_optimization.max_reuse_distance zero_optimization.gather_16bit_weights_on_model_save "
               "zero_optimization.stage3_module_granularity_threshold zero_optimization.parameter_alignment "
               "zero_optimization.stage3_gather_* zero_optimization.use_all_reduce_for_fetch_params "
               "zero_optimization.stage3_use_all_reduce_for_fetch_params zero_optimization.round_robin_gradients "
               "zero_optimization.use_multi_rank_bucket_allreduce zero_optimization.allow_comm_data_type_mismatch"},
    Irrelevant{"disks, which only offload uses", "aio.*"},
    Irrelevant{"searches that DeepSpeed runs before training", "autotuning.* elasticity.*"},
    Irrelevant{"inference", "hybrid_engine.* kernel_inject inference.*"},
    Irrelevant{"choice of the layers that tensor ranks split",
               "tensor_parallel.preset_model tensor_parallel.partition_config.* tensor_parallel.vocab_parallel_lm_head "
               "tensor_parallel.tp.* tensor_parallel.enabled"},
    Irrelevant{"recomputation is set in Python, as a note states",
               "activation_checkpointing.profile activation_checkpointing.synchronize_checkpoint_boundary "
               "activation_checkpointing.contiguous_memory_optimization activation_checkpointing.number_checkpoints"},
    Irrelevant{"details of features that a separate key switches on",
               "zero_optimization.offload_optimizer.* zero_optimization.offload_param.* progressive_layer_drop.* "
               "curriculum_learning.* data_efficiency.* compile.* zero_optimization.cpu_offload_use_pin_memory"},
    Irrelevant{
        "division into stages, which is even",
        "pipeline.partition pipeline.seed_layers pipeline.activation_checkpoint_interval pipeline.use_reentrant"}};

constexpr std::string_view weights_on_gpu = "weights and optimizer state stay on the GPU";

constexpr std::array unsupported_deepspeed_keys{
    Unsupported{"zero_optimization.reduce_scatter", "gradients are scattered", "true auto"},
    Unsupported{"zero_optimization.zero_hpz_partition_size", "weights are gathered from all replicas", "1"},
    Unsupported{"zero_optimization.mics_shard_size", "all replicas share the state", "-1"},
    Unsupported{"zero_optimization.mics_hierarchical_params_gather", "weights are gathered from all replicas"},
    Unsupported{"zero_optimization.zero_quantized_weights", "weights are gathered in 16 bits"},
    Unsupported{"zero_optimization.zero_quantized_nontrainable_weights", "weights are gathered in 16 bits"},
    Unsupported{"zero_optimization.zero_quantized_gradients", "gradients are reduced in full precision"},
    Unsupported{"zero_optimization.zeropp_*", "weights and gradients are exchanged in full precision"},
    Unsupported{"zero_optimization.offload_optimizer.device", weights_on_gpu},
    Unsupported{"zero_optimization.offload_param.device", weights_on_gpu},
    Unsupported{"zero_optimization.offload_optimizer", weights_on_gpu},
    Unsupported{"zero_optimization.offload_param", weights_on_gpu},
    Unsupported{"zero_optimization.cpu_offload", weights_on_gpu},
    Unsupported{"zero_optimization.cpu_offload_params", weights_on_gpu},
    Unsupported{"zero_optimization.zenflow.*", weights_on_gpu},
    Unsupported{"activation_checkpointing.partition_activations", "saved activations are not split over tensor ranks"},
    Unsupported{"activation_checkpointing.cpu_checkpointing", "activations stay on the GPU"},
    Unsupported{"seq_parallel_communication_data_type", "sequence ranks exchange the dtype of the GEMMs", "auto"},
    Unsupported{"data_types.grad_accum_dtype", "gradients are summed in 32 bits", "fp32 auto"},
    Unsupported{"bf16.bf16_master_weights_and_grads", "the optimizer keeps 32-bit weights"},
    Unsupported{"bf16.bf16_optimizer_states", "the optimizer's state uses 32 bits"},
    Unsupported{"fp16.fp16_master_weights_and_grads", "the optimizer keeps 32-bit weights"},
    Unsupported{"fp16_master_weights_and_gradients", "the optimizer keeps 32-bit weights"},
    Unsupported{"sparse_gradients", "gradients of the embedding are dense"},
    Unsupported{"sparse_attention.*", "attention is full"},
    Unsupported{"progressive_layer_drop.enabled", "every layer runs"},
    Unsupported{"curriculum_learning.enabled", "sequences are as long as --seq"},
    Unsupported{"data_efficiency.enabled", "sequences are as long as --seq and every layer sees all tokens"},
    Unsupported{"compression_training.*", "nothing is compressed"},
    Unsupported{"quantize_training.*", "GEMMs have the dtype of the weights"},
    Unsupported{"pipeline.pipe_partitioned", "stages send full activations"},
    Unsupported{"pipeline.grad_partitioned", "stages send full gradients"},
    Unsupported{"compile.deepcompile", "gradients and weights are exchanged layer by layer"},
    Unsupported{"data_parallel_size", "replicas follow from --gpus"},
    Unsupported{"expert_parallel_size", "experts are not split"}};

}  // namespace

KeyLists deepspeed_keys() { return {irrelevant_deepspeed_keys, unsupported_deepspeed_keys}; }

}  // namespace commfuse::import
