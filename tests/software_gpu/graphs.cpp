// SPDX-License-Identifier: Apache-2.0
// Events, captures and graphs, by CUDA's rules: a stream joins a capture by waiting for one of its events, and the
// stream that began the capture must wait for all captured work before the capture ends. Captured work orders nothing
// outside the graph, except by external records of events.
#include <algorithm>
#include <map>
#include <utility>

#include "tests/software_gpu/handles.h"
#include "tests/software_gpu/misuse.h"

namespace software_gpu {

namespace {

std::vector<std::shared_ptr<Capture>>& captures() {
  static auto& live_captures = *new std::vector<std::shared_ptr<Capture>>;
  return live_captures;
}

void merge(std::vector<std::size_t>& into, const std::vector<std::size_t>& more) {
  for (const std::size_t added : more) {
    if (std::ranges::find(into, added) == into.end()) {
      into.push_back(added);
    }
  }
}

cudaError_t invalidate(Capture& capture, cudaError_t why) {
  capture.invalid = why;
  return why;
}

/// Returns for each node whether it is in `last` or a node in `last` waits for it, directly or indirectly.
std::vector<bool> ancestors_of(const std::vector<Node>& nodes, const std::vector<std::size_t>& last) {
  std::vector<bool> reached(nodes.size());
  std::vector<std::size_t> next = last;
  while (!next.empty()) {
    const std::size_t node = next.back();
    next.pop_back();
    if (!reached[node]) {
      reached[node] = true;
      next.insert(next.end(), nodes[node].after.begin(), nodes[node].after.end());
    }
  }
  return reached;
}

}  // namespace

std::mutex& captures_mutex() {
  static auto& mutex = *new std::mutex;
  return mutex;
}

bool is_captured(cudaStream_t stream) {
  const std::lock_guard lock(captures_mutex());
  return stream->capture != nullptr;
}

bool forbidden_by_capture() {
  const std::lock_guard lock(captures_mutex());
  bool forbidden = false;
  for (const std::shared_ptr<Capture>& capture : captures()) {
    if (!capture->only_its_thread || capture->thread == std::this_thread::get_id()) {
      capture->invalid = cudaErrorStreamCaptureInvalidated;
      forbidden = true;
    }
  }
  return forbidden;
}

namespace {

/// One launch of a graph, with a thread for every stream from which it was captured, so that nodes that wait for the
/// host or for a time do not delay other nodes.
class Launch {
 public:
  Launch(std::shared_ptr<const std::vector<Node>> nodes, std::map<std::size_t, std::shared_ptr<Record>> records,
         std::map<Line*, std::uint64_t> places)
      : nodes_(std::move(nodes)),
        records_(std::move(records)),
        places_(std::move(places)),
        done_(nodes_->size()),
        ended_(nodes_->size()) {}

  cudaError_t run() {
    std::set<std::size_t> chains;
    for (const Node& node : *nodes_) {
      chains.insert(node.chain);
    }
    for (const auto& [line, place] : places_) {
      line->wait(place);
    }
    begun_ = stated_now();
    std::vector<std::thread> threads;
    for (const std::size_t chain : chains) {
      threads.emplace_back([this, chain] { run(chain); });
    }
    for (std::thread& thread : threads) {
      thread.join();
    }
    std::ranges::for_each(ended_, wait_for_stated);
    for (const auto& [line, place] : places_) {
      line->leave(place);
    }
    return status_;
  }

 private:
  void run(std::size_t chain) {
    stated_now() = begun_;
    for (std::size_t i = 0; i < nodes_->size(); ++i) {
      const Node& node = (*nodes_)[i];
      if (node.chain != chain) {
        continue;
      }
      cudaError_t before = cudaSuccess;
      {
        std::unique_lock lock(mutex_);
        changed_.wait(
            lock, [&] { return std::ranges::all_of(node.after, [&](std::size_t earlier) { return done_[earlier]; }); });
        before = status_;
        for (const std::size_t earlier : node.after) {
          wait_for_stated(ended_[earlier]);
        }
      }
      dawdle();
      cudaError_t status = before;
      if (const auto record = records_.find(i); record != records_.end()) {
        record->second->complete();
      } else if (before == cudaSuccess) {
        status = run_watched(node.work);
      }
      const std::lock_guard lock(mutex_);
      if (status_ == cudaSuccess) {  // An error of another chain, which ended meanwhile, stays.
        status_ = status;
      }
      done_[i] = true;
      ended_[i] = stated_now();
      changed_.notify_all();
    }
  }

  std::shared_ptr<const std::vector<Node>> nodes_;
  std::map<std::size_t, std::shared_ptr<Record>> records_;
  std::map<Line*, std::uint64_t> places_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<bool> done_;
  std::int64_t begun_ = 0;           // start by the stated clock
  std::vector<std::int64_t> ended_;  // end of each node
  cudaError_t status_ = cudaSuccess;
};

cudaError_t record(cudaEvent_t event, cudaStream_t stream, bool external) {
  if (!is_alive(stream) || !is_alive(event) || event->device != stream->device) {
    return cudaErrorInvalidResourceHandle;
  }
  {
    const std::lock_guard lock(captures_mutex());
    if (stream->capture != nullptr && !external) {
      if (stream->capture->invalid != cudaSuccess) {
        return cudaErrorStreamCaptureInvalidated;
      }
      const std::lock_guard inside(event->mutex);
      event->capture = stream->capture;
      event->nodes = stream->last;
      event->record = nullptr;
      return cudaSuccess;
    }
  }
  if (is_captured(stream)) {
    return enqueue(stream, {.name = "an event", .run = [] { return cudaSuccess; }, .records = event});
  }
  if (external) {
    return cudaErrorInvalidValue;  // not inside a capture
  }
  auto record = std::make_shared<Record>();
  {
    const std::lock_guard lock(event->mutex);
    event->record = record;
    event->capture = nullptr;
  }
  const cudaError_t status = enqueue(stream, {.name = "an event", .run = [record] {
                                                record->complete();
                                                return cudaSuccess;
                                              }});
  return status;
}

/// Makes `stream` wait for an event that was captured. The caller must hold captures_mutex().
cudaError_t join(cudaStream_t stream, const std::shared_ptr<Capture>& capture, const std::vector<std::size_t>& nodes) {
  if (!capture->is_running) {
    return cudaErrorCapturedEvent;
  }
  if (stream->capture != nullptr && stream->capture != capture) {
    return invalidate(*capture, invalidate(*stream->capture, cudaErrorStreamCaptureMerge));
  }
  if (stream->capture == nullptr) {
    stream->capture = capture;
    stream->last.clear();
    stream->chain = capture->streams.size();
    capture->streams.push_back(stream);
  }
  merge(stream->last, nodes);
  return cudaSuccess;
}

}  // namespace

}  // namespace software_gpu

using namespace software_gpu;  // NOLINT(google-build-using-namespace): this file defines its C interface

extern "C" {

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) { return reported(record(event, stream, false)); }

cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned flags) {
  return reported(flags > cudaEventRecordExternal ? cudaErrorInvalidValue : record(event, stream, flags != 0));
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags) {
  if (!is_alive(stream) || !is_alive(event)) {
    return reported(cudaErrorInvalidResourceHandle);
  }
  if (flags != 0) {
    return reported(cudaErrorInvalidValue);
  }
  std::shared_ptr<Record> last;
  {
    const std::lock_guard lock(captures_mutex());
    const std::lock_guard inside(event->mutex);
    if (event->capture != nullptr) {
      return reported(join(stream, event->capture, event->nodes));
    }
    if (event->record == nullptr) {
      return cudaSuccess;  // the event was never recorded
    }
    if (stream->capture != nullptr) {
      return reported(invalidate(*stream->capture, cudaErrorStreamCaptureIsolation));
    }
    last = event->record;
  }
  return reported(enqueue(stream, {.name = "a wait", .run = [last] {
                                     last->wait();
                                     return cudaSuccess;
                                   }}));
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode) {
  if (!is_alive(stream)) {
    return reported(cudaErrorInvalidResourceHandle);
  }
  const std::lock_guard lock(captures_mutex());
  if (stream->capture != nullptr) {
    return reported(cudaErrorIllegalState);
  }
  auto capture = std::make_shared<Capture>();
  capture->origin = stream;
  capture->thread = std::this_thread::get_id();
  capture->only_its_thread = mode == cudaStreamCaptureModeThreadLocal;
  capture->streams = {stream};
  if (mode != cudaStreamCaptureModeRelaxed) {
    captures().push_back(capture);
  }
  stream->capture = capture;
  stream->chain = 0;
  stream->last.clear();
  return cudaSuccess;
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  *graph = nullptr;
  if (!is_alive(stream)) {
    return reported(cudaErrorInvalidResourceHandle);
  }
  const std::lock_guard lock(captures_mutex());
  const std::shared_ptr<Capture> capture = stream->capture;
  if (capture == nullptr) {
    return reported(cudaErrorIllegalState);
  }
  if (capture->thread != std::this_thread::get_id()) {
    return reported(cudaErrorStreamCaptureWrongThread);
  }
  if (capture->origin != stream) {
    return reported(invalidate(*capture, cudaErrorStreamCaptureUnmatched));
  }
  const std::vector<bool> joined = ancestors_of(capture->nodes, stream->last);
  const bool complete = std::ranges::all_of(joined, [](bool reached) { return reached; });
  for (cudaStream_t captured : capture->streams) {
    captured->capture = nullptr;
    captured->last.clear();
  }
  capture->is_running = false;
  std::erase(captures(), capture);
  if (capture->invalid != cudaSuccess) {
    return reported(cudaErrorStreamCaptureInvalidated);
  }
  if (!complete) {
    return reported(cudaErrorStreamCaptureUnjoined);
  }
  *graph = kept(new CUgraph_st{.nodes = std::move(capture->nodes)});
  return cudaSuccess;
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t graph, unsigned long long flags) {
  if (graph == nullptr || !graph->alive || flags != 0) {
    return reported(cudaErrorInvalidValue);
  }
  std::vector<Node> nodes = graph->nodes;
  const std::shared_ptr<Watcher> watching = watcher();
  for (Node& node : nodes) {
    const std::uint64_t original = std::exchange(node.work.node, new_node());
    if (watching != nullptr) {
      watching->node_cloned(node.work.node, original);
    }
  }
  *executable = kept(new CUgraphExec_st{.device = current_device(),
                                        .nodes = std::make_shared<const std::vector<Node>>(std::move(nodes)),
                                        .launches = std::make_shared<Line>()});
  return cudaSuccess;
}

cudaError_t cudaGraphUpload(cudaGraphExec_t graph, cudaStream_t stream) {
  if (graph == nullptr || !graph->alive) {
    return reported(cudaErrorInvalidValue);
  }
  return reported(enqueue(stream, {.name = "an upload", .run = [] { return cudaSuccess; }}));
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t graph, cudaStream_t stream) {
  if (graph == nullptr || !graph->alive) {
    return reported(cudaErrorInvalidValue);
  }
  if (!is_alive(stream) || is_captured(stream)) {
    return reported(is_alive(stream) ? cudaErrorStreamCaptureUnsupported : cudaErrorInvalidResourceHandle);
  }
  std::map<std::size_t, std::shared_ptr<Record>> records;
  std::map<Line*, std::uint64_t> places;
  for (std::size_t i = 0; i < graph->nodes->size(); ++i) {
    const Work& work = (*graph->nodes)[i].work;
    if (work.records != nullptr) {
      records[i] = std::make_shared<Record>();
      const std::lock_guard lock(work.records->mutex);
      work.records->record = records[i];
      work.records->capture = nullptr;
    }
    if (work.line != nullptr && !places.contains(work.line.get())) {
      places[work.line.get()] = work.line->take();
    }
  }
  auto launch = std::make_shared<Launch>(graph->nodes, std::move(records), std::move(places));
  return reported(
      enqueue(stream, {.name = "a graph", .run = [launch] { return launch->run(); }, .line = graph->launches}));
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  if (graph == nullptr || !std::exchange(graph->alive, false)) {
    return reported(cudaErrorInvalidValue);
  }
  graph->nodes.clear();
  return cudaSuccess;
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t graph) {
  if (graph == nullptr || !std::exchange(graph->alive, false)) {
    return reported(cudaErrorInvalidValue);
  }
  graph->nodes = nullptr;  // running launches keep their own
  return cudaSuccess;
}

}  // extern "C"
