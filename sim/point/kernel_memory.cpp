// SPDX-License-Identifier: Apache-2.0
#include "sim/point/kernel_memory.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <utility>

namespace commfuse {

namespace {

constexpr std::uint32_t empty = std::numeric_limits<std::uint32_t>::max();
constexpr std::size_t fewest_slots = 256;
/// 8 MiB: in configs/sweeps/million.yaml, the points of one model at one rate of links need 1 MiB, or 6 MiB with
/// uncertainty. When this limit is reached, everything is forgotten, because grids rarely return to such old points.
constexpr std::size_t most_words = std::size_t{1} << 20;

std::uint64_t with_word(std::uint64_t hash, std::int64_t word) {
  constexpr std::uint64_t multiplier = 0x9e3779b97f4a7c15;  // 2^64 / golden ratio
  hash = (hash ^ static_cast<std::uint64_t>(word)) * multiplier;
  return hash ^ (hash >> 32);
}

}  // namespace

void KernelMemory::write_key(const KernelInputs& inputs) {
  const auto both = [](std::uint64_t high, std::uint64_t low) { return static_cast<std::int64_t>(high << 32U | low); };
  key_.assign({0, std::bit_cast<std::intptr_t>(inputs.structure), both(inputs.priced_as, inputs.raised),
               both(static_cast<std::uint32_t>(inputs.sms_beside_exchanges),
                    static_cast<std::uint32_t>(inputs.sms_beside_collectives))});
  key_.insert(key_.end(), inputs.sizes->block.begin(), inputs.sizes->block.end());
  std::uint64_t hash = 0;
  for (const std::int64_t word : key_) {
    hash = with_word(hash, word);
  }
  key_.front() = static_cast<std::int64_t>(hash);
}

bool KernelMemory::has_key(std::size_t entry) const {
  return entry + key_.size() <= words_.size() &&
         std::equal(key_.begin(), key_.end(), words_.begin() + static_cast<std::ptrdiff_t>(entry));
}

std::size_t KernelMemory::find_slot() const {
  const std::size_t mask = slots_.size() - 1;
  std::size_t slot = static_cast<std::size_t>(key_.front()) & mask;
  while (slots_[slot] != empty && !has_key(slots_[slot])) {
    slot = (slot + 1) & mask;
  }
  return slot;
}

void KernelMemory::add_slots() {
  const std::vector<std::uint32_t> entries =
      std::exchange(slots_, std::vector<std::uint32_t>(std::max(fewest_slots, 2 * slots_.size()), empty));
  const std::size_t mask = slots_.size() - 1;
  for (const std::uint32_t entry : entries) {
    if (entry != empty) {
      std::size_t slot = static_cast<std::size_t>(words_[entry]) & mask;
      while (slots_[slot] != empty) {
        slot = (slot + 1) & mask;
      }
      slots_[slot] = entry;
    }
  }
}

bool KernelMemory::recall(const KernelInputs& inputs, std::span<KernelTimes> machines) {
  for (KernelTimes& times : machines) {
    times.forget_all();
  }
  if (slots_.empty()) {
    return false;
  }
  write_key(inputs);
  const std::size_t entry = has_key(next_) ? next_ : slots_[find_slot()];
  if (entry == empty) {
    return false;
  }
  const std::int64_t* word = words_.data() + entry + key_.size();
  for (KernelTimes& times : machines) {
    times.fit(inputs.structure->program(), inputs.structure->prices);
    for (const std::uint32_t place : inputs.structure->prices.kernels) {
      times.shapes[place] = Duration{*word++};
    }
    for (Duration& time : times.unfused) {
      time = Duration{*word++};
    }
  }
  next_ = static_cast<std::size_t>(word - words_.data());
  return true;
}

void KernelMemory::keep(const KernelInputs& inputs, std::span<const KernelTimes> machines) {
  const Structure& structure = *inputs.structure;
  write_key(inputs);
  const std::size_t times_of_machine = structure.prices.kernels.size() + structure.program().unfused.size();
  if (words_.size() + key_.size() + machines.size() * times_of_machine > most_words) {
    words_.clear();
    slots_.assign(slots_.size(), empty);
    entries_ = 0;
  }
  if (2 * (entries_ + 1) > slots_.size()) {
    add_slots();
  }
  slots_[find_slot()] = static_cast<std::uint32_t>(words_.size());
  ++entries_;
  words_.insert(words_.end(), key_.begin(), key_.end());
  for (const KernelTimes& times : machines) {
    for (const std::uint32_t place : structure.prices.kernels) {
      words_.push_back(times.shapes[place].count());
    }
    for (const Duration time : times.unfused) {
      words_.push_back(time.count());
    }
  }
  next_ = words_.size();
}

}  // namespace commfuse
