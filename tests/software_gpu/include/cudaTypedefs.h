// SPDX-License-Identifier: Apache-2.0
// Types of the functions that the plugin requests from the driver by name.
#pragma once

#include <cuda.h>

using PFN_cuGetErrorString_v6000 = CUresult (*)(CUresult, const char**);
using PFN_cuDeviceGet_v2000 = CUresult (*)(CUdevice_v1*, int);
using PFN_cuGreenCtxCreate_v12040 = CUresult (*)(CUgreenCtx*, CUdevResourceDesc, CUdevice, unsigned);
using PFN_cuGreenCtxDestroy_v12040 = CUresult (*)(CUgreenCtx);
using PFN_cuDeviceGetDevResource_v12040 = CUresult (*)(CUdevice, CUdevResource*, CUdevResourceType);
using PFN_cuDevResourceGenerateDesc_v12040 = CUresult (*)(CUdevResourceDesc*, CUdevResource*, unsigned);
using PFN_cuDevSmResourceSplitByCount_v12040 = CUresult (*)(CUdevResource*, unsigned*, const CUdevResource*,
                                                            CUdevResource*, unsigned, unsigned);
using PFN_cuGreenCtxStreamCreate_v12050 = CUresult (*)(CUstream*, CUgreenCtx, unsigned, int);
using PFN_cuStreamWriteValue32_v11070 = CUresult (*)(CUstream, CUdeviceptr_v2, cuuint32_t, unsigned);
using PFN_cuStreamWaitValue32_v11070 = CUresult (*)(CUstream, CUdeviceptr_v2, cuuint32_t, unsigned);
