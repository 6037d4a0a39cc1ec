// SPDX-License-Identifier: Apache-2.0
#include "model/cost/priced_shape.h"

#include <gtest/gtest.h>

#include "model/config/catalogue.h"
#include "model/strategies/scope.h"
#include "tests/shipped.h"

namespace commfuse {
namespace {

using test::h100_machine;

/// The MLP of Llama-3.1-70B on 8 ranks with one schedule.
struct Mlp {
  explicit Mlp(const char* strategy, std::int64_t seq = 4096)
      : program(generate(operation_of(Scope::mlp, true), Mesh{{{"tp", 8}}}, 0, *find_strategy(strategy), {})),
        sizes(bind_sizes(program, quantities_of(load_model(COMMFUSE_SOURCE_DIR "/configs/models/llama-3.1-70b.yaml"),
                                                {.seq = seq}))) {}
  [[nodiscard]] std::vector<std::string> words() const {
    std::vector<std::string> shapes;
    for (const Shape& shape : program.shapes) {
      shapes.push_back(in_words(priced_shape(program, shape, sizes)));
    }
    return shapes;
  }
  Program program;
  Sizes sizes;
};

TEST(PricedShape, ShapesAreInTheSizesOfTheCostModel) {
  // 4096 tokens of 8192 elements are 64 MiB; a gated MLP has two halves of 28672 / 8 columns.
  const std::vector<std::string> words = Mlp("serial").words();
  EXPECT_EQ(words, (std::vector<std::string>{"all-gather of 64 MiB", "GEMM 4K x 7K x 8K", "memory-bound of 84 MiB",
                                             "GEMM 4K x 8K x 3584", "reduce-scatter of 64 MiB"}));
}

TEST(PricedShape, EachKindHasTheFitThatPricesIt) {
  Machine machine = h100_machine();
  machine.accelerator.matrix_units[index_of(DType::bf16)]->fit.residual = 0.01;
  machine.accelerator.attention_fit.residual = 0.02;
  machine.link.peer.fit.residual = 0.03;
  machine.link.collective.fit.residual = 0.04;
  machine.accelerator.framework_kernel_fit.residual = 0.05;
  AllToAllParameters direct = *machine.link.collective.all_to_all;
  direct.fit.reset();
  machine.link.collective.all_to_all = std::make_shared<const AllToAllParameters>(direct);
  const auto residual = [&](PricedKind kind) { return fit_of({.kind = kind}, machine, 8).residual; };
  EXPECT_EQ(residual(PricedKind::product), 0.01);
  EXPECT_EQ(residual(PricedKind::attention), 0.02);
  EXPECT_EQ(residual(PricedKind::exchange), 0.03);
  EXPECT_EQ(residual(PricedKind::all_to_all), 0.04);
  EXPECT_EQ(residual(PricedKind::memory_bound), FitScope{}.residual);
  EXPECT_EQ(residual(PricedKind::framework_kernel), 0.05);
  direct.fit = {.residual = 0.06};
  machine.link.collective.all_to_all = std::make_shared<const AllToAllParameters>(direct);
  machine.link.collective.fit.seen[static_cast<std::size_t>(FitSize::bytes)] = SeenRange{1, 2};
  EXPECT_EQ(residual(PricedKind::all_to_all), 0.06);
  EXPECT_EQ(residual(PricedKind::all_gather), 0.04);
  EXPECT_EQ(fit_of({.kind = PricedKind::all_to_all}, machine, 8).range(FitSize::bytes), (SeenRange{1, 2}));
}

PricedShape gemm_shape(std::int64_t m, std::int64_t n, std::int64_t k) {
  PricedShape shape;
  shape.size[static_cast<std::size_t>(FitSize::m)] = m;
  shape.size[static_cast<std::size_t>(FitSize::n)] = n;
  shape.size[static_cast<std::size_t>(FitSize::k)] = k;
  return shape;
}

PricedShape message(PricedKind kind, std::int64_t bytes) {
  PricedShape shape{.kind = kind};
  shape.size[static_cast<std::size_t>(FitSize::bytes)] = bytes;
  return shape;
}

TEST(PricedShape, TheLimitOfAnOpSelectsItsResidual) {
  Machine machine = h100_machine();
  FitScope& fit = machine.accelerator.matrix_units[index_of(DType::bf16)]->fit;
  fit.residual = 0.04;
  fit.by_limit = {0.5, 1.0, 2.0, 0.25};
  EXPECT_EQ(limit_of(gemm_shape(1, 128, 128), machine, 1), Limit::latency);
  EXPECT_EQ(residual_of(gemm_shape(1, 128, 128), machine, 1), 0.02);
  EXPECT_EQ(limit_of(gemm_shape(1, 16384, 16384), machine, 1), Limit::bandwidth);  // 537 MB of weights
  EXPECT_EQ(residual_of(gemm_shape(1, 16384, 16384), machine, 1), 0.04);
  EXPECT_EQ(limit_of(gemm_shape(512, 1024, 16384), machine, 1), Limit::few_tiles);  // 32 tiles of 128 x 128
  EXPECT_EQ(residual_of(gemm_shape(512, 1024, 16384), machine, 1), 0.08);
  EXPECT_EQ(limit_of(gemm_shape(8192, 8192, 8192), machine, 1), Limit::compute);
  EXPECT_EQ(residual_of(gemm_shape(8192, 8192, 8192), machine, 1), 0.01);
}

TEST(PricedShape, AttentionIsLimitedByItsOverheadItsTilesItsTrafficOrItsScores) {
  const Machine machine = h100_machine();
  const auto limit = [&](std::int64_t batch, std::int64_t seq, std::int64_t heads) {
    PricedShape shape{.kind = PricedKind::attention};
    const auto put = [&](FitSize size, std::int64_t value) { shape.size[static_cast<std::size_t>(size)] = value; };
    put(FitSize::m, batch * seq);
    put(FitSize::seq, seq);
    put(FitSize::n, heads);
    put(FitSize::k, 128);
    // Keys and values have as many heads as the queries, and 2 bytes per element.
    put(FitSize::bytes, 2 * 2 * 128 * batch * seq * heads);
    return limit_of(shape, machine, 1);
  };
  EXPECT_EQ(limit(1, 128, 8), Limit::latency);
  EXPECT_EQ(limit(1, 8192, 1), Limit::few_tiles);    // 64 tiles of 128 queries on 132 SMs
  EXPECT_EQ(limit(128, 128, 32), Limit::bandwidth);  // a query has only 64 scores on average
  EXPECT_EQ(limit(1, 8192, 32), Limit::compute);
  EXPECT_EQ(limit_of({.kind = PricedKind::attention}, machine, 1), Limit::compute);
}

TEST(PricedShape, DecodingHasTheFitOfItsCache) {
  Machine machine = h100_machine();
  machine.accelerator.decode_attention->fit = {.residual = 0.08, .by_limit = {0.5, 2.0, 1.0, 0.25}};
  machine.accelerator.decode_attention_fp8->fit = {.residual = 0.09};
  const auto shape = [&](std::int64_t batch, std::int64_t keys, DType cache) {
    PricedShape decoding{.kind = PricedKind::decode_attention, .dtype = cache};
    const auto put = [&](FitSize size, std::int64_t value) { decoding.size[static_cast<std::size_t>(size)] = value; };
    put(FitSize::m, batch);
    put(FitSize::seq, keys);
    put(FitSize::n, 64);
    put(FitSize::k, 128);
    put(FitSize::bytes, 2 * batch * keys * 8 * 128 * bytes_of(cache));
    return decoding;
  };
  EXPECT_EQ(limit_of(shape(1, 16, DType::bf16), machine, 1), Limit::latency);
  EXPECT_EQ(residual_of(shape(1, 16, DType::bf16), machine, 1), 0.04);
  EXPECT_EQ(limit_of(shape(64, 16384, DType::bf16), machine, 1), Limit::bandwidth);
  EXPECT_EQ(residual_of(shape(64, 16384, DType::bf16), machine, 1), 0.16);
  EXPECT_EQ(limit_of(shape(2048, 4, DType::bf16), machine, 1), Limit::compute);
  EXPECT_EQ(residual_of(shape(2048, 4, DType::bf16), machine, 1), 0.02);
  EXPECT_EQ(residual_of(shape(64, 16384, DType::fp8), machine, 1), 0.09);
  machine.accelerator.decode_attention.reset();
  EXPECT_EQ(limit_of(shape(1, 16, DType::bf16), machine, 1), Limit::bandwidth);
  EXPECT_EQ(residual_of(shape(1, 16, DType::bf16), machine, 1), FitScope{}.residual);
}

TEST(PricedShape, ExpertsAreLimitedByTheirCallTheirWeightsOrTheirRows) {
  Machine machine = h100_machine();
  const auto shape = [](std::int64_t rows, std::int64_t hit) {
    PricedShape shape{.kind = PricedKind::expert_layer};
    const auto put = [&](FitSize size, std::int64_t value) { shape.size[static_cast<std::size_t>(size)] = value; };
    put(FitSize::m, rows);
    put(FitSize::n, 2048);
    put(FitSize::k, 4096);
    put(FitSize::bytes, hit * 3 * 2048 * 4096 * 2);
    return shape;
  };
  EXPECT_EQ(limit_of(shape(1, 1), machine, 1), Limit::latency);
  EXPECT_EQ(limit_of(shape(64, 64), machine, 1), Limit::bandwidth);  // 3 GB of weights
  EXPECT_EQ(limit_of(shape(64 * 4096, 64), machine, 1), Limit::compute);
  EXPECT_EQ(limit_of({.kind = PricedKind::expert_layer}, machine, 1), Limit::bandwidth);
  machine.accelerator.experts->fit.residual = 0.3;
  machine.accelerator.experts_fp8->fit.residual = 0.4;
  EXPECT_EQ(fit_of(shape(1, 1), machine, 1).residual, 0.3);
  EXPECT_EQ(fit_of({.kind = PricedKind::expert_layer, .dtype = DType::fp8}, machine, 1).residual, 0.4);
  machine.accelerator.experts.reset();
  EXPECT_EQ(fit_of(shape(1, 1), machine, 1), FitScope{});
}

TEST(PricedShape, QuantizationHasAFitOfItsOwn) {
  Machine machine = h100_machine();
  const PricedShape shape{.kind = PricedKind::quantization};
  machine.accelerator.quantization->fit.residual = 0.03;
  EXPECT_EQ(fit_of(shape, machine, 1).residual, 0.03);
  EXPECT_EQ(limit_of(shape, machine, 1), Limit::bandwidth);
  EXPECT_EQ(name_of(shape.kind), "quantization");
  machine.accelerator.quantization.reset();
  EXPECT_EQ(fit_of(shape, machine, 1), FitScope{});
}

TEST(PricedShape, AMessageIsLimitedByItsLatencyUntilThatIsHalfOfItsTime) {
  Machine machine = h100_machine();
  machine.link.peer.latency.value = Duration{10'000'000};  // 10 us at 361 GB/s: 3.61 MB
  EXPECT_EQ(limit_of(message(PricedKind::exchange, 3'500'000), machine, 8), Limit::latency);
  EXPECT_EQ(limit_of(message(PricedKind::exchange, 3'700'000), machine, 8), Limit::bandwidth);
  EXPECT_EQ(limit_of(message(PricedKind::all_gather, 1024), machine, 8), Limit::latency);
  EXPECT_EQ(limit_of(message(PricedKind::all_gather, 1 << 30), machine, 8), Limit::bandwidth);
  EXPECT_EQ(limit_of({.kind = PricedKind::memory_bound}, machine, 8), Limit::bandwidth);
  EXPECT_EQ(limit_of({.kind = PricedKind::framework_kernel}, machine, 8), Limit::bandwidth);
}

TEST(PricedShape, TheNetworkPricesOpsAcrossNodes) {
  Machine machine = load_machine(COMMFUSE_SOURCE_DIR "/configs/clusters/dgx-h100-x2.yaml");
  machine.network->peer.fit.residual = 0.5;
  machine.network->collective.fit.residual = 0.25;
  EXPECT_EQ(fit_of({.kind = PricedKind::exchange}, machine, 16).residual, 0.5);
  EXPECT_EQ(fit_of({.kind = PricedKind::all_gather}, machine, 16).residual, 0.25);
  EXPECT_EQ(fit_of({.kind = PricedKind::exchange}, machine, 8).residual, machine.link.peer.fit.residual);
}

TEST(PricedShape, FitsCoverHalfToTwiceTheSeenSizesAndReportTheRest) {
  Machine machine = h100_machine();
  const Mlp mlp("serial");
  FitScope& fit = machine.accelerator.matrix_units[index_of(DType::bf16)]->fit;
  fit.seen = {};
  machine.link.collective.fit.seen = {};
  EXPECT_TRUE(outside_fit(mlp.program, mlp.sizes, machine).empty());  // These fits state no sizes.
  const auto sees = [&](FitSize size, std::int64_t least, std::int64_t largest) {
    fit.seen[static_cast<std::size_t>(size)] = SeenRange{least, largest};
  };
  sees(FitSize::m, 1, 2048);
  sees(FitSize::k, 7168, 16384);
  EXPECT_TRUE(outside_fit(mlp.program, mlp.sizes, machine).empty());
  sees(FitSize::m, 1, 2047);
  sees(FitSize::k, 7169, 16384);  // half of 7169, rounded up, is 3585, and the smaller k is 3584
  EXPECT_EQ(
      outside_fit(mlp.program, mlp.sizes, machine),
      (std::vector<std::string>{"m 4K: GEMMs were measured up to 2047", "k 3584: GEMMs were measured from 7169"}));
  sees(FitSize::m, 1, 8192);
  sees(FitSize::k, 1, 16384);
  machine.link.collective.fit.seen[static_cast<std::size_t>(FitSize::ranks)] = SeenRange{2, 4};
  EXPECT_EQ(outside_fit(mlp.program, mlp.sizes, machine),
            std::vector<std::string>{"ranks 8: collectives were measured up to 4"});
}

}  // namespace
}  // namespace commfuse
