// SPDX-License-Identifier: Apache-2.0
#include "validate/cuda/module/nccl_network.h"

#include <fmt/format.h>
#include <nccl.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <stdexcept>
#include <utility>

#include "validate/cuda/module/failures.h"
#include "validate/cuda/module/nccl_failures.h"
#include "validate/cuda/module/nccl_memory.h"
#include "validate/cuda/nccl_features.h"

#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 28, 3)
#pragma weak ncclAlltoAll  // as in nccl_memory.cpp
#endif

namespace commfuse::validate {

namespace {

/// At the end others may be gone already.
constexpr Duration longest_farewell = std::chrono::seconds(10);

ncclDataType_t type_of(DType dtype) {
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

NcclVersions versions_here() {
  NcclVersions versions{.header = NCCL_VERSION_CODE};
  require_nccl(ncclGetVersion(&versions.library), nullptr, "ncclGetVersion");
  return versions;
}

// NOLINTBEGIN(concurrency-mt-unsafe): one thread makes networks, and NCCL's own read these only meanwhile

/// What NCCL reads once: the first network of a process decides. Returns a sentence for everything decided otherwise.
std::vector<std::string> set_process_variables(const NetworkOptions& options) {
  static const NetworkOptions first = [&] {
    for (const NcclVariable& one : process_variables(options)) {
      ::setenv(one.name.c_str(), one.value.c_str(), one.forced ? 1 : 0);
    }
    return options;
  }();
  std::vector<std::string> notes;
  if (first.least_p2p_channels != options.least_p2p_channels) {
    notes.emplace_back("NCCL takes its P2P channels from the first network of a process; start another process");
  }
  return notes;
}

/// NCCL reads NCCL_ALGO for every communicator that is made.
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

std::vector<std::string> notes_on_algorithms(const NetworkOptions& options) {
  if (!options.nvls && std::getenv("NCCL_ALGO") != nullptr) {
    return {"NCCL_ALGO is set, so it decides about NVLS"};
  }
  return {};
}

// NOLINTEND(concurrency-mt-unsafe)

ncclConfig_t config_of(const NetworkOptions& options, [[maybe_unused]] const NcclVersions& versions) {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  config.splitShare = 0;  // lanes that share would wait for each other
  if (options.most_ctas > 0) {
    config.maxCTAs = options.most_ctas;
  }
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 27, 0)
  if (has(versions, options.cta_policy == 2 ? NcclFeature::zero_cta_policy : NcclFeature::cta_policy)) {
    config.CTAPolicy = options.cta_policy;
  }
#endif
  return config;
}

class NcclNetwork final : public Network {
 public:
  NcclNetwork(CudaDriver& driver, const NetworkKey& key, const NetworkMember& member, const NetworkOptions& options);
  NcclNetwork(const NcclNetwork&) = delete;
  NcclNetwork& operator=(const NcclNetwork&) = delete;
  ~NcclNetwork() override;

  [[nodiscard]] std::string version() const override { return nccl_in_words(versions_.library); }
  [[nodiscard]] std::vector<std::string> notes() const override { return notes_; }
  [[nodiscard]] int rank() const override { return member_.rank; }
  [[nodiscard]] int ranks() const override { return member_.ranks; }
  [[nodiscard]] std::size_t split(int color) override;
  void exchange(std::size_t communicator, StreamId stream, std::span<const Message> sends,
                std::span<const Message> receives) override;
  void collective(std::size_t communicator, StreamId stream, CollectiveKind kind, const Panel& in,
                  const Panel& out) override;
  [[nodiscard]] std::optional<std::string> failure() override;
  void abort() override;

 private:
  void connect(const NetworkKey& key);
  /// One group: all of it, or nothing.
  template <class Issue>
  void group(std::size_t communicator, const char* what, const Issue& issue);
  void all_to_all(std::size_t communicator, cudaStream_t stream, const Panel& in, const Panel& out);
  [[nodiscard]] ncclComm_t comm(std::size_t communicator) const;

  CudaDriver& driver_;
  NetworkMember member_;
  NetworkOptions options_;
  NcclVersions versions_;
  std::vector<std::string> notes_;
  /// That of all ranks, and those that were split off. NCCL writes to where one stands when it is done, which may be
  /// after we gave up: so they stay where they are.
  std::vector<std::unique_ptr<ncclComm_t>> all_;
  std::shared_ptr<NcclMemory> memory_;
};

NcclNetwork::NcclNetwork(CudaDriver& driver, const NetworkKey& key, const NetworkMember& member,
                         const NetworkOptions& options)
    : driver_(driver), member_(member), options_(options), versions_(versions_here()) {
  if (const std::string sentence = refused(versions_); !sentence.empty()) {
    throw std::runtime_error(sentence);
  }
  notes_ = notes_on(options, versions_);
  for (const std::vector<std::string>& more : {set_process_variables(options), notes_on_algorithms(options)}) {
    notes_.insert(notes_.end(), more.begin(), more.end());
  }
  try {
    connect(key);
  } catch (...) {
    abort();
    throw;
  }
  if (options.registered && has(versions_, NcclFeature::registration)) {
    const bool symmetric = options.cta_policy == 2 && has(versions_, NcclFeature::zero_cta_policy);
    memory_ = std::make_shared<NcclMemory>(symmetric, options.patience);
    driver_.take_memory_from(memory_);
  }
}

void NcclNetwork::connect(const NetworkKey& key) {
  require(cudaSetDevice(driver_.device()), "cudaSetDevice");
  const WithoutNvls meanwhile(algorithms_without_nvls(options_));
  ncclConfig_t config = config_of(options_, versions_);
  ncclUniqueId id{};
  static_assert(sizeof id.internal == std::tuple_size_v<NetworkKey>);
  std::memcpy(id.internal, key.data(), key.size());
  all_.push_back(std::make_unique<ncclComm_t>(nullptr));
  ncclComm_t& first = *all_.front();
  const ncclResult_t begun = ncclCommInitRankConfig(&first, member_.ranks, id, member_.rank, &config);
  settle(begun, first, "ncclCommInitRankConfig", options_.patience);
}

std::size_t NcclNetwork::split(int color) {
  require(!all_.empty(), "the network was aborted");
  const WithoutNvls meanwhile(algorithms_without_nvls(options_));
  ncclConfig_t config = config_of(options_, versions_);
  ncclComm_t first = *all_.front();
  all_.push_back(std::make_unique<ncclComm_t>(nullptr));
  ncclComm_t& made = *all_.back();  // there once its parent is at rest
  settle(ncclCommSplit(first, color, member_.rank, &made, &config), first, "ncclCommSplit", options_.patience);
  ncclResult_t status = ncclSuccess;
  require_nccl(ncclCommGetAsyncError(made, &status), made, "ncclCommGetAsyncError");
  settle(status, made, "ncclCommSplit", options_.patience);
  if (memory_ != nullptr) {
    memory_->join(made);
  }
  return all_.size() - 2;
}

NcclNetwork::~NcclNetwork() {
  if (memory_ != nullptr) {
    driver_.take_memory_from(std::make_shared<PlainMemory>());
    try {
      memory_->deregister();
    } catch (const std::exception&) {  // communicators that failed are aborted below
    }
  }
  const Duration patience = std::min(options_.patience, longest_farewell);
  for (; !all_.empty(); all_.pop_back()) {  // those that were split off first
    ncclComm_t last = *all_.back();
    try {
      settle(ncclCommFinalize(last), last, "ncclCommFinalize", patience);
      static_cast<void>(ncclCommDestroy(last));
    } catch (const std::exception&) {
      static_cast<void>(ncclCommAbort(last));
    }
  }
}

template <class Issue>
void NcclNetwork::group(std::size_t communicator, const char* what, const Issue& issue) {
  require_nccl(ncclGroupStart(), comm(communicator), "ncclGroupStart");
  const ncclResult_t issued = issue();
  const ncclResult_t ended = ncclGroupEnd();  // whatever happened inside, or the next one would be part of it
  settle(issued == ncclInProgress ? ncclSuccess : issued, comm(communicator), what, options_.patience);
  settle(ended, comm(communicator), what, options_.patience);
}

void NcclNetwork::exchange(std::size_t communicator, StreamId stream, std::span<const Message> sends,
                           std::span<const Message> receives) {
  cudaStream_t on = driver_.stream_of(stream);
  group(communicator, "an exchange by NCCL", [&] {
    ncclResult_t status = ncclSuccess;
    const auto go_on = [&] { return status == ncclSuccess || status == ncclInProgress; };
    for (std::size_t i = 0; i < sends.size() && go_on(); ++i) {
      const Message& one = sends[i];
      status = ncclSend(source(one.data), static_cast<std::size_t>(one.data.bytes().count), ncclUint8, one.peer,
                        comm(communicator), on);
    }
    for (std::size_t i = 0; i < receives.size() && go_on(); ++i) {
      const Message& one = receives[i];
      status = ncclRecv(target(one.data), static_cast<std::size_t>(one.data.bytes().count), ncclUint8, one.peer,
                        comm(communicator), on);
    }
    return status;
  });
}

void NcclNetwork::collective(std::size_t communicator, StreamId stream, CollectiveKind kind, const Panel& in,
                             const Panel& out) {
  require(in.contiguous() && out.contiguous() && in.dtype == out.dtype, "a collective is of contiguous equal dtypes");
  cudaStream_t on = driver_.stream_of(stream);
  const ncclDataType_t type = type_of(in.dtype);
  switch (kind) {
    case CollectiveKind::all_gather:
      settle(ncclAllGather(source(in), target(out), elements(in), type, comm(communicator), on), comm(communicator),
             "ncclAllGather", options_.patience);
      return;
    case CollectiveKind::reduce_scatter:
      settle(ncclReduceScatter(source(in), target(out), elements(out), type, ncclSum, comm(communicator), on),
             comm(communicator), "ncclReduceScatter", options_.patience);
      return;
    case CollectiveKind::all_reduce:
      settle(ncclAllReduce(source(in), target(out), elements(in), type, ncclSum, comm(communicator), on),
             comm(communicator), "ncclAllReduce", options_.patience);
      return;
    case CollectiveKind::all_to_all: all_to_all(communicator, on, in, out); return;
  }
}

void NcclNetwork::all_to_all(std::size_t communicator, cudaStream_t stream, const Panel& in, const Panel& out) {
  int members = 0;
  require_nccl(ncclCommCount(comm(communicator), &members), comm(communicator), "ncclCommCount");
  const auto ranks = static_cast<std::size_t>(members);
  const auto bytes = static_cast<std::size_t>(in.bytes().count) / ranks;
  require(bytes * ranks == static_cast<std::size_t>(in.bytes().count) && in.bytes() == out.bytes(),
          "an all-to-all is in equal parts");
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 28, 3)
  if (has(versions_, NcclFeature::all_to_all)) {
    settle(ncclAlltoAll(source(in), target(out), bytes, ncclUint8, comm(communicator), stream), comm(communicator),
           "ncclAlltoAll", options_.patience);
    return;
  }
#endif
  group(communicator, "an all-to-all by NCCL", [&] {
    ncclResult_t status = ncclSuccess;
    for (std::size_t i = 0; i < ranks && (status == ncclSuccess || status == ncclInProgress); ++i) {
      const int peer = static_cast<int>(i);
      status = ncclSend(static_cast<const std::byte*>(source(in)) + i * bytes, bytes, ncclUint8, peer,
                        comm(communicator), stream);
      if (status == ncclSuccess || status == ncclInProgress) {
        status = ncclRecv(static_cast<std::byte*>(target(out)) + i * bytes, bytes, ncclUint8, peer, comm(communicator),
                          stream);
      }
    }
    return status;
  });
}

std::optional<std::string> NcclNetwork::failure() {
  for (const std::unique_ptr<ncclComm_t>& where : all_) {
    ncclComm_t one = *where;
    ncclResult_t status = ncclSuccess;
    if (ncclCommGetAsyncError(one, &status) != ncclSuccess) {
      return "ncclCommGetAsyncError failed";
    }
    if (status != ncclSuccess && status != ncclInProgress) {
      return fmt::format("NCCL: {} ({})", ncclGetErrorString(status), ncclGetLastError(one));
    }
  }
  return std::nullopt;
}

void NcclNetwork::abort() {
  if (memory_ != nullptr) {
    memory_->abandon();
  }
  for (; !all_.empty(); all_.pop_back()) {
    if (*all_.back() != nullptr) {
      static_cast<void>(ncclCommAbort(*all_.back()));
    }
  }
}

ncclComm_t NcclNetwork::comm(std::size_t communicator) const {
  require(communicator + 1 < all_.size(), "no such communicator of the network, or it was aborted");
  return *all_[communicator + 1];
}

}  // namespace

NetworkKey make_nccl_key() {
  ncclUniqueId id{};
  require_nccl(ncclGetUniqueId(&id), nullptr, "ncclGetUniqueId");
  NetworkKey key{};
  std::memcpy(key.data(), id.internal, key.size());
  return key;
}

std::unique_ptr<Network> connect_nccl(CudaDriver& driver, const NetworkKey& key, const NetworkMember& member,
                                      const NetworkOptions& options) {
  return std::make_unique<NcclNetwork>(driver, key, member, options);
}

}  // namespace commfuse::validate
