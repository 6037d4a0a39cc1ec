// SPDX-License-Identifier: Apache-2.0
#include "model/hardware/group_rates.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "model/check.h"

namespace commfuse {

namespace {

std::size_t at(int index) { return static_cast<std::size_t>(index); }

/// Returns the GPUs first, first + stride and so on.
std::vector<int> group_from(int first, const StridedGroups& shape) {
  const auto [stride, ranks] = shape;
  std::vector<int> group(at(ranks));
  for (int i = 0; i < ranks; ++i) {
    group[at(i)] = first + stride * i;
  }
  return group;
}

}  // namespace

GroupRates::GroupRates(const Topology& topology, int gpus_per_node) : gpus_per_node_(gpus_per_node) {
  for (const Edge& edge : topology.edges) {
    rate_of_link_.insert(rate_of_link_.end(), 2, edge.rate.value);
  }
  for (int from = 0; from < gpus_per_node; ++from) {
    const std::vector<std::optional<Route>> routes = routes_from(topology, from);
    for (int to = 0; to < gpus_per_node; ++to) {
      const std::optional<Route>& route = routes[at(to)];
      check(from == to || route.has_value(), "the GPUs of a node reach each other");
      crossed_.emplace_back();
      if (route) {
        crossed_.back().assign(route->links.begin(), route->links.end());
      }
    }
  }
}

void GroupRates::add_load(std::vector<std::int64_t>& load, int from, int to) const {
  for (const std::int32_t link : crossed_[at(from * gpus_per_node_ + to)]) {
    ++load[at(link)];
  }
}

double GroupRates::least_share(const std::vector<std::int64_t>& load) const {
  double least = std::numeric_limits<double>::infinity();
  for (std::size_t link = 0; link < load.size(); ++link) {
    if (load[link] > 0) {
      least = std::min(least, rate_of_link_[link] / static_cast<double>(load[link]));
    }
  }
  return least;
}

double GroupRates::ring_rate(const Groups& groups) const {
  std::vector<std::int64_t> load(rate_of_link_.size(), 0);
  for (const std::vector<int>& group : groups) {
    for (std::size_t i = 0; i < group.size(); ++i) {
      const int next = group[(i + 1) % group.size()];
      add_load(load, group[i], next);
      add_load(load, next, group[i]);
    }
  }
  return 2.0 * least_share(load);
}

double GroupRates::direct_rate(const Groups& groups) const {
  std::vector<std::int64_t> load(rate_of_link_.size(), 0);
  for (const std::vector<int>& group : groups) {
    for (const int from : group) {
      for (const int to : group) {
        add_load(load, from, to);
      }
    }
  }
  return static_cast<double>(groups.front().size() - 1) * least_share(load);
}

BytesPerSecond GroupRates::best_of(const Groups& groups) const {
  return {std::max(ring_rate(groups), direct_rate(groups))};
}

BytesPerSecond GroupRates::alone(int ranks) const {
  check(ranks >= 2 && ranks <= gpus_per_node_, "a node has these GPUs");
  return best_of({group_from(0, {.stride = 1, .ranks = ranks})});
}

BytesPerSecond GroupRates::together(const StridedGroups& shape) const {
  const auto [stride, ranks] = shape;
  check(stride >= 1 && ranks >= 2 && stride * ranks <= gpus_per_node_, "a node has these GPUs");
  Groups groups;
  for (int block = 0; block + stride * ranks <= gpus_per_node_; block += stride * ranks) {
    for (int first = block; first < block + stride; ++first) {
      groups.push_back(group_from(first, shape));
    }
  }
  return best_of(groups);
}

StridedRates::StridedRates(const GroupRates& rates, int gpus_per_node)
    : gpus_per_node_(gpus_per_node), of_whole_(at(gpus_per_node) * at(gpus_per_node), 1.0) {
  for (int stride = 1; 2 * stride <= gpus_per_node; ++stride) {
    for (int ranks = 2; stride * ranks <= gpus_per_node; ++ranks) {
      of_whole_[at((stride - 1) * gpus_per_node + ranks - 1)] =
          part_of(rates.together({.stride = stride, .ranks = ranks}), rates.alone(gpus_per_node));
    }
  }
}

double StridedRates::of_whole(const StridedGroups& shape) const {
  const auto [stride, ranks] = shape;
  check(stride >= 1 && ranks >= 2 && stride * ranks <= gpus_per_node_, "a node has these GPUs");
  return of_whole_[at((stride - 1) * gpus_per_node_ + ranks - 1)];
}

bool StridedRates::alike() const {
  return std::all_of(of_whole_.begin(), of_whole_.end(), [](double part) { return part == 1.0; });
}

double part_of(BytesPerSecond part, BytesPerSecond whole) {
  constexpr double rounding = 1e-9;
  const double share = part.value / whole.value;
  return std::abs(share - 1.0) < rounding ? 1.0 : share;
}

}  // namespace commfuse
