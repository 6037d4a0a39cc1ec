// SPDX-License-Identifier: Apache-2.0
#include "sim/engine/faults.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "model/config_error.h"

namespace commfuse {

namespace {

void require_rank(Rank rank, Rank ranks) {
  if (rank < 0 || rank >= ranks) {
    throw ConfigError(
        ranks == 1 ? fmt::format("a fault names rank {}, but there is only rank 0; use rank 0, or more ranks", rank)
                   : fmt::format("a fault names rank {}, but there are {} ranks; choose one from 0 to {}", rank, ranks,
                                 ranks - 1));
  }
}

void require_link(RankPair link, Rank ranks) {
  require_rank(link.from, ranks);
  require_rank(link.to, ranks);
  if (link.from == link.to) {
    throw ConfigError(fmt::format("a fault names a link from rank {} to itself; choose two different ranks", link.to));
  }
}

void require_factor(double factor) {
  constexpr double limit = 1e6;
  if (!(factor >= 1.0 && factor <= limit)) {
    throw ConfigError(fmt::format("a fault has a factor of {}; choose one from 1 to {}", factor, limit));
  }
}

}  // namespace

Duration scaled(Duration time, double factor) {
  if (factor == 1.0) {
    return time;
  }
  const double longer = static_cast<double>(time.count()) * std::min(factor, static_cast<double>(FaultTable::too_late));
  return Duration{std::llround(std::min(longer, static_cast<double>(FaultTable::too_late)))};
}

void require_possible(const Faults& faults, Rank ranks) {
  for (const Faults::SlowRank& slow : faults.slow_ranks) {
    require_rank(slow.rank, ranks);
    require_factor(slow.factor);
  }
  for (const Faults::SlowLink& slow : faults.slow_links) {
    require_link(slow.link, ranks);
    require_factor(slow.factor);
  }
  for (const Faults::LinkDown& down : faults.links_down) {
    require_link(down.link, ranks);
    if (down.from.time_since_epoch() < Duration::zero() || (down.until && *down.until <= down.from)) {
      throw ConfigError(
          fmt::format("the link from rank {} to rank {} comes up before it goes down; choose an end after its start, "
                      "both at least 0",
                      down.link.from, down.link.to));
    }
  }
  for (const Faults::LateStart& late : faults.late_starts) {
    require_rank(late.rank, ranks);
    if (late.by < Duration::zero()) {
      throw ConfigError(fmt::format("rank {} has a negative late start; choose 0 or more", late.rank));
    }
  }
}

void FaultTable::start(const Faults& faults, Rank ranks) {
  const auto count = static_cast<std::size_t>(ranks);
  late_.assign(count, 0);
  for (const Faults::LateStart& late : faults.late_starts) {
    std::int64_t& sum = late_[static_cast<std::size_t>(late.rank)];
    sum = std::min(sum + std::min(late.by.count(), too_late), too_late);
  }
  slow_.assign(faults.slow_ranks.empty() ? 0 : count, 1.0);
  for (const Faults::SlowRank& slow : faults.slow_ranks) {
    slow_[static_cast<std::size_t>(slow.rank)] *= slow.factor;
  }
  pairs_.clear();
  for (const Faults::SlowLink& slow : faults.slow_links) {
    pair(slow.link).slowness *= slow.factor;
  }
  for (const Faults::LinkDown& down : faults.links_down) {
    pair(down.link).outages.push_back(
        {std::min(down.from.time_since_epoch().count(), too_late),
         down.until ? std::min(down.until->time_since_epoch().count(), too_late) : never});
  }
  for (Pair& pair : pairs_) {
    std::vector<Outage>& outages = pair.outages;
    std::sort(outages.begin(), outages.end(), [](const Outage& a, const Outage& b) { return a.from < b.from; });
    std::size_t last = 0;
    for (std::size_t i = 1; i < outages.size(); ++i) {
      if (outages[i].from <= outages[last].until) {
        outages[last].until = std::max(outages[last].until, outages[i].until);
      } else {
        outages[++last] = outages[i];
      }
    }
    outages.resize(std::min(outages.size(), last + 1));
  }
}

Duration FaultTable::of_compute(Rank rank, Duration time) const {
  return slow_.empty() ? time : scaled(time, slow_[static_cast<std::size_t>(rank)]);
}

double FaultTable::slowness(RankPair link) const {
  const Pair* pair = find(link);
  return pair == nullptr ? 1.0 : pair->slowness;
}

std::int64_t FaultTable::end_of(RankPair link, const Transfer& transfer) const {
  const auto [start, time] = transfer;
  std::int64_t end = start + time;
  if (const Pair* pair = time > 0 ? find(link) : nullptr) {
    for (const Outage& outage : pair->outages) {
      if (outage.until > start && outage.from < end) {
        if (outage.until == never) {
          return never;
        }
        end += outage.until - std::max(outage.from, start);
      }
    }
  }
  return end;
}

bool FaultTable::down(RankPair link, std::int64_t when) const {
  const Pair* pair = find(link);
  return pair != nullptr && std::any_of(pair->outages.begin(), pair->outages.end(), [&](const Outage& outage) {
           return outage.from <= when && when < outage.until;
         });
}

bool FaultTable::stays_down(RankPair link) const {
  const Pair* pair = find(link);
  return pair != nullptr && !pair->outages.empty() && pair->outages.back().until == never;
}

std::int64_t FaultTable::next_change(RankPair link, std::int64_t when) const {
  const Pair* pair = find(link);
  for (std::size_t i = 0; pair != nullptr && i < pair->outages.size(); ++i) {
    for (const std::int64_t change : {pair->outages[i].from, pair->outages[i].until}) {
      if (change > when) {
        return change;
      }
    }
  }
  return never;
}

FaultTable::Pair& FaultTable::pair(RankPair link) {
  const auto match = std::find_if(pairs_.begin(), pairs_.end(), [&](const Pair& pair) { return pair.link == link; });
  return match == pairs_.end() ? pairs_.emplace_back(Pair{link}) : *match;
}

const FaultTable::Pair* FaultTable::find(RankPair link) const {
  const auto match = std::find_if(pairs_.begin(), pairs_.end(), [&](const Pair& pair) { return pair.link == link; });
  return match == pairs_.end() ? nullptr : &*match;
}

}  // namespace commfuse
