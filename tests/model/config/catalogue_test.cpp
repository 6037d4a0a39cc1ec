// SPDX-License-Identifier: Apache-2.0
#include "model/config/catalogue.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "model/config_error.h"
#include "tests/refusal.h"
#include "tests/shipped.h"

namespace commfuse {
namespace {

using test::configs_folder;
using test::refusal_of;

namespace fs = std::filesystem;

class CatalogueTest : public ::testing::Test {
 protected:
  void SetUp() override {
    file_ = fs::temp_directory_path() / ("commfuse-catalogue-" + std::to_string(getpid()) + ".yaml");
  }
  void TearDown() override { fs::remove(file_); }

  /// Writes a file of the catalogue with one string replaced by another, and returns the path of the copy.
  std::string changed(const std::string& source, const std::string& from, const std::string& to) const {
    std::ifstream in(configs_folder + "/" + source);
    std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
    const std::size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    text.replace(at, from.size(), to);
    std::ofstream(file_) << text;
    return file_.string();
  }

  /// Returns the message about a changed model file, without the leading path.
  std::string model_refusal(const std::string& from, const std::string& to) const {
    const std::string path = changed("models/llama-3.1-70b.yaml", from, to);
    return without_path(refusal_of([&] { load_model(path); }));
  }
  std::string machine_refusal(const std::string& from, const std::string& to) const {
    const std::string path = changed("hardware/h100-sxm.yaml", from, to);
    return without_path(refusal_of([&] { load_machine(path); }));
  }
  std::string without_path(std::string message) const {
    const std::string prefix = file_.string() + ":";
    for (std::size_t at = message.find(prefix); at != std::string::npos; at = message.find(prefix)) {
      message.erase(at, prefix.size());
    }
    return message;
  }

 private:
  fs::path file_;
};

TEST_F(CatalogueTest, EveryModelFileLoadsUnderItsOwnName) {
  const std::vector<std::string> names = known_names(Catalogue::models);
  EXPECT_GE(names.size(), 3u);
  for (const std::string& name : names) {
    const Transformer model = load_model(name);
    EXPECT_EQ(model.name, name);
    EXPECT_EQ(model.heads % model.kv_heads, 0);
  }
}

TEST_F(CatalogueTest, EveryHardwareFileLoadsUnderItsOwnName) {
  const std::vector<std::string> names = known_names(Catalogue::hardware);
  EXPECT_GE(names.size(), 1u);
  for (const std::string& name : names) {
    EXPECT_EQ(load_machine(name).name, name);
  }
}

TEST_F(CatalogueTest, NoKernelOfAShippedGpuWaitsLongerInAGraphThanInAStream) {
  for (const std::string& name : known_names(Catalogue::hardware)) {
    const Accelerator accelerator = load_machine(name).accelerator;
    if (name != "cpu") {  // On a CPU, launch_cost already includes the wait in a stream.
      EXPECT_LE(accelerator.graph_node_gap.value, accelerator.stream_gap.value) << name;
    }
    EXPECT_FALSE(accelerator.stream_gap.source.empty()) << name;
  }
}

TEST_F(CatalogueTest, EveryConfigBeginsWithACommentAndNamesItsSchema) {
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(configs_folder)) {
    if (entry.path().extension() != ".yaml") {
      continue;
    }
    std::ifstream in(entry.path());
    std::string first_line;
    std::getline(in, first_line);
    EXPECT_EQ(first_line.substr(0, 2), "# ") << entry.path();
    const std::string rest((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
    EXPECT_NE(rest.find("schema: commfuse."), std::string::npos) << entry.path();
  }
}

TEST_F(CatalogueTest, Llama70bHas70BillionParameters) {
  const Transformer model = load_model("llama-3.1-70b");
  const std::int64_t attention = model.hidden * model.head_dim * 2 * (model.heads + model.kv_heads);
  const std::int64_t mlp = 3 * model.hidden * model.ffn;
  // 80 layers and two vocabulary tables: 70.55e9 without the norms.
  EXPECT_EQ(model.layers * (attention + mlp) + 2 * model.vocab * model.hidden, 70'552'387'584);
}

TEST_F(CatalogueTest, Gpt3Has175BillionParameters) {
  const Transformer model = load_model("gpt-3-175b");
  EXPECT_FALSE(model.gated_mlp);
  // 12 hidden^2 per layer, plus the table of 51200 tokens.
  EXPECT_EQ(model.layers * 12 * model.hidden * model.hidden + model.vocab * model.hidden, 174'575'321'088);
}

TEST_F(CatalogueTest, TheH100NodeHasValuesAndTheirSources) {
  const Machine machine = load_machine("h100-sxm");
  EXPECT_EQ(machine.gpus_per_node, 8);
  EXPECT_EQ(machine.accelerator.sms, 132);
  EXPECT_EQ(machine.accelerator.dense_peak(DType::bf16), FlopsPerSecond{989e12});
  EXPECT_FALSE(machine.accelerator.supports(DType::fp32));
  EXPECT_EQ(machine.link.peer.rate.provenance, Provenance::fitted);
  EXPECT_EQ(machine.link.peer.ctas.value, 16);
  EXPECT_EQ(machine.accelerator.launch_cost.provenance, Provenance::prior);
  EXPECT_EQ(machine.accelerator.launch_cost.source, "as A100 SXM 80 GB, 1.6 to 4.7 us");
}

// doctor --expect compares the first word with the driver's name of the GPU, "NVIDIA A800-SXM4-80GB".
TEST_F(CatalogueTest, TheA800NamesItsOwnGpu) { EXPECT_EQ(load_machine("a800-sxm").accelerator.name, "A800 SXM 80 GB"); }

TEST_F(CatalogueTest, PathsAreKeptAndNamesAreLookedUp) {
  EXPECT_EQ(find_config(Catalogue::models, "llama-3.1-8b"), fs::path(configs_folder + "/models/llama-3.1-8b.yaml"));
  EXPECT_EQ(find_config(Catalogue::models, "./llama"), fs::path("./llama"));
  EXPECT_EQ(find_config(Catalogue::models, "own.yaml"), fs::path("own.yaml"));
  EXPECT_EQ(find_config(Catalogue::hardware, "own.yml"), fs::path("own.yml"));
}

TEST_F(CatalogueTest, ATextTooLongForAFileNameIsKept) {
  const std::string text(300, 'a');
  EXPECT_EQ(from_anywhere(Catalogue::models, text), text);
}

TEST_F(CatalogueTest, AListMayNameAllOrNone) {
  using Names = std::vector<std::string>;
  EXPECT_EQ(listed_names(Catalogue::hardware, "all"), known_names(Catalogue::hardware));
  EXPECT_EQ(listed_names(Catalogue::hardware, "none"), Names{});
  EXPECT_EQ(listed_names(Catalogue::hardware, ""), Names{});
  EXPECT_EQ(listed_names(Catalogue::hardware, "b,./a.yaml"), (Names{"b", "./a.yaml"}));
}

TEST_F(CatalogueTest, AnUnknownNameGetsTheNearestNameAndTheWholeList) {
  const auto list_of_known = [](Catalogue catalogue) {
    std::string list = "known: ";
    for (const std::string& name : known_names(catalogue)) {
      list += (list.back() == ' ' ? "" : ", ") + name;
    }
    return list;
  };
  const std::string models = list_of_known(Catalogue::models) + "; a path contains '/' or ends in .yaml or .json";
  EXPECT_EQ(refusal_of([] { load_model("llama-3.1-70B-x"); }),
            "unknown model 'llama-3.1-70B-x'; did you mean 'llama-3.1-70b'? " + models);
  // The suggestion keeps the intended generation, though llama-2-70b is spelled more similarly.
  EXPECT_EQ(refusal_of([] { load_model("llama3-70b"); }),
            "unknown model 'llama3-70b'; did you mean 'llama-3.1-70b'? " + models);
  EXPECT_EQ(refusal_of([] { load_model("perceptron"); }), "unknown model 'perceptron'; " + models);
  EXPECT_EQ(refusal_of([] { load_machine("zx81"); }), "unknown hardware 'zx81'; " + list_of_known(Catalogue::hardware) +
                                                          "; a path contains '/' or ends in .yaml");
  EXPECT_EQ(refusal_of([] { find_config(Catalogue::schedules, "no-such"); }),
            "unknown schedule 'no-such'; " + list_of_known(Catalogue::schedules) +
                "; a path contains '/' or ends in .yaml or .json");
  EXPECT_EQ(refusal_of([] { load_machine(""); }), "the hardware name is empty; " + list_of_known(Catalogue::hardware));
}

TEST_F(CatalogueTest, ANameThatEndsInJsonIsAPath) {
  EXPECT_EQ(find_config(Catalogue::models, "mine.json"), "mine.json");
  EXPECT_EQ(find_config(Catalogue::schedules, "mine.json"), "mine.json");
  EXPECT_NE(refusal_of([] { find_config(Catalogue::hardware, "mine.json"); }), "");
}

TEST_F(CatalogueTest, RefusesAnInvalidConfigFolder) {
  setenv("COMMFUSE_CONFIG_DIR", "/nowhere", 1);
  EXPECT_EQ(refusal_of([] { load_model("llama-3.1-70b"); }),
            "COMMFUSE_CONFIG_DIR is '/nowhere', which is not a folder; set it to the folder that holds models/ and "
            "hardware/, or "
            "unset it");
  setenv("COMMFUSE_CONFIG_DIR", configs_folder.c_str(), 1);
}

TEST_F(CatalogueTest, AModelFileIsCheckedFieldByField) {
  EXPECT_EQ(model_refusal("layers: 80", "layers: 0"), "4:9: 'layers' is 0; choose 1 to 10000");
  EXPECT_EQ(model_refusal("hidden: 8192", "hiden: 8192"), "5:1: unknown key 'hiden'; did you mean 'hidden'?");
  EXPECT_EQ(model_refusal("kv_heads: 8", "kv_heads: 7"),
            "8:11: 64 heads cannot share 7 kv heads evenly; choose kv_heads that divide heads");
  EXPECT_EQ(model_refusal("gated_mlp: true", "gated_mlp: yes"),
            "11:12: 'yes' is neither true nor false; write true or false");
  EXPECT_EQ(model_refusal("commfuse.model/1", "commfuse.model/9"),
            "2:9: schema is 'commfuse.model/9', but 'commfuse.model/1' is required here; give a file of that kind");
  EXPECT_EQ(model_refusal("schema: commfuse.model/1\n", ""),
            "2:1: missing key 'schema'; add it, as in \"schema: commfuse.model/1\"");
}

TEST_F(CatalogueTest, AHardwareFileIsCheckedFieldByField) {
  EXPECT_EQ(machine_refusal("sms: 132", "sms: -132"),
            "14:8: '-132' is not a whole number; write one, as in \"sms: 8\"");
  EXPECT_EQ(machine_refusal("{value: 3350 GB/s,", "{value: 3350,"),
            "15:26: '3350' is not a bandwidth; write a number and a unit (GB/s, Gbit/s), as in \"450 GB/s\"");
  EXPECT_EQ(machine_refusal("{value: 0.88,", "{value: 88,"), "19:36: 'value' is 88; choose 0.001 to 1");
  const std::string too_long = machine_refusal("{value: 7.66 us,", "{value: 7.59 s,");
  EXPECT_EQ(too_long.substr(too_long.find(':')), ":22: 'value' is 7.59 s; choose at most 1 s");
  const std::string too_many = machine_refusal("    ctas: {value: 16,", "    ctas: {value: 132,");
  EXPECT_EQ(too_many.substr(too_many.find(':')),
            ":11: 132 CTAs leave none of the 132 SMs for computation; choose 0 to 131");
  const std::string no_source = machine_refusal(
      "graph_node_gap: {value: 0 us, provenance: \"prior: part of kernel_floor, which was measured between "
      "nodes of a graph\"}",
      "graph_node_gap: 1 us");
  EXPECT_EQ(no_source.substr(no_source.find(':')),
            ":19: 'graph_node_gap' has no provenance; write {value: 1 us, provenance: 'prior: why'}");
  const std::string too_wide = machine_refusal("wave_quantum: {value: 0.", "wave_quantum: {value: 3.");
  EXPECT_NE(too_wide.find("; choose 0 to 1"), std::string::npos) << too_wide;
}

}  // namespace
}  // namespace commfuse
