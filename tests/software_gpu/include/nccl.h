// SPDX-License-Identifier: Apache-2.0
// NCCL's interface in the latest version that the plugin supports, as far as the plugin uses it; the library may be
// older.
#pragma once

#include <cuda_runtime_api.h>

#include <climits>
#include <cstddef>

#define NCCL_VERSION(X, Y, Z) (((X) <= 2 && (Y) <= 8) ? (X)*1000 + (Y)*100 + (Z) : (X)*10000 + (Y)*100 + (Z))
#define NCCL_VERSION_CODE 23007

#define NCCL_UNIQUE_ID_BYTES 128
#define NCCL_CONFIG_UNDEF_INT INT_MIN
#define NCCL_WIN_COLL_SYMMETRIC 0x01

using ncclComm_t = struct ncclComm*;
using ncclWindow_t = struct ncclWindow_vidmem*;
struct ncclUniqueId {
  char internal[NCCL_UNIQUE_ID_BYTES];
};

enum ncclResult_t {
  ncclSuccess = 0,
  ncclUnhandledCudaError = 1,
  ncclSystemError = 2,
  ncclInternalError = 3,
  ncclInvalidArgument = 4,
  ncclInvalidUsage = 5,
  ncclRemoteError = 6,
  ncclInProgress = 7,
};
enum ncclDataType_t { ncclUint8 = 1, ncclFloat16 = 6, ncclFloat32 = 7, ncclBfloat16 = 9 };
enum ncclRedOp_t { ncclSum = 0 };

struct ncclConfig_t {
  std::size_t size;
  unsigned magic;
  unsigned version;
  int blocking;
  int maxCTAs;
  int splitShare;
  int CTAPolicy;
  int graphUsageMode;
};
struct ncclWaitSignalDesc_t {
  int opCnt;
  int peer;
  int sigIdx;
  int ctx;
};
#define NCCL_CONFIG_INITIALIZER                                                                        \
  {                                                                                                    \
    sizeof(ncclConfig_t), 0xcafebeef, NCCL_VERSION_CODE, NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_INT, \
        NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_INT                            \
  }

extern "C" {
ncclResult_t ncclGetVersion(int* version);
ncclResult_t ncclGetUniqueId(ncclUniqueId* id);
ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int ranks, ncclUniqueId id, int rank, ncclConfig_t* config);
ncclResult_t ncclCommSplit(ncclComm_t comm, int color, int key, ncclComm_t* child, ncclConfig_t* config);
ncclResult_t ncclCommFinalize(ncclComm_t comm);
ncclResult_t ncclCommDestroy(ncclComm_t comm);
ncclResult_t ncclCommAbort(ncclComm_t comm);
ncclResult_t ncclCommCount(ncclComm_t comm, int* count);
ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* error);
const char* ncclGetErrorString(ncclResult_t result);
const char* ncclGetLastError(ncclComm_t comm);
ncclResult_t ncclGroupStart();
ncclResult_t ncclGroupEnd();
ncclResult_t ncclSend(const void* from, std::size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream);
ncclResult_t ncclRecv(void* to, std::size_t count, ncclDataType_t type, int peer, ncclComm_t comm, cudaStream_t stream);
ncclResult_t ncclAllGather(const void* from, void* to, std::size_t count, ncclDataType_t type, ncclComm_t comm,
                           cudaStream_t stream);
ncclResult_t ncclReduceScatter(const void* from, void* to, std::size_t count, ncclDataType_t type, ncclRedOp_t op,
                               ncclComm_t comm, cudaStream_t stream);
ncclResult_t ncclAllReduce(const void* from, void* to, std::size_t count, ncclDataType_t type, ncclRedOp_t op,
                           ncclComm_t comm, cudaStream_t stream);
ncclResult_t ncclAlltoAll(const void* from, void* to, std::size_t count, ncclDataType_t type, ncclComm_t comm,
                          cudaStream_t stream);
ncclResult_t ncclMemAlloc(void** at, std::size_t bytes);
ncclResult_t ncclMemFree(void* at);
ncclResult_t ncclCommRegister(ncclComm_t comm, void* at, std::size_t bytes, void** handle);
ncclResult_t ncclCommDeregister(ncclComm_t comm, void* handle);
ncclResult_t ncclCommWindowRegister(ncclComm_t comm, void* at, std::size_t bytes, ncclWindow_t* window, int flags);
ncclResult_t ncclCommWindowDeregister(ncclComm_t comm, ncclWindow_t window);
ncclResult_t ncclPutSignal(const void* from, std::size_t count, ncclDataType_t type, int peer, ncclWindow_t window,
                           std::size_t offset, int signal, int context, unsigned int flags, ncclComm_t comm,
                           cudaStream_t stream);
ncclResult_t ncclSignal(int peer, int signal, int context, unsigned int flags, ncclComm_t comm, cudaStream_t stream);
ncclResult_t ncclWaitSignal(int count, ncclWaitSignalDesc_t* signals, ncclComm_t comm, cudaStream_t stream);
}
