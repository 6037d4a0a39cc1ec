// SPDX-License-Identifier: Apache-2.0
#include "reports/html/page_style.h"

namespace commfuse::reports {

/// Generated at build time by cmake/embed.cmake.
namespace assets {
std::string_view style();
}  // namespace assets

std::string_view page_style() { return assets::style(); }

}  // namespace commfuse::reports
