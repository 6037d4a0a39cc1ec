// SPDX-License-Identifier: Apache-2.0
#ifdef COMMFUSE_WITH_CUPTI

#include "validate/cuda/module/cupti_library.h"

#include <fmt/format.h>

#include <stdexcept>

namespace commfuse::validate {

namespace {

constexpr int cuda_major = CUDA_VERSION / 1000;

}  // namespace

CuptiLibrary::CuptiLibrary()
    : library_({.product = "CUPTI",
                .sonames = {fmt::format("libcupti.so.{}", cuda_major)},
                .remedy = fmt::format("install CUPTI of CUDA {}", cuda_major)}) {
  library_.require(subscribe, "cuptiSubscribe");
  library_.require(unsubscribe, "cuptiUnsubscribe");
  library_.require(enable_callback, "cuptiEnableCallback");
  library_.require(get_graph_node_id, "cuptiGetGraphNodeId");
  library_.require(get_result_string, "cuptiGetResultString");
  library_.require(activity_enable, "cuptiActivityEnable");
  library_.require(activity_disable, "cuptiActivityDisable");
  library_.require(activity_flush_all, "cuptiActivityFlushAll");
  library_.require(activity_get_next_record, "cuptiActivityGetNextRecord");
  library_.require(activity_push_external_correlation_id, "cuptiActivityPushExternalCorrelationId");
  library_.require(activity_pop_external_correlation_id, "cuptiActivityPopExternalCorrelationId");
  library_.require(activity_register_callbacks, "cuptiActivityRegisterCallbacks");
  library_.require(activity_register_timestamp_callback, "cuptiActivityRegisterTimestampCallback");
}

const CuptiLibrary& CuptiLibrary::instance() {
  static const CuptiLibrary library;
  if (!library.library_.loaded()) {
    throw std::runtime_error(library.library_.absence());
  }
  return library;
}

}  // namespace commfuse::validate

#endif
