// SPDX-License-Identifier: Apache-2.0
#include "tests/software_gpu/nccl_ops.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>

#include "tests/software_gpu/misuse.h"

namespace software_gpu {

namespace {

Bytes bytes_at(const void* from, std::size_t count) {
  const auto* begin = static_cast<const std::byte*>(from);
  return {begin, begin + count};
}

/// Accepts zero bytes too: a part of an all-reduce with fewer elements than ranks is empty.
void put(void* to, const Bytes& bytes) { std::ranges::copy(bytes, static_cast<std::byte*>(to)); }

/// Sent by a receiver when it is ready, and by members of a collective before they begin.
struct Header {
  std::uint64_t count = 0;
  std::int32_t collective = 0;
  std::int32_t type = 0;
  friend bool operator==(const Header&, const Header&) = default;
};

Header header_in(const Bytes& bytes) {
  Header header;
  check(bytes.size() == sizeof header, "a message of the double of NCCL is damaged");
  std::memcpy(&header, bytes.data(), sizeof header);
  return header;
}

int peer_of(const ncclComm& comm, int member) { return comm.members[static_cast<std::size_t>(member)]; }

void send(ncclComm& comm, int member, Purpose purpose, const Bytes& bytes) {
  comm.mesh->send(peer_of(comm, member), {comm.id, purpose}, bytes);
}
Bytes receive(ncclComm& comm, int member, Purpose purpose) {
  return comm.mesh->receive(peer_of(comm, member), {comm.id, purpose}, comm.aborted);
}

/// Announces all receives before any send waits for its receiver, as one kernel for all messages does.
void run_messages(ncclComm& comm, const std::vector<Operation>& operations) {
  for (const Operation& operation : operations) {
    if (operation.kind == Operation::Kind::receive) {
      const Header header{.count = operation.count * size_of(operation.type)};
      send(comm, operation.peer, Purpose::ready, bytes_at(&header, sizeof header));
    }
  }
  for (const Operation& operation : operations) {
    if (operation.kind != Operation::Kind::send) {
      continue;
    }
    const Header expected = header_in(receive(comm, operation.peer, Purpose::ready));
    const std::size_t bytes = operation.count * size_of(operation.type);
    check(expected.count == bytes, fmt::format("rank {} sends {} bytes to rank {}, which receives {}", comm.rank, bytes,
                                               operation.peer, expected.count));
    send(comm, operation.peer, Purpose::message, bytes_at(operation.from, bytes));
  }
  for (const Operation& operation : operations) {
    if (operation.kind == Operation::Kind::receive) {
      const Bytes bytes = receive(comm, operation.peer, Purpose::message);
      put(operation.to, bytes);
    }
  }
}

template <class Element, class Read, class Round>
void add_elements(Bytes& sums, const std::byte* more, const Read& read, const Round& round) {
  for (std::size_t at = 0; at + sizeof(Element) <= sums.size(); at += sizeof(Element)) {
    Element left;
    Element right;
    std::memcpy(&left, sums.data() + at, sizeof left);
    std::memcpy(&right, more + at, sizeof right);
    left = round(read(left) + read(right));
    std::memcpy(sums.data() + at, &left, sizeof left);
  }
}

/// Adds `more` to the sums, which are rounded to the dtype at every hop of a ring, as in NCCL.
void add(Bytes& sums, const std::byte* more, ncclDataType_t type) {
  switch (type) {
    case ncclBfloat16: add_elements<__nv_bfloat16>(sums, more, __bfloat162float, __float2bfloat16_rn); return;
    case ncclFloat16: add_elements<__half>(sums, more, __half2float, __float2half_rn); return;
    case ncclFloat32:
      add_elements<float>(
          sums, more, [](float x) { return x; }, [](float x) { return x; });
      return;
    case ncclUint8: misuse("NCCL is called to sum bytes");
  }
}

class Ring {
 public:
  explicit Ring(ncclComm& comm) : comm_(comm), n_(ranks_of(comm)) {}

  /// Sends to the next rank and receives from the previous rank.
  Bytes pass(const Bytes& bytes) {
    send(comm_, (comm_.rank + 1) % n_, Purpose::collective, bytes);
    return receive(comm_, (comm_.rank + n_ - 1) % n_, Purpose::collective);
  }

  void gather(const Bytes& mine, std::byte* to) {
    Bytes part = mine;
    for (int step = 0;; ++step) {
      const int owner = (comm_.rank - step + n_) % n_;
      put(to + static_cast<std::size_t>(owner) * part.size(), part);
      if (step == n_ - 1) {
        return;
      }
      part = pass(part);
    }
  }

  /// `begins` holds the byte at which every rank's part begins, and the end of the last part. The sum of a part starts
  /// at the rank after its owner.
  Bytes reduce(const std::byte* from, const std::vector<std::size_t>& begins, ncclDataType_t type) {
    const auto mine = [&](int part) {
      const auto i = static_cast<std::size_t>(part);
      return bytes_at(from + begins[i], begins[i + 1] - begins[i]);
    };
    int part = (comm_.rank + n_ - 1) % n_;
    Bytes sums = mine(part);
    for (int step = 1; step < n_; ++step) {
      sums = pass(sums);
      part = (part + n_ - 1) % n_;
      add(sums, mine(part).data(), type);
    }
    return sums;
  }

 private:
  ncclComm& comm_;
  int n_;
};

std::vector<std::size_t> equal_parts(std::size_t elements, int parts, std::size_t size) {
  std::vector<std::size_t> begins;
  for (int i = 0; i <= parts; ++i) {
    begins.push_back(elements * static_cast<std::size_t>(i) / static_cast<std::size_t>(parts) * size);
  }
  return begins;
}

void run_all_to_all(ncclComm& comm, const Operation& operation) {
  const std::size_t bytes = operation.count * size_of(operation.type);
  for (int peer = 0; peer < ranks_of(comm); ++peer) {
    const auto* from = static_cast<const std::byte*>(operation.from) + static_cast<std::size_t>(peer) * bytes;
    send(comm, peer, Purpose::collective, bytes_at(from, bytes));
  }
  for (int peer = 0; peer < ranks_of(comm); ++peer) {
    const Bytes part = receive(comm, peer, Purpose::collective);
    put(static_cast<std::byte*>(operation.to) + static_cast<std::size_t>(peer) * bytes, part);
  }
}

void run_all_reduce(ncclComm& comm, const Operation& operation) {
  const int n = ranks_of(comm);
  const std::vector<std::size_t> begins = equal_parts(operation.count, n, size_of(operation.type));
  Ring ring(comm);
  Bytes part = ring.reduce(static_cast<const std::byte*>(operation.from), begins, operation.type);
  for (int step = 0;; ++step) {
    const auto owner = static_cast<std::size_t>((comm.rank - step + n) % n);
    put(static_cast<std::byte*>(operation.to) + begins[owner], part);
    if (step == n - 1) {
      return;
    }
    part = ring.pass(part);
  }
}

const char* name_of(std::int32_t collective) {
  constexpr const char* names[] = {"an all-gather", "a reduce-scatter", "an all-reduce", "an all-to-all"};
  return names[collective];
}

void run_collective(ncclComm& comm, const Operation& operation) {
  Ring ring(comm);
  const Header mine{
      .count = operation.count, .collective = static_cast<std::int32_t>(operation.collective), .type = operation.type};
  const Header before = header_in(ring.pass(bytes_at(&mine, sizeof mine)));
  check(mine == before, fmt::format("rank {} runs {} of {} elements where the rank before runs {} of {}", comm.rank,
                                    name_of(mine.collective), mine.count, name_of(before.collective), before.count));
  const std::size_t size = size_of(operation.type);
  const auto* from = static_cast<const std::byte*>(operation.from);
  switch (operation.collective) {
    case Collective::all_gather:
      ring.gather(bytes_at(from, operation.count * size), static_cast<std::byte*>(operation.to));
      return;
    case Collective::reduce_scatter: {
      const auto n = static_cast<std::size_t>(ranks_of(comm));
      const Bytes sums = ring.reduce(from, equal_parts(operation.count * n, ranks_of(comm), size), operation.type);
      put(operation.to, sums);
      return;
    }
    case Collective::all_reduce: run_all_reduce(comm, operation); return;
    case Collective::all_to_all: run_all_to_all(comm, operation); return;
  }
}

}  // namespace

std::size_t size_of(ncclDataType_t type) {
  switch (type) {
    case ncclUint8: return 1;
    case ncclFloat16:
    case ncclBfloat16: return 2;
    case ncclFloat32: return 4;
  }
  misuse("NCCL is given a dtype that it does not have");
}

void run_operations(ncclComm& comm, const std::vector<Operation>& operations) {
  try {
    if (operations.front().kind == Operation::Kind::collective) {
      run_collective(comm, operations.front());
    } else {
      run_messages(comm, operations);
    }
  } catch (const Aborted&) {  // the kernel ends with its output incomplete
  }
}

namespace {

/// Precedes the bytes of a put.
struct PutHeader {
  std::uint64_t window = 0;
  std::uint64_t offset = 0;
};

}  // namespace

void put(ncclComm& comm, int peer, std::uint64_t window, std::size_t offset, const void* from, std::size_t bytes) {
  const PutHeader header{window, offset};
  Bytes message = bytes_at(&header, sizeof header);
  const Bytes data = bytes == 0 ? Bytes{} : bytes_at(from, bytes);
  message.insert(message.end(), data.begin(), data.end());
  send(comm, peer, Purpose::put, message);
}

void take_put(ncclComm& comm, int member, const Bytes& bytes) {
  PutHeader header;
  check(bytes.size() >= sizeof header, "a put of the double of NCCL is damaged");
  std::memcpy(&header, bytes.data(), sizeof header);
  const std::size_t size = bytes.size() - sizeof header;
  if (size > 0) {
    const auto window = std::ranges::find(comm.registered, header.window, &ncclComm::Registered::number);
    check(window != comm.registered.end() && window->is_window && header.offset + size <= window->bytes,
          fmt::format("rank {} puts into a window that rank {} does not have", member, comm.rank));
    std::memcpy(window->at + header.offset, bytes.data() + sizeof header, size);
  }
  const std::lock_guard lock(comm.signal_mutex);
  ++comm.raised[member];
  comm.signal_changed.notify_all();
}

void wait_for_signals(ncclComm& comm, int peer, std::uint64_t count) {
  std::unique_lock lock(comm.signal_mutex);
  while (!comm.aborted && comm.raised[peer] < count) {
    comm.signal_changed.wait_for(lock, std::chrono::milliseconds(2));
  }
}

Bytes exchange(ncclComm& comm, int to, int from, Purpose purpose, const Bytes& bytes) {
  send(comm, to, purpose, bytes);
  return receive(comm, from, purpose);
}

std::vector<Bytes> gather(ncclComm& comm, Purpose purpose, const Bytes& bytes) {
  std::vector<Bytes> gathered;
  for (int member = 0; member < ranks_of(comm); ++member) {
    send(comm, member, purpose, bytes);
  }
  for (int member = 0; member < ranks_of(comm); ++member) {
    gathered.push_back(receive(comm, member, purpose));
  }
  return gathered;
}

}  // namespace software_gpu
