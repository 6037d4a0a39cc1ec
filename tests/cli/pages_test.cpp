// SPDX-License-Identifier: Apache-2.0
// Manual pages, completions and reference come from the tree that parses the command line.
#include <gtest/gtest.h>

#include <string>

#include "tests/cli/program.h"
#include "tests/own_folder.h"

namespace commfuse::test {
namespace {

bool says(const std::string& text, const std::string& words) { return text.find(words) != std::string::npos; }

TEST(Pages, TheManualHasEveryCommandWithItsFlags) {
  const std::string page = run_program("commfuse-sim pages man").out;
  EXPECT_EQ(page.rfind(".TH commfuse-sim 1", 0), 0U);
  EXPECT_TRUE(says(page, ".SS commfuse\\-sim run\n"));
  EXPECT_TRUE(says(page, ".SS commfuse\\-sim schedule export\n"));
  EXPECT_TRUE(says(page, "\\fB\\-\\-link\\-bandwidth\\fR \\fIRATE=x1\\fR"));
  EXPECT_TRUE(says(run_program("commfuse-validate pages man").out, ".SS commfuse\\-validate doctor\n"));
}

TEST(Pages, ACommandShowsItsOwnExamplesOrNone) {
  for (const std::string program : {"commfuse-sim", "commfuse-validate"}) {
    EXPECT_TRUE(says(run_program(program + " --help").out, "\nExamples:\n"));
    EXPECT_FALSE(says(run_program(program + " version --help").out, "Examples:"));
  }
  EXPECT_FALSE(says(run_program("commfuse-sim schedule --help").out, "Examples:"));
  EXPECT_FALSE(says(run_program("commfuse-sim schedule list --help").out, "Examples:"));
  const std::string own = run_program("commfuse-sim schedule check --help").out;
  EXPECT_TRUE(says(own, "  commfuse-sim schedule check "));
  EXPECT_FALSE(says(own, "  commfuse-sim run "));
}

TEST(Pages, GroffHasNothingToSayAboutTheManual) {
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

/// What bash offers behind these words.
std::string offered(const std::string& words, int at) {
  std::ofstream("ask.sh") << "source <(commfuse-sim pages bash)\nCOMP_WORDS=(" << words << ")\nCOMP_CWORD=" << at
                          << "\n_commfuse_sim\necho \"${COMPREPLY[@]}\"\n";
  return run_program("bash ask.sh").out;
}

TEST(Pages, BashCompletesCommandsAndTheirFlags) {
  const OwnFolder folder;
  EXPECT_EQ(offered("commfuse-sim sche", 1), "schedule schema\n");
  EXPECT_EQ(offered("commfuse-sim schedule ch", 2), "check\n");
  EXPECT_EQ(offered("commfuse-sim run --link-b", 2), "--link-bandwidth\n");
  EXPECT_EQ(offered("commfuse-sim schedule show --sco", 3), "--scope\n");
  EXPECT_EQ(offered("commfuse-sim run --config no-such", 3), "\n");  // bash goes on with files
}

TEST(Pages, FishZshAndMarkdownAreAboutTheSameTree) {
  EXPECT_TRUE(says(run_program("commfuse-sim pages fish").out,
                   "complete -c commfuse-sim -n '__fish_seen_subcommand_from run' -l link-bandwidth -r -d "));
  EXPECT_EQ(run_program("commfuse-validate pages zsh").out.rfind("#compdef commfuse-validate\n", 0), 0U);
  EXPECT_TRUE(says(run_program("commfuse-sim pages markdown").out, "## `commfuse-sim schedule export`\n"));
}

TEST(Pages, AnUnknownFormIsAMistakeOfTheUser) {
  const Outcome outcome = run_program("commfuse-sim pages pdf");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(outcome.err, "unknown form 'pdf'; known forms: man, bash, zsh, fish, markdown\n");
}

}  // namespace
}  // namespace commfuse::test
