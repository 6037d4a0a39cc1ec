// SPDX-License-Identifier: Apache-2.0
#include "model/fit/kernel_choice_fit.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "model/random/philox.h"

namespace commfuse {
namespace {

/// Returns rows over the whole grid. Their times are `truth` times the formula's; one row in `outlier_every` takes four
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

/// Returns rows of narrow and wider GEMMs whose times are `truth` times the formula's, in five folds.
std::vector<ChoiceRow> narrow_rows_of(const KernelChoice& truth) {
  std::vector<ChoiceRow> rows;
  for (const std::int64_t n : {32, 64, 96, 128, 256}) {
    for (std::int64_t k = 32; k <= 65536; k *= 2) {
      for (std::int64_t m = 1; m <= 65536; m = m * 3 / 2 + 1) {
        const double tiles = static_cast<double>((m + 127) / 128 * ((n + 127) / 128)) / 128.0;
        const KernelChoice::Shape shape{.tiles_per_sm = tiles, .k = k, .m = m, .n = n};
        rows.push_back(
            {.shape = shape, .log_ratio = std::log(truth.factor(shape)), .fold = static_cast<int>(rows.size() % 5)});
      }
    }
  }
  return rows;
}

TEST(FitKernelChoice, FindsThatNarrowGemmsDiffer) {
  constexpr std::size_t row = KernelChoice::k_knots.size();
  KernelChoice truth;
  for (std::size_t k = 0; k < row; ++k) {
    truth.narrow[5 * row + k] = 1.5;  // m from 512 on, n = 64
  }
  const KernelChoice fitted = fit_kernel_choice(narrow_rows_of(truth));
  for (const std::int64_t k : {512, 4096, 16384}) {
    const auto factor_of = [&](std::int64_t n) {
      return fitted.factor({.tiles_per_sm = 16.0 / 128, .k = k, .m = 2048, .n = n});
    };
    EXPECT_NEAR(factor_of(64), 1.5, 0.15) << k;
    EXPECT_NEAR(factor_of(32), 1.0, 0.1) << k;
    EXPECT_NEAR(factor_of(128), 1.0, 0.2) << k;  // These GEMMs share the first table with narrow ones.
  }
}

TEST(FitKernelChoice, NarrowGemmsHaveNoTableWhereItBringsNothing) {
  KernelChoice truth;
  EXPECT_EQ(fit_kernel_choice(narrow_rows_of(truth)).narrow, truth.narrow);
  truth.factors.fill(1.2);  // the first table describes these factors
  for (const double factor : fit_kernel_choice(narrow_rows_of(truth)).narrow) {
    EXPECT_NEAR(factor, 1.0, 0.05);
  }
  EXPECT_EQ(kernel_choice_yaml(truth, 2).find("narrow"), std::string::npos);
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
  choice.narrow[KernelChoice::k_knots.size()] = 1.5;
  EXPECT_NE(
      kernel_choice_yaml(choice, 2).find("\n    narrow:\n      m_16:\n"
                                         "        n_32: [1000, 1000, 1000, 1000, 1000, 1000, 1000, 1000, 1000]\n"
                                         "        n_64: [1500, 1000, 1000, 1000, 1000, 1000, 1000, 1000, 1000]\n"),
      std::string::npos);
}

}  // namespace
}  // namespace commfuse
