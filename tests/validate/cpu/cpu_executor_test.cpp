// SPDX-License-Identifier: Apache-2.0
// Tests that threads produce the interpreter's bits in any order of arrival, and that a schedule that does not is
// detected.
#include "validate/cpu/cpu_executor.h"
#include "tests/slow_build.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <cmath>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "model/program/builder.h"
#include "model/proof/check_program.h"
#include "model/proof/mutate.h"
#include "model/strategies/generate.h"
#include "tests/validate/planted.h"
#include "tests/validate/reference/matrices.h"
#include "tests/validate/shift.h"
#include "validate/reference/collective.h"
#include "validate/reference/data.h"
#include "validate/reference/interpreter.h"
#include "validate/reference/verify.h"
#include "validate/values/random.h"

namespace commfuse::validate {
namespace {

using namespace std::chrono_literals;
using test::matrix;
using test::operation_named;
using test::points_of;
using test::shared;
using test::Shift;

std::unique_ptr<Executor> cpu(Lowered lowered, Sizes sizes) {
  return std::make_unique<CpuExecutor>(std::move(lowered), std::move(sizes), CpuOptions{});
}

Program program_named(std::string_view operation, std::string_view strategy, std::int32_t ranks) {
  return program_of({&operation_named(operation), find_strategy(strategy), {}, ranks, 1});
}

/// True if this test leaves the point to `commfuse-validate check --executor cpu`: a schedule with more than two slices
/// or sub-slices, or, for an operation of several stages, with any option beyond those of `plain`.
bool is_left_to_the_cpu_check(const CheckPoint& point) {
  const StrategyOptions& options = point.options;
  if ((point.strategy->name == "sliced" && options.slices > 2) || options.sub_slices > 2) {
    return true;
  }
  StrategyOptions plain{.slices = options.slices, .form = options.form, .dtype = options.dtype};
  plain.add_lane = options.add_lane;
  plain.attention = options.attention;
  plain.regather = options.regather;
  return point.operation->operation.stages.size() > 1 && options != plain;
}

class ThreadsOnEveryRankCount : public testing::TestWithParam<std::int32_t> {};
INSTANTIATE_TEST_SUITE_P(OneToEight, ThreadsOnEveryRankCount, testing::Range(1, slow_build ? 5 : 9));

TEST_P(ThreadsOnEveryRankCount, EveryScheduleGivesTheInterpretersBitsUnderChaos) {
  std::size_t checked_points = 0;
  for (const DType dtype : {DType::bf16, DType::fp32}) {
    for (const CheckedOperation& operation : checked_operations()) {
      for (const CheckPoint& point : points_of(operation, GetParam(), dtype)) {
        if (is_left_to_the_cpu_check(point)) {
          continue;
        }
        const auto program = shared(program_of(point));
        const Verdict verdict = verify(program, checked_sizes(*program)[0], {.seed = 1, .orders = 20, .executor = cpu});
        const std::string what = program->name + " " + std::string{name_of(dtype)};
        EXPECT_EQ(verdict.same_order.value_or(Tally{}).wrong, 0) << what;
        EXPECT_EQ(verdict.moved.value_or(Tally{}).wrong, 0) << what;
        EXPECT_TRUE(verdict.ok()) << what;
        ++checked_points;
      }
    }
  }
  EXPECT_GE(checked_points, 2 * checked_operations().size());
}

/// An executor on threads whose memory is read back with one bit flipped.
class FlippedBitExecutor final : public Executor {
 public:
  FlippedBitExecutor(Lowered lowered, Sizes sizes) : threads_(std::move(lowered), std::move(sizes), {}) {}
  [[nodiscard]] std::string_view name() const override { return "off by a bit"; }
  [[nodiscard]] const Program& program() const override { return threads_.program(); }
  [[nodiscard]] const Sizes& sizes() const override { return threads_.sizes(); }
  void prepare(std::span<const Matrix<float>> tensors) override { threads_.prepare(tensors); }
  Execution run(const RunOptions& options) override { return threads_.run(options); }
  [[nodiscard]] Matrix<float> fetch(Rank rank, const Rectangle& area) const override {
    Matrix<float> value = threads_.fetch(rank, area);
    value.at(0, 0) = std::bit_cast<float>(std::bit_cast<std::uint32_t>(value.at(0, 0)) ^ 0x10000U);
    return value;
  }

 private:
  CpuExecutor threads_;
};

TEST(Verify, AnExecutorWithAFlippedBitFailsEveryBitwiseLevel) {
  const auto program = shared(program_named("ag_gemm", "commfuse", 2));
  const MakeExecutor with_flipped_bits = [](Lowered lowered, Sizes sizes) {
    return std::make_unique<FlippedBitExecutor>(std::move(lowered), std::move(sizes));
  };
  const Verdict verdict = verify(program, checked_sizes(*program)[1], {.orders = 2, .executor = with_flipped_bits});
  EXPECT_FALSE(verdict.moved->ok());
  EXPECT_FALSE(verdict.same_order->ok());
  EXPECT_FALSE(verdict.bitwise->ok());
  EXPECT_FALSE(verdict.integers.ok());
  // Two runs for each level, and one element of every buffer on two ranks.
  const auto buffers = static_cast<std::int64_t>(program->buffers.size());
  EXPECT_EQ(verdict.same_order->wrong, 4 * buffers);
  EXPECT_EQ(verdict.moved->wrong, 4 * buffers);
}

// The planted mistakes make threads read and write an element concurrently; a sanitizer would stop at the first race.
#ifdef __SANITIZE_THREAD__
constexpr bool races_are_allowed = false;
#else
constexpr bool races_are_allowed = true;
#endif

bool is_caught_on_threads(const Program& program, const Sizes& sizes, std::uint64_t seed) {
  CpuExecutor executor(lower(shared(program)), sizes, {});
  return test::goes_wrong(executor, seed);
}

TEST(CpuExecutor, CatchesPlantedMistakesOfEveryKind) {
  if (!races_are_allowed) {
    GTEST_SKIP() << "these schedules race on purpose";
  }
  std::array<test::Caught, 5> kinds;
  for (const char* operation : {"ag_gemm", "gemm_rs"}) {
    for (const char* strategy : {"commfuse", "sliced"}) {
      test::plant_in(program_of({&operation_named(operation), find_strategy(strategy), {.slices = 2}, 4, 1}),
                     is_caught_on_threads, 40, kinds);
    }
  }
  test::expect_caught(kinds, 3);
}

std::unique_ptr<CpuExecutor> executor_of(Shift& shift, CpuOptions options = {}) {
  return std::make_unique<CpuExecutor>(lower(shared(shift.program())), Sizes{{1, 1}}, std::move(options));
}

std::string reason_of(CpuExecutor& executor) {
  try {
    executor.run({});
  } catch (const Stuck& stuck) {
    return stuck.what();
  }
  return "";
}

TEST(CpuExecutor, MovesRowsByEveryProtocol) {
  for (const Protocol protocol : {Protocol::rendezvous, Protocol::push, Protocol::pull}) {
    Shift shift(3);
    shift.exchange(protocol);
    const auto executor = executor_of(shift);
    const Matrix<float> values = matrix({{10}, {11}, {12}});
    executor->prepare({&values, 1});
    EXPECT_TRUE(std::isnan(executor->fetch(0, {.buffer = shift.out, .rows = 1, .columns = 1}).at(0, 0)));
    executor->run({});
    for (Rank rank = 0; rank < 3; ++rank) {
      EXPECT_EQ(executor->fetch(rank, {.buffer = shift.out, .rows = 1, .columns = 1}),
                matrix({{static_cast<float>(10 + (rank + 2) % 3)}}));
    }
  }
}

TEST(CpuExecutor, OpsThatWaitForEachOtherAreNamedImmediately) {
  Shift shift(2);
  shift.send_only();
  shift.receive_only();
  EXPECT_EQ(reason_of(*executor_of(shift, {.patience = 1h})),
            "no op can run: rank 0 waits at op 0 (exchange) for rank 1, rank 1 waits at op 0 (exchange) for rank 0");
}

TEST(CpuExecutor, ManyStuckRanksAreCounted) {
  Shift shift(9);
  shift.send_only();
  shift.receive_only();
  EXPECT_NE(
      reason_of(*executor_of(shift, {.patience = 1h})).find(", rank 3 waits at op 0 (exchange) for rank 4, and 5 more"),
      std::string::npos);
}

/// Prices every op equally, without issue costs.
std::shared_ptr<const Costs> costs_of(std::size_t ops, Duration duration) {
  return std::make_shared<const Costs>(
      Costs{.duration = std::vector(ops, duration), .issue = std::vector(ops, Duration{})});
}

TEST(CpuExecutor, AbandonsAndNamesOpsThatDoNotEndInTime) {
  Shift shift(2);
  shift.exchange();
  EXPECT_EQ(reason_of(*executor_of(shift, {.costs = costs_of(1, 1h), .patience = 300ms})),
            "no op has completed for 0.3 s: rank 0 is busy with op 0 (exchange), rank 1 is busy with op 0 (exchange)");
}

TEST(CpuExecutor, AnEmulatedOpStartsAfterItsWaitsAndLastsAtLeastItsPrice) {
  const auto program = shared(program_named("gemm_rs", "commfuse", 3));
  CpuExecutor executor(lower(program), checked_sizes(*program)[0],
                       {.costs = costs_of(program->ops.size(), 200us), .dilation = 2.0});
  const Execution execution = executor.run({.traced = true});
  EXPECT_EQ(execution.timeline.size(), 3 * program->ops.size());
  std::vector<Instant> ends(3 * program->ops.size());
  Duration last{};
  for (const OpSpan& span : execution.timeline) {
    EXPECT_GE(span.end - span.start, 200us);
    const auto first = static_cast<std::size_t>(span.rank) * program->ops.size();
    for (const OpId wait : program->waits_of(program->ops[position(span.op)])) {
      EXPECT_GE(span.start, ends[first + position(wait)]);
    }
    ends[first + position(span.op)] = span.end;
    last = std::max(last, span.end.time_since_epoch());
  }
  EXPECT_EQ(execution.makespan, last);
}

TEST(CpuExecutor, EmulationRunsInFp8WhichRealWorkRefuses) {
  const auto program = shared(
      program_of({&operation_named("gemm_rs"), find_strategy("commfuse"), StrategyOptions{.dtype = DType::fp8}, 2, 1}));
  const Sizes sizes = checked_sizes(*program)[0];
  CpuExecutor executor(lower(program), sizes, {.costs = costs_of(program->ops.size(), 50us)});
  EXPECT_GE(executor.run({}).makespan, 50us);
  EXPECT_THROW(CpuExecutor(lower(program), sizes, {}), std::runtime_error);
}

TEST(CpuExecutor, APacedLinkTakesItsLatencyAndBandwidth) {
  Shift shift(2);
  shift.exchange();
  const auto executor = executor_of(shift, {.pace = Pace{.latency = 2ms, .bandwidth = {4000.0}}});
  const Matrix<float> values = matrix({{1}, {2}});
  executor->prepare({&values, 1});
  EXPECT_GE(executor->run({}).makespan, 3ms);  // 4 bytes at 4 kB/s, and the latency
  EXPECT_EQ(executor->fetch(0, {.buffer = shift.out, .rows = 1, .columns = 1}), matrix({{2}}));
}

TEST(Pace, ARingTakesOneStepPerOtherMember) {
  const Pace pace{.latency = 1us, .bandwidth = {1e9}};
  EXPECT_EQ(ring_time(pace, Bytes{4000}, 4, false), 6us);  // 3 x (1 us + 1000 B at 1 GB/s)
  EXPECT_EQ(ring_time(pace, Bytes{4000}, 4, true), 12us);  // An all-reduce passes the ring twice.
  EXPECT_EQ(ring_time(pace, Bytes{4000}, 1, false), 0us);
}

TEST(Pace, LanesOfARankShareItsBucket) {
  Bucket bucket;
  const WallTime start = WallClock::now();
  EXPECT_EQ(bucket.take(Bytes{1000}, start, {1e9}), start + 1us);
  EXPECT_EQ(bucket.take(Bytes{2000}, start, {1e9}), start + 3us);
  EXPECT_EQ(bucket.take(Bytes{1000}, start + 10us, {1e9}), start + 11us);
}

TEST(CpuExecutor, FastGemmsGiveTheInterpretersBitsToo) {
  const auto program = shared(program_named("gemm_rs", "commfuse", 4));
  Sizes sizes;
  for (std::size_t i = 0; i < program->dimensions.size(); ++i) {
    sizes.block.push_back(24 + 16 * static_cast<std::int64_t>(i));
  }
  const auto inputs = input_data(*program, sizes, DataKind::random, 1);
  Interpreter interpreter(lower(program), sizes);
  CpuExecutor executor(lower(program), sizes, {});
  interpreter.prepare(inputs);
  interpreter.run({.sum_order = SumOrder::blocked});
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    executor.prepare(inputs);
    executor.run({.sum_order = SumOrder::blocked, .order = seed});
    for (const Content& content : program->final) {
      for (Rank rank = 0; rank < 4; ++rank) {
        const Rectangle where = rectangle_of(*program, content.here, program->mesh.coordinates(rank));
        EXPECT_EQ(executor.fetch(rank, where), interpreter.fetch(rank, where));
      }
    }
  }
}

Rows<const float> view(const Matrix<float>& matrix) {
  return {matrix.values().data(), matrix.rows(), matrix.columns(), matrix.columns()};
}

Matrix<float> blocked(const Matrix<float>& a, bool transpose_a, const Matrix<float>& b, bool transpose_b) {
  Matrix<float> out(transpose_a ? a.columns() : a.rows(), transpose_b ? b.rows() : b.columns());
  blocked_product(view(a), transpose_a, view(b), transpose_b,
                  {out.values().data(), out.rows(), out.columns(), out.columns()});
  return out;
}

Matrix<float> random_matrix(Random& random, std::int64_t rows, std::int64_t columns) {
  Matrix<float> matrix(rows, columns);
  std::ranges::generate(matrix.values(), [&] { return random.uniform(); });
  return matrix;
}

TEST(Products, ABlockOfRowsHasTheBitsOfTheWholeGemm) {
  Random random(1);
  for (const auto& [rows, k, columns] :
       {std::array{64, 37, 48}, std::array{96, 300, 33}, std::array{80, 64, 64}, std::array{256, 1024, 256}}) {
    const Matrix<float> a = random_matrix(random, rows, k);
    const Matrix<float> b = random_matrix(random, k, columns);
    const Matrix<float> whole_blocked = blocked(a, false, b, false);
    const Matrix<float> whole_ascending = product(a, b);
    for (const std::int64_t parts : {2, 4, 8}) {
      for (std::int64_t part = 0; part < parts; ++part) {
        const std::int64_t height = rows / parts;
        const Matrix<float> part_of_a = rows_of(a, part * height, height);
        EXPECT_EQ(blocked(part_of_a, false, b, false), rows_of(whole_blocked, part * height, height));
        EXPECT_EQ(product(part_of_a, b), rows_of(whole_ascending, part * height, height));
      }
    }
  }
}

TEST(Products, ATransposedFactorOrAnEmbeddedResultHasTheSameBits) {
  Random random(2);
  const Matrix<float> a = random_matrix(random, 96, 300);
  const Matrix<float> b = random_matrix(random, 300, 64);
  const Matrix<float> expected = blocked(a, false, b, false);
  EXPECT_EQ(blocked(transposed(a), true, b, false), expected);
  EXPECT_EQ(blocked(a, false, transposed(b), true), expected);
  EXPECT_EQ(blocked(transposed(a), true, transposed(b), true), expected);
  Matrix<float> wide(96, 100, 7.0F);  // the result goes into columns 20 to 83
  blocked_product(view(a), false, view(b), false, {&wide.at(0, 20), 96, 64, 100});
  for (std::int64_t row = 0; row < 96; ++row) {
    EXPECT_TRUE(std::ranges::equal(wide.row(row).subspan(20, 64), expected.row(row)));
    EXPECT_EQ(wide.at(row, 19), 7.0F);
    EXPECT_EQ(wide.at(row, 84), 7.0F);
  }
}

TEST(Tags, AreFiniteAndHardlyEverEqual) {
  for (const DType dtype : {DType::bf16, DType::fp16, DType::fp32}) {
    const Program program = program_of({&operation_named("ag_gemm"), &serial_strategy, {.dtype = dtype}, 4, 1});
    const Matrix<float> tags = input_data(program, checked_sizes(program)[1], DataKind::tags, 1)[0];
    std::vector<float> sorted(tags.values().begin(), tags.values().end());
    EXPECT_TRUE(std::ranges::all_of(sorted, [](float x) { return std::isfinite(x); }));
    std::ranges::sort(sorted);
    const auto distinct = std::unique(sorted.begin(), sorted.end()) - sorted.begin();
    EXPECT_LT(std::ssize(sorted) - distinct, std::ssize(sorted) / 50);
  }
}

}  // namespace
}  // namespace commfuse::validate
