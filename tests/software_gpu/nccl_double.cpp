// SPDX-License-Identifier: Apache-2.0
// The double of NCCL, built in several versions: NCCL_DOUBLE_VERSION selects the version, and older ones lack
// functions.
#include "tests/software_gpu/nccl_double.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <condition_variable>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include "validate/cuda/module/nccl_library.h"

using commfuse::validate::test::NcclDouble;

/// A communicator. It is never freed, so that a use after its end is detected rather than undefined.
struct ncclComm {
  int id = 0;
  int ranks = 1;
  ncclComm* parent = nullptr;
  bool blocks = true;
  bool alive = true;
  bool aborted = false;
  bool finalized = false;
  ncclResult_t state = ncclSuccess;
  std::thread worker;
};

namespace {

NcclDouble& facts() {
  static NcclDouble double_facts;
  return double_facts;
}

// facts().mutex guards these variables.
std::condition_variable changed;
std::vector<std::unique_ptr<ncclComm>> communicators;
std::map<void*, std::size_t> blocks;

using Lock = std::unique_lock<std::mutex>;

struct Operation {
  ncclComm* comm = nullptr;
  std::string name;
};

thread_local int depth = 0;
thread_local std::vector<Operation> group;

ncclResult_t misuse(const std::string& sentence) {
  facts().misuses.push_back(sentence);
  return ncclInvalidUsage;
}

/// Returns the communicator's state, as ncclCommEnsureReady() does; a call while another is in progress is misuse.
ncclResult_t ready(const ncclComm* comm, const std::string& call) {
  if (comm == nullptr || !comm->alive) {
    return misuse(call + " on a communicator that is gone");
  }
  return comm->state == ncclInProgress ? misuse(call + " while the last call is in progress") : comm->state;
}

void join(Lock& lock, ncclComm& comm) {
  if (comm.worker.joinable()) {
    std::thread worker = std::move(comm.worker);
    lock.unlock();
    worker.join();
    lock.lock();
  }
}

/// Runs `work` later, in another thread; until then the communicator is in progress. If `hangs` is true, it stays in
/// progress until it is aborted.
template <class Work>
ncclResult_t run_later(Lock& lock, ncclComm& comm, bool hangs, Work work) {
  join(lock, comm);
  comm.state = ncclInProgress;
  comm.worker = std::thread([&comm, hangs, work] {
    Lock inside(facts().mutex);
    if (hangs) {
      changed.wait(inside, [&] { return comm.aborted; });
    } else {
      changed.wait_for(inside, facts().slowness, [&] { return comm.aborted; });
    }
    if (!comm.aborted) {
      work();
    }
    comm.state = comm.aborted ? ncclInternalError : ncclSuccess;
  });
  return ncclInProgress;
}

/// Runs `work` on this thread. If `hangs` is true, waits instead until the communicator is aborted, and fails.
template <class Work>
ncclResult_t run_now(Lock& lock, ncclComm& comm, bool hangs, Work work) {
  if (hangs) {
    changed.wait(lock, [&] { return comm.aborted; });
    return ncclInternalError;
  }
  work();
  return ncclSuccess;
}

ncclComm* new_comm(ncclComm* parent, int ranks, const ncclConfig_t& config) {
  communicators.push_back(std::make_unique<ncclComm>());
  ncclComm* created = communicators.back().get();
  created->id = static_cast<int>(communicators.size()) - 1;
  created->ranks = ranks;
  created->parent = parent;
  created->blocks = config.blocking != 0;
  facts().communicators.push_back(
      {.id = created->id, .is_child = parent != nullptr, .blocks = created->blocks, .shares = config.splitShare == 1});
  return created;
}

ncclResult_t launch(std::vector<Operation> operations) {
  if (operations.empty()) {
    return ncclSuccess;
  }
  Lock lock(facts().mutex);
  ncclComm& comm = *operations.front().comm;
  const auto record = [&comm, operations = std::move(operations)] {
    commfuse::validate::test::NcclDoubleLaunch created{
        .communicator = comm.id, .thread = std::this_thread::get_id(), .operations = {}};
    std::ranges::transform(operations, std::back_inserter(created.operations), &Operation::name);
    facts().launches.push_back(std::move(created));
  };
  return comm.blocks ? run_now(lock, comm, facts().hangs_in_group, record) : run_later(lock, comm, false, record);
}

ncclResult_t operation(ncclComm* comm, const std::string& name) {
  {
    const Lock lock(facts().mutex);
    if (const ncclResult_t status = ready(comm, name); status != ncclSuccess) {
      return status;
    }
    if (!group.empty() && group.front().comm->blocks != comm->blocks) {
      return misuse("a group with blocking and non-blocking communicators");
    }
  }
  group.push_back({comm, name});
  return depth > 0 ? ncclSuccess : launch(std::exchange(group, {}));
}

[[maybe_unused]] ncclResult_t enroll(ncclComm* comm, void* at, std::size_t bytes, void** handle, bool window) {
  Lock lock(facts().mutex);
  if (const ncclResult_t status = ready(comm, "registration"); status != ncclSuccess) {
    return status;
  }
  *handle = at;
  const auto record = [comm, bytes, window] {
    facts().registrations.push_back({.communicator = comm->id, .bytes = bytes, .window = window});
  };
  return comm->blocks ? run_now(lock, *comm, facts().hangs_in_register, record) : run_later(lock, *comm, false, record);
}

}  // namespace

extern "C" {

NcclDouble& commfuse_nccl_double() { return facts(); }

ncclResult_t ncclGetVersion(int* version) {
  *version = NCCL_DOUBLE_VERSION;
  return ncclSuccess;
}

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  static int created = 0;
  *id = {};
  id->internal[0] = static_cast<char>(++created);
  return ncclSuccess;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int ranks, ncclUniqueId /*id*/, int /*rank*/,
                                    ncclConfig_t* config) {
  Lock lock(facts().mutex);
  *comm = new_comm(nullptr, ranks, *config);
  const auto nothing = [] {};
  return (*comm)->blocks ? run_now(lock, **comm, facts().hangs_in_init, nothing)
                         : run_later(lock, **comm, facts().hangs_in_init, nothing);
}

ncclResult_t ncclCommSplit(ncclComm_t comm, int /*color*/, int /*key*/, ncclComm_t* created, ncclConfig_t* config) {
  Lock lock(facts().mutex);
  if (const ncclResult_t status = ready(comm, "ncclCommSplit"); status != ncclSuccess) {
    return status;
  }
  *created = nullptr;
  // The parent runs the job, so its configuration determines whether the call blocks. `config` is that of the child.
  const auto work = [comm, created, config = *config] { *created = new_comm(comm, comm->ranks, config); };
  return comm->blocks ? run_now(lock, *comm, facts().hangs_in_init, work)
                      : run_later(lock, *comm, facts().hangs_in_init, work);
}

ncclResult_t ncclCommFinalize(ncclComm_t comm) {
  Lock lock(facts().mutex);
  if (const ncclResult_t status = ready(comm, "ncclCommFinalize"); status != ncclSuccess) {
    return status;
  }
  const auto work = [comm] { comm->finalized = true; };
  return comm->blocks ? run_now(lock, *comm, facts().hangs_in_finalize, work)
                      : run_later(lock, *comm, facts().hangs_in_finalize, work);
}

ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  Lock lock(facts().mutex);
  if (!comm->alive || !comm->finalized) {
    return misuse("ncclCommDestroy of a communicator that is gone or was not finalized");
  }
  join(lock, *comm);
  comm->alive = false;
  ++facts().destroyed;
  return ncclSuccess;
}

ncclResult_t ncclCommAbort(ncclComm_t comm) {
  Lock lock(facts().mutex);
  if (comm == nullptr || !comm->alive) {
    return misuse("ncclCommAbort of a communicator that is gone");
  }
  comm->aborted = true;
  changed.notify_all();
  join(lock, *comm);
  comm->alive = false;
  facts().aborts.push_back(std::this_thread::get_id());
  return ncclSuccess;
}

ncclResult_t ncclCommCount(const ncclComm_t comm, int* count) {
  const Lock lock(facts().mutex);
  *count = comm->ranks;
  return ready(comm, "ncclCommCount");
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* error) {
  const Lock lock(facts().mutex);
  if (!comm->alive) {
    return misuse("ncclCommGetAsyncError of a communicator that is gone");
  }
  *error = comm->state;
  return ncclSuccess;
}

const char* ncclGetErrorString(ncclResult_t result) { return result == ncclInvalidUsage ? "invalid usage" : "error"; }
const char* ncclGetLastError(ncclComm_t /*comm*/) { return ""; }

ncclResult_t ncclGroupStart() {
  ++depth;
  return ncclSuccess;
}

ncclResult_t ncclGroupEnd() { return --depth > 0 ? ncclSuccess : launch(std::exchange(group, {})); }

ncclResult_t ncclSend(const void*, size_t, ncclDataType_t, int, ncclComm_t comm, cudaStream_t) {
  return operation(comm, "send");
}
ncclResult_t ncclRecv(void*, size_t, ncclDataType_t, int, ncclComm_t comm, cudaStream_t) {
  return operation(comm, "recv");
}
ncclResult_t ncclAllGather(const void*, void*, size_t, ncclDataType_t, ncclComm_t comm, cudaStream_t) {
  return operation(comm, "all-gather");
}
ncclResult_t ncclReduceScatter(const void*, void*, size_t, ncclDataType_t, ncclRedOp_t, ncclComm_t comm, cudaStream_t) {
  return operation(comm, "reduce-scatter");
}
ncclResult_t ncclAllReduce(const void*, void*, size_t, ncclDataType_t, ncclRedOp_t, ncclComm_t comm, cudaStream_t) {
  return operation(comm, "all-reduce");
}

#if NCCL_DOUBLE_VERSION >= 21900
/// Allocates from the end of an arena towards its beginning, so addresses fall with each allocation.
ncclResult_t ncclMemAlloc(void** at, size_t size) {
  static std::array<std::byte, std::size_t{1} << 20U> arena;
  const Lock lock(facts().mutex);
  std::byte* const lowest =
      blocks.empty() ? arena.data() + arena.size() : static_cast<std::byte*>(blocks.begin()->first);
  if (size > static_cast<std::size_t>(lowest - arena.data())) {
    return ncclSystemError;
  }
  *at = lowest - size;
  blocks[*at] = size;
  return ncclSuccess;
}

ncclResult_t ncclMemFree(void* at) {
  const Lock lock(facts().mutex);
  return blocks.erase(at) == 1 ? ncclSuccess : misuse("ncclMemFree of memory that is not allocated");
}

ncclResult_t ncclCommRegister(const ncclComm_t comm, void* at, size_t size, void** handle) {
  return enroll(comm, at, size, handle, false);
}
ncclResult_t ncclCommDeregister(const ncclComm_t comm, void* /*handle*/) {
  const Lock lock(facts().mutex);
  return ready(comm, "ncclCommDeregister");
}
#endif

#if NCCL_DOUBLE_VERSION >= 22700
ncclResult_t ncclCommWindowRegister(ncclComm_t comm, void* at, size_t size, ncclWindow_t* window, int /*flags*/) {
  void* handle = nullptr;
  const ncclResult_t status = enroll(comm, at, size, &handle, true);
  *window = static_cast<ncclWindow_t>(handle);
  return status;
}
ncclResult_t ncclCommWindowDeregister(ncclComm_t comm, ncclWindow_t /*window*/) {
  const Lock lock(facts().mutex);
  return ready(comm, "ncclCommWindowDeregister");
}
#endif

#if NCCL_DOUBLE_VERSION >= 22803
ncclResult_t ncclAlltoAll(const void*, void*, size_t, ncclDataType_t, ncclComm_t comm, cudaStream_t) {
  return operation(comm, "all-to-all");
}
#endif

#if NCCL_DOUBLE_VERSION >= 22902
// The header with which this double is compiled may lack these functions.
ncclResult_t ncclPutSignal(const void*, size_t count, ncclDataType_t, int peer, ncclWindow_t window, size_t offset,
                           int signal, int context, unsigned int flags, ncclComm_t comm, cudaStream_t) {
  return signal != 0 || context != 0 || flags != 0 || window == nullptr
             ? misuse("a signal, context or flag that no version before 2.31 supports")
             : operation(comm, fmt::format("put {} bytes to {} at {}", count, peer, offset));
}
ncclResult_t ncclSignal(int peer, int signal, int context, unsigned int flags, ncclComm_t comm, cudaStream_t) {
  return signal != 0 || context != 0 || flags != 0
             ? misuse("a signal, context or flag that no version before 2.31 supports")
             : operation(comm, fmt::format("signal {}", peer));
}
ncclResult_t ncclWaitSignal(int count, commfuse::validate::NcclSignals* signals, ncclComm_t comm, cudaStream_t) {
  return count != 1 || signals->sigIdx != 0 || signals->ctx != 0
             ? misuse("a wait for a signal that no version before 2.31 supports")
             : operation(comm, fmt::format("wait for {} of {}", signals->opCnt, signals->peer));
}
#endif

}  // extern "C"
