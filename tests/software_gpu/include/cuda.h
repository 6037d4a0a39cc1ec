// SPDX-License-Identifier: Apache-2.0
// The driver's interface, as far as the plugin uses it. tests/software_gpu/header_facts_test.cpp compares names and
// values with NVIDIA's header if that is installed; layouts are ours.
#pragma once

#include <cstddef>
#include <cstdint>

#define CUDA_VERSION 13000
#define CUDAAPI

using CUdevice = int;
using CUdevice_v1 = CUdevice;
using CUdeviceptr = unsigned long long;
using CUdeviceptr_v2 = CUdeviceptr;
using cuuint32_t = std::uint32_t;
using CUcontext = struct CUctx_st*;
using CUgreenCtx = struct CUgreenCtx_st*;
using CUstream = struct CUstream_st*;
using CUgraph = struct CUgraph_st*;
using CUgraphNode = struct CUgraphNode_st*;
using CUgraphExec = struct CUgraphExec_st*;
using CUdevResourceDesc = struct CUdevResourceDesc_st*;

enum cudaError_enum {
  CUDA_SUCCESS = 0,
  CUDA_ERROR_INVALID_VALUE = 1,
  CUDA_ERROR_OUT_OF_MEMORY = 2,
  CUDA_ERROR_INVALID_DEVICE = 101,
  CUDA_ERROR_INVALID_HANDLE = 400,
  CUDA_ERROR_INVALID_RESOURCE_TYPE = 914,
  CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION = 915,
};
using CUresult = cudaError_enum;

enum CUstream_flags { CU_STREAM_DEFAULT = 0, CU_STREAM_NON_BLOCKING = 1 };
enum CUstreamWaitValue_flags { CU_STREAM_WAIT_VALUE_GEQ = 0, CU_STREAM_WAIT_VALUE_FLUSH = 1 << 30 };
enum CUstreamWriteValue_flags { CU_STREAM_WRITE_VALUE_DEFAULT = 0 };
enum CUgreenCtxCreate_flags { CU_GREEN_CTX_DEFAULT_STREAM = 1 };
enum CUdevResourceType { CU_DEV_RESOURCE_TYPE_INVALID = 0, CU_DEV_RESOURCE_TYPE_SM = 1 };
enum CUgraphNodeType { CU_GRAPH_NODE_TYPE_KERNEL = 0, CU_GRAPH_NODE_TYPE_MEMCPY = 1, CU_GRAPH_NODE_TYPE_MEMSET = 2 };

struct CUdevSmResource {
  unsigned smCount;
  unsigned minSmPartitionSize;
  unsigned smCoscheduledAlignment;
};
struct CUdevResource_st {
  CUdevResourceType type;
  std::uint64_t members[4];  // multiprocessors of the context, in our layout
  CUdevSmResource sm;
};
using CUdevResource = CUdevResource_st;
