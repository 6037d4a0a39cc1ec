// SPDX-License-Identifier: Apache-2.0
// Tests that text for people fits a terminal of 80 columns, in colour and through a pipe.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <pty.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "tests/cli/program.h"
#include "tests/own_folder.h"

namespace commfuse::test {
namespace {

constexpr std::size_t columns = 80;

/// Runs a command in a terminal of 80 columns; returns its stdout and stderr as shown there.
std::string shown_on_terminal(const std::string& command) {
  winsize size{};
  size.ws_row = 24;
  size.ws_col = columns;
  int terminal = -1;
  const pid_t child = ::forkpty(&terminal, nullptr, nullptr, &size);
  if (child == 0) {
    const std::string line =
        "unset COLUMNS NO_COLOR; TERM=xterm-256color PATH=\"${PROGRAMS_UNDER_TEST:-" COMMFUSE_BIN_DIR
        "}:$PATH\" COMMFUSE_CONFIG_DIR=\"" COMMFUSE_SOURCE_DIR "/configs\" " +
        command;
    ::execl("/bin/sh", "sh", "-c", line.c_str(), static_cast<char*>(nullptr));
    ::_exit(127);
  }
  std::string shown;
  std::array<char, 1 << 16> bytes{};
  for (ssize_t count = 0; (count = ::read(terminal, bytes.data(), bytes.size())) > 0;) {
    shown.append(bytes.data(), static_cast<std::size_t>(count));
  }
  ::close(terminal);
  int status = 0;
  ::waitpid(child, &status, 0);
  return shown;
}

/// Returns the columns that a line takes on the screen: bytes without colour codes and UTF-8 continuations, after the
/// last carriage return.
std::size_t width_of(std::string_view line) {
  std::size_t width = 0;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '\x1b') {
      i = std::min(line.find_first_of("mKAJhl", i), line.size());
    } else if (line[i] == '\r' && i + 1 < line.size()) {
      width = 0;
    } else {
      width += line[i] == '\r' || (static_cast<unsigned char>(line[i]) & 0xc0U) == 0x80 ? 0 : 1;
    }
  }
  return width;
}

/// Returns the first line that exceeds 80 columns; empty if there is none.
std::string too_wide_line(const std::string& text) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (width_of(line) > columns) {
      return line;
    }
  }
  return "";
}

void expect_fits(const std::string& command) {
  const std::string shown = shown_on_terminal(command);
  EXPECT_GT(shown.size(), 20U) << command;
  EXPECT_EQ(too_wide_line(shown), "") << command;
  EXPECT_EQ(too_wide_line(run_program("env -u COLUMNS " + command).out), "") << command;
}

class Width : public testing::Test {
 protected:
  static void sweep(const std::string& yaml, const std::string& out, const std::string& more = "") {
    const std::string command =
        fmt::format("commfuse-sim sweep {}/configs/sweeps/{} --out {} {}", COMMFUSE_SOURCE_DIR, yaml, out, more);
    expect_fits(command + " --force");
  }
  const OwnFolder folder_;
};

TEST(WidthOfALine, CountsCharactersButNoEscapeCodes) {
  EXPECT_EQ(width_of("\x1b[1mab\x1b[0m\r"), 2U);
  EXPECT_EQ(width_of("\u2501\u2501"), 2U);
  EXPECT_EQ(width_of("12345\r12"), 2U);
  EXPECT_EQ(too_wide_line(std::string(80, 'x') + "\n" + std::string(81, 'y') + "\n"), std::string(81, 'y'));
  EXPECT_NE(shown_on_terminal("commfuse-sim run --scope down --seq 32K --strategy serial,commfuse --uncertainty off")
                .find("\x1b[1m"),
            std::string::npos);
}

TEST_F(Width, RunsFit) {
  for (const char* options :
       {"", "--as all", "--scope down --seq 32K --as all", "--axis seq=1K..8K --axis ranks=2,8",
        "--axis seq=1K..64K --axis ranks=2,4,8 -o map", "--axis link_bandwidth=x0.25..x4 -o map",
        "--seq 8K --jitter default", "--scope step --model llama-3.1-8b",
        "--scope step --hardware h100 --gpus 4096 --tp 8 --seq 8K",
        "--scope decode --model llama-3.1-8b --jitter default --price 2.80",
        "--scope step --model llama-2-7b --hardware dgx-h100-x16 --ranks 1 --data-parallel 128 --batch 256 "
        "--micro-batch 2 --framework fsdp --jitter default --measured-step 853ms"}) {
    expect_fits(fmt::format("commfuse-sim run {}", options));
  }
  expect_fits("commfuse-sim why --seq 8K");
  expect_fits("commfuse-sim why --model llama-3.1-8b --seq 8K --strategy sliced");
}

TEST_F(Width, StoresOfLayersFit) {
  sweep("demo.yaml", "demo", "--axis seq=1K,128K");
  sweep("llama-mlp.yaml", "mlp", "--axis seq=1K,64K --jitter default");
  sweep("crossover.yaml", "crossover", "--axis seq=1K,32K");
  sweep("paper-table3.yaml", "paper");
  for (const char* store : {"demo", "mlp", "crossover", "paper"}) {
    for (const char* command :
         {"results", "best", "best --bounds", "results --limit 1", "best --per ranks --by -mfu"}) {
      expect_fits(fmt::format("commfuse-sim {} {}", command, store));
    }
  }
  for (const char* other : {"mlp", "crossover", "demo"}) {
    expect_fits(fmt::format("commfuse-sim diff demo {}", other));
  }
}

TEST_F(Width, WholeModelResultsAndMixedResultsFit) {
  sweep("training-plans.yaml", "plans");
  expect_fits("commfuse-sim results plans");
  expect_fits("commfuse-sim best plans");
  std::ofstream("both.jsonl")
      << run_program("commfuse-sim run --ranks 4 -o jsonl").out
      << run_program("commfuse-sim run --scope step --model llama-3.1-8b --ranks 4 -o jsonl").out;
  expect_fits("commfuse-sim results both.jsonl");
  expect_fits("commfuse-sim best both.jsonl");
}

TEST_F(Width, PlansAndLayoutsFit) {
  for (const char* plan : {"train-70b", "compare-gpus"}) {
    expect_fits(fmt::format("commfuse-sim plan {}", plan));
  }
  expect_fits("commfuse-sim tune --model llama-3.1-8b --cluster dgx-h100 --gpus 16 --seq 8K");
}

TEST_F(Width, SitesWithLongNamesFit) {
  std::ofstream("shared.yaml") << "schema: commfuse.model/1\nname: shared\nlayers: 4\nhidden: 1024\nffn: 4096\n"
                                  "heads: 16\nkv_heads: 8\nhead_dim: 64\nvocab: 32000\ngated_mlp: true\n"
                                  "experts: {count: 8, active: 2, ffn: 512, shared: 1}\n";
  const std::string tune = "commfuse-sim tune --model ./shared.yaml --hardware h100-sxm --ranks 8 --seq 4K --batch 8";
  EXPECT_NE(run_program(tune).out.find("\n  shared_gate_up_backward\n                    "), std::string::npos);
  expect_fits(tune);
}

TEST_F(Width, ExpectationsFit) {
  for (const char* options : {"--hardware h100-sxm", "--hardware mi300x", "--hardware dgx-h100-x2 --nodes 32",
                              "--hardware dgx-h100-x2 --nodes 100000 --sizes 1M",
                              "--hardware h100-sxm --gemm 8Kx8Kx8K --copy 1G", "--hardware h100-sxm --scope mlp",
                              "--model llama-3.1-405b --hardware a100-sxm-80 --scope layer --set seq=32K"}) {
    expect_fits(fmt::format("commfuse-sim expect {}", options));
  }
}

TEST_F(Width, ListsAndExplanationsFit) {
  for (const char* command : {"list models",
                              "list hardware",
                              "list clusters",
                              "list strategies",
                              "list implementations",
                              "list frameworks",
                              "list scopes",
                              "config show",
                              "config explain",
                              "config explain plan",
                              "config explain strategy.name",
                              "config explain hardware",
                              "config explain model",
                              "config explain plan.gpus",
                              "version",
                              "schedule list",
                              "schedule show --scope down --strategy commfuse --ranks 8",
                              "schedule show --scope layer --ranks 4",
                              "schedule check --ranks 2",
                              "schedule export --strategy commfuse --out schedule.yaml"}) {
    expect_fits(fmt::format("commfuse-sim {}", command));
  }
}

TEST_F(Width, ScoresFit) {
  for (const char* command : {"score", "score --dynamic", "score --pairs", "score --held-out"}) {
    expect_fits(fmt::format("commfuse-sim {} --progress none", command));
  }
  const std::string data = COMMFUSE_SOURCE_DIR "/../shared/data/measured";
  if (!std::filesystem::is_directory(data)) {
    GTEST_SKIP() << "score --verdicts needs the measured tables, which are not in this repository; folder not found: "
                 << data;
  }
  expect_fits("commfuse-sim score --verdicts --data " + data);
}

TEST_F(Width, PlansThatMissTheirLimitsAndLongTimesFit) {
  expect_fits("commfuse-sim run --seq 2M --batch 16");
  expect_fits("commfuse-sim why --seq 512K");
  expect_fits("commfuse-sim plan --model llama-3.1-8b --tokens 1e11 --gpus h100 --price 2 --deadline 1d --budget 4k");
}

TEST_F(Width, TheValidatorFits) {
  for (const char* command :
       {"check --scope ag_gemm --ranks 4", "version", "doctor",
        "run --scope gate_up --ranks 2 --seq 256 --model 256x512", "links --ranks 2 --bytes 8K,64K"}) {
    expect_fits(fmt::format("commfuse-validate {}", command));
  }
}

TEST_F(Width, MessagesWrapOnATerminalAndStayOnOneLineInAPipe) {
  for (const char* command : {"run --no-such-flag", "run --scope gemm", "run --hardware mi300x --model mixtral-8x7b",
                              "why --scope step", "results absent", "expect --zzzzzzzz"}) {
    const std::string full = fmt::format("commfuse-sim {}", command);
    EXPECT_EQ(too_wide_line(shown_on_terminal(full)), "") << full;
    const std::string sentence = run_program(full).err;
    EXPECT_EQ(std::count(sentence.begin(), sentence.end(), '\n'), 1) << sentence;
  }
}

}  // namespace
}  // namespace commfuse::test
