// SPDX-License-Identifier: Apache-2.0
#include "validate/bench/bench.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>

#include "model/analysis/percentiles.h"
#include "model/program/lower.h"
#include "validate/measure/protocol.h"
#include "validate/reference/data.h"

namespace commfuse::validate {

namespace {

/// A width and depth of a GEMM, from layers of small models and their shards.
struct Width {
  std::int64_t n;
  std::int64_t k;
};
constexpr std::array<Width, 15> widths{{{256, 1024},
                                        {512, 512},
                                        {512, 2048},
                                        {768, 768},
                                        {768, 1600},
                                        {1024, 256},
                                        {1024, 1024},
                                        {1024, 1536},
                                        {1280, 640},
                                        {1600, 800},
                                        {1600, 1600},
                                        {2048, 512},
                                        {2048, 1024},
                                        {2400, 800},
                                        {3200, 1600}}};
constexpr std::array<Width, 2> quick_widths{{{512, 512}, {1600, 800}}};
constexpr std::array<std::int64_t, 7> heights{32, 64, 96, 128, 192, 256, 512};
constexpr std::array<std::int64_t, 2> quick_heights{64, 256};

/// Sizes for a GPU: shards of Llama-3 8B to 405B and of GPT-3 in groups of eight, and a grid between them.
constexpr std::array<Width, 14> gpu_widths{{{1024, 8192},
                                            {2048, 2048},
                                            {2560, 8192},
                                            {3584, 4096},
                                            {4096, 4096},
                                            {4096, 14336},
                                            {6144, 4096},
                                            {6656, 16384},
                                            {7168, 8192},
                                            {8192, 1024},
                                            {8192, 3584},
                                            {8192, 8192},
                                            {12288, 6144},
                                            {16384, 2048}}};
constexpr std::array<Width, 2> quick_gpu_widths{{{4096, 4096}, {7168, 8192}}};
constexpr std::array<std::int64_t, 8> gpu_heights{128, 256, 512, 1024, 1536, 2048, 4096, 8192};
constexpr std::array<std::int64_t, 2> quick_gpu_heights{512, 4096};

constexpr std::int64_t min_message_bytes = 8 << 10;
std::int64_t max_message_bytes(const BenchPlan& plan) { return std::int64_t{plan.gpu ? 256 : 16} << 20U; }
constexpr std::array all_collectives{CollectiveKind::all_gather, CollectiveKind::reduce_scatter,
                                     CollectiveKind::all_reduce, CollectiveKind::all_to_all};

/// Returns the powers of two between the smallest and the largest message, and one and a half times each. A quick bench
/// has every fourth power of two only.
std::vector<Bytes> message_sizes(const BenchPlan& plan) {
  const std::int64_t limit = max_message_bytes(plan);
  std::vector<Bytes> sizes;
  for (std::int64_t size = min_message_bytes; size <= limit; size *= plan.quick ? 16 : 2) {
    sizes.push_back({size});
    if (!plan.quick && 3 * size / 2 < limit) {
      sizes.push_back({3 * size / 2});
    }
  }
  return sizes;
}

void add_products(const BenchPlan& plan, DType dtype, std::vector<MicroProgram>& to) {
  using Widths = std::span<const Width>;
  using Heights = std::span<const std::int64_t>;
  const Widths shapes =
      plan.gpu ? (plan.quick ? Widths(quick_gpu_widths) : gpu_widths) : (plan.quick ? Widths(quick_widths) : widths);
  const Heights row_counts = plan.gpu ? (plan.quick ? Heights(quick_gpu_heights) : gpu_heights)
                                      : (plan.quick ? Heights(quick_heights) : heights);
  for (const Width& width : shapes) {
    for (const std::int64_t m : row_counts) {
      to.push_back(product_alone(plan.ranks, {.m = m, .n = width.n, .k = width.k, .dtype = dtype}));
    }
  }
}

void add_kernels(const BenchPlan& plan, DType dtype, std::vector<MicroProgram>& to) {
  for (const Function function : {Function::copy, Function::add, Function::gelu, Function::swiglu, Function::norm}) {
    for (std::int64_t traffic = 64 << 10; traffic <= max_message_bytes(plan); traffic *= plan.quick ? 16 : 4) {
      to.push_back(kernel_alone(plan.ranks, function, dtype, {traffic}));
    }
  }
}

void add_messages(const BenchPlan& plan, DType wire, std::vector<MicroProgram>& to) {
  for (const Bytes size : message_sizes(plan)) {
    to.push_back(exchange_alone(plan.ranks, wire, size));
    for (const CollectiveKind kind : all_collectives) {
      const std::int64_t row_of_all_ranks = row_elements * bytes_of(wire) * plan.ranks;
      if (size.count >= row_of_all_ranks) {  // small messages of many ranks have no whole row for each
        to.push_back(collective_alone(plan.ranks, kind, wire, {size.count / row_of_all_ranks * row_of_all_ranks}));
      }
    }
  }
}

/// Largest number of consecutive exchanges that run next to a GEMM.
constexpr int max_exchanges = 512;
/// On a GPU two iterations have to fit behind a gate, which accepts max_behind_gate (launch_mode.h) commands per
/// stream. An exchange of virtual ranks is a copy, a record and two waits; an exchange of peers is a copy and four
/// flags.
constexpr int max_gpu_exchanges = 84;

void add_neighbours(const BenchPlan& plan, DType dtype, std::vector<MicroProgram>& to) {
  const GemmSize size = plan.gpu ? GemmSize{.m = 4096, .n = 7168, .k = 8192, .dtype = dtype}
                                 : GemmSize{.m = 256, .n = 1600, .k = 800, .dtype = dtype};
  for (const std::int64_t bytes : {std::int64_t{256} << 10U, std::int64_t{4} << 20U}) {
    constexpr std::int64_t moved_bytes = std::int64_t{512} << 20U;  // takes longer than the GEMM
    const int limit = plan.gpu ? max_gpu_exchanges : max_exchanges;
    const int exchanges = static_cast<int>(std::min<std::int64_t>(moved_bytes / bytes, limit));
    for (const Watched watched : {Watched::product, Watched::exchange}) {
      to.push_back(beside_each_other(plan.ranks, size, {bytes}, exchanges, watched));
    }
  }
}

std::string size_of(const MicroBenchmark& benchmark) {
  if (benchmark.op == "product") {
    return fmt::format("{} x {} x {}", benchmark.m, benchmark.n, benchmark.k);
  }
  const double kib = static_cast<double>(benchmark.bytes) / 1024.0;
  return benchmark.bytes > 0 ? fmt::format("{:.{}f} KiB", kib, benchmark.bytes % 1024 == 0 ? 0 : 1) : "";
}

/// Returns the rate with its unit; empty if the op has no rate.
std::string rate_of(const MicroBenchmark& benchmark, Duration time) {
  const double seconds = to_seconds(time);
  if (seconds <= 0.0 || (benchmark.op != "product" && benchmark.bytes == 0)) {
    return "";
  }
  if (benchmark.op == "product") {
    const auto flops =
        2.0 * static_cast<double>(benchmark.m) * static_cast<double>(benchmark.n) * static_cast<double>(benchmark.k);
    const double rate = flops / seconds / 1e9;
    return rate < 999.95 ? fmt::format("{:.1f} GFLOP/s", rate) : fmt::format("{:.1f} TFLOP/s", rate / 1e3);
  }
  return fmt::format("{:.2f} GB/s", static_cast<double>(benchmark.bytes) / seconds / 1e9);
}

std::string ms(Duration time) { return fmt::format("{:.3f}", to_seconds(time) * 1e3); }

}  // namespace

std::vector<MicroProgram> micro_programs(const BenchPlan& plan) {
  const auto wants = [&](BenchPart part) {
    return plan.parts.empty() || std::ranges::find(plan.parts, part) != plan.parts.end();
  };
  std::vector<MicroProgram> programs;
  for (const DType dtype : plan.dtypes) {
    if (wants(BenchPart::products)) {
      add_products(plan, dtype, programs);
    }
    if (wants(BenchPart::kernels)) {
      add_kernels(plan, dtype, programs);
    }
  }
  for (const bool on_two_lanes : {false, true}) {
    if (wants(BenchPart::gaps)) {
      programs.push_back(gaps(plan.ranks, on_two_lanes));
    }
  }
  if (plan.ranks > 1 && wants(BenchPart::messages)) {
    add_messages(plan, plan.dtypes.front(), programs);
  }
  if (plan.ranks > 1 && wants(BenchPart::neighbours)) {
    add_neighbours(plan, plan.dtypes.front(), programs);
  }
  return programs;
}

namespace {

/// Runs the op once without counting it, then until it has run as often or as long as requested.
std::vector<Duration> samples_of(const MicroProgram& micro, const BenchOptions& options, const MakeExecutor& make) {
  const std::unique_ptr<Executor> executor = make(lower(micro.program), micro.sizes);
  if (!executor->holds_own_data()) {
    executor->prepare(input_data(*micro.program, micro.sizes, DataKind::random, 1));
  }
  std::vector<Duration> samples;
  const auto is_enough = [&] {
    return options.alone && !samples.empty() &&
           std::accumulate(samples.begin(), samples.end(), Duration{}) >= options.enough;
  };
  for (int i = 0; i < options.repetitions && !is_enough(); ++i) {
    const Execution run = executor->run({.sum_order = SumOrder::blocked, .iterations = i == 0 ? 2 : 1, .traced = true});
    std::ranges::copy(samples_in(micro, run.timeline), std::back_inserter(samples));
  }
  return samples;
}

std::string name_of(const MicroBenchmark& benchmark) {
  return benchmark.beside.empty() ? benchmark.op : fmt::format("{} beside {}", benchmark.op, benchmark.beside);
}

std::string with_size(const MicroBenchmark& benchmark) {
  const std::string size = size_of(benchmark);
  return size.empty() ? name_of(benchmark) : fmt::format("{} {}", name_of(benchmark), size);
}

}  // namespace

BenchResult bench(const std::vector<MicroProgram>& programs, const BenchOptions& options, const MakeExecutor& make,
                  const std::function<void(std::size_t done, std::size_t measurements)>& after_each) {
  BenchResult result;
  for (const MicroProgram& micro : programs) {
    result.measured.push_back(micro.what);
  }
  std::vector<bool> failed(programs.size(), false);
  const auto measure = [&](std::size_t index) {
    MicroBenchmark& benchmark = result.measured[index];
    try {
      std::ranges::copy(samples_of(programs[index], options, make), std::back_inserter(benchmark.samples));
    } catch (const Stuck&) {
      throw;  // the executor can no longer be used
    } catch (const std::runtime_error& error) {
      if (!options.alone) {
        throw;
      }
      failed[index] = true;
      benchmark.samples.clear();
      result.failures.push_back(fmt::format("{}: not measured: {}", with_size(benchmark), error.what()));
    }
  };
  const std::size_t measurements = programs.size() * static_cast<std::size_t>(options.passes);
  std::size_t done = 0;
  try {
    for (const std::vector<std::size_t>& order : turns(programs.size(), options.passes, options.seed)) {
      for (const std::size_t index : order) {
        if (!failed[index]) {
          measure(index);
        }
        ++done;
        if (after_each) {
          after_each(done, measurements);
        }
      }
    }
  } catch (const Stuck& stuck) {
    result.failures.push_back(fmt::format("stopped after {} of {} measurements: {}", done, measurements, stuck.what()));
  }
  std::erase_if(result.measured, [](const MicroBenchmark& benchmark) { return benchmark.samples.empty(); });
  return result;
}

std::string to_table(const std::vector<MicroBenchmark>& measured) {
  constexpr auto line = "{:<14} {:<4} {:<19} {:>8} {:>17}{}{}\n";
  std::string text = fmt::format(line, "milliseconds", "", "", "median", "p10..p90", "", "");
  for (const MicroBenchmark& benchmark : measured) {
    const Summary summary = summary_of(benchmark.samples);
    const std::string rate = rate_of(benchmark, summary.median.value);
    text += fmt::format(line, benchmark.op, benchmark.dtype, size_of(benchmark), ms(summary.median.value),
                        fmt::format("{}..{}", ms(summary.p10), ms(summary.p90)), rate.empty() ? "" : " ", rate);
    text += benchmark.beside.empty() ? "" : fmt::format("  beside {}\n", benchmark.beside);
  }
  return text;
}

}  // namespace commfuse::validate
