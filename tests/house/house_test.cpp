// SPDX-License-Identifier: Apache-2.0
// Applies the rules of the house to this tree, and shows on invented trees that each check can fail.
#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "model/build_info.h"
#include "tests/house/house_rules.h"
#include "tests/house/plain_words.h"
#include "tests/house/retired_phrases.h"
#include "tests/house/swappable_numbers.h"

namespace commfuse::house {
namespace {

namespace fs = std::filesystem;
using Sentences = std::vector<std::string>;

constexpr std::string_view license = "// SPDX-License-Identifier: Apache-2.0\n";

/// An invented source tree in the temporary folder; the destructor removes it.
class Tree {
 public:
  Tree() {
    std::string name = (fs::temp_directory_path() / "commfuse-house-XXXXXX").string();
    root_ = mkdtemp(name.data());
  }
  Tree(const Tree&) = delete;
  Tree& operator=(const Tree&) = delete;
  ~Tree() { fs::remove_all(root_); }

  const fs::path& root() const { return root_; }
  void write(const fs::path& path, std::string_view text) const {
    fs::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
  }
  void write_including(const fs::path& path, std::string_view header) const {
    write(path, std::string(license) + "#include " + std::string(header) + "\n");
  }

 private:
  fs::path root_;
};

TEST(House, ThisTreeKeepsEveryRule) {
  EXPECT_EQ(violations(COMMFUSE_SOURCE_DIR), Sentences{});
  EXPECT_EQ(unexplained_folders(COMMFUSE_SOURCE_DIR), Sentences{});
  EXPECT_GT(files_read(COMMFUSE_SOURCE_DIR), 20U);
}

TEST(House, AllowedIncludesAreNoViolations) {
  const Tree tree;
  tree.write_including("model/cost/price.cpp", "\"model/units.h\"");
  tree.write_including("model/config/yaml.cpp", "<yaml-cpp/yaml.h>");
  tree.write_including("sim/engine/engine.h", "\"model/units.h\"");
  tree.write_including("sim/replay/replay.cpp", "\"sim/engine/engine.h\"");
  tree.write_including("sim/commfuse_sim.cpp", "<CLI/CLI.hpp>");
  tree.write_including("sim/commands/run.cpp", "\"reports/table.h\"");
  tree.write_including("validate/commands/check.cpp", "\"reports/table.h\"");
  tree.write_including("validate/commands/compare.cpp", "\"sim/point/predict.h\"");
  tree.write_including("validate/cuda/stream.h", "<cuda_runtime.h>");
  tree.write_including("tests/software_gpu/gpu.h", "<cuda_runtime.h>");
  tree.write_including("reports/table.cpp", "\"model/record/result_row.h\"");
  tree.write_including("tests/sim/engine_test.cpp", "\"validate/executor.h\"");
  EXPECT_EQ(violations(tree.root()), Sentences{});
  EXPECT_EQ(files_read(tree.root()), 12U);
}

TEST(House, ModelIncludesNoOtherTopFolder) {
  const Tree tree;
  tree.write_including("model/a.h", "\"sim/engine/engine.h\"");
  tree.write_including("model/b.h", "<validate/executor.h>");
  tree.write_including("model/c.cpp", "\"reports/table.h\"");
  tree.write_including("model/d.cpp", "\"tests/support/tree.h\"");
  EXPECT_EQ(violations(tree.root()), (Sentences{"model/a.h:2: model may not include 'sim/engine/engine.h'",
                                                "model/b.h:2: model may not include 'validate/executor.h'",
                                                "model/c.cpp:2: model may not include 'reports/table.h'",
                                                "model/d.cpp:2: model may not include 'tests/support/tree.h'"}));
}

TEST(House, SimAndValidateDoNotIncludeEachOther) {
  const Tree tree;
  tree.write_including("sim/commands/run.cpp", "\"validate/executor.h\"");
  tree.write_including("validate/cpu/cpu.cpp", "  \"sim/engine/engine.h\"  // why not?");
  EXPECT_EQ(violations(tree.root()),
            (Sentences{"sim/commands/run.cpp:2: sim may not include 'validate/executor.h'",
                       "validate/cpu/cpu.cpp:2: validate may not include 'sim/engine/engine.h'"}));
}

TEST(House, NoTwoFoldersIncludeEachOther) {
  const Tree tree;
  tree.write_including("model/cost/price.cpp", "\"model/program/order.h\"");
  tree.write_including("model/program/order.cpp", "\"model/cost/price.h\"");
  tree.write_including("sim/commfuse_sim.cpp", "\"sim/commands/run.h\"");  // a main belongs to no folder
  tree.write_including("sim/commands/run.cpp", "\"sim/heap.h\"");
  EXPECT_EQ(violations(tree.root()), (Sentences{"model/cost/price.cpp:2: model/cost and model/program include each "
                                                "other, the other way in model/program/order.cpp:2"}));
}

TEST(House, OnlyTheProgramsRenderReportsAndReportsKnowNoEngine) {
  const Tree tree;
  tree.write_including("reports/table.cpp", "\"sim/engine/engine.h\"");
  tree.write_including("sim/replay/replay.cpp", "\"reports/table.h\"");
  EXPECT_EQ(violations(tree.root()), (Sentences{"reports/table.cpp:2: reports may not include 'sim/engine/engine.h'",
                                                "sim/replay/replay.cpp:2: sim may not include 'reports/table.h'"}));
}

TEST(House, HeavyLibrariesStayOutOfHeaders) {
  const Tree tree;
  tree.write_including("model/config/yaml.h", "<yaml-cpp/yaml.h>");
  tree.write_including("reports/json.h", "<nlohmann/json.hpp>");
  tree.write_including("sim/commands/run.h", "<CLI/CLI.hpp>");
  tree.write_including("model/config/xml.h", "<pugixml.hpp>");
  EXPECT_EQ(violations(tree.root()),
            (Sentences{"model/config/xml.h:2: 'pugixml.hpp' belongs in a .cpp file, not in a header",
                       "model/config/yaml.h:2: 'yaml-cpp/yaml.h' belongs in a .cpp file, not in a header",
                       "reports/json.h:2: 'nlohmann/json.hpp' belongs in a .cpp file, not in a header",
                       "sim/commands/run.h:2: 'CLI/CLI.hpp' belongs in a .cpp file, not in a header"}));
}

TEST(House, ASharedTypeHasAUniqueName) {
  const Tree tree;
  const std::string begin = "// SPDX-License-Identifier: Apache-2.0\nnamespace commfuse {\n";
  tree.write("model/a.h", begin + "struct Piece;\nstruct Piece {\n};\n}  // namespace commfuse\n");
  tree.write("sim/b.cpp",
             begin +
                 "namespace {\nstruct Piece {\n};\n}  // namespace\nnamespace sim {\nclass Piece : X {\n"
                 "};\n}  // namespace sim\nclass Piece final : public X {\n};\n}  // namespace commfuse\n");
  // Forward declarations of another library's types do not hide the types that follow.
  tree.write("sim/c.h",
             "// SPDX-License-Identifier: Apache-2.0\nnamespace CLI {\nclass App;\n}\n\nnamespace commfuse "
             "{\nstruct Piece {\n};\n}  // namespace commfuse\n");
  EXPECT_EQ(violations(tree.root()),
            (Sentences{"sim/b.cpp:11: commfuse::Piece is also in model/a.h; a linker takes them for one type",
                       "sim/c.h:7: commfuse::Piece is also in model/a.h; a linker takes them for one type"}));
}

TEST(House, CudaIsInvisibleOutsideItsFolder) {
  const Tree tree;
  tree.write_including("bench/copy.cpp", "<nccl.h>");
  tree.write_including("validate/measure/clock.cpp", "<cuda_runtime.h>");
  EXPECT_EQ(violations(tree.root()),
            (Sentences{"bench/copy.cpp:2: 'nccl.h' is only for validate/cuda",
                       "validate/measure/clock.cpp:2: 'cuda_runtime.h' is only for validate/cuda"}));
}

TEST(House, MpiIsInvisibleOutsideItsModule) {
  const Tree tree;
  tree.write_including("validate/mpi/crew.cpp", "<mpi.h>");
  tree.write_including("model/process/module/mpi_module.cpp", "<mpi.h>");
  EXPECT_EQ(violations(tree.root()), Sentences{"validate/mpi/crew.cpp:2: 'mpi.h' is only for model/process/module"});
}

TEST(House, OnlyModelMathComputesTranscendentalFunctions) {
  const Tree tree;
  const auto write = [&](const fs::path& path, std::string_view code) {
    tree.write(path, std::string(license) + std::string(code) + "\n");
  };
  write("model/a.cpp", "const double a = std::exp(1.0);");
  write("model/b.cpp", "const double b = 2.0 * ::logf(x) + pow(x, 2);");
  write("reports/c.h", "inline double c(double x) { return hypot(x, math::exp(x)); }");
  write("sim/d.cpp", "values = logs.array().exp();");
  write("validate/e.cpp", "erfc(1.0);");
  tree.write_including("model/f.cpp", "<boost/math/special_functions/erf.hpp>");
  const auto use = [](std::string_view place, std::string_view name) {
    return std::string(place) + ": the results of the C library's '" + std::string(name) +
           "' depend on the machine; use model/math";
  };
  EXPECT_EQ(violations(tree.root()),
            (Sentences{use("model/a.cpp:2", "exp"), use("model/b.cpp:2", "logf"),
                       "model/f.cpp:2: 'boost/math/special_functions/erf.hpp' calls functions of the C library, whose "
                       "results depend on the machine; use model/math",
                       use("reports/c.h:2", "hypot"), use("sim/d.cpp:2", "exp"), use("validate/e.cpp:2", "erfc")}));
}

TEST(House, OtherUsesOfTheirNamesAreAllowed) {
  const Tree tree;
  const auto write = [&](const fs::path& path, std::string_view code) {
    tree.write(path, std::string(license) + std::string(code) + "\n");
  };
  write("model/math/exp.cpp", "double exp(double x) { return std::exp(x); }");
  write("model/a.cpp", "const double a = math::exp(x) + commfuse::math::log(x);  // exp(x) log(x)");
  write("model/b.cpp", "print(\"a \\\" exp(x)\", '\"', \"log(x)\"); std::sqrt(x); catalog(x); log_of(x);");
  write("validate/cuda/module/c.cu", "return expf(x);");
  write("tests/model/d_test.cpp", "EXPECT_NEAR(std::exp(1.0), math::exp(1.0), 1e-9);");
  write("bench/e.cpp", "std::log(x);");
  EXPECT_EQ(violations(tree.root()), Sentences{});
}

TEST(House, IncludesAreWrittenFromTheRoot) {
  const Tree tree;
  tree.write_including("model/cost/price.cpp", "\"price.h\"");
  tree.write_including("sim/engine/engine.cpp", "\"../../model/units.h\"");
  EXPECT_EQ(
      violations(tree.root()),
      (Sentences{"model/cost/price.cpp:2: write 'price.h' from the repository root, or <...> where it is not ours",
                 "sim/engine/engine.cpp:2: write '../../model/units.h' from the repository root, or <...> where "
                 "it is not ours"}));
}

TEST(House, EverySourceNamesItsLicenceFirst) {
  const Tree tree;
  tree.write("dev", "#!/usr/bin/env bash\n# SPDX-License-Identifier: Apache-2.0\n");
  tree.write("model/CMakeLists.txt", "# model\n");
  tree.write("model/late.cpp", "\n" + std::string(license));
  tree.write("tests/model/empty_test.cpp", "");
  const std::string lacks = " the first line lacks 'SPDX-License-Identifier: Apache-2.0'";
  EXPECT_EQ(violations(tree.root()), (Sentences{"model/CMakeLists.txt:1:" + lacks, "model/late.cpp:1:" + lacks,
                                                "tests/model/empty_test.cpp:1:" + lacks}));
}

TEST(House, EveryFolderDescribesItsContents) {
  const Tree tree;
  tree.write("bench/main.cpp", license);
  tree.write("model/units.h", license);
  tree.write("model/README.md",
             "# model\n\n`units.h`, then `model/cost/gemm.cpp`; `cost/*.h`, `cat x.h` and y.h are no names.\n");
  tree.write("model/cost/gemm.cpp", license);
  tree.write("model/cost/README.md",
             "# cost\n\n`gemm.cpp`, `gemm.h` and `units.h`;\n`model/units.h`, `model/cost.h`.\n");
  tree.write("reports/assets/page.css", "");
  tree.write("sim/engine/step.cu", license);
  tree.write("sim/engine/README.md", "# sim/engine\n");
  tree.write("tests/model/units_test.cpp", license);
  EXPECT_EQ(unexplained_folders(tree.root()), (Sentences{"bench/README.md:1: the first line is not '# bench'",
                                                         "model/cost/README.md:1: the first line is not '# model/cost'",
                                                         "model/cost/README.md:3: 'gemm.h' is not in model/cost",
                                                         "model/cost/README.md:3: 'units.h' is not in model/cost",
                                                         "model/cost/README.md:4: 'model/cost.h' does not exist"}));
}

TEST(House, StyleSheetsHaveOneRuleForASelector) {
  EXPECT_EQ(selectors_styled_twice(COMMFUSE_SOURCE_DIR), Sentences{});
  const Tree tree;
  tree.write(
      "page/ui/a.css",
      "a { color: red; top: 0 }\n/* a { } */\nb,  c { top: 0 }\n@media print { a { top: 1px } b, c { top: 0 } }\n"
      "b, c { left: 0 }\n@media print { a { left: 0 } }\n");
  EXPECT_EQ(selectors_styled_twice(tree.root()),
            (Sentences{"page/ui/a.css: 'b, c' has two rules; join them",
                       "page/ui/a.css: '@media print { a' has two rules; join them"}));
}

TEST(House, TextForUsersHasNoRetiredPhrases) { EXPECT_EQ(retired_phrases(COMMFUSE_SOURCE_DIR), Sentences{}); }

TEST(House, RetiredPhrasesAreFoundOnlyInLiteralsAndPages) {
  const Tree tree;
  tree.write("sim/a.cpp",
             "// leave it out\nthrow \"x \\\" leave it out\";  // leave it out\nleave it out(\"a\", b, \"c\");\n");
  tree.write("README.md", "fine\nthe page of a plan\n");
  tree.write("docs/a.md", "`leans_on` says what it leans on\n");
  tree.write("docs/decisions/0001.md", "is played, 3 % longer\n");
  tree.write("docs/howto/b.md", "is played\n3 % longer, and 17 % 5 is 2\n");
  tree.write("page/ui/c.js", "// is played\nit is played(\"a\", 'is \"played', `is played`);\n");
  tree.write("page/ui/index.html", "<p>How it strays.</p>\n<p>See how it strays.</p>\n");
  tree.write("reports/c.cpp", "\"{:.1f} %, or price {:+g} %\";\n\"{:.1f} % ahead, {:.0f} %\";\n");
  tree.write("tests/b.cpp", "\"is played\"\n");
  EXPECT_EQ(retired_phrases(tree.root()),
            (Sentences{"page/ui/c.js:2: 'is played' is retired; write 'is simulated' or 'runs'",
                       "reports/c.cpp:2: '2 %' is retired; write '2%'",
                       "sim/a.cpp:2: 'leave it out' is retired; write 'remove it'",
                       "README.md:2: 'the page of a plan' is retired; write 'plan report'",
                       "docs/howto/b.md:1: 'is played' is retired; write 'is simulated' or 'runs'",
                       "docs/howto/b.md:2: '2 %' is retired; write '2%'",
                       "page/ui/index.html:2: 'how it strays' is retired; write 'its jitter'"}));
}

TEST(House, ThisTreeUsesPlainWords) {
  EXPECT_EQ(comment_fragments(COMMFUSE_SOURCE_DIR), Sentences{});
  EXPECT_EQ(retired_names(COMMFUSE_SOURCE_DIR), Sentences{});
  EXPECT_EQ(odd_test_names(COMMFUSE_SOURCE_DIR), Sentences{});
}

TEST(House, AFragmentAtTheStartOfACommentIsFound) {
  const Tree tree;
  tree.write("sim/a.h",
             "// SPDX-License-Identifier: Apache-2.0\n// What a run takes.\n\nint a;  ///< of the\n        ///< whole\n"
             "int b;  // Off, so Of is no beginning.\n// The same for\n// two lines.\n");
  tree.write("out/c.cpp", "// Of a folder that is not a room.\n");
  tree.write("python/build/c.cpp", "// Of a build.\n");
  tree.write("sim/d.cpp", "const char* d = \"// Of\";  // NOLINT(x)\nR\"x(\n// How \")x\";\n}  // namespace of\n");
  const auto breach_at = [](std::string_view place, std::string_view fragment) {
    return std::string(place) + ": a comment begins with '" + std::string(fragment) +
           "'; begin with its subject or verb";
  };
  EXPECT_EQ(comment_fragments(tree.root()), (Sentences{breach_at("sim/a.h:2", "what"), breach_at("sim/a.h:4", "of"),
                                                       breach_at("sim/a.h:7", "the same")}));
}

TEST(House, AFolderMayKeepThreeFragmentsInAThousandComments) {
  const Tree tree;
  std::string text = "// As it is here, one comment in a thousand is a sentence that only looks like a fragment.\n\n";
  for (int comment = 0; comment < 332; ++comment) {
    text += "// Whole.\n\n";
  }
  tree.write("sim/a.cpp", text);
  EXPECT_EQ(comment_fragments(tree.root()).size(), 1U);
  tree.write("sim/a.cpp", text + "// Whole.\n");
  EXPECT_EQ(comment_fragments(tree.root()), Sentences{});
}

TEST(House, AMeaninglessNameIsFound) {
  const Tree tree;
  tree.write("sim/a.cpp",
             "int most = 1;  // most\nauto x = range.most + all_of(p->here, Part::all);\nint all_ = 1'000;\n"
             "print(\"one\", 'o', /*some*/ 1);\nstruct Found {};\n");
  tree.write("model/program/program.h", "  Region here;\n  Region there;\n");
  const auto breach_at = [](std::string_view place, std::string_view name) {
    return std::string(place) + ": '" + std::string(name) + "' does not say what it holds; name its contents";
  };
  EXPECT_EQ(retired_names(tree.root()),
            (Sentences{breach_at("model/program/program.h:2", "there"), breach_at("sim/a.cpp:1", "most"),
                       breach_at("sim/a.cpp:3", "all"), breach_at("sim/a.cpp:5", "Found")}));
}

TEST(House, ANameOfATestThatIsNotCamelCaseIsFound) {
  const Tree tree;
  const std::string longest(60, 'A');
  tree.write("tests/model/a_test.cpp",
             "TEST(A, Holds) {}\nTEST(A, holds) {}\nTEST_F(A,\n       Holds_too) {}\n// TEST(A, no)\n" +
                 ("TEST_P(A, " + longest + ") {}\nTYPED_TEST(A, " + longest + "B) {}\n"));
  tree.write("tests/sim/a_test.cpp", "TEST(A, DISABLED_Holds) {}\nTEST(A, DISABLED_holds) {}\n");
  const auto breach_at = [](const std::string& room, int line, const std::string& name) {
    return "tests/" + room + "/a_test.cpp:" + std::to_string(line) + ": test '" + name +
           "'; name it in CamelCase of at most 60 characters";
  };
  EXPECT_EQ(odd_test_names(tree.root()),
            (Sentences{breach_at("model", 2, "holds"), breach_at("model", 3, "Holds_too"),
                       breach_at("model", 7, longest + "B"), breach_at("sim", 2, "holds")}));
}

TEST(House, ThePageHasEveryAlgorithmThatSourcesName) {
  EXPECT_EQ(algorithms_the_page_lacks(COMMFUSE_SOURCE_DIR), Sentences{});
  const Tree tree;
  tree.write("page/shim/libcxx14.h", "constexpr auto find(Range&& range) {\n");
  tree.write("model/a.cpp", "std::ranges::find(a, b);\n\nstd::ranges::rotate(a, std::ranges::greater{});\n");
  tree.write("sim/b.h", "std::ranges::rotate(a);\n");
  tree.write("validate/c.cpp", "std::ranges::iota(a);\n");
  EXPECT_EQ(algorithms_the_page_lacks(tree.root()), (Sentences{"model/a.cpp:3: page/shim/libcxx14.h has no rotate"}));
}

TEST(House, NoNumbersOfAHeaderAreEasilySwapped) { EXPECT_EQ(swappable_numbers(COMMFUSE_SOURCE_DIR), Sentences{}); }

TEST(House, NumbersThatAreEasilySwappedAreFound) {
  const Tree tree;
  tree.write("model/a.h",
             "double price(double bytes, double rate);\n"
             "int ways(int first, int last, int rank, int ranks = 8);  // int a(int left, int right);\n"
             "void run(std::function<void(int done, int failed)> tell);\n"
             "Duration wait(const Machine& machine,\n"
             "              Duration issue = {}, std::optional<Duration> limit = std::nullopt);\n"
             "int mixed(int count, double share, int limit), calls(int, int), named(Bytes sent, Duration time);\n");
  tree.write("tests/a.h", "int free(int left, int right);\n");
  const auto breach = [](int line, const std::string& first, const std::string& second) {
    return "model/a.h:" + std::to_string(line) + ": '" + first + "' and '" + second +
           "' are easily swapped; make them members of a struct";
  };
  EXPECT_EQ(swappable_numbers(tree.root()), (Sentences{breach(1, "bytes", "rate"), breach(2, "last", "rank"),
                                                       breach(3, "done", "failed"), breach(4, "issue", "limit")}));
}

TEST(BuildInfo, HasEveryFieldOfThisBinary) {
  const BuildInfo& info = build_info();
  std::ifstream lists(COMMFUSE_SOURCE_DIR "/CMakeLists.txt");
  const std::string text{std::istreambuf_iterator(lists), {}};
  EXPECT_NE(text.find("project(commfuse VERSION " + std::string(info.version) + " "), std::string::npos)
      << info.version;
  for (const auto field : {info.git_revision, info.compiler, info.build_type, info.cuda, info.nccl, info.mpi}) {
    EXPECT_FALSE(field.empty());
  }
}

}  // namespace
}  // namespace commfuse::house
