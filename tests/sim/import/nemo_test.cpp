// SPDX-License-Identifier: Apache-2.0
// Tests that YAML of NeMo and Megatron-Bridge becomes the same model and step as Megatron-LM's flags of the same names.
#include "sim/import/nemo.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <string>
#include <vector>

#include "model/config_error.h"
#include "sim/import/key_lists.h"
#include "sim/import/megatron.h"
#include "sim/import/megatron_flags.h"
#include "tests/own_folder.h"
#include "tests/sim/message_of.h"

namespace commfuse::import {
namespace {

/// Written like NeMo's megatron_gpt_config.yaml.
const std::string nemo = R"(name: megatron_gpt
trainer:
  devices: 8
  num_nodes: 2
  precision: bf16-mixed
  accelerator: gpu
exp_manager:
  explicit_log_dir: null
  size: ${multiply:${model.tensor_model_parallel_size}, 2}
model:
  micro_batch_size: 2
  global_batch_size: 64
  tensor_model_parallel_size: 8
  pipeline_model_parallel_size: 1
  sequence_parallel: True
  encoder_seq_length: 2048
  max_position_embeddings: ${.encoder_seq_length}
  num_layers: 24
  hidden_size: 4096
  ffn_hidden_size: 16384
  num_attention_heads: 32
  kv_channels: null
  activations_checkpoint_granularity: selective
  ub_tp_comm_overlap: False
  tokenizer: {library: megatron, model: null}
  data:
    data_prefix: ???
    seq_length: ${model.encoder_seq_length}
  optim: {name: distributed_fused_adam, lr: 2e-4, sched: {name: CosineAnnealing}}
)";

Imported read(const std::string& text, const std::vector<std::string>& words = {}, const std::string& gpus = "") {
  std::ofstream("a.yaml") << text;
  Source source{"a.yaml", "a"};
  source.options.set("OVERRIDES", words);
  if (!gpus.empty()) {
    source.options.set("--gpus", {gpus});
  }
  return read_nemo(source);
}

std::string nemo_refusal(const std::string& text, const std::vector<std::string>& words = {}) {
  return test::message_of([&] { read(text, words); });
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

/// Returns a file without its first line, which names its source.
std::string body(const std::string& text) { return text.substr(text.find('\n')); }

TEST(Nemo, KeysMeanTheSameAsMegatronsFlags) {
  const OwnFolder folder;
  const Imported import = read(nemo);
  const Imported from_flags = read_megatron(
      "torchrun --nproc-per-node 8 --nnodes 2 x --micro-batch-size 2 --global-batch-size 64 "
      "--tensor-model-parallel-size 8 --sequence-parallel --seq-length 2048 --max-position-embeddings 2048 "
      "--num-layers 24 --hidden-size 4096 --ffn-hidden-size 16384 --num-attention-heads 32 "
      "--recompute-granularity selective --use-distributed-optimizer --bf16 --overlap-grad-reduce",
      "a.sh", "a");
  EXPECT_EQ(run_text(import).substr(0, run_text(import).find('\n')), "# From a NeMo configuration.");
  EXPECT_EQ(body(run_text(import)), body(run_text(from_flags)));
  EXPECT_EQ(body(import.model), body(from_flags.model));
  EXPECT_EQ(gpus_of(import.step), 16);
  EXPECT_EQ(import.notes,
            (std::vector<std::string>{
                "vocab_size is missing, because the tokenizer defines it: 50257, as in GPT-2, is assumed"}));
}

/// Written like Megatron-Bridge's files, without redundant keys.
const std::string bridge = R"(_target_: megatron.bridge.training.config.ConfigContainer
checkpoint: {_target_: x, save: /tmp, save_interval: 500}
comm_overlap: null
dataset: {_target_: x, sequence_length: 1024, data_parallel_size: 1}
ddp: {_target_: x, use_distributed_optimizer: true, overlap_grad_reduce: true, data_parallel_sharding_strategy: no_shard}
mixed_precision: {_target_: x, bf16: true, fp8: hybrid, fp8_recipe: tensorwise}
model:
  _target_: megatron.bridge.models.llama.llama_provider.Llama31ModelProvider
  activation_func: {_call_: false, _target_: torch.nn.functional.silu}
  add_bias_linear: false
  fp8: null
  gated_linear_unit: true
  hidden_size: 2048
  ffn_hidden_size: 8192
  num_attention_heads: 32
  num_query_groups: 8
  kv_channels: 64
  num_layers: 16
  num_moe_experts: null
  moe_layer_freq: 1
  mtp_num_layers: null
  normalization: RMSNorm
  position_embedding_type: rope
  seq_length: 131072
  share_embeddings_and_output_weights: true
  should_pad_vocab: false
  tensor_model_parallel_size: 2
  tp_comm_overlap: true
  vocab_size: 128256
optimizer: {_target_: x, optimizer: adam, use_distributed_optimizer: true, lr: 0.0003}
train: {_target_: x, global_batch_size: 512, micro_batch_size: 1, train_iters: 10}
)";

TEST(Nemo, ARunOfMegatronBridgeBecomesItsModelAndStep) {
  const OwnFolder folder;
  const Imported import = read(bridge, {}, "16");
  EXPECT_EQ(body(import.model),
            "\nschema: commfuse.model/1\nname: a\nlayers: 16\nhidden: 2048\nffn: 8192\nheads: 32\nkv_heads: 8\n"
            "head_dim: 64\nvocab: 128256\ngated_mlp: true\nnorm: rms\nbiases: false\ntied_embeddings: true\n");
  EXPECT_EQ(body(run_text(import)),
            "\nschema: commfuse.run/1\nscope: step\nframework: megatron-bridge\nranks: 2\nseq: 1024\nbatch: "
            "512\ndtype: fp8\nattention_kernel: fused\nparallel:\n"
            "  sequence_parallel: off\n  pipeline: 1\n  interleave: 1\n  data: 8\n  context: 1\n  experts: 1\n"
            "  zero: 1\nstep:\n  micro_batch: 1\n  recompute: none\n  dropout: on\n"
            "  gradient_dtype: fp32\n  overlap_gradients: on\n");
  ASSERT_EQ(import.notes.size(), 1U);
  EXPECT_EQ(import.notes[0], "model.seq_length is '131072', and dataset.sequence_length is '1024': the latter is used");
}

TEST(Nemo, ListsOfContextExchangesHaveTheirFirstValue) {
  const OwnFolder folder;
  const auto with_context = [](const std::string& keys) {
    return read(replaced(nemo, "  num_layers: 24\n", "  num_layers: 24\n  context_parallel_size: 8\n" + keys), {},
                "64");
  };
  const auto has_note = [](const Imported& import) {
    return std::ranges::find(import.notes, "model.cp_comm_type differs between layers: 'p2p' is assumed for all") !=
           import.notes.end();
  };
  const Imported levels = with_context("  cp_comm_type: a2a+p2p\n  hierarchical_context_parallel_sizes: [2, 4]\n");
  EXPECT_EQ(levels.step.ulysses, 2);
  EXPECT_EQ(levels.step.context, 4);
  const Imported equal = with_context("  cp_comm_type: [p2p, p2p]\n");
  EXPECT_EQ(equal.step.context_exchange, ContextExchange::ring);
  EXPECT_FALSE(has_note(equal));
  EXPECT_TRUE(has_note(with_context("  cp_comm_type: [p2p, all_gather]\n")));
}

TEST(Nemo, CommandLineOverridesChangeKeys) {
  const OwnFolder folder;
  const Imported import = read(nemo, {"model.num_layers=48", "++model.vocab_size=1024", "~model.sequence_parallel",
                                      "trainer.precision='16-mixed'"});
  EXPECT_NE(import.model.find("\nlayers: 48\n"), std::string::npos);
  EXPECT_NE(import.model.find("\nvocab: 1024\n"), std::string::npos);
  EXPECT_NE(run_text(import).find("sequence_parallel: off"), std::string::npos);
  EXPECT_NE(run_text(import).find("dtype: fp16"), std::string::npos);
  EXPECT_EQ(nemo_refusal(nemo, {"model.num_layers=-2"}),
            "'model.num_layers=-2': model.num_layers is '-2'; write a whole number of at least 1");
  EXPECT_EQ(nemo_refusal(nemo, {"layers"}), "'layers' changes no key; write one, as in model.num_layers=2");
}

TEST(Nemo, SwitchesAndPrecisionsMayReferToOtherKeys) {
  const OwnFolder folder;
  const Imported import = read(nemo + "  precision: ${trainer.precision}\n  seq_length: ${.encoder_seq_length}\n",
                               {"model.vocab_size=1024", "my.switch=True", "model.sequence_parallel=${my.switch}"});
  EXPECT_EQ(body(run_text(import)), body(run_text(read(nemo, {"model.vocab_size=1024"}))));
  EXPECT_EQ(import.notes, std::vector<std::string>{"unknown and ignored: 'my.switch'"});
  EXPECT_EQ(nemo_refusal(nemo, {"model.fp8=${oc.env:FP8}"}),
            "'model.fp8=${oc.env:FP8}': model.fp8 is '${oc.env:FP8}', whose value this file does not set; write the "
            "value instead");
}

TEST(Nemo, TheDdpSectionSetsTheReductionOfGradients) {
  const OwnFolder folder;
  const auto step = [](const std::string& words) {
    return read(replaced(bridge, "overlap_grad_reduce: true", words), {}, "16").step;
  };
  EXPECT_FALSE(step("overlap_grad_reduce: false").overlap_gradients);
  EXPECT_TRUE(step("overlap_grad_reduce: null").overlap_gradients);
  EXPECT_EQ(step("grad_reduce_in_fp32: false").gradient_dtype, "bf16");
  EXPECT_EQ(step("grad_reduce_in_fp32: true").gradient_dtype, "fp32");
  const std::string own_dtype = replaced(bridge, "overlap_grad_reduce: true", "grad_reduce_in_fp32: false");
  const std::string fp32_weights = replaced(own_dtype, ", bf16: true, fp8: hybrid, fp8_recipe: tensorwise", "");
  EXPECT_EQ(read(fp32_weights, {}, "16").step.gradient_dtype, "fp32");
  EXPECT_FALSE(read(replaced(bridge, "  fp8: null", "  hidden_dropout: 0.0"), {}, "16").step.dropout);
}

TEST(Nemo, UnreadKeysAreNamed) {
  const OwnFolder folder;
  const Imported import = read(nemo +
                               "  multi_latent_attention: true\n  pipeline_model_parallel_sise: 1\n"
                               "  expert_model_parallel_sizes: 2\n  my_key: 3\n  rotary_percentage: 0.5\n");
  ASSERT_EQ(import.notes.size(), 4U);
  EXPECT_EQ(import.notes[1],
            "a.yaml:32:32: 'model.expert_model_parallel_sizes' is unknown and ignored; did you mean "
            "'model.expert_model_parallel_size'?");
  EXPECT_EQ(import.notes[2],
            "a.yaml:30:27: 'model.multi_latent_attention' = 'true' has no counterpart and is ignored: attention has "
            "the heads of --num-attention-heads");
  EXPECT_EQ(import.notes[3], "unknown and ignored: 'model.my_key', 'model.pipeline_model_parallel_sise'");
}

TEST(Nemo, MistakesAreReportedWithTheirPlace) {
  const OwnFolder folder;
  EXPECT_EQ(nemo_refusal(replaced(nemo, "num_layers: 24", "num_layers: 24.0")),
            "a.yaml:18:15: model.num_layers is '24.0'; write a whole number of at least 1");
  EXPECT_EQ(nemo_refusal(replaced(nemo, "num_layers: 24", "num_layers: ${oc.env:LAYERS}")),
            "a.yaml:18:15: model.num_layers is '${oc.env:LAYERS}', whose value this file does not set; write the "
            "value instead");
  EXPECT_EQ(nemo_refusal(replaced(nemo, "num_layers: 24", "num_layers: ${model.num_layers}")),
            "a.yaml:18:15: model.num_layers is '${model.num_layers}', whose value this file does not set; write the "
            "value instead");
  EXPECT_EQ(nemo_refusal(replaced(nemo, "sequence_parallel: True", "sequence_parallel: 1")),
            "a.yaml:15:22: model.sequence_parallel is '1'; write true or false");
  EXPECT_EQ(nemo_refusal(replaced(nemo, "precision: bf16-mixed", "precision: 12")),
            "a.yaml:5:14: trainer.precision is '12'; write bf16-mixed, 16-mixed or 32");
  EXPECT_EQ(nemo_refusal(replaced(nemo, "num_layers: 24", "num_layers: [24]")),
            "a.yaml:18:15: model.num_layers is a list or a map; write one value");
  EXPECT_EQ(
      nemo_refusal(replaced(nemo, "  hidden_size: 4096", "  hiden_size: 4096")),
      "a.yaml:19:15: model.hiden_size is not a key of NeMo, and model.hidden_size is missing; correct the spelling");
}

TEST(Nemo, RecipesInPythonAreRefusedWithTheRemedy) {
  const OwnFolder folder;
  EXPECT_THROW(read_nemo(Source{"llama3.py", "a"}), ConfigError);
  EXPECT_EQ(
      nemo_refusal("train: {micro_batch_size: 1}\n"),
      "a.yaml: model.hidden_size is missing; recipes of Megatron-Bridge are Python, which is not supported: give the "
      "run_config.yaml that a run saves, or add the key");
}

TEST(Nemo, OptimizerKeysThatChangeTrafficAreReported) {
  const OwnFolder folder;
  const auto notes = [](const std::string& key) {
    return read(nemo, {"model.vocab_size=1024", "model.optim." + key}).notes;
  };
  EXPECT_EQ(
      notes("overlap_grad_sync=False"),
      std::vector<std::string>{"'model.optim.overlap_grad_sync=False': 'model.optim.overlap_grad_sync' = 'False' has "
                               "no counterpart and is ignored: gradients are reduced during the backward pass"});
  EXPECT_EQ(notes("overlap_grad_sync=True"), std::vector<std::string>{});
  EXPECT_EQ(notes("grad_sync_dtype=bf16").size(), 1U);
  EXPECT_EQ(notes("grad_sync_dtype=fp32"), std::vector<std::string>{});
  EXPECT_EQ(notes("overlap_param_sync=True").size(), 1U);
  EXPECT_EQ(notes("betas=1"), std::vector<std::string>{});
  EXPECT_EQ(notes("mystery=1"), std::vector<std::string>{"unknown and ignored: 'model.optim.mystery'"});
}

TEST(Nemo, KeysThatRestrictOverlapAreReportedWhereItIsOn) {
  const OwnFolder folder;
  const auto notes = [](const std::string& key, const char* overlap = "True") {
    return read(nemo, {"model.vocab_size=1024", std::string("model.ub_tp_comm_overlap=") + overlap, "model." + key})
        .notes;
  };
  const std::vector<std::string> none;
  const std::string all_forward = "megatron-bridge overlaps every GEMM of a forward pass where that saves time";
  EXPECT_EQ(notes("tp_comm_overlap_ag=False"),
            std::vector<std::string>{"'model.tp_comm_overlap_ag=False': 'model.tp_comm_overlap_ag' = 'False' has no "
                                     "counterpart and is ignored: " +
                                     all_forward});
  for (const char* key :
       {"tp_comm_overlap_rs", "tp_comm_split_ag", "tp_comm_split_rs", "tp_comm_bulk_dgrad", "tp_comm_bulk_wgrad"}) {
    EXPECT_EQ(notes(std::string(key) + "=False").size(), 1U) << key;
    EXPECT_EQ(notes(std::string(key) + "=True"), none) << key;
    EXPECT_EQ(notes(std::string(key) + "=False", "False"), none) << key;
  }
  for (const char* key : {"tp_comm_overlap_disable_qkv", "tp_comm_overlap_disable_fc1", "tp_comm_overlap_rs_dgrad"}) {
    EXPECT_EQ(notes(std::string(key) + "=True").size(), 1U) << key;
    EXPECT_EQ(notes(std::string(key) + "=False"), none) << key;
  }
  EXPECT_EQ(notes("tp_comm_overlap_cfg=cfg.yaml"),
            std::vector<std::string>{"'model.tp_comm_overlap_cfg=cfg.yaml': the methods of 'tp_comm_overlap_cfg' are "
                                     "not used: " +
                                     all_forward});
  EXPECT_EQ(notes("tp_comm_bootstrap_backend=nccl"), none);
}

TEST(Nemo, EverySkippedKeyIsReported) {
  const OwnFolder folder;
  for (const Unsupported& entry : megatron_keys().unsupported) {
    std::string key = entry.key.starts_with("trainer.") ? std::string(entry.key) : "model." + std::string(entry.key);
    std::ranges::replace(key, '*', 'x');
    const std::vector<std::string> notes =
        read(nemo, {"model.vocab_size=1024", "model.num_moe_experts=8", key + "=other"}).notes;
    ASSERT_EQ(notes.size(), 1U) << key;
    EXPECT_TRUE(
        notes[0].ends_with("'" + key + "' = 'other' has no counterpart and is ignored: " + std::string(entry.instead)))
        << notes[0];
  }
}

TEST(Nemo, RefusesGpuCountsWithoutWholeReplicas) {
  const OwnFolder folder;
  try {
    read(nemo, {}, "30");
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_STREQ(error.what(),
                 "command line: --gpus is 30, not a multiple of the 8 GPUs of a replica; choose a multiple");
  }
}

}  // namespace
}  // namespace commfuse::import
