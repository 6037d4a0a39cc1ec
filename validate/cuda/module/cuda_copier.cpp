// SPDX-License-Identifier: Apache-2.0
#include "validate/cuda/module/cuda_copier.h"

#include <fmt/format.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstring>
#include <iterator>
#include <new>
#include <thread>
#include <utility>

#include "validate/cuda/module/handles.h"
#include "validate/cuda/module/kernels.h"
#include "validate/cuda/module/near_host.h"
#include "validate/cuda/module/views.h"
#include "validate/executor.h"

namespace commfuse::validate {

namespace {

constexpr int max_repetitions = 100;
constexpr std::size_t streams_per_gpu = 2;

/// Makes a GPU current; the destructor restores the previous one.
class Current {
 public:
  explicit Current(int gpu) {
    require(cudaGetDevice(&before_), "cudaGetDevice");
    require(cudaSetDevice(gpu), "cudaSetDevice");
  }
  Current(const Current&) = delete;
  Current& operator=(const Current&) = delete;
  ~Current() { static_cast<void>(cudaSetDevice(before_)); }

 private:
  int before_ = 0;
};

/// Source of copies, to which no copy writes, and their destination.
struct CopyBuffers {
  Address source = 0;
  Address target = 0;
};

struct Lane {
  OwnedStream stream = new_stream(0);
  OwnedEvent begin = new_event(true);
  OwnedEvent end = new_event(true);
};

/// Resources of one GPU, and of the host memory near it.
struct Side {
  int multiprocessors = 0;
  std::vector<int> processors;
  std::array<Lane, streams_per_gpu> lanes;
  OwnedMemory count = new_device_memory(sizeof(unsigned long long));
  OwnedMemory memory;
  PinnedMemory host_memory;
  CopyBuffers buffers;
  CopyBuffers host_buffers;  // addresses as the GPU sees them
};

/// Returns the hash state that fills the source of an end. It differs for each end, so that a copy from the wrong end
/// is detected.
std::uint64_t hash_state(int end, int issuer) {
  const auto number = static_cast<std::uint64_t>(2 * (end == host_end ? issuer : end) + (end == host_end ? 1 : 0));
  return 0x636f7079U + (number << 32U);
}

Panel flat(Address at, Bytes bytes) {
  const std::int64_t elements = bytes.count / bytes_of(DType::fp32);
  return {at, 1, elements, elements, DType::fp32};
}

TagCall tags_at(Address at, Bytes bytes, std::uint64_t state) {
  const Panel panel = flat(at, bytes);
  return {.panel = panel, .state = state, .columns = panel.columns};
}

std::string name_of_end(int end) { return end == host_end ? "the host" : fmt::format("GPU {}", end); }

class CudaCopier final : public Copier {
 public:
  CudaCopier(int gpus, Duration patience);
  CudaCopier(const CudaCopier&) = delete;
  CudaCopier& operator=(const CudaCopier&) = delete;
  ~CudaCopier() override;

  [[nodiscard]] int gpus() const override { return static_cast<int>(sides_.size()); }
  [[nodiscard]] bool reaches(int gpu, int other) const override { return reach_[index_of(gpu)][index_of(other)]; }
  void make_room(Bytes bytes) override;
  void check(std::span<const TimedCopy> copies) override;
  [[nodiscard]] std::vector<Duration> time(std::span<const TimedCopy> copies) override;

 private:
  static std::size_t index_of(int gpu) { return static_cast<std::size_t>(gpu); }
  [[nodiscard]] Side& side(int gpu) { return *sides_[index_of(gpu)]; }
  [[nodiscard]] CopyBuffers buffers_of(int end, int issuer) {
    return end == host_end ? side(issuer).host_buffers : side(end).buffers;
  }
  void require_possible(const TimedCopy& copy) const;
  /// Returns the lane of every copy: the first or the second of its issuer.
  std::vector<Lane*> lanes_of(std::span<const TimedCopy> copies);
  void issue(const TimedCopy& copy, cudaStream_t stream);
  void issue_once(const TimedCopy& copy, cudaStream_t stream);
  void poison_target(const TimedCopy& copy);
  void require_arrived(const TimedCopy& copy);
  /// Throws Stuck if the streams do not finish. All waits are in this function, because none may last forever.
  void finish(std::span<const cudaStream_t> streams);
  void finish(const std::vector<Lane*>& lanes);

  [[nodiscard]] GateFlags& flags() const {
    return *std::launder(reinterpret_cast<GateFlags*>(flags_.get()));  // NOLINT(*-reinterpret-cast): made there
  }
  void close_gate() {
    std::atomic_ref(flags().opened_alone).store(0);
    std::atomic_ref(flags().open).store(0);
  }
  void open_gate() { std::atomic_ref(flags().open).store(1); }

  Duration patience_;
  bool is_stuck_ = false;
  PinnedMemory flags_;  // flags of a single gate for all GPUs
  PinnedMemory count_ =
      new_pinned_memory(sizeof(unsigned long long));  // pinned: copies to pageable memory may block the host
  std::vector<std::unique_ptr<Side>> sides_;
  std::vector<std::vector<bool>> reach_;
  Bytes largest_copy_{};
};

/// Enables access of `gpu` to `other`, and returns whether the access is possible. Another library of this process may
/// have enabled it before.
bool enabled(int gpu, int other) {
  if (gpu == other) {
    return true;
  }
  int can_access = 0;
  require(cudaDeviceCanAccessPeer(&can_access, gpu, other), "cudaDeviceCanAccessPeer");
  if (can_access == 0) {
    return false;
  }
  const Current current(gpu);
  const cudaError_t status = cudaDeviceEnablePeerAccess(other, 0);
  if (status == cudaErrorPeerAccessAlreadyEnabled) {
    static_cast<void>(cudaGetLastError());
    return true;
  }
  require(status, "cudaDeviceEnablePeerAccess");
  return true;
}

std::unique_ptr<Side> side_of(int gpu) {
  const Current current(gpu);
  auto side = std::make_unique<Side>();
  require(cudaDeviceGetAttribute(&side->multiprocessors, cudaDevAttrMultiProcessorCount, gpu),
          "cudaDeviceGetAttribute");
  std::array<char, 32> bus{};
  require(cudaDeviceGetPCIBusId(bus.data(), static_cast<int>(bus.size()), gpu), "cudaDeviceGetPCIBusId");
  side->processors = processors_near(bus.data());
  return side;
}

CudaCopier::CudaCopier(int gpus, Duration patience)
    : patience_(patience), flags_(new_pinned_memory(sizeof(GateFlags))) {
  new (flags_.get()) GateFlags{.open = 1};
  for (int gpu = 0; gpu < gpus; ++gpu) {
    sides_.push_back(side_of(gpu));
  }
  for (int gpu = 0; gpu < gpus; ++gpu) {
    reach_.emplace_back();
    for (int other = 0; other < gpus; ++other) {
      reach_.back().push_back(enabled(gpu, other));
    }
  }
}

/// Memory and streams that unfinished copies may still use. Freeing them would wait for these copies, so they live
/// until the process ends.
struct Abandoned {
  std::vector<std::unique_ptr<Side>> sides;
  std::vector<PinnedMemory> pinned;
};

CudaCopier::~CudaCopier() {
  open_gate();
  if (is_stuck_) {
    static auto& abandoned = *new Abandoned;
    std::move(sides_.begin(), sides_.end(), std::back_inserter(abandoned.sides));
    abandoned.pinned.push_back(std::move(flags_));
    abandoned.pinned.push_back(std::move(count_));
  }
}

void CudaCopier::make_room(Bytes bytes) {
  require(bytes.count > 0 && bytes.count % 512 == 0, "the size of a copy is a multiple of 512 bytes");
  largest_copy_ = bytes;
  const auto capacity = static_cast<std::size_t>(bytes.count);
  for (int gpu = 0; gpu < gpus(); ++gpu) {
    const Current current(gpu);
    Side& this_side = side(gpu);
    this_side.memory = new_device_memory(2 * capacity);
    const OnProcessors near(this_side.processors);
    this_side.host_memory = new_pinned_memory(2 * capacity);
    void* device_pointer = nullptr;
    require(cudaHostGetDevicePointer(&device_pointer, this_side.host_memory.get(), 0), "cudaHostGetDevicePointer");
    this_side.buffers = {address_of(this_side.memory.get()), address_of(this_side.memory.get() + capacity)};
    this_side.host_buffers = {address_of(device_pointer), address_of(device_pointer) + capacity};
    cudaStream_t stream = this_side.lanes.front().stream.get();
    launch_tags(stream, tags_at(this_side.buffers.source, bytes, hash_state(gpu, gpu)));
    launch_tags(stream, tags_at(this_side.host_buffers.source, bytes, hash_state(host_end, gpu)));
    finish(std::array{stream});
  }
}

void CudaCopier::require_possible(const TimedCopy& copy) const {
  const auto is_end = [&](int end) { return end == host_end || (end >= 0 && end < gpus()); };
  require(is_end(copy.from) && is_end(copy.to) && copy.issuer >= 0 && copy.issuer < gpus(), "a copy joins two ends");
  require(copy.from == copy.issuer || copy.to == copy.issuer, "a copy is issued by one of its ends");
  require(copy.bytes.count > 0 && copy.bytes.count % 512 == 0 && copy.bytes <= largest_copy_,
          "the size of a copy is a multiple of 512 bytes, up to the size given to make_room()");
  require(copy.repetitions > 0 && copy.repetitions <= max_repetitions, "a copy is repeated 1 to 100 times");
  const int other = copy.from == copy.issuer ? copy.to : copy.from;
  require(other == host_end || reaches(copy.issuer, other), "a GPU can access the other end of its copies");
}

std::vector<Lane*> CudaCopier::lanes_of(std::span<const TimedCopy> copies) {
  std::vector<std::size_t> used(sides_.size(), 0);
  std::vector<Lane*> lanes;
  for (const TimedCopy& copy : copies) {
    require_possible(copy);
    const std::size_t number = used[index_of(copy.issuer)]++;
    require(number < streams_per_gpu, "a GPU has streams for two simultaneous copies");
    lanes.push_back(&side(copy.issuer).lanes[number]);
  }
  return lanes;
}

void CudaCopier::issue_once(const TimedCopy& copy, cudaStream_t stream) {
  const Address from = buffers_of(copy.from, copy.issuer).source;
  const Address to = buffers_of(copy.to, copy.issuer).target;
  const auto bytes = static_cast<std::size_t>(copy.bytes.count);
  if (copy.by == CopiedBy::kernel) {
    const MoveCall call{.parts = {{flat(from, copy.bytes), flat(to, copy.bytes)}}, .wire = DType::fp32, .link = {}};
    launch_move(stream, call, side(copy.issuer).multiprocessors, nullptr);
  } else if (copy.from == host_end) {
    require(cudaMemcpyAsync(pointer_to(to), pointer_to(from), bytes, cudaMemcpyHostToDevice, stream),
            "cudaMemcpyAsync");
  } else if (copy.to == host_end) {
    require(cudaMemcpyAsync(pointer_to(to), pointer_to(from), bytes, cudaMemcpyDeviceToHost, stream),
            "cudaMemcpyAsync");
  } else {
    require(cudaMemcpyPeerAsync(pointer_to(to), copy.to, pointer_to(from), copy.from, bytes, stream),
            "cudaMemcpyPeerAsync");
  }
}

void CudaCopier::issue(const TimedCopy& copy, cudaStream_t stream) {
  for (int i = 0; i < copy.repetitions; ++i) {
    issue_once(copy, stream);
  }
}

void CudaCopier::finish(std::span<const cudaStream_t> streams) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::ceil<std::chrono::nanoseconds>(patience_);
  for (cudaStream_t stream : streams) {
    for (cudaError_t status = cudaErrorNotReady; status == cudaErrorNotReady;) {
      status = cudaStreamQuery(stream);
      require(status == cudaErrorNotReady ? cudaSuccess : status, "a copy");
      if (status == cudaErrorNotReady && std::chrono::steady_clock::now() > deadline) {
        is_stuck_ = true;
        throw Stuck(fmt::format("copies did not finish within {:g} s; look for GPU errors (Xid) in the kernel's log",
                                std::chrono::duration<double>(patience_).count()));
      }
      std::this_thread::yield();
    }
  }
}

void CudaCopier::finish(const std::vector<Lane*>& lanes) {
  std::vector<cudaStream_t> streams;
  for (const Lane* lane : lanes) {
    streams.push_back(lane->stream.get());
  }
  finish(streams);
}

void CudaCopier::poison_target(const TimedCopy& copy) {
  const int owner = copy.to == host_end ? copy.issuer : copy.to;
  const Current current(owner);
  const auto bytes = static_cast<std::size_t>(copy.bytes.count);
  if (copy.to == host_end) {
    std::memset(side(owner).host_memory.get() + largest_copy_.count, 0xff, bytes);
    return;
  }
  cudaStream_t stream = side(owner).lanes.front().stream.get();
  require(cudaMemsetAsync(pointer_to(side(owner).buffers.target), 0xff, bytes, stream), "cudaMemsetAsync");
  finish(std::array{stream});
}

void CudaCopier::require_arrived(const TimedCopy& copy) {
  const int owner = copy.to == host_end ? copy.issuer : copy.to;
  const Current current(owner);
  Side& this_side = side(owner);
  cudaStream_t stream = this_side.lanes.front().stream.get();
  unsigned long long wrong = 0;
  require(cudaMemsetAsync(this_side.count.get(), 0, sizeof wrong, stream), "cudaMemsetAsync");
  launch_count_of_wrong_tags(
      stream, tags_at(buffers_of(copy.to, copy.issuer).target, copy.bytes, hash_state(copy.from, copy.issuer)),
      reinterpret_cast<unsigned long long*>(this_side.count.get()));
  require(cudaMemcpyAsync(count_.get(), this_side.count.get(), sizeof wrong, cudaMemcpyDeviceToHost, stream),
          "cudaMemcpyAsync");
  finish(std::array{stream});
  std::memcpy(&wrong, count_.get(), sizeof wrong);
  if (wrong != 0) {
    throw std::runtime_error(fmt::format("of {} bytes from {} to {}, {} words of 4 bytes did not arrive",
                                         copy.bytes.count, name_of_end(copy.from), name_of_end(copy.to), wrong));
  }
}

void CudaCopier::check(std::span<const TimedCopy> copies) {
  const std::vector<Lane*> lanes = lanes_of(copies);
  for (const TimedCopy& copy : copies) {
    poison_target(copy);
  }
  for (std::size_t i = 0; i < copies.size(); ++i) {
    const Current current(copies[i].issuer);
    issue_once(copies[i], lanes[i]->stream.get());
  }
  finish(lanes);
  for (const TimedCopy& copy : copies) {
    require_arrived(copy);
  }
}

std::vector<Duration> CudaCopier::time(std::span<const TimedCopy> copies) {
  const std::vector<Lane*> lanes = lanes_of(copies);
  struct OpenedInTheEnd {
    CudaCopier& copier;
    ~OpenedInTheEnd() { copier.open_gate(); }
  };
  {
    const OpenedInTheEnd opened{*this};
    close_gate();
    for (std::size_t i = 0; i < copies.size(); ++i) {
      const Current current(copies[i].issuer);
      cudaStream_t stream = lanes[i]->stream.get();
      void* device_pointer = nullptr;
      require(cudaHostGetDevicePointer(&device_pointer, flags_.get(), 0), "cudaHostGetDevicePointer");
      launch_gate(stream, static_cast<GateFlags*>(device_pointer));
      require(cudaEventRecord(lanes[i]->begin.get(), stream), "cudaEventRecord");
      issue(copies[i], stream);
      require(cudaEventRecord(lanes[i]->end.get(), stream), "cudaEventRecord");
    }
  }
  finish(lanes);
  require(std::atomic_ref(flags().opened_alone).load() == 0, "the gate opened before all copies were issued");
  std::vector<Duration> times;
  for (std::size_t i = 0; i < copies.size(); ++i) {
    float milliseconds = 0.0F;
    require(cudaEventElapsedTime(&milliseconds, lanes[i]->begin.get(), lanes[i]->end.get()), "cudaEventElapsedTime");
    times.emplace_back(std::llround(static_cast<double>(milliseconds) * 1e9 / copies[i].repetitions));
  }
  return times;
}

}  // namespace

std::unique_ptr<Copier> make_cuda_copier(int gpus, Duration patience) {
  return std::make_unique<CudaCopier>(gpus, patience);
}

}  // namespace commfuse::validate
