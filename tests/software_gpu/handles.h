// SPDX-License-Identifier: Apache-2.0
// Objects behind the handles of streams, events and graphs, and the state of a device.
#pragma once

#include <atomic>
#include <deque>
#include <set>
#include <thread>

#include "tests/software_gpu/gpu.h"

namespace software_gpu {

/// One recording of an event.
class Record {
 public:
  void complete();
  void wait();
  [[nodiscard]] bool done();
  /// Returns the time of the record in nanoseconds. The record must be done.
  [[nodiscard]] std::int64_t time();

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool done_ = false;
  std::int64_t time_ = 0;
};

struct Node {
  Work work;
  std::vector<std::size_t> after;
  std::size_t chain = 0;  // index in Capture::streams of the stream from which it was captured
};

/// A running or former capture.
struct Capture {
  cudaStream_t origin = nullptr;
  std::thread::id thread;
  bool only_its_thread = false;
  bool is_running = true;
  cudaError_t invalid = cudaSuccess;
  std::vector<Node> nodes;
  std::vector<cudaStream_t> streams;
  std::vector<std::pair<const Line*, std::size_t>> last_of_lines;
};

class Device {
 public:
  void begin_work();
  void end_work(cudaError_t status);
  /// Waits until the device is idle; returns false if no work makes progress for `patience_ms` milliseconds. Waits
  /// forever if `patience_ms` is negative.
  bool wait_until_idle(int patience_ms);
  [[nodiscard]] cudaError_t error() const { return error_.load(); }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::int64_t works_ = 0;
  std::int64_t ended_ = 0;
  std::atomic<cudaError_t> error_ = cudaSuccess;
};
Device& device(int which);

}  // namespace software_gpu

struct CUstream_st {
  int device = 0;
  int priority = 0;
  CUgreenCtx context = nullptr;
  bool alive = true;

  std::mutex mutex;
  std::condition_variable changed;
  std::deque<software_gpu::Work> queue;
  std::size_t works = 0;  // queued and running work items
  std::int64_t time = 0;  // stated clock (costs.cpp); only the stream's thread uses it

  // Guarded by captures_mutex().
  std::shared_ptr<software_gpu::Capture> capture;
  std::vector<std::size_t> last;  // nodes that the next node waits for
  std::size_t chain = 0;
};

struct CUevent_st {
  int device = 0;
  bool timed = false;
  bool alive = true;
  std::mutex mutex;
  std::shared_ptr<software_gpu::Record> record;  // latest record; null: none
  // Capture that has the latest record, and the nodes that precede the record there.
  std::shared_ptr<software_gpu::Capture> capture;
  std::vector<std::size_t> nodes;
};

struct CUgraph_st {
  bool alive = true;
  std::vector<software_gpu::Node> nodes;
};

struct CUgraphExec_st {
  bool alive = true;
  int device = 0;
  std::shared_ptr<const std::vector<software_gpu::Node>> nodes;
  std::shared_ptr<software_gpu::Line> launches;  // launches run one after another
};

namespace software_gpu {

/// Guards all captures, and their streams.
std::mutex& captures_mutex();
/// Returns true if a capture forbids the calling thread to wait or allocate, and invalidates that capture.
bool forbidden_by_capture();
cudaStream_t new_stream(int device, int priority, CUgreenCtx context);
bool is_alive(cudaStream_t stream);
bool is_alive(cudaEvent_t event);
/// Queues work regardless of captures.
void push(cudaStream_t stream, Work work);
/// Runs a work item on this thread, observed by the watcher.
cudaError_t run_watched(const Work& work);
std::uint32_t new_correlation();
std::uint64_t new_node();
/// Makes `status` the result of cudaGetLastError(), unless `status` is success or not ready. Returns `status`.
cudaError_t reported(cudaError_t status);

}  // namespace software_gpu
