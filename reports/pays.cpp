// SPDX-License-Identifier: Apache-2.0
#include "reports/pays.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "model/text/counted.h"
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

/// Summarizes the errors of serial pairs if `serial`, otherwise of overlapped kernels.
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

/// Returns, for example, "16 of 19 wins and 9 of 10 losses: balanced accuracy 87%". Without wins or without losses,
/// says which are missing.
std::string agreement(const PayScore& pays) {
  const std::string wins = fmt::format("{} of {}", pays.wins_predicted, counted(pays.wins, "win"));
  const std::string losses =
      fmt::format("{} of {} loss{}", pays.losses_predicted, pays.losses, pays.losses == 1 ? "" : "es");
  const std::optional<double> balanced = pays.balanced_accuracy();
  return balanced ? fmt::format("{} and {}: balanced accuracy {:.0f}%", wins, losses, 100.0 * *balanced)
                  : fmt::format("{}; there is no {} to balance it", pays.wins > 0 ? wins : losses,
                                pays.wins > 0 ? "loss" : "win");
}

std::string sure_in_words(const PayScore& pays) {
  return pays.sure == 0 ? fmt::format("No prediction was at least {:.0f}% sure.", 100.0 * PayScore::is_sure)
                        : fmt::format("Of predictions that were at least {:.0f}% sure, {} of {} came true.",
                                      100.0 * PayScore::is_sure, pays.sure_predicted, pays.sure);
}

std::string errors_in_words(const ErrorSummary& errors) {
  return fmt::format("median {:.1f}%, p90 {:.1f}% ({})", 100.0 * errors.median, 100.0 * errors.p90,
                     counted(errors.n, "measurement"));
}

std::string sentences(const PayScore& pays, const ErrorSummary& serial, const ErrorSummary& overlapped) {
  return fmt::format(
      "Pairs that differ by more than {:.0f}%: overlap wins in {} and loses in {}. The prediction agrees for {}. {} "
      "Errors of overlapped kernels: {}; of serial pairs: {}.",
      100.0 * PayScore::least_difference, pays.wins, pays.losses, agreement(pays), sure_in_words(pays),
      errors_in_words(overlapped), errors_in_words(serial));
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
      text += pair.without.empty()
                  ? ""
                  : wrapped(fmt::format("The command has a fit with the rows of {}, the prediction one without.",
                                        pair.without),
                            "    ", "    ");
    }
  }
  return text;
}

void add_pays(nlohmann::ordered_json& object, std::span<const TableScore> scores) {
  const std::optional<PayScore> pays = pays_of(scores);
  object["overlap_pays"] = nullptr;
  if (pays) {
    const std::optional<double> balanced = pays->balanced_accuracy();
    object["overlap_pays"] = {
        {"wins", pays->wins},
        {"wins_told", pays->wins_predicted},
        {"losses", pays->losses},
        {"losses_told", pays->losses_predicted},
        {"balanced_accuracy", balanced ? nlohmann::ordered_json(*balanced) : nlohmann::ordered_json()},
        {"sure", pays->sure},
        {"sure_told", pays->sure_predicted}};
  }
}

std::string pays_section(std::span<const TableScore> scores) {
  const auto paragraph = [](const std::vector<TableScore>& tables) {
    const std::optional<PayScore> pays = pays_of(tables);
    return pays ? wrapped(sentences(*pays, errors_of(tables, true), errors_of(tables, false)), "", "") + "\n" : "";
  };
  const auto tables_with = [&](bool brought_along) {
    std::vector<TableScore> tables;
    std::ranges::copy_if(scores, std::back_inserter(tables),
                         [&](const TableScore& score) { return score.brought_along == brought_along; });
    return tables;
  };
  const std::string external = paragraph(tables_with(false));
  const std::string published = paragraph(tables_with(true));
  if (external.empty() && published.empty()) {
    return {};
  }
  const bool has_both = !external.empty() && !published.empty();
  return std::string{
             "## Does overlap pay\n\nEvery thread (issue, pull request, repository) is predicted with costs of "
             "implementations that were fitted without\nits rows.\n\n"} +
         (has_both ? "Tables that are not part of this project:\n\n" : "") + external +
         (has_both ? "Tables of `configs/published`, some with rows of the same threads, so the two counts must not be "
                     "added. They have\nmachines that the other tables lack; [the record of each machine]"
                     "(implementations.md#how-far-to-trust-this) differs.\n\n"
                   : "") +
         published;
}

}  // namespace commfuse::reports
