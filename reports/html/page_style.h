// SPDX-License-Identifier: Apache-2.0
// Style of the page: palette.css and page.css of reports/assets.
#pragma once

#include <string_view>

namespace commfuse::reports {

/// Returns rules for a <style> element, without characters that XML would read as markup.
std::string_view page_style();

}  // namespace commfuse::reports
