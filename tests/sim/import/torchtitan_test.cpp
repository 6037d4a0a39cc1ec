// SPDX-License-Identifier: Apache-2.0
// Tests that TOML files of torchtitan, of several releases, become steps.
#include "sim/import/torchtitan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <string>
#include <utility>

#include "model/config_error.h"
#include "sim/import/key_lists.h"
#include "sim/import/torchtitan_keys.h"
#include "tests/own_folder.h"

namespace commfuse::import {
namespace {

class Torchtitan : public ::testing::Test {
 protected:
  static Imported read(const std::string& text, const std::string& gpus = "", const std::string& model = "") {
    std::ofstream("a.toml") << text;
    Source source{"a.toml", "a"};
    if (!gpus.empty()) {
      source.options.set("--gpus", {gpus});
    }
    if (!model.empty()) {
      source.options.set("--model", {model});
    }
    return read_torchtitan(source);
  }

  static std::string refusal(const std::string& text, const std::string& gpus = "8", const std::string& model = "") {
    try {
      read(text, gpus, model);
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "accepted";
  }

  static bool has_line(const Imported& import, const std::string& line) {
    return ("\n" + run_text(import)).find("\n" + line + "\n") != std::string::npos;
  }

  OwnFolder folder_;
};

const std::string model = "[model]\nname = \"llama3\"\nflavor = \"70B\"\n";
const std::string no_recompute = "[activation_checkpoint]\nmode = \"none\"\n";

TEST_F(Torchtitan, ACurrentFileBecomesItsStep) {
  const Imported import = read(model + no_recompute +
                                   "[job]\ndump_folder = \"./outputs\"\n[metrics]\nlog_freq = 10\n"
                                   "[training]\nlocal_batch_size = 8\nseq_len = 8192\nsteps = 10_000\n"
                                   "[parallelism]\ndata_parallel_replicate_degree = 1\n"
                                   "data_parallel_shard_degree = -1\ntensor_parallel_degree = 8\n",
                               "256");
  EXPECT_EQ(import.model, "");
  EXPECT_EQ(import.model_name, "llama-3.1-70b");
  EXPECT_EQ(gpus_of(import.step), 256);
  EXPECT_EQ(run_text(import),
            "# From a torchtitan configuration.\nschema: commfuse.run/1\nscope: step\nframework: torchtitan\nranks: "
            "8\nseq: 8192\n"
            "batch: 256\ndtype: bf16\nattention_kernel: fused\nparallel:\n  sequence_parallel: on\n  pipeline: 1\n  "
            "interleave: 1\n  data: 32\n"
            "  context: 1\n  experts: 1\n  zero: 3\nstep:\n  micro_batch: 8\n  recompute: none\n  dropout: off\n"
            "  gradient_dtype: fp32\n  overlap_gradients: on\n");
  EXPECT_TRUE(import.notes.empty()) << import.notes.front();
}

TEST_F(Torchtitan, KeysOfOlderReleasesAreRead) {
  const Imported import = read(
      "[model]\nname = \"llama2\"\nflavor = \"13B\"\nnorm_type = \"rmsnorm\"\n[training]\nbatch_size = 4\nseq_len = "
      "4096\ndata_parallel_degree = 2\ntensor_parallel_degree = 4\n[experimental]\npipeline_parallel_degree = 2\n"
      "pipeline_parallel_microbatches = 2\n[float8]\nenable_float8_linear = false\n" +
      no_recompute);
  EXPECT_EQ(import.model_name, "llama-2-13b");
  EXPECT_TRUE(has_line(import, "ranks: 4"));
  EXPECT_TRUE(has_line(import, "  pipeline: 2"));
  EXPECT_TRUE(has_line(import, "  data: 2"));
  EXPECT_TRUE(has_line(import, "  micro_batch: 2"));
  EXPECT_TRUE(has_line(import, "batch: 8"));
  EXPECT_TRUE(has_line(import, "  zero: 2"));  // With a pipeline, weights stay gathered.
  EXPECT_TRUE(import.notes.empty()) << import.notes.front();
}

TEST_F(Torchtitan, ConflictingSpellingsOfOneKeyAreRefused) {
  EXPECT_EQ(refusal(model + "[training]\nlocal_batch_size = 2\nbatch_size = 4\n"),
            "a.toml:6:1: training.batch_size is '4', but training.local_batch_size is '2'; keep one of them");
}

TEST_F(Torchtitan, PipelineSchedulesAreImported) {
  const auto imported_with = [&](const std::string& schedule) {
    return read(model + no_recompute + "[parallelism]\npipeline_parallel_degree = 4\n" + schedule, "8");
  };
  EXPECT_TRUE(has_line(imported_with("pipeline_parallel_schedule = \"Interleaved1F1B\"\n"), "  interleave: 2"));
  // 80 layers, 5 per stage: 16 stages, 4 on each of 4 ranks.
  EXPECT_TRUE(has_line(
      imported_with("pipeline_parallel_schedule = \"Interleaved1F1B\"\npipeline_parallel_layers_per_stage = 5\n"),
      "  interleave: 4"));
  const Imported zbv = imported_with("pipeline_parallel_schedule = \"ZBVZeroBubble\"\n");
  EXPECT_TRUE(has_line(zbv, "  schedule: zero_bubble"));
  ASSERT_EQ(zbv.notes.size(), 1U);
  EXPECT_EQ(
      zbv.notes[0],
      "pipeline_parallel_schedule ZBVZeroBubble has no counterpart: ZB-H1 is simulated, with one chunk per stage");
  EXPECT_EQ(refusal(model + "[parallelism]\npipeline_parallel_schedule = \"1F1C\"\n"),
            "a.toml:5:1: parallelism.pipeline_parallel_schedule is '1F1C'; did you mean '1F1B'?");
}

TEST_F(Torchtitan, ReplicasShardWhatFsdpShards) {
  const auto zero = [&](const std::string& keys) { return read(model + no_recompute + "[parallelism]\n" + keys, "8"); };
  EXPECT_TRUE(has_line(zero("data_parallel_shard_degree = 1\ndata_parallel_replicate_degree = 8\n"), "  zero: 0"));
  EXPECT_TRUE(has_line(zero("fsdp_reshard_after_forward = \"never\"\n"), "  zero: 2"));
  EXPECT_TRUE(has_line(zero("pipeline_parallel_degree = 2\nfsdp_reshard_after_forward = \"always\"\n"), "  zero: 3"));
  const Imported hybrid = zero("data_parallel_replicate_degree = 2\n");
  ASSERT_EQ(hybrid.notes.size(), 1U);
  EXPECT_EQ(hybrid.notes[0],
            "hybrid sharding (2 copies of 4 shards) has no counterpart: all 8 replicas share the state");
  const Imported whole = zero(
      "data_parallel_replicate_degree = 2\ndata_parallel_shard_degree = 1\ncontext_parallel_degree = 2\n"
      "tensor_parallel_degree = 2\n");
  ASSERT_EQ(whole.notes.size(), 1U);
  EXPECT_EQ(whole.notes[0], "hybrid sharding (2 copies of 1 shard) has no counterpart: all 2 replicas share the state");
}

TEST_F(Torchtitan, ContextRanksExchangeKeysAsTheFileSays) {
  const std::string ranks = model + no_recompute + "[parallelism]\ncontext_parallel_degree = 2\n";
  EXPECT_TRUE(has_line(read(ranks, "8"), "  context_exchange: all_gather"));
  EXPECT_TRUE(
      has_line(read(ranks + "context_parallel_rotate_method = \"alltoall\"\n", "8"), "  context_exchange: ring"));
  EXPECT_EQ(refusal(ranks + "context_parallel_rotate_method = \"ring\"\n"),
            "a.toml:8:1: parallelism.context_parallel_rotate_method is 'ring'; write allgather or alltoall");
}

TEST_F(Torchtitan, Float8AndOverlapAreImported) {
  const Imported import =
      read("[model]\nflavor = \"8B\"\nconverters = [\"quantize.linear.float8\", \"lora\"]\n" + no_recompute +
               "[compile]\nenable = true\ncomponents = [\"model\", \"loss\"]\n[parallelism]\n"
               "enable_async_tensor_parallel = true\ntensor_parallel_degree = 8\n",
           "8");
  EXPECT_TRUE(has_line(import, "dtype: fp8"));
  EXPECT_TRUE(has_line(import, "framework: torchtitan-async-tp"));
  ASSERT_EQ(import.notes.size(), 2U);
  EXPECT_EQ(import.notes[0], "a.toml:3:1: converter 'lora' has no counterpart and is ignored");
}

TEST_F(Torchtitan, WeightsGatheredInEightBitsAreNamedInBothSpellings) {
  for (const std::string section : {"float8", "quantize.linear.float8"}) {
    const Imported import = read(model + no_recompute + "[" + section + "]\nenable_fsdp_float8_all_gather = true\n" +
                                     "filter_fqns = [\"output\"]\n",
                                 "8");
    ASSERT_EQ(import.notes.size(), 1U) << section;
    EXPECT_EQ(import.notes[0], "a.toml:7:1: '" + section +
                                   ".enable_fsdp_float8_all_gather' = 'true' has no counterpart and is ignored: "
                                   "weights are gathered in 16 bits");
  }
}

TEST_F(Torchtitan, GradientsAreReducedInTheDtypeOfTheFile) {
  const std::string reduce = model + no_recompute + "[training]\nmixed_precision_reduce = ";
  EXPECT_TRUE(has_line(read(reduce + "\"bfloat16\"\n", "8"), "  gradient_dtype: bf16"));
  EXPECT_TRUE(has_line(read(reduce + "\"float32\"\n", "8"), "  gradient_dtype: fp32"));
  EXPECT_EQ(refusal(reduce + "\"int8\"\n"),
            "a.toml:7:1: training.mixed_precision_reduce is 'int8'; write bfloat16, float16 or float32");
}

TEST_F(Torchtitan, SelectiveRecomputationIsPerOperationOrOfEveryLayer) {
  const std::string option = model + "[activation_checkpoint]\nselective_ac_option = ";
  for (const auto& [value, recompute] : {std::pair{"\"op\"", "selective"}, {"\"1\"", "full"}, {"\"0\"", "full"}}) {
    const Imported import = read(option + value + "\n", "8");
    EXPECT_TRUE(has_line(import, std::string("  recompute: ") + recompute)) << value;
    EXPECT_TRUE(import.notes.empty()) << value;
  }
}

TEST_F(Torchtitan, RecomputationThatIsNotModelledIsNoted) {
  const std::string section = model + "[activation_checkpoint]\n";
  Imported import = read(section + "selective_ac_option = \"4\"\n", "8");
  EXPECT_TRUE(has_line(import, "  recompute: selective"));
  ASSERT_EQ(import.notes.size(), 1U);
  EXPECT_EQ(import.notes[0],
            "activation_checkpoint.selective_ac_option '4' recomputes one whole layer of every 4, which is not "
            "modelled: every second GEMM of every layer is recomputed instead, as with 'op'");
  import = read(section + "mode = \"memory_budget\"\n", "8");
  EXPECT_TRUE(has_line(import, "  recompute: selective"));
  ASSERT_EQ(import.notes.size(), 1U);
  EXPECT_EQ(import.notes[0],
            "activation_checkpoint.mode memory_budget is not modelled: every second GEMM of every layer is recomputed "
            "instead, as with 'op'");
}

TEST_F(Torchtitan, UnreadKeysAreNamed) {
  const Imported import = read(
      model + "[training]\nseq_len = 1024\nglobal_batch_sise = 64\nnew_thing = 1\nenable_cpu_offload = true\n", "8");
  ASSERT_EQ(import.notes.size(), 4U);
  EXPECT_EQ(import.notes[0],
            "activation_checkpoint.selective_ac_option '2' recomputes one whole layer of every 2, which is not "
            "modelled: every second GEMM of every layer is recomputed instead, as with 'op'");
  EXPECT_EQ(import.notes[1],
            "a.toml:8:1: 'training.enable_cpu_offload' = 'true' has no counterpart and is ignored: weights, gradients "
            "and optimizer state stay on the GPU");
  EXPECT_EQ(
      import.notes[2],
      "a.toml:6:1: 'training.global_batch_sise' is unknown and ignored; did you mean 'training.global_batch_size'?");
  EXPECT_EQ(import.notes[3], "unknown and ignored: 'training.new_thing'");
}

TEST_F(Torchtitan, AFlavorWithoutAModelNeedsOne) {
  const std::string small = "[model]\nname = \"llama3\"\nflavor = \"debugmodel\"\n";
  EXPECT_EQ(refusal(small),
            "a.toml:3:1: no model in the catalogue is flavor 'debugmodel' of 'llama3'; add --model NAME");
  EXPECT_EQ(read(small, "8", "llama-2-7b").model_name, "llama-2-7b");
  EXPECT_EQ(read("[model]\nname = \"llama3\"\nflavor = \"8B_flex\"\n", "8").model_name, "llama-3.1-8b");
}

TEST_F(Torchtitan, MistakesAreReportedWithTheirPlace) {
  EXPECT_EQ(
      refusal(model, ""),
      "a.toml: parallelism.data_parallel_shard_degree is -1 or absent, which means all remaining GPUs; add --gpus N");
  EXPECT_EQ(refusal(model + "[parallelism]\ntensor_parallel_degree = 3\n"),
            "a.toml: --gpus 8 is not a multiple of the 3 GPUs that the other degrees require; choose a multiple");
  EXPECT_EQ(refusal(model + "[parallelism]\ndata_parallel_shard_degree = 4\n"),
            "a.toml:5:1: parallelism.data_parallel_shard_degree is 4, so the degrees multiply to 4 GPUs, but --gpus is "
            "8; remove --gpus");
  EXPECT_EQ(refusal(model + "[training]\nseq_len = -8\n"),
            "a.toml:5:1: training.seq_len is '-8'; write a whole number of at least 1");
  EXPECT_EQ(refusal(model + "[training]\nseq_len = 8192.0\n"),
            "a.toml:5:1: training.seq_len is '8192.0'; write a whole number of at least 1");
  EXPECT_EQ(refusal(model + "[training]\nseq_len = \"8192\"\n"),
            "a.toml:5:1: training.seq_len is '8192'; write a whole number of at least 1");
  EXPECT_EQ(refusal(model + "[parallelism]\ntensor_parallel_degree = 1048576\ndata_parallel_shard_degree = 1048576\n"),
            "a.toml: the parallel degrees multiply to more than 1048576 GPUs; choose smaller ones");
  EXPECT_EQ(refusal(model + "[training]\nglobal_batch_size = 12\n"),
            "a.toml:5:1: training.global_batch_size is 12, not a multiple of 64 (8 sequences on each of 8 replicas); "
            "write a multiple"
            "");
  EXPECT_EQ(refusal(model + "[training]\nseq_len = 1\nseq_len = 2\n").substr(0, 12), "a.toml:6:11:");
  EXPECT_EQ(refusal("[[["), "a.toml: not valid TOML; find the place with another TOML reader, and correct it");
  EXPECT_EQ(refusal("a.b"), "a.toml:1:4: Error while parsing key-value pair: encountered end-of-file; write TOML");
}

TEST_F(Torchtitan, DeeplyNestedKeysAreRefused) {
  std::string deep = "a";
  for (int i = 0; i < 100'000; ++i) {
    deep += ".a";
  }
  const std::string sentence = ":1: a key has more than 32 levels; give a torchtitan file";
  EXPECT_EQ(refusal(deep + " = 1"), "a.toml:1" + sentence);
  EXPECT_EQ(
      refusal("x = \"....................................................\" # .......................\n[" + deep + "]"),
      "a.toml:2" + sentence);
  EXPECT_EQ(refusal("x = '''\n\"'''\n\"" + std::string(3, '.') + "\"." + deep + " = 1"), "a.toml:3" + sentence);
}

TEST_F(Torchtitan, NonAsciiLettersAreAllowedOnlyInStringsAndComments) {
  const std::string sentence = ":1: a non-ASCII letter outside a string; put it in quotes";
  EXPECT_EQ(refusal("[job]\n1aflavor \xc3\x91= 3\n"), "a.toml:2" + sentence);
  EXPECT_EQ(refusal("x = \"\"\"a\"\"\"\"\"\n\xc3\x91 = 3\n"), "a.toml:2" + sentence)
      << "two quotes end the string's text";
  EXPECT_EQ(read("\xef\xbb\xbf" + model + "[job]\ndescription = \"\xc3\x91\"  # \xc3\x91\n", "8").model_name,
            "llama-3.1-70b");
}

TEST_F(Torchtitan, EverySkippedKeyIsReported) {
  for (const Unsupported& entry : torchtitan_keys().unsupported) {
    const std::string line =
        std::string(entry.key.starts_with("model.") ? entry.key.substr(6) : entry.key) + " = \"other\"\n";
    const std::string before = entry.key.starts_with("model.") ? "" : line;
    const Imported import = read(before + model + (before.empty() ? line : "") + no_recompute, "8");
    const bool is_reported = std::ranges::any_of(import.notes, [&](const std::string& note) {
      return note.ends_with("'" + std::string(entry.key) +
                            "' = 'other' has no counterpart and is ignored: " + std::string(entry.instead));
    });
    EXPECT_TRUE(is_reported) << entry.key;
  }
}

}  // namespace
}  // namespace commfuse::import
