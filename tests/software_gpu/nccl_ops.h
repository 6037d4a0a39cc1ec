// SPDX-License-Identifier: Apache-2.0
// Communicators of the double of NCCL, and the effects of their operations when a stream reaches them.
#pragma once

#include <nccl.h>

#include <condition_variable>
#include <map>
#include <mutex>
#include <string>

#include "tests/software_gpu/gpu.h"
#include "tests/software_gpu/nccl_mesh.h"

/// A communicator. It is never freed, so that its use after destruction is detected.
struct ncclComm {
  std::shared_ptr<software_gpu::Mesh> mesh;  // null: not connected yet
  std::uint64_t id = 0;
  std::vector<int> members;  // ranks of the mesh
  int rank = 0;              // among the members
  int device = 0;
  bool blocks = true;
  ncclComm* parent = nullptr;
  std::shared_ptr<software_gpu::Line> line = std::make_shared<software_gpu::Line>();

  std::atomic<bool> aborted = false;
  std::thread worker;  // thread of a call in progress

  // The mutex of nccl.cpp guards these members.
  bool alive = true;
  bool finalized = false;
  ncclResult_t state = ncclSuccess;
  std::string last_error;
  std::vector<std::pair<int, bool>> connected;  // pairs of a peer, and whether messages go to it or come from it
  bool has_rings = false;
  std::uint32_t splits = 0;
  /// Registered memory. Its number is the same on all ranks of the communicator.
  struct Registered {
    std::byte* at = nullptr;
    std::size_t bytes = 0;
    std::uint64_t number = 0;
    bool is_window = false;
  };
  std::vector<Registered> registered;
  std::uint64_t registrations = 0;
  bool has_puts = false;  // a put, a signal or a wait for signals has been issued

  std::atomic<int> operations = 0;  // number of operations that have not ended
  std::atomic<int> captured = 0;    // operations in graphs that exist or run

  std::mutex signal_mutex;
  std::condition_variable signal_changed;
  std::map<int, std::uint64_t> raised;   // number of signals, by the rank that raised them
  std::map<int, std::uint64_t> awaited;  // number of signals that calls wait for, arrived or not
};

namespace software_gpu {

inline int ranks_of(const ncclComm& comm) { return static_cast<int>(comm.members.size()); }

enum class Collective : std::uint8_t { all_gather, reduce_scatter, all_reduce, all_to_all };

/// A call between ncclGroupStart() and ncclGroupEnd(), or outside a group.
struct Operation {
  enum class Kind : std::uint8_t { send, receive, collective };
  Kind kind = Kind::send;
  Collective collective = Collective::all_gather;
  const void* from = nullptr;
  void* to = nullptr;
  std::size_t count = 0;
  ncclDataType_t type = ncclUint8;
  int peer = 0;  // rank in the communicator
  ncclComm* comm = nullptr;
  cudaStream_t stream = nullptr;
};

std::size_t size_of(ncclDataType_t type);
/// Runs one collective, or several messages of one communicator together. Every member must call this concurrently, in
/// the order in which it issued the operations. Ends the process with an error if two ranks disagree about sizes or
/// kinds.
void run_operations(ncclComm& comm, const std::vector<Operation>& operations);

/// Writes into another rank's window, regardless of what that rank does, and raises a signal for that rank. With no
/// bytes it only raises the signal.
void put(ncclComm& comm, int peer, std::uint64_t window, std::size_t offset, const void* from, std::size_t bytes);
/// Applies a put() on the receiving rank. The caller must hold the mutex of the communicators.
void take_put(ncclComm& comm, int member, const Bytes& bytes);
/// Waits until `peer` has raised `count` signals in total. Returns early once the communicator is aborted.
void wait_for_signals(ncclComm& comm, int peer, std::uint64_t count);

Bytes exchange(ncclComm& comm, int to, int from, Purpose purpose, const Bytes& bytes);
/// Sends these bytes to every member; returns the bytes of all, by member.
std::vector<Bytes> gather(ncclComm& comm, Purpose purpose, const Bytes& bytes);

}  // namespace software_gpu
