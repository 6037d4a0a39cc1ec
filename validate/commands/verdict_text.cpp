// SPDX-License-Identifier: Apache-2.0
#include "validate/commands/verdict_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <pugixml.hpp>
#include <sstream>
#include <string_view>
#include <utility>

#include "model/analysis/median.h"
#include "model/math/functions.h"
#include "model/text/counted.h"
#include "model/text/plain_text.h"
#include "model/text/quantity.h"
#include "model/wrapped.h"

namespace commfuse::validate {

namespace {

using Json = nlohmann::ordered_json;

std::string percent(double share) {
  return share > 0.0 && share < 0.005 ? "<1%" : fmt::format("{:.0f}%", 100.0 * share);
}

/// Returns the permitted share of false alarms exactly, because it may be a fraction of a percent.
std::string alarms_in_words(const VerdictPage& page) {
  return fmt::format("at most {:g}% false alarms", 100.0 * page.false_alarms);
}

std::size_t count_of(const Verdicts& verdicts, Health health) {
  return static_cast<std::size_t>(std::count_if(verdicts.nodes.begin(), verdicts.nodes.end(),
                                                [&](const NodeVerdict& verdict) { return verdict.health == health; }));
}

std::size_t count_of(const std::vector<JobVerdict>& jobs, Health health) {
  return static_cast<std::size_t>(std::count_if(
      jobs.begin(), jobs.end(), [&](const JobVerdict& verdict) { return verdict.judgement.health == health; }));
}

std::string counts(const Verdicts& verdicts) {
  return fmt::format("{} healthy, {} bad, {} undecided", count_of(verdicts, Health::healthy),
                     count_of(verdicts, Health::bad), count_of(verdicts, Health::undecided));
}

/// Returns the node's name, such as "tray00 to tray17 (18)" where there are many hosts.
std::string shown_name(const NodeLog& log) {
  return has_many_hosts(log) ? fmt::format("{} to {} ({})", log.hosts.front(), log.hosts.back(), log.hosts.size())
                             : log.name;
}

double ratio_of(const ClassHalf& half) { return math::exp(half.median); }

std::string fleet_sentence(const FleetVerdict& fleet) {
  const std::string median_text =
      fleet.median.health == Health::bad
          ? fmt::format(
                "the whole fleet is {:.2f} times as slow as expected{}", fleet.median.slowdown,
                fleet.median.suspects.empty() ? "" : fmt::format("; {}", fleet.median.suspects.front().fault->summary))
      : fleet.median.health == Health::healthy ? "its median is as expected"
                                               : "its median cannot be judged";
  return fmt::format("fleet of {}: {}; nodes differ by {:.1f}%", fleet.nodes, median_text, 100.0 * fleet.spread);
}

std::string half_lines(const Judgement& judgement) {
  std::string text = fmt::format("  {:<15}{:>6}{:>7}  {:<10}{:>6}{:>17}{:>8}\n", "collective", "ranks", "nodes",
                                 "limited by", "sizes", "time / expected", "error");
  for (const ClassHalf& half : judgement.halves) {
    text += fmt::format("  {:<15}{:>6}{:>7}  {:<10}{:>6}{:>17.3f}{:>7.1f}%\n", name_of(half.op), half.gpus, half.nodes,
                        name_of(half.limit), half.rows.size(), ratio_of(half), 100.0 * error_of(half));
  }
  return text;
}

/// Returns a string such as "512.3 ms".
std::string step_in_words(double us) {
  return us >= 1e6   ? fmt::format("{:.2f} s", us / 1e6)
         : us >= 1e3 ? fmt::format("{:.1f} ms", us / 1e3)
                     : fmt::format("{:.1f} us", us);
}

std::string job_lines(const JobVerdict& verdict) {
  const StepJudgement& judgement = verdict.judgement;
  std::string text =
      wrapped(fmt::format("job {}: {}, P(healthy) {}; {}, {} of {}", verdict.job.name, name_of(judgement.health),
                          percent(judgement.healthy_probability), counted(judgement.ranks, "rank"),
                          counted(judgement.steps, "step"), step_in_words(judgement.step_us)),
              "", "  ");
  text += wrapped(verdict.why, "  ", "    ");
  if (judgement.health == Health::bad) {
    text += fmt::format("  this makes the step {:.2f} times as long ({})\n", judgement.slowdown,
                        name_of(judgement.severity));
    text += fmt::format("  next: {}\n", verdict.next);
  }
  return text;
}

std::string copy_lines(const std::vector<CopyJudgement>& copies) {
  std::string text = copies.empty() ? ""
                                    : fmt::format("  {:<26}{:>6}{:>10}{:>14}{:>22}\n", "copies", "timed", "GB/s",
                                                  "expected", "worst / expected");
  for (const CopyJudgement& copy : copies) {
    text += fmt::format("  {:<26}{:>6}{:>10.1f}{:>14.1f}{:>22.3f}\n", copy.wires, copy.copies,
                        copy.measured.value / 1e9, copy.expected.value / 1e9, copy.rate_share);
  }
  return text;
}

std::string node_lines(const NodeVerdict& verdict) {
  std::string text = wrapped(fmt::format("{}: {}", verdict.where, verdict.why), "", "  ");
  for (std::size_t i = 1; i < std::min<std::size_t>(3, verdict.suspects.size()); ++i) {
    const SuspectedFault& other = verdict.suspects[i];
    text += wrapped(fmt::format("or: {}{} ({})", other.subject.empty() ? "" : other.subject + ": ",
                                other.fault->summary, percent(other.probability)),
                    "  ", "    ");
  }
  if (!verdict.next.empty()) {
    text += fmt::format("  next: {}\n", verdict.next);
  }
  return text;
}

Json suspects_of(const NodeVerdict& verdict) {
  Json list = Json::array();
  for (const SuspectedFault& suspect : verdict.suspects) {
    list.push_back({{"fault", suspect.fault->name},
                    {"summary", suspect.fault->summary},
                    {"subject", suspect.subject},
                    {"probability", suspect.probability},
                    {"next", suspect.fault->next}});
  }
  return list;
}

Json halves_of(const Judgement& judgement) {
  Json list = Json::array();
  for (const ClassHalf& half : judgement.halves) {
    list.push_back({{"collective", name_of(half.op)},
                    {"ranks", half.gpus},
                    {"nodes", half.nodes},
                    {"limited_by", name_of(half.limit)},
                    {"sizes", half.rows.size()},
                    {"time_over_expected", ratio_of(half)},
                    {"shared_error", half.shared_error},
                    {"own_error", half.own_error}});
  }
  return list;
}

Json rows_of(const NodeVerdict& verdict) {
  Json list = Json::array();
  for (std::size_t i = 0; i < verdict.log.rows.size(); ++i) {
    const MeasuredMessage& row = verdict.log.rows[i];
    const Expected& expected = verdict.judgement.expected[i];
    list.push_back({{"collective", name_of(row.message.op)},
                    {"ranks", row.message.gpus},
                    {"nodes", row.message.nodes},
                    {"bytes", row.message.bytes.count},
                    {"measured_us", row.time_us},
                    {"expected_us", to_microseconds(expected.time)},
                    {"busbw_gb_s", bus_bandwidth(row.message, from_seconds(1e-6 * row.time_us)).value / 1e9},
                    {"expected_busbw_gb_s", bus_bandwidth(row.message, expected.time).value / 1e9},
                    {"limited_by", name_of(expected.limit)}});
  }
  return list;
}

Json copies_of(const std::vector<CopyJudgement>& copies) {
  Json list = Json::array();
  for (const CopyJudgement& copy : copies) {
    list.push_back(
        {{"wires", copy.wires},
         {"health", name_of(copy.health)},
         {"healthy_probability", copy.healthy_probability},
         {"copies", copy.copies},
         {"measured_gb_s", copy.measured.value / 1e9},
         {"expected_gb_s", copy.expected.value / 1e9},
         {"measured_over_expected", copy.rate_share},
         {"subject", copy.suspects.empty() || copy.health != Health::bad ? "" : copy.suspects.front().subject}});
  }
  return list;
}

Json findings_of(const std::vector<ToolFinding>& findings) {
  Json list = Json::array();
  for (const ToolFinding& finding : findings) {
    list.push_back({{"tool", finding.tool},
                    {"test", finding.test},
                    {"subject", finding.subject},
                    {"failed", finding.is_bad},
                    {"severity", name_of(finding.severity)},
                    {"text", finding.text},
                    {"cause", finding.cause},
                    {"next", finding.next}});
  }
  return list;
}

Json object_of(const NodeVerdict& verdict, const VerdictPage& page) {
  Json json{{"schema", "commfuse.verdict/1"},
            {"node", verdict.log.name},
            {"hosts", verdict.log.hosts},
            {"machine", page.machine},
            {"health", name_of(verdict.health)},
            {"healthy_probability", verdict.healthy_probability},
            {"severity", name_of(verdict.severity)},
            {"slowdown", verdict.slowdown},
            {"where", verdict.where},
            {"why", verdict.why},
            {"next", verdict.next},
            {"suspects", suspects_of(verdict)},
            {"wrong_results", verdict.log.wrong_results},
            {"nccl_versions", verdict.log.nccl_versions},
            {"false_alarms", page.false_alarms},
            {"medians", halves_of(verdict.judgement)},
            {"copies", copies_of(verdict.copies)},
            {"findings", findings_of(verdict.log.findings)}};
  if (page.has_rows) {
    json["rows"] = rows_of(verdict);
  }
  return json;
}

Json object_of(const JobVerdict& verdict, const VerdictPage& page) {
  const StepJudgement& judgement = verdict.judgement;
  Json suspects = Json::array();
  for (const SuspectedRank& suspect : judgement.suspects) {
    const auto host = verdict.job.hosts.find(suspect.rank);
    suspects.push_back({{"rank", suspect.rank},
                        {"host", host == verdict.job.hosts.end() ? "" : host->second},
                        {"fault", text_of(suspect.fault).name},
                        {"summary", text_of(suspect.fault).summary},
                        {"probability", suspect.probability},
                        {"degree", suspect.degree},
                        {"next", text_of(suspect.fault).next}});
  }
  return {{"schema", "commfuse.verdict/1"},
          {"job", verdict.job.name},
          {"health", name_of(judgement.health)},
          {"healthy_probability", judgement.healthy_probability},
          {"severity", name_of(judgement.severity)},
          {"slowdown", judgement.slowdown},
          {"ranks", judgement.ranks},
          {"steps", judgement.steps},
          {"step_us", judgement.step_us},
          {"why", verdict.why},
          {"next", verdict.next},
          {"suspects", suspects},
          {"false_alarms", page.false_alarms}};
}

Json object_of(const FleetVerdict& fleet, const VerdictPage& page) {
  return {{"schema", "commfuse.verdict/1"},
          {"fleet", fleet.nodes},
          {"machine", page.machine},
          {"health", name_of(fleet.median.health)},
          {"healthy_probability", fleet.median.healthy_probability},
          {"severity", name_of(fleet.median.severity)},
          {"slowdown", fleet.median.slowdown},
          {"spread", fleet.spread},
          {"why", fleet_sentence(fleet)},
          {"false_alarms", page.false_alarms}};
}

/// Replaces bytes that are not UTF-8, so that they do not prevent a verdict.
std::string dumped(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

/// Returns a label's value with the escapes that Prometheus reads.
std::string label(std::string_view value) {
  std::string text;
  for (const char c : value) {
    text += c == '\\' ? "\\\\" : c == '"' ? "\\\"" : c == '\n' ? "\\n" : std::string(1, c);
  }
  return text;
}

/// Returns a cell of a Markdown table, with its bars escaped.
std::string cell(std::string_view value) {
  std::string text;
  for (const char c : value) {
    text += c == '|' ? "\\|" : std::string(1, c);
  }
  return text;
}

std::string gauge(std::string_view name, std::string_view help) {
  return fmt::format("# HELP {0} {1}\n# TYPE {0} gauge\n", name, help);
}

/// Returns one row per message, with the median time of its repetitions, because Prometheus refuses a sample that is
/// given twice.
std::vector<MeasuredMessage> distinct_rows(const NodeLog& log) {
  std::vector<std::pair<Message, std::vector<double>>> times_of;  // in the order of the log
  std::map<decltype(key_of(Message{})), std::size_t> index_of;
  for (const MeasuredMessage& row : log.rows) {
    const auto [entry, is_new] = index_of.emplace(key_of(row.message), times_of.size());
    if (is_new) {
      times_of.emplace_back(row.message, std::vector<double>{});
    }
    times_of[entry->second].second.push_back(row.time_us);
  }
  std::vector<MeasuredMessage> rows;
  for (auto& [message, times] : times_of) {
    rows.push_back({message, median(std::move(times))});
  }
  return rows;
}

std::string node_table(const Verdicts& verdicts) {
  constexpr std::size_t max_listed = 16;
  const bool shows_all = verdicts.nodes.size() <= max_listed;
  std::size_t width = 4;
  for (const NodeVerdict& verdict : verdicts.nodes) {
    width = std::max(width, shown_name(verdict.log).size());
  }
  std::string text;
  if (verdicts.nodes.empty()) {
    return text;
  }
  text += fmt::format("\n{:<{}}  {:<9}  {:>12}  {:<8}  {:>8}\n", "node", width, "health", "P(healthy)", "severity",
                      "slowdown");
  for (const NodeVerdict& verdict : verdicts.nodes) {
    if (shows_all || verdict.health != Health::healthy) {
      text += fmt::format("{:<{}}  {:<9}  {:>12}  {:<8}  {:>8.2f}\n", shown_name(verdict.log), width,
                          name_of(verdict.health), percent(verdict.healthy_probability), name_of(verdict.severity),
                          verdict.slowdown);
    }
  }
  text += "\n";
  for (const NodeVerdict& verdict : verdicts.nodes) {
    if (verdict.health != Health::healthy || verdicts.nodes.size() == 1) {
      text += node_lines(verdict);
      text += shows_all && !verdict.judgement.halves.empty() ? half_lines(verdict.judgement) : "";
      text += shows_all ? copy_lines(verdict.copies) : "";
    }
  }
  if (!verdicts.blamed_hosts.empty()) {
    text += wrapped(
        fmt::format("bad in all {} runs with other hosts: {}", verdicts.blamed_hosts.size() == 1 ? "its" : "their",
                    fmt::join(verdicts.blamed_hosts, ", ")),
        "", "  ");
  }
  return text;
}

}  // namespace

std::string verdict_table(const Verdicts& verdicts, const VerdictPage& page) {
  std::string text;
  if (!verdicts.nodes.empty()) {
    text += wrapped(fmt::format("against {}, {}: {}", page.machine, alarms_in_words(page), counts(verdicts)), "", "  ");
  }
  if (verdicts.fleet) {
    text += wrapped(fleet_sentence(*verdicts.fleet), "", "  ");
  }
  text += node_table(verdicts);
  for (const JobVerdict& verdict : verdicts.jobs) {
    text += text.empty() ? "" : "\n";
    text += job_lines(verdict);
  }
  for (const std::string& sentence : page.passed_over) {
    text += wrapped(fmt::format("not judged: {}", sentence), "", "  ");
  }
  return text;
}

std::string verdict_json(const Verdicts& verdicts, const VerdictPage& page) {
  std::string text = "[";
  const auto add = [&](const Json& object) { text += (text.size() == 1 ? "\n" : ",\n") + dumped(object); };
  for (const NodeVerdict& verdict : verdicts.nodes) {
    add(object_of(verdict, page));
  }
  if (verdicts.fleet) {
    add(object_of(*verdicts.fleet, page));
  }
  for (const JobVerdict& verdict : verdicts.jobs) {
    add(object_of(verdict, page));
  }
  return text + "\n]\n";
}

std::string verdict_junit(const Verdicts& verdicts, const VerdictPage& page) {
  pugi::xml_document document;
  pugi::xml_node suite = document.append_child("testsuite");
  const auto number_of = [&](Health health) {
    const std::size_t fleets = verdicts.fleet && verdicts.fleet->median.health == health ? 1 : 0;
    return static_cast<unsigned>(count_of(verdicts, health) + fleets + count_of(verdicts.jobs, health));
  };
  suite.append_attribute("name") =
      fmt::format("commfuse-validate verdict{}{}", page.machine.empty() ? "" : " ", page.machine).c_str();
  suite.append_attribute("tests") = static_cast<unsigned>(verdicts.nodes.size() + (verdicts.fleet ? 1 : 0) +
                                                          verdicts.jobs.size() + page.unread.size());
  suite.append_attribute("failures") = number_of(Health::bad);
  suite.append_attribute("errors") = static_cast<unsigned>(page.unread.size());
  suite.append_attribute("skipped") = number_of(Health::undecided);
  const auto add_case = [&](const char* kind, const std::string& name) {
    pugi::xml_node test = suite.append_child("testcase");
    test.append_attribute("classname") = kind;
    test.append_attribute("name") = name.c_str();
    return test;
  };
  const auto add_result = [](pugi::xml_node test, Health health, Severity severity, const std::string& why,
                             const std::string& lines) {
    if (health == Health::bad) {
      pugi::xml_node failure = test.append_child("failure");
      failure.append_attribute("message") = why.c_str();
      failure.append_attribute("type") = std::string(name_of(severity)).c_str();
      failure.text() = lines.c_str();
    } else if (health == Health::undecided) {
      test.append_child("skipped").append_attribute("message") = why.c_str();
    }
  };
  for (const NodeVerdict& verdict : verdicts.nodes) {
    add_result(add_case("node", verdict.log.name), verdict.health, verdict.severity, verdict.why, node_lines(verdict));
  }
  if (verdicts.fleet) {
    const Judgement& median = verdicts.fleet->median;
    add_result(add_case("fleet", fmt::format("median of {} nodes", verdicts.fleet->nodes)), median.health,
               median.severity, fleet_sentence(*verdicts.fleet), half_lines(median));
  }
  for (const JobVerdict& verdict : verdicts.jobs) {
    add_result(add_case("job", verdict.job.name), verdict.judgement.health, verdict.judgement.severity, verdict.why,
               job_lines(verdict));
  }
  for (const std::string& unread : page.unread) {
    const std::string sentence = with_escapes(unread, "\n");  // XML permits no other control characters.
    add_case("node", sentence.substr(0, sentence.find(':'))).append_child("error").append_attribute("message") =
        sentence.c_str();
  }
  std::ostringstream out;
  document.save(out, "  ", pugi::format_indent, pugi::encoding_utf8);
  return as_utf8(out.str());
}

std::string verdict_prometheus(const Verdicts& verdicts, const VerdictPage& /*page*/) {
  std::string text = gauge("commfuse_node_healthy_probability", "Probability that the node is healthy.");
  for (const NodeVerdict& verdict : verdicts.nodes) {
    text += fmt::format("commfuse_node_healthy_probability{{node=\"{}\"}} {:.6g}\n", label(verdict.log.name),
                        verdict.healthy_probability);
  }
  text += gauge("commfuse_node_bad", "1 where the node is bad, 0 where it is healthy; absent where undecided.");
  for (const NodeVerdict& verdict : verdicts.nodes) {
    if (verdict.health != Health::undecided) {
      text += fmt::format(
          "commfuse_node_bad{{node=\"{}\",fault=\"{}\"}} {}\n", label(verdict.log.name),
          verdict.suspects.empty() || verdict.health != Health::bad ? "" : verdict.suspects.front().fault->name,
          verdict.health == Health::bad ? 1 : 0);
    }
  }
  if (verdicts.fleet && verdicts.fleet->median.health != Health::undecided) {
    text +=
        gauge("commfuse_fleet_bad", "1 where the median node is bad, 0 where it is healthy; absent where undecided.");
    text += fmt::format("commfuse_fleet_bad {}\n", verdicts.fleet->median.health == Health::bad ? 1 : 0);
  }
  text += gauge("commfuse_bus_bandwidth_bytes_per_second", "Bus bandwidth as nccl-tests counts it, out of place.");
  for (const NodeVerdict& verdict : verdicts.nodes) {
    for (const MeasuredMessage& row : distinct_rows(verdict.log)) {
      const Message& message = row.message;
      fmt::format_to(std::back_inserter(text),
                     "commfuse_bus_bandwidth_bytes_per_second{{node=\"{}\",collective=\"{}\",ranks=\"{}\",nodes=\"{}\","
                     "bytes=\"{}\"}} {:.6g}\n",
                     label(verdict.log.name), name_of(message.op), message.gpus, message.nodes, message.bytes.count,
                     bus_bandwidth(message, from_seconds(1e-6 * row.time_us)).value);
    }
  }
  if (!verdicts.jobs.empty()) {
    text += gauge("commfuse_job_healthy_probability", "Probability that no rank delays the job.");
    for (const JobVerdict& verdict : verdicts.jobs) {
      text += fmt::format("commfuse_job_healthy_probability{{job=\"{}\"}} {:.6g}\n", label(verdict.job.name),
                          verdict.judgement.healthy_probability);
    }
    text += gauge("commfuse_rank_bad", "1 for each rank that delays its job.");
    for (const JobVerdict& verdict : verdicts.jobs) {
      for (const SuspectedRank& suspect : verdict.judgement.suspects) {
        text += fmt::format("commfuse_rank_bad{{job=\"{}\",rank=\"{}\",fault=\"{}\"}} 1\n", label(verdict.job.name),
                            suspect.rank, text_of(suspect.fault).name);
      }
    }
  }
  return as_utf8(text);
}

std::string verdict_markdown(const Verdicts& verdicts, const VerdictPage& page) {
  std::string text;
  if (!verdicts.nodes.empty()) {
    text += fmt::format("Against {}, {}: {}.\n", page.machine, alarms_in_words(page), counts(verdicts));
  }
  if (verdicts.fleet) {
    text += fmt::format("\n{}.\n", fleet_sentence(*verdicts.fleet));
  }
  text +=
      verdicts.nodes.empty()
          ? ""
          : "\n| node | health | P(healthy) | severity | slowdown | why | next |\n|---|---|---:|---|---:|---|---|\n";
  for (const NodeVerdict& verdict : verdicts.nodes) {
    if (verdict.health != Health::healthy || verdicts.nodes.size() == 1) {
      text += fmt::format("| {} | {} | {} | {} | {:.2f} | {} | {} |\n", cell(verdict.log.name), name_of(verdict.health),
                          percent(verdict.healthy_probability), name_of(verdict.severity), verdict.slowdown,
                          cell(verdict.why), verdict.next.empty() ? "" : fmt::format("`{}`", cell(verdict.next)));
    }
  }
  if (!verdicts.jobs.empty()) {
    text += "\n| job | health | P(healthy) | severity | step | why | next |\n|---|---|---:|---|---:|---|---|\n";
  }
  for (const JobVerdict& verdict : verdicts.jobs) {
    const StepJudgement& judgement = verdict.judgement;
    text += fmt::format("| {} | {} | {} | {} | {} | {} | {} |\n", cell(verdict.job.name), name_of(judgement.health),
                        percent(judgement.healthy_probability), name_of(judgement.severity),
                        step_in_words(judgement.step_us), cell(verdict.why),
                        verdict.next.empty() ? "" : fmt::format("`{}`", cell(verdict.next)));
  }
  for (const std::string& sentence : page.unread) {
    text += fmt::format("\nNot read: {}\n", sentence);
  }
  for (const std::string& sentence : page.passed_over) {
    text += fmt::format("\nNot judged: {}\n", sentence);
  }
  return as_utf8(text);
}

}  // namespace commfuse::validate
