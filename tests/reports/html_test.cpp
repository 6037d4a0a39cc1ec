// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "reports/figure/markup.h"
#include "reports/figure/wording.h"
#include "reports/html/definitions.h"
#include "reports/html/inputs.h"
#include "reports/html/measured.h"
#include "reports/html/overview.h"
#include "reports/html/page_link.h"
#include "reports/html/points.h"
#include "reports/html/report.h"
#include "reports/html/rows_block.h"
#include "tests/reports/trace_runs.h"
#include "tests/texts.h"

namespace commfuse::reports {
namespace {

using namespace std::chrono_literals;
using test::occurrences;
using test::traced;

/// A small checker of XML: every tag must be closed in order, every attribute quoted, and no '<' or '&' unescaped.
/// Reports the first mistake.
class Xml {
 public:
  explicit Xml(std::string_view text) : text_(text) {}

  std::string mistake() {
    while (at_ < text_.size()) {
      const bool valid = text_[at_] == '<' ? tag() : character();
      if (!valid) {
        return "at: " + std::string(text_.substr(at_, 80));
      }
    }
    return open_tags_.empty() ? "" : "not closed: " + open_tags_.back();
  }
  [[nodiscard]] const std::set<std::string>& ids() const { return ids_; }
  [[nodiscard]] const std::vector<std::string>& references() const { return references_; }

 private:
  bool character() {
    if (text_[at_] != '&') {
      ++at_;
      return text_[at_ - 1] != '>' || open_tags_.back() == "style";
    }
    for (const std::string_view entity : {"&amp;", "&lt;", "&gt;", "&quot;", "&#39;"}) {
      if (text_.substr(at_).starts_with(entity)) {
        at_ += entity.size();
        return true;
      }
    }
    return false;
  }
  bool tag() {
    const std::size_t end = text_.find('>', at_);
    if (end == std::string_view::npos) {
      return false;
    }
    std::string_view inside = text_.substr(at_ + 1, end - at_ - 1);
    const bool closes = inside.starts_with('/');
    const bool self_closing = inside.ends_with('/');
    inside = inside.substr(closes ? 1 : 0, inside.size() - (closes || self_closing ? 1 : 0));
    const std::string name(inside.substr(0, inside.find(' ')));
    if (closes && (open_tags_.empty() || open_tags_.back() != name)) {
      return false;
    }
    if (!attributes(inside.substr(name.size()))) {
      return false;
    }
    if (closes) {
      open_tags_.pop_back();
    } else if (!self_closing) {
      open_tags_.push_back(name);
    }
    at_ = end + 1;
    if (name == "script" && !closes) {
      at_ = text_.find("</script>", at_);  // Browsers end a script only at this tag.
    }
    return at_ != std::string_view::npos;
  }
  bool attributes(std::string_view rest) {
    while (!rest.empty()) {
      const std::size_t equals = rest.find("=\"");
      const std::size_t end = equals == std::string_view::npos ? equals : rest.find('"', equals + 2);
      if (!rest.starts_with(' ') || end == std::string_view::npos) {
        return false;
      }
      const std::string_view name = rest.substr(1, equals - 1);
      const std::string value(rest.substr(equals + 2, end - equals - 2));
      if (name.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-") !=
              std::string_view::npos ||
          (name == "id" && !ids_.insert(value).second)) {
        return false;
      }
      if (name == "href") {
        references_.push_back(value);
      }
      rest.remove_prefix(end + 1);
    }
    return true;
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::vector<std::string> open_tags_;
  std::set<std::string> ids_;
  std::vector<std::string> references_;
};

std::string without_doctype(const std::string& html) {
  const std::string doctype = "<!DOCTYPE html>\n";
  EXPECT_EQ(html.rfind(doctype, 0), 0U);
  return html.substr(doctype.size());
}

/// Returns the page without the contents of its scripts and data blocks.
std::string without_scripts(std::string html) {
  for (std::size_t at = 0; (at = html.find("<script", at)) != std::string::npos;) {
    const std::size_t end = html.find("</script>", at);
    EXPECT_NE(end, std::string::npos);
    html.erase(at, end + 9 - at);
  }
  return html;
}

ResultRow page_row(const char* strategy, std::int64_t ranks, std::int64_t seq, Duration makespan) {
  ResultRow row = traced("serial", SiteKind::ag_gemm, 2).row;
  row.strategy = strategy;
  row.parameters = "";
  row.ranks = ranks;
  row.seq = seq;
  row.analysis.critical = {.makespan = makespan, .compute = makespan - 20us, .exposed = 20us, .head = 20us};
  row.mfu = 0.0005 / to_seconds(makespan) / static_cast<double>(ranks);
  return row;
}

/// Four points of two strategies; commfuse wins three, one is a tie.
std::vector<ResultRow> small_rows() {
  return {page_row("serial", 2, 1024, 1000us), page_row("commfuse", 2, 1024, 990us),
          page_row("serial", 2, 2048, 2000us), page_row("commfuse", 2, 2048, 1500us),
          page_row("serial", 4, 1024, 600us),  page_row("commfuse", 4, 1024, 500us),
          page_row("serial", 4, 2048, 1100us), page_row("commfuse", 4, 2048, 1000us)};
}

ReportInput small_sweep(const std::vector<ResultRow>& rows = small_rows()) {
  ReportInput input;
  input.title = "A small sweep";
  input.rows = RowTable(rows);
  input.gantts = {{traced("serial", SiteKind::ag_gemm, 4), traced("sliced", SiteKind::ag_gemm, 4),
                   traced("commfuse", SiteKind::ag_gemm, 4)}};
  input.command = "commfuse-sim sweep --axis seq=1K,2K --axis ranks=2,4";
  input.version = "commfuse 0.1.0";
  return input;
}

TEST(Html, TheVerdictOfTheMostDecisivePointComesFirst) {
  const std::string html = html_report(small_sweep());
  EXPECT_NE(html.find("<p class=\"lead\">At ranks 2, seq 2K: commfuse wins, probability unknown (--uncertainty off): "
                      "25.0% less time than serial.</p>\n<dl class=\"tiles\">"),
            std::string::npos)
      << html.substr(html.find("class=\"lead\""), 500);
  EXPECT_LT(html.find("class=\"lead\""), html.find("<svg"));
}

TEST(Html, SavingsOfOverlapComeBeforeTheWinnerOfManySchedules) {
  std::vector<ResultRow> rows = small_rows();
  rows.insert(rows.begin() + 3, page_row("sliced", 2, 2048, 1800us));
  EXPECT_NE(html_report(small_sweep(rows))
                .find("<p class=\"lead\">Overlap saves 25.0% of serial&#39;s time at ranks 2, seq 2K. commfuse wins"),
            std::string::npos);
}

TEST(Html, TheIntervalAppearsOnlyWithTheSaving) {
  std::vector<ResultRow> rows = small_rows();
  rows.insert(rows.begin() + 3, page_row("sliced", 2, 2048, 1800us));
  ReportInput input = small_sweep(rows);
  TracedRun run = traced("serial", SiteKind::ag_gemm, 4);
  run.row = rows[2];
  input.study = PointStudy{.runs = {run}};
  input.study->saving = SavingInterval{.winner = "commfuse", .next = "serial", .saved = 0.25, .low = 0.2, .high = 0.3};
  const std::string html = html_report(input);
  EXPECT_NE(html.find("25.0% of serial&#39;s time at ranks 2, seq 2K (90% interval: 20.0% to 30.0%). commfuse wins"),
            std::string::npos);
  EXPECT_EQ(occurrences(html, "90% interval: "), 1U);
  input.study->saving->next = "sliced";
  EXPECT_NE(html_report(input).find("<p class=\"quiet\">At ranks 2, seq 2K, commfuse saves 25.0% of the time of sliced "
                                    "(90% interval: 20.0% to 30.0%).</p>"),
            std::string::npos);
}

TEST(Html, TextOfTheTerminalIsSetForThePage) {
  EXPECT_EQ(for_page("serial takes 2716.9 us."), "serial takes 2716.9 \u00b5s.");
  EXPECT_EQ(for_page("(90% interval -14 to 41%) its GEMM (43 us)"),
            "(90% interval \u221214 to 41%) its GEMM (43 \u00b5s)");
  EXPECT_EQ(for_page("80 users of a100-sxm-80 and gb300-nvl72-x2 - 3"),
            "80 users of a100-sxm-80 and gb300-nvl72-x2 - 3");
}

TEST(Html, TheVerdictOnAnImplementationAlreadyHasItsInterval) {
  std::vector<ResultRow> rows = small_rows();
  ResultRow& kernel = rows[3];
  kernel.strategy = "flux";
  kernel.implements = "fused_kernel";
  kernel.beats_serial = 0.9;
  kernel.saving_error = 0.1;
  ReportInput input = small_sweep({rows[2], kernel});
  TracedRun run = traced("serial", SiteKind::ag_gemm, 4);
  run.row = rows[2];
  input.study = PointStudy{.runs = {run}};
  input.study->saving = SavingInterval{.winner = "flux", .next = "serial", .saved = 0.25, .low = 0.1, .high = 0.4};
  const std::string html = html_report(input);
  EXPECT_NE(html.find("25.0% less time than serial (90% interval "), std::string::npos);
  EXPECT_EQ(html.find(" of the time of serial (90% interval"), std::string::npos);
  std::swap(input.study->saving->winner, input.study->saving->next);
  EXPECT_EQ(html_report(input).find(" of the time of flux (90% interval"), std::string::npos);
  // The interval of another pair of schedules is not in the verdict.
  input.study->saving->winner = "te";
  EXPECT_NE(html_report(input).find("te saves 25.0% of the time of flux (90% interval: 10.0% to 40.0%)."),
            std::string::npos);
  input.study->saving->next = "serial";
  EXPECT_NE(html_report(input).find("te saves 25.0% of the time of serial (90% interval: 10.0% to 40.0%)."),
            std::string::npos);
}

TEST(Html, ThePageStatesItsSubjectBelowTheTitle) {
  const std::vector<ResultRow> rows = small_rows();
  const std::string subject = fmt::format(
      "<p class=\"subject\">{} {} on {}, batch {}, {}; ranks 2, 4; seq 1K, 2K; 4 "
      "points, predicted.</p>",
      escaped(rows[0].model), rows[0].scope, escaped(machine_in_words(rows[0])), rows[0].batch, rows[0].dtype);
  EXPECT_NE(html_report(small_sweep()).find(subject), std::string::npos) << subject;
  EXPECT_EQ(html_report(ReportInput{.title = "nothing"}).find("class=\"subject\""), std::string::npos);
  std::vector<ResultRow> model_rows;
  for (const char* model : {"a", "b", "c", "d"}) {
    model_rows.push_back(rows[0]);
    model_rows.back().model = model;
  }
  const auto subject_of = [](const std::vector<ResultRow>& chosen) {
    return subject_in_words(requested_settings(RowTable(chosen)), chosen.size());
  };
  EXPECT_TRUE(subject_of(model_rows).starts_with(fmt::format("{} of 4 models on ", model_rows[0].scope)))
      << subject_of(model_rows);
  for (ResultRow& row : model_rows) {
    row.model = "a";
    row.hardware = "h";
    row.link_bandwidth = fmt::format("x{}", &row - model_rows.data() + 1);
  }
  EXPECT_TRUE(subject_of(model_rows).starts_with(fmt::format("a {} on h at 4 link rates, batch ", model_rows[0].scope)))
      << subject_of(model_rows);
  model_rows[1].network_bandwidth = "x2";
  model_rows[2].hardware = "i";
  EXPECT_TRUE(
      subject_of(model_rows)
          .starts_with(fmt::format("a {} on h and i at 4 link rates and 2 network rates, batch ", model_rows[0].scope)))
      << subject_of(model_rows);
  model_rows.erase(model_rows.begin() + 2, model_rows.end());
  model_rows.erase(model_rows.begin());
  EXPECT_TRUE(
      subject_of(model_rows).starts_with(fmt::format("a {} on h, links x2, network x2, batch ", model_rows[0].scope)))
      << subject_of(model_rows);
  model_rows = {rows[0], rows[0]};
  model_rows[0].model = "a";
  model_rows[1].model = "b";
  EXPECT_TRUE(subject_of(model_rows).starts_with(fmt::format("{} of a and b on ", model_rows[0].scope)))
      << subject_of(model_rows);
}

TEST(Html, DefinitionsAreBelowTheVerdict) {
  const std::string html = html_report(small_sweep());
  EXPECT_NE(
      html.find(
          "serial, the baseline, hides none. To pay or lose, overlap needs more than 2% and a probability of 80%"),
      std::string::npos);
  EXPECT_EQ(html.find("A bound is reached"), std::string::npos);
  std::vector<ResultRow> rows = small_rows();
  ResultRow bound = page_row("fused_kernel", 2, 2048, 1400us);
  bound.bound = true;
  rows.insert(rows.begin() + 4, bound);
  EXPECT_NE(html_report(small_sweep(rows)).find("No implementation reaches a bound"), std::string::npos);
  EXPECT_NE(html_report(small_sweep(rows)).find("<dt>commfuse</dt><dd>ranks-1 point-to-point steps"),
            std::string::npos);
}

TEST(Html, ASinglePointIsJudgedWithItsExposedTime) {
  const std::vector<ResultRow> rows = small_rows();
  const std::string html = html_report(small_sweep({rows[2], rows[3]}));
  EXPECT_NE(html.find("<p class=\"lead\">commfuse wins, probability unknown (--uncertainty off): 25.0% less time than "
                      "serial.</p>"),
            std::string::npos);
  EXPECT_NE(html.find("<p class=\"quiet\">commfuse leaves 20.0 \u00b5s of its 1500.0 \u00b5s exposed; with free "
                      "communication it would take 80.0 \u00b5s.</p>"),
            std::string::npos);
  EXPECT_EQ(html.find("in the median"), std::string::npos);
}

TEST(Html, TheTilesAgreeWithTheRows) {
  const std::string html = html_report(small_sweep());
  EXPECT_NE(
      html.find("<div class=\"value\">12.9%</div><div class=\"about\">of serial&#39;s time; middle 80% of points: 3.4% "
                "to 22.5%</div>"),
      std::string::npos);
  EXPECT_NE(html.find("<div class=\"value\">25.0%</div><div class=\"about\">of serial&#39;s time by commfuse, ranks 2, "
                      "seq 2K</div>"),
            std::string::npos);
  EXPECT_NE(html.find("<div class=\"value\">3 of 4</div><div class=\"about\">points; too close to call at 1</div>"),
            std::string::npos);
}

/// Two batches in bf16 and fp8: four settings, whose points have the same ranks and sequence lengths.
TEST(Html, PlacesSayWhatDiffersBetweenSettings) {
  std::vector<ResultRow> rows;
  for (const std::int64_t batch : {1, 8}) {
    for (const char* dtype : {"bf16", "fp8"}) {
      for (ResultRow row : small_rows()) {
        row.batch = batch;
        row.dtype = dtype;
        row.mfu *= batch == 8 && row.dtype == "fp8" ? 1.5 : 1.0;
        rows.push_back(std::move(row));
      }
    }
  }
  const std::string html = html_report(small_sweep(rows));
  const std::string place =
      fmt::format("{} {} on {}", rows[0].model, rows[0].scope, escaped(machine_in_words(rows[0])));
  EXPECT_NE(html.find("At ranks 2, seq 2K, batch 1, bf16 of " + place), std::string::npos) << html;
  EXPECT_NE(html.find("by commfuse, ranks 2, seq 2K, batch 1, bf16 of " + place), std::string::npos);
  const std::string peak = ", batch 8, fp8 of " + place + "</div>";  // the tile with the highest MFU
  EXPECT_NE(html.find(peak), std::string::npos);
}

TEST(Html, InjectedFaultsAreNamedBelowTheTitle) {
  std::vector<ResultRow> rows = small_rows();
  for (ResultRow& row : rows) {
    row.faults = "slow-rank";
  }
  EXPECT_NE(html_report(small_sweep(rows)).find(", faults slow-rank; ranks 2, 4; seq 1K, 2K; 4 points, predicted.</p>"),
            std::string::npos);
}

TEST(Html, EachStrategyHasItsSavings) {
  std::vector<ResultRow> rows = small_rows();
  rows.push_back(page_row("sliced", 4, 2048, 1210us));
  const std::string html = html_report(small_sweep(rows));
  EXPECT_NE(html.find("scope=\"row\">commfuse</th><td>+12.9%</td><td>3</td><td>0</td><td>1</td><td>4</td>"
                      "<td>+25.0%</td><td>+3.4% to +22.5%</td>"),
            std::string::npos);
  EXPECT_NE(html.find("scope=\"row\">sliced</th><td>\u221210.0%</td><td>0</td><td>1</td><td>0</td><td>1</td>"),
            std::string::npos);
  EXPECT_NE(html.find(">Points</th>"), std::string::npos);
  EXPECT_NE(html_report(small_sweep())
                .find("<caption><span>Time saved against serial, by strategy (4 points)</span></caption>"),
            std::string::npos);
}

TEST(Html, TheFirstMapShowsSavingsAndTheRooflineIsOnlyAPlot) {
  ReportInput input = small_sweep();
  input.study = PointStudy{.runs = input.gantts[0]};
  input.study->roofline = Roofline{.accelerator = "h100-sxm",
                                   .dtype = "bf16",
                                   .peak = {1e15},
                                   .memory = {4e12},
                                   .gemms = {{.schedule = "serial", .shape = "product", .time = 1ms}}};
  input.study->roofline->gemms[0].work = {5e11};
  input.study->roofline->gemms[0].traffic = {1'000'000'000};
  const std::string html = html_report(input);
  const std::size_t map = html.find("<figure data-figure=\"saving-1\">");
  ASSERT_NE(map, std::string::npos);
  EXPECT_LT(map, html.find("<figure data-timeline=\"gantt-1\">"));
  EXPECT_EQ(html.find("data-figure=\"roofline\""), std::string::npos);
  EXPECT_EQ(html.find("data-figure=\"mfu-"), std::string::npos);
  std::set<std::string> ids;
  for (const Figure& figure : report_figures(input).figures) {
    ids.insert(figure.id);
  }
  for (const char* id : {"saving-1", "gantt-1", "roofline", "difference-1", "mfu-1-1", "mfu-1-2", "lead-1"}) {
    EXPECT_TRUE(ids.contains(id)) << id;
  }
}

TEST(Html, FiguresOfSeveralSettingsNameTheirSettingOutsideThePage) {
  std::vector<ResultRow> rows;
  for (const char* links : {"x0.5", "x1", "x2", "x4", "x8"}) {
    for (ResultRow row : small_rows()) {
      row.link_bandwidth = links;
      rows.push_back(row);
    }
  }
  ReportInput input = small_sweep(rows);
  input.gantts.push_back(input.gantts.front());
  const ReportFigures report = report_figures(input);
  const auto figure = [&](std::string_view id) { return *std::ranges::find(report.figures, id, &Figure::id); };
  const std::string setting = setting_title(rows.front());
  EXPECT_TRUE(setting.find(", links x0.5, ") != std::string::npos) << setting;
  EXPECT_TRUE(figure("saving-1").title.starts_with(setting + ": Overlap saves up to 25.0% of serial's time"));
  EXPECT_EQ(figure("saving-1").data.columns,
            (std::vector<std::string>{"ranks", "seq", "saved_share_of_serial", "setting"}));
  EXPECT_EQ(figure("saving-1").data.rows.front().back(), setting);
  EXPECT_TRUE(figure("mfu-1-1").title.starts_with(setting + ": serial: MFU from ")) << figure("mfu-1-1").title;
  const ResultRow& traced_row = input.gantts.front().front().row;
  EXPECT_TRUE(figure("gantt-1").title.starts_with(fmt::format(
      "{} of {} {} on {}: ", point_of(traced_row), traced_row.model, traced_row.scope, machine_in_words(traced_row))))
      << figure("gantt-1").title;
  EXPECT_EQ(report.left_out,
            std::vector<std::string>{"Maps of 4 settings of 5, evenly spaced from the largest saving to the smallest"});
  // In the page, the heading above the figures names the setting.
  const std::string html = html_report(input);
  EXPECT_EQ(occurrences(html, "<figcaption><span>Overlap saves up to 25.0% of serial&#39;s time"), 4U);
  EXPECT_EQ(occurrences(html,
                        "<p class=\"note\">Maps of 4 settings of 5, evenly spaced from the largest saving to the "
                        "smallest.</p>"),
            1U);
  EXPECT_EQ(report_figures(small_sweep()).left_out, std::vector<std::string>{});
}

TEST(Html, TheTableHasEveryRowWithTheWinnerMarked) {
  const std::string html = html_report(small_sweep());
  EXPECT_EQ(occurrences(html, "<th scope=\"row\">"), 8U);
  EXPECT_EQ(occurrences(html, "<tr class=\"fastest\">"), 3U);
  EXPECT_EQ(occurrences(html, "tie: </span>"), 2U);
  EXPECT_NE(
      html.find("<tr class=\"fastest\"><th scope=\"row\"><span class=\"mark\" aria-hidden=\"true\">\u25b8</span><span "
                "class=\"unseen\">fastest: "
                "</span>commfuse</th><td>1500.0</td><td>\u2014</td><td>\u221225.0</td><td>\u2014</td>"),
      std::string::npos);
  EXPECT_NE(html.find("<td>2000.0</td><td>\u2014</td><td>\u2014</td><td>+33.3</td>"), std::string::npos);
}

TEST(Html, PaperShowsThePointOfTheVerdict) {
  std::vector<ResultRow> rows;
  for (std::int64_t i = 1; i <= 50; ++i) {
    rows.push_back(page_row("serial", 2, 1024 * i, 1000us));
    rows.push_back(page_row("commfuse", 2, 1024 * i, i == 30 ? 500us : 900us));
  }
  const std::string html = html_report(small_sweep(rows));
  const std::string table = html.substr(html.find("<div id=\"first-rows\">"));
  EXPECT_EQ(occurrences(table, "<tbody>"), 21U);  // 42 rows
  EXPECT_EQ(occurrences(table, "<tbody class=\"screen\">"), 29U);
  const std::size_t point = table.find("<span class=\"which\">ranks 2, seq 30K");
  ASSERT_NE(point, std::string::npos);
  EXPECT_EQ(table.compare(table.rfind("<tbody", point), 7, "<tbody>"), 0);
}

TEST(Html, PaperShowsOnlyTheVerdictIfPointsHaveManyRows) {
  std::vector<ResultRow> rows;
  for (const std::int64_t seq : {1024, 2048, 4096}) {
    rows.push_back(page_row("serial", 2, seq, 1000us));
    for (int variant = 0; variant < 22; ++variant) {
      rows.push_back(page_row("commfuse", 2, seq, std::chrono::microseconds(seq == 2048 ? 500 : 900) + variant * 1us));
      rows.back().parameters = fmt::format("m={}", variant);
    }
  }
  const std::string html = html_report(small_sweep(rows));
  const std::string table = html.substr(html.find("<div id=\"first-rows\">"));
  EXPECT_EQ(occurrences(table, "<tbody>"), 1U);
  const std::size_t point = table.find("<span class=\"which\">ranks 2, seq 2K");
  ASSERT_NE(point, std::string::npos);
  EXPECT_EQ(table.compare(table.rfind("<tbody", point), 7, "<tbody>"), 0);
}

TEST(Html, OtherTimelinesAreCollapsedWithTheirReason) {
  std::vector<ResultRow> rows = small_rows();
  ReportInput input = small_sweep(rows);
  input.gantts.push_back(input.gantts[0]);
  for (TracedRun& run : input.gantts[0]) {
    run.row.ranks = rows[2].ranks;
    run.row.seq = rows[2].seq;
  }
  for (TracedRun& run : input.gantts[1]) {
    run.row.ranks = rows[6].ranks;
    run.row.seq = rows[6].seq;
  }
  const std::string html = html_report(input);
  EXPECT_NE(html.find("<h3>ranks 2, seq 2K: where overlap saves most</h3>"), std::string::npos);
  EXPECT_NE(html.find("<details><summary>Timeline of ranks 4, seq 2K: the largest point</summary>"), std::string::npos);
  for (TracedRun& run : input.gantts[1]) {
    run.measured = true;
  }
  EXPECT_NE(html_report(input).find("<h3>ranks 4, seq 2K: the measured point</h3>"), std::string::npos);
}

TEST(Html, APointWithoutAResultHasARow) {
  std::vector<ResultRow> rows = small_rows();
  rows.push_back(page_row("serial", 8, 1024, 1000us));
  ResultRow infeasible = page_row("commfuse", 8, 1024, 1us);
  infeasible.analysis = {};
  rows.push_back(infeasible);
  infeasible.strategy = "serial";
  infeasible.ranks = 64;
  infeasible.reason = "64 ranks do not fit <h100>";
  rows.push_back(infeasible);
  const std::string html = html_report(small_sweep(rows));
  EXPECT_EQ(occurrences(html, "no result: the point cannot be run"), 1U);  // This row has no reason.
  EXPECT_EQ(occurrences(html, "no result: 64 ranks do not fit &lt;h100&gt;</td>"), 1U);
  EXPECT_NE(html.find("ranks 8, seq 1K: no result"), std::string::npos);
  EXPECT_EQ(Xml(without_doctype(html)).mistake(), "");
}

TEST(Html, APageWithoutResultsIsValid) {
  const std::string html = html_report(ReportInput{.title = "nothing"});
  EXPECT_NE(html.find("No point has a result."), std::string::npos);
  EXPECT_EQ(Xml(without_doctype(html)).mistake(), "");
}

/// A prefill, or the reason why it has no result.
StepRow prefill(std::int64_t seq, const std::string& strategy, double time_ms, const std::string& reason = "") {
  StepRow row;
  for (const auto& [name, text] :
       {std::pair{"model", "<m>"}, std::pair{"hardware", "h\"&"}, std::pair{"dtype", "bf16"},
        std::pair{"link_bandwidth", "x1"}, std::pair{"network_bandwidth", "x1"}, std::pair{"scope", "prefill"},
        std::pair{"pipeline_schedule", "1f1b"}, std::pair{"recompute", "none"}, std::pair{"optimizer", "adam"}}) {
    row.add(name, std::string(text));
  }
  for (const char* name :
       {"gpus", "tensor", "pipeline", "interleave", "data", "context", "ulysses", "experts", "batch", "micro_batch"}) {
    row.add(name, std::int64_t{1});
  }
  row.add("zero", std::int64_t{0});
  row.add("seq", seq);
  row.add("strategy", strategy);
  if (!reason.empty()) {
    row.add("reason", reason);
    return row;
  }
  row.add("time_ms", time_ms);
  row.add("tokens_per_second", 1e3 * static_cast<double>(seq) / time_ms);
  row.add("tokens_per_second_gpu", 1e3 * static_cast<double>(seq) / time_ms);
  row.add("mfu", 0.5);
  return row;
}

TEST(Html, WholeModelsAppearWithAndWithoutLayers) {
  const std::vector<StepRow> models{prefill(1024, "serial", 10.0), prefill(1024, "commfuse", 8.0),
                                    prefill(2048, "serial", 20.0), prefill(2048, "commfuse", 20.1),
                                    prefill(4096, "serial", 0.0, "no <memory>")};
  ReportInput layers_and_models = small_sweep();
  layers_and_models.models = models;
  for (const std::string& html : {html_report({.title = "t", .models = models}), html_report(layers_and_models)}) {
    const std::string text = without_doctype(html);
    Xml xml(text);
    EXPECT_EQ(xml.mistake(), "");
    for (const std::string& reference : xml.references()) {
      EXPECT_TRUE(reference.starts_with('#') && xml.ids().contains(reference.substr(1))) << reference;
    }
    EXPECT_NE(html.find("commfuse wins, probability unknown (--uncertainty off): 20.0% less time than serial."),
              std::string::npos);
    EXPECT_NE(html.find("Tie: serial and commfuse are within 0.5%; a win needs"), std::string::npos);
    EXPECT_NE(html.find("class=\"none\">no result: no &lt;memory&gt;</td>"), std::string::npos);
    EXPECT_NE(html.find("&lt;m&gt; prefill on h&quot;&amp;, 1 GPU ("), std::string::npos);
    EXPECT_EQ(occurrences(html, "<figure data-figure=\"model-time-"), 2U);
    EXPECT_EQ(occurrences(html, "<figure data-figure=\"model-saving-"), 1U);
    EXPECT_EQ(occurrences(html, "<figure data-figure=\"model-winners-"), 1U);
  }
}

TEST(Html, TilesAndFiguresShowPlansThatFitInMemory) {
  std::vector<StepRow> models{prefill(1024, "serial", 10.0), prefill(1024, "commfuse", 5.0),
                              prefill(2048, "serial", 20.0), prefill(2048, "commfuse", 18.0),
                              prefill(4096, "serial", 40.0), prefill(4096, "commfuse", 38.0)};
  for (std::size_t i = 0; i < models.size(); ++i) {
    models[i].add("fits", i >= 2);
    models[i].add("weights_gb", 70.0);
    models[i].add("cache_gb", i >= 2 ? 5.0 : 20.0);
    models[i].add("capacity_gb", 80.0);
  }
  const std::string html = html_report({.title = "t", .models = models});
  EXPECT_NE(html.find("<dt>Saved at best</dt><dd><div class=\"value\">10.0%</div>"), std::string::npos);
  EXPECT_NE(html.find("<dt>Overlap pays at</dt><dd><div class=\"value\">2 of 2</div>"), std::string::npos);
  EXPECT_EQ(occurrences(html, "<figure data-figure=\"model-time-"), 2U);
  EXPECT_NE(html.find("2 of 3 plans are drawn, only those that fit in memory"), std::string::npos);
}

// The framework's own row is the baseline of figures and maps, and neither it nor serial is overlap.
TEST(Html, MapsMeasureAgainstTheFramework) {
  std::vector<StepRow> models;
  for (const std::int64_t seq : {1024, 2048}) {
    for (const auto& [name, time_ms] : {std::pair{"fsdp", 10.0}, std::pair{"serial", 9.0}, std::pair{"sliced", 12.0}}) {
      models.push_back(prefill(seq, name, time_ms));
      auto& cells = models.back().cells;
      cells.insert(std::ranges::find(cells, "strategy", &std::pair<std::string_view, StepRow::Value>::first),
                   {"framework", std::string("fsdp")});
    }
  }
  const std::string html = html_report({.title = "t", .models = models});
  EXPECT_NE(html.find("Overlap takes a median 20.0% more time than fsdp over 2 points: it loses at all of them"),
            std::string::npos);
  EXPECT_EQ(html.find("serial&#39;s time"), std::string::npos);
  EXPECT_NE(html.find("vs baseline<"), std::string::npos);
}

// A decoding step has two schedules without overlap; its map shows winners, and no savings against serial.
TEST(Html, AFastAllReduceOfADecodingStepIsNotCalledOverlap) {
  std::vector<StepRow> models{prefill(1024, "all_reduce", 8.0), prefill(1024, "serial", 10.0),
                              prefill(1024, "sliced", 12.0),    prefill(2048, "all_reduce", 16.0),
                              prefill(2048, "serial", 20.0),    prefill(2048, "sliced", 20.0)};
  for (StepRow& row : models) {
    std::ranges::find(row.cells, "scope", &std::pair<std::string_view, StepRow::Value>::first)->second =
        std::string("decode");
  }
  const std::string html = html_report({.title = "t", .models = models});
  EXPECT_NE(html.find("overlap takes 50.0% more time than all_reduce. all_reduce wins, probability unknown "
                      "(--uncertainty off): 20.0% less time than serial."),
            std::string::npos);
  EXPECT_EQ(html.find("verlap saves"), std::string::npos);
  EXPECT_EQ(html.find("Saved at best"), std::string::npos);
  EXPECT_NE(html.find("<dt>Overlap pays at</dt><dd><div class=\"value\">0 of 2</div>"), std::string::npos);
  EXPECT_EQ(occurrences(html, "<figure data-figure=\"model-saving-"), 0U);
  EXPECT_EQ(occurrences(html, "<figure data-figure=\"model-winners-"), 1U);
}

TEST(Html, ThePageIsXmlWithUniqueIdsAndValidLinks) {
  const std::string html = html_report(small_sweep());
  const std::string text = without_doctype(html);
  Xml xml(text);
  EXPECT_EQ(xml.mistake(), "");
  EXPECT_FALSE(xml.references().empty());
  for (const std::string& reference : xml.references()) {
    EXPECT_TRUE(reference.starts_with('#') && xml.ids().contains(reference.substr(1))) << reference;
  }
}

TEST(Html, ATimelineLinksToThePageAtItsPoint) {
  ReportInput input = small_sweep();
  const std::string without_page = html_report(input);
  input.page = "https://example.org/commfuse.html";
  const std::string html = html_report(input);
  const ResultRow& row = input.gantts.front().front().row;
  const std::string link = fmt::format("<a href=\"https://example.org/commfuse.html{}\">", escaped(page_hash(row)));
  EXPECT_NE(html.find(link), std::string::npos) << link;
  EXPECT_EQ(without_page.find("Change this point"), std::string::npos);
}

TEST(PageLink, NamesThePointByKeysOfTheCommandLine) {
  ResultRow row;
  row.model = "my model/config.json";
  row.hardware = "h100-sxm";
  row.scope = "mlp";
  row.ranks = 8;
  row.batch = 1;
  row.seq = 8192;
  row.dtype = "bf16";
  row.interference = "static";
  row.launch = "stream";
  row.attention_kernel = "fused";
  EXPECT_EQ(page_hash(row),
            "#model=my+model/config.json&hardware=h100-sxm&scope=mlp&ranks=8&batch=1&seq=8192&dtype=bf16");
  row.link_bandwidth = "450 GB/s";
  row.launch = "graph";
  row.model = "a&b#c\"%";
  EXPECT_EQ(page_hash(row),
            "#model=a%26b%23c%22%25&hardware=h100-sxm&scope=mlp&ranks=8&batch=1&seq=8192&dtype=bf16"
            "&link_bandwidth=450+GB/s&launch=graph");
}

TEST(PageLink, NamesTheImplementationsOfAPoint) {
  ReportInput input = small_sweep();
  input.page = "commfuse.html";
  ASSERT_GE(input.gantts.front().size(), 2U);
  TracedRun& last = input.gantts.front().back();
  last.row.implements = last.row.strategy;
  last.row.strategy = "flux";
  const std::string hash = page_hash(input.gantts.front().front().row, "flux");
  EXPECT_NE(hash.find("&dtype=bf16&as=flux"), std::string::npos) << hash;
  EXPECT_NE(html_report(input).find(escaped("commfuse.html" + hash) + "\""), std::string::npos) << hash;
}

TEST(Html, DigestsAreThoseOfSchedulesThatRan) {
  std::vector<ResultRow> rows{page_row("serial", 1, 1024, 1000us), page_row("serial", 3, 1024, Duration{})};
  rows[0].schedule_sha256 = "ab12";
  rows[1].schedule_sha256 = "";
  EXPECT_EQ(digests_html(RowTable(rows)),
            "<details><summary>SHA-256 of the schedules (1)</summary>\n<ul>\n<li><code>serial, 1 rank: "
            "ab12</code></li>\n</ul></details>\n");
  EXPECT_EQ(digests_html(RowTable(std::vector{rows[1]})), "");
}

TEST(Html, NothingIsFetchedAndOnlyItsOwnScriptsRun) {
  const std::string page = html_report(small_sweep());
  EXPECT_NE(page.find("content=\"default-src 'none'; script-src 'sha256-"), std::string::npos);
  EXPECT_NE(page.find("; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'\"/>"),
            std::string::npos);
  EXPECT_EQ(page.find("script-src 'unsafe"), std::string::npos);
  std::string html = without_scripts(page);
  for (const std::string xmlns : {"xmlns=\"http://www.w3.org/1999/xhtml\"", "xmlns=\"http://www.w3.org/2000/svg\""}) {
    for (std::size_t at = 0; (at = html.find(xmlns)) != std::string::npos;) {
      html.erase(at, xmlns.size());
    }
  }
  for (const char* foreign :
       {"http:", "https:", "<script", "javascript:", "<link", "<img", "<iframe", "@import", "src=", " onclick"}) {
    EXPECT_EQ(html.find(foreign), std::string::npos) << foreign;
  }
}

TEST(Html, HostileNamesAreEscaped) {
  const std::string hostile = "</script><script>alert('1')</script>\"><img src=x onerror=\"alert(2)\">&amp;\x01\xff]]>";
  std::vector<ResultRow> rows = small_rows();
  for (ResultRow& row : rows) {
    row.model = row.hardware = row.scope = row.dtype = row.parameters = row.evaluator = row.provenances = hostile;
    row.schedule_sha256 = hostile;
    row.strategy += hostile;
  }
  ReportInput input = small_sweep(rows);
  input.title = input.command = input.version = hostile;
  for (TracedRun& run : input.gantts[0]) {
    Program hostile_program = *run.program;
    for (Buffer& buffer : hostile_program.buffers) {
      buffer.name = hostile;
    }
    run.program = std::make_shared<const Program>(hostile_program);
    run.row = input.rows[0];
  }
  const std::string html = html_report(input);
  EXPECT_EQ(Xml(without_doctype(html)).mistake(), "");
  EXPECT_EQ(occurrences(html, "<script"), occurrences(html_report(small_sweep()), "<script"));
  EXPECT_EQ(html.find("<img"), std::string::npos);
  EXPECT_EQ(html.find("alert('1')"), std::string::npos);
  EXPECT_NE(html.find("&lt;script&gt;alert(&#39;1&#39;)"), std::string::npos);
}

TEST(Html, ThePageServesScreenReadersAndKeyboards) {
  const std::string html = without_scripts(html_report(small_sweep()));
  EXPECT_NE(html.find("<html xmlns=\"http://www.w3.org/1999/xhtml\" lang=\"en\">"), std::string::npos);
  EXPECT_LT(html.find("class=\"skip\" href=\"#verdict\""), html.find("<h1>"));
  EXPECT_EQ(occurrences(html, "<h1>"), 1U);
  EXPECT_EQ(occurrences(html, "<main>"), 1U);
  EXPECT_EQ(occurrences(html, "<caption>"), 3U);  // savings, who wins, and all results
  EXPECT_EQ(occurrences(html, "<svg "), occurrences(html, "role=\"img\""));
  // Content that scrolls sideways is reachable by keyboard and has a name.
  EXPECT_EQ(occurrences(html, "class=\"scroll"), occurrences(html, "role=\"region\""));
}

TEST(Html, EveryTermIsDefinedOnceAndProvenanceIsNamed) {
  const std::string html = html_report(small_sweep());
  for (const Definition& definition : definitions()) {
    EXPECT_EQ(occurrences(html, "id=\"def-" + std::string(definition.id) + "\""), 1U);
    EXPECT_NE(html.find("href=\"#def-" + std::string(definition.id) + "\""), std::string::npos) << definition.id;
  }
  EXPECT_NE(html.find("<dt>prior</dt><dd>assumed, not measured; <strong>used here</strong></dd>"), std::string::npos);
  EXPECT_NE(html.find("<dt>measured</dt><dd>measured by commfuse on this hardware; not used here</dd>"),
            std::string::npos);
}

TEST(Html, LargeSweepsAreTruncatedWithANote) {
  std::vector<ResultRow> rows = small_rows();
  for (std::int64_t batch = 2; rows.size() < 20'000; ++batch) {
    for (ResultRow row : small_rows()) {
      row.batch = batch;
      rows.push_back(row);
    }
  }
  const std::string html = html_report(small_sweep(rows));
  EXPECT_EQ(occurrences(html, "<th scope=\"row\">"), 400U);
  EXPECT_NE(html.find("more settings are in the CSV and JSON of these results"), std::string::npos);
  EXPECT_LT(html.size(), 4'000'000U);
}

TEST(Html, ASingleOmittedSettingIsNamedInTheSingular) {
  std::vector<ResultRow> rows;
  for (std::int64_t seq = 1; seq <= 200; ++seq) {
    rows.push_back(page_row("serial", 2, 1024 * seq, 1000us));
    rows.push_back(page_row("commfuse", 2, 1024 * seq, 900us));
  }
  rows.push_back(page_row("serial", 2, 1024, 1000us));
  rows.back().batch = rows.front().batch + 1;
  EXPECT_NE(html_report(small_sweep(rows)).find(">1 more setting is in the CSV and JSON of these results.<"),
            std::string::npos);
}

TEST(Html, AMissingIntervalIsExplainedOnlyWithoutErrors) {
  std::vector<ResultRow> rows{page_row("commfuse", 2, 1024, 1000us), page_row("commfuse", 2, 2048, 2000us)};
  const std::string note = "these results were made with --uncertainty off";
  EXPECT_EQ(occurrences(html_report(small_sweep(rows)), note), 1U);
  for (ResultRow& row : rows) {
    row.makespan_error = 0.03;
  }
  EXPECT_EQ(occurrences(html_report(small_sweep(rows)), note), 0U);
}

TEST(Html, MapsWithoutSerialAreNotOrderedBySavings) {
  std::vector<ResultRow> rows;
  for (std::int64_t batch = 1; batch <= 5; ++batch) {
    for (const std::int64_t seq : {1024, 2048}) {
      for (const char* strategy : {"sliced", "commfuse"}) {
        rows.push_back(page_row(strategy, 2, seq, 1000us));
        rows.back().batch = batch;
      }
    }
  }
  EXPECT_EQ(report_figures(small_sweep(rows)).left_out,
            std::vector<std::string>{"Maps of 4 settings of 5, evenly spaced"});
}

TEST(Html, TheRuleOfTheVerdictCanBeSet) {
  ReportInput input = small_sweep();
  input.rule = {.difference = 0.15, .probability = 0.8};
  const std::string html = html_report(input);
  EXPECT_NE(html.find("commfuse wins 2, 2 tie (commfuse and serial 2). A win needs more than 15%"), std::string::npos);
  EXPECT_EQ(occurrences(html, "<tr class=\"fastest\">"), 2U);
}

TEST(Points, AreGroupedAndCounted) {
  const std::vector<ResultRow> rows = small_rows();
  const std::vector<PointView> points = points_of(rows);
  ASSERT_EQ(points.size(), 4U);
  EXPECT_EQ(points[0].front.size(), 2U);
  EXPECT_EQ(points[1].ranking.front()->strategy, "commfuse");
  EXPECT_EQ(points[1].next_strategy()->strategy, "serial");
}

TEST(Overview, SummarizesTheWholeTable) {
  std::vector<ResultRow> rows = small_rows();
  ResultRow infeasible = page_row("serial", 64, 8192, 1us);
  infeasible.analysis = {};
  rows.push_back(infeasible);  // The largest point has no result.
  const RowTable table(rows);
  const Overview overview = overview_of(table);
  EXPECT_EQ(overview.points, 5U);
  ASSERT_EQ(overview.settings.size(), 1U);
  EXPECT_EQ(overview.settings[0].points, 5U);
  EXPECT_EQ(overview.settings[0].rows.count, 9U);
  ASSERT_EQ(overview.wins.size(), 1U);
  EXPECT_EQ(overview.wins[0].strategy, "commfuse");
  EXPECT_EQ(overview.wins[0].points, 3U);
  ASSERT_TRUE(overview.smallest && overview.largest && overview.decisive && overview.highest_mfu);
  EXPECT_EQ(overview.smallest->first, 0U);
  EXPECT_EQ(overview.largest->first, 6U);
  EXPECT_EQ(overview.decisive->first, 2U);
  EXPECT_FALSE(overview.loss);
  EXPECT_EQ(overview.savings.points, 4U);
  EXPECT_EQ(overview.savings.pays, 3U);
  EXPECT_EQ(overview.savings.close, 1U);
  EXPECT_DOUBLE_EQ(overview.savings.best, 0.25);
  EXPECT_EQ(overview.settings[0].savings.points, 4U);
  ASSERT_EQ(overview.strategies.size(), 1U);
  EXPECT_EQ(overview.strategies[0].strategy, "commfuse");
  // Rows 0 and 1 tie.
  EXPECT_EQ(overview.front, (std::vector<std::uint8_t>{2, 2, 0, 1, 0, 1, 0, 1, 0}));
  EXPECT_DOUBLE_EQ(number_of_bits(overview.against_serial[3]), -0.25);
  EXPECT_TRUE(std::isnan(number_of_bits(overview.against_serial[2])));
  EXPECT_TRUE(std::isnan(number_of_bits(overview.against_serial[8])));
}

TEST(Overview, IsEmptyWithoutRows) {
  const Overview overview = overview_of(RowTable());
  EXPECT_EQ(overview.points, 0U);
  EXPECT_FALSE(overview.largest || overview.decisive || overview.highest_mfu);
}

TEST(Overview, UsesTheLargestLossIfOverlapNeverPays) {
  const std::vector<ResultRow> rows{page_row("serial", 2, 1024, 1000us), page_row("commfuse", 2, 1024, 1200us),
                                    page_row("serial", 2, 2048, 1000us), page_row("commfuse", 2, 2048, 1500us)};
  const Overview overview = overview_of(RowTable(rows));
  ASSERT_TRUE(overview.decisive && overview.loss);
  EXPECT_EQ(overview.decisive->first, 2U);
  EXPECT_EQ(overview.loss->first, 2U);
  ASSERT_TRUE(overview.best);
  EXPECT_EQ(overview.best->first, 0U) << "the least loss";
}

TEST(Overview, TheBestPointSavesTheMostEvenIfUnsure) {
  std::vector<ResultRow> rows{page_row("serial", 2, 1024, 1000us), page_row("commfuse", 2, 1024, 900us),
                              page_row("serial", 2, 2048, 1000us), page_row("commfuse", 2, 2048, 850us)};
  rows[2].makespan_error = rows[3].makespan_error = 0.5;
  rows[3].win_probability = 0.6;
  const Overview overview = overview_of(RowTable(rows));
  ASSERT_TRUE(overview.decisive && overview.best);
  EXPECT_EQ(overview.decisive->first, 0U);
  EXPECT_EQ(overview.best->first, 2U);
}

TEST(Overview, UsesTheLargestLeadWithoutSerial) {
  const std::vector<ResultRow> rows{page_row("sliced", 2, 1024, 1000us), page_row("commfuse", 2, 1024, 700us),
                                    page_row("sliced", 2, 2048, 1000us), page_row("commfuse", 2, 2048, 900us)};
  const Overview overview = overview_of(RowTable(rows));
  ASSERT_TRUE(overview.decisive);
  EXPECT_EQ(overview.decisive->first, 0U);
  EXPECT_EQ(overview.savings.points, 0U);
}

TEST(PageRows, KeepEvenlySpreadPointsWholeBeyondOnePage) {
  const std::vector<ResultRow> point = small_rows();
  RowTable rows;
  for (std::int64_t seq = 1; rows.size() < 3 * max_page_rows; ++seq) {
    for (ResultRow row : {point[0], point[1]}) {
      row.seq = seq;
      rows.push_back(row);
    }
  }
  const PageRows page = page_rows(rows);
  EXPECT_LE(page.rows.size(), max_page_rows);
  EXPECT_GT(page.rows.size(), max_page_rows * 9 / 10);
  EXPECT_EQ(page.all_points, rows.size() / 2);
  EXPECT_EQ(page.points, page.rows.size() / 2);
  EXPECT_EQ(page.rows.front(), 0U);
  EXPECT_EQ(page.rows.back(), rows.size() - 1);
  for (std::size_t i = 0; i < page.rows.size(); i += 2) {
    EXPECT_EQ(page.rows[i] + 1, page.rows[i + 1]);
    EXPECT_EQ(page.rows[i] % 2, 0U);
  }
  ReportInput input{.title = "large"};
  input.rows = std::move(rows);
  const std::string html = html_report(input);
  EXPECT_NE(html.find("This page has 40,000 of 120,000 rows, from 20,000 points evenly spaced over 60,000."),
            std::string::npos)
      << html.substr(html.find("This page has"), 120);
  EXPECT_LT(html.size(), 5'000'000U);
}

TEST(PageRows, KeepAllOfFewRows) {
  const std::vector<ResultRow> rows = small_rows();
  const PageRows page = page_rows(RowTable(rows));
  EXPECT_EQ(page.rows.size(), rows.size());
  EXPECT_EQ(page.points, 0U);
}

MeasuredReport measured_report() {
  MeasuredReport report{.title = "Predicted against measured",
                        .verdict = "commfuse was predicted to win by 50.0 %, and won.",
                        .facts = {{"executor", "cpu"}, {"seq", "8K"}},
                        .noise = "1 ms took 1.012 ms",
                        .command = "commfuse-validate compare r.json",
                        .version = "commfuse 0.1.0"};
  report.schedules.push_back({.name = "serial",
                              .predicted = 1500us,
                              .median = Estimate{1530us, TimeRange{1520us, 1540us}},
                              .p10 = 1510us,
                              .p90 = 1560us,
                              .rounds = 25});
  report.schedules.push_back(
      {.name = "commfuse (ring)",
       .predicted = 1000us,
       .median = Estimate{990us, std::nullopt},
       .p10 = 980us,
       .p90 = 1000us,
       .rounds = 3,
       .levels = "T0, T1",
       .timelines = {traced("commfuse", SiteKind::ag_gemm, 4), traced("commfuse", SiteKind::ag_gemm, 4)}});
  report.schedules.push_back({.name = "async_tp", .predicted = 1200us, .levels = "rank 0 waits"});
  return report;
}

TEST(MeasuredPage, ShowsPredictedBesideMeasuredFastestPredictionFirst) {
  const std::string html = html_report(measured_report());
  EXPECT_NE(html.find("<tr><th scope=\"row\">commfuse (ring)</th><td>1000.0</td><td>990.0</td><td>\u2013</td>"
                      "<td>980.0</td><td>1000.0</td><td>3</td><td>-1.0%</td><td>T0, T1</td></tr>\n"
                      "<tr><th scope=\"row\">async_tp</th><td>1200.0</td><td class=\"none\" colspan=\"7\">failed: rank "
                      "0 waits</td></tr>\n"
                      "<tr><th scope=\"row\">serial</th><td>1500.0</td><td>1530.0</td><td>1520.0 to 1540.0</td>"
                      "<td>1510.0</td><td>1560.0</td><td>25</td><td>+2.0%</td><td>not compared</td></tr>"),
            std::string::npos)
      << html.substr(html.find("<tbody>"), 900);
  EXPECT_NE(html.find("Measured against predicted: +2.0% at the worst (serial; 2 schedules measured)"),
            std::string::npos);
  EXPECT_NE(html.find("commfuse (ring), predicted and in one traced iteration"), std::string::npos);
  EXPECT_EQ(Xml(without_doctype(html)).mistake(), "");
}

TEST(MeasuredPage, TheFigureHasALineForEveryTime) {
  const Figure figure = measured_figure(measured_report().schedules);
  std::size_t lines = 0;
  std::size_t boxes = 0;
  for (const Mark& mark : figure.marks) {
    lines += std::holds_alternative<LineMark>(mark) ? 1 : 0;
    boxes += std::holds_alternative<RectMark>(mark) ? 1 : 0;
  }
  EXPECT_EQ(lines, 3U + 2U);  // predictions, medians
  EXPECT_EQ(boxes, 2U);
  EXPECT_LT(figure.x.low, 980.0);
  EXPECT_GT(figure.x.high, 1560.0);
}

TEST(MeasuredPage, EscapesHostileTextAndReportsMissingMeasurements) {
  const std::string hostile = "</script><script>alert('1')</script>\"><img src=x>&amp;\x01\xff]]>";
  MeasuredReport report = measured_report();
  report.title = report.verdict = report.noise = report.command = report.version = hostile;
  report.facts = {{hostile, hostile}};
  for (MeasuredSchedule& schedule : report.schedules) {
    schedule.name = schedule.levels = hostile;
  }
  const std::string html = html_report(report);
  EXPECT_EQ(Xml(without_doctype(html)).mistake(), "");
  EXPECT_EQ(html.find("<script"), std::string::npos);
  EXPECT_EQ(html.find("<img"), std::string::npos);
  report.schedules.clear();
  EXPECT_EQ(Xml(without_doctype(html_report(report))).mistake(), "");
  EXPECT_NE(html_report(report).find("No iteration was traced"), std::string::npos);
}

}  // namespace
}  // namespace commfuse::reports
