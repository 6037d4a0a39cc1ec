// SPDX-License-Identifier: Apache-2.0
#include "validate/cuda/module/ranges.h"

#include <nvtx3/nvToolsExt.h>

namespace commfuse::validate {

namespace {

struct Domain {
  nvtxDomainHandle_t handle = nvtxDomainCreateA("commfuse");
  nvtxStringHandle_t op = nvtxDomainRegisterStringA(handle, "op");
};

const Domain& domain() {
  static const Domain process_domain;
  return process_domain;
}

}  // namespace

LabelRange::~LabelRange() { end(); }

void LabelRange::begin(std::uint64_t label) {
  end();
  nvtxEventAttributes_t what{};
  what.version = NVTX_VERSION;
  what.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  what.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
  what.message.registered = domain().op;
  what.payloadType = NVTX_PAYLOAD_TYPE_UNSIGNED_INT64;
  what.payload.ullValue = label;
  nvtxDomainRangePushEx(domain().handle, &what);
  open_ = true;
}

void LabelRange::end() {
  if (open_) {
    nvtxDomainRangePop(domain().handle);
    open_ = false;
  }
}

}  // namespace commfuse::validate
