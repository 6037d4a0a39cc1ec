// SPDX-License-Identifier: Apache-2.0
#include "validate/cuda/module/tracer.h"

#include <stdexcept>
#include <string>

#ifdef COMMFUSE_WITH_CUPTI
#include <algorithm>
#include <array>
#include <ctime>
#include <map>
#include <mutex>
#include <utility>

#include "validate/cuda/module/cupti_library.h"
#endif

namespace commfuse::validate {

#ifdef COMMFUSE_WITH_CUPTI

namespace {

// Records grow with every version of CUPTI; a record has the layout of the library that writes it.
#if CUPTI_API_VERSION >= 130000
using KernelRecord = CUpti_ActivityKernel10;
using CopyRecord = CUpti_ActivityMemcpy6;
#else
using KernelRecord = CUpti_ActivityKernel9;
using CopyRecord = CUpti_ActivityMemcpy5;
#endif
using PeerCopyRecord = CUpti_ActivityMemcpyPtoP4;

const CuptiLibrary& cupti() { return CuptiLibrary::instance(); }

void require_cupti(CUptiResult status, const char* call) {
  if (status == CUPTI_SUCCESS) {
    return;
  }
  if (status == CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED) {
    throw std::runtime_error("another profiler already traces this process; run without that profiler");
  }
  const char* text = nullptr;
  static_cast<void>(cupti().get_result_string(status, &text));
  throw std::runtime_error(std::string(call) + " failed: " + (text == nullptr ? "unknown" : text));
}

/// Returns nanoseconds of a clock that no daemon adjusts, and that all ranks of a machine share.
std::uint64_t CUPTIAPI host_time() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC_RAW, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000U + static_cast<std::uint64_t>(now.tv_nsec);
}

constexpr std::array kinds{
    CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION, CUPTI_ACTIVITY_KIND_RUNTIME, CUPTI_ACTIVITY_KIND_DRIVER,
    CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,    CUPTI_ACTIVITY_KIND_MEMCPY,  CUPTI_ACTIVITY_KIND_MEMCPY2};
constexpr CUpti_ExternalCorrelationKind label_kind = CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0;
constexpr std::size_t buffer_bytes = std::size_t{8} << 20U;

const char* name_of_copy(std::uint8_t kind) {
  switch (kind) {
    case CUPTI_ACTIVITY_MEMCPY_KIND_HTOD: return "copy host to device";
    case CUPTI_ACTIVITY_MEMCPY_KIND_DTOH: return "copy device to host";
    case CUPTI_ACTIVITY_MEMCPY_KIND_DTOD: return "copy on the device";
    default: return "copy";
  }
}

/// A span, and the keys of its label, which is looked up once all records have arrived.
struct TracedSpan {
  DeviceSpan span;
  std::uint32_t correlation = 0;
  std::uint64_t node = 0;  // node of a graph; 0: none
};

class CuptiTracer final : public Tracer {
 public:
  CuptiTracer();
  CuptiTracer(const CuptiTracer&) = delete;
  CuptiTracer& operator=(const CuptiTracer&) = delete;
  ~CuptiTracer() override;

  void label(std::uint64_t id) override {
    pop();
    label_ = id;
    require_cupti(cupti().activity_push_external_correlation_id(label_kind, id),
                  "cuptiActivityPushExternalCorrelationId");
    pushed_ = true;
  }

  [[nodiscard]] std::vector<DeviceSpan> spans() override;

  void take(std::uint8_t* buffer, std::size_t bytes);
  void take_node(CUpti_CallbackIdResource what, const CUpti_GraphData& data);

 private:
  void pop() {
    if (pushed_) {
      std::uint64_t last = 0;
      static_cast<void>(cupti().activity_pop_external_correlation_id(label_kind, &last));
      pushed_ = false;
    }
  }
  void take(const CUpti_Activity& record);
  [[nodiscard]] std::uint64_t label_of(const TracedSpan& traced) const;
  void end();

  std::mutex mutex_;  // CUPTI delivers records from its own thread
  std::vector<TracedSpan> traced_;
  std::map<std::uint32_t, std::uint64_t> labels_;       // by correlation
  std::map<std::uint64_t, std::uint64_t> node_labels_;  // by node of a graph
  std::uint64_t label_ = 0;
  bool pushed_ = false;
  CUpti_SubscriberHandle subscriber_ = nullptr;
};

// CUPTI's buffer callbacks have no argument for the tracer, and a process has only one CUPTI.
CuptiTracer* current = nullptr;

void CUPTIAPI give_buffer(std::uint8_t** buffer, std::size_t* bytes, std::size_t* max_records) {
  *buffer = new std::uint8_t[buffer_bytes];
  *bytes = buffer_bytes;
  *max_records = 0;
}

void CUPTIAPI take_buffer(CUcontext, std::uint32_t, std::uint8_t* buffer, std::size_t, std::size_t valid_bytes) {
  const std::unique_ptr<std::uint8_t[]> owned(buffer);  // NOLINT(*-avoid-c-arrays): allocated as an array
  if (current != nullptr && valid_bytes > 0) {
    current->take(buffer, valid_bytes);
  }
}

void CUPTIAPI take_callback(void* tracer, CUpti_CallbackDomain domain, CUpti_CallbackId id, const void* data) {
  if (domain != CUPTI_CB_DOMAIN_RESOURCE) {
    return;
  }
  const auto* resource = static_cast<const CUpti_ResourceData*>(data);
  static_cast<CuptiTracer*>(tracer)->take_node(static_cast<CUpti_CallbackIdResource>(id),
                                               *static_cast<const CUpti_GraphData*>(resource->resourceDescriptor));
}

CuptiTracer::CuptiTracer() {
  if (current != nullptr) {
    throw std::runtime_error("a trace is already in progress");
  }
  require_cupti(cupti().subscribe(&subscriber_, take_callback, this), "cuptiSubscribe");
  current = this;
  try {
    for (const CUpti_CallbackId id : {CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED, CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED}) {
      require_cupti(cupti().enable_callback(1, subscriber_, CUPTI_CB_DOMAIN_RESOURCE, id), "cuptiEnableCallback");
    }
    require_cupti(cupti().activity_register_timestamp_callback(host_time), "cuptiActivityRegisterTimestampCallback");
    require_cupti(cupti().activity_register_callbacks(give_buffer, take_buffer), "cuptiActivityRegisterCallbacks");
    for (const CUpti_ActivityKind kind : kinds) {
      require_cupti(cupti().activity_enable(kind), "cuptiActivityEnable");
    }
  } catch (...) {
    end();
    throw;
  }
}

CuptiTracer::~CuptiTracer() { end(); }

void CuptiTracer::end() {
  pop();
  for (const CUpti_ActivityKind kind : kinds) {
    static_cast<void>(cupti().activity_disable(kind));
  }
  static_cast<void>(cupti().activity_flush_all(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED));
  static_cast<void>(cupti().unsubscribe(subscriber_));
  current = nullptr;
}

void CuptiTracer::take_node(CUpti_CallbackIdResource what, const CUpti_GraphData& data) {
  std::uint64_t node = 0;
  if (cupti().get_graph_node_id(data.node, &node) != CUPTI_SUCCESS) {
    return;
  }
  const std::lock_guard lock(mutex_);
  if (what == CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED) {
    node_labels_[node] = label_;
    return;
  }
  std::uint64_t original = 0;
  if (cupti().get_graph_node_id(data.originalNode, &original) == CUPTI_SUCCESS && node_labels_.contains(original)) {
    node_labels_[node] = node_labels_[original];
  }
}

void CuptiTracer::take(std::uint8_t* buffer, std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  CUpti_Activity* record = nullptr;
  while (cupti().activity_get_next_record(buffer, bytes, &record) == CUPTI_SUCCESS) {
    take(*record);
  }
}

// NOLINTBEGIN(*-reinterpret-cast): the kind states the type of the record
void CuptiTracer::take(const CUpti_Activity& record) {
  if (record.kind == CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION) {
    const auto& link = reinterpret_cast<const CUpti_ActivityExternalCorrelation&>(record);
    if (link.externalKind == label_kind) {
      labels_[link.correlationId] = link.externalId;
    }
  } else if (record.kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) {
    const auto& kernel = reinterpret_cast<const KernelRecord&>(record);
    traced_.push_back({.span = {.begin = static_cast<std::int64_t>(kernel.start),
                                .end = static_cast<std::int64_t>(kernel.end),
                                .name = kernel.name == nullptr ? "" : kernel.name,
                                .ctas = kernel.gridX * kernel.gridY * kernel.gridZ},
                       .correlation = kernel.correlationId,
                       .node = kernel.graphNodeId});
  } else if (record.kind == CUPTI_ACTIVITY_KIND_MEMCPY) {
    const auto& copy = reinterpret_cast<const CopyRecord&>(record);
    traced_.push_back({.span = {.begin = static_cast<std::int64_t>(copy.start),
                                .end = static_cast<std::int64_t>(copy.end),
                                .name = name_of_copy(copy.copyKind),
                                .by_copy_engine = copy.channelType == CUPTI_CHANNEL_TYPE_ASYNC_MEMCPY},
                       .correlation = copy.correlationId,
                       .node = copy.graphNodeId});
  } else if (record.kind == CUPTI_ACTIVITY_KIND_MEMCPY2) {  // CUPTI does not report these copies as MEMCPY
    const auto& copy = reinterpret_cast<const PeerCopyRecord&>(record);
    traced_.push_back({.span = {.begin = static_cast<std::int64_t>(copy.start),
                                .end = static_cast<std::int64_t>(copy.end),
                                .name = "copy between GPUs",
                                .by_copy_engine = copy.channelType == CUPTI_CHANNEL_TYPE_ASYNC_MEMCPY},
                       .correlation = copy.correlationId,
                       .node = copy.graphNodeId});
  }
}
// NOLINTEND(*-reinterpret-cast)

std::uint64_t CuptiTracer::label_of(const TracedSpan& traced) const {
  if (const auto node = node_labels_.find(traced.node); traced.node != 0 && node != node_labels_.end()) {
    return node->second;
  }
  const auto label = labels_.find(traced.correlation);
  return label == labels_.end() ? 0 : label->second;
}

std::vector<DeviceSpan> CuptiTracer::spans() {
  pop();
  require_cupti(cupti().activity_flush_all(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED), "cuptiActivityFlushAll");
  const std::lock_guard lock(mutex_);
  std::vector<DeviceSpan> spans;
  for (TracedSpan& traced : traced_) {
    traced.span.label = label_of(traced);
    spans.push_back(std::move(traced.span));
  }
  traced_.clear();
  std::ranges::sort(spans, {}, &DeviceSpan::begin);
  return spans;
}

}  // namespace

std::unique_ptr<Tracer> make_tracer() { return std::make_unique<CuptiTracer>(); }

#else

std::unique_ptr<Tracer> make_tracer() {
  throw std::runtime_error(
      "this build has no CUPTI, which traces need; install the CUDA Toolkit with CUPTI, and build again");
}

#endif

}  // namespace commfuse::validate
