// SPDX-License-Identifier: Apache-2.0
// A plugin that replaces the CUDA plugin: its GPUs are the recording devices of tests, which are as strict as real
// ones. COMMFUSE_CUDA_PLUGIN names it. Small calls compute their values; large ones only take the time that
// stated_costs.h states. SOFTWARE_GPU_DEVICES (default 1) is the number of GPUs that one process sees.
#include <atomic>
#include <cstdlib>
#include <memory>
#include <string>

#include "tests/validate/cuda/fake_driver.h"
#include "tests/validate/cuda/fake_peers.h"
#include "validate/cuda/build_id.h"
#include "validate/cuda/cuda_module.h"

namespace commfuse::validate::test {

namespace {

/// Calls with more FLOPs or bytes than this compute nothing.
constexpr double max_work = 4e6;

/// The plugin has at least this many GPUs, because tests of one process load it with several numbers of visible GPUs,
/// and its GPUs last as long as the process.
constexpr int min_devices = 8;

int visible_devices() {
  const char* count = std::getenv("SOFTWARE_GPU_DEVICES");  // NOLINT(concurrency-mt-unsafe): nobody changes it
  return count == nullptr ? 1 : std::atoi(count);           // NOLINT(cert-err34-c): tests set it
}

/// Lends a device of the cluster, because only Driver's interface crosses the boundary of the plugin.
class LentDriver final : public Driver {
 public:
  explicit LentDriver(FakeDriver& fake) : fake_(fake) { fake_.recover(); }
  [[nodiscard]] FakeDriver& fake() { return fake_; }

  [[nodiscard]] DeviceFacts facts() const override { return fake_.facts(); }
  Address allocate(Bytes bytes) override { return fake_.allocate(bytes); }
  void release(Address at) override { fake_.release(at); }
  /// A real device works while the host does something else; the fake device works only while a thread waits.
  void upload(Address to, std::span<const std::byte> bytes) override {
    static_cast<void>(fake_.finish(Duration{}));
    fake_.upload(to, bytes);
  }
  void download(std::span<std::byte> bytes, Address from) override {
    static_cast<void>(fake_.finish(Duration{}));
    fake_.download(bytes, from);
  }
  StreamId make_stream(bool urgent) override { return fake_.make_stream(urgent); }
  EventId make_event(bool timed) override { return fake_.make_event(timed); }
  Partition make_partition(int multiprocessors) override { return fake_.make_partition(multiprocessors); }
  void end_partition(const Partition& partition) override { fake_.end_partition(partition); }
  StreamId make_stream_on(const Partition& partition, bool urgent) override {
    return fake_.make_stream_on(partition, urgent);
  }
  void record(EventId event, StreamId stream) override { fake_.record(event, stream); }
  void wait(StreamId stream, EventId event) override { fake_.wait(stream, event); }
  void fill(StreamId stream, Address at, Bytes bytes, std::uint8_t byte) override {
    fake_.fill(stream, at, bytes, byte);
  }
  void randomize(StreamId stream, const Panel& panel, std::uint64_t seed) override {
    fake_.randomize(stream, panel, seed);
  }
  void product(StreamId stream, const ProductCall& call) override { fake_.product(stream, call); }
  void function(StreamId stream, const FunctionCall& call) override { fake_.function(stream, call); }
  void attend(StreamId stream, const AttentionCall& call) override { fake_.attend(stream, call); }
  [[nodiscard]] std::string attention_by() const override { return fake_.attention_by(); }
  void move(StreamId stream, const MoveCall& call) override { fake_.move(stream, call); }
  void spin(StreamId stream, Duration time) override { fake_.spin(stream, time); }
  void gate(StreamId stream) override { fake_.gate(stream); }
  void close_gate() override { fake_.close_gate(); }
  void open_gate() override { fake_.open_gate(); }
  [[nodiscard]] bool gate_held() override { return fake_.gate_held(); }
  [[nodiscard]] bool finish(Duration patience) override { return fake_.finish(patience); }
  [[nodiscard]] Duration elapsed(EventId from, EventId to) override { return fake_.elapsed(from, to); }
  void begin_capture(StreamId origin) override { fake_.begin_capture(origin); }
  GraphId end_capture() override { return fake_.end_capture(); }
  void launch(StreamId stream, GraphId graph) override { fake_.launch(stream, graph); }
  void label(std::uint64_t id) override { fake_.label(id); }
  void begin_trace() override { fake_.begin_trace(); }
  void drop_trace() override { fake_.drop_trace(); }
  [[nodiscard]] std::vector<DeviceSpan> end_trace() override { return fake_.end_trace(); }

 private:
  FakeDriver& fake_;
};

class ModuleDouble final : public CudaModule {
 public:
  ModuleDouble()
      : cluster_(FakeOptions{.devices = std::max(visible_devices(), min_devices),
                             .max_work = max_work,
                             .stated_times = true,
                             .name = "NVIDIA H100 80GB HBM3, a double without hardware"}),
        machine_(cluster_.devices()) {}

  [[nodiscard]] const char* build_id() const override { return id_.c_str(); }
  [[nodiscard]] int devices() const override { return cluster_.devices(); }
  [[nodiscard]] std::unique_ptr<Driver> open(int device) const override {
    return std::make_unique<LentDriver>(cluster_.device(device));
  }
  [[nodiscard]] std::unique_ptr<Peers> peers(Driver& driver) const override {
    int rank = 0;
    while (&static_cast<LentDriver&>(driver).fake() != &cluster_.device(rank)) {
      ++rank;
    }
    return std::make_unique<FakePeers>(machine_, cluster_, rank);
  }
  [[nodiscard]] std::string nccl_absence() const override { return ""; }
  /// Returns a key that holds the number of a new network of this process.
  [[nodiscard]] NetworkKey make_key() const override { return {static_cast<std::byte>(++networks_)}; }
  /// Gives rank r device r of this process.
  [[nodiscard]] std::unique_ptr<Network> connect(Driver& driver, const NetworkKey& key, int rank, int ranks,
                                                 const NetworkOptions& options) const override {
    constexpr std::size_t max_communicators = 1000;  // communicators of a network
    if (&static_cast<LentDriver&>(driver).fake() != &cluster_.device(rank)) {
      throw std::runtime_error("in the double, rank N must use device N");
    }
    return std::make_unique<FakeNetwork>(cluster_, rank, ranks, options,
                                         max_communicators * static_cast<std::size_t>(key.front()));
  }

 private:
  std::string id_ = build_id_in_words();
  mutable FakeCluster cluster_;
  mutable FakeMachine machine_;
  mutable std::atomic<unsigned> networks_ = 0;
};

}  // namespace

}  // namespace commfuse::validate::test

/// The function that cuda_module_entry names; the caller owns the result. Threads that represent processes share the
/// GPUs, so there is one module, which lives as long as the process.
extern "C" commfuse::validate::CudaModule* commfuse_cuda_module_5() {
  using commfuse::validate::test::ModuleDouble;
  static ModuleDouble& process_module = *new ModuleDouble;
  class Lent final : public commfuse::validate::CudaModule {
   public:
    [[nodiscard]] const char* build_id() const override { return process_module.build_id(); }
    [[nodiscard]] int devices() const override { return visible_; }
    [[nodiscard]] std::unique_ptr<commfuse::validate::Driver> open(int device) const override {
      return process_module.open(device);
    }
    [[nodiscard]] std::unique_ptr<commfuse::validate::Peers> peers(commfuse::validate::Driver& driver) const override {
      return process_module.peers(driver);
    }
    [[nodiscard]] std::string nccl_absence() const override { return process_module.nccl_absence(); }
    [[nodiscard]] commfuse::validate::NetworkKey make_key() const override { return process_module.make_key(); }
    [[nodiscard]] std::unique_ptr<commfuse::validate::Network> connect(
        commfuse::validate::Driver& driver, const commfuse::validate::NetworkKey& key, int rank, int ranks,
        const commfuse::validate::NetworkOptions& options) const override {
      return process_module.connect(driver, key, rank, ranks, options);
    }

   private:
    int visible_ = commfuse::validate::test::visible_devices();
  };
  return new Lent;
}
