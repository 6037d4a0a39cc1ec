// SPDX-License-Identifier: Apache-2.0
#include "sim/commands/row_point.h"

#include <fmt/format.h>

#include <string>
#include <utility>

#include "model/check.h"
#include "model/config/resolver.h"

namespace commfuse::sim {

Settings settings_of_row(const ResultRow& row) {
  Resolver resolver;
  const auto put = [&](std::string_view key, const std::string& text) {
    const Field* field = find_field(key);
    check(field != nullptr, "a column of results that is a setting has its key");
    if (!text.empty()) {
      resolver.read_flag(*field, text);
    }
  };
  for (const auto& [key, text] :
       {std::pair{"model", row.model}, std::pair{"hardware", row.hardware},
        std::pair{"link_bandwidth", row.link_bandwidth}, std::pair{"network_bandwidth", row.network_bandwidth},
        std::pair{"scope", row.scope}, std::pair{"dtype", row.dtype}, std::pair{"interference", row.interference},
        std::pair{"launch", row.launch}, std::pair{"attention_kernel", row.attention_kernel},
        std::pair{"jitter", row.jitter}, std::pair{"faults", row.faults},
        std::pair{"ranks", fmt::format("{}", row.ranks)}, std::pair{"batch", fmt::format("{}", row.batch)},
        std::pair{"seq", fmt::format("{}", row.seq)}}) {
    put(key, text);
  }
  if (row.tails) {
    put("samples", fmt::format("{}", row.tails->percentiles.samples));
    put("seed", fmt::format("{}", row.seed));
  }
  put("uncertainty", row.makespan_error ? "on" : "off");
  return resolver.finish();
}

}  // namespace commfuse::sim
