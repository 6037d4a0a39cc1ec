// SPDX-License-Identifier: Apache-2.0
#include "model/record/result.h"

#include <fmt/format.h>

#include <array>
#include <utility>

namespace commfuse {

namespace {

template <class T>
Value maybe(const std::optional<T>& value) {
  return value ? Value{*value} : Value{};
}

using Row = ResultRow;

/// Nothing in the row of a point that could not be run.
template <class T>
Value result(const Row& row, T value) {
  return row.feasible() ? Value{value} : Value{};
}

Value us(const Row& row, Duration duration) { return result(row, to_microseconds(duration)); }

Value gigabytes_a_second(const std::optional<double>& rate) { return rate ? Value{*rate / 1e9} : Value{}; }

Value unless_empty(const std::string& text) { return text.empty() ? Value{} : Value{text}; }

const Breakdown& critical(const ResultRow& row) { return row.analysis.critical; }

template <Option which>
Value option(const Row& row) {
  if (!row.relevant.has(which)) {
    return {};
  }
  const std::string text = text_of(which, row.options);
  return is_count(which) ? Value{static_cast<std::int64_t>(std::stoll(text))} : Value{text};
}

/// Of a row with tails.
template <class Get>
Value tail(const Row& row, const Get& get) {
  return row.feasible() && row.tails ? Value{get(*row.tails)} : Value{};
}

template <Estimate Percentiles::*which>
Value estimate(const Row& row) {
  return tail(row, [](const Tails& tails) { return to_microseconds((tails.percentiles.*which).value); });
}

template <Estimate Percentiles::*which, Duration TimeRange::*end>
Value range_end(const Row& row) {
  const bool known = row.feasible() && row.tails && (row.tails->percentiles.*which).range;
  return known ? Value{to_microseconds(*(row.tails->percentiles.*which).range.*end)} : Value{};
}
template <Estimate Percentiles::*which>
constexpr auto low = range_end<which, &TimeRange::low>;
template <Estimate Percentiles::*which>
constexpr auto high = range_end<which, &TimeRange::high>;

template <Estimate Percentiles::*which>
Value mfu_over(const Row& row) {
  return tail(row, [&](const Tails& tails) {
    const double makespan = to_seconds((tails.percentiles.*which).value);
    return makespan > 0.0 ? row.mfu * to_seconds(critical(row).makespan) / makespan : 0.0;
  });
}

template <Duration Breakdown::*part>
Value near(const Row& row) {
  return tail(row, [](const Tails& tails) { return to_microseconds(tails.causes.mean.*part); });
}

template <PathKind kind>
Value on_path(const Row& row) {
  return tail(row, [](const Tails& tails) { return tails.causes.on_path[static_cast<std::size_t>(kind)]; });
}

Value worst_rank(const Row& row) {
  return tail(row, [](const Tails& tails) { return std::int64_t{tails.causes.worst_rank()}; });
}

Value worst_rank_share(const Row& row) {
  return tail(row, [](const Tails& tails) { return tails.causes.share_of_path(tails.causes.worst_rank()); });
}

constexpr std::array columns{
    ResultColumn{"schema", "version of this row's form",
                 [](const Row&) -> Value { return std::string{result_schema}; }},
    ResultColumn{"model_version", "version of the model behind the numbers",
                 [](const Row&) -> Value { return std::int64_t{model_version}; }},
    ResultColumn{"model", "transformer", [](const Row& row) -> Value { return row.model; }},
    ResultColumn{"hardware", "machine", [](const Row& row) -> Value { return row.hardware; }},
    ResultColumn{"link_bandwidth", "links inside a node, as asked",
                 [](const Row& row) -> Value { return row.link_bandwidth; }},
    ResultColumn{"network_bandwidth", "links between nodes, as asked",
                 [](const Row& row) -> Value { return row.network_bandwidth; }},
    ResultColumn{"link_rate_gb_s", "nominal rate of a link inside a node, one direction",
                 [](const Row& row) -> Value { return gigabytes_a_second(row.link_rate); }},
    ResultColumn{"network_rate_gb_s", "the same between nodes, of one GPU",
                 [](const Row& row) -> Value { return gigabytes_a_second(row.network_rate); }},
    ResultColumn{"scope", "what is run: one site, or the MLP in a chain",
                 [](const Row& row) -> Value { return row.scope; }},
    ResultColumn{"ranks", "tensor-parallel ranks", [](const Row& row) -> Value { return row.ranks; }},
    ResultColumn{"batch", "sequences", [](const Row& row) -> Value { return row.batch; }},
    ResultColumn{"seq", "tokens of a sequence", [](const Row& row) -> Value { return row.seq; }},
    ResultColumn{"dtype", "element type of tensors and of the wire", [](const Row& row) -> Value { return row.dtype; }},
    ResultColumn{"strategy", "family of schedules", [](const Row& row) -> Value { return row.strategy; }},
    ResultColumn{"slices", "sliced: k", option<Option::slices>},
    ResultColumn{"sub_slices", "commfuse: m", option<Option::sub_slices>},
    ResultColumn{"form", "commfuse: ring or direct", option<Option::form>},
    ResultColumn{"add_lane", "commfuse ring: where adds run", option<Option::add_lane>},
    ResultColumn{"sum", "commfuse direct: when the owner adds up", option<Option::sum>},
    ResultColumn{"lanes", "commfuse: communication lanes", option<Option::lanes>},
    ResultColumn{"directions", "commfuse ring: ways round", option<Option::directions>},
    ResultColumn{"group", "commfuse: ring steps a product", option<Option::group>},
    ResultColumn{"inner", "commfuse: ranks of the inner ring", option<Option::inner>},
    ResultColumn{"attention", "how the attention core is cut", option<Option::attention>},
    ResultColumn{"shuffles", "sliced: strided or copied slices", option<Option::shuffles>},
    ResultColumn{"regather", "backward: gathered again or saved", option<Option::regather>},
    ResultColumn{"status", "ok, or infeasible: no numbers follow",
                 [](const Row& row) -> Value { return std::string{row.feasible() ? "ok" : "infeasible"}; }},
    ResultColumn{"reason", "why it is infeasible", [](const Row& row) -> Value { return unless_empty(row.reason); }},
    ResultColumn{"makespan_us", "last end on any rank",
                 [](const Row& row) -> Value { return us(row, critical(row).makespan); }},
    ResultColumn{"makespan_error", "one standard error of it, as a share",
                 [](const Row& row) -> Value { return row.feasible() ? maybe(row.makespan_error) : Value{}; }},
    ResultColumn{"win_probability", "of being faster than the fastest other schedule of the point",
                 [](const Row& row) -> Value { return row.feasible() ? maybe(row.win_probability) : Value{}; }},
    ResultColumn{"compute_us", "essential compute, unsliced",
                 [](const Row& row) -> Value { return us(row, critical(row).compute); }},
    ResultColumn{"slicing_us", "what cutting the compute costs",
                 [](const Row& row) -> Value { return us(row, critical(row).slicing); }},
    ResultColumn{"stretch_us", "essential compute slowed by interference and jitter",
                 [](const Row& row) -> Value { return us(row, critical(row).stretch); }},
    ResultColumn{"local_us", "strategy-made adds, packs and copies outside essential compute",
                 [](const Row& row) -> Value { return us(row, critical(row).local); }},
    ResultColumn{"exposed_us", "head + bubble + tail - local",
                 [](const Row& row) -> Value { return us(row, critical(row).exposed); }},
    ResultColumn{"head_us", "before the first essential op",
                 [](const Row& row) -> Value { return us(row, critical(row).head); }},
    ResultColumn{"bubble_us", "gaps between essential ops",
                 [](const Row& row) -> Value { return us(row, critical(row).bubble); }},
    ResultColumn{"tail_us", "after the last essential op",
                 [](const Row& row) -> Value { return us(row, critical(row).tail); }},
    ResultColumn{"critical_rank", "the rank whose last op ends last; the times above are its own",
                 [](const Row& row) -> Value { return result(row, std::int64_t{row.analysis.critical_rank}); }},
    ResultColumn{"mean_exposed_us", "exposed time, mean over ranks",
                 [](const Row& row) -> Value { return us(row, row.analysis.mean_exposed); }},
    ResultColumn{"max_exposed_us", "exposed time, largest over ranks",
                 [](const Row& row) -> Value { return us(row, row.analysis.max_exposed); }},
    ResultColumn{"comm_cost_us", "makespan less that with free communication",
                 [](const Row& row) -> Value { return us(row, critical(row).makespan - row.ideal); }},
    ResultColumn{"ideal_us", "bound: makespan with free communication",
                 [](const Row& row) -> Value { return us(row, row.ideal); }},
    ResultColumn{"link_us", "bound: makespan with free compute",
                 [](const Row& row) -> Value { return us(row, row.link); }},
    ResultColumn{"mfu", "model FLOPs over makespan x ranks x dense peak",
                 [](const Row& row) -> Value { return result(row, row.mfu); }},
    ResultColumn{"samples", "runs under jitter; what follows up to p99_9_high_us is theirs",
                 [](const Row& row) -> Value {
                   return row.tails ? Value{static_cast<std::int64_t>(row.tails->percentiles.samples)} : Value{};
                 }},
    ResultColumn{"mean_us", "mean makespan", estimate<&Percentiles::mean>},
    ResultColumn{"mean_low_us", "where its 95 % confidence interval begins", low<&Percentiles::mean>},
    ResultColumn{"mean_high_us", "where it ends", high<&Percentiles::mean>},
    ResultColumn{"p50_us", "median makespan", estimate<&Percentiles::p50>},
    ResultColumn{"p50_low_us", "where its 95 % confidence interval begins", low<&Percentiles::p50>},
    ResultColumn{"p50_high_us", "where it ends", high<&Percentiles::p50>},
    ResultColumn{"p95_us", "percentile 95 of the makespan", estimate<&Percentiles::p95>},
    ResultColumn{"p95_low_us", "where its 95 % confidence interval begins", low<&Percentiles::p95>},
    ResultColumn{"p95_high_us", "where it ends", high<&Percentiles::p95>},
    ResultColumn{"p99_us", "percentile 99 of the makespan", estimate<&Percentiles::p99>},
    ResultColumn{"p99_low_us", "where its 95 % confidence interval begins", low<&Percentiles::p99>},
    ResultColumn{"p99_high_us", "where it ends", high<&Percentiles::p99>},
    ResultColumn{"p99_9_us", "percentile 99.9 of the makespan", estimate<&Percentiles::p99_9>},
    ResultColumn{"p99_9_low_us", "where its 95 % confidence interval begins", low<&Percentiles::p99_9>},
    ResultColumn{"p99_9_high_us", "where it ends", high<&Percentiles::p99_9>},
    ResultColumn{"mfu_mean", "MFU over the mean makespan", mfu_over<&Percentiles::mean>},
    ResultColumn{"mfu_p99", "MFU over the p99 makespan", mfu_over<&Percentiles::p99>},
    ResultColumn{"p99_exposed_us", "exposed time, mean of the samples near the p99", near<&Breakdown::exposed>},
    ResultColumn{"p99_stretch_us", "stretch, mean of the samples near the p99", near<&Breakdown::stretch>},
    ResultColumn{"p99_path_communication", "share of those samples with communication on the critical path",
                 on_path<PathKind::communication>},
    ResultColumn{"p99_path_local", "the same of adds, packs and copies", on_path<PathKind::local>},
    ResultColumn{"p99_path_issue", "the same of the host's issuing", on_path<PathKind::issue>},
    ResultColumn{"p99_worst_rank", "the rank that takes most of the critical path in those samples", worst_rank},
    ResultColumn{"p99_worst_rank_share", "its share of the path", worst_rank_share},
    ResultColumn{"buffer_bytes", "memory of all buffers of one rank",
                 [](const Row& row) -> Value { return result(row, row.buffers.count); }},
    ResultColumn{"evaluator", "who played the schedule",
                 [](const Row& row) -> Value { return unless_empty(row.evaluator); }},
    ResultColumn{"interference", "how communication slows kernels beside it",
                 [](const Row& row) -> Value { return row.interference; }},
    ResultColumn{"jitter", "how op times stray", [](const Row& row) -> Value { return unless_empty(row.jitter); }},
    ResultColumn{"faults", "what goes wrong", [](const Row& row) -> Value { return unless_empty(row.faults); }},
    ResultColumn{
        "seed", "of the draws; where there are samples",
        [](const Row& row) -> Value { return row.tails ? Value{static_cast<std::int64_t>(row.seed)} : Value{}; }},
    ResultColumn{"launch", "host issue: op by op, or one graph", [](const Row& row) -> Value { return row.launch; }},
    ResultColumn{"attention_kernel", "fused, or with scores written out",
                 [](const Row& row) -> Value { return unless_empty(row.attention_kernel); }},
    ResultColumn{"leans_on", "kinds of parameters behind the numbers, weakest first",
                 [](const Row& row) -> Value { return unless_empty(row.leans_on); }},
    ResultColumn{"warnings", "sizes outside those that a fit saw",
                 [](const Row& row) -> Value { return unless_empty(row.warnings); }},
    ResultColumn{"schedule_sha256", "digest of the schedule's canonical text",
                 [](const Row& row) -> Value { return unless_empty(row.schedule_sha256); }},
};

}  // namespace

std::string machine_in_words(std::string_view hardware, std::string_view link, std::string_view network) {
  std::string text{hardware};
  for (const auto& [what, asked] : {std::pair("links", link), std::pair("network", network)}) {
    text += asked == "x1" ? "" : fmt::format(", {} {}", what, asked);
  }
  return text;
}

std::string machine_in_words(const ResultRow& row) {
  return machine_in_words(row.hardware, row.link_bandwidth, row.network_bandwidth);
}

std::span<const ResultColumn> result_columns() { return columns; }

}  // namespace commfuse
