// SPDX-License-Identifier: Apache-2.0
// The double of CUPTI: libcupti.so.13. Records of kernels and copies arrive in any order, from threads of the device,
// in buffers that another thread delivers; a second subscriber is refused.
#include <cupti.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <set>
#include <thread>
#include <vector>

#include "tests/software_gpu/gpu.h"
#include "tests/software_gpu/misuse.h"

struct CUpti_Subscriber_st {
  CUpti_CallbackFunc callback = nullptr;
  void* userdata = nullptr;
  std::set<CUpti_CallbackId> ids;
};

namespace {

/// Bytes of a record.
using RecordBytes = std::vector<std::uint8_t>;

template <class Record>
RecordBytes bytes_of(const Record& record) {
  RecordBytes bytes(sizeof record);
  std::memcpy(bytes.data(), &record, sizeof record);
  return bytes;
}

std::size_t size_of(CUpti_ActivityKind kind) {
  switch (kind) {
    case CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION: return sizeof(CUpti_ActivityExternalCorrelation);
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL: return sizeof(CUpti_ActivityKernel10);
    case CUPTI_ACTIVITY_KIND_MEMCPY: return sizeof(CUpti_ActivityMemcpy6);
    case CUPTI_ACTIVITY_KIND_MEMCPY2: return sizeof(CUpti_ActivityMemcpyPtoP4);
    default: return 0;
  }
}

thread_local std::vector<std::uint64_t> external_ids;

/// State of CUPTI in a process.
class Tracing final : public software_gpu::Watcher {
 public:
  std::uint64_t time() override { return time_ == nullptr ? 0 : time_(); }

  void called(std::uint32_t correlation) override {
    if (!external_ids.empty()) {
      add(CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION,
          bytes_of(CUpti_ActivityExternalCorrelation{.kind = CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION,
                                                     .externalKind = CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0,
                                                     .externalId = external_ids.back(),
                                                     .correlationId = correlation,
                                                     .reserved = 0}));
    }
  }

  void ended(const software_gpu::Work& work, std::uint64_t begin, std::uint64_t end) override {
    if (work.kind == software_gpu::WorkKind::kernel) {
      add(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,
          bytes_of(CUpti_ActivityKernel10{.kind = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,
                                          .correlationId = work.correlation,
                                          .start = begin,
                                          .end = end,
                                          .gridX = static_cast<std::int32_t>(work.ctas),
                                          .gridY = 1,
                                          .gridZ = 1,
                                          .name = kept(work.name),
                                          .graphNodeId = work.node}));
      return;
    }
    if (work.between_gpus) {
      add(CUPTI_ACTIVITY_KIND_MEMCPY2,
          bytes_of(CUpti_ActivityMemcpyPtoP4{.kind = CUPTI_ACTIVITY_KIND_MEMCPY2,
                                             .copyKind = CUPTI_ACTIVITY_MEMCPY_KIND_PTOP,
                                             .start = begin,
                                             .end = end,
                                             .correlationId = work.correlation,
                                             .graphNodeId = work.node,
                                             .channelType = CUPTI_CHANNEL_TYPE_ASYNC_MEMCPY}));
      return;
    }
    const bool on_device = work.direction == cudaMemcpyDeviceToDevice;
    add(CUPTI_ACTIVITY_KIND_MEMCPY,
        bytes_of(CUpti_ActivityMemcpy6{
            .kind = CUPTI_ACTIVITY_KIND_MEMCPY,
            .copyKind =
                static_cast<std::uint8_t>(on_device                                  ? CUPTI_ACTIVITY_MEMCPY_KIND_DTOD
                                          : work.direction == cudaMemcpyHostToDevice ? CUPTI_ACTIVITY_MEMCPY_KIND_HTOD
                                                                                     : CUPTI_ACTIVITY_MEMCPY_KIND_DTOH),
            .correlationId = work.correlation,
            .start = begin,
            .end = end,
            .graphNodeId = work.node,
            // Copies inside a device are kernels, whichever call requests them.
            .channelType = on_device ? CUPTI_CHANNEL_TYPE_COMPUTE : CUPTI_CHANNEL_TYPE_ASYNC_MEMCPY}));
  }

  void node_created(std::uint64_t node) override { notify(CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED, node, 0); }
  void node_cloned(std::uint64_t node, std::uint64_t original) override {
    notify(CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED, node, original);
  }

  CUptiResult subscribe(CUpti_SubscriberHandle* subscriber, CUpti_CallbackFunc callback, void* userdata) {
    const std::lock_guard lock(mutex_);
    if (subscriber_ != nullptr) {
      return CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
    }
    subscriber_ = std::make_unique<CUpti_Subscriber_st>(
        CUpti_Subscriber_st{.callback = callback, .userdata = userdata, .ids = {}});
    *subscriber = subscriber_.get();
    return CUPTI_SUCCESS;
  }
  CUptiResult unsubscribe(CUpti_SubscriberHandle subscriber) {
    const std::lock_guard lock(mutex_);
    if (subscriber == nullptr || subscriber != subscriber_.get()) {
      return CUPTI_ERROR_INVALID_PARAMETER;
    }
    subscriber_ = nullptr;
    return CUPTI_SUCCESS;
  }
  CUptiResult enable_callback(CUpti_SubscriberHandle subscriber, CUpti_CallbackId id, bool enable) {
    const std::lock_guard lock(mutex_);
    if (subscriber == nullptr || subscriber != subscriber_.get()) {
      return CUPTI_ERROR_INVALID_PARAMETER;
    }
    enable ? static_cast<void>(subscriber_->ids.insert(id)) : static_cast<void>(subscriber_->ids.erase(id));
    return CUPTI_SUCCESS;
  }

  CUptiResult enable(CUpti_ActivityKind kind, bool enable) {
    const std::lock_guard lock(mutex_);
    enable ? static_cast<void>(kinds_.insert(kind)) : static_cast<void>(kinds_.erase(kind));
    return request_ == nullptr ? CUPTI_ERROR_INVALID_OPERATION : CUPTI_SUCCESS;
  }
  void set_buffers(CUpti_BuffersCallbackRequestFunc request, CUpti_BuffersCallbackCompleteFunc complete) {
    const std::lock_guard lock(mutex_);
    request_ = request;
    complete_ = complete;
  }
  void set_time(CUpti_TimestampCallbackFunc function) { time_ = function; }

  /// Delivers all records, shuffled, from another thread.
  void flush() {
    std::vector<RecordBytes> records;
    {
      const std::lock_guard lock(mutex_);
      records.swap(records_);
    }
    for (std::size_t i = records.size(); i > 1; --i) {
      std::swap(records[i - 1], records[software_gpu::random_number() % i]);
    }
    if (!records.empty()) {
      std::thread([&] { deliver(records); }).join();
    }
  }

 private:
  void add(CUpti_ActivityKind kind, RecordBytes bytes) {
    const std::lock_guard lock(mutex_);
    if (kinds_.contains(kind)) {
      records_.push_back(std::move(bytes));
    }
  }

  void deliver(const std::vector<RecordBytes>& records) {
    std::uint8_t* buffer = nullptr;
    std::size_t bytes = 0;
    std::size_t used = 0;
    for (const RecordBytes& record : records) {
      if (buffer != nullptr && used + record.size() > bytes) {
        complete_(nullptr, 0, buffer, bytes, used);
        buffer = nullptr;
      }
      if (buffer == nullptr) {
        std::size_t max_records = 0;
        request_(&buffer, &bytes, &max_records);
        used = 0;
        software_gpu::check(bytes >= record.size(), "CUPTI is given a buffer that holds no record");
      }
      std::memcpy(buffer + used, record.data(), record.size());
      used += record.size();
    }
    complete_(nullptr, 0, buffer, bytes, used);
  }

  void notify(CUpti_CallbackId id, std::uint64_t node, std::uint64_t original) {
    CUpti_CallbackFunc callback = nullptr;
    void* userdata = nullptr;
    {
      const std::lock_guard lock(mutex_);
      if (subscriber_ == nullptr || !subscriber_->ids.contains(id)) {
        return;
      }
      callback = subscriber_->callback;
      userdata = subscriber_->userdata;
    }
    CUpti_GraphData data{};
    data.node = reinterpret_cast<CUgraphNode>(node);              // NOLINT(*-no-int-to-ptr): a handle
    data.originalNode = reinterpret_cast<CUgraphNode>(original);  // NOLINT(*-no-int-to-ptr): a handle
    CUpti_ResourceData resource{};
    resource.resourceDescriptor = &data;
    callback(userdata, CUPTI_CB_DOMAIN_RESOURCE, id, &resource);
  }

  /// Returns a copy of the name that outlives the records.
  const char* kept(const std::string& name) {
    const std::lock_guard lock(mutex_);
    return names_.insert(name).first->c_str();
  }

  std::mutex mutex_;
  std::unique_ptr<CUpti_Subscriber_st> subscriber_;
  std::set<CUpti_ActivityKind> kinds_;
  std::set<std::string> names_;
  std::vector<RecordBytes> records_;
  CUpti_BuffersCallbackRequestFunc request_ = nullptr;
  CUpti_BuffersCallbackCompleteFunc complete_ = nullptr;
  CUpti_TimestampCallbackFunc time_ = nullptr;
};

Tracing& tracing() {
  static const std::shared_ptr<Tracing>& process_tracing = *new std::shared_ptr<Tracing>(std::make_shared<Tracing>());
  return *process_tracing;
}
std::shared_ptr<Tracing> tracing_as_watcher() {
  return {std::shared_ptr<Tracing>(), &tracing()};  // the state lives as long as the process
}

}  // namespace

extern "C" {

CUptiResult cuptiSubscribe(CUpti_SubscriberHandle* subscriber, CUpti_CallbackFunc callback, void* userdata) {
  const CUptiResult status = tracing().subscribe(subscriber, callback, userdata);
  if (status == CUPTI_SUCCESS) {
    software_gpu::set_watcher(tracing_as_watcher());
  }
  return status;
}

CUptiResult cuptiUnsubscribe(CUpti_SubscriberHandle subscriber) {
  const CUptiResult status = tracing().unsubscribe(subscriber);
  if (status == CUPTI_SUCCESS) {
    software_gpu::set_watcher(nullptr);
  }
  return status;
}

CUptiResult cuptiEnableCallback(std::uint32_t enable, CUpti_SubscriberHandle subscriber, CUpti_CallbackDomain domain,
                                CUpti_CallbackId id) {
  return domain == CUPTI_CB_DOMAIN_RESOURCE ? tracing().enable_callback(subscriber, id, enable != 0)
                                            : CUPTI_ERROR_INVALID_PARAMETER;
}

CUptiResult cuptiGetGraphNodeId(CUgraphNode node, std::uint64_t* id) {
  *id = reinterpret_cast<std::uint64_t>(node);
  return node == nullptr ? CUPTI_ERROR_INVALID_PARAMETER : CUPTI_SUCCESS;
}

CUptiResult cuptiGetResultString(CUptiResult result, const char** text) {
  switch (result) {
    case CUPTI_SUCCESS: *text = "CUPTI_SUCCESS"; break;
    case CUPTI_ERROR_INVALID_PARAMETER: *text = "CUPTI_ERROR_INVALID_PARAMETER"; break;
    case CUPTI_ERROR_INVALID_OPERATION: *text = "CUPTI_ERROR_INVALID_OPERATION"; break;
    case CUPTI_ERROR_MAX_LIMIT_REACHED: *text = "CUPTI_ERROR_MAX_LIMIT_REACHED"; break;
    case CUPTI_ERROR_NOT_INITIALIZED: *text = "CUPTI_ERROR_NOT_INITIALIZED"; break;
    case CUPTI_ERROR_QUEUE_EMPTY: *text = "CUPTI_ERROR_QUEUE_EMPTY"; break;
    case CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED:
      *text = "CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED";
      break;
  }
  return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityEnable(CUpti_ActivityKind kind) { return tracing().enable(kind, true); }
CUptiResult cuptiActivityDisable(CUpti_ActivityKind kind) { return tracing().enable(kind, false); }

CUptiResult cuptiActivityFlushAll(std::uint32_t /*flag*/) {
  tracing().flush();
  return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityGetNextRecord(std::uint8_t* buffer, std::size_t valid_bytes, CUpti_Activity** record) {
  std::uint8_t* next = buffer;
  if (*record != nullptr) {
    next = reinterpret_cast<std::uint8_t*>(*record) + size_of((*record)->kind);
  }
  if (next >= buffer + valid_bytes) {
    return CUPTI_ERROR_MAX_LIMIT_REACHED;
  }
  *record = reinterpret_cast<CUpti_Activity*>(next);
  return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityPushExternalCorrelationId(CUpti_ExternalCorrelationKind /*kind*/, std::uint64_t id) {
  external_ids.push_back(id);
  return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityPopExternalCorrelationId(CUpti_ExternalCorrelationKind /*kind*/, std::uint64_t* last) {
  if (external_ids.empty()) {
    return CUPTI_ERROR_QUEUE_EMPTY;
  }
  *last = external_ids.back();
  external_ids.pop_back();
  return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityRegisterCallbacks(CUpti_BuffersCallbackRequestFunc request,
                                           CUpti_BuffersCallbackCompleteFunc complete) {
  tracing().set_buffers(request, complete);
  return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityRegisterTimestampCallback(CUpti_TimestampCallbackFunc time) {
  tracing().set_time(time);
  return CUPTI_SUCCESS;
}

}  // extern "C"
