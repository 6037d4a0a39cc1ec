// SPDX-License-Identifier: Apache-2.0
#include "model/config/read_kernel_choice.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

#include "model/config/catalogue.h"
#include "model/cost/gemm.h"
#include "model/fit/kernel_choice_fit.h"
#include "tests/own_folder.h"
#include "tests/refusal.h"

namespace commfuse {
namespace {

using test::refusal_of;

/// Writes machine.yaml, which extends `base` with these lines under `dtype`, into the working folder.
void write_extension(const std::string& base, const std::string& dtype, const std::string& lines) {
  std::ofstream("machine.yaml") << "schema: commfuse.hardware/1\nname: mine\nextends: " + base +
                                       "\naccelerator:\n  matrix_units:\n    " + dtype + ":\n" + lines;
}

void write_machine(const std::string& lines) { write_extension("h20-sxm", "bf16", lines); }

const MatrixUnit& bf16_of(const Machine& machine) { return machine.accelerator.matrix_unit(DType::bf16); }

TEST(ReadKernelChoice, ReadsWhatTheFitWrites) {
  const OwnFolder folder;
  KernelChoice choice;
  choice.provenance = Provenance::fitted;
  choice.source = "mine.csv";
  for (std::size_t i = 0; i < KernelChoice::size; ++i) {
    choice.factors[i] = static_cast<double>(900 + i % 200) / 1000.0;
  }
  for (std::size_t i = 0; i < KernelChoice::narrow_size; ++i) {
    choice.narrow[i] = static_cast<double>(800 + i) / 1000.0;
  }
  write_machine(kernel_choice_yaml(choice, 6));
  const Machine machine = load_machine("machine.yaml");
  ASSERT_NE(bf16_of(machine).kernel_choice, nullptr);
  EXPECT_EQ(bf16_of(machine).kernel_choice->factors, choice.factors);
  EXPECT_EQ(bf16_of(machine).kernel_choice->narrow, choice.narrow);
  EXPECT_EQ(bf16_of(machine).kernel_choice->provenance, Provenance::fitted);
  EXPECT_EQ(bf16_of(machine).kernel_choice->source, "mine.csv");
}

TEST(ReadKernelChoice, NamesTheTableOfAnotherFile) {
  const OwnFolder folder;
  write_machine("      kernel_choice: {as: h100-sxm/bf16}\n");
  const Machine machine = load_machine("machine.yaml");
  ASSERT_NE(bf16_of(machine).kernel_choice, nullptr);
  EXPECT_EQ(bf16_of(machine).kernel_choice->factors, bf16_of(load_machine("h100-sxm")).kernel_choice->factors);
}

TEST(ReadKernelChoice, TheNameOfAnotherFileMayBeAPath) {
  const OwnFolder folder;
  write_machine("      kernel_choice: {as: " COMMFUSE_SOURCE_DIR "/configs/hardware/h100-sxm.yaml/bf16}\n");
  EXPECT_EQ(bf16_of(load_machine("machine.yaml")).kernel_choice->factors,
            bf16_of(load_machine("h100-sxm")).kernel_choice->factors);
}

TEST(ReadKernelChoice, APathStartsAtTheFolderOfTheFile) {
  const OwnFolder folder;
  write_machine("      kernel_choice: {as: ./a100.yaml/bf16}\n");
  std::filesystem::create_directory("sub");
  std::filesystem::rename("machine.yaml", "sub/machine.yaml");
  std::filesystem::copy_file(COMMFUSE_SOURCE_DIR "/configs/hardware/a100-sxm-80.yaml", "sub/a100.yaml");
  EXPECT_EQ(bf16_of(load_machine("sub/machine.yaml")).kernel_choice->factors,
            bf16_of(load_machine("a100-sxm-80")).kernel_choice->factors);
}

TEST(ReadKernelChoice, AnInheritedPathStartsAtTheFolderOfTheBase) {
  const OwnFolder folder;
  write_machine("      kernel_choice: {as: ./table.yaml/bf16}\n");
  std::filesystem::create_directory("sub");
  std::filesystem::rename("machine.yaml", "sub/base.yaml");
  std::filesystem::copy_file(COMMFUSE_SOURCE_DIR "/configs/hardware/a100-sxm-80.yaml", "sub/table.yaml");
  std::ofstream("middle.yaml") << "schema: commfuse.hardware/1\nname: middle\nextends: ./sub/base.yaml\n";
  write_extension("./middle.yaml", "fp16", "      kernel_choice: {as: h100-sxm/bf16}\n");
  const Machine machine = load_machine("machine.yaml");
  EXPECT_EQ(bf16_of(machine).kernel_choice->factors, bf16_of(load_machine("a100-sxm-80")).kernel_choice->factors);
  EXPECT_EQ(machine.accelerator.matrix_unit(DType::fp16).kernel_choice->factors,
            bf16_of(load_machine("h100-sxm")).kernel_choice->factors);
}

TEST(ReadKernelChoice, ScalesTheTimeButNotBelowTheFloor) {
  const OwnFolder folder;
  const Accelerator plain = load_machine("h20-sxm").accelerator;
  KernelChoice choice;
  choice.factors.fill(1.5);
  Accelerator slower = plain;
  slower.matrix_units[index_of(DType::bf16)]->kernel_choice = std::make_shared<const KernelChoice>(choice);
  const GemmSize size{.m = 4096, .n = 4096, .k = 4096};
  const double ratio =
      to_seconds(estimate_gemm(slower, size, slower.sms).time) / to_seconds(estimate_gemm(plain, size, plain.sms).time);
  EXPECT_NEAR(ratio, 1.5, 1e-6);
  choice.factors.fill(0.1);
  slower.matrix_units[index_of(DType::bf16)]->kernel_choice = std::make_shared<const KernelChoice>(choice);
  EXPECT_EQ(estimate_gemm(slower, {.m = 1, .n = 64, .k = 64}, slower.sms).time, plain.kernel_floor.value);
}

TEST(ReadKernelChoice, ReplacesTheWholeTableOfTheExtendedFile) {
  const OwnFolder folder;
  KernelChoice choice;
  choice.source = "mine";
  choice.factors.fill(1.25);
  write_extension("h100-sxm", "fp16", kernel_choice_yaml(choice, 6));  // h100-sxm has `as` for fp16
  EXPECT_EQ(load_machine("machine.yaml").accelerator.matrix_unit(DType::fp16).kernel_choice->factors, choice.factors);
  write_extension("h100-sxm", "bf16", "      kernel_choice: {as: a100-sxm-80/bf16}\n");  // and a table for bf16
  EXPECT_EQ(bf16_of(load_machine("machine.yaml")).kernel_choice->factors,
            bf16_of(load_machine("a100-sxm-80")).kernel_choice->factors);
}

TEST(ReadKernelChoice, RefusesATableBesideTheNameOfAnother) {
  const OwnFolder folder;
  write_extension("h20-sxm", "bf16", "      kernel_choice: {as: h100-sxm/bf16, provenance: 'prior: why'}\n");
  EXPECT_EQ(
      refusal_of([] { load_machine("machine.yaml"); }),
      "machine.yaml:7:27: 'as' names the table of another file, but this map also has a table; remove one of them");
}

TEST(ReadKernelChoice, TheTableOfNarrowGemmsIsOptionalButWhole) {
  const OwnFolder folder;
  KernelChoice choice;
  choice.source = "mine";
  write_machine(kernel_choice_yaml(choice, 6));
  EXPECT_EQ(bf16_of(load_machine("machine.yaml")).kernel_choice->narrow, KernelChoice{}.narrow);
  choice.narrow.fill(1.5);
  std::string table = kernel_choice_yaml(choice, 6);
  const std::size_t row = table.rfind('\n', table.find("n_64: ")) + 1;
  write_machine(table.substr(0, row) + table.substr(table.find('\n', row) + 1));
  EXPECT_NE(refusal_of([] { load_machine("machine.yaml"); }).find("n_64"), std::string::npos);
  write_extension("h20-sxm", "bf16", "      kernel_choice: {as: h100-sxm/bf16, narrow: {}}\n");
  EXPECT_NE(refusal_of([] { load_machine("machine.yaml"); }).find("but this map also has a table"), std::string::npos);
}

TEST(ReadKernelChoice, RefusesMapsThatAreNotATable) {
  const OwnFolder folder;
  const auto refusal_with = [](const std::string& line) {
    write_machine("      kernel_choice: " + line + "\n");
    return refusal_of([] { load_machine("machine.yaml"); });
  };
  EXPECT_EQ(refusal_with("{as: h100-sxm}"),
            "machine.yaml:7:27: 'h100-sxm' names no table; write a hardware file and a dtype, as in h100-sxm/bf16");
  EXPECT_EQ(refusal_with("{as: h20-sxm/bf16}").find("machine.yaml:7:27: "), 0U);
  EXPECT_NE(
      refusal_with("{as: h20-sxm/bf16}").find("has no table kernel_choice under 'bf16'; name a file that has one"),
      std::string::npos);
  EXPECT_NE(refusal_with("{as: h99/bf16}").find("h99"), std::string::npos);
  KernelChoice choice;
  choice.source = "mine";
  std::string table = kernel_choice_yaml(choice, 6);
  table.replace(table.find("prior"), 5, "guessed");
  write_machine(table);
  EXPECT_NE(refusal_of([] { load_machine("machine.yaml"); }).find("unknown provenance 'guessed: mine'"),
            std::string::npos);
  table.replace(table.find("guessed"), 7, "fitted");
  table.replace(table.find("[1000, "), 7, "[");
  write_machine(table);
  EXPECT_NE(refusal_of([] {
              load_machine("machine.yaml");
            }).find("'1/128' has 8 items; write 9, in thousandths of the formula's time, for k of 2^5 to 2^16"),
            std::string::npos);
  std::filesystem::rename("machine.yaml", "broken.yaml");
  EXPECT_EQ(
      refusal_with("{as: ./broken.yaml/bf16}"),
      "machine.yaml:7:27: the table kernel_choice under 'bf16' in ./broken.yaml has mistakes; correct them there");
}

TEST(ReadKernelChoice, AWrongRowIsASingleMistake) {
  const OwnFolder folder;
  KernelChoice choice;
  choice.source = "mine";
  const auto refusal_of_row = [&](const std::string& row) {
    std::string table = kernel_choice_yaml(choice, 6);
    const std::size_t begin = table.find('[');
    write_machine(table.replace(begin, table.find(']') + 1 - begin, row));
    std::string message = refusal_of([] { load_machine("machine.yaml"); });
    return message.substr(message.find(": ") + 2);
  };
  EXPECT_EQ(refusal_of_row("[1000]"),
            "'1/128' has 1 item; write 9, in thousandths of the formula's time, for k of 2^5 to 2^16");
  EXPECT_EQ(refusal_of_row("[1, 1, 1, 1, 1, 1, 1, 1, 1]"),
            "an item of '1/128' is not a whole number from 100 to 10000; write [100]");
  EXPECT_EQ(refusal_of_row("1000"), "'1/128' is not a list; write [100]");
}

}  // namespace
}  // namespace commfuse
