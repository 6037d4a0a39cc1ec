// SPDX-License-Identifier: Apache-2.0
#include "validate/cuda/peer_windows.h"

#include <algorithm>
#include <exception>
#include <stdexcept>
#include <utility>

namespace commfuse::validate {

namespace {

/// The number of flags is a multiple of this, so that data stays aligned and windows serve programs of similar size.
constexpr std::int64_t flag_granule = 1 << 14;
/// The driver combines smaller allocations, and a process that opens one of them could then access the others.
constexpr std::int64_t data_granule = std::int64_t{2} << 20U;

std::int64_t rounded_up(std::int64_t value, std::int64_t to) { return (value + to - 1) / to * to; }

bool fits(const PeerSize& size, const PeerWindow& window) {
  return size.flags <= window.size.flags && size.data <= window.size.data;
}

}  // namespace

PeerWindows::PeerWindows(Peers& peers, int rank, int ranks, Exchange exchange)
    : peers_(peers), rank_(rank), ranks_(ranks), exchange_(std::move(exchange)) {}

PeerWindows::~PeerWindows() {
  if (is_abandoned_ || std::uncaught_exceptions() > 0) {
    return;
  }
  try {
    for (const std::unique_ptr<PeerWindow>& window : windows_) {
      window->is_lent = false;
    }
    give_back_free();
  } catch (const std::exception&) {  // another rank has ended; the end of the process frees everything
  }
}

PeerWindow& PeerWindows::lend(const PeerSize& size) {
  require_whole();
  PeerWindow* best = nullptr;
  for (const std::unique_ptr<PeerWindow>& window : windows_) {
    if (!window->is_lent && fits(size, *window) && (best == nullptr || window->size.data < best->size.data)) {
      best = window.get();
    }
  }
  if (best == nullptr) {
    give_back_free();
    auto window = std::make_unique<PeerWindow>();
    window->size.flags = rounded_up(size.flags, flag_granule);
    window->size.data = {rounded_up(size.data.count + window->size.flags * flag_bytes, data_granule) -
                         window->size.flags * flag_bytes};
    open(*window);  // A window that is only partly open is never lent.
    best = windows_.emplace_back(std::move(window)).get();
  }
  best->is_lent = true;
  return *best;
}

void PeerWindows::open(PeerWindow& window) {
  const Peers::Shared mine = peers_.share({window.size.flags * flag_bytes + window.size.data.count});
  peers_.set(mine.at, static_cast<std::size_t>(window.size.flags), 0);
  const std::vector<MemoryKey> keys = exchange_(mine.key);
  for (int rank = 0; rank < ranks_; ++rank) {
    window.at.push_back(rank == rank_ ? mine.at : peers_.open(keys[static_cast<std::size_t>(rank)]));
  }
}

/// Closes the memory of other ranks first, so that no rank frees memory that another rank has open.
void PeerWindows::give_back_free() {
  const auto is_free = [](const std::unique_ptr<PeerWindow>& window) { return !window->is_lent; };
  if (std::ranges::none_of(windows_, is_free)) {
    return;
  }
  for (const std::unique_ptr<PeerWindow>& window : windows_) {
    for (int rank = 0; rank < ranks_ && is_free(window); ++rank) {
      if (rank != rank_) {
        peers_.close(window->at[static_cast<std::size_t>(rank)]);
      }
    }
  }
  static_cast<void>(exchange_({}));
  for (const std::unique_ptr<PeerWindow>& window : windows_) {
    if (is_free(window)) {
      peers_.unshare(window->at[static_cast<std::size_t>(rank_)]);
    }
  }
  std::erase_if(windows_, is_free);
}

void PeerWindows::require_whole() const {
  if (is_abandoned_) {
    throw std::runtime_error(
        "cuda-peer gave up an earlier run, and ranks may still copy into each other's memory; restart all ranks");
  }
}

void PeerWindows::abandon(PeerWindow& window) {
  is_abandoned_ = true;
  constexpr FlagValue beyond_all = 1U << 30U;
  try {
    peers_.set(window.flag(rank_, 0), static_cast<std::size_t>(window.size.flags),
               std::max(window.iterations, window.barriers) + beyond_all);
  } catch (const std::exception&) {  // the device is lost, so nothing waits on it
  }
}

}  // namespace commfuse::validate
