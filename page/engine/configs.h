// SPDX-License-Identifier: Apache-2.0
// The unchanged files of configs/ that points and plans can name. page/engine/configs.cmake generates the definitions.
#pragma once

#include <span>
#include <string_view>

namespace commfuse::page {

struct ConfigText {
  std::string_view path;  ///< Relative to configs/.
  std::string_view text;
};

std::span<const ConfigText> configs();

}  // namespace commfuse::page
