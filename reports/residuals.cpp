// SPDX-License-Identifier: Apache-2.0
#include "reports/residuals.h"

#include <fmt/format.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>

#include "model/text/counted.h"
#include "reports/joined_scores.h"

namespace commfuse::reports {

namespace {

using Scores = std::span<const TableScore>;
using Json = nlohmann::ordered_json;

/// Returns values by the name of the limit.
template <class T>
Json limits_json(const std::array<T, all_limits.size()>& values) {
  Json object = Json::object();
  for (const Limit limit : all_limits) {
    object[std::string(name_of(limit))] = values[static_cast<std::size_t>(limit)];
  }
  return object;
}

/// Returns "3812 rows read".
std::string rows_read(std::int64_t rows) { return fmt::format("{} read", counted(rows, "row")); }

/// Returns a line "    by_limit.latency: 1.000 -> 0.712, 3812 rows read" for each limit with rows that the fit read.
std::string by_limit_lines(const FitRows& fit, const NewResidual& new_fit) {
  std::string text;
  for (std::size_t i = 0; i < all_limits.size(); ++i) {
    if (new_fit.read_by_limit[i] > 0) {
      text += fmt::format("    by_limit.{}: {:.3f} -> {:.3f}, {}\n", name_of(all_limits[i]), fit.by_limit[i],
                          new_fit.by_limit[i], rows_read(new_fit.read_by_limit[i]));
    }
  }
  return text;
}

}  // namespace

std::string residuals_table(Scores scores) {
  std::string text;
  std::string machine;
  for (const FitRows& fit : fits_of(scores)) {
    const NewResidual new_fit = new_residual(fit);
    text += fit.machine == machine ? "" : fmt::format("{}\n", fit.machine);
    machine = fit.machine;
    text += fmt::format("  {}: {:.4f}", fit.key, fit.residual);
    if (!new_fit.enough) {
      text += fmt::format(" stays: {}, fewer than {}\n", rows_read(new_fit.read), least_rows_for_residual);
      continue;
    }
    text += fmt::format(" -> {:.4f}\n    {}; {} held out", new_fit.residual, rows_read(new_fit.read), new_fit.held_out);
    text += new_fit.held_out == 0 ? "\n"
                                  : fmt::format(": 68% hold {} -> {}, 95% hold {} -> {}\n",
                                                with_band(new_fit.now.at[1]), with_band(new_fit.then.at[1]),
                                                with_band(new_fit.now.at[3]), with_band(new_fit.then.at[3]));
    text += by_limit_lines(fit, new_fit);
  }
  return text.empty() ? "no fit has read any of these tables\n" : text;
}

std::string residuals_json(Scores scores) {
  Json fits_json = Json::array();
  for (const FitRows& fit : fits_of(scores)) {
    const NewResidual new_fit = new_residual(fit);
    fits_json.push_back({{"machine", fit.machine},
                         {"key", fit.key},
                         {"residual", fit.residual},
                         {"new_residual", new_fit.enough ? Json(new_fit.residual) : Json()},
                         {"by_limit", limits_json(fit.by_limit)},
                         {"new_by_limit", new_fit.enough ? limits_json(new_fit.by_limit) : Json()},
                         {"read", new_fit.read},
                         {"read_by_limit", limits_json(new_fit.read_by_limit)},
                         {"held_out", new_fit.held_out},
                         {"now", levels_json(new_fit.now)},
                         {"then", levels_json(new_fit.then)}});
  }
  return fits_json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace commfuse::reports
