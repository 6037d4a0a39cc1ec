// SPDX-License-Identifier: Apache-2.0
// Compiled for each group of symbols, once with our header and once with NVIDIA's. FACTS names the function to define.
#include "tests/software_gpu/header_facts.h"

#if defined(FACTS_OF_RUNTIME)
#include <cudaTypedefs.h>
#include <cuda_runtime_api.h>
#elif defined(FACTS_OF_CUBLASLT)
#include <cublasLt.h>
#elif defined(FACTS_OF_NCCL)
#include <nccl.h>
#elif defined(FACTS_OF_CUPTI)
#include <cupti.h>
#elif defined(FACTS_OF_FP8)
#include <cuda_fp8.h>

#include <bit>
#include <cstdint>
#endif

#include <cxxabi.h>

#include <cstddef>
#include <cstdlib>
#include <initializer_list>
#include <memory>
#include <typeinfo>

namespace software_gpu {

namespace {

template <class Type>
[[maybe_unused]] std::string name_of() {
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> name(
      abi::__cxa_demangle(typeid(Type*).name(), nullptr, nullptr, &status), &std::free);
  return status == 0 ? name.get() : typeid(Type*).name();
}

[[maybe_unused]] HeaderFacts joined(std::initializer_list<HeaderFacts> parts) {
  HeaderFacts facts;
  for (const HeaderFacts& part : parts) {
    facts.insert(facts.end(), part.begin(), part.end());
  }
  return facts;
}

}  // namespace

// NOLINTBEGIN(cppcoreguidelines-macro-usage): a name and its value
#define VALUE(name) \
  { #name, std::to_string(static_cast <long long>(name)) }
#define SIGNATURE(name) \
  { #name, name_of < decltype(name)>() }
#define TYPE(name) \
  { #name, name_of < name>() }
// NOLINTEND(cppcoreguidelines-macro-usage)

#if defined(FACTS_OF_RUNTIME)

namespace {

HeaderFacts driver_values() {
  return {VALUE(CUDA_SUCCESS),
          VALUE(CUDA_ERROR_INVALID_VALUE),
          VALUE(CUDA_ERROR_OUT_OF_MEMORY),
          VALUE(CUDA_ERROR_INVALID_DEVICE),
          VALUE(CUDA_ERROR_INVALID_HANDLE),
          VALUE(CUDA_ERROR_INVALID_RESOURCE_TYPE),
          VALUE(CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION),
          VALUE(CU_STREAM_DEFAULT),
          VALUE(CU_STREAM_NON_BLOCKING),
          VALUE(CU_GREEN_CTX_DEFAULT_STREAM),
          VALUE(CU_DEV_RESOURCE_TYPE_INVALID),
          VALUE(CU_DEV_RESOURCE_TYPE_SM),
          VALUE(CU_GRAPH_NODE_TYPE_KERNEL),
          VALUE(CU_GRAPH_NODE_TYPE_MEMCPY),
          VALUE(CU_GRAPH_NODE_TYPE_MEMSET),
          VALUE(CU_STREAM_WAIT_VALUE_GEQ),
          VALUE(CU_STREAM_WAIT_VALUE_FLUSH),
          VALUE(CU_STREAM_WRITE_VALUE_DEFAULT)};
}

HeaderFacts status_codes() {
  return {VALUE(cudaSuccess),
          VALUE(cudaErrorInvalidValue),
          VALUE(cudaErrorMemoryAllocation),
          VALUE(cudaErrorInvalidConfiguration),
          VALUE(cudaErrorInvalidPitchValue),
          VALUE(cudaErrorInvalidMemcpyDirection),
          VALUE(cudaErrorInsufficientDriver),
          VALUE(cudaErrorNoDevice),
          VALUE(cudaErrorInvalidDevice),
          VALUE(cudaErrorPeerAccessUnsupported),
          VALUE(cudaErrorPeerAccessAlreadyEnabled),
          VALUE(cudaErrorInvalidResourceHandle),
          VALUE(cudaErrorIllegalState),
          VALUE(cudaErrorNotReady),
          VALUE(cudaErrorIllegalAddress),
          VALUE(cudaErrorStreamCaptureUnsupported),
          VALUE(cudaErrorDeviceUninitialized),
          VALUE(cudaErrorMapBufferObjectFailed),
          VALUE(cudaErrorTooManyPeers),
          VALUE(cudaErrorStreamCaptureInvalidated),
          VALUE(cudaErrorStreamCaptureMerge),
          VALUE(cudaErrorStreamCaptureUnmatched),
          VALUE(cudaErrorStreamCaptureUnjoined),
          VALUE(cudaErrorStreamCaptureIsolation),
          VALUE(cudaErrorCapturedEvent),
          VALUE(cudaErrorStreamCaptureWrongThread)};
}

HeaderFacts flags_and_attributes() {
  return {VALUE(cudaDevAttrCanFlushRemoteWrites),
          VALUE(cudaIpcMemLazyEnablePeerAccess),
          VALUE(sizeof(cudaIpcMemHandle_t)),
          VALUE(cudaMemcpyHostToHost),
          VALUE(cudaMemcpyHostToDevice),
          VALUE(cudaMemcpyDeviceToHost),
          VALUE(cudaMemcpyDeviceToDevice),
          VALUE(cudaDevAttrClockRate),
          VALUE(cudaDevAttrMultiProcessorCount),
          VALUE(cudaDevAttrMemoryClockRate),
          VALUE(cudaDevAttrMaxSharedMemoryPerBlockOptin),
          VALUE(cudaFuncAttributeMaxDynamicSharedMemorySize),
          VALUE(cudaStreamCaptureModeGlobal),
          VALUE(cudaStreamCaptureModeThreadLocal),
          VALUE(cudaStreamCaptureModeRelaxed),
          VALUE(cudaDriverEntryPointSuccess),
          VALUE(cudaDriverEntryPointSymbolNotFound),
          VALUE(cudaDriverEntryPointVersionNotSufficent),
          VALUE(cudaStreamNonBlocking),
          VALUE(cudaEventDefault),
          VALUE(cudaEventDisableTiming),
          VALUE(cudaEventRecordDefault),
          VALUE(cudaEventRecordExternal),
          VALUE(cudaHostAllocMapped),
          VALUE(cudaEnableDefault)};
}

HeaderFacts memory_functions() {
  return {SIGNATURE(cudaIpcGetMemHandle),
          SIGNATURE(cudaIpcOpenMemHandle),
          SIGNATURE(cudaIpcCloseMemHandle),
          SIGNATURE(cudaMalloc),
          SIGNATURE(cudaFree),
          SIGNATURE(cudaHostAlloc),
          SIGNATURE(cudaFreeHost),
          SIGNATURE(cudaHostGetDevicePointer),
          SIGNATURE(cudaMemcpy),
          SIGNATURE(cudaMemcpyAsync),
          SIGNATURE(cudaMemcpy2DAsync),
          SIGNATURE(cudaMemcpyPeerAsync),
          SIGNATURE(cudaMemsetAsync)};
}

HeaderFacts device_functions() {
  return {SIGNATURE(cudaGetDeviceCount),      SIGNATURE(cudaGetDevice),
          SIGNATURE(cudaSetDevice),           SIGNATURE(cudaGetDeviceProperties),
          SIGNATURE(cudaDeviceGetAttribute),  SIGNATURE(cudaDeviceGetStreamPriorityRange),
          SIGNATURE(cudaDeviceSynchronize),   SIGNATURE(cudaDriverGetVersion),
          SIGNATURE(cudaRuntimeGetVersion),   SIGNATURE(cudaGetDriverEntryPointByVersion),
          SIGNATURE(cudaGetLastError),        SIGNATURE(cudaGetErrorString),
          SIGNATURE(cudaDeviceCanAccessPeer), SIGNATURE(cudaDeviceEnablePeerAccess),
          SIGNATURE(cudaDeviceGetPCIBusId),   SIGNATURE(cudaFuncSetAttribute)};
}

HeaderFacts stream_and_graph_functions() {
  return {SIGNATURE(cudaStreamCreateWithPriority),
          SIGNATURE(cudaStreamDestroy),
          SIGNATURE(cudaStreamQuery),
          SIGNATURE(cudaStreamSynchronize),
          SIGNATURE(cudaStreamWaitEvent),
          SIGNATURE(cudaStreamBeginCapture),
          SIGNATURE(cudaStreamEndCapture),
          SIGNATURE(cudaEventCreateWithFlags),
          SIGNATURE(cudaEventDestroy),
          SIGNATURE(cudaEventRecord),
          SIGNATURE(cudaEventRecordWithFlags),
          SIGNATURE(cudaEventElapsedTime),
          SIGNATURE(cudaGraphInstantiate),
          SIGNATURE(cudaGraphUpload),
          SIGNATURE(cudaGraphLaunch),
          SIGNATURE(cudaGraphDestroy),
          SIGNATURE(cudaGraphExecDestroy)};
}

HeaderFacts driver_types() {
  return {TYPE(PFN_cuGetErrorString_v6000),
          TYPE(PFN_cuDeviceGet_v2000),
          TYPE(PFN_cuGreenCtxCreate_v12040),
          TYPE(PFN_cuGreenCtxDestroy_v12040),
          TYPE(PFN_cuDeviceGetDevResource_v12040),
          TYPE(PFN_cuDevResourceGenerateDesc_v12040),
          TYPE(PFN_cuDevSmResourceSplitByCount_v12040),
          TYPE(PFN_cuGreenCtxStreamCreate_v12050),
          TYPE(PFN_cuStreamWriteValue32_v11070),
          TYPE(PFN_cuStreamWaitValue32_v11070)};
}

}  // namespace

HeaderFacts FACTS() {
  return joined({driver_values(), status_codes(), flags_and_attributes(), memory_functions(), device_functions(),
                 stream_and_graph_functions(), driver_types()});
}

#elif defined(FACTS_OF_CUBLASLT)

namespace {

HeaderFacts types_and_status_codes() {
  return {VALUE(CUDA_R_32F),
          VALUE(CUDA_R_16F),
          VALUE(CUDA_R_16BF),
          VALUE(CUBLAS_STATUS_SUCCESS),
          VALUE(CUBLAS_STATUS_NOT_INITIALIZED),
          VALUE(CUBLAS_STATUS_INVALID_VALUE),
          VALUE(CUBLAS_STATUS_EXECUTION_FAILED),
          VALUE(CUBLAS_STATUS_NOT_SUPPORTED),
          VALUE(CUBLAS_OP_N),
          VALUE(CUBLAS_OP_T),
          VALUE(CUBLAS_COMPUTE_32F)};
}

HeaderFacts descriptions() {
  return {VALUE(CUBLASLT_MATMUL_DESC_TRANSA),
          VALUE(CUBLASLT_MATMUL_DESC_TRANSB),
          VALUE(CUBLASLT_MATMUL_DESC_SM_COUNT_TARGET),
          VALUE(CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT),
          VALUE(CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET),
          VALUE(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES),
          VALUE(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK),
          VALUE(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES),
          VALUE(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES),
          VALUE(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES),
          VALUE(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES),
          VALUE(CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME),
          VALUE(CUBLASLT_REDUCTION_SCHEME_NONE),
          VALUE(CUBLASLT_REDUCTION_SCHEME_INPLACE),
          VALUE(CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE),
          VALUE(CUBLASLT_REDUCTION_SCHEME_OUTPUT_TYPE)};
}

HeaderFacts handle_and_gemm_functions() {
  return {SIGNATURE(cublasLtCreate),
          SIGNATURE(cublasLtDestroy),
          SIGNATURE(cublasLtGetVersion),
          SIGNATURE(cublasLtGetStatusString),
          SIGNATURE(cublasLtMatmulDescInit_internal),
          SIGNATURE(cublasLtMatmulDescSetAttribute),
          SIGNATURE(cublasLtMatrixLayoutInit_internal),
          SIGNATURE(cublasLtMatrixLayoutSetAttribute),
          SIGNATURE(cublasLtMatmulPreferenceInit_internal),
          SIGNATURE(cublasLtMatmulPreferenceSetAttribute),
          SIGNATURE(cublasLtMatmulAlgoGetHeuristic),
          SIGNATURE(cublasLtMatmulAlgoCheck),
          SIGNATURE(cublasLtMatmulAlgoConfigGetAttribute),
          SIGNATURE(cublasLtMatmul)};
}

}  // namespace

HeaderFacts FACTS() { return joined({types_and_status_codes(), descriptions(), handle_and_gemm_functions()}); }

#elif defined(FACTS_OF_NCCL)

namespace {

HeaderFacts values() {
  return {VALUE(ncclSuccess),
          VALUE(ncclUnhandledCudaError),
          VALUE(ncclSystemError),
          VALUE(ncclInternalError),
          VALUE(ncclInvalidArgument),
          VALUE(ncclInvalidUsage),
          VALUE(ncclRemoteError),
          VALUE(ncclInProgress),
          VALUE(ncclUint8),
          VALUE(ncclFloat16),
          VALUE(ncclFloat32),
          VALUE(ncclBfloat16),
          VALUE(ncclSum),
          VALUE(NCCL_UNIQUE_ID_BYTES),
          VALUE(NCCL_CONFIG_UNDEF_INT),
          VALUE(NCCL_WIN_COLL_SYMMETRIC)};
}

HeaderFacts communicator_functions() {
  return {SIGNATURE(ncclGetVersion),     SIGNATURE(ncclGetUniqueId),  SIGNATURE(ncclCommInitRankConfig),
          SIGNATURE(ncclCommSplit),      SIGNATURE(ncclCommFinalize), SIGNATURE(ncclCommDestroy),
          SIGNATURE(ncclCommAbort),      SIGNATURE(ncclCommCount),    SIGNATURE(ncclCommGetAsyncError),
          SIGNATURE(ncclGetErrorString), SIGNATURE(ncclGetLastError)};
}

HeaderFacts transfer_functions() {
  return {SIGNATURE(ncclGroupStart), SIGNATURE(ncclGroupEnd),      SIGNATURE(ncclSend),      SIGNATURE(ncclRecv),
          SIGNATURE(ncclAllGather),  SIGNATURE(ncclReduceScatter), SIGNATURE(ncclAllReduce), SIGNATURE(ncclAlltoAll)};
}

HeaderFacts memory_functions() {
  return {SIGNATURE(ncclMemAlloc),           SIGNATURE(ncclMemFree),
          SIGNATURE(ncclCommRegister),       SIGNATURE(ncclCommDeregister),
          SIGNATURE(ncclCommWindowRegister), SIGNATURE(ncclCommWindowDeregister)};
}

}  // namespace

HeaderFacts FACTS() { return joined({values(), communicator_functions(), transfer_functions(), memory_functions()}); }

#elif defined(FACTS_OF_CUPTI)

namespace {

HeaderFacts status_codes() {
  return {VALUE(CUPTI_SUCCESS),
          VALUE(CUPTI_ERROR_INVALID_PARAMETER),
          VALUE(CUPTI_ERROR_INVALID_OPERATION),
          VALUE(CUPTI_ERROR_MAX_LIMIT_REACHED),
          VALUE(CUPTI_ERROR_NOT_INITIALIZED),
          VALUE(CUPTI_ERROR_QUEUE_EMPTY),
          VALUE(CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED)};
}

HeaderFacts kinds() {
  return {VALUE(CUPTI_ACTIVITY_KIND_INVALID),
          VALUE(CUPTI_ACTIVITY_KIND_MEMCPY),
          VALUE(CUPTI_ACTIVITY_KIND_DRIVER),
          VALUE(CUPTI_ACTIVITY_KIND_RUNTIME),
          VALUE(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL),
          VALUE(CUPTI_ACTIVITY_KIND_MEMCPY2),
          VALUE(CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION),
          VALUE(CUPTI_ACTIVITY_MEMCPY_KIND_HTOD),
          VALUE(CUPTI_ACTIVITY_MEMCPY_KIND_DTOH),
          VALUE(CUPTI_ACTIVITY_MEMCPY_KIND_DTOD),
          VALUE(CUPTI_ACTIVITY_MEMCPY_KIND_PTOP),
          VALUE(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED),
          VALUE(CUPTI_CHANNEL_TYPE_COMPUTE),
          VALUE(CUPTI_CHANNEL_TYPE_ASYNC_MEMCPY),
          VALUE(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0),
          VALUE(CUPTI_CB_DOMAIN_RESOURCE),
          VALUE(CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED),
          VALUE(CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED)};
}

HeaderFacts subscriber_and_activity_functions() {
  return {SIGNATURE(cuptiSubscribe),
          SIGNATURE(cuptiUnsubscribe),
          SIGNATURE(cuptiEnableCallback),
          SIGNATURE(cuptiGetGraphNodeId),
          SIGNATURE(cuptiGetResultString),
          SIGNATURE(cuptiActivityEnable),
          SIGNATURE(cuptiActivityDisable),
          SIGNATURE(cuptiActivityFlushAll),
          SIGNATURE(cuptiActivityGetNextRecord),
          SIGNATURE(cuptiActivityPushExternalCorrelationId),
          SIGNATURE(cuptiActivityPopExternalCorrelationId),
          SIGNATURE(cuptiActivityRegisterCallbacks),
          SIGNATURE(cuptiActivityRegisterTimestampCallback)};
}

}  // namespace

HeaderFacts FACTS() { return joined({status_codes(), kinds(), subscriber_and_activity_functions()}); }

#elif defined(FACTS_OF_FP8)

/// Returns facts about the conversions of floats, one sum for each sign and exponent, and about all values of eight
/// bits.
HeaderFacts FACTS() {
  HeaderFacts facts;
  for (std::uint32_t top = 0; top < 512; ++top) {
    std::uint64_t sum = 0;
    for (std::uint32_t rest = 0; rest < (1U << 23U); rest += 509) {
      const auto value = std::bit_cast<float>((top << 23U) | rest);
      sum = sum * 31 + __nv_cvt_float_to_fp8(value, __NV_SATFINITE, __NV_E4M3);
    }
    for (const std::uint32_t tie : {0x80000U, 0x180000U, 0x280000U, 0x680000U, 0x780000U}) {
      const auto value = std::bit_cast<float>((top << 23U) | tie);
      sum = sum * 31 + __nv_cvt_float_to_fp8(value, __NV_SATFINITE, __NV_E4M3);
    }
    facts.push_back({"floats of sign and exponent " + std::to_string(top), std::to_string(sum)});
  }
  for (unsigned bits = 0; bits < 256; ++bits) {
    const auto stored = static_cast<unsigned char>(bits);
    facts.push_back({"fp8 " + std::to_string(bits), std::to_string(__nv_cvt_fp8_to_halfraw(stored, __NV_E4M3).x)});
  }
  return facts;
}

#endif

}  // namespace software_gpu
