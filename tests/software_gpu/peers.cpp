// SPDX-License-Identifier: Apache-2.0
// GPUs that access each other's memory, copies between them, and their addresses on the bus. A kernel that touches
// memory of an inaccessible GPU is not detected, because all device memory is memory of this process.
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <set>
#include <utility>

#include "tests/software_gpu/handles.h"

namespace software_gpu {

namespace {

std::mutex& peers_mutex() {
  static auto& mutex = *new std::mutex;
  return mutex;
}
/// Pairs of a GPU and a peer that it accesses.
std::set<std::pair<int, int>>& enabled_peers() {
  static auto& pairs = *new std::set<std::pair<int, int>>;
  return pairs;
}

/// Returns the number of GPUs below one switch: only these may access each other. 0: all.
int neighbours() {
  static const int count = [] {
    const char* text = std::getenv("SOFTWARE_GPU_PEERS");  // NOLINT(concurrency-mt-unsafe): nobody changes it
    return text == nullptr ? 0 : std::atoi(text);          // NOLINT(cert-err34-c): other text counts as 0
  }();
  return count;
}

bool may_reach(int device, int peer) {
  return device != peer && (neighbours() <= 0 || device / neighbours() == peer / neighbours());
}

}  // namespace

}  // namespace software_gpu

using namespace software_gpu;  // NOLINT(google-build-using-namespace): this file defines its C interface

extern "C" {

cudaError_t cudaDeviceCanAccessPeer(int* can_access, int device, int peer) {
  if (!is_device(device) || !is_device(peer)) {
    return reported(cudaErrorInvalidDevice);
  }
  *can_access = may_reach(device, peer) ? 1 : 0;
  return cudaSuccess;
}

cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned flags) {
  if (flags != 0) {
    return reported(cudaErrorInvalidValue);
  }
  const int device = current_device();
  if (!is_device(peer) || device == peer) {
    return reported(cudaErrorInvalidDevice);
  }
  if (!may_reach(device, peer)) {
    return reported(cudaErrorPeerAccessUnsupported);
  }
  const std::lock_guard lock(peers_mutex());
  return reported(enabled_peers().insert({device, peer}).second ? cudaSuccess : cudaErrorPeerAccessAlreadyEnabled);
}

cudaError_t cudaMemcpyPeerAsync(void* to, int to_device, const void* from, int from_device, std::size_t bytes,
                                cudaStream_t stream) {
  if (!is_device(to_device) || !is_device(from_device)) {
    return reported(cudaErrorInvalidDevice);
  }
  if (device_of(stream) < 0) {
    return reported(cudaErrorInvalidResourceHandle);
  }
  const auto are_in_stated_memory = [=] {
    return is_device_memory(to, bytes, to_device) && is_device_memory(from, bytes, from_device);
  };
  if (!are_in_stated_memory()) {
    return reported(cudaErrorInvalidValue);
  }
  const auto copy = [=] {
    if (!are_in_stated_memory()) {
      return cudaErrorIllegalAddress;
    }
    std::memmove(to, from, bytes);
    return cudaSuccess;
  };
  return reported(enqueue(
      stream,
      {.kind = WorkKind::copy, .name = "a copy between GPUs", .between_gpus = to_device != from_device, .run = copy}));
}

cudaError_t cudaDeviceGetPCIBusId(char* text, int length, int device) {
  if (!is_device(device)) {
    return reported(cudaErrorInvalidDevice);
  }
  std::array<char, 32> address{};  // an address outside the domains of any machine
  const int needed = std::snprintf(address.data(), address.size(), "FFFF:%02X:00.0", device & 0xff);
  if (text == nullptr || length <= needed) {
    return reported(cudaErrorInvalidValue);
  }
  std::memcpy(text, address.data(), static_cast<std::size_t>(needed) + 1);
  return cudaSuccess;
}

}  // extern "C"
