// SPDX-License-Identifier: Apache-2.0
// Memory of all ranks that every rank has opened. It is lent to one executor after another, because opening it takes
// time and needs all ranks.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

#include "validate/cuda/peers.h"

namespace commfuse::validate {

/// Memory that an executor needs on every rank.
struct PeerSize {
  std::int64_t flags = 0;
  Bytes data;
};

/// Memory of one size on every rank: flags first, then data. Flags keep their values from one borrower to the next.
/// Each borrower continues counting from them, so that it never mistakes an old value for a new one.
struct PeerWindow {
  PeerSize size;
  std::vector<Address> at;   ///< Addresses by rank, in this process.
  FlagValue iterations = 0;  ///< Iterations of all borrowers so far, identical on all ranks.
  FlagValue barriers = 0;    ///< Barriers of all borrowers so far, identical on all ranks.
  bool is_lent = false;

  [[nodiscard]] Address flag(int rank, std::int64_t number) const {
    return at[static_cast<std::size_t>(rank)] + static_cast<Address>(number * flag_bytes);
  }
  [[nodiscard]] Address data(int rank) const { return flag(rank, size.flags); }
};

class PeerWindows {
 public:
  /// Returns every rank's key, by rank, once all ranks have provided theirs. Throws if a rank has ended.
  using Exchange = std::function<std::vector<MemoryKey>(const MemoryKey& mine)>;

  /// `peers` must outlive the windows.
  PeerWindows(Peers& peers, int rank, int ranks, Exchange exchange);
  PeerWindows(const PeerWindows&) = delete;
  PeerWindows& operator=(const PeerWindows&) = delete;
  /// Closes the memory of other ranks and then frees this rank's memory, together with all ranks. After a failure frees
  /// nothing, because another rank may still be copying.
  ~PeerWindows();

  /// Returns a window of at least `size`. All ranks must request the same sizes, and end their use, in the same order.
  /// Before it opens a new window, gives back those that are free but too small. Must not be called under a closed
  /// gate. Throws std::runtime_error once a window was abandoned: its flags let every wait pass, and other ranks may
  /// still copy into it.
  PeerWindow& lend(const PeerSize& size);
  void take_back(PeerWindow& window) { window.is_lent = false; }
  /// Releases all waits of this rank, because a peer was lost, and never again waits for other ranks or lends a window.
  void abandon(PeerWindow& window);
  /// Throws std::runtime_error once a window was abandoned.
  void require_whole() const;

  [[nodiscard]] Peers& peers() { return peers_; }
  [[nodiscard]] int rank() const { return rank_; }
  [[nodiscard]] int ranks() const { return ranks_; }

 private:
  void open(PeerWindow& window);
  void give_back_free();

  Peers& peers_;
  int rank_;
  int ranks_;
  Exchange exchange_;
  bool is_abandoned_ = false;
  std::vector<std::unique_ptr<PeerWindow>> windows_;
};

/// A borrowed window.
class PeerLease {
 public:
  PeerLease(PeerWindows& windows, const PeerSize& size) : windows_(windows), window_(windows.lend(size)) {}
  PeerLease(const PeerLease&) = delete;
  PeerLease& operator=(const PeerLease&) = delete;
  ~PeerLease() { windows_.take_back(window_); }

  [[nodiscard]] PeerWindow& window() const { return window_; }
  [[nodiscard]] PeerWindows& windows() const { return windows_; }

 private:
  PeerWindows& windows_;
  PeerWindow& window_;
};

}  // namespace commfuse::validate
