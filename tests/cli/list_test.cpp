// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "tests/cli/program.h"

namespace commfuse::test {
namespace {

namespace fs = std::filesystem;

std::size_t line_count(const std::string& text) {
  return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
}

TEST(List, HasALineForEachFileOfTheCatalogue) {
  for (const auto& [what, folder] : {std::pair("models", "models"),
                                     {"hardware", "hardware"},
                                     {"clusters", "clusters"},
                                     {"implementations", "implementations"},
                                     {"frameworks", "frameworks"}}) {
    std::size_t files = 0;
    for (const fs::directory_entry& entry :
         fs::directory_iterator(std::string(COMMFUSE_SOURCE_DIR "/configs/") + folder)) {
      files += entry.path().extension() == ".yaml" ? 1 : 0;
    }
    const Outcome outcome = run_program(fmt::format("commfuse-sim list {} -o csv", what));
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_EQ(line_count(outcome.out), files + 1) << outcome.out;
  }
}

TEST(List, NoLineIsWiderThanTheTerminal) {
  for (const char* command : {"list models", "list strategies", "list hardware", "list clusters", "list scopes",
                              "list implementations", "list frameworks", "config explain", "config explain plan"}) {
    for (const std::size_t columns : {80U, 100U}) {
      std::istringstream lines(run_program(fmt::format("env COLUMNS={} commfuse-sim {}", columns, command)).out);
      for (std::string line; std::getline(lines, line);) {
        EXPECT_LE(line.size(), columns) << command << ": " << line;
        EXPECT_FALSE(line.ends_with(' ')) << command << ": '" << line << "'";
      }
    }
  }
}

TEST(List, AModelWithoutFeaturesTakesOneLine) {
  const Outcome models = run_program("env COLUMNS=80 commfuse-sim list models");
  EXPECT_NE(models.out.find("\nbloom-176b                 176.2B  176.2B      70   14336\ncommfuse-paper-mlp "),
            std::string::npos)
      << models.out;
}

TEST(List, DescribesEveryScopeAndStrategy) {
  const Outcome scopes = run_program("commfuse-sim list scopes -o csv");
  EXPECT_NE(scopes.out.find("decode,one decoding step of a whole model: a token per sequence"), std::string::npos)
      << scopes.out;
  EXPECT_EQ(run_program("commfuse-sim list strategies").code, 0);
}

TEST(List, ImplementationsNameTheirStrategyAndMeasuredMachines) {
  const std::string list = "commfuse-sim list implementations";
  const Outcome csv = run_program(list + " -o csv");
  EXPECT_EQ(csv.code, 0) << csv.err;
  EXPECT_EQ(csv.out.rfind("implementation,strategy,transport,measured on,what it does\r\n", 0), 0U) << csv.out;
  EXPECT_NE(csv.out.find("\nflux,fused_kernel,stores,\"ampere, hopper\",one CUTLASS kernel per site;"),
            std::string::npos)
      << csv.out;
  EXPECT_NE(run_program(list + " -o markdown").out.find("\n| typical | fused_kernel | stores | - | a fused kernel"),
            std::string::npos);
  EXPECT_NE(run_program("commfuse-sim list").out.find("\nimplementations\n"), std::string::npos);
  const Outcome folder = run_program(list + " configs");
  EXPECT_EQ(folder.code, 2);
  EXPECT_EQ(folder.err, "FOLDER: only models can be listed from a folder; remove FOLDER, or list models\n");
}

TEST(List, FrameworksListTheirOverlapAndTheSpeedOfTheHost) {
  const std::string list = "commfuse-sim list frameworks";
  const Outcome csv = run_program(list + " -o csv");
  EXPECT_EQ(csv.code, 0) << csv.err;
  EXPECT_EQ(csv.out.rfind("framework,tensor parallel,gradients,issue/us,what it is\r\n", 0), 0U) << csv.out;
  EXPECT_NE(csv.out.find("\nmegatron-deepspeed-2023,serial,fp16,71.5,\"Megatron-DeepSpeed with"), std::string::npos)
      << csv.out;
  EXPECT_NE(csv.out.find("\nmindspeed,sliced,fp32,12,MindSpeed-LLM"), std::string::npos) << csv.out;
  EXPECT_NE(csv.out.find("\ndeepspeed,exposed,bf16,15,\"DeepSpeed"), std::string::npos) << csv.out;
  EXPECT_NE(run_program(list + " -o markdown").out.find("\n| megatron-bridge | te | bf16 | 12 | NeMo"),
            std::string::npos);
  EXPECT_NE(run_program("commfuse-sim list").out.find("\nframeworks\n"), std::string::npos);
  const Outcome folder = run_program(list + " configs");
  EXPECT_EQ(folder.code, 2);
  EXPECT_EQ(folder.err, "FOLDER: only models can be listed from a folder; remove FOLDER, or list models\n");
}

TEST(List, OtherWordsForHardwareHaveNoFolderEither) {
  for (const std::string word : {"gpus", "machines"}) {
    EXPECT_EQ(run_program("commfuse-sim list " + word).out, run_program("commfuse-sim list hardware").out);
    const Outcome folder = run_program("commfuse-sim list " + word + " configs");
    EXPECT_EQ(folder.code, 2);
    EXPECT_EQ(folder.err, "FOLDER: only models can be listed from a folder; remove FOLDER, or list models\n");
  }
}

TEST(List, ReadsAFolderOfConfigs) {
  const fs::path folder = fs::temp_directory_path() / ("commfuse-list-" + std::to_string(getpid()));
  fs::create_directories(folder / "one");
  std::ofstream(folder / "one" / "config.json")
      << R"({"model_type": "qwen3_moe", "hidden_size": 1024, "num_hidden_layers": 8, "num_attention_heads": 16,
    "num_key_value_heads": 8, "vocab_size": 1024, "num_experts": 16, "num_experts_per_tok": 2,
    "moe_intermediate_size": 512})";
  const Outcome outcome = run_program("commfuse-sim list models " + folder.string() + " -o markdown");
  EXPECT_EQ(outcome.out,
            "| model | parameters | active | layers | hidden | features |\n"
            "|---|---:|---:|---:|---:|---|\n"
            "| one | 229M | 53M | 8 | 1024 | 8 kv heads, 2 of 16 experts |\n");
  fs::remove_all(folder);
  EXPECT_EQ(run_program("commfuse-sim list models " + folder.string()).code, 2);
}

TEST(List, SkipsOtherFilesOfAModelAndLinksThatLeadNowhere) {
  const fs::path folder = fs::temp_directory_path() / ("commfuse-list-links-" + std::to_string(getpid()));
  fs::create_directories(folder / "tiny");
  std::ofstream(folder / "tiny" / "config.json")
      << R"({"model_type": "llama", "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2,
    "num_attention_heads": 4, "num_key_value_heads": 1, "vocab_size": 256, "tie_word_embeddings": true})";
  for (const char* other :
       {"adapter_config.json", "processor_config.json", "quantize_config.json", "video_preprocessor_config.json"}) {
    std::ofstream(folder / "tiny" / other) << "{}";
  }
  for (const char* link : {"a", "b", "c", "z"}) {  // one of them is probably the last entry of the folder
    fs::create_symlink("absent", folder / link);
  }
  const Outcome outcome = run_program("commfuse-sim list models " + folder.string() + " -o csv");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  // 256 x 64 of the embedding; per layer 2 x 64 x 64 and 2 x 64 x 16 of attention, 3 x 64 x 128 of the MLP and two
  // norms of 64; a last norm of 64: 16,384 + 2 x (10,240 + 24,576 + 128) + 64 = 86,336.
  EXPECT_NE(outcome.out.find("\ntiny,86K,"), std::string::npos) << outcome.out;
  EXPECT_NE(outcome.out.find(",1 kv head\r\n"), std::string::npos) << outcome.out;
  fs::remove_all(folder);
}

/// --model also takes a folder, or a name in the Hugging Face cache.
TEST(Models, AreFoundInTheHuggingFaceCache) {
  const fs::path home = fs::temp_directory_path() / ("commfuse-cache-" + std::to_string(getpid()));
  const fs::path snapshot = home / "hub" / "models--me--mine" / "snapshots" / "abc";
  fs::create_directories(snapshot);
  fs::create_directories(home / "hub" / "models--me--mine" / "refs");
  std::ofstream(home / "hub" / "models--me--mine" / "refs" / "main") << "abc";
  std::ofstream(snapshot / "config.json")
      << R"({"model_type": "llama", "hidden_size": 1024, "intermediate_size": 3072, "num_hidden_layers": 4,
    "num_attention_heads": 16, "num_key_value_heads": 8, "vocab_size": 1024})";
  const std::string cache = "env HF_HOME=" + home.string() + " ";
  const Outcome outcome = run_program(cache + "commfuse-sim run --model me/mine --ranks 2");
  EXPECT_EQ(outcome.out.rfind("mine mlp on h100-sxm", 0), 0U) << outcome.out;
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(run_program("commfuse-sim run --ranks 2 --model " + snapshot.string()).code, 0);
  EXPECT_EQ(run_program(cache + "commfuse-sim run --model me/other").code, 2);
  fs::remove_all(home);
}

}  // namespace
}  // namespace commfuse::test
