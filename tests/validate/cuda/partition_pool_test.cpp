// SPDX-License-Identifier: Apache-2.0
// Tests partitions of a device that has 132 multiprocessors and assigns them in groups of eight.
#include "validate/cuda/module/partition_pool.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <set>
#include <stdexcept>
#include <utility>

namespace commfuse::validate {
namespace {

struct DeviceState {
  std::set<int> contexts;
  int created = 0;
};

/// A double of the driver's contexts, in which a part of the device is represented by its number of multiprocessors.
class ContextsDouble {
 public:
  using Resource = int;
  using Context = int;

  explicit ContextsDouble(std::shared_ptr<DeviceState> state) : state_(std::move(state)) {}

  [[nodiscard]] static Resource whole() { return 132; }
  [[nodiscard]] static int count(Resource resource) { return resource; }
  [[nodiscard]] static std::optional<std::pair<Resource, Resource>> split(Resource from, int multiprocessors) {
    constexpr int group = 8;
    const int taken = (multiprocessors + group - 1) / group * group;
    return taken > from ? std::nullopt : std::optional(std::pair(taken, from - taken));
  }
  [[nodiscard]] Context create(Resource /*resource*/) const {
    state_->contexts.insert(++state_->created);
    return state_->created;
  }
  void destroy(Context context) const noexcept { EXPECT_EQ(state_->contexts.erase(context), 1U); }

 private:
  std::shared_ptr<DeviceState> state_;
};

class PartitionsOf132 : public testing::Test {
 protected:
  std::shared_ptr<DeviceState> state_ = std::make_shared<DeviceState>();
  std::optional<PartitionPool<ContextsDouble>> pool_{ContextsDouble(state_)};
};

TEST_F(PartitionsOf132, ConsecutivePartitionsFindTheWholeDevice) {
  const std::size_t half = pool_->add(66);
  EXPECT_EQ(pool_->multiprocessors(half), 72);
  EXPECT_THROW(static_cast<void>(pool_->add(116)), std::runtime_error);
  pool_->give_back(half);
  const std::size_t largest = pool_->add(116);
  EXPECT_EQ(pool_->multiprocessors(largest), 120);
  EXPECT_EQ(state_->contexts.size(), 1U);
}

TEST_F(PartitionsOf132, ReleasedMultiprocessorsAreReservedNextToOthers) {
  const std::size_t first = pool_->add(64);
  const std::size_t second = pool_->add(60);
  EXPECT_THROW(static_cast<void>(pool_->add(8)), std::runtime_error);
  pool_->give_back(first);
  EXPECT_EQ(pool_->multiprocessors(pool_->add(40)), 40);
  EXPECT_EQ(pool_->multiprocessors(pool_->add(24)), 24);
  EXPECT_THROW(static_cast<void>(pool_->add(8)), std::runtime_error);
  EXPECT_EQ(pool_->multiprocessors(second), 64);
}

TEST_F(PartitionsOf132, AReleasedPartitionIsRefusedAndItsNumberNotReused) {
  const std::size_t first = pool_->add(8);
  pool_->give_back(first);
  EXPECT_FALSE(pool_->contains(first));
  EXPECT_THROW(pool_->give_back(first), std::runtime_error);
  EXPECT_THROW(static_cast<void>(pool_->context(first)), std::runtime_error);
  EXPECT_NE(pool_->add(8), first);
  EXPECT_FALSE(pool_->contains(first));
}

TEST_F(PartitionsOf132, AllContextsEndWithThePool) {
  static_cast<void>(pool_->add(8));
  static_cast<void>(pool_->add(16));
  pool_.reset();
  EXPECT_TRUE(state_->contexts.empty());
}

}  // namespace
}  // namespace commfuse::validate
