// SPDX-License-Identifier: Apache-2.0
// Tests that docs/plan.md names every key with its doc and default.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "model/config/plan_field.h"
#include "tests/cli/program.h"

namespace commfuse::test {
namespace {

const std::string plan_page = contents_of(COMMFUSE_SOURCE_DIR "/docs/plan.md");

TEST(PlanPage, NamesEveryKeyWithItsDocAndDefault) {
  for (const PlanField& field : plan_fields()) {
    const std::string_view preset = field.required                   ? "required"
                                    : !field.preset.empty()          ? field.preset
                                    : !field.computed_preset.empty() ? field.computed_preset
                                                                     : "none";
    EXPECT_NE(plan_page.find(fmt::format("| `{}` | {} | {} |\n", field.key, field.doc, preset)), std::string::npos)
        << field.key;
  }
}

}  // namespace
}  // namespace commfuse::test
