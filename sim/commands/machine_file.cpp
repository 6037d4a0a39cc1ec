// SPDX-License-Identifier: Apache-2.0
#include "sim/commands/machine_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <system_error>
#include <utility>

#include "model/config/catalogue.h"
#include "model/config_error.h"
#include "model/wrapped.h"
#include "reports/atomic_file.h"
#include "sim/calibrate/residual_plot.h"

namespace commfuse::sim {

namespace {

namespace fs = std::filesystem;

void require_name(const std::string& name) {
  constexpr std::string_view allowed = "abcdefghijklmnopqrstuvwxyz0123456789.-";
  if (name.empty() || name.find_first_not_of(allowed) != std::string::npos) {
    throw ConfigError(fmt::format("'{}' is not a machine name; use lower-case letters, digits, '-' and '.'", name));
  }
}

/// Describes the parameters of a part that was fitted to few rows.
std::string few_rows_of(const calibrate::FittedPart& part) {
  std::string moved;
  std::string at_limit;
  for (const FittedParameter& parameter : part.parameters) {
    const std::string factor = fmt::format("{} x{:.3g}", parameter.name, parameter.value / parameter.start);
    if (parameter.undecided) {
      at_limit += (at_limit.empty() ? "" : ", ") + factor;
    } else {
      moved += fmt::format("{}{} ± {:.0f}%", moved.empty() ? "" : ", ", factor, 100.0 * parameter.standard_error);
    }
  }
  std::string text =
      wrapped(fmt::format("few rows, so the base is the prior; changed: {}", moved.empty() ? "nothing" : moved), "    ",
              "      ");
  if (!at_limit.empty()) {
    text +=
        wrapped(fmt::format("at the limit of the prior, whose uncertainty is kept: {}", at_limit), "    ", "      ");
  }
  return text;
}

std::string fit_summary(const calibrate::FittedPart& part) {
  std::string text = wrapped(fmt::format("{}, from {}", part.name, part.source), "", "  ");
  for (const auto& [words, quality] : {std::pair("fitted", part.fitted), std::pair("held out", part.held_out)}) {
    if (quality.rows == 0) {
      continue;
    }
    text += fmt::format("    {:<9} {:>6} {:<5} error {:5.1f}% median, {:5.1f}% p90, {:5.1f}% max\n", words,
                        quality.rows, quality.rows == 1 ? "row," : "rows,", 100.0 * quality.median, 100.0 * quality.p90,
                        100.0 * quality.max);
  }
  const auto add_names = [&](const char* words, bool FittedParameter::*applies) {
    std::string names;
    for (const FittedParameter& parameter : part.parameters) {
      if (parameter.*applies) {
        names += (names.empty() ? "" : ", ") + parameter.name;
      }
    }
    text += names.empty() ? "" : wrapped(fmt::format("{}: {}", words, names), "    ", "      ");
  };
  if (part.has_few) {
    text += few_rows_of(part);
    if (!part.unchanged.empty()) {
      text += wrapped(fmt::format("unchanged from the base: {}", fmt::join(part.unchanged, ", ")), "    ", "      ");
    }
  }
  constexpr double far_off = 0.25;
  if (part.fitted.rows > 0 && part.fitted.median > far_off) {
    text += wrapped(fmt::format("warning: half of these rows are more than {:.0f}% off; the rows are from another "
                                "machine than the base, or too few: measure more sizes, or name another --base",
                                100.0 * far_off),
                    "    ", "      ");
  }
  if (!part.has_few) {
    add_names("the rows do not determine", &FittedParameter::undecided);
  }
  add_names("limited to the nominal_rate of the link, which the rows exceed", &FittedParameter::at_capacity);
  return text + calibrate::residual_plot(part.residuals);
}

/// A file that is removed when this object is destroyed, unless the file was renamed.
class Draft {
 public:
  explicit Draft(fs::path path) : path_(std::move(path)) {}
  Draft(const Draft&) = delete;
  Draft& operator=(const Draft&) = delete;
  ~Draft() {
    std::error_code error;
    fs::remove(path_, error);
  }
  [[nodiscard]] const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

/// Returns the first mistake without its place and remedy, because the file in the place will not exist.
std::string reason_of(std::string_view mistake, std::string_view path) {
  mistake = mistake.substr(0, mistake.find('\n'));
  if (mistake.substr(0, path.size()) == path) {
    mistake.remove_prefix(std::min(mistake.size(), mistake.find(' ', path.size()) + 1));
  }
  return std::string(mistake.substr(0, mistake.find(';')));
}

}  // namespace

void require_new_machine(const std::string& name, const fs::path& out) {
  require_name(name);
  std::error_code error;  // Writing reports a path that is not valid.
  if (fs::exists(fs::symlink_status(out, error))) {
    throw ConfigError(fmt::format("{} already exists; choose another --out, or remove this file", out.string()));
  }
}

void write_machine(const fs::path& path, const std::string& base, const std::string& yaml) {
  const Draft draft(fs::absolute(path.string() + ".part"));
  reports::atomic_write(draft.path(), yaml);
  try {
    load_machine(draft.path().string());
  } catch (const ConfigError& error) {
    throw ConfigError(
        fmt::format("the fit is impossible for {} ({}); name the --base that was measured, or a file of your own that "
                    "extends {} and sets the nominal_rate of its link",
                    base, reason_of(error.what(), draft.path().string()), base));
  }
  fs::rename(draft.path(), path);
}

std::string calibration_in_words(const calibrate::Observations& observations, const calibrate::Calibration& calibration,
                                 const fs::path& out) {
  std::string text;
  for (const calibrate::FittedPart& part : calibration.parts) {
    text += fit_summary(part) + "\n";
  }
  for (const auto* sentences : {&observations.skipped, &calibration.skipped}) {
    for (const std::string& sentence : *sentences) {
      text += wrapped(fmt::format("skipped: {}", sentence), "", "  ");
    }
  }
  return text + fmt::format("wrote {}\n", out.string());
}

}  // namespace commfuse::sim
