// SPDX-License-Identifier: Apache-2.0
#include "reports/html/definitions.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "model/check.h"
#include "model/hardware/parameter.h"
#include "reports/figure/markup.h"

namespace commfuse::reports {

namespace {

constexpr std::array words{
    Definition{"time", "Time",
               "The makespan: from the common release of all ranks to the end of the last op on any rank. It is "
               "exactly compute + slicing + stretch + local + exposed, all on the rank that finishes last."},
    Definition{"compute", "Compute", "Essential work: the compute of the unfused operator, priced in one piece."},
    Definition{"slicing", "Slicing", "What cutting the essential work costs: the price of its pieces minus compute."},
    Definition{"stretch", "Stretch",
               "How much longer essential work runs than priced: interference and jitter. Negative where pieces "
               "overlap."},
    Definition{"local", "Local",
               "Adds, packs, shuffles and copies that the strategy makes, while no essential work runs."},
    Definition{"exposed", "Exposed",
               "Time in which neither essential nor local work runs: head + bubble + tail \xe2\x88\x92 local."},
    Definition{"head", "Head", "From the release to the first start of essential work."},
    Definition{"bubble", "Bubble", "Gaps between essential work."},
    Definition{"tail", "Tail", "From the end of the last essential op to the end of the last op."},
    Definition{"mfu", "MFU",
               "Model FLOPs utilization: FLOPs of the unfused operator on all ranks, without recomputation, over time "
               "\xc3\x97 ranks \xc3\x97 dense peak of the dtype."},
    Definition{"bound", "Bound",
               "The time with free communication: no schedule of this strategy can be faster. Communication still "
               "synchronizes ranks and is still issued by the host."},
    Definition{"error", "Error",
               "One standard error of the time, from those of the parameters and the residuals of their fits. Errors "
               "that two strategies share cancel, so a winner can be more certain than its time."},
    Definition{"behind", "Behind", "Extra time over the fastest strategy at the same point."},
    Definition{"serial", "vs serial", "Time relative to the serial schedule at the same point; negative is faster."},
    Definition{"tie", "Tie",
               "Strategies without a winner: a win needs a difference (2% unless set otherwise) and a probability of "
               "being faster (80% unless set otherwise)."},
};

std::string_view meaning_of(Provenance kind) {
  switch (kind) {
    case Provenance::prior: return "assumed, not measured";
    case Provenance::published: return "from a data sheet or a paper";
    case Provenance::fitted: return "fitted to a public table of measurements";
    case Provenance::measured: return "measured by commfuse on this hardware";
  }
  return "";
}

}  // namespace

std::span<const Definition> definitions() { return words; }

std::string defined(std::string_view id) {
  const auto* definition =
      std::find_if(words.begin(), words.end(), [&](const Definition& word) { return word.id == id; });
  check(definition != words.end(), "the page defines the words it links");
  return fmt::format(R"(<a href="#def-{}">{}</a>)", id, escaped(definition->word));
}

std::string definitions_html() {
  std::string html = "<dl class=\"words\">\n";
  for (const Definition& word : words) {
    html += fmt::format("<div id=\"def-{}\"><dt>{}</dt><dd>{}</dd></div>\n", word.id, escaped(word.word),
                        escaped(word.meaning));
  }
  return html + "</dl>\n";
}

std::string provenances_html(std::span<const std::string> used) {
  std::string html = "<dl class=\"words\">\n";
  for (const Provenance kind : all_provenances) {
    const std::string_view name = name_of(kind);
    const bool is_used = std::find(used.begin(), used.end(), name) != used.end();
    html += fmt::format("<div><dt>{}</dt><dd>{}; {}</dd></div>\n", name, meaning_of(kind),
                        is_used ? "<strong>used here</strong>" : "not used here");
  }
  return html + "</dl>\n";
}

}  // namespace commfuse::reports
