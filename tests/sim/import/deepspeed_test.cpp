// SPDX-License-Identifier: Apache-2.0
// Tests that DeepSpeed's JSON becomes a step of a model that the user names.
#include "sim/import/deepspeed.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <string>
#include <vector>

#include "model/config_error.h"
#include "sim/import/deepspeed_keys.h"
#include "sim/import/key_lists.h"
#include "tests/own_folder.h"

namespace commfuse::import {
namespace {

class Deepspeed : public ::testing::Test {
 protected:
  using Flags = std::vector<std::pair<std::string, std::string>>;

  /// Reads the file for 16 GPUs, unless flags set another number.
  static Imported read(const std::string& text, const Flags& flags = {}) {
    std::ofstream("a.json") << text;
    Source source{"a.json", "a"};
    source.options.set("--model", {"llama-3.1-8b"});
    source.options.set("--seq", {"4K"});
    source.options.set("--gpus", {"16"});
    for (const auto& [flag, value] : flags) {
      source.options.set(flag, {value});
    }
    return read_deepspeed(source);
  }

  static std::string refusal(const std::string& text, const Flags& flags = {}) {
    try {
      read(text, flags);
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

TEST_F(Deepspeed, AFileBecomesTheStepOfItsModel) {
  const Imported import = read(R"({
  "train_micro_batch_size_per_gpu": 2, "gradient_accumulation_steps": 4, // 2 x 4 x 8 replicas
  "zero_optimization": {"stage": 2, "overlap_comm": true, "reduce_bucket_size": 5e8},
  "bf16": {"enabled": true}, "tensor_parallel": {"autotp_size": 2}, "steps_per_print": 10,
  "communication_data_type": "fp32"
})");
  EXPECT_EQ(import.model_name, "llama-3.1-8b");
  EXPECT_EQ(gpus_of(import.step), 16);
  EXPECT_EQ(run_text(import),
            "# From a DeepSpeed configuration.\nschema: commfuse.run/1\nscope: step\nframework: deepspeed\nranks: "
            "2\nseq: 4096\n"
            "batch: 64\ndtype: bf16\nattention_kernel: fused\nparallel:\n  sequence_parallel: off\n  pipeline: 1\n  "
            "interleave: 1\n  data: 8\n"
            "  context: 1\n  experts: 1\n  zero: 2\nstep:\n  micro_batch: 2\n  recompute: none\n  dropout: off\n"
            "  gradient_dtype: fp32\n  overlap_gradients: on\n");
  EXPECT_TRUE(import.notes.empty()) << import.notes.front();
}

TEST_F(Deepspeed, TwoBatchSizesGiveTheThird) {
  const auto sizes = [](const std::string& keys) {
    return read("{\"zero_optimization\": {\"stage\": 3}, " + keys + "}");
  };
  const Imported total_and_micro = sizes(R"("train_batch_size": 64, "train_micro_batch_size_per_gpu": 2)");
  EXPECT_TRUE(has_line(total_and_micro, "batch: 64"));
  EXPECT_TRUE(has_line(total_and_micro, "  micro_batch: 2"));
  const Imported steps = sizes(R"("train_batch_size": 64, "gradient_accumulation_steps": 2)");
  EXPECT_TRUE(has_line(steps, "  micro_batch: 2"));
  const Imported batch = sizes(R"("train_batch_size": 64)");
  EXPECT_TRUE(has_line(batch, "  micro_batch: 4"));
  const Imported micro = sizes(R"("train_micro_batch_size_per_gpu": 3)");
  EXPECT_TRUE(has_line(micro, "batch: 48"));
  EXPECT_EQ(refusal(R"({"train_batch_size": 40, "train_micro_batch_size_per_gpu": 2})"),
            "a.json: train_batch_size is 40, train_micro_batch_size_per_gpu 2 and gradient_accumulation_steps not set; "
            "these do not fit 16 replicas; the first must be the product of the other two and the replicas");
  EXPECT_EQ(refusal(R"({"train_batch_size": 7, "train_micro_batch_size_per_gpu": 2})", {{"--gpus", "1"}}),
            "a.json: train_batch_size is 7, train_micro_batch_size_per_gpu 2 and gradient_accumulation_steps not set; "
            "these do not fit 1 replica; the first must be the product of the other two and the replicas");
  EXPECT_EQ(
      refusal(R"({"train_batch_size": 64, "train_micro_batch_size_per_gpu": 2, "gradient_accumulation_steps": 1})")
          .substr(0, 30),
      "a.json: train_batch_size is 64");
}

TEST_F(Deepspeed, ValuesThatATrainerFillsNeedAFlag) {
  const std::string open =
      R"({"train_batch_size": "auto", "train_micro_batch_size_per_gpu": "auto", "gradient_accumulation_steps": "auto",
          "bf16": {"enabled": "auto"}, "zero_optimization": {"stage": 3}})";
  EXPECT_EQ(refusal(open),
            "a.json: neither train_batch_size nor train_micro_batch_size_per_gpu is a number; add --micro-batch or "
            "--batch");
  const Imported import = read(open, {{"--micro-batch", "2"}});
  EXPECT_TRUE(has_line(import, "batch: 32"));
  EXPECT_EQ(import.notes,
            (std::vector<std::string>{
                "gradient_accumulation_steps is auto, which the trainer fills in: its default of 1 is assumed",
                "bf16 is auto, which the trainer fills in: bf16 is assumed"}));
  EXPECT_TRUE(has_line(import, "  gradient_dtype: bf16"));
  EXPECT_EQ(refusal(R"({"train_batch_size": 64})", {{"--batch", "32"}}),
            "a.json:1:2: train_batch_size is 64, but --batch is 32; remove the flag");
}

TEST_F(Deepspeed, AnAutomaticDtypeIsTheOneThatTheFileLeavesOpen) {
  const auto dtype_and_note = [](const std::string& keys) {
    const Imported import = read(R"({"train_micro_batch_size_per_gpu": 1, )" + keys + "}");
    EXPECT_EQ(import.notes.size(), 1U) << keys;
    return import.step.dtype + "; " + import.notes.back();
  };
  EXPECT_EQ(dtype_and_note(R"("bf16": {"enabled": false}, "fp16": {"enabled": "auto"})"),
            "fp16; fp16 is auto, which the trainer fills in: fp16 is assumed");
  EXPECT_EQ(dtype_and_note(R"("fp16": {"enabled": "auto"})"),
            "bf16; fp16 is auto, which the trainer fills in: bf16 is assumed");
  EXPECT_EQ(dtype_and_note(R"("bf16": {"enabled": "auto"}, "fp16": {"enabled": "auto"})"),
            "bf16; bf16 and fp16 are auto, which the trainer fills in: bf16 is assumed");
}

TEST_F(Deepspeed, AutocastHasEveryNameOfItsDtype) {
  const auto dtype = [](const std::string& name) {
    return read(R"({"train_micro_batch_size_per_gpu": 1, "torch_autocast": {"enabled": true, "dtype": ")" + name +
                "\"}}")
        .step.dtype;
  };
  for (const char* name : {"bfloat16", "bf16", "torch.bfloat16", "bfloat"}) {
    EXPECT_EQ(dtype(name), "bf16") << name;
  }
  for (const char* name : {"float16", "fp16", "torch.float16", "half"}) {
    EXPECT_EQ(dtype(name), "fp16") << name;
  }
  EXPECT_EQ(dtype("float32"), "fp32");
}

TEST_F(Deepspeed, AnAutomaticStageOfZeroIsTheDefaultOfTheTrainer) {
  const Imported import = read(R"({"train_micro_batch_size_per_gpu": 1, "zero_optimization": {"stage": "auto"}})");
  EXPECT_TRUE(has_line(import, "  zero: 2"));
  EXPECT_EQ(import.notes,
            (std::vector<std::string>{
                "zero_optimization.stage is auto, which the trainer fills in: its default of 2 is assumed"}));
}

TEST_F(Deepspeed, ReplicasFollowFromSequenceRanksAndStages) {
  const Imported import = read(
      R"({"train_batch_size": 8, "sequence_parallel_size": 4, "pipeline": {"stages": 2}, "fp16": {"enabled": true},
          "optimizer": {"type": "SGD", "params": {"lr": 0.1}}})");
  EXPECT_TRUE(has_line(import, "  ulysses: 4"));
  EXPECT_TRUE(has_line(import, "  pipeline: 2"));
  EXPECT_TRUE(has_line(import, "  data: 2"));
  EXPECT_TRUE(has_line(import, "dtype: fp16"));
  EXPECT_TRUE(has_line(import, "  optimizer: sgd"));
  EXPECT_TRUE(has_line(import, "  gradient_dtype: fp16"));
  EXPECT_TRUE(has_line(import, "  overlap_gradients: off"));
  EXPECT_TRUE(import.notes.empty()) << import.notes.front();
  EXPECT_EQ(refusal(R"({"train_batch_size": 8, "sequence_parallel_size": 3})"),
            "a.json: --gpus 16 is not a multiple of the 3 GPUs of a replica; choose a multiple");
}

TEST_F(Deepspeed, UnreadKeysAreNamed) {
  const Imported import = read(R"({"train_batch_size": 16,
    "zero_optimization": {"overlap_comm": true, "offload_optimizer": {"device": "cpu", "pin_memory": true},
                          "offload_param": {"device": "none"}, "zero_hpz_partition_size": 8, "reduce_scatter": true},
    "zero_optimisation": {"stage": 2}, "mystery": [1, {"a": 2}]})");
  EXPECT_EQ(
      import.notes,
      (std::vector<std::string>{
          "a.json:4:27: 'zero_optimisation.stage' is unknown and ignored; did you mean 'zero_optimization.stage'?",
          "a.json:2:71: 'zero_optimization.offload_optimizer.device' = 'cpu' has no counterpart and is ignored: "
          "weights and optimizer state stay on the GPU",
          "a.json:3:64: 'zero_optimization.zero_hpz_partition_size' = '8' has no counterpart and is ignored: weights "
          "are gathered from all replicas",
          "unknown and ignored: 'mystery'"}));
}

TEST_F(Deepspeed, PartitionedActivationsOfStagesAreReported) {
  const std::string step = R"({"train_micro_batch_size_per_gpu": 1, "pipeline": {"stages": 2, "pipe_partitioned": )";
  EXPECT_EQ(read(step + "false}}").notes, std::vector<std::string>{});
  EXPECT_EQ(read(step + "true}}").notes,
            (std::vector<std::string>{"a.json:1:65: 'pipeline.pipe_partitioned' = 'true' has no counterpart and is "
                                      "ignored: stages send full activations"}));
}

// Ten thousand entries below a long key would repeat the key ten thousand times.
TEST_F(Deepspeed, ALongKeyIsRefused) {
  EXPECT_EQ(read(R"({"train_batch_size": 16, ")" + std::string(998, 'k') + R"(": {"a": 1}})").step.batch, 16);
  EXPECT_EQ(refusal(R"({"train_batch_size": 16, ")" + std::string(999, 'k') + R"(": {"a": 1}})"),
            "a.json:1:1030: a key and the keys around it exceed 1000 characters; shorten them");
}

TEST_F(Deepspeed, MistakesAreReportedWithTheirPlace) {
  EXPECT_EQ(refusal("{\n \"train_batch_size\": 8.5}"),
            "a.json:2:2: train_batch_size is '8.5'; write a whole number of at least 1");
  EXPECT_EQ(refusal("{\"train_batch_size\": \"8\"}"),
            "a.json:1:2: train_batch_size is '8'; write a whole number of at least 1");
  EXPECT_EQ(refusal("{\"train_batch_size\": -8}"),
            "a.json:1:2: train_batch_size is '-8'; write a whole number of at least 1");
  EXPECT_EQ(refusal("{\"train_batch_size\": 1e99}"),
            "a.json:1:2: train_batch_size is '1e99'; write a whole number of at least 1");
  EXPECT_EQ(refusal("{\"train_batch_size\": 16, \"zero_optimization\": {\"stage\": 4}}"),
            "a.json:1:48: zero_optimization.stage is '4'; write a whole number from 0 to 3");
  EXPECT_EQ(refusal("{\"train_batch_size\": 16, \"zero_optimization\": true}"),
            "a.json:1:26: zero_optimization is 'true'; write {\"stage\": 1}, or another stage");
  EXPECT_EQ(refusal("{\"train_batch_size\": 16, \"bf16\": {\"enabled\": 1}}"),
            "a.json:1:35: bf16.enabled is '1'; write true or false");
  EXPECT_EQ(refusal("{\"train_batch_size\": 16, \"train_batch_size\": 32}"),
            "a.json:1:26: 'train_batch_size' is given twice; keep one of them");
  EXPECT_EQ(refusal("[1]"), "a.json: a list where an object is expected; give a DeepSpeed configuration");
  EXPECT_EQ(refusal("1"), "a.json: a value where an object is expected; give a DeepSpeed configuration");
  EXPECT_EQ(refusal("{\"a\": "), "a.json:1:7: the JSON is truncated or invalid; write JSON");
  EXPECT_EQ(refusal("{\"train_batch_size\": 16}", {{"--gpus", "0"}}),
            "--gpus is '0'; write a whole number of at least 1");
}

TEST_F(Deepspeed, ValuesThatTheFileLacksNeedAFlag) {
  std::ofstream("a.json") << "{\"train_batch_size\": 16}";
  const auto refusal_with = [](const Flags& flags) {
    Source source{"a.json", "a"};
    for (const auto& [flag, value] : flags) {
      source.options.set(flag, {value});
    }
    try {
      read_deepspeed(source);
    } catch (const ConfigError& error) {
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  EXPECT_EQ(refusal_with({}), "a.json: a DeepSpeed configuration does not state the number of GPUs; add --gpus N");
  EXPECT_EQ(refusal_with({{"--gpus", "16"}}),
            "a.json: a DeepSpeed configuration does not state the model; add --model NAME");
  EXPECT_EQ(refusal_with({{"--gpus", "16"}, {"--model", "llama-3.1-8b"}}),
            "a.json: a DeepSpeed configuration does not state the sequence length; add --seq N");
}

TEST_F(Deepspeed, GradientsAreReducedInTheCommunicationDtypeOfDeepspeed) {
  const auto dtype = [](const std::string& keys) {
    const Imported import =
        read(R"({"train_micro_batch_size_per_gpu": 1, "zero_optimization": {"stage": 3}, )" + keys + "}");
    EXPECT_TRUE(import.notes.empty()) << keys;
    EXPECT_TRUE(import.step.overlap_gradients) << keys;
    return import.step.gradient_dtype;
  };
  EXPECT_EQ(dtype(R"("bf16": {"enabled": true})"), "bf16");
  EXPECT_EQ(dtype(R"("fp16": {"enabled": true}, "communication_data_type": null)"), "fp16");
  EXPECT_EQ(dtype(R"("bf16": {"enabled": true}, "communication_data_type": "fp32")"), "fp32");
  EXPECT_EQ(dtype(R"("bf16": {"enabled": false})"), "fp32");
  EXPECT_EQ(dtype(R"("torch_autocast": {"enabled": true})"), "fp32");
  EXPECT_EQ(refusal(R"({"train_micro_batch_size_per_gpu": 1, "communication_data_type": "int8"})"),
            "a.json:1:39: communication_data_type is 'int8'; write fp32, bf16 or fp16");
}

TEST_F(Deepspeed, EverySkippedKeyIsReported) {
  for (const Unsupported& entry : deepspeed_keys().unsupported) {
    std::string key(entry.key);
    std::ranges::replace(key, '*', 'x');
    std::string text = "\"other\"";
    std::string rest = key;
    for (std::size_t dot = rest.rfind('.'); !rest.empty(); dot = rest.rfind('.')) {
      const std::size_t begin = dot == std::string::npos ? 0 : dot + 1;
      text = "{\"" + rest.substr(begin) + "\": " + text + "}";
      rest.resize(begin == 0 ? 0 : dot);
    }
    const Imported import = read(R"({"train_micro_batch_size_per_gpu": 1, )" + text.substr(1));
    const bool is_reported = std::ranges::any_of(import.notes, [&](const std::string& note) {
      return note.ends_with("'" + key + "' = 'other' has no counterpart and is ignored: " + std::string(entry.instead));
    });
    EXPECT_TRUE(is_reported) << key;
  }
}

}  // namespace
}  // namespace commfuse::import
