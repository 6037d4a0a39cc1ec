// SPDX-License-Identifier: Apache-2.0
// Internals of the software GPU that its doubles of CUDA, cuBLASLt, NCCL and CUPTI share. Handles are never freed, so
// that their use after destruction is detected.
#pragma once

#include <cuda_runtime_api.h>

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace software_gpu {

constexpr std::size_t page_bytes = 4096;  // a page of the host
constexpr int max_multiprocessors = 132;
constexpr int multiprocessors_in_group = 8;  // the unit of green contexts

/// Settings from the environment; read once.
struct Settings {
  std::uint64_t seed = 1;    ///< SOFTWARE_GPU_SEED: seed of speeds and orders; 0: no delays
  int devices = 1;           ///< SOFTWARE_GPU_DEVICES: number in the machine, before CUDA_VISIBLE_DEVICES
  std::size_t memory = 0;    ///< SOFTWARE_GPU_MEMORY: bytes of each device
  std::size_t queue = 1000;  ///< SOFTWARE_GPU_QUEUE: work items that a stream takes before its host waits
  /// SOFTWARE_GPU_MULTIPROCESSORS: multiprocessors of each device; with fewer, kernels that fill a device have fewer
  /// blocks
  int multiprocessors = max_multiprocessors;
  /// SOFTWARE_GPU_PATIENCE_MS: how long an allocation waits for a device that makes no progress
  int patience_ms = 1500;
  /// SOFTWARE_GPU_MOST_WORK: FLOPs up to which a kernel computes; a larger kernel only takes its time. 0: all compute
  double max_work = 0.0;
  /// SOFTWARE_GPU_KERNEL_NS: shortest time of a kernel or copy by the stated clock; 0: the clock is the processor's
  std::int64_t kernel_ns = 0;
  double flops_per_second = 1e13;  ///< SOFTWARE_GPU_FLOPS: rate of GEMMs by the stated clock
};
const Settings& settings();

/// Orders work items that must run in sequence, on any streams, such as those of an NCCL communicator.
class Line {
 public:
  /// Takes a place at the end.
  std::uint64_t take();
  /// Waits until all places before this one have been left.
  void wait(std::uint64_t place);
  void leave(std::uint64_t place);

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::uint64_t next_ = 0;
  std::uint64_t first_ = 0;
  std::int64_t stated_ = 0;          // end of the last work
  std::vector<std::uint64_t> left_;  // places that were left before earlier places
};

enum class WorkKind : std::uint8_t { kernel, copy, other };

/// A work item of a stream.
struct Work {
  WorkKind kind = WorkKind::other;
  std::string name;
  unsigned ctas = 0;
  cudaMemcpyKind direction = cudaMemcpyDeviceToDevice;  // direction of a copy
  bool between_gpus = false;                            // a copy to or from another GPU
  /// Runs on a thread of the device. Any result other than cudaSuccess is the device's error from then on.
  std::function<cudaError_t()> run;
  std::shared_ptr<Line> line{};
  cudaEvent_t records = nullptr;  // in a graph: the event that it records
  std::uint32_t correlation = 0;  // number of the call that issued it
  std::uint64_t node = 0;         // node of a graph
  double flops = 0.0;             // FLOPs of a GEMM
};

/// Adds work to a stream, or to the graph into which it is captured. Waits while the stream's queue is full.
cudaError_t enqueue(cudaStream_t stream, Work work);
/// True while the stream is being captured.
bool is_captured(cudaStream_t stream);
/// Returns the stream's device; -1: not a stream.
int device_of(cudaStream_t stream);
/// True if `device` is the number of a visible device.
bool is_device(int device);
int current_device();
std::string uuid_of(int device);
/// Returns the UUID of a GPU by its number in the machine, regardless of which GPUs are visible.
std::string uuid_in_machine(int number);
/// True if the range lies in one piece of memory that is allocated on this device or opened for it.
bool is_device_memory(const void* at, std::size_t bytes, int device);
/// Sets the kernel that this thread runs; null: none.
void set_running_kernel(const char* name);
/// Waits for the device before an allocation; fails if the device makes no progress for longer than the patience, for
/// example behind a gate.
cudaError_t wait_to_allocate(const char* call);
/// Waits like wait_to_allocate(), for a library that may allocate during a capture.
cudaError_t wait_to_allocate_on(int device, const char* call);
/// Returns a random number that depends on the seed and differs from call to call.
std::uint64_t random_number();
/// Sometimes waits for a short time. The seed determines in which calls.
void dawdle();

/// Keeps a handle forever, so that it does not count as a leak.
void keep(const void* handle);
template <class Handle>
Handle kept(Handle handle) {
  keep(handle);
  return handle;
}

/// True if work takes its stated time, by a clock that does not depend on the processor.
bool time_is_stated();
/// Returns the stated clock, in nanoseconds, of the work that this thread runs.
std::int64_t& stated_now();
/// Advances the stated clock to this time, if that is later.
void wait_for_stated(std::int64_t time);
/// Advances the stated clock to the end of a work item: to `begin` plus the item's stated time, or not at all if the
/// clock is later already, because the item has waited.
void end_stated(const Work& work, std::int64_t begin);
/// Name of the kernel that waits for the host, which takes no stated time.
inline constexpr const char* gate_kernel = "gate";

/// Reports progress of this thread's work; work that reports nothing counts as making no progress.
void beat();
/// True if a kernel of this many FLOPs computes; if not, the caller uses take_time() instead.
bool computes(double flops);
void take_time(double flops);

/// Observes calls, work and nodes of graphs, for CUPTI.
class Watcher {
 public:
  Watcher() = default;
  Watcher(const Watcher&) = delete;
  Watcher& operator=(const Watcher&) = delete;
  virtual ~Watcher() = default;

  virtual std::uint64_t time() = 0;
  /// Called on the thread of the call.
  virtual void called(std::uint32_t correlation) = 0;
  virtual void ended(const Work& work, std::uint64_t begin, std::uint64_t end) = 0;
  virtual void node_created(std::uint64_t node) = 0;
  virtual void node_cloned(std::uint64_t node, std::uint64_t original) = 0;
};
/// Sets the observer; null: none.
void set_watcher(std::shared_ptr<Watcher> watcher);
std::shared_ptr<Watcher> watcher();

}  // namespace software_gpu
