// SPDX-License-Identifier: Apache-2.0
#include "validate/bench/links.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <optional>

#include "model/expect/expectation.h"
#include "model/wrapped.h"
#include "validate/bench/copies.h"
#include "validate/measure/protocol.h"

namespace commfuse::validate {

namespace {

std::string size_in_words(Bytes bytes) {
  return bytes.count % (1 << 20) == 0 ? fmt::format("{} MiB", bytes.count >> 20U)
                                      : fmt::format("{:g} KiB", static_cast<double>(bytes.count) / 1024.0);
}

std::string name_of(const MicroBenchmark& benchmark, bool between_hosts) {
  if (benchmark.op == "product") {
    return fmt::format("GEMMs of {} x {} x {}", benchmark.m, benchmark.n, benchmark.k);
  }
  return fmt::format("{} of {}{}", benchmark.op == "transfer" ? "transfers" : benchmark.op,
                     size_in_words({benchmark.bytes}), between_hosts ? " between hosts" : "");
}

PartGroup& group_of(const MicroBenchmark& benchmark, const std::vector<std::string>& hosts,
                    std::vector<PartGroup>& groups) {
  const auto host = [&](std::int64_t rank) {
    return static_cast<std::size_t>(rank) < hosts.size() ? hosts[static_cast<std::size_t>(rank)] : std::string();
  };
  const bool between = benchmark.op == "transfer" && host(benchmark.rank) != host(benchmark.peer);
  const Bytes bytes{benchmark.op == "product" ? 0 : benchmark.bytes};
  for (PartGroup& group : groups) {
    if (group.op == benchmark.op && group.bytes == bytes && group.between_hosts == between) {
      return group;
    }
  }
  return groups.emplace_back(
      PartGroup{.name = name_of(benchmark, between), .op = benchmark.op, .bytes = bytes, .between_hosts = between});
}

/// Returns whether the parts of the group are pairs of ranks or of GPUs.
bool has_pairs(const PartGroup& group) {
  return std::ranges::any_of(group.parts, [](const ComparedPart& part) { return part.peer >= 0; });
}

/// Returns whether the bytes of every pair go to its first GPU, because that GPU reads.
bool reads(const PartGroup& group) {
  const std::optional<CopyTest> copy = copy_test_named(group.op);
  return copy && copy->reads;
}

/// Returns the noun for a rank of the group: rank or GPU.
std::string_view rank_noun(const PartGroup& group) { return copy_test_named(group.op) ? "GPU" : "rank"; }

double ratio_of(Duration time, Duration usual) {
  return usual > Duration{} ? to_seconds(time) / to_seconds(usual) : 1.0;
}

void compare(PartGroup& group, double tolerance) {
  std::vector<Duration> medians;
  for (const ComparedPart& part : group.parts) {
    medians.push_back(part.median.value);
  }
  std::sort(medians.begin(), medians.end());
  group.usual = percentile(medians, 500).value;
  for (ComparedPart& part : group.parts) {
    part.ratio = ratio_of(part.median.value, group.usual);
    const Duration shortest = part.median.range ? part.median.range->low : Duration{};
    part.slow = ratio_of(shortest, group.usual) > 1.0 + tolerance;
  }
}

/// A possible cause of several slow links: a rank's outgoing links, its incoming links, or both.
struct Suspect {
  Rank rank = 0;
  bool out = false;
  bool in = false;

  [[nodiscard]] bool has(const ComparedPart& part) const {
    return (out && part.rank == rank) || (in && part.peer == rank);
  }
  /// `reads`: the bytes of a pair go to its first GPU.
  [[nodiscard]] std::string in_words(bool reads) const {
    return out && in ? "links" : out != reads ? "outgoing links" : "incoming links";
  }
};

/// A rank's share of a group's slow links.
struct Blame {
  Suspect suspect;
  std::vector<std::size_t> slow;  // indices of links that no other rank is blamed for
  std::size_t links = 0;

  [[nodiscard]] bool guilty() const { return slow.size() >= 2 && 4 * slow.size() >= 3 * links; }
};

Blame blame_of(const Suspect& suspect, const PartGroup& group, const std::vector<bool>& explained) {
  Blame blame{.suspect = suspect};
  for (std::size_t i = 0; i < group.parts.size(); ++i) {
    if (suspect.has(group.parts[i])) {
      ++blame.links;
      if (group.parts[i].slow && !explained[i]) {
        blame.slow.push_back(i);
      }
    }
  }
  return blame;
}

/// Returns the guilty suspect with the most slow links that are not explained yet; nothing if no suspect is guilty.
std::optional<Blame> worst_of(const PartGroup& group, const std::vector<bool>& explained) {
  std::optional<Blame> worst;
  Rank last = 0;
  for (const ComparedPart& part : group.parts) {
    last = std::max({last, part.rank, part.peer});
  }
  for (Rank rank = 0; rank <= last; ++rank) {
    for (const Suspect& suspect : {Suspect{rank, true, true}, Suspect{rank, true, false}, Suspect{rank, false, true}}) {
      Blame blame = blame_of(suspect, group, explained);
      if (blame.guilty() && (!worst || blame.slow.size() > worst->slow.size())) {
        worst = std::move(blame);
      }
    }
  }
  return worst;
}

std::string range_in_words(const ComparedPart& part, Duration usual) {
  return part.median.range ? fmt::format(" ({:.2f} to {:.2f})", ratio_of(part.median.range->low, usual),
                                         ratio_of(part.median.range->high, usual))
                           : "";
}

void name_ranks(const PartGroup& group, std::vector<bool>& explained, std::vector<std::string>& sentences) {
  while (const std::optional<Blame> blame = worst_of(group, explained)) {
    std::vector<double> ratios;
    for (const std::size_t index : blame->slow) {
      explained[index] = true;
      ratios.push_back(group.parts[index].ratio);
    }
    std::sort(ratios.begin(), ratios.end());
    sentences.push_back(fmt::format("{} {}: {} of {} {} take {:.2f} times as long as usual ({})", rank_noun(group),
                                    blame->suspect.rank, blame->slow.size(), blame->links,
                                    blame->suspect.in_words(reads(group)), ratios[ratios.size() / 2], group.name));
  }
}

void name_culprits(const PartGroup& group, std::vector<std::string>& sentences) {
  std::vector<bool> explained(group.parts.size(), false);
  if (has_pairs(group)) {
    name_ranks(group, explained, sentences);
  }
  for (std::size_t i = 0; i < group.parts.size(); ++i) {
    const ComparedPart& part = group.parts[i];
    if (part.slow && !explained[i]) {
      const std::string_view noun = rank_noun(group);
      const std::string_view preposition = reads(group) ? "from" : "to";
      const std::string subject = part.peer >= 0
                                      ? fmt::format("{} {} {} {} {}", noun, part.rank, preposition, noun, part.peer)
                                      : fmt::format("{} {}", noun, part.rank);
      sentences.push_back(fmt::format("{}: {} take {:.2f} times as long as usual{}", subject, group.name, part.ratio,
                                      range_in_words(part, group.usual)));
    }
  }
}

/// Small messages are shown as times in microseconds, large ones as rates in GB/s, and GEMMs as times in milliseconds.
enum class Unit : std::uint8_t { us, gb_per_s, ms };

Unit unit_of(const PartGroup& group) {
  constexpr std::int64_t min_large_bytes = 256 << 10;
  return group.bytes.count == 0 ? Unit::ms : group.bytes.count < min_large_bytes ? Unit::us : Unit::gb_per_s;
}

std::string_view name_of(Unit unit) { return unit == Unit::us ? "us" : unit == Unit::ms ? "ms" : "GB/s"; }

std::string value_of(const PartGroup& group, Duration time) {
  switch (unit_of(group)) {
    case Unit::us: return fmt::format("{:.1f}", to_microseconds(time));
    case Unit::ms: return fmt::format("{:.3f}", to_microseconds(time) / 1e3);
    case Unit::gb_per_s: return fmt::format("{:.2f}", static_cast<double>(group.bytes.count) / to_seconds(time) / 1e9);
  }
  return "";
}

/// Returns the value, followed by "!" if the part is slow, otherwise by a blank.
std::string marked(const PartGroup& group, const ComparedPart& part) {
  return value_of(group, part.median.value) + (part.slow ? "!" : " ");
}

std::string without_trailing_blanks(std::string line) {
  line.erase(line.find_last_not_of(' ') + 1);
  return line + "\n";
}

/// Returns the meaning of rows and columns of a matrix. The GPU of a row issues the copies in it.
std::string_view axes_of(const PartGroup& group) {
  const std::optional<CopyTest> copy = copy_test_named(group.op);
  return !copy ? "from (down) to (right)" : copy->reads ? "GPU (down) <- GPU (right)" : "GPU (down) -> GPU (right)";
}

std::size_t column_width(const PartGroup& group) {
  std::size_t width = 7;
  for (const ComparedPart& part : group.parts) {
    width = std::max(width, 1 + marked(group, part).size());
  }
  return width;
}

constexpr std::size_t row_label_width = 4;

/// Returns whether a matrix of the group has at most ten ranks and fits 80 columns.
bool fits_matrix(const PartGroup& group, std::int32_t ranks) {
  constexpr std::int32_t max_columns = 10;
  return ranks <= max_columns && row_label_width + static_cast<std::size_t>(ranks) * column_width(group) <= page_width;
}

std::string matrix(const PartGroup& group, std::int32_t ranks) {
  std::string text = fmt::format("{}, {}, {}\n", group.name, name_of(unit_of(group)), axes_of(group));
  const std::size_t width = column_width(group);
  std::string line(row_label_width, ' ');
  for (Rank rank = 0; rank < ranks; ++rank) {
    line += fmt::format("{:>{}} ", rank, width - 1);
  }
  text += without_trailing_blanks(line);
  for (Rank from = 0; from < ranks; ++from) {
    line = fmt::format("{:>{}}", from, row_label_width);
    for (Rank to = 0; to < ranks; ++to) {
      const auto match = std::ranges::find_if(
          group.parts, [&](const ComparedPart& part) { return part.rank == from && part.peer == to; });
      line += fmt::format("{:>{}}", match == group.parts.end() ? "- " : marked(group, *match), width);
    }
    text += without_trailing_blanks(line);
  }
  return text;
}

std::string median_where(const PartGroup& group, const std::function<bool(const ComparedPart&)>& is_compared) {
  std::vector<Duration> times;
  for (const ComparedPart& part : group.parts) {
    if (is_compared(part)) {
      times.push_back(part.median.value);
    }
  }
  std::sort(times.begin(), times.end());
  return times.empty() ? "-" : value_of(group, percentile(times, 500).value);
}

std::string lines_by_rank(const PartGroup& group, std::int32_t ranks) {
  std::string text = fmt::format("{}, {}, medians\n{:>6} {:>10} {:>10}   {}\n", group.name, name_of(unit_of(group)),
                                 "rank", "out", "in", "slowest link");
  const bool peer_sends = reads(group);
  const auto source_of = [&](const ComparedPart& part) { return peer_sends ? part.peer : part.rank; };
  const auto target_of = [&](const ComparedPart& part) { return peer_sends ? part.rank : part.peer; };
  for (Rank rank = 0; rank < ranks; ++rank) {
    const ComparedPart* slowest = nullptr;
    for (const ComparedPart& part : group.parts) {
      const bool touches_rank = part.rank == rank || part.peer == rank;
      slowest = touches_rank && (slowest == nullptr || part.ratio > slowest->ratio) ? &part : slowest;
    }
    if (slowest != nullptr) {
      text += without_trailing_blanks(
          fmt::format("{:>6} {:>10} {:>10}   {} to {}: {}", rank,
                      median_where(group, [&](const ComparedPart& part) { return source_of(part) == rank; }),
                      median_where(group, [&](const ComparedPart& part) { return target_of(part) == rank; }),
                      source_of(*slowest), target_of(*slowest), marked(group, *slowest)));
    }
  }
  return text;
}

std::string values_by_rank(const PartGroup& group) {
  constexpr std::size_t per_line = 8;
  std::string text = fmt::format("{} by {}, {}\n", group.name, rank_noun(group), name_of(unit_of(group)));
  for (std::size_t first = 0; first < group.parts.size(); first += per_line) {
    std::string line = fmt::format("{:>4}", group.parts[first].rank);
    for (std::size_t i = first; i < std::min(group.parts.size(), first + per_line); ++i) {
      line += fmt::format("{:>9}", marked(group, group.parts[i]));
    }
    text += without_trailing_blanks(line);
  }
  return text;
}

}  // namespace

std::vector<MicroProgram> link_programs(const LinkPlan& plan) {
  std::vector<MicroProgram> programs;
  for (const Bytes bytes : plan.sizes) {
    for (Rank from = 0; from < plan.ranks; ++from) {
      for (Rank to = 0; to < plan.ranks; ++to) {
        if (from != to) {
          programs.push_back(transfers_alone(plan.ranks, from, to, plan.dtype, bytes, transfers_per_run));
        }
      }
    }
  }
  GemmSize product = plan.product;
  product.dtype = plan.dtype;
  for (Rank rank = 0; rank < plan.ranks; ++rank) {
    programs.push_back(product_of_rank(plan.ranks, rank, product));
  }
  return programs;
}

LinkFindings findings_in(std::span<const MicroBenchmark> measured, const std::vector<std::string>& hosts,
                         double tolerance) {
  LinkFindings findings;
  for (const MicroBenchmark& benchmark : measured) {
    const std::optional<CopyTest> copy = copy_test_named(benchmark.op);
    const bool has_peer = benchmark.peer >= 0;
    const bool is_compared =
        benchmark.rank >= 0 && (benchmark.op == "product" || (benchmark.op == "transfer" && has_peer) ||
                                (copy && copy->with_host != has_peer));
    if (is_compared && !benchmark.samples.empty()) {
      group_of(benchmark, hosts, findings.groups)
          .parts.push_back({.rank = static_cast<Rank>(benchmark.rank),
                            .peer = static_cast<Rank>(benchmark.peer),
                            .median = summary_of(benchmark.samples).median});
    }
  }
  for (PartGroup& group : findings.groups) {
    compare(group, tolerance);
    name_culprits(group, findings.culprits);
    if (std::ranges::any_of(group.parts, [](const ComparedPart& part) { return !part.median.range; })) {
      findings.unjudged.push_back(group.name);
    }
  }
  return findings;
}

LinksBelow below_expectation(const LinkFindings& findings, const Machine& machine, double false_alarms) {
  const Expectation expectation(machine);
  struct Compared {
    const PartGroup* group = nullptr;
    Expected expected;
  };
  std::vector<Compared> groups;
  LinksBelow below;
  for (const PartGroup& group : findings.groups) {
    const Message message{
        .op = LinkOp::send_recv, .gpus = 2, .nodes = group.between_hosts ? 2 : 1, .bytes = group.bytes};
    const bool is_transfer = group.op == "transfer";
    if (is_transfer && fits(machine, message) && expectation.of(message).limit == Limit::bandwidth) {
      groups.push_back({&group, expectation.of(message)});
      below.compared += group.parts.size();
    } else if (is_transfer) {
      below.left_out += group.parts.size();
    }
  }
  for (const auto& [group, expected] : groups) {
    const ExpectedRange range = range_of(expected, false_alarms / static_cast<double>(below.compared));
    for (const ComparedPart& part : group->parts) {
      if (part.median.value > range.slow) {
        below.sentences.push_back(fmt::format(
            "rank {} to rank {}: {} take {:.2f} times as long as {} should: {:.1f} us, expected {:.1f}, slow from "
            "{:.1f}",
            part.rank, part.peer, group->name, ratio_of(part.median.value, expected.time), machine.name,
            to_microseconds(part.median.value), to_microseconds(expected.time), to_microseconds(range.slow)));
      }
    }
  }
  return below;
}

std::string to_table(const LinkFindings& findings, std::int32_t ranks, double tolerance) {
  std::string text;
  for (const PartGroup& group : findings.groups) {
    text += !has_pairs(group)           ? values_by_rank(group)
            : fits_matrix(group, ranks) ? matrix(group, ranks)
                                        : lines_by_rank(group, ranks);
  }
  if (!findings.culprits.empty()) {
    text += fmt::format("More than {:g}% longer than usual (!):\n", 100.0 * tolerance);
  } else if (findings.unjudged.size() < findings.groups.size()) {
    text += fmt::format("Nothing{} takes more than {:g}% longer than usual.\n",
                        findings.unjudged.empty() ? "" : " else", 100.0 * tolerance);
  }
  for (const std::string& sentence : findings.culprits) {
    text += wrapped(sentence, "  ", "    ");
  }
  if (!findings.unjudged.empty()) {
    text += wrapped(fmt::format("Not judged, because they have too few samples for an interval (raise --iterations): "
                                "{}.",
                                fmt::join(findings.unjudged, "; ")),
                    "", "  ");
  }
  return text;
}

}  // namespace commfuse::validate
