// SPDX-License-Identifier: Apache-2.0
// Sources: NVIDIA/Megatron-LM, megatron/training/arguments.py; NVIDIA/NeMo,
// examples/nlp/language_modeling/conf/megatron_gpt_config.yaml; NVIDIA-NeMo/Megatron-Bridge, the run_config.yaml that a
// run saves.
#include "sim/import/megatron_flags.h"

#include <algorithm>
#include <array>
#include <cstddef>

#include "model/text/suggest.h"

namespace commfuse::import {

namespace {

/// Flags without a value that are read.
constexpr auto switches = std::to_array<std::string_view>({
    "--account-for-embedding-in-pipeline-split",
    "--account-for-loss-in-pipeline-split",
    "--accumulate-allreduce-grads-in-fp32",
    "--bf16",
    "--disable-bias-linear",
    "--disable-tp-comm-overlap-ag",
    "--disable-tp-comm-overlap-rs",
    "--fp16",
    "--grad-reduce-in-bf16",
    "--group-query-attention",
    "--no-position-embedding",
    "--overlap-grad-reduce",
    "--recompute-activations",
    "--sequence-parallel",
    "--swiglu",
    "--tp-comm-overlap",
    "--untie-embeddings-and-output-weights",
    "--use-custom-fsdp",
    "--use-distributed-optimizer",
    "--use-flash-attn",
    "--use-megatron-fsdp",
    "--use-rotary-position-embeddings",
    "--use-torch-fsdp2",
});

/// Flags without a value that change the work and are not read.
constexpr auto switches_not_read = std::to_array<std::string_view>({
    "--add-qkv-bias",
    "--attention-output-gate",
    "--cpu-offloading",
    "--delay-wgrad-compute",
    "--disable-tp-comm-bulk-dgrad",
    "--disable-tp-comm-bulk-wgrad",
    "--distribute-saved-activations",
    "--enable-cuda-graph",
    "--external-cuda-graph",
    "--fine-grained-activation-offloading",
    "--first-last-layers-bf16",
    "--fp8-dot-product-attention",
    "--fp8-multi-head-attention",
    "--fp8-param-gather",
    "--is-hybrid-model",
    "--moe-pad-expert-input-to-capacity",
    "--moe-shared-expert-overlap",
    "--multi-latent-attention",
    "--optimizer-cpu-offload",
    "--overlap-moe-expert-parallel-comm",
    "--use-cpu-optimizer",
    "--use-precision-aware-optimizer",
    "--use-sharp",
    "--variable-seq-lengths",
});

/// Flags with a value that are read.
constexpr auto valued = std::to_array<std::string_view>({
    "--attention-backend",
    "--attention-dropout",
    "--context-parallel-size",
    "--cp-comm-type",
    "--data-parallel-sharding-strategy",
    "--expert-model-parallel-size",
    "--ffn-hidden-size",
    "--fp8-format",
    "--global-batch-size",
    "--hidden-dropout",
    "--hidden-size",
    "--hierarchical-context-parallel-sizes",
    "--kv-channels",
    "--make-vocab-size-divisible-by",
    "--max-position-embeddings",
    "--micro-batch-size",
    "--moe-ffn-hidden-size",
    "--moe-router-topk",
    "--nnodes",
    "--normalization",
    "--nproc-per-node",
    "--nproc_per_node",
    "--num-attention-heads",
    "--num-experts",
    "--num-layers",
    "--num-layers-per-virtual-pipeline-stage",
    "--num-nodes",
    "--num-query-groups",
    "--num-virtual-stages-per-pipeline-rank",
    "--optimizer",
    "--padded-vocab-size",
    "--pipeline-model-parallel-size",
    "--position-embedding-type",
    "--recompute-granularity",
    "--seq-length",
    "--tensor-model-parallel-size",
    "--transformer-impl",
    "--vocab-size",
});

constexpr std::string_view activations_on_gpu = "weights, activations and optimizer state stay on the GPU";
constexpr std::string_view thirty_two = "the optimizer keeps 32-bit weights and states";

constexpr std::array unsupported_flags{
    Unsupported{"multi_latent_attention", "attention has the heads of --num-attention-heads"},
    Unsupported{"moe_shared_expert_intermediate_size", "no expert is shared"},
    Unsupported{"moe_layer_freq", "every layer has experts", "1"},
    Unsupported{"decoder_first_pipeline_num_layers", even_stages},
    Unsupported{"decoder_last_pipeline_num_layers", even_stages},
    Unsupported{"num_layers_in_first_pipeline_stage", even_stages},
    Unsupported{"num_layers_in_last_pipeline_stage", even_stages},
    Unsupported{"pipeline_model_parallel_layout", even_stages},
    Unsupported{"pipeline_model_parallel_split_rank", even_stages},
    Unsupported{"fp4_format", "the other flags choose the dtype"},
    Unsupported{"fp4", "the other keys choose the dtype"},
    Unsupported{"first_last_layers_bf16", "all layers have the dtype"},
    Unsupported{"fp8_dot_product_attention", "the attention core uses 16 bits"},
    Unsupported{"fp8_multi_head_attention", "the attention core uses 16 bits"},
    Unsupported{"fp8_param*", "the framework decides whether weights use 8 or 16 bits"},
    Unsupported{"window_size", "attention is full"},
    Unsupported{"window_attn_skip_freq", "attention is full"},
    Unsupported{"experimental_attention_variant", "attention is full"},
    Unsupported{"attention_output_gate", "attention has no gate"},
    Unsupported{"is_hybrid_model", "every layer has attention"},
    Unsupported{"hybrid_*", "every layer has attention", "0 0.0"},
    Unsupported{"linear_attention_*", "every layer has attention"},
    Unsupported{"heterogeneous_*", "all layers are equal"},
    Unsupported{"mtp_num_layers", "only the next token is predicted", "0"},
    Unsupported{"add_qkv_bias", "either all linear layers have biases, or none"},
    Unsupported{"moe_expert_capacity_factor", "no token is dropped"},
    Unsupported{"moe_pad_expert_input_to_capacity", "no token is dropped"},
    Unsupported{"moe_shared_expert_overlap", "no expert is shared"},
    Unsupported{"moe_latent_size", "experts read the full width"},
    Unsupported{"overlap_moe_expert_parallel_comm", "experts' transfers are not overlapped"},
    Unsupported{"expert_tensor_parallel_size", "experts are split over the tensor ranks"},
    Unsupported{"num_distributed_optimizer_instances", "all replicas share the optimizer's state", "1"},
    Unsupported{"outer_dp_sharding_strategy", "all replicas share the sharded state", "no_shard"},
    Unsupported{"use_sharp", "switches sum if the machine's file states it"},
    Unsupported{"use_precision_aware_optimizer", thirty_two},
    Unsupported{"optimizer_cpu_offload", activations_on_gpu},
    Unsupported{"cpu_offloading", activations_on_gpu},
    Unsupported{"cpu_offloading_num_layers", activations_on_gpu, "0"},
    Unsupported{"fine_grained_activation_offloading", activations_on_gpu},
    Unsupported{"recompute_method", "full recomputation covers every layer", "uniform"},
    Unsupported{"recompute_num_layers", "full recomputation covers every layer", "1"},
    Unsupported{"recompute_modules", "selective recomputation covers the attention core", "core_attn"},
    Unsupported{"activations_checkpoint_method", "full recomputation covers every layer", "uniform"},
    Unsupported{"activations_checkpoint_num_layers", "full recomputation covers every layer", "1"},
    Unsupported{"distribute_saved_activations", "saved activations are not split over tensor ranks"},
    Unsupported{"rampup_batch_size", "the batch has its full size from the first step on"},
    Unsupported{"disable_tp_comm_bulk_dgrad", "gradients of column-parallel inputs overlap the gather of these inputs"},
    Unsupported{"disable_tp_comm_bulk_wgrad",
                "gradients of column-parallel weights overlap the inputs' reduce-scatter"},
    Unsupported{"delay_wgrad_compute", "gradients of weights are computed together with those of inputs"},
    Unsupported{"enable_cuda_graph", "kernels are launched one by one; --launch graph puts them into a graph"},
    Unsupported{"external_cuda_graph", "kernels are launched one by one; --launch graph puts them into a graph"},
    Unsupported{"cuda_graph_impl", "kernels are launched one by one; --launch graph puts them into a graph"},
    Unsupported{"variable_seq_lengths", "all sequences have the same length"},
    Unsupported{"ffn_dropout", "an MLP has no dropout between its GEMMs", "0 0.0"},
    Unsupported{"peft", "all weights are trained"},
    Unsupported{"trainer.accumulate_grad_batches", "micro-batches follow from the batch", "1"},
    Unsupported{"use_cpu_optimizer", activations_on_gpu}};

constexpr std::array irrelevant_flags{
    Irrelevant{"files that are saved and loaded",
               "save save_* load load_* ckpt_* checkpoint checkpoint_* dist_ckpt_* async_save auto_detect_ckpt_format "
               "use_dist_ckpt* use_checkpoint_* use_mp_args_from_checkpoint_args use_persistent_ckpt_worker "
               "non_persistent_* no_load_* no_save_* pretrained_checkpoint finetune exit_* fully_parallel_* "
               "most_recent_k strict_fsdp_dtensor_load replication* hetereogenous_dist_checkpoint no_ckpt_* "
               "no_initialization perform_initialization restore_* resume_* hf_model_id* convert_*"},
    Irrelevant{
        "logging, timers and checks",
        "log_* logging_* no_log_* tensorboard* wandb* timing_log_* mlflow* comet_* profile* use_pytorch_profiler "
        "nsys_profile* record_memory_history memory_profile* memory_snapshot_path barrier_with_L1_time timers "
        "one_logger* enable_one_logger app_tag* straggler* check_for_* no_check_* rerun_* error_injection_* "
        "moe_per_layer_logging config_logger_dir manual_gc* empty_unused_memory_level test_mode apex_* "
        "disable_straggler* inprocess_* check_weight_hash*"},
    Irrelevant{"data and tokens",
               "data data_path *_data_path data_args_path per_split_data_args_path split data_cache_path mock_data "
               "data_parallel_random_init tokenizer tokenizer_* vocab_file merge_file vocab_extra_ids num_workers "
               "dataloader_type reset_position_ids reset_attention_mask eod_mask_loss mmap_bin_files no_mmap* "
               "no_create_attention_mask_in_dataloader create_attention_mask* num_dataset_builder_threads tiktoken_* "
               "legacy_tokenizer s3_cache_path object_storage_cache_path data_sharding should_pad_vocab "
               "calculate_per_token_loss is_instruction_dataset"},
    Irrelevant{
        "training hyperparameters",
        "lr lr_* min_lr *_lr weight_decay* start_weight_decay end_weight_decay decoupled_* clip_grad "
        "adam_* sgd_momentum muon_* init_method* embedding_init* output_layer_init_method seed "
        "train_* skip_train loss_scale* initial_loss_scale min_loss_scale hysteresis "
        "eval_* override_opt_param_scheduler use_cpu_initialization init_model_with_meta_device moe_aux_loss_coeff "
        "moe_z_loss_coeff moe_input_jitter_eps rng_* te_rng_tracker use_te_rng_tracker native_amp_* optim "
        "decrease_batch_size_if_needed mtp_loss_scaling_factor mtp_enabled iterations_to_skip *_seed "
        "log_num_zeros_in_grad test_* use_legacy_* no_weight_decay_cond_type mup_*"},
    Irrelevant{
        "positions, which do not change the work",
        "rotary_* rope_* no_rope_freq scale_factor high_freq_factor low_freq_factor old_context_len "
        "seq_len_interpolation_factor original_max_position_embeddings mscale* beta_fast beta_slow mrope_section "
        "use_rope_scaling no_rope_* add_position_embedding apply_rope_fusion fused_single_qkv_rope"},
    Irrelevant{"scales, caps, norms and activations without GEMMs",
               "activation_func* apply_query_key_layer_scaling no_query_key_layer_scaling attention_softmax_in_fp32 "
               "apply_layernorm_1p layernorm_* norm_epsilon qk_layernorm qk_l2_norm qk_clip* softmax_* squared_relu "
               "glu_linear_offset openai_gelu headscale normalize_attention_scores fp32_residual_connection "
               "fp16_lm_cross_entropy apply_residual_connection_post_layernorm memory_efficient_layer_norm "
               "disable_bf16_reduced_precision_matmul onnx_safe quick_geglu"},
    Irrelevant{"choice of kernels, whose times are in the machine's table",
               "*_fusion no_*_fusion use_mcore_models "
               "use_fused_* use_kitchen* cross_entropy_fusion_impl no_persist_layer_norm persist_layer_norm spec "
               "transformer_layer_spec use_transformer_engine* transformer_engine mcore_gpt moe_grouped_gemm "
               "moe_use_legacy_grouped_gemm use_te_* use_emha deterministic_mode batch_invariant_mode flash_decode "
               "transformer_block_type openai_* name cuda_graph_* use_mamba_mem_eff_path mla_down_proj_fusion "
               "gradient_accumulation_fusion grad_div_ar_fusion gradient_as_bucket_view persistent_* "
               "disable_parameter_transpose_cache symmetric_ar_type nccl_all_reduce_for_prefill disable_jit_fuser "
               "fused_residual_rmsnorm kitchen_* "
               "use_inference_optimized_layers"},
    Irrelevant{"routing to experts, because all experts receive the same number of tokens",
               "moe_router_* moe_apply_probs_on_input moe_token_* moe_enable_deepep moe_deepep_num_sms "
               "moe_flex_dispatcher_backend moe_hybridep_num_sms moe_extended_tp moe_layer_recompute "
               "moe_enable_routing_replay moe_shared_expert_gate moe_pad_experts_for_cuda_graph_inference "
               "moe_permute_padding_for_fp8"},
    Irrelevant{
        "sizes of parts that another, listed key switches on",
        "q_lora_rank kv_lora_rank qk_head_dim qk_pos_emb_head_dim v_head_dim cache_mla_latents mamba_* "
        "linear_conv_* linear_key_* linear_num_* linear_value_* dsa_* mtp_* use_repeated_layer "
        "cpu_offloading_* ep_overlap_* offload_modules min_offloaded_tensor_size optimizer_offload_fraction pin_cpu_* "
        "use_torch_optimizer_for_cpu_offload overlap_cpu_optimizer_d2h_h2d fp4_* quant_recipe"},
    Irrelevant{"scales of 8-bit and 16-bit numbers",
               "fp8_amax_* fp8_margin fp8_interval fp8_wgrad fp8_recipe fp8_quantizer_factory fp8_e4m3 fp8_hybrid "
               "num_layers_at_end_in_bf16 num_layers_at_start_in_bf16 tp_only_amax_red params_dtype pipeline_dtype "
               "autocast_dtype enable_autocast autocast_enabled megatron_amp_O2 exp_avg_dtype exp_avg_sq_dtype "
               "main_grads_dtype main_params_dtype store_param_remainders fp32 reuse_grad_buf_for_mxfp8_param_ag "
               "keep_fp8_transpose_cache reduce_amax fp8_activation_input_store"},
    Irrelevant{
        "buckets and buffers, because weights and gradients are exchanged layer by layer",
        "bucket_size ddp_* align_grad_reduce align_param_gather no_align_* overlap_param_gather "
        "overlap_param_gather_with_optimizer_step average_in_collective gradient_reduce_div_fusion nccl_ub "
        "fsdp_* preserve_fp32_weights suggested_communication_unit_size pad_buckets_* grad_allreduce_chunk_size_mb "
        "disable_symmetric_registration accumulate_grads_in_fp32 "
        "megatron_fsdp_* param_name_patterns_* reduce_scatter_with_fp32_accumulation main_grads"},
    Irrelevant{
        "overlap of tensor ranks and stages, which --overlap and --tp-comm-overlap choose",
        "tp_comm_* ub_tp_comm_* disable_tp_comm_* overlap_p2p_comm* no_overlap_p2p* batch_p2p_* use_ring_exchange_p2p "
        "defer_embedding_wgrad_compute wgrad_deferral_limit async_tensor_model_parallel_allreduce "
        "no_async_tensor_model_parallel_allreduce deallocate_pipeline_outputs microbatch_group_size_per_vp_stage "
        "scatter_embedding_sequence_parallel clone_scatter_output_in_embedding parallel_output "
        "num_microbatches_with_partial_activation_checkpoints scatter_gather_tensors_in_pipeline "
        "pipeline_model_parallel_comm_backend"},
    Irrelevant{
        "hosts and launchers",
        "master_addr master_port node_rank rdzv* rdzv_* distributed_* local_rank local_addr nodes ntasks* gpus_per_* "
        "cpus_per_* gpus account partition job_name time container_* mem exclusive gres output error mpi export "
        "no_container* unbuffered label kill_on_bad_exit rm ipc net network ulimit shm_size volume parents tee "
        "log_dir redirects module no_python max_restarts role standalone start_method monitor_interval user "
        "use_gloo_process_groups disable_gloo* lazy_* external_gpu_device_mapping use_tp_pp_dp_mapping "
        "high_priority_stream_groups nccl_* sharp_enabled_group enable_megatron_core_experimental enable_experimental "
        "enable_gloo* use_decentralized_pg "
        "flight_recorder_* nodelist cpu_bind hostfile host signal open_mode requeue wait help version"},
    Irrelevant{"inference and generation",
               "inference_* generation_config mlp_chunks_for_prefill max_seqlen_per_dp_cp_rank max_tokens_to_oom"},
    Irrelevant{"Python objects in the file",
               "_target_ _call_ _args_ _partial_ grad_scale_func grad_sync_func param_sync_func no_sync_func "
               "finalize_model_grads_func pre_process post_process attention_type share_token_embeddings "
               "share_decoder_tokens_head_embeddings"}};

/// Flags of other programs that look like misspelled flags of Megatron-LM.
constexpr std::array<std::string_view, 1> look_alikes{"--nodes"};

}  // namespace

std::vector<std::string_view> read_flags() {
  std::vector<std::string_view> flags(switches.begin(), switches.end());
  flags.insert(flags.end(), valued.begin(), valued.end());
  return flags;
}

bool is_switch(std::string_view flag) { return std::ranges::find(switches, flag) != switches.end(); }

bool takes_no_value(std::string_view flag) {
  return is_switch(flag) || std::ranges::find(switches_not_read, flag) != switches_not_read.end();
}

bool is_read(std::string_view flag) { return is_switch(flag) || std::ranges::find(valued, flag) != valued.end(); }

std::string key_of(std::string_view flag) {
  std::string key(flag.substr(flag.starts_with("--") ? 2 : 0));
  std::ranges::replace(key, '-', '_');
  return key;
}

std::string flag_of(std::string_view key) {
  std::string flag = "--" + std::string(key);
  std::ranges::replace(flag, '_', '-');
  return flag;
}

KeyLists megatron_keys() { return {irrelevant_flags, unsupported_flags}; }

std::optional<std::string_view> misspelled(std::string_view flag) {
  constexpr std::size_t max_length = 64;
  if (flag.size() > max_length || is_read(flag) || std::ranges::find(look_alikes, flag) != look_alikes.end() ||
      find_unsupported(unsupported_flags, key_of(flag)) != nullptr) {
    return std::nullopt;
  }
  const std::string dashed = flag_of(key_of(flag));
  const auto is_near = [&](std::string_view supported) {
    return supported.size() <= dashed.size() + 1 && dashed.size() <= supported.size() + 1 &&
           edit_distance(dashed, supported) <= 1;
  };
  const std::vector<std::string_view> supported_flags = read_flags();
  const auto meant = std::ranges::find_if(supported_flags, is_near);
  return meant == supported_flags.end() ? std::nullopt : std::optional(*meant);
}

}  // namespace commfuse::import
