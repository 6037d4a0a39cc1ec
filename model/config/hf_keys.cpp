// SPDX-License-Identifier: Apache-2.0
#include "model/config/hf_keys.h"

#include <algorithm>
#include <array>

namespace commfuse {

namespace {

/// Keys, separated by spaces, with their common reason.
struct Irrelevant {
  std::string_view why;
  std::string_view keys;
};

constexpr std::array irrelevant{
    Irrelevant{"authorship and library of the file",
               " _attn_implementation _attn_implementation_autoset _attn_implementation_internal _name_or_path "
               "architecture architectures attn_implementation auto_map dtype flash_attn format_version fused_mlp "
               "hidden_act_function is_llama_config kernel_config library_name model_name model_type mup "
               "name_or_path output_attentions output_hidden_states output_scores return_dict "
               "return_dict_in_generate sglang tf_legacy_loss torch_compile torch_dtype torchscript "
               "transformers_version use_bfloat16 use_cuda_graph use_flash_attn use_fused_rms_norm use_kernels "
               "use_mamba_kernels use_return_dict version "},
    Irrelevant{"tokens: ids, strings and sampling",
               " add_cross_attention bad_words_ids begin_suppress_tokens bos_id chat_template chunk_size_feed_forward "
               "cross_attention_hidden_size diversity_penalty do_sample early_stopping encoder_no_repeat_ngram_size "
               "eos_id exponential_decay_length_penalty finetuning_task generation_config id2label ignore_index "
               "im_end_id im_start_id is_decoder is_encoder_decoder label2id length_penalty logits_to_keep "
               "max_length max_new_tokens min_length no_repeat_ngram_size num_beam_groups num_beams num_labels "
               "num_logits_to_keep num_return_sequences pad_id prefix problem_type pruned_heads "
               "remove_invalid_values repetition_penalty stop_words suppress_tokens task_specific_params temperature "
               "tie_encoder_decoder tokenizer_class tokenizer_config top_k top_p typical_p video_placeholder "
               "vocab_file "},
    Irrelevant{"how it was trained",
               " attention_dropout attention_probs_dropout_prob attn_pdrop aux_loss_alpha classifier_dropout dropout "
               "embd_pdrop ep_size freeze_router gradient_checkpointing hidden_dropout hidden_dropout_prob "
               "init_method init_std initializer_cutoff_factor initializer_range input_jitter_noise layerdrop "
               "load_balancing_loss mamba_dt_init_floor mamba_dt_max mamba_dt_min mlp_dropout moe_aux_loss_coeff "
               "moe_shared_expert_overlap output_router_logits pretraining_tp recompute_granularity "
               "recompute_modules reorder_and_upcast_attn rescale_prenorm_residual resid_pdrop router_aux_loss_coef "
               "router_dropout router_jitter_noise router_loss router_norm_expert_weights router_z_loss_coef "
               "scale_attn_by_inverse_layer_idx seq_aux sequence_parallel tensor_parallel_degree time_step_floor "
               "time_step_limit time_step_max time_step_min token_dropout use_cache use_recompute "},
    Irrelevant{"positions, which do not change the work",
               " alibi compression_ratio freq_allocation global_rope_theta indexer_rope_interleave "
               "initial_context_length local_rope_theta max_position_embeddings max_seq_len max_sequence_length "
               "model_max_length mrope_interleaved mla_use_nope mrope_section no_rope_layers_interval "
               "original_max_position_embeddings partial_rotary_factor partial_rotary_factors "
               "position_embedding_type rope_factor rope_interleave rope_local_base_freq rope_parameters rope_pct "
               "rope_ratio rope_scaling rope_theta rope_theta_local rope_type rotary rotary_base rotary_dim "
               "rotary_emb_base rotary_emb_fraction rotary_interleaved rotary_pct rotary_percent seq_len seq_length "
               "swa_rope_theta use_dynamic_ntk use_logn_attn use_mrope use_rope use_rotary_position_embeddings "},
    Irrelevant{"scales, caps and signs that need no GEMM",
               " activation activation_function apply_query_key_layer_scaling "
               "apply_residual_connection_post_layernorm attention_in_multiplier attention_multiplier "
               "attention_out_bias attention_out_multiplier attention_scale attention_softmax_in_fp32 "
               "attention_value_scale attn_logit_softcapping attn_scale attn_temperature_tuning cache_implementation "
               "clip_qkv dim_model_base do_layer_norm_before embedding_multiplier embedding_scale expand "
               "final_logit_softcapping floor_scale fp32_residual_connection hidden_act hidden_activation "
               "hidden_size_per_layer_input_scale key_multiplier layer_norm_elementwise_affine layer_norm_eps "
               "layer_norm_epsilon layernorm_epsilon lm_head_multiplier logit_scale logits_scaling mamba_conv_bias "
               "mamba_expand mamba_hidden_act mamba_norm_before_gate mamba_proj_bias mamba_rms_norm "
               "mlp_hidden_act mlp_multipliers moe_renormalize "
               "moe_router_activation_func moe_router_num_groups moe_router_score_function "
               "moe_router_topk_scaling_factor moe_router_use_sigmoid n_group norm_eps norm_epsilon norm_topk_prob "
               "norm_type normalization_type num_expert_group output_gate_type post_layer_norm "
               "query_pre_attn_scalar residual_in_fp32 residual_multiplier residual_scale rms_norm_eps rmsnorm "
               "route_scale routed_scaling_factor router_scaling_factor scale_attn_weights scale_depth scale_emb "
               "scale_width score_func score_function scoring_func ssm_in_multiplier ssm_multipliers "
               "ssm_out_multiplier swiglu_limit time_step_rank topk_group topk_method use_conv_bias use_grouped_topk "
               "use_moe_bias_scale "}};

/// Ends of keys about tokens, and beginnings of keys of vision and audio towers.
constexpr std::array<std::string_view, 5> token_ends{"_token_id", "_token_index", "_token_ids", "_token", "_tokens"};
constexpr std::array<std::string_view, 7> sense_begins{"vision", "image_", "video_",    "audio",
                                                       "media_", "mm_",    "projector_"};

bool begins(std::string_view key, std::string_view with) { return key.substr(0, with.size()) == with; }

}  // namespace

std::string_view why_irrelevant(std::string_view key) {
  const std::string word = " " + std::string(key) + " ";
  for (const Irrelevant& group : irrelevant) {
    if (group.keys.find(word) != std::string_view::npos) {
      return group.why;
    }
  }
  if (std::any_of(token_ends.begin(), token_ends.end(), [&](std::string_view end) { return key.ends_with(end); })) {
    return "tokens: ids, strings and sampling";
  }
  return "";
}

bool is_tower_key(std::string_view key) {
  return std::any_of(sense_begins.begin(), sense_begins.end(),
                     [&](std::string_view with) { return begins(key, with); }) ||
         key == "use_unified_vision_chunk" || key == "talker_config" || key == "code2wav_config";
}

}  // namespace commfuse
