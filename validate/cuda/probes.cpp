// SPDX-License-Identifier: Apache-2.0
#include "validate/cuda/probes.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <stdexcept>

#include "model/analysis/percentiles.h"

namespace commfuse::validate {

namespace {

using Micros = std::chrono::duration<double, std::micro>;

constexpr Duration patience = std::chrono::seconds(30);
/// Links of a chain: so many that what begins and ends it hardly counts, and all fit behind a gate.
constexpr int chain = 100;
/// Products and copies take turns on so much memory that none finds its factors in the second-level cache.
constexpr std::size_t sets = 3;

std::string number(std::int64_t value) { return fmt::format("{}", value); }

void finish(Device& device) {
  if (!device.driver().finish(patience)) {
    throw std::runtime_error("a probe has not come to its end within 30 s");
  }
}

/// How long what `issue` gives to streams takes on the device, all of it issued before the first begins. The first
/// stream begins and ends it.
Micros behind_gate(Device& device, const std::function<void()>& issue) {
  Driver& driver = device.driver();
  const StreamId first = device.stream(0, false);
  driver.close_gate();
  driver.gate(first);
  driver.record(device.timed_event(0), first);
  issue();
  driver.record(device.timed_event(1), first);
  driver.open_gate();
  finish(device);
  return driver.elapsed(device.timed_event(0), device.timed_event(1));
}

/// What is made when it is first needed, rooms and connections, cannot be made behind a gate.
void once_in_the_open(Device& device, const std::function<void()>& issue) {
  issue();
  finish(device);
}

/// So many samples after one that does not count.
std::vector<double> sampled(const ProbeOptions& options, const std::function<Micros()>& once) {
  once();
  std::vector<double> samples;
  for (int i = 0; i < options.repetitions; ++i) {
    samples.push_back(once().count());
  }
  return samples;
}

/// A matrix of the device's memory for every turn, filled.
class Matrices {
 public:
  Matrices(Device& device, std::int64_t rows, std::int64_t columns, DType dtype)
      : panel_{0, rows, columns, columns, dtype},
        stride_((panel_.bytes().count + 255) / 256 * 256),
        memory_(device.driver(), {static_cast<std::int64_t>(sets) * stride_}) {
    for (std::size_t i = 0; i < sets; ++i) {
      device.driver().randomize(device.stream(0, false), at(i), i + 1);
    }
    finish(device);
  }
  [[nodiscard]] Panel at(std::size_t turn) const {
    Panel panel = panel_;
    panel.at = memory_.at() + static_cast<Address>(static_cast<std::int64_t>(turn % sets) * stride_);
    return panel;
  }

 private:
  Panel panel_;
  std::int64_t stride_;
  Allocation memory_;
};

// --- launch

std::vector<ProbeRow> ask_launch(Device& device, const ProbeOptions& options) {
  Driver& driver = device.driver();
  const StreamId a = device.stream(0, false);
  const StreamId b = device.stream(1, true);
  std::vector<ProbeRow> rows;
  rows.push_back({.probe = "host_launch", .samples = sampled(options, [&] {
                                            const auto before = std::chrono::steady_clock::now();
                                            for (int i = 0; i < chain; ++i) {
                                              driver.spin(a, Duration{});
                                            }
                                            const Micros took = std::chrono::steady_clock::now() - before;
                                            finish(device);
                                            return took / chain;
                                          })});
  const auto one_stream = [&] {
    for (int i = 0; i < chain; ++i) {
      driver.spin(a, Duration{});
    }
  };
  const auto two_streams = [&] {
    for (int i = 0; i < chain; ++i) {
      const StreamId here = i % 2 == 0 ? a : b;
      driver.spin(here, Duration{});
      driver.record(device.event(0), here);
      driver.wait(i % 2 == 0 ? b : a, device.event(0));
    }
  };
  rows.push_back(
      {.probe = "kernel_gap", .samples = sampled(options, [&] { return behind_gate(device, one_stream) / chain; })});
  rows.push_back(
      {.probe = "event_wake", .samples = sampled(options, [&] { return behind_gate(device, two_streams) / chain; })});
  for (const bool across : {false, true}) {
    driver.begin_capture(a);
    across ? two_streams() : one_stream();
    const GraphId graph = driver.end_capture();
    rows.push_back(
        {.probe = across ? "graph_wake" : "graph_node",
         .samples = sampled(options, [&] { return behind_gate(device, [&] { driver.launch(a, graph); }) / chain; })});
  }
  for (const int nanoseconds : {200, 500, 1000, 2000, 5000, 20000}) {
    rows.push_back({.probe = "spin",
                    .parameters = {{"asked_ns", number(nanoseconds)}},
                    .samples = sampled(options, [&] {
                      return behind_gate(device,
                                         [&] {
                                           for (int i = 0; i < 10; ++i) {
                                             driver.spin(a, std::chrono::nanoseconds(nanoseconds));
                                           }
                                         }) /
                             10;
                    })});
  }
  return rows;
}

// --- products

struct Size {
  std::int64_t m, n, k;
};

/// Shards of Llama-3 70B and 405B in groups of eight, and their slices.
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

/// All, and what is left beside as many blocks of a communication kernel.
std::vector<int> budgets(Device& device, const ProbeOptions& options) {
  const int all = device.driver().facts().multiprocessors;
  return options.quick ? std::vector{all, all - 16} : std::vector{all, all - 4, all - 8, all - 16, all - 32};
}

std::vector<std::pair<std::string, std::string>> named(const Size& size) {
  return {{"m", number(size.m)}, {"n", number(size.n)}, {"k", number(size.k)}, {"dtype", "bf16"}};
}

std::vector<ProbeRow> ask_products(Device& device, const ProbeOptions& options) {
  std::vector<ProbeRow> rows;
  for (const Size& size : product_sizes(options)) {
    const Matrices a(device, size.m, size.k, DType::bf16);
    const Matrices b(device, size.k, size.n, DType::bf16);
    const Matrices out(device, size.m, size.n, DType::bf16);
    for (const int budget : budgets(device, options)) {
      for (const bool accumulate : {false, true}) {
        std::size_t turn = 0;
        const auto once = [&] {
          ++turn;
          return behind_gate(device, [&] {
            device.driver().product(device.stream(0, false), {.a = a.at(turn),
                                                              .b = b.at(turn),
                                                              .out = out.at(turn),
                                                              .accumulate = accumulate,
                                                              .products = Products::blocked,
                                                              .multiprocessors = budget});
          });
        };
        ProbeRow row{.probe = "product", .parameters = named(size)};
        row.parameters.emplace_back("multiprocessors", number(budget));
        row.parameters.emplace_back("accumulate", accumulate ? "yes" : "no");
        row.samples = sampled(options, once);
        rows.push_back(std::move(row));
      }
    }
  }
  return rows;
}

// --- attention

std::vector<ProbeRow> ask_attention(Device& device, const ProbeOptions& options) {
  constexpr std::int64_t head = 128;
  constexpr std::int64_t heads = 8;
  constexpr std::int64_t kv_heads = 1;
  const AttentionLayout layout{
      .qkv = (heads + 2 * kv_heads) * head, .out = heads * head, .head = head, .batch = 1, .causal = true};
  std::vector<ProbeRow> rows;
  for (const std::int64_t keys :
       options.quick ? std::vector<std::int64_t>{4096} : std::vector<std::int64_t>{2048, 4096, 8192}) {
    const Matrices qkv(device, keys, layout.qkv, DType::bf16);
    const Matrices out(device, keys, layout.out, DType::bf16);
    for (const std::int64_t slices : {1, 2, 4, 8}) {
      for (const bool causal : {true, false}) {
        const auto once = [&] {
          AttentionCall call{.layout = layout, .products = Products::blocked, .keys = qkv.at(0)};
          call.layout.causal = causal;
          AttentionCall::Part part{.queries = qkv.at(0), .first_row = keys - keys / slices, .out = out.at(0)};
          part.queries.rows = keys / slices;
          part.queries.at += static_cast<Address>(part.first_row * layout.qkv * bytes_of(DType::bf16));
          part.out.rows = keys / slices;
          call.parts.push_back(part);
          const auto issue = [&] { device.driver().attend(device.stream(0, false), call); };
          once_in_the_open(device, issue);
          return behind_gate(device, issue);
        };
        rows.push_back({.probe = "attention",
                        .parameters = {{"queries", number(keys / slices)},
                                       {"keys", number(keys)},
                                       {"heads", number(heads)},
                                       {"kv_heads", number(kv_heads)},
                                       {"head", number(head)},
                                       {"causal", causal ? "yes" : "no"}},
                        .samples = sampled(options, once)});
      }
    }
  }
  return rows;
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

/// One way, and both at once on two streams.
void ask_link(Device& device, const ProbeOptions& options, std::string_view name, const DeviceLink& link,
              std::int64_t bytes, std::vector<ProbeRow>& rows) {
  constexpr std::int64_t width = 1024;
  const Matrices from(device, bytes / width / 2, width, DType::bf16);
  const Matrices to(device, bytes / width / 2, width, DType::bf16);
  const Matrices back(device, bytes / width / 2, width, DType::bf16);
  for (const bool both : {false, true}) {
    std::size_t turn = 0;
    const auto issue = [&] {
      Driver& driver = device.driver();
      const StreamId a = device.stream(0, false);
      const StreamId b = device.stream(1, true);
      if (both) {
        driver.record(device.event(0), a);
        driver.wait(b, device.event(0));
        driver.move(b, move_of(to.at(turn + 1), back.at(turn + 1), link));
        driver.record(device.event(1), b);
      }
      driver.move(a, move_of(from.at(turn), to.at(turn), link));
      if (both) {
        driver.wait(a, device.event(1));
      }
    };
    once_in_the_open(device, issue);
    const auto once = [&] {
      ++turn;
      return behind_gate(device, issue);
    };
    rows.push_back(
        {.probe = std::string(name),
         .parameters = {{"bytes", number(bytes)}, {"ctas", number(link.ctas)}, {"directions", both ? "2" : "1"}},
         .samples = sampled(options, once)});
  }
}

std::vector<ProbeRow> ask_links(Device& device, const ProbeOptions& options) {
  std::vector<ProbeRow> rows;
  for (const std::int64_t bytes : message_sizes(options)) {
    for (const int ctas : options.quick ? std::vector{4, 16} : std::vector{1, 2, 4, 8, 16, 32}) {
      ask_link(device, options, "copy", {.kind = LinkKind::copy, .ctas = ctas}, bytes, rows);
    }
    ask_link(device, options, "paced",
             {.kind = LinkKind::paced, .ctas = 8, .pace = {std::chrono::microseconds(5), {1e11}}}, bytes, rows);
    ask_link(device, options, "bounce", {.kind = LinkKind::bounce}, bytes, rows);
  }
  return rows;
}

// --- interference

/// Both alone and beside each other: the copy goes round as long as the product runs.
std::vector<ProbeRow> ask_interference(Device& device, const ProbeOptions& options) {
  const Size size{4096, 7168, 8192};
  const Matrices a(device, size.m, size.k, DType::bf16);
  const Matrices b(device, size.k, size.n, DType::bf16);
  const Matrices out(device, size.m, size.n, DType::bf16);
  constexpr std::int64_t bytes = 16 << 20;
  constexpr int copies = 20;
  const Matrices from(device, bytes / 2048, 1024, DType::bf16);
  const Matrices to(device, bytes / 2048, 1024, DType::bf16);
  Driver& driver = device.driver();
  const StreamId compute = device.stream(0, false);
  const StreamId comm = device.stream(1, true);
  std::vector<ProbeRow> rows;
  const auto ask = [&](int ctas, bool with_product, bool with_copies) {
    std::size_t turn = 0;
    std::vector<double> copy_samples;
    const auto once = [&] {
      ++turn;
      const Micros product = behind_gate(device, [&] {
        if (with_copies) {
          driver.record(device.event(0), compute);
          driver.wait(comm, device.event(0));
          driver.record(device.timed_event(2), comm);
          for (int i = 0; i < copies; ++i) {
            driver.move(comm, move_of(from.at(turn), to.at(turn), {.kind = LinkKind::copy, .ctas = ctas}));
          }
          driver.record(device.timed_event(3), comm);
        }
        if (with_product) {
          driver.product(compute, {.a = a.at(turn),
                                   .b = b.at(turn),
                                   .out = out.at(turn),
                                   .products = Products::blocked,
                                   .multiprocessors = driver.facts().multiprocessors - ctas});
        }
      });
      if (with_copies) {
        copy_samples.push_back(Micros(driver.elapsed(device.timed_event(2), device.timed_event(3))).count() / copies);
      }
      return product;
    };
    std::vector<double> product_samples = sampled(options, once);
    const std::string beside = with_product && with_copies ? "yes" : "no";
    if (with_product) {
      rows.push_back({.probe = "product_beside_copy",
                      .parameters = {{"ctas", number(ctas)}, {"beside", beside}},
                      .samples = std::move(product_samples)});
    }
    if (with_copies) {
      copy_samples.erase(copy_samples.begin());  // of the first, which does not count
      rows.push_back({.probe = "copy_beside_product",
                      .parameters = {{"ctas", number(ctas)}, {"beside", beside}},
                      .samples = std::move(copy_samples)});
    }
  };
  for (const int ctas : options.quick ? std::vector{4, 16} : std::vector{1, 2, 4, 8, 16, 32}) {
    ask(ctas, true, false);
    ask(ctas, false, true);
    ask(ctas, true, true);
  }
  return rows;
}

// --- pinned

std::vector<std::byte> downloaded(Device& device, const Panel& panel) {
  std::vector<std::byte> bytes(static_cast<std::size_t>(panel.bytes().count));
  device.driver().download(bytes, panel.at);
  return bytes;
}

/// Whether the whole product by the kernel of its shards gives the bits of the shards, and what it costs.
std::vector<ProbeRow> ask_pinned(Device& device, const ProbeOptions& options) {
  Driver& driver = device.driver();
  const StreamId stream = device.stream(0, false);
  std::vector<ProbeRow> rows;
  for (const Size& size : product_sizes(options)) {
    const Matrices a(device, size.m, size.k, DType::bf16);
    const Matrices b(device, size.k, size.n, DType::bf16);
    const Matrices out(device, size.m, size.n, DType::bf16);
    for (const std::int64_t parts : {2, 4, 8}) {
      const std::int64_t height = size.m / parts;
      ProductCall whole{.a = a.at(0), .b = b.at(0), .out = out.at(0), .products = Products::blocked};
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
        cost.samples = sampled(options, [&] { return behind_gate(device, [&] { driver.product(stream, whole); }); });
      } catch (const std::runtime_error&) {  // the shards' algorithm does not take the whole
        same.samples = {0.0};
        rows.push_back(std::move(same));
        continue;
      }
      same.samples = {downloaded(device, out.at(0)) == downloaded(device, out.at(1)) ? 1.0 : 0.0};
      rows.push_back(std::move(same));
      rows.push_back(std::move(cost));
    }
  }
  return rows;
}

// --- engines

/// Who copies, and how fast: kernels take multiprocessors, copy engines do not.
std::vector<ProbeRow> ask_engines(Device& device, const ProbeOptions& options) {
  constexpr std::int64_t bytes = 64 << 20;
  const Matrices from(device, bytes / 2048, 1024, DType::bf16);
  const Matrices to(device, bytes / 2048, 1024, DType::bf16);
  Driver& driver = device.driver();
  std::vector<ProbeRow> rows;
  for (const auto& [name, kind] : {std::pair<const char*, LinkKind>{"kernel", LinkKind::copy},
                                   {"plain", LinkKind::plain},
                                   {"bounce", LinkKind::bounce}}) {
    const DeviceLink link{.kind = kind};
    const auto issue = [&] { driver.move(device.stream(0, false), move_of(from.at(0), to.at(0), link)); };
    once_in_the_open(device, issue);
    const std::vector<std::pair<std::string, std::string>> parameters{{"by", name}, {"bytes", number(bytes)}};
    driver.begin_trace();
    once_in_the_open(device, issue);
    ProbeRow engine{.probe = "copy_engine", .parameters = parameters, .unit = "share"};
    for (const DeviceSpan& span : driver.end_trace()) {
      engine.samples.push_back(span.by_copy_engine ? 1.0 : 0.0);
    }
    if (!engine.samples.empty()) {  // a device without a tracer
      rows.push_back(std::move(engine));
    }
    rows.push_back({.probe = "copy_by", .parameters = parameters, .samples = sampled(options, [&] {
                                                                    return behind_gate(device, issue);
                                                                  })});
  }
  return rows;
}

// --- partitions

/// A product on multiprocessors that were set apart, beside the one that makes do with as many.
std::vector<ProbeRow> ask_partitions(Device& device, const ProbeOptions& options) {
  Driver& driver = device.driver();
  const Size size{4096, 7168, 8192};
  const int all = driver.facts().multiprocessors;
  std::vector<ProbeRow> rows;
  for (const int wanted : {all / 2, all - 16}) {
    Partition partition;
    try {
      partition = driver.set_apart(wanted);
    } catch (const std::runtime_error&) {
      return {{.probe = "partitions", .unit = "share", .samples = {0.0}}};
    }
    const StreamId apart = driver.make_stream_on(partition, false);
    const Matrices a(device, size.m, size.k, DType::bf16);
    const Matrices b(device, size.k, size.n, DType::bf16);
    const Matrices out(device, size.m, size.n, DType::bf16);
    for (const bool is_apart : {false, true}) {
      const StreamId on = is_apart ? apart : device.stream(0, false);
      const auto issue = [&] {
        driver.record(device.event(0), device.stream(0, false));
        driver.wait(on, device.event(0));
        driver.product(
            on,
            {.a = a.at(0), .b = b.at(0), .out = out.at(0), .products = Products::blocked, .multiprocessors = wanted});
        driver.record(device.event(1), on);
        driver.wait(device.stream(0, false), device.event(1));
      };
      once_in_the_open(device, issue);
      ProbeRow row{.probe = "product_on_partition", .parameters = named(size)};
      row.parameters.emplace_back("multiprocessors", number(wanted));
      row.parameters.emplace_back("apart", is_apart ? "yes" : "no");
      row.samples = sampled(options, [&] { return behind_gate(device, issue); });
      rows.push_back(std::move(row));
    }
  }
  return rows;
}

// --- nccl

/// What a group costs the host, and a message to oneself the device: no link, but all that comes before one.
std::vector<ProbeRow> ask_nccl(Device& device, const ProbeOptions& options) {
  if (options.network == nullptr) {
    return {};
  }
  constexpr int groups = 20;
  const std::size_t communicator = options.network->split(0);
  const StreamId stream = device.stream(0, false);
  std::vector<ProbeRow> rows;
  for (const std::int64_t bytes : message_sizes(options)) {
    const Matrices from(device, bytes / 2048, 1024, DType::bf16);
    const Matrices to(device, bytes / 2048, 1024, DType::bf16);
    const std::array sends{Message{0, from.at(0)}};
    const std::array receives{Message{0, to.at(0)}};
    const auto issue = [&] { options.network->exchange(communicator, stream, sends, receives); };
    once_in_the_open(device, issue);
    const std::vector<std::pair<std::string, std::string>> parameters{{"bytes", number(bytes)}};
    rows.push_back({.probe = "group_enqueue", .parameters = parameters, .samples = sampled(options, [&] {
                                                                          const auto before =
                                                                              std::chrono::steady_clock::now();
                                                                          for (int i = 0; i < groups; ++i) {
                                                                            issue();
                                                                          }
                                                                          const Micros took =
                                                                              std::chrono::steady_clock::now() - before;
                                                                          finish(device);
                                                                          return took / groups;
                                                                        })});
    rows.push_back({.probe = "self_send", .parameters = parameters, .samples = sampled(options, [&] {
                                                                      return behind_gate(device, issue);
                                                                    })});
    device.driver().begin_trace();
    once_in_the_open(device, issue);
    ProbeRow grid{.probe = "self_send_ctas", .parameters = parameters, .unit = "ctas"};
    for (const DeviceSpan& span : device.driver().end_trace()) {
      grid.samples.push_back(span.ctas);
    }
    if (!grid.samples.empty()) {
      rows.push_back(std::move(grid));
    }
  }
  return rows;
}

constexpr std::array<ProbeStage, 9> stages{
    {{"launch", "launches, gaps, events, graph nodes, the clock", ask_launch},
     {"products", "products of slices on all and on fewer multiprocessors", ask_products},
     {"attention", "attention of slices of the queries", ask_attention},
     {"links", "copies by size and blocks, at a pace, through the host's memory", ask_links},
     {"interference", "a product and a copy beside each other", ask_interference},
     {"engines", "who copies: kernels, the runtime, copy engines through the host", ask_engines},
     {"partitions", "a product on multiprocessors set apart", ask_partitions},
     {"nccl", "a group of NCCL's, and a message to oneself", ask_nccl},
     {"pinned", "the bits and the time of a product by the kernel of its shards", ask_pinned}}};

}  // namespace

std::span<const ProbeStage> probe_stages() { return stages; }

std::string probe_header() { return "stage,probe,parameters,unit,n,median,p10,p90\n"; }

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
