// SPDX-License-Identifier: Apache-2.0
#include "model/cost/price_settings.h"

#include <gtest/gtest.h>

#include "model/config/field.h"

namespace commfuse {
namespace {

TEST(PriceSettings, EachWordSetsAndReadsItsOwnMember) {
  for (const PriceSetting& setting : price_settings) {
    for (const std::string_view word : setting.value.choices()) {
      PriceOptions options;
      setting.value.put(word, options);
      const PricedAs priced = priced_as(options);
      for (const PriceSetting& other : price_settings) {
        EXPECT_EQ(priced.*other.member, other.key == setting.key ? word : other.preset) << setting.key << ' ' << word;
      }
    }
  }
}

TEST(PriceSettings, AreFieldsOfTheSameDefault) {
  EXPECT_EQ(priced_as({}).attention_kernel, "fused");
  for (const PriceSetting& setting : price_settings) {
    const Field* const field = find_field(setting.key);
    ASSERT_NE(field, nullptr) << setting.key;
    EXPECT_EQ(field->preset, setting.preset);
    EXPECT_EQ(field->flag, setting.flag);
  }
  EXPECT_EQ(price_place(&PricedAs::launch), 1U);
}

}  // namespace
}  // namespace commfuse
