// SPDX-License-Identifier: Apache-2.0
#include "sim/engine/max_min.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <random>
#include <vector>

#include "tests/sim/random_program.h"

namespace commfuse::test {
namespace {

using Rates = std::vector<double>;
constexpr double no_cap = 1e9;

struct Wish {
  double cap = no_cap;
  std::vector<std::int32_t> links;
};

Rates rates_of(const std::vector<Wish>& wishes, const std::vector<double>& capacity) {
  std::vector<Flow> flows;
  for (const Wish& wish : wishes) {
    flows.push_back({wish.cap, wish.links});
  }
  MaxMin max_min;
  const auto rates = max_min.rates(flows, capacity);
  return {rates.begin(), rates.end()};
}

TEST(MaxMin, ALoneFlowGetsItsCapOrTheSmallestLink) {
  EXPECT_EQ(rates_of({{7.0, {0}}}, {10.0}), Rates{7.0});
  EXPECT_EQ(rates_of({{10.0, {0}}}, {10.0}), Rates{10.0});
  EXPECT_EQ(rates_of({{no_cap, {0, 1, 2}}}, {10.0, 4.0, 6.0}), Rates{4.0});
  EXPECT_EQ(rates_of({{3.0, {}}}, {10.0}), Rates{3.0});
  EXPECT_EQ(rates_of({}, {10.0}), Rates{});
}

TEST(MaxMin, EqualFlowsShareALinkEqually) {
  EXPECT_EQ(rates_of({{no_cap, {0}}, {no_cap, {0}}}, {10.0}), (Rates{5.0, 5.0}));
  EXPECT_EQ(rates_of({{no_cap, {0}}, {no_cap, {0}}, {no_cap, {0}}, {no_cap, {0}}}, {10.0}), Rates(4, 2.5));
}

TEST(MaxMin, OtherFlowsGetTheRestOfACappedFlow) {
  // The link has 10: the first flow wants 2, the others share 8.
  EXPECT_EQ(rates_of({{2.0, {0}}, {no_cap, {0}}, {no_cap, {0}}}, {10.0}), (Rates{2.0, 4.0, 4.0}));
  // Demands of 2, 2.5, 4 and 5 on 10: the first two get theirs, and the remaining 5.5 is halved.
  EXPECT_EQ(rates_of({{2.0, {0}}, {2.5, {0}}, {4.0, {0}}, {5.0, {0}}}, {10.0}), (Rates{2.0, 2.5, 2.75, 2.75}));
}

TEST(MaxMin, SolvesTheParkingLot) {
  // A long flow over two links of 10, and a short flow over each: every link is halved.
  EXPECT_EQ(rates_of({{no_cap, {0, 1}}, {no_cap, {0}}, {no_cap, {1}}}, {10.0, 10.0}), (Rates{5.0, 5.0, 5.0}));
  // Links of 6 and 12: the first is halved, at 3, so the short flow of the second link gets 9.
  EXPECT_EQ(rates_of({{no_cap, {0, 1}}, {no_cap, {0}}, {no_cap, {1}}}, {6.0, 12.0}), (Rates{3.0, 3.0, 9.0}));
}

TEST(MaxMin, ThreeOnTheMiddleLinkLeaveTwoThirdsOfTheirOtherLinks) {
  // All links have a capacity of 1. B, C and D each have a third of link 1; A gets the rest of B's link 0, E gets all
  // of link 3.
  const Rates rates =
      rates_of({{no_cap, {0}}, {no_cap, {0, 1}}, {no_cap, {1}}, {no_cap, {1, 2}}, {no_cap, {3}}}, {1.0, 1.0, 1.0, 1.0});
  const double third = 1.0 / 3;
  EXPECT_EQ(rates, (Rates{1.0 - third, third, third, third, 1.0}));
}

TEST(MaxMin, TheBottleneckOfOneFlowFreesAnotherLink) {
  // Link 1 limits B to 1, so A has 9 of link 0's 10.
  EXPECT_EQ(rates_of({{no_cap, {0}}, {no_cap, {0, 1}}}, {10.0, 1.0}), (Rates{9.0, 1.0}));
}

/// Checks the definition: no link is over its capacity, and every flow is at its cap or has a full link on which no
/// flow has more.
TEST(MaxMin, NoFlowCanGrowWithoutShrinkingASmallerOne) {
  std::mt19937_64 random(5);
  for (int round = 0; round < 2'000; ++round) {
    std::vector<double> capacity;
    for (std::int64_t i = 1 + below(random, 6); i > 0; --i) {
      capacity.push_back(static_cast<double>(1 + below(random, 12)));
    }
    std::vector<Wish> wishes(static_cast<std::size_t>(below(random, 9)));
    for (Wish& wish : wishes) {
      wish.cap = one_in(random, 2) ? no_cap : static_cast<double>(1 + below(random, 6));
      for (std::int32_t link = 0; link < std::ssize(capacity); ++link) {
        if (one_in(random, 2)) {
          wish.links.push_back(link);
        }
      }
    }
    const Rates rates = rates_of(wishes, capacity);
    const Rates reversed = rates_of({wishes.rbegin(), wishes.rend()}, capacity);
    EXPECT_EQ(Rates(reversed.rbegin(), reversed.rend()), rates) << "round " << round;
    std::vector<double> used(capacity.size(), 0.0);
    std::vector<double> highest(capacity.size(), 0.0);
    for (std::size_t i = 0; i < wishes.size(); ++i) {
      for (const std::int32_t link : wishes[i].links) {
        used[static_cast<std::size_t>(link)] += rates[i];
        highest[static_cast<std::size_t>(link)] = std::max(highest[static_cast<std::size_t>(link)], rates[i]);
      }
    }
    constexpr double tiny = 1e-9;
    for (std::size_t link = 0; link < capacity.size(); ++link) {
      EXPECT_LE(used[link], capacity[link] + tiny);
    }
    for (std::size_t i = 0; i < wishes.size(); ++i) {
      const bool limited = std::any_of(wishes[i].links.begin(), wishes[i].links.end(), [&](std::int32_t id) {
        const auto link = static_cast<std::size_t>(id);
        return used[link] > capacity[link] - tiny && rates[i] > highest[link] - tiny;
      });
      EXPECT_TRUE(rates[i] == wishes[i].cap || limited) << "round " << round << ", flow " << i;
      EXPECT_GT(rates[i], 0.0);
    }
  }
}

/// Fills progressively as the textbook does: every round looks at all links and all flows. Links that are full at equal
/// rates are filled in one round.
Rates plainly_filled(const std::vector<Wish>& wishes, std::vector<double> remaining) {
  std::vector<int> flows(remaining.size(), 0);
  for (const Wish& wish : wishes) {
    for (const std::int32_t link : wish.links) {
      ++flows[static_cast<std::size_t>(link)];
    }
  }
  Rates rates(wishes.size(), -1.0);
  while (std::any_of(rates.begin(), rates.end(), [](double rate) { return rate < 0.0; })) {
    double level = std::numeric_limits<double>::infinity();
    for (std::size_t link = 0; link < remaining.size(); ++link) {
      level = flows[link] > 0 ? std::min(level, remaining[link] / flows[link]) : level;
    }
    std::vector<bool> full;
    for (std::size_t link = 0; link < remaining.size(); ++link) {
      full.push_back(flows[link] > 0 && remaining[link] / flows[link] == level);
    }
    double cap = std::numeric_limits<double>::infinity();
    for (std::size_t i = 0; i < wishes.size(); ++i) {
      cap = rates[i] < 0.0 ? std::min(cap, wishes[i].cap) : cap;
    }
    for (std::size_t i = 0; i < wishes.size(); ++i) {
      const std::vector<std::int32_t>& links = wishes[i].links;
      const bool stops = cap <= level ? wishes[i].cap == cap : std::ranges::any_of(links, [&](std::int32_t link) {
        return full[static_cast<std::size_t>(link)];
      });
      if (rates[i] < 0.0 && stops) {
        rates[i] = std::min(cap, level);
        for (const std::int32_t link : links) {
          remaining[static_cast<std::size_t>(link)] =
              std::max(0.0, remaining[static_cast<std::size_t>(link)] - rates[i]);
          --flows[static_cast<std::size_t>(link)];
        }
      }
    }
  }
  return rates;
}

TEST(MaxMin, GivesTheRatesOfPlainFillingToTheLastBit) {
  std::mt19937_64 random(7);
  for (int round = 0; round < 3000; ++round) {
    std::vector<double> capacity;
    for (std::int64_t i = 1 + below(random, 20); i > 0; --i) {
      capacity.push_back(static_cast<double>(1 + below(random, 1000)) / 7.0);
    }
    std::vector<Wish> wishes(static_cast<std::size_t>(below(random, 40)));
    for (Wish& wish : wishes) {
      wish.cap = one_in(random, 3) ? no_cap : static_cast<double>(1 + below(random, 60)) / 3.0;
      for (std::int32_t link = 0; link < std::ssize(capacity); ++link) {
        if (one_in(random, 4)) {
          wish.links.push_back(link);
        }
      }
    }
    EXPECT_EQ(rates_of(wishes, capacity), plainly_filled(wishes, capacity)) << "round " << round;
  }
}

/// Returns capacities with few distinct values, so that many links are full at equal rates. The values are thirds, so
/// that sums round.
std::vector<double> similar_capacities(std::mt19937_64& random) {
  std::vector<double> capacity;
  for (std::int64_t i = 1 + below(random, 12); i > 0; --i) {
    capacity.push_back(static_cast<double>(1 + below(random, 3)) / 3.0);
  }
  return capacity;
}

std::vector<Wish> similar_wishes(std::mt19937_64& random, std::int64_t links) {
  std::vector<Wish> wishes(static_cast<std::size_t>(1 + below(random, 30)));
  for (Wish& wish : wishes) {
    wish.cap = static_cast<double>(1 + below(random, 4)) / 7.0;
    for (std::int32_t link = 0; link < links; ++link) {
      if (one_in(random, 3)) {
        wish.links.push_back(link);
      }
    }
  }
  return wishes;
}

TEST(MaxMin, RenumberingLinksChangesNoBit) {
  std::mt19937_64 random(8);
  for (int round = 0; round < 3000; ++round) {
    const std::vector<double> capacity = similar_capacities(random);
    const std::vector<Wish> wishes = similar_wishes(random, std::ssize(capacity));
    std::vector<Wish> renumbered = wishes;
    for (Wish& wish : renumbered) {
      for (std::int32_t& link : wish.links) {
        link = static_cast<std::int32_t>(std::ssize(capacity)) - 1 - link;
      }
    }
    EXPECT_EQ(rates_of(renumbered, {capacity.rbegin(), capacity.rend()}), rates_of(wishes, capacity))
        << "round " << round;
  }
}

/// Copies of links and flows form a ring. A link is either shared by all copies, or each copy has its own; a flow that
/// uses its copy's own link i also uses link i of the next copy if the flow's `next` is true.
TEST(MaxMin, OneFlowRepresentsAllItsCopiesToTheLastBit) {
  std::mt19937_64 random(9);
  for (int round = 0; round < 3000; ++round) {
    const std::vector<double> capacity = similar_capacities(random);
    const std::vector<Wish> wishes = similar_wishes(random, std::ssize(capacity));
    const auto copies = static_cast<std::int32_t>(2 + below(random, 5));
    const auto links = static_cast<std::int32_t>(std::ssize(capacity));
    std::vector<bool> shared;  // For each link, whether all copies share it.
    for (std::int32_t link = 0; link < links; ++link) {
      shared.push_back(one_in(random, 4));
    }
    std::vector<std::vector<std::int32_t>> times;
    std::vector<Flow> folded;
    std::vector<Wish> copied_wishes;
    for (const Wish& wish : wishes) {
      const bool next = one_in(random, 3);
      times.emplace_back();
      for (const std::int32_t link : wish.links) {
        times.back().push_back(shared[static_cast<std::size_t>(link)] ? copies : next ? 2 : 1);
      }
      for (std::int32_t copy = 0; copy < copies; ++copy) {
        copied_wishes.push_back({wish.cap, {}});
        for (const std::int32_t link : wish.links) {
          const bool is_shared = shared[static_cast<std::size_t>(link)];
          copied_wishes.back().links.push_back(link + (is_shared ? 0 : copy * links));
          if (!is_shared && next) {
            copied_wishes.back().links.push_back(link + (copy + 1) % copies * links);
          }
        }
      }
    }
    for (std::size_t i = 0; i < wishes.size(); ++i) {
      folded.push_back({wishes[i].cap, wishes[i].links, times[i]});
    }
    std::vector<double> all_capacity;
    for (std::int32_t copy = 0; copy < copies; ++copy) {
      all_capacity.insert(all_capacity.end(), capacity.begin(), capacity.end());
    }
    MaxMin max_min;
    const auto rates = max_min.rates(folded, capacity);
    const Rates copied_rates = rates_of(copied_wishes, all_capacity);
    for (std::size_t i = 0; i < copied_rates.size(); ++i) {
      ASSERT_EQ(copied_rates[i], rates[i / static_cast<std::size_t>(copies)]) << "round " << round << ", flow " << i;
    }
  }
}

}  // namespace
}  // namespace commfuse::test
