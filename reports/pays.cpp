// SPDX-License-Identifier: Apache-2.0
#include "reports/pays.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "model/text/decimals.h"
#include "model/wrapped.h"

namespace commfuse::reports {

namespace {

std::optional<PayScore> pays_of(std::span<const TableScore> scores) {
  std::optional<PayScore> sum;
  for (const TableScore& score : scores) {
    if (score.pays) {
      sum = sum ? * sum += *score.pays : *score.pays;
    }
  }
  return sum;
}

/// Summarises the errors of serial pairs, or of overlapped kernels.
ErrorSummary errors_of(std::span<const TableScore> scores, bool serial) {
  std::vector<double> errors;
  for (const TableScore& score : scores) {
    for (const ScoredPart& part : score.parts) {
      if (score.kind == "overlap_pairs" && (part.name == "serial") == serial) {
        errors.insert(errors.end(), part.errors.begin(), part.errors.end());
      }
    }
  }
  return summary_of(std::move(errors));
}

std::string share(std::int64_t right, std::int64_t total) {
  return total == 0 ? "none of 0" : fmt::format("{} of {}", right, total);
}

std::string sentences(const PayScore& pays, const ErrorSummary& serial, const ErrorSummary& overlapped) {
  return fmt::format(
      "Pairs that differ by more than {:.0f}%: overlap wins in {} and loses in {}. The prediction agrees for {} "
      "wins and {} losses: balanced accuracy {:.0f}%. Of predictions that were at least {:.0f}% sure, {} came true. "
      "Errors of overlapped "
      "kernels: median {:.1f}%, p90 {:.1f}%, {} times; of serial pairs: median {:.1f}%, p90 {:.1f}%, {} times.",
      100.0 * PayScore::least_difference, pays.wins, pays.losses, share(pays.wins_predicted, pays.wins),
      share(pays.losses_predicted, pays.losses), 100.0 * pays.balanced_accuracy(), 100.0 * PayScore::is_sure,
      share(pays.sure_predicted, pays.sure), 100.0 * overlapped.median, 100.0 * overlapped.p90, overlapped.n,
      100.0 * serial.median, 100.0 * serial.p90, serial.n);
}

}  // namespace

std::string pays_table(std::span<const TableScore> scores) {
  const std::optional<PayScore> pays = pays_of(scores);
  return pays ? "\ndoes overlap pay? (each source predicted with fits that exclude its rows)\n" +
                    wrapped(sentences(*pays, errors_of(scores, true), errors_of(scores, false)), "  ", "  ")
              : "";
}

namespace {

/// Returns a command for the line below a sentence, continued with backslashes.
std::string command_below(const std::string& command) {
  constexpr std::size_t continued = 2;  // columns of " \"
  std::string text = wrapped(command, "    ", "      ", page_width - continued);
  for (std::size_t end = text.find('\n'); end + 1 < text.size(); end = text.find('\n', end + 3)) {
    text.insert(end, " \\");
  }
  return text;
}

}  // namespace

std::string pairs_table(std::span<const TableScore> scores) {
  std::string text;
  const auto percent = [](double predicted, double measured) {
    return with_sign(100.0 * (predicted / measured - 1.0), 0) + "%";
  };
  for (const TableScore& score : scores) {
    for (const OverlapPair& pair : score.pairs) {
      const bool pays = pair.measured_us < pair.serial_measured_us;
      const bool right = (pair.predicted_us < pair.serial_predicted_us) == pays;
      const std::string sentence = fmt::format(
          "{}:{} {} {:.0f} us, predicted {:.0f} ({}); serial {:.0f}, predicted {:.0f} ({}); {}, {} ({:.0f}% sure)",
          score.table, pair.line, pair.implementation, pair.measured_us, pair.predicted_us,
          percent(pair.predicted_us, pair.measured_us), pair.serial_measured_us, pair.serial_predicted_us,
          percent(pair.serial_predicted_us, pair.serial_measured_us), pays ? "wins" : "loses",
          right ? "as predicted" : "predicted otherwise", 100.0 * pair.sure);
      text += wrapped(sentence, "", "  ") + command_below(pair.command);
    }
  }
  return text;
}

void add_pays(nlohmann::ordered_json& object, std::span<const TableScore> scores) {
  const std::optional<PayScore> pays = pays_of(scores);
  object["overlap_pays"] = nullptr;
  if (pays) {
    object["overlap_pays"] = {{"wins", pays->wins},
                              {"wins_told", pays->wins_predicted},
                              {"losses", pays->losses},
                              {"losses_told", pays->losses_predicted},
                              {"balanced_accuracy", pays->balanced_accuracy()},
                              {"sure", pays->sure},
                              {"sure_told", pays->sure_predicted}};
  }
}

std::string pays_section(std::span<const TableScore> scores) {
  const std::optional<PayScore> pays = pays_of(scores);
  return pays ? "## Does overlap pay\n\nEvery thread (issue, pull request, repository) is predicted with costs of "
                "implementations that were fitted without\nits rows.\n\n" +
                    wrapped(sentences(*pays, errors_of(scores, true), errors_of(scores, false)), "", "") + "\n"
              : "";
}

}  // namespace commfuse::reports
