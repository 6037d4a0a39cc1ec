// SPDX-License-Identifier: Apache-2.0
// The double of NCCL: libnccl.so.2. SOFTWARE_GPU_NCCL is the version that it reports, by default 2.30.7; a call of a
// function that this version lacks ends the process. Another thread issues groups of non-blocking communicators. A
// communicator ends, even when it is aborted, only after all graphs that hold its operations. The first message between
// two ranks connects them, which needs both ranks and an idle device. Operations of a communicator run in the order of
// issue. The operations of all communicators of a device do so too in any of three cases: before 2.26, without
// NCCL_LAUNCH_ORDER_IMPLICIT=1, or in graphs from 2.30 on.
#include <nccl.h>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <random>
#include <set>
#include <utility>

#include "tests/software_gpu/misuse.h"
#include "tests/software_gpu/nccl_ops.h"

using software_gpu::Bytes;
using software_gpu::Collective;
using software_gpu::Operation;
using software_gpu::Purpose;

namespace {

std::string variable(const char* name) {
  const char* text = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): as NCCL reads it
  return text == nullptr ? "" : text;
}

int version() {
  static const int code = [] {
    int major = 2;
    int minor = 30;
    int patch = 7;
    const std::string chosen = variable("SOFTWARE_GPU_NCCL");
    if (!chosen.empty() && std::sscanf(chosen.c_str(), "%d.%d.%d", &major, &minor, &patch) != 3) {
      software_gpu::misuse("SOFTWARE_GPU_NCCL is not a version, such as 2.28.9");
    }
    return NCCL_VERSION(major, minor, patch);
  }();
  return code;
}

void require_version(int first, const char* call) {
  software_gpu::check(version() >= first, fmt::format("{} is called, which NCCL {} lacks", call, version()));
}

std::mutex& mutex() {
  static auto& nccl_mutex = *new std::mutex;
  return nccl_mutex;
}
using Lock = std::unique_lock<std::mutex>;

std::set<ncclComm*>& communicators() {
  static auto& live = *new std::set<ncclComm*>;
  return live;
}

thread_local int depth = 0;
thread_local std::vector<Operation> group;

ncclResult_t refuse(ncclComm* comm, ncclResult_t why, std::string sentence) {
  if (comm != nullptr) {
    comm->last_error = std::move(sentence);
  }
  return why;
}

/// Returns the communicator's state, as ncclCommEnsureReady() does; refuses a call while another is in progress.
/// The caller must hold the mutex.
ncclResult_t ready(ncclComm* comm) {
  if (comm == nullptr || !communicators().contains(comm) || !comm->alive) {
    software_gpu::misuse("NCCL is called on a communicator that is gone");
  }
  if (comm->state == ncclInProgress) {
    return refuse(comm, ncclInvalidUsage, "the last call on the communicator is still in progress");
  }
  return comm->state;
}

void join(Lock& lock, ncclComm& comm) {
  if (comm.worker.joinable()) {
    std::thread worker = std::move(comm.worker);
    lock.unlock();
    worker.join();
    lock.lock();
  }
}

/// Runs `work` and returns its status, or, for a communicator that does not block, lets a thread run it.
template <class Work>
ncclResult_t run(Lock& lock, ncclComm& comm, Work work) {
  const auto run_and_end = [&comm, work] {
    ncclResult_t status = ncclSuccess;
    try {
      status = work();
    } catch (const software_gpu::Aborted&) {
      status = ncclInternalError;
    }
    const Lock inside(mutex());
    comm.state = status;
    return status;
  };
  join(lock, comm);
  comm.state = ncclInProgress;
  if (comm.blocks) {
    lock.unlock();
    return run_and_end();
  }
  comm.worker = std::thread([run_and_end] {
    software_gpu::dawdle();
    static_cast<void>(run_and_end());
  });
  return ncclInProgress;
}

ncclComm* new_communicator(const ncclConfig_t& config) {
  auto* created = new ncclComm;
  created->device = software_gpu::current_device();
  created->blocks = config.blocking != 0;
  communicators().insert(created);
  return created;
}

bool is_valid(const ncclConfig_t* config) {
  return config != nullptr && config->size == sizeof *config && config->magic == 0xcafebeef;
}

/// Tells all ranks which GPU each of them has, and refuses two ranks with the same GPU.
ncclResult_t introduce(ncclComm& comm) {
  const std::string mine = software_gpu::uuid_of(comm.device);
  Bytes bytes(mine.size());
  std::memcpy(bytes.data(), mine.data(), mine.size());
  const std::vector<Bytes> introductions = software_gpu::gather(comm, Purpose::introduction, bytes);
  if (std::set<Bytes>(introductions.begin(), introductions.end()).size() != introductions.size()) {
    return refuse(&comm, ncclInvalidUsage, "Duplicate GPU detected");
  }
  return ncclSuccess;
}

struct Member {
  std::int32_t color = 0;
  std::int32_t key = 0;
  std::int32_t rank = 0;
};

ncclResult_t split(ncclComm& parent, ncclComm& child, Member mine, std::uint64_t id, std::uint32_t number) {
  Bytes bytes(sizeof mine);
  std::memcpy(bytes.data(), &mine, sizeof mine);
  std::vector<Member> members;
  for (const Bytes& answer : software_gpu::gather(parent, Purpose::split, bytes)) {
    Member member;
    std::memcpy(&member, answer.data(), sizeof member);
    if (member.color == mine.color) {
      members.push_back(member);
    }
  }
  std::ranges::sort(
      members, [](const Member& a, const Member& b) { return std::pair(a.key, a.rank) < std::pair(b.key, b.rank); });
  for (const Member& member : members) {
    child.rank = member.rank == mine.rank ? static_cast<int>(child.members.size()) : child.rank;
    child.members.push_back(parent.members[static_cast<std::size_t>(member.rank)]);
  }
  const Lock lock(mutex());  // puts look up the communicator to which they belong
  child.mesh = parent.mesh;
  child.parent = &parent;
  child.id = (id * 1000003U + number) * 1000003U + static_cast<std::uint64_t>(mine.color) + 1U;
  return ncclSuccess;
}

/// Connects a communicator before its first message to or from a peer, which needs the peer's host and memory, and
/// before its first collective, which needs those of all members.
ncclResult_t connect(ncclComm& comm, const std::vector<Operation>& operations) {
  std::vector<std::pair<int, bool>> missing;
  bool needs_rings = false;
  {
    const Lock lock(mutex());
    for (const Operation& operation : operations) {
      const bool is_message = operation.kind != Operation::Kind::collective;
      const std::pair way(operation.peer, operation.kind == Operation::Kind::send);
      if (is_message && operation.peer != comm.rank && std::ranges::find(comm.connected, way) == comm.connected.end()) {
        comm.connected.push_back(way);
        missing.push_back(way);
      }
      needs_rings = needs_rings || (!is_message && !std::exchange(comm.has_rings, true));
    }
  }
  if (missing.empty() && !needs_rings) {
    return ncclSuccess;
  }
  if (software_gpu::wait_to_allocate_on(comm.device, "NCCL's first connection") != cudaSuccess) {
    return refuse(&comm, ncclUnhandledCudaError, "no memory for a connection");
  }
  for (const auto& [peer, sends] : missing) {
    if (sends) {
      comm.mesh->send(comm.members[static_cast<std::size_t>(peer)], {comm.id, Purpose::connection}, {});
    } else {
      comm.mesh->send(comm.members[static_cast<std::size_t>(peer)],
                      {comm.id | std::uint64_t{1} << 63U, Purpose::connection}, {});
    }
  }
  for (const auto& [peer, sends] : missing) {
    const std::uint64_t way = sends ? comm.id | std::uint64_t{1} << 63U : comm.id;
    static_cast<void>(
        comm.mesh->receive(comm.members[static_cast<std::size_t>(peer)], {way, Purpose::connection}, comm.aborted));
  }
  if (needs_rings) {
    static_cast<void>(software_gpu::gather(comm, Purpose::registration, {}));
  }
  return ncclSuccess;
}

/// Returns the line that orders the work of all communicators of a device.
std::shared_ptr<software_gpu::Line> line_of_device(int device) {
  static auto& lines = *new std::map<int, std::shared_ptr<software_gpu::Line>>;
  const Lock lock(mutex());
  std::shared_ptr<software_gpu::Line>& line = lines[device];
  if (line == nullptr) {
    line = std::make_shared<software_gpu::Line>();
  }
  return line;
}

std::shared_ptr<software_gpu::Line> line_of(const ncclComm& comm, cudaStream_t stream) {
  constexpr int first_with_implicit_order = 22600;
  constexpr int first_with_ordered_graphs = 23000;
  const bool may_overlap = version() >= first_with_implicit_order && variable("NCCL_LAUNCH_ORDER_IMPLICIT") == "1";
  const bool ordered = software_gpu::is_captured(stream) && version() >= first_with_ordered_graphs;
  return may_overlap && !ordered ? comm.line : line_of_device(comm.device);
}

/// True if the memory that an operation reads and writes is on the device.
bool is_on_device(const Operation& operation, int members) {
  const std::size_t bytes = operation.count * software_gpu::size_of(operation.type);
  const std::size_t whole = bytes * static_cast<std::size_t>(members);
  const auto is_valid_memory = [&](const void* at, std::size_t size) {
    return size == 0 || software_gpu::is_device_memory(at, size, operation.comm->device);
  };
  switch (operation.kind) {
    case Operation::Kind::send: return is_valid_memory(operation.from, bytes);
    case Operation::Kind::receive: return is_valid_memory(operation.to, bytes);
    case Operation::Kind::collective: break;
  }
  switch (operation.collective) {
    case Collective::all_gather: return is_valid_memory(operation.from, bytes) && is_valid_memory(operation.to, whole);
    case Collective::reduce_scatter:
      return is_valid_memory(operation.from, whole) && is_valid_memory(operation.to, bytes);
    case Collective::all_reduce: return is_valid_memory(operation.from, bytes) && is_valid_memory(operation.to, bytes);
    case Collective::all_to_all: return is_valid_memory(operation.from, whole) && is_valid_memory(operation.to, whole);
  }
  return false;
}

/// Runs operations when a stream reaches them.
cudaError_t carry_out(ncclComm& comm, const std::vector<Operation>& operations) {
  for (const Operation& operation : operations) {
    if (!comm.aborted && !is_on_device(operation, software_gpu::ranks_of(comm))) {
      return cudaErrorIllegalAddress;
    }
  }
  if (!comm.aborted) {
    software_gpu::run_operations(comm, operations);
  }
  return cudaSuccess;
}

/// Returns a reference that a graph keeps for as long as it exists; null outside captures.
std::shared_ptr<ncclComm> graph_reference(ncclComm& comm, cudaStream_t stream) {
  if (!software_gpu::is_captured(stream)) {
    return nullptr;
  }
  ++comm.captured;
  return {&comm, [](ncclComm* captured_from) { --captured_from->captured; }};
}

/// Waits for the graphs that hold operations of an aborted communicator. Ends the process if one of them stays, because
/// NCCL would wait forever.
void wait_for_graphs(const ncclComm& comm) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point deadline = Clock::now() + std::chrono::milliseconds(software_gpu::settings().patience_ms);
  while (comm.captured > 0) {
    software_gpu::check(Clock::now() < deadline, "a communicator ends before a graph that holds its operations");
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

ncclResult_t issue(ncclComm& comm, const std::vector<Operation>& operations) {
  if (const ncclResult_t status = connect(comm, operations); status != ncclSuccess) {
    return status;
  }
  cudaStream_t stream = operations.front().stream;
  const bool is_message = operations.front().kind != Operation::Kind::collective;
  const int counted = software_gpu::is_captured(stream) ? 0 : 1;
  comm.operations += counted;
  const cudaError_t status =
      software_gpu::enqueue(stream, {.kind = software_gpu::WorkKind::kernel,
                                     .name = is_message ? "ncclDevKernel_SendRecv" : "ncclDevKernel_Collective",
                                     .ctas = 4,
                                     .run =
                                         [&comm, operations, counted, reference = graph_reference(comm, stream)] {
                                           const cudaError_t ended = carry_out(comm, operations);
                                           comm.operations -= counted;
                                           return ended;
                                         },
                                     .line = line_of(comm, stream)});
  if (status != cudaSuccess) {
    comm.operations -= counted;
    return refuse(&comm, ncclUnhandledCudaError, cudaGetErrorString(status));
  }
  return ncclSuccess;
}

/// Returns an error if the calls of a group cannot be one group of this double, or if a peer or a stream is wrong.
ncclResult_t refusal(const std::vector<Operation>& operations) {
  const Operation& first = operations.front();
  for (const Operation& operation : operations) {
    if (operation.comm != first.comm || operation.stream != first.stream ||
        (operation.kind == Operation::Kind::collective && operations.size() > 1)) {
      return refuse(first.comm, ncclInvalidUsage,
                    "the double accepts only groups of messages of one communicator on one stream");
    }
    if (operation.kind != Operation::Kind::collective &&
        (operation.peer < 0 || operation.peer >= software_gpu::ranks_of(*operation.comm))) {
      return refuse(first.comm, ncclInvalidArgument, "a peer is not a rank of the communicator");
    }
    if (software_gpu::device_of(operation.stream) != first.comm->device) {
      return refuse(first.comm, ncclInvalidUsage, "a stream belongs to another device than the communicator");
    }
  }
  return ncclSuccess;
}

ncclResult_t launch(const std::vector<Operation>& operations) {
  if (operations.empty()) {
    return ncclSuccess;
  }
  Lock lock(mutex());
  ncclComm& comm = *operations.front().comm;
  if (const ncclResult_t status = ready(&comm); status != ncclSuccess) {
    return status;
  }
  if (const ncclResult_t status = refusal(operations); status != ncclSuccess) {
    return status;
  }
  return run(lock, comm, [&comm, operations] { return issue(comm, operations); });
}

ncclResult_t add(Operation operation) {
  {
    const Lock lock(mutex());
    if (const ncclResult_t status = ready(operation.comm); status != ncclSuccess) {
      return status;
    }
  }
  group.push_back(operation);
  return depth > 0 ? ncclSuccess : launch(std::exchange(group, {}));
}

ncclResult_t add_collective(Collective kind, const void* from, void* to, std::size_t count, ncclDataType_t type,
                            ncclComm* comm, cudaStream_t stream) {
  return add({.kind = Operation::Kind::collective,
              .collective = kind,
              .from = from,
              .to = to,
              .count = count,
              .type = type,
              .comm = comm,
              .stream = stream});
}

/// Registers memory; all members must register equal sizes in the same order.
ncclResult_t enroll(ncclComm* comm, void* at, std::size_t bytes, bool window) {
  Lock lock(mutex());
  if (const ncclResult_t status = ready(comm); status != ncclSuccess) {
    return status;
  }
  if (!software_gpu::is_device_memory(at, bytes, comm->device)) {
    return refuse(comm, ncclInvalidArgument, "registered memory is not memory of the device");
  }
  if (window &&
      (reinterpret_cast<std::uintptr_t>(at) % software_gpu::page_bytes != 0 || bytes % software_gpu::page_bytes != 0)) {
    return refuse(comm, ncclInvalidArgument, "a window is not aligned to 4096 bytes");
  }
  comm->registered.push_back({static_cast<std::byte*>(at), bytes, ++comm->registrations, window});
  return run(lock, *comm, [comm, bytes] {
    Bytes mine(sizeof bytes);
    std::memcpy(mine.data(), &bytes, sizeof bytes);
    for (const Bytes& sizes : software_gpu::gather(*comm, Purpose::registration, mine)) {
      software_gpu::check(sizes == mine, "ranks register memory of different sizes with one communicator");
    }
    return ncclSuccess;
  });
}

ncclResult_t withdraw(ncclComm* comm, void* handle) {
  const Lock lock(mutex());
  if (const ncclResult_t status = ready(comm); status != ncclSuccess) {
    return status;
  }
  const auto entry = std::ranges::find(comm->registered, handle, &ncclComm::Registered::at);
  if (entry == comm->registered.end()) {
    return refuse(comm, ncclInvalidArgument, "the handle is not a registration");
  }
  comm->registered.erase(entry);
  return ncclSuccess;
}

/// Returns the window in which memory lies; null if it lies in none.
const ncclComm::Registered* window_of(const ncclComm& comm, const void* at, std::size_t bytes) {
  const auto* begin = static_cast<const std::byte*>(at);
  const auto window = std::ranges::find_if(comm.registered, [&](const ncclComm::Registered& entry) {
    return entry.is_window && begin >= entry.at && begin + bytes <= entry.at + entry.bytes;
  });
  return window == comm.registered.end() ? nullptr : &*window;
}

/// Returns the error that NCCL reports for a one-sided call with these arguments, or on a communicator without a
/// window. The caller must hold the mutex.
ncclResult_t one_sided_refusal(ncclComm* comm, int peer, int signal, int context, cudaStream_t stream) {
  if (const ncclResult_t status = ready(comm); status != ncclSuccess) {
    return status;
  }
  if (peer < 0 || peer >= software_gpu::ranks_of(*comm) || signal != 0 || context != 0) {
    return refuse(comm, ncclInvalidArgument, "the communicator has no such peer, signal or context");
  }
  if (std::ranges::none_of(comm->registered, &ncclComm::Registered::is_window)) {
    return refuse(comm, ncclInvalidUsage, "a signal is used before a symmetric window is registered");
  }
  if (depth > 0 || software_gpu::is_captured(stream) || software_gpu::device_of(stream) != comm->device) {
    return refuse(comm, ncclInvalidUsage, "the double accepts signals only outside groups and captures, on its device");
  }
  return ncclSuccess;
}

/// Adds to the stream a put, a signal or a wait, which uses no multiprocessor. Before 2.30, the first one of a
/// communicator involves all ranks.
template <class Work>
ncclResult_t issue_one_sided(Lock& lock, ncclComm& comm, cudaStream_t stream, const char* name, Work work) {
  const bool is_first = !std::exchange(comm.has_puts, true);
  return run(lock, comm, [=, &comm] {
    if (is_first && version() < 23000) {
      static_cast<void>(software_gpu::gather(comm, Purpose::registration, {}));
    }
    ++comm.operations;
    const cudaError_t status = software_gpu::enqueue(stream, {.kind = software_gpu::WorkKind::other,
                                                              .name = name,
                                                              .run =
                                                                  [&comm, work] {
                                                                    if (!comm.aborted) {
                                                                      work();
                                                                    }
                                                                    --comm.operations;
                                                                    return cudaSuccess;
                                                                  },
                                                              .line = line_of(comm, stream)});
    if (status != cudaSuccess) {
      --comm.operations;
      return refuse(&comm, ncclUnhandledCudaError, cudaGetErrorString(status));
    }
    return ncclSuccess;
  });
}

/// Passes puts of other ranks to the communicators to which they belong.
void listen(software_gpu::Mesh& mesh) {
  mesh.listen([&mesh](int peer, std::uint64_t id, const Bytes& bytes) {
    const Lock lock(mutex());
    for (ncclComm* comm : communicators()) {
      if (comm->alive && comm->mesh.get() == &mesh && comm->id == id) {
        const auto member = std::ranges::find(comm->members, peer) - comm->members.begin();
        software_gpu::take_put(*comm, static_cast<int>(member), bytes);
        return;
      }
    }
  });
}

}  // namespace

extern "C" {

ncclResult_t ncclGetVersion(int* code) {
  *code = version();
  return ncclSuccess;
}

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  *id = {};
  std::random_device random;
  const std::string token = fmt::format("{:08x}{:08x}", random(), random());
  std::copy(token.begin(), token.end(), id->internal);
  return ncclSuccess;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int ranks, ncclUniqueId id, int rank, ncclConfig_t* config) {
  if (!is_valid(config) || ranks < 1 || rank < 0 || rank >= ranks) {
    return ncclInvalidArgument;
  }
  Lock lock(mutex());
  ncclComm* created = new_communicator(*config);
  *comm = created;
  created->rank = rank;
  for (int i = 0; i < ranks; ++i) {
    created->members.push_back(i);
  }
  id.internal[NCCL_UNIQUE_ID_BYTES - 1] = '\0';
  const std::string token = id.internal;
  return run(lock, *created, [created, token, rank, ranks] {
    const auto mesh = std::make_shared<software_gpu::Mesh>(token, rank, ranks, created->aborted);
    listen(*mesh);
    {
      const Lock inside(mutex());
      created->mesh = mesh;
    }
    return introduce(*created);
  });
}

ncclResult_t ncclCommSplit(ncclComm_t comm, int color, int key, ncclComm_t* created, ncclConfig_t* config) {
  Lock lock(mutex());
  *created = nullptr;
  if (const ncclResult_t status = ready(comm); status != ncclSuccess) {
    return status;
  }
  if (!is_valid(config) || color < 0) {
    return refuse(comm, ncclInvalidArgument, "a communicator is split without a configuration or a color");
  }
  ncclComm* child = new_communicator(*config);
  child->device = comm->device;
  if (config->splitShare == 1) {
    child->line = comm->line;
  }
  const std::uint32_t number = ++comm->splits;
  const Member mine{.color = color, .key = key, .rank = comm->rank};
  return run(lock, *comm, [=] {
    const ncclResult_t status = split(*comm, *child, mine, comm->id, number);
    *created = child;
    return status;
  });
}

ncclResult_t ncclCommFinalize(ncclComm_t comm) {
  Lock lock(mutex());
  if (const ncclResult_t status = ready(comm); status != ncclSuccess) {
    return status;
  }
  return run(lock, *comm, [comm] {
    while (comm->operations > 0 || comm->captured > 0) {
      if (comm->aborted) {
        wait_for_graphs(*comm);
        throw software_gpu::Aborted{};
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    comm->finalized = true;
    return ncclSuccess;
  });
}

ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  Lock lock(mutex());
  if (const ncclResult_t status = ready(comm); status != ncclSuccess) {
    return status;
  }
  software_gpu::check(comm->finalized, "a communicator is destroyed before it is finalized");
  software_gpu::check(comm->registered.empty(), "a communicator is destroyed while memory is registered with it");
  software_gpu::check(comm->mesh->left_over(comm->id) == 0,
                      "a communicator is destroyed with messages that nobody received");
  software_gpu::check(comm->raised == comm->awaited, "a communicator is destroyed with signals that nobody waited for");
  join(lock, *comm);
  comm->alive = false;
  comm->mesh = nullptr;
  return ncclSuccess;
}

ncclResult_t ncclCommAbort(ncclComm_t comm) {
  Lock lock(mutex());
  if (comm == nullptr || !communicators().contains(comm) || !comm->alive) {
    software_gpu::misuse("ncclCommAbort of a communicator that is gone");
  }
  comm->aborted = true;
  if (comm->mesh != nullptr) {
    comm->mesh->wake();
  }
  join(lock, *comm);
  lock.unlock();
  wait_for_graphs(*comm);
  lock.lock();
  comm->alive = false;
  return ncclSuccess;
}

ncclResult_t ncclCommCount(ncclComm_t comm, int* count) {
  const Lock lock(mutex());
  const ncclResult_t status = ready(comm);
  *count = software_gpu::ranks_of(*comm);
  return status;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* error) {
  const Lock lock(mutex());
  if (comm == nullptr || !communicators().contains(comm) || !comm->alive) {
    software_gpu::misuse("ncclCommGetAsyncError of a communicator that is gone");
  }
  *error = comm->state;
  return ncclSuccess;
}

const char* ncclGetErrorString(ncclResult_t result) {
  constexpr std::array names{
      "no error",         "unhandled cuda error", "unhandled system error", "internal error",
      "invalid argument", "invalid usage",        "remote process exited",  "NCCL operation in progress"};
  return names.at(static_cast<std::size_t>(result));
}

const char* ncclGetLastError(ncclComm_t comm) {
  const Lock lock(mutex());
  return comm == nullptr || !communicators().contains(comm) ? "" : comm->last_error.c_str();
}

ncclResult_t ncclGroupStart() {
  ++depth;
  return ncclSuccess;
}

ncclResult_t ncclGroupEnd() {
  if (depth == 0) {
    return ncclInvalidUsage;
  }
  return --depth > 0 ? ncclSuccess : launch(std::exchange(group, {}));
}

ncclResult_t ncclSend(const void* from, std::size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  return add({.kind = Operation::Kind::send,
              .from = from,
              .count = count,
              .type = type,
              .peer = peer,
              .comm = comm,
              .stream = stream});
}

ncclResult_t ncclRecv(void* to, std::size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  return add({.kind = Operation::Kind::receive,
              .to = to,
              .count = count,
              .type = type,
              .peer = peer,
              .comm = comm,
              .stream = stream});
}

ncclResult_t ncclAllGather(const void* from, void* to, std::size_t count, ncclDataType_t type, ncclComm_t comm,
                           cudaStream_t stream) {
  return add_collective(Collective::all_gather, from, to, count, type, comm, stream);
}

ncclResult_t ncclReduceScatter(const void* from, void* to, std::size_t count, ncclDataType_t type, ncclRedOp_t op,
                               ncclComm_t comm, cudaStream_t stream) {
  return op != ncclSum ? ncclInvalidArgument
                       : add_collective(Collective::reduce_scatter, from, to, count, type, comm, stream);
}

ncclResult_t ncclAllReduce(const void* from, void* to, std::size_t count, ncclDataType_t type, ncclRedOp_t op,
                           ncclComm_t comm, cudaStream_t stream) {
  return op != ncclSum ? ncclInvalidArgument
                       : add_collective(Collective::all_reduce, from, to, count, type, comm, stream);
}

ncclResult_t ncclAlltoAll(const void* from, void* to, std::size_t count, ncclDataType_t type, ncclComm_t comm,
                          cudaStream_t stream) {
  require_version(22803, "ncclAlltoAll");
  return add_collective(Collective::all_to_all, from, to, count, type, comm, stream);
}

ncclResult_t ncclMemAlloc(void** at, std::size_t bytes) {
  require_version(21900, "ncclMemAlloc");
  return cudaMalloc(at, bytes) == cudaSuccess ? ncclSuccess : ncclUnhandledCudaError;
}

ncclResult_t ncclMemFree(void* at) {
  require_version(21900, "ncclMemFree");
  {
    const Lock lock(mutex());
    for (const ncclComm* comm : communicators()) {
      software_gpu::check(
          !comm->alive || std::ranges::find(comm->registered, at, &ncclComm::Registered::at) == comm->registered.end(),
          "memory is freed that is registered with a communicator");
    }
  }
  return cudaFree(at) == cudaSuccess ? ncclSuccess : ncclUnhandledCudaError;
}

ncclResult_t ncclCommRegister(ncclComm_t comm, void* at, std::size_t bytes, void** handle) {
  require_version(21900, "ncclCommRegister");
  *handle = at;
  return enroll(comm, at, bytes, false);
}

ncclResult_t ncclCommDeregister(ncclComm_t comm, void* handle) {
  require_version(21900, "ncclCommDeregister");
  return withdraw(comm, handle);
}

ncclResult_t ncclCommWindowRegister(ncclComm_t comm, void* at, std::size_t bytes, ncclWindow_t* window, int flags) {
  require_version(22700, "ncclCommWindowRegister");
  *window = static_cast<ncclWindow_t>(at);
  return flags != NCCL_WIN_COLL_SYMMETRIC ? ncclInvalidArgument : enroll(comm, at, bytes, true);
}

ncclResult_t ncclCommWindowDeregister(ncclComm_t comm, ncclWindow_t window) {
  require_version(22700, "ncclCommWindowDeregister");
  return withdraw(comm, window);
}

ncclResult_t ncclPutSignal(const void* from, std::size_t count, ncclDataType_t type, int peer, ncclWindow_t window,
                           std::size_t offset, int signal, int context, unsigned int flags, ncclComm_t comm,
                           cudaStream_t stream) {
  require_version(22902, "ncclPutSignal");
  Lock lock(mutex());
  if (const ncclResult_t status = one_sided_refusal(comm, peer, signal, context, stream); status != ncclSuccess) {
    return status;
  }
  const std::size_t bytes = count * software_gpu::size_of(type);
  const auto peer_window = std::ranges::find(comm->registered, static_cast<void*>(window), &ncclComm::Registered::at);
  if (flags != 0 || peer_window == comm->registered.end() || !peer_window->is_window ||
      offset + bytes > peer_window->bytes) {
    return refuse(comm, ncclInvalidArgument, "a put goes beyond the window of its peer");
  }
  if (window_of(*comm, from, bytes) == nullptr) {
    return refuse(comm, ncclInvalidArgument, "the source of a put is not in a symmetric window");
  }
  return issue_one_sided(lock, *comm, stream, "ncclPutSignal", [=, number = peer_window->number] {
    software_gpu::put(*comm, peer, number, offset, from, bytes);
  });
}

ncclResult_t ncclSignal(int peer, int signal, int context, unsigned int flags, ncclComm_t comm, cudaStream_t stream) {
  require_version(22902, "ncclSignal");
  Lock lock(mutex());
  if (const ncclResult_t status = one_sided_refusal(comm, peer, signal, context, stream); status != ncclSuccess) {
    return status;
  }
  return flags != 0 ? ncclInvalidArgument : issue_one_sided(lock, *comm, stream, "ncclSignal", [=] {
    software_gpu::put(*comm, peer, 0, 0, nullptr, 0);
  });
}

ncclResult_t ncclWaitSignal(int count, ncclWaitSignalDesc_t* signals, ncclComm_t comm, cudaStream_t stream) {
  require_version(22902, "ncclWaitSignal");
  Lock lock(mutex());
  if (count != 1) {
    return refuse(comm, ncclInvalidArgument, "the double waits for signals of one peer at a time");
  }
  const int peer = signals->peer;
  if (const ncclResult_t status = one_sided_refusal(comm, peer, signals->sigIdx, signals->ctx, stream);
      status != ncclSuccess) {
    return status;
  }
  if (signals->opCnt <= 0) {
    return refuse(comm, ncclInvalidArgument, "ncclWaitSignal waits for no signal");
  }
  const std::uint64_t until = comm->awaited[peer] += static_cast<std::uint64_t>(signals->opCnt);
  return issue_one_sided(lock, *comm, stream, "ncclWaitSignal",
                         [=] { software_gpu::wait_for_signals(*comm, peer, until); });
}

}  // extern "C"
