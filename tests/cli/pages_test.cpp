// SPDX-License-Identifier: Apache-2.0
// Tests the manual pages, completions and reference, which are generated from the tree that parses the command line.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "tests/cli/program.h"
#include "tests/own_folder.h"

namespace commfuse::test {
namespace {

bool contains(const std::string& text, const std::string& words) { return text.find(words) != std::string::npos; }

TEST(Pages, TheManualHasEveryCommandWithItsFlags) {
  const std::string page = run_program("commfuse-sim pages man").out;
  EXPECT_EQ(page.rfind(".TH commfuse-sim 1", 0), 0U);
  EXPECT_TRUE(contains(page, ".SS commfuse\\-sim run\n"));
  EXPECT_TRUE(contains(page, ".SS commfuse\\-sim schedule export\n"));
  EXPECT_TRUE(contains(page, "\\fB\\-\\-link\\-bandwidth\\fR \\fIRATE=x1\\fR"));
  EXPECT_TRUE(contains(run_program("commfuse-validate pages man").out, ".SS commfuse\\-validate doctor\n"));
}

TEST(Pages, ACommandShowsItsOwnExamplesOrNone) {
  for (const std::string program : {"commfuse-sim", "commfuse-validate"}) {
    EXPECT_TRUE(contains(run_program(program + " --help").out, "\nExamples:\n"));
    EXPECT_FALSE(contains(run_program(program + " version --help").out, "Examples:"));
  }
  EXPECT_FALSE(contains(run_program("commfuse-sim schedule --help").out, "Examples:"));
  EXPECT_FALSE(contains(run_program("commfuse-sim schedule list --help").out, "Examples:"));
  const std::string help = run_program("commfuse-sim schedule check --help").out;
  EXPECT_TRUE(contains(help, "  commfuse-sim schedule check "));
  EXPECT_FALSE(contains(help, "  commfuse-sim run "));
}

TEST(Pages, GroffReportsNothingAboutTheManual) {
  const OwnFolder folder;
  if (run_program("command -v groff").code != 0) {
    GTEST_SKIP() << "groff is not installed";
  }
  for (const std::string program : {"commfuse-sim", "commfuse-validate"}) {
    const Outcome outcome = run_program(program + " pages man > page.1 && groff -man -Tascii -ww -z page.1");
    EXPECT_EQ(outcome.code, 0);
    EXPECT_EQ(outcome.err, "");
  }
}

/// Returns bash's completions of the last of these words, which are split at '=' as bash splits them.
std::string completions(const std::string& words) {
  std::ofstream("ask.sh") << "set -u\nsource <(commfuse-sim pages bash)\nCOMP_WORDS=(" << words
                          << ")\nCOMP_CWORD=$((${#COMP_WORDS[@]} - 1))\n_commfuse_sim\necho \"${COMPREPLY[@]-}\"\n";
  const Outcome outcome = run_program("bash ask.sh");
  EXPECT_EQ(outcome.err, "") << words;
  return outcome.out;
}

TEST(Pages, BashCompletesCommandsAndTheirFlags) {
  const OwnFolder folder;
  EXPECT_EQ(completions("commfuse-sim sche"), "schedule schema\n");
  EXPECT_EQ(completions("commfuse-sim schedule ch"), "check\n");
  EXPECT_EQ(completions("commfuse-sim run --link-b"), "--link-bandwidth\n");
  EXPECT_EQ(completions("commfuse-sim schedule show --sco"), "--scope\n");
  EXPECT_EQ(completions("commfuse-sim run --plot --figu"), "--figure\n");
  EXPECT_EQ(completions("commfuse-sim expect --cl"), "--cluster\n");
  EXPECT_EQ(completions("commfuse-sim expect --hard"), "--hardware\n");
  EXPECT_EQ(completions("commfuse-sim schedule list ''"), "--help --help-all\n");
}

TEST(Pages, BashCompletesWords) {
  const OwnFolder folder;
  EXPECT_EQ(completions("commfuse-sim run --dtype f"), "fp16 fp32 fp8\n");
  EXPECT_EQ(completions("commfuse-sim run --dtype = f"), "fp16 fp32 fp8\n");
  EXPECT_EQ(completions("commfuse-sim run --dtype ="), "bf16 fp16 fp32 fp8\n");
  EXPECT_EQ(completions("commfuse-sim run --strategy serial,sl"), "serial,sliced\n");
  EXPECT_EQ(completions("commfuse-sim run -o js"), "json jsonl\n");
  EXPECT_EQ(completions("commfuse-sim why -o js"), "json\n");
  EXPECT_EQ(completions("commfuse-sim schedule check --scope mlp"), "mlp mlp_ar\n");
  EXPECT_EQ(completions("commfuse-sim config explain strategy.n"), "strategy.name\n");
  EXPECT_EQ(completions("commfuse-sim list clu"), "clusters\n");
  EXPECT_EQ(completions("commfuse-sim run --ranks ''"), "\n");        // The value is a number.
  EXPECT_EQ(completions("commfuse-sim run --config no-such"), "\n");  // bash continues with files.
}

TEST(Pages, BashCompletesCurrentNames) {
  const OwnFolder folder;
  EXPECT_EQ(completions("commfuse-sim run --model llama-3.1-7"), "llama-3.1-70b\n");
  EXPECT_EQ(completions("commfuse-sim tune --cluster dgx-h1"), "dgx-h100-x2\n");
  EXPECT_EQ(completions("commfuse-sim run --hardware h200-sxm,mi32"), "h200-sxm,mi325x h200-sxm,mi325x-x2\n");
  EXPECT_EQ(completions("commfuse-sim plan train"), "train-70b\n");
  EXPECT_EQ(completions("commfuse-sim sweep llama-m"), "llama-mlp\n");
  std::filesystem::create_directories("configs/models");
  std::ofstream("configs/models/mine.yaml") << "\n";
  std::ofstream("configs/models/$(touch run).yaml") << "\n";
  EXPECT_EQ(run_program("env COMMFUSE_CONFIG_DIR=configs commfuse-sim pages names models").out, "mine\n");
}

TEST(Pages, BashCompletesSettings) {
  const OwnFolder folder;
  EXPECT_EQ(completions("commfuse-sim run --set strategy.a"), "strategy.add_lane= strategy.attention=\n");
  EXPECT_EQ(completions("commfuse-sim run --set strategy.name = sl"), "sliced\n");
  EXPECT_EQ(completions("commfuse-sim run --set strategy.name =").find("all serial sliced"), 0U);
  EXPECT_EQ(completions("commfuse-sim run --axis dtype = bf16,fp3"), "bf16,fp32\n");
  EXPECT_EQ(completions("commfuse-sim run --axis threa"), "\n");  // The setting changes no result.
  EXPECT_EQ(completions("commfuse-sim run --set threa"), "threads=\n");
}

TEST(Pages, CompletionIsSilentWhereNothingIsKnown) {
  const OwnFolder folder;
  std::ofstream("ask.sh") << "export COMMFUSE_CONFIG_DIR=/nowhere\nsource <(commfuse-sim pages bash)\n"
                             "COMP_WORDS=(commfuse-sim run --model '')\nCOMP_CWORD=3\n_commfuse_sim\n"
                             "echo \"${COMPREPLY[@]}\"\n";
  const Outcome outcome = run_program("bash ask.sh");
  EXPECT_EQ(outcome.out + outcome.err, "\n");
}

TEST(Pages, ZshCompletesWithTheSameFunctions) {
  const OwnFolder folder;
  EXPECT_EQ(run_program("commfuse-validate pages zsh").out.rfind("#compdef commfuse-validate\n", 0), 0U);
  if (run_program("command -v zsh").code != 0) {
    GTEST_SKIP() << "zsh is not installed";
  }
  std::ofstream("ask.zsh") << "autoload -U compinit && compinit -u -D\nsource <(commfuse-sim pages zsh)\n"
                              "ask() { emulate -L sh; setopt kshglob noshglob braceexpand\n"
                              "  COMP_WORDS=(\"$@\"); COMP_CWORD=$(($# - 1)); COMPREPLY=(); _commfuse_sim\n"
                              "  echo \"${COMPREPLY[@]}\"; }\n"
                              "ask commfuse-sim sche\nask commfuse-sim run --model llama-3.1-7\n"
                              "ask commfuse-sim run --set strategy.name=sl\nask commfuse-sim run --dtype=f\n";
  const Outcome outcome = run_program("zsh -f ask.zsh");
  EXPECT_EQ(outcome.out,
            "schedule schema\nllama-3.1-70b\nstrategy.name=sliced\n--dtype=fp16 --dtype=fp32 --dtype=fp8\n");
  EXPECT_EQ(outcome.err, "");
}

TEST(Pages, FishCompletesValues) {
  const OwnFolder folder;
  EXPECT_TRUE(contains(run_program("commfuse-sim pages fish").out,
                       "complete -c commfuse-sim -n '__fish_seen_subcommand_from run' -l link-bandwidth -r -f -d "));
  EXPECT_TRUE(contains(run_program("commfuse-sim pages fish").out,
                       "complete -c commfuse-sim -n '__fish_seen_subcommand_from run' -s o -l output -r -f -a "));
  if (run_program("command -v fish").code != 0) {
    GTEST_SKIP() << "fish is not installed";
  }
  std::ofstream("ask.fish") << "commfuse-sim pages fish | source\n"
                               "for line in 'sche' 'run --model llama-3.1-7' 'run --strategy serial,sl' "
                               "'run --set strategy.name=sl' 'plan train' 'schedule che'\n"
                               "  complete -C \"commfuse-sim $line\" | string replace -r '\\t.*' ''\nend\n";
  const Outcome outcome = run_program("env HOME=. fish --no-config ask.fish");
  EXPECT_EQ(outcome.out, "schedule\nschema\nllama-3.1-70b\nserial,sliced\nstrategy.name=sliced\ntrain-70b\ncheck\n");
  EXPECT_EQ(outcome.err, "");
}

TEST(Pages, MarkdownCoversTheSameTree) {
  EXPECT_TRUE(contains(run_program("commfuse-sim pages markdown").out, "## `commfuse-sim schedule export`\n"));
}

TEST(Pages, NamesComeFromTheCatalogue) {
  EXPECT_TRUE(contains(run_program("commfuse-validate pages names hardware").out, "\nh100-sxm\n"));
  EXPECT_TRUE(contains(run_program("commfuse-sim pages names settings").out, "\nthreads=\n"));
  EXPECT_FALSE(contains(run_program("commfuse-sim pages names axes").out, "\nthreads=\n"));
  const Outcome unknown = run_program("commfuse-sim pages names model");
  EXPECT_EQ(unknown.code, 2);
  EXPECT_EQ(unknown.err, "unknown list 'model'; did you mean 'models'?\n");
  EXPECT_EQ(run_program("commfuse-sim pages man models").err, "LIST: man takes no list; remove 'models'\n");
}

TEST(Pages, AnArgumentTooManyIsAUserError) {
  EXPECT_EQ(run_program("commfuse-sim pages names models hardware").err,
            "pages takes no further argument 'hardware'; see commfuse-sim pages --help\n");
  EXPECT_EQ(run_program("commfuse-sim version now").err,
            "version takes no argument 'now'; see commfuse-sim version --help\n");
}

TEST(Pages, AnUnknownFormIsAUserError) {
  const Outcome outcome = run_program("commfuse-sim pages pdf");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(outcome.err, "unknown format 'pdf'; known formats: man, bash, zsh, fish, markdown\n");
}

}  // namespace
}  // namespace commfuse::test
