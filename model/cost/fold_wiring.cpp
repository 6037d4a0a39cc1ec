// SPDX-License-Identifier: Apache-2.0
#include "model/cost/fold_wiring.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "model/check.h"

namespace commfuse {

namespace {

/// Classes of equal links: two links are equal if a move of all ranks to their images takes one link to the other.
class LinkClasses {
 public:
  explicit LinkClasses(std::size_t links) : parent_(links), image_(links), origin_(links) {
    std::iota(parent_.begin(), parent_.end(), 0);
  }

  /// Begins another move of all ranks.
  void begin() {
    std::fill(image_.begin(), image_.end(), none);
    std::fill(origin_.begin(), origin_.end(), none);
  }

  /// Notes that the move takes a link to another. Returns false when the move would take one link to two links, or two
  /// links to one.
  bool note(std::int32_t link, std::int32_t to) {
    std::int32_t& image = image_[index(link)];
    std::int32_t& origin = origin_[index(to)];
    if (image == none && origin == none) {
      image = to;
      origin = link;
      parent_[index(first(link))] = first(to);
      return true;
    }
    return image == to && origin == link;
  }

  /// Returns the link that represents its class.
  [[nodiscard]] std::int32_t first(std::int32_t link) {
    while (parent_[index(link)] != link) {
      parent_[index(link)] = parent_[index(parent_[index(link)])];
      link = parent_[index(link)];
    }
    return link;
  }

 private:
  static constexpr std::int32_t none = -1;
  static std::size_t index(std::int32_t link) { return static_cast<std::size_t>(link); }

  std::vector<std::int32_t> parent_;
  std::vector<std::int32_t> image_;   // by link: its image under the move
  std::vector<std::int32_t> origin_;  // by link: the link whose image it is
};

class WiringFolder {
 public:
  WiringFolder(const Wiring& wiring, const Mesh& mesh, const FoldedMesh& fold)
      : wiring_(wiring), mesh_(mesh), fold_(fold), classes_(wiring.capacity.size()) {
    folded_.move_of_op = wiring.move_of_op;
    folded_.ranks = static_cast<std::size_t>(fold.ranks);
  }

  std::optional<Wiring> fold() {
    for (std::size_t axis = 0; axis < mesh_.axes.size(); ++axis) {
      if (fold_.extents[axis] < mesh_.axes[axis].extent && !is_symmetric(static_cast<int>(axis), fold_.extents[axis])) {
        return std::nullopt;
      }
    }
    number_links();
    const std::size_t moves = wiring_.paths.size() / wiring_.ranks;
    for (std::size_t move = 0; move < moves; ++move) {
      for (std::size_t rank = 0; rank < folded_.ranks; ++rank) {
        if (!add(wiring_.paths[move * wiring_.ranks + rank])) {
          return std::nullopt;
        }
      }
    }
    return std::move(folded_);
  }

 private:
  /// Returns true if the wires map onto themselves when every rank moves `by` ahead on an axis.
  bool is_symmetric(int axis, std::int32_t by) {
    std::vector<std::size_t> target;
    for (Rank rank = 0; rank < mesh_.ranks(); ++rank) {
      target.push_back(static_cast<std::size_t>(mesh_.shifted(rank, axis, by)));
    }
    classes_.begin();
    for (std::size_t i = 0; i < wiring_.paths.size(); ++i) {
      const std::size_t rank = i % wiring_.ranks;
      if (!maps_to(wiring_.paths[i], wiring_.paths[i - rank + target[rank]])) {
        return false;
      }
    }
    return true;
  }

  bool maps_to(const WirePath& path, const WirePath& to) {
    if (path.latency != to.latency || path.stages != to.stages) {
      return false;
    }
    for (std::uint32_t i = 0; i < path.stages; ++i) {
      const WireStage& stage = wiring_.stages[path.first_stage + i];
      const WireStage& other = wiring_.stages[to.first_stage + i];
      if (stage.cap != other.cap || stage.until != other.until || stage.links != other.links) {
        return false;
      }
      for (std::uint32_t link = 0; link < stage.links; ++link) {
        const std::int32_t a = wiring_.links[stage.first_link + link];
        const std::int32_t b = wiring_.links[other.first_link + link];
        if (capacity(a) != capacity(b) || !classes_.note(a, b)) {
          return false;
        }
      }
    }
    return true;
  }

  [[nodiscard]] double capacity(std::int32_t link) const { return wiring_.capacity[static_cast<std::size_t>(link)]; }

  /// Numbers the classes of links. A link that no transfer crosses is a class by itself; its number is never looked up.
  void number_links() {
    number_.assign(wiring_.capacity.size(), -1);
    for (std::int32_t link = 0; link < std::ssize(number_); ++link) {
      std::int32_t& number = number_[static_cast<std::size_t>(classes_.first(link))];
      if (number < 0) {
        number = static_cast<std::int32_t>(folded_.capacity.size());
        folded_.capacity.push_back(capacity(link));
        represented_.push_back(0);
      }
      ++represented_[static_cast<std::size_t>(number)];
    }
    cap_.assign(folded_.capacity.size(), 0.0);
  }

  bool add(const WirePath& path) {
    folded_.paths.push_back({path.latency, static_cast<std::uint32_t>(folded_.stages.size()), path.stages});
    for (std::uint32_t i = 0; i < path.stages; ++i) {
      if (!add(wiring_.stages[path.first_stage + i])) {
        return false;
      }
    }
    return true;
  }

  bool add(const WireStage& stage) {
    const auto first = static_cast<std::uint32_t>(folded_.links.size());
    for (const std::int32_t link : wiring_.links_of(stage)) {
      const std::int32_t number = number_[static_cast<std::size_t>(classes_.first(link))];
      const auto known = std::find(folded_.links.begin() + first, folded_.links.end(), number);
      const auto index = static_cast<std::size_t>(known - folded_.links.begin());
      if (known == folded_.links.end()) {
        folded_.links.push_back(number);
        folded_.times.push_back(0);
      }
      ++folded_.times[index];
    }
    folded_.stages.push_back({stage.cap, stage.until, first, static_cast<std::uint32_t>(folded_.links.size()) - first});
    const auto copies = static_cast<std::int32_t>(wiring_.ranks / folded_.ranks);
    for (std::size_t i = first; i < folded_.links.size(); ++i) {
      const auto link = static_cast<std::size_t>(folded_.links[i]);
      const bool same_cap = cap_[link] == 0.0 || cap_[link] == stage.cap;
      if (!same_cap || folded_.times[i] * copies % represented_[link] != 0) {
        return false;
      }
      cap_[link] = stage.cap;
      folded_.times[i] = folded_.times[i] * copies / represented_[link];
    }
    return true;
  }

  const Wiring& wiring_;
  const Mesh& mesh_;
  const FoldedMesh& fold_;
  LinkClasses classes_;
  std::vector<std::int32_t> number_;       // by first link of its class: index in the folded wiring
  std::vector<std::int32_t> represented_;  // by folded link: how many links it represents
  std::vector<double> cap_;                // by folded link: cap of its transfers; 0 when none was seen
  Wiring folded_;
};

/// Groups links that exactly the same transfers cross.
class EquallyCrossed {
 public:
  explicit EquallyCrossed(const Wiring& wiring) : group_(wiring.capacity.size(), 0) {
    std::vector<Split> splits(1);  // by group
    for (std::uint32_t stage = 0; stage < wiring.stages.size(); ++stage) {
      for (const std::int32_t link : wiring.links_of(wiring.stages[stage])) {
        std::uint32_t& group = group_[static_cast<std::size_t>(link)];
        const std::uint32_t before = group;
        if (splits[before].stage != stage) {
          splits[before] = {stage, static_cast<std::uint32_t>(splits.size())};
          splits.emplace_back();
        }
        group = splits[before].group;
      }
    }
    groups_ = splits.size();
  }

  [[nodiscard]] std::size_t groups() const { return groups_; }
  [[nodiscard]] std::uint32_t of(std::int32_t link) const { return group_[static_cast<std::size_t>(link)]; }

 private:
  /// Splits a group: the links that the stage crosses become a separate group.
  struct Split {
    std::uint32_t stage = std::numeric_limits<std::uint32_t>::max();
    std::uint32_t group = 0;
  };
  std::vector<std::uint32_t> group_;  // by link
  std::size_t groups_ = 0;
};

}  // namespace

Wiring narrowest_links(const Wiring& wiring) {
  check(wiring.times.empty(), "links are removed before ranks are folded");
  const EquallyCrossed crossed(wiring);
  constexpr std::int32_t none = -1;
  std::vector<std::int32_t> narrowest(crossed.groups(), none);
  const auto capacity = [&](std::int32_t link) { return wiring.capacity[static_cast<std::size_t>(link)]; };
  for (const std::int32_t link : wiring.links) {
    std::int32_t& known = narrowest[crossed.of(link)];
    if (known == none || capacity(link) < capacity(known)) {
      known = link;
    }
  }
  Wiring result = wiring;
  result.links.clear();
  for (WireStage& stage : result.stages) {
    const std::span<const std::int32_t> links = wiring.links_of(stage);
    stage.first_link = static_cast<std::uint32_t>(result.links.size());
    std::copy_if(links.begin(), links.end(), std::back_inserter(result.links),
                 [&](std::int32_t link) { return narrowest[crossed.of(link)] == link; });
    stage.links = static_cast<std::uint32_t>(result.links.size()) - stage.first_link;
  }
  return result;
}

std::optional<Wiring> folded_wiring(const Wiring& wiring, const Mesh& mesh, Rank ranks) {
  const std::optional<FoldedMesh> fold = folded(mesh, ranks);
  return fold ? WiringFolder(wiring, mesh, *fold).fold() : std::nullopt;
}

}  // namespace commfuse
