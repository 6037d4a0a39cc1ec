// SPDX-License-Identifier: Apache-2.0
// The software GPU from inside: what its doubles of CUDA, cuBLASLt, NCCL and CUPTI share. Handles are kept for ever, so
// that a use after their end is noticed.
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

constexpr int most_multiprocessors = 132;
constexpr int multiprocessors_in_group = 8;  // what green contexts are made of

/// What variables of the environment say; read once.
struct Settings {
  std::uint64_t seed = 1;                      ///< SOFTWARE_GPU_SEED: of speeds and orders; 0: no delays
  int devices = 1;                             ///< SOFTWARE_GPU_DEVICES: of the machine, before CUDA_VISIBLE_DEVICES
  std::size_t memory = 0;                      ///< SOFTWARE_GPU_MEMORY: bytes of each
  std::size_t queue = 1000;                    ///< SOFTWARE_GPU_QUEUE: works that a stream takes before its host waits
  int multiprocessors = most_multiprocessors;  ///< SOFTWARE_GPU_MULTIPROCESSORS: of each; fewer have smaller kernels
  /// SOFTWARE_GPU_PATIENCE_MS: how long a device may stand still that an allocation waits for
  int patience_ms = 1500;
  /// SOFTWARE_GPU_MOST_WORK: FLOPs up to which a kernel computes; larger ones only take their time. 0: all do
  double most_work = 0.0;
  /// SOFTWARE_GPU_KERNEL_NS: the least that a kernel takes by the stated clock; 0: the clock is the processor's
  std::int64_t kernel_ns = 0;
  double flops_per_second = 1e13;  ///< SOFTWARE_GPU_FLOPS: of matrix products by the stated clock
};
const Settings& settings();

/// Works that follow each other whatever their streams, as those of an NCCL communicator do.
class Line {
 public:
  /// A place at the end.
  std::uint64_t take();
  /// Until all places before this one have been left.
  void wait(std::uint64_t place);
  void leave(std::uint64_t place);

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::uint64_t next_ = 0;
  std::uint64_t first_ = 0;
  std::int64_t stated_ = 0;          // when the last one ended
  std::vector<std::uint64_t> left_;  // out of order
};

enum class WorkKind : std::uint8_t { kernel, copy, other };

/// What a stream is given.
struct Work {
  WorkKind kind = WorkKind::other;
  std::string name;
  unsigned ctas = 0;
  cudaMemcpyKind direction = cudaMemcpyDeviceToDevice;  // of a copy
  /// On a thread of the device. Anything but cudaSuccess is the device's error from then on.
  std::function<cudaError_t()> run;
  std::shared_ptr<Line> line{};
  cudaEvent_t records = nullptr;  // in a graph: the event that it records
  std::uint32_t correlation = 0;  // of the call that issued it
  std::uint64_t node = 0;         // of a graph
  double flops = 0.0;             // of a matrix product
};

/// Gives a stream work, or the graph that it is captured into. Waits while the stream's queue is full.
cudaError_t enqueue(cudaStream_t stream, Work work);
/// Whether the stream is being captured.
bool is_captured(cudaStream_t stream);
/// -1: it is no stream.
int device_of(cudaStream_t stream);
int current_device();
std::string uuid_of(int device);
/// The same by the number that a GPU has in the machine, whichever are visible.
std::string uuid_in_machine(int number);
/// Whether all of it is one piece of memory that is allocated on this device.
bool is_device_memory(const void* at, std::size_t bytes, int device);
/// Which kernel this thread runs; null: none.
void set_kernel_here(const char* name);
/// Memory may wait for the device: fails where that stands still for longer than the patience, as behind a gate.
cudaError_t wait_to_allocate(const char* call);
/// The same, by a library that may allocate during a capture.
cudaError_t wait_to_allocate_on(int device, const char* call);
/// A number that differs from call to call, of the seed.
std::uint64_t random_number();
/// Once in a while waits for a short time, as the seed has it.
void dawdle();

/// Holds a handle for ever, so that it is no leak.
void keep(const void* handle);
template <class Handle>
Handle kept(Handle handle) {
  keep(handle);
  return handle;
}

/// Whether works last as long as is stated, by a clock that the processor does not move.
bool time_is_stated();
/// The stated clock of the work that this thread runs, in nanoseconds.
std::int64_t& stated_now();
/// Moves it on to this time, if that is later.
void wait_for_stated(std::int64_t time);
/// Moves it on to the end of a work that began then: its stated time, or what it has waited for, whichever is later.
void end_stated(const Work& work, std::int64_t begin);
/// The name of the kernel that waits for the host. That takes no stated time.
inline constexpr const char* gate_kernel = "gate";

/// Says that the work of this thread goes on; one that says nothing stands still.
void beat();
/// Whether a kernel of so many FLOPs is to compute; where not, the caller lets take_time() stand for it.
bool computes(double flops);
void take_time(double flops);

/// Who wants to know what happens: CUPTI.
class Watcher {
 public:
  Watcher() = default;
  Watcher(const Watcher&) = delete;
  Watcher& operator=(const Watcher&) = delete;
  virtual ~Watcher() = default;

  virtual std::uint64_t time() = 0;
  /// By the thread that calls.
  virtual void called(std::uint32_t correlation) = 0;
  virtual void ended(const Work& work, std::uint64_t begin, std::uint64_t end) = 0;
  virtual void node_created(std::uint64_t node) = 0;
  virtual void node_cloned(std::uint64_t node, std::uint64_t original) = 0;
};
/// Null: nobody.
void set_watcher(std::shared_ptr<Watcher> watcher);
std::shared_ptr<Watcher> watcher();

}  // namespace software_gpu
