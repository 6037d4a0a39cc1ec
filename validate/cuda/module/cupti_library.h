// SPDX-License-Identifier: Apache-2.0
// CUPTI's functions, loaded at run time.
#pragma once

#include <cupti.h>

#include "validate/cuda/module/shared_library.h"

namespace commfuse::validate {

/// The library must have the major version of the header, because that version determines the records.
class CuptiLibrary {
 public:
  CuptiLibrary();
  /// Loads the library on the first call. Throws std::runtime_error with what is missing if CUPTI is absent.
  static const CuptiLibrary& instance();

  // The types are those of cupti.h.
  decltype(&::cuptiSubscribe) subscribe = nullptr;
  decltype(&::cuptiUnsubscribe) unsubscribe = nullptr;
  decltype(&::cuptiEnableCallback) enable_callback = nullptr;
  decltype(&::cuptiGetGraphNodeId) get_graph_node_id = nullptr;
  decltype(&::cuptiGetResultString) get_result_string = nullptr;
  decltype(&::cuptiActivityEnable) activity_enable = nullptr;
  decltype(&::cuptiActivityDisable) activity_disable = nullptr;
  decltype(&::cuptiActivityFlushAll) activity_flush_all = nullptr;
  decltype(&::cuptiActivityGetNextRecord) activity_get_next_record = nullptr;
  decltype(&::cuptiActivityPushExternalCorrelationId) activity_push_external_correlation_id = nullptr;
  decltype(&::cuptiActivityPopExternalCorrelationId) activity_pop_external_correlation_id = nullptr;
  decltype(&::cuptiActivityRegisterCallbacks) activity_register_callbacks = nullptr;
  decltype(&::cuptiActivityRegisterTimestampCallback) activity_register_timestamp_callback = nullptr;

 private:
  SharedLibrary library_;
};

}  // namespace commfuse::validate
