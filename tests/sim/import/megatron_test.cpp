// SPDX-License-Identifier: Apache-2.0
// Tests that launch scripts of Megatron-LM become models and steps, without being run.
#include "sim/import/megatron.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include "model/config/catalogue.h"
#include "model/config/framework.h"
#include "model/config/implementation.h"
#include "model/config/overlap_keys.h"
#include "model/config/resolver.h"
#include "model/config_error.h"
#include "sim/import/key_lists.h"
#include "sim/import/megatron_flags.h"
#include "sim/import/shell_words.h"
#include "tests/own_folder.h"
#include "tests/sim/message_of.h"

namespace commfuse::import {
namespace {

/// Written like examples/gpt3/train_gpt3_175b_distributed.sh of Megatron-LM.
const std::string gpt3 = R"(#!/bin/bash
# Runs the "175B" parameter model --num-layers 1
export CUDA_DEVICE_MAX_CONNECTIONS=1
GPUS_PER_NODE=8
NUM_NODES=${NUM_NODES:-16}
CHECKPOINT_PATH=$1 #<Specify path>

DISTRIBUTED_ARGS=(
    --nproc_per_node $GPUS_PER_NODE
    --nnodes $NUM_NODES
    --master_addr $MASTER_ADDR
)
GPT_MODEL_ARGS=(
    --num-layers 96
    --hidden-size 12288
    --num-attention-heads 96
    --seq-length 2048
    --max-position-embeddings 2048
    --attention-backend auto # Can use (flash/fused/unfused/local)
)
TRAINING_ARGS=(
    --micro-batch-size 1
    --global-batch-size 1536
    --bf16
)
MODEL_PARALLEL_ARGS=(
	--tensor-model-parallel-size 8
	--pipeline-model-parallel-size 16
)
torchrun ${DISTRIBUTED_ARGS[@]} pretrain_gpt.py \
    ${GPT_MODEL_ARGS[@]} \
    ${TRAINING_ARGS[@]} --load $CHECKPOINT_PATH
)";

const std::string llama =
    "torchrun --nproc-per-node=8 pretrain_gpt.py --num-layers 32 --hidden-size 4096 --ffn-hidden-size 14336 "
    "--num-attention-heads 32 --group-query-attention --num-query-groups 8 --seq-length 8192 --swiglu "
    "--normalization RMSNorm --position-embedding-type rope --disable-bias-linear --vocab-size 128256 "
    "--untie-embeddings-and-output-weights --tensor-model-parallel-size 4 --sequence-parallel --tp-comm-overlap "
    "--tp-comm-overlap-cfg cfg.yaml --use-distributed-optimizer --overlap-grad-reduce --recompute-activations --bf16 "
    "--global-batch-size 64";

std::string megatron_refusal(const std::string& text) {
  return test::message_of([&] { read_megatron(text, "a.sh", "a"); });
}

/// Returns a command line with all sizes that a model needs, and additional flags.
std::string small(const std::string& flags) {
  return "x --num-layers 2 --hidden-size 1024 --num-attention-heads 8 --seq-length 1024 "
         "--max-position-embeddings 1024 --vocab-size 1024 " +
         flags;
}

TEST(Megatron, AnExampleScriptBecomesItsModelAndStep) {
  const Imported import = read_megatron(gpt3, "gpt3.sh", "gpt3");
  EXPECT_EQ(import.model,
            "# From a command line of Megatron-LM.\nschema: commfuse.model/1\nname: gpt3\nlayers: 96\nhidden: 12288\n"
            "ffn: 49152\nheads: 96\nkv_heads: 96\nhead_dim: 128\nvocab: 51200\ngated_mlp: false\nnorm: layer\n"
            "biases: true\ntied_embeddings: true\npositions: 2048\n");
  EXPECT_EQ(run_text(import),
            "# From a command line of Megatron-LM.\nschema: commfuse.run/1\nscope: step\nframework: "
            "megatron-lm\nranks: 8\nseq: 2048\n"
            "batch: 1536\ndtype: bf16\nattention_kernel: fused\nparallel:\n  sequence_parallel: off\n  pipeline: 16\n  "
            "interleave: 1\n"
            "  data: 1\n  context: 1\n  experts: 1\n  zero: 0\nstep:\n  micro_batch: 1\n  recompute: none\n"
            "  dropout: on\n  gradient_dtype: fp32\n  overlap_gradients: off\n");
  ASSERT_EQ(import.notes.size(), 1U);
  EXPECT_EQ(import.notes[0],
            "--vocab-size is missing, because the tokenizer defines it: 50257, as in GPT-2, is assumed");
}

TEST(Megatron, OutputIsReadByOurLoaders) {
  const OwnFolder folder;
  const Imported import = read_megatron(llama, "llama.sh", "mine");
  std::ofstream("mine.model.yaml") << import.model;
  const Transformer model = load_model("./mine.model.yaml");
  EXPECT_EQ(model.ffn, 14336);
  EXPECT_EQ(model.kv_heads, 8);
  EXPECT_EQ(model.head_dim, 128);
  EXPECT_TRUE(model.gated_mlp);
  EXPECT_FALSE(model.biases);
  EXPECT_EQ(model.norm, Norm::rms);
  EXPECT_EQ(model.positions, 0);
  EXPECT_EQ(model.vocab, 128512);  // rounded up, so that each of 4 ranks has a multiple of 128
  std::ofstream("mine.run.yaml") << run_text(import) << "model: ./mine.model.yaml\n";
  Resolver resolver;
  resolver.read_file("mine.run.yaml");
  const Settings settings = resolver.finish();
  EXPECT_EQ(settings.count("parallel.data"), 2);
  EXPECT_EQ(settings.count("parallel.zero"), 1);
  EXPECT_EQ(settings.text("parallel.sequence_parallel"), "on");
  EXPECT_EQ(settings.text("step.recompute"), "selective");
  EXPECT_EQ(settings.count("batch"), 64);
}

using Notes = std::vector<std::string>;

/// Returns the import of the script with this overlap file, and only the notes about the file.
Imported with_overlap(const std::string& yaml, const std::string& script = llama) {
  std::ofstream("cfg.yaml") << yaml;
  Imported import = read_megatron(script, "llama.sh", "mine");
  import.notes.clear();
  add_overlap("cfg.yaml", import);
  return import;
}

TEST(Megatron, OverlapChoosesTheGemmsThatTheImplementationRuns) {
  const OwnFolder folder;
  const Imported import = with_overlap(
      "qkv_fprop: {method: ring_exchange, aggregate: 0}\nqkv_dgrad: {method: bulk, num_sm: 4, set_sm_margin: 0}\n"
      "qkv_wgrad: {method: bulk}\nproj_fprop: {method: bulk}\nproj_dgrad: {method: none}\n"
      "fc1_fprop: {method: ring_exchange}\nfc1_dgrad: {method: bulk}\nfc1_wgrad: {method: bulk}\n"
      "fc2_fprop: {method: ring_exchange}\nfc2_dgrad: {method: ring_exchange}\n");
  EXPECT_EQ(import.step.framework, "megatron-core-2024");
  EXPECT_EQ(import.step.implementation_sites, (Notes{"qkv", "gate_up", "down", "down_backward"}));
  EXPECT_EQ(import.notes,
            (Notes{"cfg.yaml: the step prices ring_exchange at qkv_fprop, fc1_fprop, fc2_fprop, fc2_dgrad; bulk at "
                   "qkv_dgrad, qkv_wgrad, fc1_dgrad, fc1_wgrad",
                   "cfg.yaml: serial is assumed where the method has no price: proj_fprop ('bulk'), proj_dgrad "
                   "('none')"}));
}

TEST(Megatron, OverlapNamesTheGemmsWhoseMethodHasNoPrice) {
  const OwnFolder folder;
  const Imported import = with_overlap(
      "qkv_fprop: {method: pipeline, num_sm: 24, num_splits: 2, aggregate: 0}\n"
      "proj_fprop:\n  method: pipeline\n  num_splits: 4\n  num_sm: 24\n  set_sm_margin: 1\n"
      "fc1_fprop: {method: ring_exchange, aggregate: 0}\nfc2_fprop: {method: pipeline, num_splits: 4}\n"
      "fc1_dgrad: {method: ring_exchange}\nfc3_fprop: {method: bulk}\n");
  EXPECT_EQ(import.step.implementation_sites,
            (Notes{"qkv", "out_proj", "out_proj_backward", "gate_up", "down", "down_backward"}));
  EXPECT_EQ(
      import.notes,
      (Notes{
          "unknown and ignored: 'fc3_fprop'",
          "cfg.yaml: the step prices ring_exchange at proj_dgrad, fc1_fprop, fc2_dgrad; bulk at qkv_dgrad, qkv_wgrad",
          "cfg.yaml lacks qkv_dgrad, qkv_wgrad, proj_dgrad, fc2_dgrad: TransformerEngine's defaults are assumed",
          "cfg.yaml: bulk is assumed where the method has no price: fc1_dgrad ('ring_exchange')",
          "cfg.yaml: ring_exchange is assumed where the method has no price: qkv_fprop ('pipeline', 2 splits), "
          "proj_fprop ('pipeline', 4 splits), fc2_fprop ('pipeline', 4 splits); --scope qkv --strategy sliced "
          "--slices 2 prices pipeline with ideal kernels"}));
}

TEST(Megatron, OneSplitOfAPipelineIsSingular) {
  const OwnFolder folder;
  EXPECT_EQ(with_overlap("qkv_fprop: {method: pipeline, num_splits: 1}\n").notes.back(),
            "cfg.yaml: ring_exchange is assumed where the method has no price: qkv_fprop ('pipeline', 1 split), "
            "proj_fprop ('pipeline', 4 splits), fc2_fprop ('pipeline', 4 splits); --scope qkv --strategy sliced "
            "--slices 1 prices pipeline with ideal kernels");
}

/// For every key that is missing from the file, TransformerEngine's initialize_ub takes the default method.
TEST(Megatron, GemmsThatAnOverlapFileLacksHaveTheirDefaults) {
  const OwnFolder folder;
  const Imported import = with_overlap("qkv_dgrad: {num_sm: 4}\n");
  EXPECT_EQ(import.step.implementation_sites,
            (Notes{"qkv", "out_proj", "out_proj_backward", "gate_up", "down", "down_backward"}));
  EXPECT_EQ(import.notes[1],
            "cfg.yaml lacks qkv_fprop, qkv_wgrad, proj_fprop, proj_dgrad, fc1_fprop, fc1_dgrad, fc1_wgrad, fc2_fprop, "
            "fc2_dgrad: TransformerEngine's defaults are assumed");
}

TEST(Megatron, AScriptThatNamesAnOverlapFileAsksForIt) {
  const OwnFolder folder;
  std::ofstream("llama.sh") << llama;
  Source source{"llama.sh", "mine"};
  EXPECT_EQ(read_megatron(source).notes.front(),
            "the methods of --tp-comm-overlap-cfg are not used; add --overlap with that file");
  std::ofstream("cfg.yaml") << "qkv_fprop: {method: ring_exchange}\n";
  source.options.set("--overlap", {"cfg.yaml"});
  const Notes notes = read_megatron(source).notes;
  ASSERT_FALSE(notes.empty());
  EXPECT_EQ(notes.front().find("cfg.yaml: the step prices ring_exchange at qkv_fprop"), 0U) << notes.front();
}

TEST(Megatron, AnOverlapFileCountsOnlyForWhatTheScriptSwitchesOn) {
  const OwnFolder folder;
  const auto with_flags = [](const std::string& flags) {
    std::ofstream("llama.sh") << llama << " " << flags;
    std::ofstream("cfg.yaml") << "fc1_fprop: {method: ring_exchange}\nfc2_fprop: {method: ring_exchange}\n";
    Source source{"llama.sh", "mine"};
    source.options.set("--overlap", {"cfg.yaml"});
    return read_megatron(source);
  };
  const Imported no_scatters = with_flags("--disable-tp-comm-overlap-rs");
  EXPECT_EQ(no_scatters.step.implementation_sites, (Notes{"qkv", "out_proj_backward", "gate_up", "down_backward"}));
  ASSERT_GE(no_scatters.notes.size(), 3U);
  EXPECT_EQ(no_scatters.notes[1], "--disable-tp-comm-overlap-rs: the collectives of proj_fprop, fc2_fprop are exposed");
  EXPECT_EQ(no_scatters.notes[2],
            "cfg.yaml lacks qkv_fprop, qkv_dgrad, qkv_wgrad, proj_dgrad, fc1_dgrad, fc1_wgrad, fc2_dgrad: "
            "TransformerEngine's defaults are assumed");
  const Imported no_gathers = with_flags("--disable-tp-comm-overlap-ag --disable-tp-comm-bulk-wgrad");
  EXPECT_EQ(no_gathers.step.implementation_sites, (Notes{"out_proj", "down"}));
  EXPECT_EQ(no_gathers.notes.front(),
            "--disable-tp-comm-bulk-wgrad has no counterpart and is ignored: gradients of column-parallel weights "
            "overlap the inputs' reduce-scatter");
  EXPECT_NE(std::ranges::find(no_gathers.notes,
                              "--disable-tp-comm-overlap-ag: the collectives of qkv_fprop, proj_dgrad, fc1_fprop, "
                              "fc2_dgrad are exposed"),
            no_gathers.notes.end());
}

/// Without a file, Megatron-LM passes TransformerEngine no methods, so initialize_ub uses its defaults.
TEST(Megatron, OverlapWithoutAFileIsThatOfAFileWithTheDefaults) {
  const OwnFolder folder;
  std::string defaults;
  for (const OverlapKey& key : load_overlap_keys("te")) {
    defaults += fmt::format("{}: {{method: {}}}\n", key.key, key.method);
  }
  for (const std::string flags : {"", "--disable-tp-comm-overlap-rs", "--disable-tp-comm-overlap-ag"}) {
    std::ofstream("a.sh") << llama << " " << flags;
    Source source{"a.sh", "mine"};
    const Imported without_file = read_megatron(source);
    for (const std::string& yaml : {std::string("{}\n"), defaults}) {
      std::ofstream("cfg.yaml") << yaml;
      source.options.set("--overlap", {"cfg.yaml"});
      const Imported with_file = read_megatron(source);
      ASSERT_TRUE(with_file.step.implementation_sites.has_value());
      EXPECT_EQ(without_file.step.implementation_sites, with_file.step.implementation_sites) << flags;
      EXPECT_EQ(framework_text(without_file.step, without_file.origin, "mine"),
                framework_text(with_file.step, with_file.origin, "mine"));
      EXPECT_EQ(run_text(without_file), run_text(with_file));
    }
  }
}

TEST(Megatron, OverlapWithoutAFileNotesItsMethodsAndSwitches) {
  const OwnFolder folder;
  std::ofstream("a.sh") << llama << " --disable-tp-comm-overlap-rs";
  EXPECT_EQ(
      read_megatron(Source{"a.sh", "mine"}).notes,
      (Notes{"the methods of --tp-comm-overlap-cfg are not used; add --overlap with that file",
             "--tp-comm-overlap with TransformerEngine's default methods: the step prices ring_exchange at qkv_fprop, "
             "proj_dgrad, fc1_fprop, fc2_dgrad; bulk at qkv_dgrad, qkv_wgrad, fc1_dgrad, fc1_wgrad",
             "--disable-tp-comm-overlap-rs: the collectives of proj_fprop, fc2_fprop are exposed"}));
  std::ofstream("b.sh") << small("--nproc-per-node 1 --tp-comm-overlap --disable-tp-comm-overlap-rs");
  const Imported alone = read_megatron(Source{"b.sh", "mine"});
  EXPECT_EQ(alone.step.implementation_sites, std::nullopt);
  EXPECT_EQ(alone.notes, Notes{"--tp-comm-overlap with TransformerEngine's default methods: without "
                               "--sequence-parallel and several tensor ranks, no GEMM overlaps its collective"});
}

TEST(Megatron, AnOverlapFileNeedsTheSwitchInTheScript) {
  const OwnFolder folder;
  std::ofstream("cfg.yaml") << "qkv_fprop: {method: ring_exchange}\n";
  const auto last_note = [](const std::string& script) {
    std::ofstream("a.sh") << script;
    Source source{"a.sh", "mine"};
    source.options.set("--overlap", {"cfg.yaml"});
    return read_megatron(source).notes.back();
  };
  const std::string note =
      "a.sh lacks --tp-comm-overlap, without which Megatron-LM overlaps none of the GEMMs of cfg.yaml: add it to the "
      "script, or remove --overlap";
  EXPECT_NE(last_note(llama), note);
  std::string script = llama;
  script.replace(script.find("--tp-comm-overlap "), 18, "");
  EXPECT_EQ(last_note(script), note);
}

TEST(Megatron, NothingOverlapsWithoutSequenceParallelism) {
  const OwnFolder folder;
  std::string script = llama;
  script.replace(script.find("--sequence-parallel "), 20, "");
  const Imported import = with_overlap("qkv_fprop: {method: ring_exchange}\n", script);
  EXPECT_EQ(import.step.implementation_sites, std::nullopt);
  EXPECT_EQ(import.notes, Notes{"cfg.yaml: without --sequence-parallel and several tensor ranks, no GEMM overlaps its "
                                "collective"});
}

TEST(Megatron, TheFrameworkOfAnOverlapFileCanBeLoaded) {
  const OwnFolder folder;
  const Imported import = with_overlap("fc2_fprop: {method: bulk}\n");
  std::ofstream("mine.framework.yaml") << framework_text(import.step, import.origin, "it's: mine");
  const Framework framework = load_framework("./mine.framework.yaml");
  EXPECT_EQ(framework.name, "it's: mine-overlap");
  ASSERT_NE(framework.implementation, nullptr);
  EXPECT_EQ(framework.implementation->name, "te");
  EXPECT_EQ(framework.implementation_sites,
            (std::vector{Scope::qkv, Scope::out_proj, Scope::out_proj_backward, Scope::gate_up, Scope::down_backward}));
  EXPECT_EQ(framework.settings, load_framework("megatron-core-2024").settings);
}

TEST(Megatron, QuotedPairsOfAnArrayAreTwoWords) {
  const Imported import = read_megatron(
      "A=(--num-layers 2 --hidden-size 1024 --num-attention-heads 16 --seq-length 2048 --bf16)\n"
      "A+=(\"--vocab-size 128256\" '--micro-batch-size 2')\n"
      "torchrun --nproc-per-node=8 pretrain_gpt.py ${A[@]} --global-batch-size 8\n",
      "train.sh", "mine");
  EXPECT_NE(import.model.find("vocab: 128256"), std::string::npos) << import.model;
  EXPECT_NE(run_text(import).find("micro_batch: 2"), std::string::npos) << run_text(import);
}

TEST(Megatron, UnknownValuesAreReportedWithTheirPlace) {
  EXPECT_EQ(megatron_refusal("--hidden-size 8"),
            "a.sh: --num-attention-heads is missing; give the whole command line, or the script that builds it");
  EXPECT_EQ(megatron_refusal("--num-attention-heads 8\n  --hidden-size $WIDTH"),
            "a.sh:2: --hidden-size is '$WIDTH', whose value this file does not set; write the value instead");
  EXPECT_EQ(megatron_refusal("--num-attention-heads 8 --hidden-size 4k"),
            "a.sh:1: --hidden-size is '4k'; write a whole number of at least 1");
}

TEST(Megatron, SizesThatNoModelHasAreRefused) {
  EXPECT_EQ(megatron_refusal(small("--hidden-size 2000000")),
            "a.sh:1: --hidden-size is '2000000'; write a whole number from 1 to 1048576");
  EXPECT_EQ(
      megatron_refusal(small("--tensor-model-parallel-size 4294967296 --pipeline-model-parallel-size 4294967296")),
      "a.sh:1: --tensor-model-parallel-size is '4294967296'; write a whole number from 1 to 1048576");
  EXPECT_EQ(megatron_refusal(small("--make-vocab-size-divisible-by 4294967296")),
            "a.sh:1: --make-vocab-size-divisible-by is '4294967296'; write a whole number from 1 to 16777216");
  EXPECT_EQ(megatron_refusal(small("--nproc-per-node 4294967296 --nnodes 4294967296")),
            "a.sh:1: --nnodes is '4294967296'; write a whole number from 1 to 1048576");
}

TEST(Megatron, DerivedSizesAreCheckedToo) {
  EXPECT_EQ(megatron_refusal(small("--make-vocab-size-divisible-by 16777216 --tensor-model-parallel-size 1048576")),
            "a.sh: these flags make 17592186044416 rows of the embedding, outside 1 to 16777216; make "
            "--make-vocab-size-divisible-by smaller");
  EXPECT_EQ(megatron_refusal(small("--hidden-size 1048576")),
            "a.sh: these flags make 4194304 columns of the MLP, outside 1 to 1048576; write --ffn-hidden-size");
  EXPECT_EQ(megatron_refusal(small("--hidden-size 4 --ffn-hidden-size 8")),
            "a.sh:1: --num-attention-heads is 8, which does not divide --hidden-size 4 evenly; write one that does, or "
            "--kv-channels");
  EXPECT_EQ(megatron_refusal(small("--hidden-size 2000 --num-attention-heads 24")),
            "a.sh:1: --num-attention-heads is 24, which does not divide --hidden-size 2000 evenly; write one that "
            "does, or --kv-channels");
  EXPECT_EQ(megatron_refusal(small("--hidden-size 2000 --num-attention-heads 24 --kv-channels 64")), "");
  EXPECT_EQ(megatron_refusal(small("--nproc-per-node 1048576 --nnodes 1048576")),
            "a.sh: these flags make 1099511627776 replicas, outside 1 to 1048576; choose fewer processes, or "
            "larger replicas");
  EXPECT_EQ(megatron_refusal(small("--nproc-per-node 8192 --micro-batch-size 1048576")),
            "a.sh: these flags make 8589934592 sequences of a batch, outside 1 to 1073741824; write "
            "--global-batch-size");
}

TEST(Megatron, GroupsThatDoNotDivideTheHeadsAreRefused) {
  const std::string text =
      "x --num-layers 2 --hidden-size 4096 --num-attention-heads 32\n --group-query-attention --num-query-groups 33 "
      "--seq-length 1024";
  EXPECT_EQ(megatron_refusal(text),
            "a.sh:2: --num-query-groups is 33, which does not divide the 32 heads evenly; write one that does");
}

TEST(Megatron, RanksThatDoNotDivideHeadsOrExpertsAreRefused) {
  EXPECT_EQ(megatron_refusal(small("--tensor-model-parallel-size 16")),
            "a.sh:1: --tensor-model-parallel-size is 16, which does not divide --num-attention-heads 8 evenly; write "
            "one that does");
  EXPECT_EQ(megatron_refusal(small("--num-experts 6\n--expert-model-parallel-size 4")),
            "a.sh:2: --expert-model-parallel-size is 4, which does not divide --num-experts 6 evenly; write one that "
            "does");
}

TEST(Megatron, RefusesValuesThatAreNotSettings) {
  EXPECT_EQ(megatron_refusal(small("--recompute-granularity \"full\nhardware: /tmp/evil.yaml\"")),
            "a.sh:1: --recompute-granularity is wrong: unknown recomputation 'full\\x0ahardware: /tmp/evil.yaml'; "
            "known choices: "
            "none, selective, full");
  EXPECT_EQ(read_megatron(small("--recompute-granularity full"), "a.sh", "a").step.recompute, "full");
}

TEST(Megatron, CircularVariablesAreNotExpanded) {
  EXPECT_EQ(megatron_refusal(small("--hidden-size $A\nA=$B\nB=$A")),
            "a.sh:1: --hidden-size is '$A', whose value this file does not set; write the value instead");
}

bool has_line(const Imported& import, const std::string& line) {
  return run_text(import).find("  " + line + "\n") != std::string::npos;
}

TEST(Megatron, TheLastAssignmentOfAVariableCounts) {
  const Imported import =
      read_megatron("TP=2\nTP=8\n" + small("--nproc-per-node 8 --tensor-model-parallel-size $TP"), "a.sh", "a");
  EXPECT_NE(run_text(import).find("\nranks: 8\n"), std::string::npos) << run_text(import);
}

TEST(Megatron, ChunksOfAStageAreCountedAsInMegatron) {
  const auto chunks = [](const std::string& flags) {
    return read_megatron(small("--num-layers 126 --pipeline-model-parallel-size 16 " + flags), "a.sh", "a");
  };
  EXPECT_TRUE(has_line(chunks("--num-virtual-stages-per-pipeline-rank 4"), "interleave: 4"));
  EXPECT_TRUE(has_line(chunks("--num-layers-per-virtual-pipeline-stage 2"), "interleave: 3"));
  EXPECT_TRUE(has_line(chunks("--num-layers-per-virtual-pipeline-stage 2 --account-for-embedding-in-pipeline-split "
                              "--account-for-loss-in-pipeline-split"),
                       "interleave: 4"));
}

TEST(Megatron, ReplicasShardWhatFsdpShards) {
  const auto run_with = [](const std::string& flags) {
    return read_megatron(small("--nproc-per-node 8 " + flags), "a.sh", "a");
  };
  EXPECT_TRUE(has_line(run_with(""), "zero: 0"));
  EXPECT_TRUE(has_line(run_with("--use-distributed-optimizer"), "zero: 1"));
  EXPECT_TRUE(has_line(run_with("--use-megatron-fsdp --data-parallel-sharding-strategy optim_grads_params "
                                "--use-distributed-optimizer"),
                       "zero: 3"));
  EXPECT_TRUE(has_line(run_with("--use-custom-fsdp --data-parallel-sharding-strategy optim_grads"), "zero: 2"));
  EXPECT_TRUE(has_line(run_with("--use-torch-fsdp2"), "zero: 3"));
  EXPECT_EQ(megatron_refusal(small("--use-megatron-fsdp --data-parallel-sharding-strategy optim_grad")),
            "a.sh:1: --data-parallel-sharding-strategy is 'optim_grad'; did you mean 'optim_grads'?");
}

TEST(Megatron, TooFewProcessesForAReplicaAreReported) {
  const Imported import = read_megatron(small("--nproc_per_node 4 --tensor-model-parallel-size 8"), "a.sh", "a");
  ASSERT_EQ(import.notes.size(), 1U);
  EXPECT_EQ(import.notes[0],
            "1 x 4 processes (--nnodes x --nproc-per-node of torchrun) do not form whole replicas of 8 ranks: one "
            "replica is assumed");
}

TEST(Megatron, ContextRanksExchangeKeysAsTheFlagsSay) {
  const auto step = [](const std::string& flags) {
    return read_megatron(small("--nproc-per-node 8 --context-parallel-size 8 " + flags), "a.sh", "a").step;
  };
  EXPECT_EQ(step("").context_exchange, ContextExchange::ring);
  EXPECT_EQ(step("--cp-comm-type p2p").context_exchange, ContextExchange::ring);
  EXPECT_EQ(step("--cp-comm-type all_gather").context_exchange, ContextExchange::all_gather);
  const StepSettings all_to_all = step("--cp-comm-type a2a");
  EXPECT_EQ(all_to_all.context, 1);
  EXPECT_EQ(all_to_all.ulysses, 8);
  EXPECT_TRUE(step("--cp-comm-type a2a --transformer-impl local").fused_attention);
  const StepSettings hierarchy = step("--cp-comm-type a2a+p2p --hierarchical-context-parallel-sizes 2 4");
  EXPECT_EQ(hierarchy.context, 4);
  EXPECT_EQ(hierarchy.ulysses, 2);
  EXPECT_EQ(hierarchy.context_exchange, ContextExchange::ring);
  EXPECT_EQ(hierarchy.data, 1);
}

TEST(Megatron, ExchangesOfKeysThatDifferBetweenLayersAreNamed) {
  const auto notes = [](const std::string& types) {
    const std::string flags = "--nproc-per-node 8 --context-parallel-size 8 --cp-comm-type " + types + " --bf16";
    return read_megatron(small(flags), "a.sh", "a").notes;
  };
  EXPECT_EQ(notes("p2p p2p"), Notes{});
  EXPECT_EQ(notes("p2p a2a"), Notes{"--cp-comm-type differs between layers: 'p2p' is assumed for all"});
}

TEST(Megatron, MistakesInTheExchangeOfKeysAreReported) {
  const std::string ranks = "--nproc-per-node 8 --context-parallel-size 8 --cp-comm-type ";
  EXPECT_EQ(megatron_refusal(small(ranks + "p2q")), "a.sh:1: --cp-comm-type is 'p2q'; did you mean 'p2p'?");
  EXPECT_EQ(megatron_refusal(small(ranks + "a2a+p2p --hierarchical-context-parallel-sizes 3 4")),
            "a.sh:1: --hierarchical-context-parallel-sizes begins with 3, which does not divide 8 context ranks; write "
            "one that does");
  EXPECT_EQ(read_megatron(small(ranks + "a2a+p2p"), "a.sh", "a").notes,
            std::vector<std::string>{"--cp-comm-type is a2a+p2p without --hierarchical-context-parallel-sizes: all "
                                     "context ranks pass keys and values around a ring"});
}

TEST(Megatron, FlagsWithoutACounterpartAreReported) {
  const Imported import = read_megatron(
      small("--nproc-per-node 1 --multi-latent-attention --moe-layer-freq 2 --normalization L2Norm"), "a.sh", "a");
  EXPECT_EQ(import.notes,
            (std::vector<std::string>{"--normalization 'L2Norm' has no counterpart: LayerNorm is assumed",
                                      "--multi-latent-attention has no counterpart and is ignored: attention has the "
                                      "heads of --num-attention-heads",
                                      "--moe-layer-freq has no counterpart and is ignored: every layer has experts"}));
}

TEST(Megatron, EverySkippedFlagIsReported) {
  for (const Unsupported& entry : megatron_keys().unsupported) {
    std::string flag = flag_of(entry.key);
    std::ranges::replace(flag, '*', 'x');
    const Imported import = read_megatron(small("--nproc-per-node 1 " + flag + "=other"), "a.sh", "a");
    EXPECT_EQ(import.notes,
              std::vector<std::string>{fmt::format("{} has no counterpart and is ignored: {}", flag, entry.instead)});
  }
  const Imported import = read_megatron(
      small("--nproc-per-node 1 --hybrid-override-pattern M* --fp8-param-gather --linear-attention-freq 4"), "a.sh",
      "a");
  EXPECT_EQ(import.notes.size(), 3U);
}

TEST(Megatron, ASwitchHasNoValue) {
  const auto notes = [](const std::string& flags) {
    return read_megatron(small("--nproc-per-node 2 " + flags), "a.sh", "a").notes;
  };
  EXPECT_EQ(notes("--overlap-grad-reduce 2>&1 | tee run.txt"), std::vector<std::string>{});
  EXPECT_EQ(notes("--bf16"), std::vector<std::string>{});
  EXPECT_EQ(notes("--use-torch-fsdp2"), std::vector<std::string>{});
  EXPECT_EQ(notes("--disable-tp-comm-overlap-rs --disable-tp-comm-overlap-ag"), std::vector<std::string>{});
  EXPECT_EQ(notes("--overlap-grad-reduce --multi-latent-attention 0").size(), 1U);
}

TEST(Megatron, FlagsSetTheTimeAndDtypeOfGradientReduction) {
  const auto step_with = [](const std::string& flags) {
    return read_megatron(
               "torchrun --nproc-per-node 2 x --num-layers 2 --hidden-size 1024 --num-attention-heads 8 "
               "--seq-length 1024 " +
                   flags,
               "a.sh", "a")
        .step;
  };
  EXPECT_FALSE(step_with("--bf16").overlap_gradients);
  EXPECT_TRUE(step_with("--bf16 --overlap-grad-reduce").overlap_gradients);
  EXPECT_TRUE(step_with("--bf16 --use-torch-fsdp2").overlap_gradients);
  EXPECT_EQ(step_with("--bf16").gradient_dtype, "fp32");
  EXPECT_EQ(step_with("--bf16 --grad-reduce-in-bf16").gradient_dtype, "bf16");
  EXPECT_EQ(step_with("--fp16").gradient_dtype, "fp16");
  EXPECT_EQ(step_with("--fp16 --accumulate-allreduce-grads-in-fp32").gradient_dtype, "fp32");
  EXPECT_EQ(step_with("--fp16 --grad-reduce-in-bf16").gradient_dtype, "fp16");
  EXPECT_EQ(step_with("").gradient_dtype, "fp32");
  EXPECT_EQ(step_with("--grad-reduce-in-bf16").gradient_dtype, "fp32");
  EXPECT_EQ(step_with("--bf16").framework, "megatron-lm");
  EXPECT_EQ(step_with("--bf16 --tp-comm-overlap").framework, "megatron-core-2024");
}

TEST(Megatron, FlagsSetDropoutAndTheKindOfAttention) {
  const auto import_with = [](const std::string& flags) {
    return read_megatron(small("--nproc-per-node 1 " + flags), "a.sh", "a");
  };
  const auto step_with = [&](const std::string& flags) { return import_with(flags).step; };
  const std::string none = "--hidden-dropout 0 --attention-dropout 0.0 ";
  EXPECT_TRUE(step_with("").dropout);  // 0.1 is Megatron-LM's default
  EXPECT_FALSE(step_with(none).dropout);
  EXPECT_FALSE(step_with("--hidden-dropout 0").dropout);  // Dropout of scores is inside the fused kernel.
  EXPECT_TRUE(step_with("--hidden-dropout 0 --attention-backend unfused").dropout);
  EXPECT_FALSE(step_with(none + "--attention-backend unfused").dropout);
  EXPECT_TRUE(step_with("").fused_attention);
  EXPECT_TRUE(step_with("--attention-backend flash").fused_attention);
  EXPECT_FALSE(step_with("--attention-backend local").fused_attention);
  EXPECT_FALSE(step_with("--transformer-impl local").fused_attention);
  EXPECT_TRUE(step_with("--transformer-impl local --use-flash-attn").fused_attention);
  EXPECT_TRUE(step_with("--transformer-impl transformer_engine").fused_attention);
  EXPECT_EQ(import_with("--hidden-dropout $DROP").notes,
            std::vector<std::string>{"--hidden-dropout '$DROP' is not a number: its default of 0.1 is assumed"});
}

TEST(Megatron, AMisspeltFlagNamesTheIntendedOne) {
  const Imported import =
      read_megatron("srun --nodes=1\n" + small("--nproc-per-node 1 --tensor-model-paralel-size 8"), "a.sh", "a");
  ASSERT_EQ(import.notes.size(), 1U);
  EXPECT_EQ(
      import.notes[0],
      "a.sh:2: '--tensor-model-paralel-size' is unknown and ignored; did you mean '--tensor-model-parallel-size'?");
  EXPECT_EQ(megatron_refusal("--num-attention-heads 8\n--hiden-size 8"),
            "a.sh:2: --hiden-size is not a flag of Megatron-LM, and --hidden-size is missing; correct the spelling");
}

TEST(ShellWords, ExpandsManyAndDeeplyNestedVariables) {
  std::string many;
  for (int i = 0; i < 100'000; ++i) {
    many += "$A";
  }
  EXPECT_EQ(expanded(many, {{"A", "1"}}), std::string(100'000, '1'));
  std::string chain = "X0=7";
  for (int i = 1; i < 20'000; ++i) {
    chain += fmt::format(" X{}=$X{}", i, i - 1);
  }
  EXPECT_EQ(expanded("$X19999", assignments(shell_words(chain))), "7");
}

TEST(ShellWords, TooLongExpansionsAreNotReplaced) {
  for (const char* const seed : {"1", ""}) {
    std::string doubles = fmt::format("X0={}\n", seed);
    for (int i = 1; i <= 32; ++i) {
      doubles += fmt::format("X{}=$X{}$X{}\n", i, i - 1, i - 1);
    }
    const Variables variables = assignments(shell_words(doubles));
    EXPECT_EQ(expanded("$X3", variables), *seed == '\0' ? "" : "11111111");
    EXPECT_EQ(expanded("$X32", variables), std::nullopt);
  }
}

TEST(ShellWords, AVariableIsUndefinedInsideItself) {
  const auto variables = assignments(shell_words("A=$B B=$A N=${N:-4} P=$PA PA=x/$PA PATHS=${Q:-1}$Q"));
  EXPECT_EQ(expanded("$A", variables), std::nullopt);
  EXPECT_EQ(expanded("$PA", variables), std::nullopt);
  EXPECT_EQ(expanded("$PATHS", variables), std::nullopt);
  EXPECT_EQ(expanded("${N:-9}", variables), "4");
  EXPECT_EQ(expanded("$N$N", variables), "44");
}

TEST(ShellWords, TheLastAssignmentCountsAndAFallbackOnItselfDoesNot) {
  const auto variables = assignments(shell_words("A=2 A=8 B=4 B=${B:-16} C=1 C=x$C"));
  EXPECT_EQ(expanded("$A", variables), "8");
  EXPECT_EQ(expanded("$B", variables), "4");
  EXPECT_EQ(expanded("$C", variables), std::nullopt);
}

TEST(ShellWords, AppendedWordsFollowTheEarlierOnes) {
  const auto variables = assignments(shell_words("A=1 A+=2 A+=$B B=3 C+=4 D=5 D+=6 D=7"));
  EXPECT_EQ(expanded("$A", variables), "123");
  EXPECT_EQ(expanded("$C", variables), "4");
  EXPECT_EQ(expanded("$D", variables), "7");
}

TEST(Megatron, FlagsAppendedToAVariableAreRead) {
  const Imported import = read_megatron("ARGS=\"" + small("") + "\"\nARGS+=\" --bf16 --global-batch-size 64\"\n" +
                                            "export MORE+=' --micro-batch-size 2'\nrun --nproc-per-node 8 $ARGS",
                                        "a.sh", "a");
  EXPECT_NE(run_text(import).find("\nbatch: 64\ndtype: bf16\n"), std::string::npos) << run_text(import);
  EXPECT_TRUE(has_line(import, "micro_batch: 2"));
}

TEST(Megatron, ReportsValuesOfBranchesAndOfSeveralLaunches) {
  const auto notes = [](const std::string& text) { return read_megatron(text, "a.sh", "a").notes; };
  const std::string flags = small("--nproc-per-node 1 --tensor-model-parallel-size $TP $PREC");
  EXPECT_EQ(notes("if $BIG; then\n TP=8\n PREC=\"--fp8-format hybrid\"\n X=1\nelse\n TP=1\n PREC='--bf16'\n X=2\nfi\n" +
                  flags + "\nsrun x --num-layers=12 --num-layers 2 --ntasks 1\nsrun --ntasks 2"),
            (std::vector<std::string>{
                "the script is read, not run: PREC is '--fp8-format hybrid' or '--bf16' (the flags of all are used); "
                "TP is '8' or '1' (the last is used); --num-layers is '2' or '12' ('2' is used); used regardless of "
                "their branch's condition: --bf16, --fp8-format"}));
  EXPECT_EQ(notes("if [ $FP8 = 1 ]; then ARGS+=' --fp8-format hybrid'; fi\n" + small("--nproc-per-node 1 $ARGS")),
            (std::vector<std::string>{
                "the script is read, not run: used regardless of their branch's condition: --fp8-format"}));
  EXPECT_EQ(notes("A=(--bf16)\nA=(--fp16 --micro-batch-size 2)\n" + small("--nproc-per-node 1 ${A[@]}")),
            (std::vector<std::string>{
                "the script is read, not run: A is '--bf16' or '--fp16 --micro-batch-size 2' (the flags of all "
                "are used); --bf16 and --fp16 are both given (--bf16 is used)"}));
  EXPECT_EQ(notes("TP=1\nTP=${TP:-2}\nTP=1\nA=()\nA+=(--bf16)\nA=\"$A --swiglu\"\n" +
                  small("--nproc-per-node 1 --tensor-model-parallel-size $TP --num-layers $N --num-layers 2 $A\nN=2")),
            std::vector<std::string>{});
}

TEST(ShellWords, AssignmentsInAssignmentsAreReadDownToEightLevels) {
  std::string deep;
  for (int i = 0; i < 100'000; ++i) {
    deep += "A=";
  }
  EXPECT_EQ(shell_words("A=B=C=--x").back().text, "--x");
  EXPECT_EQ(shell_words(deep + "--x").back().text.size(), 2 * (100'000 - 8) + 3);
}

TEST(ShellWords, ALongExpansionIsReadOnce) {
  const std::string blanks(200'000, ' ');
  const std::vector<ShellWord> words = shell_words("$(" + blanks + "\n) --x");
  ASSERT_EQ(words.size(), 2U);
  EXPECT_EQ(words[0].text.size(), 200'004U);
  EXPECT_EQ(words[1].line, 2);
}

TEST(ShellWords, SeparateQuotesArraysAndComments) {
  std::vector<std::string> texts;
  for (const ShellWord& word : shell_words("A=(--x 1) # --y 2\nB=\"--z 'a b'\n --w \\\n 3\"; c=$((1 + 2)) '--q'")) {
    texts.push_back(word.text);
  }
  EXPECT_EQ(texts, (std::vector<std::string>{"A=", "--x", "1", "--z", "a b", "--w", "3", "c=$((1 + 2))", "--q"}));
}

TEST(ShellWords, AWindowsLineContinuesAfterItsBackslash) {
  const std::vector<ShellWord> words = shell_words("a \\\r\n  --b 1 \\\r\n --c\r\nd");
  ASSERT_EQ(words.size(), 5U);
  EXPECT_EQ(words[1].text, "--b");
  EXPECT_EQ(words[1].line, 2);
  EXPECT_EQ(words[3].text, "--c");
  EXPECT_EQ(words[4].text, "d");
  EXPECT_EQ(words[4].line, 4);
}

TEST(ShellWords, LinesAreCountedAcrossBackslashes) {
  const auto lines_of = [](const std::string& text) {
    std::string lines;
    for (const ShellWord& word : shell_words(text)) {
      lines += fmt::format("{}:{} ", word.text, word.line);
    }
    return lines;
  };
  EXPECT_EQ(lines_of("x \\\n--a 1 \\\n--b 2\n"), "x:1 --a:2 1:2 --b:3 2:3 ");
  EXPECT_EQ(lines_of("A=\"\n --a 1 \\\n --b 2 \\\n\"\nx"), "--a:2 1:2 --b:3 2:3 x:5 ");
  EXPECT_EQ(lines_of("A=\"\\\n--a 1 \\\n--b \\\n2\""), "--a:2 1:2 --b:3 2:4 ");
  EXPECT_EQ(lines_of("A=\"x B='--a 1 \\\n --b' \\\n --c\""), "x:1 --a:1 1:1 --b:2 --c:3 ");
  EXPECT_EQ(lines_of("--a\\\nb \\\n c"), "--ab:1 c:3 ");
}

TEST(ShellWords, FallbacksMayNameVariables) {
  const auto variables =
      assignments(shell_words("L=${LAYERS:-$DEFAULT} DEFAULT=32 A=${A:-$B} B=${B:-$A} C=${X:-$NONE}"));
  EXPECT_EQ(expanded("$L", variables), "32");
  EXPECT_EQ(expanded("${X:-4$DEFAULT}", variables), "432");
  EXPECT_EQ(expanded("$A", variables), std::nullopt);
  EXPECT_EQ(expanded("$C", variables), std::nullopt);
}

TEST(ShellWords, VariablesAreReplacedWhereTheTextDefinesThem) {
  const auto variables = assignments(shell_words("TP=8 N=${N:-4} ALL=\"$TP\""));
  EXPECT_EQ(expanded("$TP", variables), "8");
  EXPECT_EQ(expanded("a${TP}b", variables), "a8b");
  EXPECT_EQ(expanded("$ALL", variables), "8");
  EXPECT_EQ(expanded("${X:-7}", variables), "7");
  EXPECT_EQ(expanded("$N", variables), "4");
  EXPECT_EQ(expanded("$X", variables), std::nullopt);
  EXPECT_EQ(expanded("$((8*2))", variables), std::nullopt);
}

}  // namespace
}  // namespace commfuse::import
