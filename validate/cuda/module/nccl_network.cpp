// SPDX-License-Identifier: Apache-2.0
#include "validate/cuda/module/nccl_network.h"

#include <fmt/format.h>
#include <nccl.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <stdexcept>
#include <thread>
#include <utility>

#include "validate/cuda/module/failures.h"
#include "validate/cuda/module/nccl_failures.h"
#include "validate/cuda/module/nccl_memory.h"
#include "validate/cuda/nccl_features.h"

namespace commfuse::validate {

namespace {

/// Time limit for ending a communicator; the processes of other ranks may already have ended.
constexpr Duration longest_farewell = std::chrono::seconds(10);

ncclDataType_t nccl_type_of(DType dtype) {
  switch (dtype) {
    case DType::bf16: return ncclBfloat16;
    case DType::fp16: return ncclFloat16;
    case DType::fp32: return ncclFloat32;
    case DType::fp8: return ncclUint8;
  }
  return ncclUint8;
}

// NOLINTBEGIN(*-no-int-to-ptr): device memory
const void* source(const Panel& panel) { return reinterpret_cast<const void*>(panel.at); }
void* target(const Panel& panel) { return reinterpret_cast<void*>(panel.at); }
// NOLINTEND(*-no-int-to-ptr)
std::size_t elements(const Panel& panel) { return static_cast<std::size_t>(panel.rows * panel.columns); }

bool failed(ncclResult_t status) { return status != ncclSuccess && status != ncclInProgress; }

NcclVersions versions_of(const NcclLibrary& nccl) {
  nccl.require_loaded();
  return {.header = NCCL_VERSION_CODE, .library = nccl.version()};
}

// NOLINTBEGIN(concurrency-mt-unsafe): one thread makes networks; only then do NCCL's threads read the environment

/// Sets variables that NCCL reads once, for the first network of a process. Returns a sentence if `options` ask for a
/// different number of P2P channels from the first network's.
std::vector<std::string> set_process_variables(const NetworkOptions& options) {
  static const NetworkOptions first = [&] {
    for (const NcclVariable& variable : process_variables(options)) {
      ::setenv(variable.name.c_str(), variable.value.c_str(), variable.forced ? 1 : 0);
    }
    return options;
  }();
  std::vector<std::string> notes;
  if (first.least_p2p_channels != options.least_p2p_channels) {
    notes.emplace_back(
        "NCCL keeps the number of P2P channels of the first network of a process; start another process to change it");
  }
  return notes;
}

/// Removes NVLS during the object's lifetime, unless the user set NCCL_ALGO, which NCCL reads for every new
/// communicator.
class WithoutNvls {
 public:
  explicit WithoutNvls(const std::string& algorithms) : is_set_(!algorithms.empty() && std::getenv(name) == nullptr) {
    if (is_set_) {
      ::setenv(name, algorithms.c_str(), 1);
    }
  }
  WithoutNvls(const WithoutNvls&) = delete;
  WithoutNvls& operator=(const WithoutNvls&) = delete;
  ~WithoutNvls() {
    if (is_set_) {
      ::unsetenv(name);
    }
  }

 private:
  static constexpr auto name = "NCCL_ALGO";
  bool is_set_;
};

std::vector<std::string> notes_on_environment(const NetworkOptions& options) {
  std::vector<std::string> notes;
  if (!options.nvls && std::getenv("NCCL_ALGO") != nullptr) {
    notes.emplace_back("NCCL_ALGO is set and decides whether NVLS is used; unset it, so that --nvls off takes effect");
  }
  if (std::getenv("NCCL_COMM_BLOCKING") != nullptr) {
    notes.emplace_back(
        "NCCL_COMM_BLOCKING is set and overrides our setting: NCCL may hang, and traces may lack its kernels");
  }
  return notes;
}

// NOLINTEND(concurrency-mt-unsafe)

enum class Blocking : std::uint8_t {
  no,  ///< Calls return immediately and are polled, so that making communicators can time out.
  /// Groups launch in the calling thread, whose label CUPTI records; otherwise NCCL launches in a thread of its own.
  yes,
};

ncclConfig_t config_of(const NetworkOptions& options, [[maybe_unused]] const NcclVersions& versions,
                       Blocking blocking) {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = blocking == Blocking::yes ? 1 : 0;
  config.splitShare = 0;  // with shared resources, lanes would wait for each other; the default is the parent's value
  if (options.max_ctas > 0) {
    config.maxCTAs = options.max_ctas;
  }
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 27, 0)
  if (has(versions, options.cta_policy == 2 ? NcclFeature::zero_cta_policy : NcclFeature::cta_policy)) {
    config.CTAPolicy = options.cta_policy;
  }
#endif
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 29, 2)
  if (const std::optional<int> mode = graph_usage_mode(options, versions)) {
    config.graphUsageMode = *mode;
  }
#endif
  return config;
}

class NcclNetwork final : public Network {
 public:
  NcclNetwork(const NcclLibrary& nccl, NcclDevice& device, const NetworkKey& key, const NetworkMember& member,
              const NetworkOptions& options);
  NcclNetwork(const NcclNetwork&) = delete;
  NcclNetwork& operator=(const NcclNetwork&) = delete;
  ~NcclNetwork() override;

  [[nodiscard]] std::string version() const override { return nccl_in_words(versions_.library); }
  [[nodiscard]] std::vector<std::string> notes() const override { return notes_; }
  [[nodiscard]] int rank() const override { return member_.rank; }
  [[nodiscard]] int ranks() const override { return member_.ranks; }
  [[nodiscard]] std::size_t split(int color) override;
  void exchange(std::size_t communicator, StreamId stream, std::span<const MessageEnd> sends,
                std::span<const MessageEnd> receives) override;
  void collective(std::size_t communicator, StreamId stream, CollectiveKind kind, const Panel& in,
                  const Panel& out) override;
  [[nodiscard]] bool has_windows() const override {
    return memory_ != nullptr && registers_windows(options_, versions_);
  }
  [[nodiscard]] bool has_puts() const override { return options_.puts; }
  void put(std::size_t communicator, StreamId stream, const MessageEnd& data, Address to) override;
  void signal(std::size_t communicator, StreamId stream, int peer) override;
  void await_signals(std::size_t communicator, StreamId stream, const AwaitedSignals& signals) override;
  [[nodiscard]] std::optional<std::string> failure() override;
  void abort() override;

 private:
  void connect(const NetworkKey& key);
  /// Issues the work of `issue` on a communicator, as one group.
  template <class Issue>
  void group(std::size_t communicator, const char* what, const Issue& issue);
  void all_to_all(std::size_t communicator, cudaStream_t stream, const Panel& in, const Panel& out);
  [[nodiscard]] ncclComm_t comm(std::size_t communicator);
  /// Forgets communicators that were aborted because a call took longer than its patience.
  void drop_aborted();
  /// Ends the communicator together with the other ranks; if that fails or takes longer than `patience`, aborts it.
  void end(std::size_t index, Duration patience);

  const NcclLibrary& nccl_;
  NcclDevice& device_;
  NetworkMember member_;
  NetworkOptions options_;
  NcclVersions versions_;
  std::vector<std::string> notes_;
  std::shared_ptr<NcclCalls> calls_;
  /// The parent, which has all ranks and does not block, then its children, which block if NetworkOptions::blocking is
  /// set. NCCL may still write to the address of a communicator after we gave up, so the addresses do not change. A
  /// null communicator was aborted.
  std::vector<std::unique_ptr<ncclComm_t>> communicators_;
  std::shared_ptr<NcclMemory> memory_;
  /// A window that puts require, because NCCL raises no signal of a communicator that has no window yet. Null without
  /// puts.
  void* first_window_ = nullptr;
};

NcclNetwork::NcclNetwork(const NcclLibrary& nccl, NcclDevice& device, const NetworkKey& key,
                         const NetworkMember& member, const NetworkOptions& options)
    : nccl_(nccl),
      device_(device),
      member_(member),
      options_(options),
      versions_(versions_of(nccl)),
      calls_(std::make_shared<NcclCalls>(nccl, options.patience, [&device] { device.end_graphs(); })) {
  if (const std::string sentence = refused(options, versions_); !sentence.empty()) {
    throw std::runtime_error(sentence);
  }
  notes_ = notes_on(options, versions_);
  for (const std::vector<std::string>& extra_notes : {set_process_variables(options), notes_on_environment(options)}) {
    notes_.insert(notes_.end(), extra_notes.begin(), extra_notes.end());
  }
  try {
    connect(key);
    const bool has_symmetric_memory = registers_windows(options, versions_);
    if ((options.registered || has_symmetric_memory) && has(versions_, NcclFeature::registration)) {
      memory_ = std::make_shared<NcclMemory>(calls_, has_symmetric_memory);
      first_window_ = options.puts ? memory_->allocate(1) : nullptr;
    }
  } catch (...) {
    abort();
    throw;
  }
  if (memory_ != nullptr) {
    device_.take_memory_from(memory_);
  }
}

void NcclNetwork::connect(const NetworkKey& key) {
  device_.make_current();
  const WithoutNvls meanwhile(algorithms_without_nvls(options_));
  ncclConfig_t config = config_of(options_, versions_, Blocking::no);
  ncclUniqueId id{};
  static_assert(sizeof id.internal == std::tuple_size_v<NetworkKey>);
  std::memcpy(id.internal, key.data(), key.size());
  communicators_.push_back(std::make_unique<ncclComm_t>(nullptr));
  ncclComm_t& parent = *communicators_.front();
  const ncclResult_t begun = nccl_.comm_init_rank_config(&parent, member_.ranks, id, member_.rank, &config);
  settle(nccl_, begun, parent, "ncclCommInitRankConfig", options_.patience);
}

std::size_t NcclNetwork::split(int color) {
  require(!communicators_.empty(), "the network was aborted");
  drop_aborted();
  const WithoutNvls meanwhile(algorithms_without_nvls(options_));
  ncclConfig_t config = config_of(options_, versions_, options_.blocking ? Blocking::yes : Blocking::no);
  ncclComm_t parent = *communicators_.front();
  communicators_.push_back(std::make_unique<ncclComm_t>(nullptr));
  ncclComm_t& child = *communicators_.back();  // written when the parent has settled
  settle(nccl_, nccl_.comm_split(parent, color, member_.rank, &child, &config), parent, "ncclCommSplit",
         options_.patience);
  ncclResult_t status = ncclSuccess;
  require_nccl(nccl_, nccl_.comm_get_async_error(child, &status), child, "ncclCommGetAsyncError");
  settle(nccl_, status, child, "ncclCommSplit", options_.patience);
  if (memory_ != nullptr) {
    memory_->join(child);
  }
  return communicators_.size() - 2;
}

NcclNetwork::~NcclNetwork() {
  device_.end_graphs();
  if (memory_ != nullptr) {
    device_.take_plain_memory();
    try {
      memory_->deregister();
      if (first_window_ != nullptr && !communicators_.empty()) {  // a device that was given up may never finish
        memory_->release(first_window_);
      }
    } catch (const std::exception&) {  // communicators that failed are aborted below
    }
  }
  drop_aborted();
  const Duration patience = std::min(options_.patience, longest_farewell);
  for (; !communicators_.empty(); communicators_.pop_back()) {  // children end before their parent
    end(communicators_.size() - 1, patience);
  }
}

void NcclNetwork::end(std::size_t index, Duration patience) {
  ncclComm_t last = *communicators_[index];
  if (last == nullptr) {
    return;
  }
  try {
    calls_->run(last, "ncclCommFinalize", patience, [&] { return nccl_.comm_finalize(last); });
    static_cast<void>(nccl_.comm_destroy(last));
  } catch (const std::exception&) {
    if (!calls_->is_aborted(last)) {
      static_cast<void>(nccl_.comm_abort(last));
    }
  }
}

template <class Issue>
void NcclNetwork::group(std::size_t communicator, const char* what, const Issue& issue) {
  calls_->run(comm(communicator), what, [&] {
    if (const ncclResult_t begun = nccl_.group_start(); begun != ncclSuccess) {
      return begun;
    }
    const ncclResult_t issued = issue();
    // Also needed after a failure, because the next group would otherwise be part of this one.
    const ncclResult_t ended = nccl_.group_end();
    return failed(issued) ? issued : ended;
  });
}

void NcclNetwork::exchange(std::size_t communicator, StreamId stream, std::span<const MessageEnd> sends,
                           std::span<const MessageEnd> receives) {
  cudaStream_t on = device_.stream_of(stream);
  ncclComm_t lane = comm(communicator);
  group(communicator, "an exchange by NCCL", [&] {
    ncclResult_t status = ncclSuccess;
    for (std::size_t i = 0; i < sends.size() && !failed(status); ++i) {
      const MessageEnd& message = sends[i];
      status = nccl_.send(source(message.data), static_cast<std::size_t>(message.data.bytes().count), ncclUint8,
                          message.peer, lane, on);
    }
    for (std::size_t i = 0; i < receives.size() && !failed(status); ++i) {
      const MessageEnd& message = receives[i];
      status = nccl_.recv(target(message.data), static_cast<std::size_t>(message.data.bytes().count), ncclUint8,
                          message.peer, lane, on);
    }
    return status;
  });
}

void NcclNetwork::collective(std::size_t communicator, StreamId stream, CollectiveKind kind, const Panel& in,
                             const Panel& out) {
  require(in.contiguous() && out.contiguous() && in.dtype == out.dtype,
          "a collective has contiguous operands of one dtype");
  cudaStream_t on = device_.stream_of(stream);
  ncclComm_t lane = comm(communicator);
  const ncclDataType_t type = nccl_type_of(in.dtype);
  switch (kind) {
    case CollectiveKind::all_gather:
      calls_->run(lane, "ncclAllGather",
                  [&] { return nccl_.all_gather(source(in), target(out), elements(in), type, lane, on); });
      return;
    case CollectiveKind::reduce_scatter:
      calls_->run(lane, "ncclReduceScatter", [&] {
        return nccl_.reduce_scatter(source(in), target(out), elements(out), type, ncclSum, lane, on);
      });
      return;
    case CollectiveKind::all_reduce:
      calls_->run(lane, "ncclAllReduce",
                  [&] { return nccl_.all_reduce(source(in), target(out), elements(in), type, ncclSum, lane, on); });
      return;
    case CollectiveKind::all_to_all: all_to_all(communicator, on, in, out); return;
  }
}

void NcclNetwork::all_to_all(std::size_t communicator, cudaStream_t stream, const Panel& in, const Panel& out) {
  ncclComm_t lane = comm(communicator);
  int members = 0;
  require_nccl(nccl_, nccl_.comm_count(lane, &members), lane, "ncclCommCount");
  const auto ranks = static_cast<std::size_t>(members);
  const auto bytes = static_cast<std::size_t>(in.bytes().count) / ranks;
  require(bytes * ranks == static_cast<std::size_t>(in.bytes().count) && in.bytes() == out.bytes(),
          "an all-to-all has equal parts");
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 28, 3)
  if (has(versions_, NcclFeature::all_to_all)) {
    calls_->run(lane, "ncclAlltoAll",
                [&] { return nccl_.all_to_all(source(in), target(out), bytes, ncclUint8, lane, stream); });
    return;
  }
#endif
  group(communicator, "an all-to-all by NCCL", [&] {
    ncclResult_t status = ncclSuccess;
    for (std::size_t i = 0; i < ranks && !failed(status); ++i) {
      const int peer = static_cast<int>(i);
      status = nccl_.send(static_cast<const std::byte*>(source(in)) + i * bytes, bytes, ncclUint8, peer, lane, stream);
      if (!failed(status)) {
        status = nccl_.recv(static_cast<std::byte*>(target(out)) + i * bytes, bytes, ncclUint8, peer, lane, stream);
      }
    }
    return status;
  });
}

#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 27, 0)

// Versions before 2.31 support one signal and one context per communicator: the first of each.

void NcclNetwork::put(std::size_t communicator, StreamId stream, const MessageEnd& data, Address to) {
  require(data.data.contiguous(), "a put needs contiguous data");
  cudaStream_t on = device_.stream_of(stream);
  ncclComm_t lane = comm(communicator);
  const auto bytes = static_cast<std::size_t>(data.data.bytes().count);
  // NOLINTNEXTLINE(*-no-int-to-ptr): device memory
  const NcclMemory::InWindow window_target = memory_->in_window(lane, reinterpret_cast<const void*>(to), bytes);
  calls_->run(lane, "ncclPutSignal", [&] {
    return nccl_.put_signal(source(data.data), bytes, ncclUint8, data.peer,
                            static_cast<ncclWindow_t>(window_target.window), window_target.offset, 0, 0, 0, lane, on);
  });
}

void NcclNetwork::signal(std::size_t communicator, StreamId stream, int peer) {
  ncclComm_t lane = comm(communicator);
  calls_->run(lane, "ncclSignal", [&] { return nccl_.signal(peer, 0, 0, 0, lane, device_.stream_of(stream)); });
}

void NcclNetwork::await_signals(std::size_t communicator, StreamId stream, const AwaitedSignals& signals) {
  ncclComm_t lane = comm(communicator);
  NcclSignals awaited{.opCnt = signals.count, .peer = signals.peer, .sigIdx = 0, .ctx = 0};
  calls_->run(lane, "ncclWaitSignal", [&] { return nccl_.wait_signal(1, &awaited, lane, device_.stream_of(stream)); });
}

#else

void NcclNetwork::put(std::size_t communicator, StreamId stream, const MessageEnd& data, Address to) {
  Network::put(communicator, stream, data, to);
}
void NcclNetwork::signal(std::size_t communicator, StreamId stream, int peer) {
  Network::signal(communicator, stream, peer);
}
void NcclNetwork::await_signals(std::size_t communicator, StreamId stream, const AwaitedSignals& signals) {
  Network::await_signals(communicator, stream, signals);
}

#endif

std::optional<std::string> NcclNetwork::failure() {
  drop_aborted();
  for (const std::unique_ptr<ncclComm_t>& comm_slot : communicators_) {
    ncclComm_t comm = *comm_slot;
    ncclResult_t status = ncclSuccess;
    if (comm == nullptr) {
      continue;
    }
    if (nccl_.comm_get_async_error(comm, &status) != ncclSuccess) {
      return "ncclCommGetAsyncError failed";
    }
    if (failed(status)) {
      return fmt::format("NCCL: {} ({})", nccl_.get_error_string(status), nccl_.get_last_error(comm));
    }
  }
  return std::nullopt;
}

void NcclNetwork::abort() {
  drop_aborted();
  if (memory_ != nullptr) {
    memory_->abandon();
  }
  device_.end_graphs();
  // A graph that still runs may hold operations of several lanes and ends once all of them are aborted. NCCL waits for
  // that graph in the abort of each lane, so the lanes are aborted at the same time, and their parent after them.
  std::vector<std::thread> aborts;
  for (std::size_t i = 1; i < communicators_.size(); ++i) {
    if (ncclComm_t lane = *communicators_[i]; lane != nullptr) {
      aborts.emplace_back([this, lane] { static_cast<void>(nccl_.comm_abort(lane)); });
    }
  }
  for (std::thread& thread : aborts) {
    thread.join();
  }
  if (!communicators_.empty() && *communicators_.front() != nullptr) {
    static_cast<void>(nccl_.comm_abort(*communicators_.front()));
  }
  communicators_.clear();
}

ncclComm_t NcclNetwork::comm(std::size_t communicator) {
  drop_aborted();
  require(communicator + 1 < communicators_.size() && *communicators_[communicator + 1] != nullptr,
          "no such communicator of the network, or it was aborted");
  return *communicators_[communicator + 1];
}

void NcclNetwork::drop_aborted() {
  for (ncclComm_t aborted_comm : calls_->aborted()) {
    for (const std::unique_ptr<ncclComm_t>& comm_slot : communicators_) {
      if (*comm_slot == aborted_comm) {
        *comm_slot = nullptr;
      }
    }
    if (memory_ != nullptr) {
      memory_->forget(aborted_comm);
    }
  }
  calls_->forget_aborted();
}

}  // namespace

NetworkKey make_nccl_key(const NcclLibrary& nccl) {
  nccl.require_loaded();
  ncclUniqueId id{};
  require_nccl(nccl, nccl.get_unique_id(&id), nullptr, "ncclGetUniqueId");
  NetworkKey key{};
  std::memcpy(key.data(), id.internal, key.size());
  return key;
}

std::unique_ptr<Network> connect_nccl(const NcclLibrary& nccl, NcclDevice& device, const NetworkKey& key,
                                      const NetworkMember& member, const NetworkOptions& options) {
  return std::make_unique<NcclNetwork>(nccl, device, key, member, options);
}

}  // namespace commfuse::validate
