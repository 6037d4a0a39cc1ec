// SPDX-License-Identifier: Apache-2.0
#include "reports/html/timeline_block.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

#include "model/check.h"
#include "model/cost/shape_sizes.h"
#include "model/program/names.h"
#include "reports/figure/gantt.h"
#include "reports/figure/wording.h"
#include "reports/html/blocks.h"
#include "reports/op_totals.h"
#include "reports/trace_label.h"

namespace commfuse::reports {

namespace {

using Json = nlohmann::ordered_json;

/// Returns the bytes sent over links; 0 for ops that stay on their rank.
Bytes sent_by(const Sizes& sizes, const Shape& shape) {
  if (const auto* exchange = std::get_if<ExchangeShape>(&shape)) {
    return load_of(*exchange, sizes);
  }
  const auto* collective = std::get_if<CollectiveShape>(&shape);
  return collective == nullptr ? Bytes{} : load_of(*collective, sizes);
}

class Timelines {
 public:
  void add(const TracedRun& run, bool critical_rank_only);
  [[nodiscard]] std::string bytes(const std::string& id, const std::string& title) const;

 private:
  void add_ops(const Program& program, const Sizes& sizes);
  void add_rank(const TracedRun& run, Rank rank, std::span<const OpSpan> spans);
  void add_lane(const TracedRun& run, Rank rank, std::uint16_t lane, const std::vector<OpSpan>& spans);
  void add_bar(const TracedRun& run, const OpSpan& span);
  std::uint32_t label_of(const Program& program, const Op& op, Rank rank);

  Json lanes_ = Json::array();
  Json labels_ = Json::array();
  Json ops_ = Json::array();
  Json panels_ = Json::array();
  std::unordered_map<std::string, std::uint32_t> known_labels_;
  std::set<std::pair<Rank, OpId>> on_path_;
  std::uint32_t first_op_ = 0;  // index in ops_ of the run's first op
  Duration longest_{1};
  std::vector<Duration> ends_;  // by panel
  std::vector<double> start_;
  std::vector<double> length_;
  std::vector<std::uint32_t> lane_;
  std::vector<std::uint32_t> label_;
  std::vector<std::uint32_t> op_;
  std::vector<std::uint8_t> flags_;
};

void Timelines::add_ops(const Program& program, const Sizes& sizes) {
  first_op_ = static_cast<std::uint32_t>(ops_.size());
  for (const Op& op : program.ops) {
    Json entry = Json::object();
    if (!sizes.block.empty()) {
      const Shape& shape = program.shapes[op.shape];
      const OpTotals totals = totals_of(sizes, shape);
      if (const std::int64_t bytes = std::max(totals.moved.count, sent_by(sizes, shape).count); bytes > 0) {
        entry["bytes"] = bytes;
      }
      if (totals.operations > 0) {
        entry["flops"] = totals.operations;
      }
    }
    ops_.push_back(std::move(entry));
  }
}

std::uint32_t Timelines::label_of(const Program& program, const Op& op, Rank rank) {
  std::string text = op_label(program, op, rank);
  const auto [entry, is_new] = known_labels_.try_emplace(text, static_cast<std::uint32_t>(labels_.size()));
  if (is_new) {
    labels_.push_back(std::move(text));
  }
  return entry->second;
}

void Timelines::add_bar(const TracedRun& run, const OpSpan& span) {
  constexpr unsigned critical = 4;
  const Op& op = run.program->ops[position(span.op)];
  const auto kind = static_cast<unsigned>(op.purpose == Purpose::essential ? 0 : op.purpose == Purpose::local ? 1 : 2);
  start_.push_back(static_cast<double>(span.start.time_since_epoch().count()));
  length_.push_back(static_cast<double>((span.end - span.start).count()));
  lane_.push_back(static_cast<std::uint32_t>(lanes_.size()));
  label_.push_back(label_of(*run.program, op, span.rank));
  op_.push_back(first_op_ + static_cast<std::uint32_t>(position(span.op)));
  flags_.push_back(static_cast<std::uint8_t>(kind | (on_path_.contains({span.rank, span.op}) ? critical : 0U)));
}

void Timelines::add_lane(const TracedRun& run, Rank rank, std::uint16_t lane, const std::vector<OpSpan>& spans) {
  for (const OpSpan& span : spans) {
    add_bar(run, span);
  }
  lanes_.push_back({{"run", reports::label_of(run.row)},
                    {"panel", panels_.size()},
                    {"rank", rank},
                    {"name", name_of(run.program->lanes[lane])},
                    {"critical", rank == run.row.analysis.critical_rank}});
}

void Timelines::add_rank(const TracedRun& run, Rank rank, std::span<const OpSpan> spans) {
  using Key = std::pair<LaneKind, std::pair<int, std::uint16_t>>;
  std::map<Key, std::vector<OpSpan>> lanes;
  for (const OpSpan& span : spans) {
    const std::uint16_t lane = run.program->ops[position(span.op)].lane;
    const Lane& lane_of_op = run.program->lanes[lane];
    if (span.end > span.start) {
      lanes[{lane_of_op.kind, {static_cast<int>(lane_of_op.number), lane}}].push_back(span);
    }
  }
  const std::size_t first = lanes_.size();
  for (auto& [key, lane_spans] : lanes) {
    std::stable_sort(lane_spans.begin(), lane_spans.end(),
                     [](const OpSpan& a, const OpSpan& b) { return a.start < b.start; });
    add_lane(run, rank, key.second.second, lane_spans);
  }
  if (lanes_.size() == first) {
    return;
  }
  Json exposed = Json::array();
  constexpr std::array names{"head", "bubble", "tail"};
  for (const ExposedTime& time : exposed_times(run, rank)) {
    exposed.push_back(Json::array({time.from.time_since_epoch().count(), time.to.time_since_epoch().count(),
                                   names[static_cast<std::size_t>(time.place)]}));
  }
  lanes_[first]["exposed"] = std::move(exposed);
}

void Timelines::add(const TracedRun& run, bool critical_rank_only) {
  add_ops(*run.program, run.sizes);
  on_path_.clear();
  for (const PathStep& step : run.path.value_or(CriticalPath{})) {
    if (step.kind != PathKind::issue) {
      on_path_.emplace(step.rank, step.op);
    }
  }
  Duration end{};
  for (const OpSpan& span : run.timeline) {
    end = std::max(end, span.end.time_since_epoch());
  }
  longest_ = std::max(longest_, end);
  const std::span<const OpSpan> spans(run.timeline);
  for (std::size_t first = 0, i = 1; i <= spans.size(); ++i) {
    if (i == spans.size() || spans[i].rank != spans[first].rank) {
      if (!critical_rank_only || spans[first].rank == run.row.analysis.critical_rank) {
        add_rank(run, spans[first].rank, spans.subspan(first, i - first));
      }
      first = i;
    }
  }
  Json panel{{"kind", run.measured ? "measured" : "predicted"}};
  ends_.push_back(end);
  if (run.row.mfu > 0.0 && !run.measured) {
    panel["mfu"] = percent(run.row.mfu);
  }
  panels_.push_back(std::move(panel));
}

std::string Timelines::bytes(const std::string& id, const std::string& title) const {
  ColumnBlock block;
  block.add("start", start_);
  block.add("length", length_);
  block.add("lane", lane_);
  block.add("label", label_);
  block.add("op", op_);
  block.add("flags", flags_);
  Json panels = panels_;
  for (std::size_t i = 0; i < panels.size(); ++i) {
    panels[i]["text"] = TimeUnit(longest_).text(ends_[i]);  // All texts have one unit, so that they are comparable.
  }
  const Json head{{"id", id},         {"title", title},   {"longest", longest_.count()},
                  {"lanes", lanes_},  {"panels", panels}, {"ops", ops_},
                  {"labels", labels_}};
  return block.bytes(head.dump(-1, ' ', false, Json::error_handler_t::replace));
}

}  // namespace

std::string timeline_block(std::span<const TracedRun> runs, const std::string& id, const std::string& title) {
  check(!runs.empty(), "a timeline needs at least one run");
  std::size_t bars = 0;
  for (const TracedRun& run : runs) {
    bars += run.timeline.size();
  }
  Timelines timelines;
  for (const TracedRun& run : runs) {
    timelines.add(run, bars > max_bars);
  }
  return timelines.bytes(id, title);
}

}  // namespace commfuse::reports
