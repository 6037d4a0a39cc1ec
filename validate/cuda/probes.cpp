// SPDX-License-Identifier: Apache-2.0
#include "validate/cuda/probes.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <exception>
#include <memory>
#include <stdexcept>

#include "model/analysis/percentiles.h"
#include "validate/cuda/probe_tools.h"

namespace commfuse::validate {

namespace {

using probing::behind_gate;
using probing::finish;
using probing::gated_samples;
using probing::Matrices;
using probing::Micros;
using probing::number;
using probing::probe_attention;
using probing::probe_fused_attention;
using probing::ProbeRows;
using probing::run_without_gate;
using probing::sampled;
using probing::spans_if_traced;
using probing::turns_for;

/// Length of a chain: long enough to make its start and end negligible, and short enough to fit behind a gate.
constexpr int chain = 100;

// --- launch

/// Measures the host's time to launch a kernel.
ProbeRow host_launch(Device& device, const ProbeOptions& options, StreamId stream) {
  const auto once = [&] {
    const auto before = std::chrono::steady_clock::now();
    for (int i = 0; i < chain; ++i) {
      device.driver().spin(stream, Duration{});
    }
    const Micros elapsed = std::chrono::steady_clock::now() - before;
    finish(device);
    return elapsed / chain;
  };
  return {.probe = "host_launch", .samples = sampled(options, once)};
}

/// Measures kernels that watch the clock for `nanoseconds`: their times show the resolution of the clock.
ProbeRow spin(Device& device, const ProbeOptions& options, StreamId stream, std::int64_t nanoseconds) {
  constexpr int spins = 10;
  const auto issue = [&] {
    for (int i = 0; i < spins; ++i) {
      device.driver().spin(stream, std::chrono::nanoseconds(nanoseconds));
    }
  };
  return {.probe = "spin",
          .parameters = {{"asked_ns", number(nanoseconds)}},
          .samples = gated_samples(device, options, issue, spins)};
}

std::vector<ProbeRow> probe_launch(Device& device, const ProbeOptions& options) {
  Driver& driver = device.driver();
  const StreamId a = device.stream(0, false);
  const StreamId b = device.stream(1, true);
  const auto one_stream = [&] {
    for (int i = 0; i < chain; ++i) {
      driver.spin(a, Duration{});
    }
  };
  const auto two_streams = [&] {
    for (int i = 0; i < chain; ++i) {
      const StreamId stream = i % 2 == 0 ? a : b;
      driver.spin(stream, Duration{});
      driver.record(device.event(0), stream);
      driver.wait(i % 2 == 0 ? b : a, device.event(0));
    }
  };
  const auto samples_per_kernel = [&](const std::function<void()>& issue) {
    return gated_samples(device, options, issue, chain);
  };
  ProbeRows rows(options);
  rows.push_back(host_launch(device, options, a));
  rows.push_back({.probe = "kernel_gap", .samples = samples_per_kernel(one_stream)});
  rows.push_back({.probe = "event_wake", .samples = samples_per_kernel(two_streams)});
  for (const bool across_streams : {false, true}) {
    Capture capture(driver, a);
    across_streams ? two_streams() : one_stream();
    const GraphId graph = capture.end();
    rows.push_back({.probe = across_streams ? "graph_wake" : "graph_node",
                    .samples = samples_per_kernel([&] { driver.launch(a, graph); })});
  }
  for (const std::int64_t nanoseconds : {200, 500, 1000, 2000, 5000, 20000}) {
    rows.push_back(spin(device, options, a, nanoseconds));
  }
  return rows.take();
}

// --- GEMMs

struct Size {
  std::int64_t m, n, k;
};

/// Returns the sizes of GEMMs of Llama-3 70B and 405B on eight ranks, and of their slices.
std::vector<Size> product_sizes(const ProbeOptions& options) {
  if (options.quick) {
    return {{1024, 7168, 8192}, {8192, 7168, 8192}};
  }
  std::vector<Size> sizes;
  for (const auto& [n, k] :
       {std::pair<std::int64_t, std::int64_t>{7168, 8192}, {8192, 3584}, {13312, 16384}, {16384, 6656}}) {
    for (const std::int64_t m : {256, 512, 1024, 2048, 4096, 8192}) {
      sizes.push_back({m, n, k});
    }
  }
  return sizes;
}

/// Drops counts of 0 or less, which small GPUs (MIG slices) yield and drivers read as all multiprocessors.
std::vector<int> positive_only(std::vector<int> numbers) {
  std::erase_if(numbers, [](int number) { return number <= 0; });
  return numbers;
}

/// Returns the number of all multiprocessors, and the numbers that communication kernels of several sizes leave free.
std::vector<int> budgets(Device& device, const ProbeOptions& options) {
  const int available = device.driver().facts().multiprocessors;
  return positive_only(options.quick
                           ? std::vector{available, available - 16}
                           : std::vector{available, available - 4, available - 8, available - 16, available - 32});
}

std::vector<std::pair<std::string, std::string>> named(const Size& size) {
  return {{"m", number(size.m)}, {"n", number(size.n)}, {"k", number(size.k)}, {"dtype", "bf16"}};
}

std::vector<ProbeRow> probe_products(Device& device, const ProbeOptions& options) {
  ProbeRows rows(options);
  for (const Size& size : product_sizes(options)) {
    const std::int64_t elements = size.m * size.k + size.k * size.n + size.m * size.n;
    const std::size_t turns = turns_for(device, {elements * bytes_of(DType::bf16)});
    const Matrices a(device, size.m, size.k, DType::bf16, turns);
    const Matrices b(device, size.k, size.n, DType::bf16, turns);
    const Matrices out(device, size.m, size.n, DType::bf16, turns);
    for (const int budget : budgets(device, options)) {
      for (const bool accumulate : {false, true}) {
        std::size_t turn = 0;
        const auto issue = [&] {
          ++turn;
          device.driver().product(device.stream(0, false), {.a = a.at(turn),
                                                            .b = b.at(turn),
                                                            .out = out.at(turn),
                                                            .accumulate = accumulate,
                                                            .sum_order = SumOrder::blocked,
                                                            .multiprocessors = budget});
        };
        ProbeRow row{.probe = "product", .parameters = named(size)};
        row.parameters.emplace_back("multiprocessors", number(budget));
        row.parameters.emplace_back("accumulate", accumulate ? "yes" : "no");
        row.samples = gated_samples(device, options, issue);
        rows.push_back(std::move(row));
      }
    }
  }
  return rows.take();
}

// --- links

MoveCall move_of(const Panel& from, const Panel& to, const DeviceLink& link) {
  return {.parts = {{from, to}}, .wire = from.dtype, .link = link};
}

std::vector<std::int64_t> message_sizes(const ProbeOptions& options) {
  std::vector<std::int64_t> sizes;
  for (std::int64_t size = 4 << 10; size <= 256 << 20; size *= options.quick ? 64 : 4) {
    sizes.push_back(size);
  }
  return sizes;
}

/// Measures one direction, and both directions simultaneously on two streams.
void probe_link(Device& device, const ProbeOptions& options, std::string_view name, const DeviceLink& link,
                std::int64_t bytes, ProbeRows& rows) {
  constexpr std::int64_t width = 1024;
  const Matrices from(device, bytes / width / 2, width, DType::bf16);
  const Matrices to(device, bytes / width / 2, width, DType::bf16);
  const Matrices back(device, bytes / width / 2, width, DType::bf16);
  for (const bool both_ways : {false, true}) {
    std::size_t turn = 0;
    const auto issue = [&] {
      Driver& driver = device.driver();
      const StreamId a = device.stream(0, false);
      const StreamId b = device.stream(1, true);
      if (both_ways) {
        driver.record(device.event(0), a);
        driver.wait(b, device.event(0));
        driver.move(b, move_of(to.at(turn + 1), back.at(turn + 1), link));
        driver.record(device.event(1), b);
      }
      driver.move(a, move_of(from.at(turn), to.at(turn), link));
      if (both_ways) {
        driver.wait(a, device.event(1));
      }
    };
    run_without_gate(device, issue);
    const auto once = [&] {
      ++turn;
      return behind_gate(device, issue);
    };
    rows.push_back(
        {.probe = std::string(name),
         .parameters = {{"bytes", number(bytes)}, {"ctas", number(link.ctas)}, {"directions", both_ways ? "2" : "1"}},
         .samples = sampled(options, once)});
  }
}

std::vector<ProbeRow> probe_links(Device& device, const ProbeOptions& options) {
  ProbeRows rows(options);
  for (const std::int64_t bytes : message_sizes(options)) {
    for (const int ctas : options.quick ? std::vector{4, 16} : std::vector{1, 2, 4, 8, 16, 32}) {
      probe_link(device, options, "copy", {.kind = LinkKind::copy, .ctas = ctas}, bytes, rows);
    }
    probe_link(device, options, "paced",
               {.kind = LinkKind::paced, .ctas = 8, .pace = {std::chrono::microseconds(5), {1e11}}}, bytes, rows);
    probe_link(device, options, "bounce", {.kind = LinkKind::bounce}, bytes, rows);
  }
  return rows.take();
}

// --- interference

/// Times a GEMM and a series of copies, alone and at the same time.
class Interference {
 public:
  Interference(Device& device, const ProbeOptions& options) : device_(device), options_(options) {}

  /// Work that runs at the same time.
  struct Work {
    int ctas = 1;  ///< CTAs of the copies, whose multiprocessors the GEMM does not use.
    bool product = false;
    bool copies = false;
  };

  void measure(const Work& work, ProbeRows& rows) {
    const auto issue = [&] {
      if (work.copies) {
        issue_copies(work.ctas);
      }
      if (work.product) {
        issue_product(work.ctas);
      }
    };
    run_without_gate(device_, issue);
    std::vector<double> copy_times;
    std::vector<double> total_times = sampled(options_, [&] {
      ++turn_;
      const Micros micros = behind_gate(device_, issue);
      if (work.copies) {
        const Duration copying = device_.driver().elapsed(device_.timed_event(2), device_.timed_event(3));
        copy_times.push_back(Micros(copying).count() / copies);
      }
      return micros;
    });
    const std::vector<std::pair<std::string, std::string>> parameters{
        {"ctas", number(work.ctas)}, {"beside", work.product && work.copies ? "yes" : "no"}};
    if (work.product) {
      rows.push_back({.probe = "product_beside_copy", .parameters = parameters, .samples = std::move(total_times)});
    }
    if (work.copies) {
      copy_times.erase(copy_times.begin());  // sampled() does not count its first call
      rows.push_back({.probe = "copy_beside_product", .parameters = parameters, .samples = std::move(copy_times)});
    }
  }

 private:
  static constexpr Size size{4096, 7168, 8192};
  static constexpr std::int64_t bytes = 16 << 20;
  static constexpr int copies = 20;

  void issue_copies(int ctas) {
    Driver& driver = device_.driver();
    const StreamId comm = device_.stream(1, true);
    driver.record(device_.event(0), device_.stream(0, false));
    driver.wait(comm, device_.event(0));
    driver.record(device_.timed_event(2), comm);
    for (int i = 0; i < copies; ++i) {
      driver.move(comm, move_of(from_.at(turn_), to_.at(turn_), {.kind = LinkKind::copy, .ctas = ctas}));
    }
    driver.record(device_.timed_event(3), comm);
  }
  void issue_product(int ctas) {
    device_.driver().product(device_.stream(0, false),
                             {.a = a_.at(turn_),
                              .b = b_.at(turn_),
                              .out = out_.at(turn_),
                              .sum_order = SumOrder::blocked,
                              .multiprocessors = device_.driver().facts().multiprocessors - ctas});
  }

  Device& device_;
  const ProbeOptions& options_;
  std::size_t turn_ = 0;
  Matrices a_{device_, size.m, size.k, DType::bf16};
  Matrices b_{device_, size.k, size.n, DType::bf16};
  Matrices out_{device_, size.m, size.n, DType::bf16};
  Matrices from_{device_, bytes / 2048, 1024, DType::bf16};
  Matrices to_{device_, bytes / 2048, 1024, DType::bf16};
};

std::vector<ProbeRow> probe_interference(Device& device, const ProbeOptions& options) {
  Interference probe(device, options);
  ProbeRows rows(options);
  for (const int ctas : options.quick ? std::vector{4, 16} : std::vector{1, 2, 4, 8, 16, 32}) {
    if (ctas >= device.driver().facts().multiprocessors) {
      break;  // the copy would leave no multiprocessor to the GEMM
    }
    probe.measure({.ctas = ctas, .product = true}, rows);
    probe.measure({.ctas = ctas, .copies = true}, rows);
    probe.measure({.ctas = ctas, .product = true, .copies = true}, rows);
  }
  return rows.take();
}

// --- pinned

std::vector<std::byte> downloaded(Device& device, const Panel& panel) {
  std::vector<std::byte> bytes(static_cast<std::size_t>(panel.bytes().count));
  device.driver().download(bytes, panel.at);
  return bytes;
}

/// Checks whether a whole GEMM has the same bits as its shards if it runs the kernel that is chosen for them, and
/// measures the time of that GEMM.
std::vector<ProbeRow> probe_pinned(Device& device, const ProbeOptions& options) {
  Driver& driver = device.driver();
  const StreamId stream = device.stream(0, false);
  ProbeRows rows(options);
  for (const Size& size : product_sizes(options)) {
    const Matrices a(device, size.m, size.k, DType::bf16);
    const Matrices b(device, size.k, size.n, DType::bf16);
    const Matrices out(device, size.m, size.n, DType::bf16);
    for (const std::int64_t parts : {2, 4, 8}) {
      const std::int64_t height = size.m / parts;
      ProductCall whole{.a = a.at(0), .b = b.at(0), .out = out.at(0), .sum_order = SumOrder::blocked};
      ProbeRow same{.probe = "pinned_same_bits", .parameters = named(size), .unit = "share"};
      same.parameters.emplace_back("parts", number(parts));
      ProbeRow cost{.probe = "pinned_product", .parameters = same.parameters};
      for (std::int64_t part = 0; part < parts; ++part) {
        ProductCall shard = whole;
        shard.a.rows = shard.out.rows = height;
        shard.a.at += static_cast<Address>(part * height * size.k * bytes_of(DType::bf16));
        shard.out.at = out.at(1).at + static_cast<Address>(part * height * size.n * bytes_of(DType::bf16));
        driver.product(stream, shard);
      }
      whole.algorithm_rows = height;
      try {
        cost.samples = gated_samples(device, options, [&] { driver.product(stream, whole); });
      } catch (const std::runtime_error&) {  // the shards' algorithm does not accept the whole GEMM
        same.samples = {0.0};
        rows.push_back(std::move(same));
        continue;
      }
      same.samples = {downloaded(device, out.at(0)) == downloaded(device, out.at(1)) ? 1.0 : 0.0};
      rows.push_back(std::move(same));
      rows.push_back(std::move(cost));
    }
  }
  return rows.take();
}

// --- engines

/// Determines which engine copies, and how fast: kernels occupy multiprocessors, copy engines do not.
std::vector<ProbeRow> probe_engines(Device& device, const ProbeOptions& options) {
  constexpr std::int64_t bytes = 64 << 20;
  const Matrices from(device, bytes / 2048, 1024, DType::bf16);
  const Matrices to(device, bytes / 2048, 1024, DType::bf16);
  Driver& driver = device.driver();
  ProbeRows rows(options);
  for (const auto& [name, kind] : {std::pair<const char*, LinkKind>{"kernel", LinkKind::copy},
                                   {"plain", LinkKind::plain},
                                   {"bounce", LinkKind::bounce}}) {
    const DeviceLink link{.kind = kind};
    const auto issue = [&] { driver.move(device.stream(0, false), move_of(from.at(0), to.at(0), link)); };
    run_without_gate(device, issue);  // so that nothing is created while the trace runs
    const std::vector<std::pair<std::string, std::string>> parameters{{"by", name}, {"bytes", number(bytes)}};
    ProbeRow engine{.probe = "copy_engine", .parameters = parameters, .unit = "share"};
    for (const DeviceSpan& span : spans_if_traced(device, issue)) {
      engine.samples.push_back(span.by_copy_engine ? 1.0 : 0.0);
    }
    if (!engine.samples.empty()) {  // empty on a device without a tracer
      rows.push_back(std::move(engine));
    }
    rows.push_back({.probe = "copy_by", .parameters = parameters, .samples = gated_samples(device, options, issue)});
  }
  return rows.take();
}

// --- partitions

/// A partition that the destructor gives back, so that another size can be reserved.
class PartitionLease {
 public:
  PartitionLease(Driver& driver, const Partition& partition) : driver_(driver), partition_(partition) {}
  PartitionLease(const PartitionLease&) = delete;
  PartitionLease& operator=(const PartitionLease&) = delete;
  ~PartitionLease() {
    try {
      driver_.end_partition(partition_);
    } catch (const std::exception&) {  // the device is lost, and the partition with it
    }
  }

 private:
  Driver& driver_;
  Partition partition_;
};

/// Times a GEMM on reserved multiprocessors, and a GEMM that is limited to the same number of shared multiprocessors.
std::vector<ProbeRow> probe_partitions(Device& device, const ProbeOptions& options) {
  Driver& driver = device.driver();
  const Size size{4096, 7168, 8192};
  const int available = driver.facts().multiprocessors;
  ProbeRows rows(options);
  for (const int requested : positive_only({available / 2, available - 16})) {
    Partition partition;
    try {
      partition = driver.make_partition(requested);
    } catch (const std::runtime_error& error) {
      fmt::print(stderr, "{} multiprocessors cannot be reserved: {}\n", requested, error.what());
      rows.push_back({.probe = "partitions",
                      .parameters = {{"multiprocessors", number(requested)}},
                      .unit = "share",
                      .samples = {0.0}});
      continue;
    }
    const PartitionLease lease(driver, partition);
    const StreamId reserved_stream = driver.make_stream_on(partition, false);
    const Matrices a(device, size.m, size.k, DType::bf16);
    const Matrices b(device, size.k, size.n, DType::bf16);
    const Matrices out(device, size.m, size.n, DType::bf16);
    for (const bool is_reserved : {false, true}) {
      const StreamId on = is_reserved ? reserved_stream : device.stream(0, false);
      const auto issue = [&] {
        driver.record(device.event(0), device.stream(0, false));
        driver.wait(on, device.event(0));
        driver.product(on, {.a = a.at(0),
                            .b = b.at(0),
                            .out = out.at(0),
                            .sum_order = SumOrder::blocked,
                            .multiprocessors = requested});
        driver.record(device.event(1), on);
        driver.wait(device.stream(0, false), device.event(1));
      };
      ProbeRow row{.probe = "product_on_partition", .parameters = named(size)};
      row.parameters.emplace_back("multiprocessors", number(requested));
      row.parameters.emplace_back("set_apart", number(partition.multiprocessors));
      row.parameters.emplace_back("apart", is_reserved ? "yes" : "no");
      row.samples = gated_samples(device, options, issue);
      rows.push_back(std::move(row));
    }
  }
  return rows.take();
}

// --- nccl

/// Runs a probe that NCCL may refuse. A refusal becomes a row with the share 0 and a line on stderr.
ProbeRow row_of_attempt(std::string probe, std::vector<std::pair<std::string, std::string>> parameters,
                        const std::function<double()>& attempt) {
  ProbeRow row{.probe = std::move(probe), .parameters = std::move(parameters), .unit = "share"};
  try {
    row.samples = {attempt()};
  } catch (const std::runtime_error& error) {
    fmt::print(stderr, "{}: {}\n", row.probe, error.what());
    row.samples = {0.0};
  }
  return row;
}

/// A message from a rank to itself, for which NCCL runs a kernel.
class SelfMessage {
 public:
  SelfMessage(Device& device, Network& network, std::int64_t bytes)
      : device_(device),
        network_(network),
        communicator_(network.split(0)),
        from_(device, bytes / 2048, 1024, DType::bf16),
        to_(device, bytes / 2048, 1024, DType::bf16) {}

  void issue() {
    const std::array sends{MessageEnd{0, from_.at(0)}};
    const std::array receives{MessageEnd{0, to_.at(0)}};
    device_.driver().label(label);
    network_.exchange(communicator_, device_.stream(0, false), sends, receives);
  }
  /// Returns the tracer's spans of one message.
  std::vector<DeviceSpan> traced() {
    run_without_gate(device_, [&] { issue(); });
    Trace trace(device_.driver());
    run_without_gate(device_, [&] { issue(); });
    return trace.end();
  }

  static constexpr std::uint64_t label = 7;

 private:
  Device& device_;
  Network& network_;
  std::size_t communicator_;
  Matrices from_;
  Matrices to_;
};

constexpr std::int64_t one_mib = 1 << 20;

/// Returns the share of a message's kernels that the tracer attributes to the message. A share below 1 means that spans
/// of NCCL are lost.
double attributed_share(Device& device, Network& network) {
  SelfMessage message(device, network, one_mib);
  const std::vector<DeviceSpan> spans = message.traced();
  if (spans.empty()) {
    throw std::runtime_error("the tracer saw no kernel of a message");
  }
  return static_cast<double>(std::ranges::count(spans, SelfMessage::label, &DeviceSpan::label)) /
         static_cast<double>(spans.size());
}

/// Measures a message as a node of a graph.
std::vector<double> graph_samples(Device& device, const ProbeOptions& options, Network& network) {
  SelfMessage message(device, network, one_mib);
  run_without_gate(device, [&] { message.issue(); });
  const StreamId stream = device.stream(0, false);
  Capture capture(device.driver(), stream);
  message.issue();
  const GraphId graph = capture.end();
  return gated_samples(device, options, [&] { device.driver().launch(stream, graph); });
}

/// Determines what a single GPU can show: whether NCCL starts, and whether its kernels can be traced and captured and
/// can use windows.
void probe_nccl_features(Device& device, const ProbeOptions& options, ProbeRows& rows) {
  for (const bool blocking : {true, false}) {
    rows.push_back(row_of_attempt("attributed", {{"blocking", blocking ? "yes" : "no"}},
                                  [&] { return attributed_share(device, *options.connect({.blocking = blocking})); }));
  }
  rows.push_back(row_of_attempt("captured", {}, [&] {
    const std::unique_ptr<Network> network = options.connect({.graphs = true});
    rows.push_back({.probe = "graph_message",
                    .parameters = {{"bytes", number(one_mib)}},
                    .samples = graph_samples(device, options, *network)});
    return 1.0;
  }));
  rows.push_back(row_of_attempt("windows", {}, [&] {
    const std::unique_ptr<Network> network = options.connect({.cta_policy = 2, .registered = true});
    SelfMessage message(device, *network, one_mib);
    run_without_gate(device, [&] { message.issue(); });
    return 1.0;
  }));
}

/// Measures the host's time for a group, and the device's time for a message from a rank to itself, which crosses no
/// link but has all other costs.
std::vector<ProbeRow> probe_nccl(Device& device, const ProbeOptions& options) {
  if (!options.connect) {
    fmt::print(stderr, "nccl: NCCL is missing in this build or on this machine\n");
    return {};
  }
  constexpr int groups = 20;
  ProbeRows rows(options);
  const auto before = std::chrono::steady_clock::now();
  const std::unique_ptr<Network> network = options.connect({});
  rows.push_back({.probe = "init", .samples = {Micros(std::chrono::steady_clock::now() - before).count()}});
  probe_nccl_features(device, options, rows);
  for (const std::int64_t bytes : message_sizes(options)) {
    SelfMessage message(device, *network, bytes);
    const auto issue = [&] { message.issue(); };
    run_without_gate(device, issue);
    const auto enqueue = [&] {
      const auto begun = std::chrono::steady_clock::now();
      for (int i = 0; i < groups; ++i) {
        issue();
      }
      const Micros elapsed = std::chrono::steady_clock::now() - begun;
      finish(device);
      return elapsed / groups;
    };
    const std::vector<std::pair<std::string, std::string>> parameters{{"bytes", number(bytes)}};
    rows.push_back({.probe = "group_enqueue", .parameters = parameters, .samples = sampled(options, enqueue)});
    rows.push_back({.probe = "self_send", .parameters = parameters, .samples = gated_samples(device, options, issue)});
    ProbeRow grid{.probe = "self_send_ctas", .parameters = parameters, .unit = "ctas"};
    for (const DeviceSpan& span : spans_if_traced(device, issue)) {
      grid.samples.push_back(span.ctas);
    }
    if (!grid.samples.empty()) {
      rows.push_back(std::move(grid));
    }
  }
  return rows.take();
}

constexpr std::array<ProbeStage, 10> stages{
    {{"launch", "launches, gaps, events, graph nodes, the clock", probe_launch},
     {"products", "GEMMs of slices on all and on fewer SMs", probe_products},
     {"attention", "attention of slices of the queries", probe_attention},
     {"fused", "attention by cuDNN's fused kernel, compared with commfuse's", probe_fused_attention},
     {"links", "copies by size and CTAs, paced, and through host memory", probe_links},
     {"interference", "a GEMM and a copy at the same time", probe_interference},
     {"engines", "copies by kernels, the runtime, and copy engines through the host", probe_engines},
     {"partitions", "a GEMM on reserved SMs", probe_partitions},
     {"nccl", "an NCCL group, and a message to itself", probe_nccl},
     {"pinned", "bits and time of a whole GEMM that runs the kernel chosen for its shards", probe_pinned}}};

}  // namespace

std::span<const ProbeStage> probe_stages() { return stages; }

std::string probe_header() { return "stage,probe,parameters,unit,n,median,p10,p90\n"; }

std::string unfinished_row(std::string_view stage) {
  const ProbeRow row{.probe = "unfinished", .unit = "share", .samples = {1.0}};
  return to_csv(stage, {&row, 1});
}

std::string without_unfinished(const std::string& text) {
  std::string kept = text;
  for (const ProbeStage& stage : probe_stages()) {
    if (text.find("\n" + unfinished_row(stage.name)) == std::string::npos) {
      continue;
    }
    const std::string begin = fmt::format("\n{},", stage.name);
    for (std::size_t at = kept.find(begin); at != std::string::npos; at = kept.find(begin, at)) {
      const std::size_t end = std::min(kept.find('\n', at + 1), kept.size());
      kept.erase(at, end - at);
    }
  }
  return kept;
}

std::string to_csv(std::string_view stage, std::span<const ProbeRow> rows) {
  std::string text;
  for (const ProbeRow& row : rows) {
    std::string parameters;
    for (const auto& [name, value] : row.parameters) {
      parameters += fmt::format("{}{}={}", parameters.empty() ? "" : ";", name, value);
    }
    std::vector<double> samples = row.samples;
    std::ranges::sort(samples);
    const auto at = [&](int per_mille) { return samples[order_of(samples.size(), per_mille) - 1]; };
    text += fmt::format("{},{},{},{},{},{:.4f},{:.4f},{:.4f}\n", stage, row.probe, parameters, row.unit, samples.size(),
                        at(500), at(100), at(900));
  }
  return text;
}

}  // namespace commfuse::validate
