// SPDX-License-Identifier: Apache-2.0
// Streams, each with its own thread and with random delays from the seed, and their dependencies.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <utility>

#include "tests/software_gpu/handles.h"
#include "tests/software_gpu/include/software_gpu.h"
#include "tests/software_gpu/misuse.h"

namespace software_gpu {

namespace {

std::uint64_t number_in(const char* name, std::uint64_t otherwise) {
  const char* text = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): nobody changes it
  return text == nullptr || *text == '\0' ? otherwise : std::strtoull(text, nullptr, 10);
}

constexpr int max_devices = 64;

/// Registry of valid handles, which every use checks.
template <class Handle>
class Registry {
 public:
  void add(Handle handle) {
    const std::lock_guard lock(mutex_);
    handles_.insert(handle);
  }
  bool contains(Handle handle) {
    const std::lock_guard lock(mutex_);
    return handles_.contains(handle);
  }
  /// Removes a handle; returns whether it was present.
  bool remove(Handle handle) {
    const std::lock_guard lock(mutex_);
    return handles_.erase(handle) == 1;
  }

 private:
  std::mutex mutex_;
  std::set<Handle> handles_;
};

// The registries are never destroyed, because threads of streams may outlive main().
Registry<cudaStream_t>& streams() {
  static auto& streams_registry = *new Registry<cudaStream_t>;
  return streams_registry;
}
Registry<cudaEvent_t>& events() {
  static auto& events_registry = *new Registry<cudaEvent_t>;
  return events_registry;
}

thread_local cudaError_t last_error = cudaSuccess;

}  // namespace

const Settings& settings() {
  static const Settings values{
      .seed = number_in("SOFTWARE_GPU_SEED", 1),
      .devices = static_cast<int>(std::min<std::uint64_t>(number_in("SOFTWARE_GPU_DEVICES", 1), max_devices)),
      .memory = number_in("SOFTWARE_GPU_MEMORY", std::uint64_t{16} << 30U),
      .queue = std::max<std::size_t>(number_in("SOFTWARE_GPU_QUEUE", 1000), 1),
      .multiprocessors = static_cast<int>(std::clamp<std::uint64_t>(
          number_in("SOFTWARE_GPU_MULTIPROCESSORS", max_multiprocessors), 1, max_multiprocessors)),
      .patience_ms = static_cast<int>(number_in("SOFTWARE_GPU_PATIENCE_MS", 1500)),
      .max_work = static_cast<double>(number_in("SOFTWARE_GPU_MOST_WORK", 0)),
      .kernel_ns = static_cast<std::int64_t>(number_in("SOFTWARE_GPU_KERNEL_NS", 0)),
      .flops_per_second =
          static_cast<double>(std::max<std::uint64_t>(number_in("SOFTWARE_GPU_FLOPS", 10'000'000'000'000), 1))};
  return values;
}

std::uint64_t random_number() {
  static std::atomic<std::uint64_t> count = 0;
  std::uint64_t z = (settings().seed + 1) * 0x9e3779b97f4a7c15U + ++count * 0xd1342543de82ef95U;
  z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9U;
  z = (z ^ (z >> 27U)) * 0x94d049bb133111ebU;
  return z ^ (z >> 31U);
}

void dawdle() {
  if (settings().seed == 0) {
    return;
  }
  const std::uint64_t random = random_number();
  if (random % 64 == 0) {
    std::this_thread::sleep_for(std::chrono::microseconds(random / 64 % 300));
  } else if (random % 4 == 0) {
    std::this_thread::yield();
  }
}

namespace {

std::atomic<std::uint64_t>& beats() {
  static std::atomic<std::uint64_t> count = 0;
  return count;
}

}  // namespace

void beat() { beats().fetch_add(1, std::memory_order_relaxed); }

bool computes(double flops) { return settings().max_work == 0.0 || flops <= settings().max_work; }

void take_time(double flops) {
  if (time_is_stated()) {
    return;
  }
  constexpr double seconds_per_flop = 1e-15;
  constexpr double seconds_at_least = 5e-6;
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds_at_least + flops * seconds_per_flop));
}

void keep(const void* handle) {
  static auto& mutex = *new std::mutex;
  static auto& kept = *new std::vector<const void*>;
  const std::lock_guard lock(mutex);
  kept.push_back(handle);
}

cudaError_t reported(cudaError_t status) {
  if (status != cudaSuccess && status != cudaErrorNotReady) {
    last_error = status;
  }
  return status;
}

std::uint64_t Line::take() {
  const std::lock_guard lock(mutex_);
  return next_++;
}

void Line::wait(std::uint64_t place) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return first_ == place; });
  wait_for_stated(stated_);
}

void Line::leave(std::uint64_t place) {
  const std::lock_guard lock(mutex_);
  left_.push_back(place);
  stated_ = std::max(stated_, stated_now());
  for (auto next = std::ranges::find(left_, first_); next != left_.end(); next = std::ranges::find(left_, first_)) {
    left_.erase(next);
    ++first_;
  }
  changed_.notify_all();
}

void Record::complete() {
  const std::lock_guard lock(mutex_);
  done_ = true;
  time_ = device_time();
  changed_.notify_all();
}

void Record::wait() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return done_; });
  if (time_is_stated()) {
    wait_for_stated(time_);
  }
}

bool Record::done() {
  const std::lock_guard lock(mutex_);
  return done_;
}

std::int64_t Record::time() {
  const std::lock_guard lock(mutex_);
  return time_;
}

Device& device(int which) {
  static auto& devices = *new std::array<Device, max_devices>;
  return devices.at(static_cast<std::size_t>(which));
}

void Device::begin_work() {
  const std::lock_guard lock(mutex_);
  ++works_;
}

void Device::end_work(cudaError_t status) {
  if (cudaError_t none = cudaSuccess; status != cudaSuccess) {
    error_.compare_exchange_strong(none, status);
  }
  const std::lock_guard lock(mutex_);
  --works_;
  ++ended_;
  changed_.notify_all();
}

bool Device::wait_until_idle(int patience_ms) {
  std::unique_lock lock(mutex_);
  const auto idle = [this] { return works_ == 0; };
  while (patience_ms >= 0 && !idle()) {
    const std::int64_t ended = ended_;
    const std::uint64_t before = beats();
    const auto has_progress = [&] { return idle() || ended_ != ended || beats() != before; };
    changed_.wait_for(lock, std::chrono::milliseconds(patience_ms), [&] { return idle() || ended_ != ended; });
    if (!has_progress()) {
      return false;
    }
  }
  changed_.wait(lock, idle);
  return true;
}

std::uint32_t new_correlation() {
  static std::atomic<std::uint32_t> count = 0;
  return ++count;
}

std::uint64_t new_node() {
  static std::atomic<std::uint64_t> count = 0;
  return ++count;
}

namespace {

std::mutex& watcher_mutex() {
  static auto& mutex = *new std::mutex;
  return mutex;
}
std::shared_ptr<Watcher>& current_watcher() {
  static auto& watcher_in_use = *new std::shared_ptr<Watcher>;
  return watcher_in_use;
}

}  // namespace

void set_watcher(std::shared_ptr<Watcher> watcher) {
  const std::lock_guard lock(watcher_mutex());
  current_watcher() = std::move(watcher);
}

std::shared_ptr<Watcher> watcher() {
  const std::lock_guard lock(watcher_mutex());
  return current_watcher();
}

cudaError_t run_watched(const Work& work) {
  const std::shared_ptr<Watcher> watching = work.kind == WorkKind::other ? nullptr : watcher();
  const std::int64_t begin_stated = stated_now();
  const std::uint64_t begin = watching == nullptr ? 0 : watching->time();
  const cudaError_t status = work.run();
  end_stated(work, begin_stated);
  if (watching != nullptr && time_is_stated()) {
    watching->ended(work, static_cast<std::uint64_t>(begin_stated), static_cast<std::uint64_t>(stated_now()));
  } else if (watching != nullptr) {
    watching->ended(work, begin, watching->time());
  }
  return status;
}

namespace {

/// Runs the work of a stream on the stream's thread until the stream is destroyed and empty.
void serve(cudaStream_t stream) {
  Device& gpu = device(stream->device);
  for (;;) {
    Work work;
    {
      std::unique_lock lock(stream->mutex);
      stream->changed.wait(lock, [&] { return !stream->queue.empty() || !stream->alive; });
      if (stream->queue.empty()) {
        return;
      }
      work = std::move(stream->queue.front());
      stream->queue.pop_front();
    }
    dawdle();
    wait_for_stated(stream->time);
    // After an error, kernels and copies are skipped. Other work, such as events and waits, still runs, so that nothing
    // waits for it forever.
    const bool runs = gpu.error() == cudaSuccess || work.kind == WorkKind::other;
    const cudaError_t status = runs ? run_watched(work) : cudaSuccess;
    work = {};
    stream->time = stated_now();
    gpu.end_work(status);
    const std::lock_guard lock(stream->mutex);
    --stream->works;
    stream->changed.notify_all();
  }
}

}  // namespace

cudaStream_t new_stream(int device, int priority, CUgreenCtx context) {
  auto* stream = kept(new CUstream_st);
  stream->device = device;
  stream->priority = priority;
  stream->context = context;
  streams().add(stream);
  std::thread(serve, stream).detach();
  return stream;
}

bool is_alive(cudaStream_t stream) { return streams().contains(stream); }
bool is_alive(cudaEvent_t event) { return events().contains(event); }
int device_of(cudaStream_t stream) { return is_alive(stream) ? stream->device : -1; }

void push(cudaStream_t stream, Work work) {
  std::unique_lock lock(stream->mutex);
  stream->changed.wait(lock, [&] { return stream->works < settings().queue; });
  device(stream->device).begin_work();
  ++stream->works;
  stream->queue.push_back(std::move(work));
  stream->changed.notify_all();
}

namespace {

/// Takes a place in the line for work that is being issued, and makes the work wait for that place when it runs.
void order_in_line(Work& work) {
  if (work.line == nullptr) {
    return;
  }
  const std::shared_ptr<Line> line = std::exchange(work.line, nullptr);
  work.run = [line, place = line->take(), run = std::move(work.run)] {
    line->wait(place);
    const cudaError_t status = run();
    line->leave(place);
    return status;
  };
}

}  // namespace

cudaError_t enqueue(cudaStream_t stream, Work work) {
  if (!is_alive(stream)) {
    return cudaErrorInvalidResourceHandle;
  }
  if (const cudaError_t error = device(stream->device).error(); error != cudaSuccess) {
    return error;
  }
  work.correlation = new_correlation();
  const std::shared_ptr<Watcher> watching = watcher();
  if (watching != nullptr) {
    watching->called(work.correlation);
  }
  {
    const std::lock_guard lock(captures_mutex());
    if (Capture* capture = stream->capture.get(); capture != nullptr) {
      if (capture->invalid != cudaSuccess) {
        return cudaErrorStreamCaptureInvalidated;
      }
      work.node = new_node();
      const std::size_t index = capture->nodes.size();
      std::vector<std::size_t> after = stream->last;
      if (work.line != nullptr) {
        const auto last =
            std::ranges::find(capture->last_of_lines, work.line.get(), &std::pair<const Line*, std::size_t>::first);
        if (last == capture->last_of_lines.end()) {
          capture->last_of_lines.emplace_back(work.line.get(), index);
        } else {
          after.push_back(std::exchange(last->second, index));
        }
      }
      if (watching != nullptr) {
        watching->node_created(work.node);
      }
      capture->nodes.push_back({.work = std::move(work), .after = std::move(after), .chain = stream->chain});
      stream->last = {index};
      return cudaSuccess;
    }
  }
  order_in_line(work);
  push(stream, std::move(work));
  return cudaSuccess;
}

}  // namespace software_gpu

using namespace software_gpu;  // NOLINT(google-build-using-namespace): this file defines its C interface

extern "C" {

cudaError_t cudaGetLastError() { return std::exchange(last_error, cudaSuccess); }

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags, int priority) {
  int least = 0;
  int greatest = 0;
  static_cast<void>(cudaDeviceGetStreamPriorityRange(&least, &greatest));
  if (flags != cudaStreamNonBlocking || priority > least || priority < greatest) {
    return reported(cudaErrorInvalidValue);
  }
  *stream = new_stream(current_device(), priority, nullptr);
  return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  if (!streams().remove(stream)) {
    return reported(cudaErrorInvalidResourceHandle);
  }
  const std::lock_guard lock(stream->mutex);
  stream->alive = false;
  stream->changed.notify_all();
  return cudaSuccess;
}

cudaError_t cudaStreamQuery(cudaStream_t stream) {
  if (!is_alive(stream)) {
    return reported(cudaErrorInvalidResourceHandle);
  }
  if (is_captured(stream)) {
    return reported(cudaErrorStreamCaptureUnsupported);
  }
  if (const cudaError_t error = device(stream->device).error(); error != cudaSuccess) {
    return reported(error);
  }
  constexpr std::chrono::milliseconds pause{1};  // callers poll, and streams need the processor
  std::unique_lock lock(stream->mutex);
  const bool idle = stream->changed.wait_for(lock, pause, [&] { return stream->works == 0; });
  return idle ? cudaSuccess : cudaErrorNotReady;
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  if (stream == nullptr) {  // the default stream never gets work
    return reported(forbidden_by_capture() ? cudaErrorStreamCaptureUnsupported : cudaSuccess);
  }
  if (!is_alive(stream)) {
    return reported(cudaErrorInvalidResourceHandle);
  }
  if (is_captured(stream)) {
    return reported(cudaErrorStreamCaptureUnsupported);
  }
  std::unique_lock lock(stream->mutex);
  stream->changed.wait(lock, [&] { return stream->works == 0; });
  return reported(device(stream->device).error());
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  if ((flags & ~cudaEventDisableTiming) != 0) {
    return reported(cudaErrorInvalidValue);
  }
  *event = kept(new CUevent_st);
  (*event)->device = current_device();
  (*event)->timed = (flags & cudaEventDisableTiming) == 0;
  events().add(*event);
  return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  return reported(events().remove(event) ? cudaSuccess : cudaErrorInvalidResourceHandle);
}

cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t from, cudaEvent_t to) {
  if (!is_alive(from) || !is_alive(to) || !from->timed || !to->timed || from->device != to->device) {
    return reported(cudaErrorInvalidResourceHandle);
  }
  std::array<std::shared_ptr<Record>, 2> records;
  for (std::size_t i = 0; i < 2; ++i) {
    cudaEvent_t event = i == 0 ? from : to;
    const std::lock_guard lock(event->mutex);
    if (event->capture != nullptr) {
      return reported(cudaErrorCapturedEvent);
    }
    records[i] = event->record;
  }
  if (records[0] == nullptr || records[1] == nullptr) {
    return reported(cudaErrorInvalidResourceHandle);
  }
  if (!records[0]->done() || !records[1]->done()) {
    return cudaErrorNotReady;
  }
  const std::int64_t resolution_ns = time_is_stated() ? 1 : 512;
  const std::int64_t time = (records[1]->time() - records[0]->time()) / resolution_ns * resolution_ns;
  *milliseconds = static_cast<float>(static_cast<double>(time) * 1e-6);
  return cudaSuccess;
}

}  // extern "C"
