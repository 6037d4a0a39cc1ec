// SPDX-License-Identifier: Apache-2.0
#include "model/fit/kernel_choice_fit.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <vector>

#include "model/random/philox.h"

namespace commfuse {
namespace {

/// Returns rows over the whole grid whose times are `truth` times the formula's; one row in `outlier_every` is four
/// times as long.
std::vector<ChoiceRow> rows_of(const KernelChoice& truth, std::size_t outlier_every) {
  std::vector<ChoiceRow> rows;
  for (double tiles = 1.0 / 128; tiles <= 32.0; tiles *= 1.2) {
    for (double k = 32.0; k <= 65536.0; k *= 1.3) {
      for (const std::int64_t m : {1, 16, 24, 32, 64, 128, 200, 512, 4096}) {
        const auto depth = static_cast<std::int64_t>(k);
        const double outlier = rows.size() % outlier_every == 0 ? 4.0 : 1.0;
        const KernelChoice::Shape shape{tiles, depth, m};
        rows.push_back({.shape = shape, .log_ratio = std::log(outlier * truth.factor(shape))});
      }
    }
  }
  return rows;
}

TEST(FitKernelChoice, FindsTheTableThatMadeTheRows) {
  KernelChoice truth;
  for (std::size_t i = 0; i < KernelChoice::size; ++i) {
    const PhiloxWords words = philox({static_cast<std::uint32_t>(i), 0, 0, 0}, 7);
    truth.factors[i] = 0.9 + 0.2 * words[0] / 4294967296.0;
  }
  const KernelChoice fitted = fit_kernel_choice(rows_of(truth, 17));
  double sum = 0.0;
  for (std::size_t i = 0; i < KernelChoice::size; ++i) {
    sum += std::abs(fitted.factors[i] - truth.factors[i]);
    EXPECT_NEAR(fitted.factors[i], truth.factors[i], 0.07) << i;  // The pull towards 1 is strongest on the edges.
  }
  EXPECT_LT(sum / KernelChoice::size, 0.01);
}

TEST(FitKernelChoice, KnotsFarFromAllRowsKeepTheFormula) {
  const std::vector<ChoiceRow> rows(100, {.shape = {1.0, 1024, 64}, .log_ratio = 0.2});
  const KernelChoice fitted = fit_kernel_choice(rows);
  EXPECT_NEAR(fitted.factor({1.0, 1024, 64}), std::exp(0.2), 0.005);
  EXPECT_EQ(fitted.factor({4.0, 8192, 512}), 1.0);
  EXPECT_EQ(fit_kernel_choice({}).factors, KernelChoice{}.factors);
}

TEST(FitKernelChoice, TheMapHasARowForEachNumberOfTiles) {
  KernelChoice choice;
  choice.provenance = Provenance::fitted;
  choice.source = "mine.csv";
  choice.factors[1] = 1.234;
  const std::string yaml = kernel_choice_yaml(choice, 2);
  EXPECT_NE(yaml.find("\n  kernel_choice:\n    provenance: \"fitted: mine.csv\"\n    m_16:\n"
                      "      1/128: [1000, 1234, 1000, 1000, 1000, 1000, 1000, 1000, 1000]\n"),
            std::string::npos)
      << yaml;
  EXPECT_NE(yaml.find("    m_512:\n"), std::string::npos);
}

}  // namespace
}  // namespace commfuse
