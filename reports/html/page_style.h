// SPDX-License-Identifier: Apache-2.0
// The look of the page: reports/assets/page.css.
#pragma once

#include <string_view>

namespace commfuse::reports {

/// Rules for a <style> element; holds no character that XML would read as markup.
std::string_view page_style();

}  // namespace commfuse::reports
