// SPDX-License-Identifier: Apache-2.0
#include "model/config/field.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <limits>
#include <system_error>

#include "model/config/bandwidth_choice.h"
#include "model/config/choices.h"
#include "model/config/meant.h"
#include "model/config/renames.h"
#include "model/config_error.h"
#include "model/describe/joined.h"
#include "model/dtype.h"
#include "model/strategies/scope.h"
#include "model/text/misread.h"
#include "model/text/plain_text.h"
#include "model/text/quantity.h"
#include "model/text/ranges.h"
#include "model/text/suggest.h"
#include "model/workload/bare_mlp.h"
#include "model/workload/training_plan.h"

namespace commfuse {

namespace {

using Words = std::vector<std::string_view>;

template <const auto& values>
Words names() {
  Words words;
  for (const auto value : values) {
    words.push_back(name_of(value));
  }
  return words;
}

/// Follows a path of members from RunChoices, as in `<&RunChoices::plan, &TrainingPlan::data>`.
template <auto first, auto... rest>
auto& member_of(auto& object) {
  if constexpr (sizeof...(rest) == 0) {
    return object.*first;
  } else {
    return member_of<rest...>(object.*first);
  }
}

template <auto... path>
void put_text(std::string_view text, RunChoices& run) {
  member_of<path...>(run) = text;
}

template <auto... path>
void put_count(std::string_view text, RunChoices& run) {
  auto& member = member_of<path...>(run);
  member = static_cast<std::remove_reference_t<decltype(member)>>(*parse_count(text));
}

template <auto... path>
void put_share(std::string_view text, RunChoices& run) {
  member_of<path...>(run) = *parse_share(text);
}

template <const auto& values, auto... path>
void put_named(std::string_view text, RunChoices& run) {
  member_of<path...>(run) =
      *std::find_if(values.begin(), values.end(), [&](auto value) { return name_of(value) == text; });
}

template <const auto& table, auto... path>
void put_word(std::string_view text, RunChoices& run) {
  member_of<path...>(run) = chosen(table, text);
}

// Kinds of value that fill the member at the end of the path.
template <auto... path>
constexpr FieldValue name{FieldType::name, nullptr, put_text<path...>};
template <auto... path>
constexpr FieldValue names_of{FieldType::names, nullptr, put_text<path...>};
template <auto... path>
constexpr FieldValue bandwidth{FieldType::bandwidth, nullptr, put_text<path...>};
template <auto... path>
constexpr FieldValue count{FieldType::count, nullptr, put_count<path...>};
template <auto... path>
constexpr FieldValue share{FieldType::share, nullptr, put_share<path...>};
/// Takes the name of one of the enumerated values.
template <const auto& values, auto... path>
constexpr FieldValue one_of{FieldType::choice, names<values>, put_named<values, path...>};
/// Takes a word of a table of words and values.
template <const auto& table, auto... path>
constexpr FieldValue word{FieldType::choice, words_of_table<table>, put_word<table, path...>};

template <Option option>
Words option_words() {
  return words_of(option);
}

Words scope_names() {
  Words all_names = names<all_scopes>();
  for (const auto& [name, use] : whole_model_scopes) {
    all_names.push_back(name);
  }
  return all_names;
}

Words strategy_names() {
  Words all_names{"all"};
  for (const Strategy& strategy : strategies()) {
    all_names.push_back(strategy.name);
  }
  return all_names;
}

void put_scope(std::string_view text, RunChoices& run) {
  if (const std::optional<Scope> layer = scope_named(text)) {
    run.scope = {.layer = *layer};
  } else {
    run.scope = {.work = chosen(whole_model_scopes, text)};
  }
}

void put_strategies(std::string_view text, RunChoices& run) {
  run.schedules.named.clear();
  for (const std::string_view name : split_list(text)) {
    if (name != "all") {
      run.schedules.named.push_back(find_strategy(name));
    }
  }
}

template <Option option>
void put_option(std::string_view text, RunChoices& run) {
  put(option, is_count(option) ? std::to_string(*parse_count(text)) : text, run.schedules.options);
  run.schedules.fixed.add(option);
}

using enum Use;

constexpr std::int64_t kibi = 1024;
constexpr std::string_view what = "What to simulate";
constexpr std::string_view whole = "Whole models: scope step, prefill or decode";
constexpr std::string_view which = "Schedules";
constexpr std::string_view how = "How to simulate it";

constexpr std::array fields_before{
    Field{.key = "model",
          .flag = "model",
          .group = what,
          .doc = "Transformer model: a name in configs/models, a path, or HIDDENxFFN",
          .preset = "llama-3.1-70b",
          .example = "llama-3.1-70b",
          .uses = {layer, step, prefill, decode, tune, plan, measure, schedule},
          .catalogue = Catalogue::models,
          .is_usual = true}
        .fills(name<&RunChoices::model>),
    Field{.key = "hardware",
          .flag = "hardware",
          .group = what,
          .doc = "Machine: a name in configs/hardware or configs/clusters, or a path",
          .preset = "h100-sxm",
          .example = "h100-sxm",
          .uses = {layer, step, prefill, decode, tune, measure, price},
          .catalogue = Catalogue::hardware,
          .is_usual = true}
        .fills(name<&RunChoices::machine, &MachineChoice::hardware>),
    Field{.key = "link_bandwidth",
          .flag = "link-bandwidth",
          .group = what,
          .doc = "Bandwidth inside a node: a factor (x2), or a rate (450GB/s)",
          .preset = "x1",
          .example = "x2",
          .uses = {layer, step, prefill, decode, tune, measure, price}}
        .fills(bandwidth<&RunChoices::machine, &MachineChoice::link_bandwidth>),
    Field{.key = "network_bandwidth",
          .flag = "network-bandwidth",
          .group = what,
          .doc = "Bandwidth between nodes per GPU: a factor (x2), or a rate (50GB/s)",
          .preset = "x1",
          .example = "x2",
          .uses = {layer, step, prefill, decode, tune, measure, price}}
        .fills(bandwidth<&RunChoices::machine, &MachineChoice::network_bandwidth>),
    Field{.key = "ranks",
          .flag = "ranks",
          .group = what,
          .doc = "Tensor-parallel ranks",
          .preset = "8",
          .example = "8",
          .uses = {layer, step, prefill, decode, tune, plan, lab, measure, schedule},
          .most = kibi * kibi,
          .unit = "ranks",
          .growth = Growth::by_one,
          .is_usual = true}
        .fills(count<&RunChoices::ranks>),
    Field{.key = "seq",
          .flag = "seq",
          .group = what,
          .doc = "Sequence length in tokens; 32K is 32768",
          .preset = "4K",
          .example = "4K",
          .uses = {layer, step, prefill, decode, tune, plan, measure, price},
          .most = kibi * kibi * kibi,
          .unit = "tokens",
          .is_usual = true}
        .fills(count<&RunChoices::seq>),
    Field{.key = "batch",
          .flag = "batch",
          .group = what,
          .doc = "Batch size in sequences",
          .preset = "1",
          .example = "1",
          .uses = {layer, step, prefill, decode, tune, plan, measure, price},
          .most = kibi * kibi * kibi,
          .unit = "sequences",
          .is_usual = true}
        .fills(count<&RunChoices::batch>),
    Field{.key = "dtype",
          .flag = "dtype",
          .group = what,
          .doc = "Element type of tensors and messages",
          .preset = "bf16",
          .example = "bf16",
          .uses = {layer, step, prefill, decode, tune, plan, measure, schedule},
          .noun = "dtype",
          .nouns = "dtypes",
          .is_usual = true}
        .fills(one_of<all_dtypes, &RunChoices::dtype>),
    Field{.key = "scope",
          .flag = "scope",
          .group = what,
          .doc = "Site of a layer, chain of sites, or whole model",
          .preset = "mlp",
          .example = "mlp",
          .uses = {layer, step, prefill, decode, tune, measure, schedule},
          .noun = "scope",
          .nouns = "scopes",
          .is_usual = true}
        .fills(FieldValue{FieldType::choice, scope_names, put_scope}),
    Field{.key = "parallel.sequence_parallel",
          .flag = "sequence-parallel",
          .group = whole,
          .doc = "Split norms and residuals over tensor ranks by tokens",
          .preset = "on",
          .example = "on",
          .uses = {step, prefill, decode, tune, plan}}
        .fills(word<switch_choices, &RunChoices::plan, &TrainingPlan::sequence_parallel>),
    Field{.key = "parallel.pipeline",
          .flag = "pipeline",
          .group = whole,
          .doc = "Pipeline stages",
          .preset = "1",
          .example = "1",
          .uses = {step, prefill, decode, tune, plan},
          .most = kibi,
          .unit = "stages",
          .growth = Growth::by_one}
        .fills(count<&RunChoices::plan, &TrainingPlan::pipeline>),
    Field{.key = "parallel.interleave",
          .flag = "interleave",
          .group = whole,
          .doc = "Model chunks per pipeline stage",
          .preset = "1",
          .example = "1",
          .uses = {step, prefill, decode, tune, plan},
          .most = kibi,
          .unit = "pieces",
          .growth = Growth::by_one}
        .fills(count<&RunChoices::plan, &TrainingPlan::interleave>),
    Field{.key = "parallel.schedule",
          .flag = "pipeline-schedule",
          .group = whole,
          .doc = "Pipeline schedule; zero_bubble (ZB-H1) defers weight gradients",
          .preset = "1f1b",
          .example = "zero_bubble",
          .uses = {step, prefill, decode, tune, plan},
          .noun = "pipeline schedule"}
        .fills(one_of<all_pipeline_schedules, &RunChoices::plan, &TrainingPlan::schedule>),
    Field{.key = "parallel.data",
          .flag = "data-parallel",
          .group = whole,
          .doc = "Data-parallel replicas",
          .preset = "1",
          .example = "1",
          .uses = {step, prefill, decode, tune, plan},
          .most = kibi * kibi,
          .unit = "replicas",
          .growth = Growth::by_one}
        .fills(count<&RunChoices::plan, &TrainingPlan::data>),
    Field{.key = "parallel.context",
          .flag = "context",
          .group = whole,
          .doc = "Context-parallel ranks, each with a part of every sequence",
          .preset = "1",
          .example = "1",
          .uses = {step, prefill, decode, tune, plan},
          .most = kibi,
          .unit = "ranks",
          .growth = Growth::by_one}
        .fills(count<&RunChoices::plan, &TrainingPlan::context>),
    Field{.key = "parallel.ulysses",
          .flag = "ulysses",
          .group = whole,
          .doc = "Ulysses ranks: split by tokens, and by heads in attention",
          .preset = "1",
          .example = "1",
          .uses = {step, prefill, decode, tune, plan},
          .most = kibi,
          .unit = "ranks",
          .growth = Growth::by_one}
        .fills(count<&RunChoices::plan, &TrainingPlan::ulysses>),
    Field{.key = "parallel.experts",
          .flag = "expert-parallel",
          .group = whole,
          .doc = "Expert-parallel ranks",
          .preset = "1",
          .example = "1",
          .uses = {step, prefill, decode, tune, plan},
          .most = kibi,
          .unit = "ranks",
          .growth = Growth::by_one}
        .fills(count<&RunChoices::plan, &TrainingPlan::expert>),
    Field{.key = "parallel.zero",
          .flag = "zero",
          .group = whole,
          .doc = "ZeRO stage: 1 shards optimizer state, 2 also gradients, 3 also weights",
          .preset = "0",
          .example = "0",
          .uses = {step, tune, plan},
          .least = 0,
          .most = 3,
          .unit = "",
          .growth = Growth::by_one}
        .fills(count<&RunChoices::plan, &TrainingPlan::zero>),
    Field{.key = "step.micro_batch",
          .flag = "micro-batch",
          .group = whole,
          .doc = "Micro-batch size in sequences; batch counts all replicas",
          .preset = "1",
          .example = "1",
          .uses = {step, tune, plan},
          .most = kibi * kibi,
          .unit = "sequences",
          .growth = Growth::by_one}
        .fills(count<&RunChoices::plan, &TrainingPlan::micro_batch>),
    Field{.key = "step.recompute",
          .flag = "recompute",
          .group = whole,
          .doc = "Activations that the backward pass recomputes",
          .preset = "none",
          .example = "none",
          .uses = {step, tune, plan},
          .noun = "recomputation"}
        .fills(one_of<all_recomputes, &RunChoices::plan, &TrainingPlan::recompute>),
    Field{.key = "step.optimizer",
          .flag = "optimizer",
          .group = whole,
          .doc = "Optimizer whose state is held in memory",
          .preset = "adam",
          .example = "adam",
          .uses = {step, tune, plan},
          .noun = "optimizer"}
        .fills(one_of<all_optimizers, &RunChoices::plan, &TrainingPlan::optimizer>),
    Field{.key = "step.dropout",
          .flag = "dropout",
          .group = whole,
          .doc = "Dropout after attention and MLP, and on scores that are in memory",
          .preset = "off",
          .example = "on",
          .uses = {step, tune, plan}}
        .fills(word<switch_choices, &RunChoices::plan, &TrainingPlan::dropout>),
    Field{.key = "step.gradient_dtype",
          .flag = "gradient-dtype",
          .group = whole,
          .doc = "Element type in which gradients are summed and reduced",
          .preset = "fp32",
          .example = "bf16",
          .uses = {step, tune, plan},
          .noun = "dtype of gradients",
          .nouns = "dtypes of gradients"}
        .fills(one_of<gradient_dtypes, &RunChoices::plan, &TrainingPlan::gradient_dtype>),
    Field{.key = "step.overlap_gradients",
          .flag = "overlap-gradients",
          .group = whole,
          .doc = "on: gradients are reduced during the backward pass; off: after it",
          .preset = "on",
          .example = "off",
          .uses = {step, tune, plan}}
        .fills(word<switch_choices, &RunChoices::plan, &TrainingPlan::overlap_gradients>),
    Field{.key = "step.latent_decode",
          .flag = "latent-decode",
          .group = whole,
          .doc = "Latent attention decodes compressed keys (absorb) or full (naive)",
          .preset = "absorb",
          .example = "naive",
          .uses = {decode, tune},
          .noun = "way",
          .nouns = "ways"}
        .fills(word<latent_decode_choices, &RunChoices::step, &StepOptions::latent_decode>),
    Field{.key = "framework",
          .flag = "framework",
          .group = whole,
          .doc = "Framework whose step is the baseline: torchtitan, megatron-lm; none",
          .preset = "none",
          .example = "torchtitan",
          .uses = {step, tune, plan},
          .catalogue = Catalogue::frameworks}
        .fills(name<&RunChoices::framework>),
    Field{.key = "as",
          .flag = "as",
          .group = which,
          .doc = "Implementations to compare: flux,te; or all",
          .preset = "none",
          .example = "flux,async_tp",
          .uses = {layer},
          .catalogue = Catalogue::implementations,
          .is_usual = true}
        .fills(names_of<&RunChoices::schedules, &ScheduleChoice::implementations>),
    Field{.key = "strategy.name",
          .flag = "strategy",
          .group = which,
          .doc = "Strategies to compare, separated by commas",
          .preset = "all",
          .example = "sliced,commfuse",
          .uses = {layer, step, prefill, decode, tune, measure, schedule},
          .noun = "strategy",
          .nouns = "strategies",
          .is_usual = true}
        .fills(FieldValue{FieldType::choices, strategy_names, put_strategies}),
    Field{.key = "strategy.variants",
          .flag = "variants",
          .group = which,
          .doc = "best: one row per strategy; all: one row per schedule",
          .preset = "best",
          .example = "all",
          .uses = {layer, measure, schedule}}
        .fills(word<variants_choices, &RunChoices::schedules, &ScheduleChoice::each_variant>),
};

constexpr std::array fields_after{
    Field{.key = "jitter",
          .flag = "jitter",
          .group = how,
          .doc = "Jitter of op times: a name in configs/jitter, or a path",
          .preset = "none",
          .example = "default",
          .uses = {layer, step, prefill, decode, tune, plan, lab},
          .catalogue = Catalogue::jitter,
          .is_usual = true}
        .fills(name<&RunChoices::jitter>),
    Field{.key = "faults",
          .flag = "faults",
          .group = how,
          .doc = "Injected faults: a name in configs/faults, or a path",
          .preset = "none",
          .example = "slow-rank",
          .uses = {layer, lab},
          .catalogue = Catalogue::faults}
        .fills(name<&RunChoices::faults>),
    Field{.key = "samples",
          .flag = "samples",
          .group = how,
          .doc = "Runs to sample under jitter; default 1000",
          .example = "10000",
          .uses = {layer, step, prefill, decode, tune, lab},
          .most = 16 * kibi * kibi,
          .unit = "samples"}
        .fills(count<&RunChoices::samples>),
    Field{.key = "seed",
          .flag = "seed",
          .group = how,
          .doc = "Random seed; equal seeds give equal results",
          .preset = "1",
          .example = "1",
          .uses = {layer, step, prefill, decode, tune, plan, lab, measure},
          .least = 0,
          .most = kibi * kibi * kibi,
          .growth = Growth::by_one}
        .fills(count<&RunChoices::seed>),
    Field{.key = "uncertainty",
          .flag = "uncertainty",
          .group = how,
          .doc = "on: standard errors and win probabilities; off: faster",
          .preset = "on",
          .example = "off",
          .uses = {layer, step, prefill, decode, tune}}
        .fills(word<switch_choices, &RunChoices::uncertainty>),
    Field{.key = "verdict.difference",
          .flag = "verdict-difference",
          .group = how,
          .doc = "Smaller differences in time are ties",
          .preset = "2%",
          .example = "5%",
          .uses = {layer, step, prefill, decode, tune, plan},
          .least = 0,
          .most = 100,
          .of_point = false}
        .fills(share<&RunChoices::verdict, &VerdictRule::difference>),
    Field{.key = "verdict.probability",
          .flag = "verdict-probability",
          .group = how,
          .doc = "Less probable wins are ties",
          .preset = "80%",
          .example = "95%",
          .uses = {layer, step, prefill, decode, tune, plan},
          .least = 50,
          .most = 100,
          .of_point = false}
        .fills(share<&RunChoices::verdict, &VerdictRule::probability>),
    Field{.key = "evaluator",
          .flag = "evaluator",
          .group = how,
          .doc = "Evaluator of schedules; auto picks the cheapest that is exact",
          .preset = "auto",
          .example = "engine",
          .uses = {layer, lab},
          .noun = "evaluator",
          .nouns = "evaluators"}
        .fills(word<evaluator_choices, &RunChoices::simulation, &SimulationOptions::evaluator>),
    Field{.key = "symmetry",
          .flag = "symmetry",
          .group = how,
          .doc = "on: simulate one rank per class of equal ranks; off: all",
          .preset = "on",
          .example = "off",
          .uses = {layer, lab},
          .of_point = false}
        .fills(word<switch_choices, &RunChoices::simulation, &SimulationOptions::symmetry>),
    Field{.key = "threads",
          .flag = "threads",
          .letter = 'j',
          .group = how,
          .doc = "Threads; 0 uses all cores",
          .preset = "0",
          .example = "4",
          .uses = {layer, step, prefill, decode, tune},
          .least = 0,
          .most = 4 * kibi,
          .unit = "threads",
          .growth = Growth::by_one,
          .of_point = false}
        .fills(count<&RunChoices::threads>),
};

constexpr auto option_choices = by_option<Words (*)()>([]<Option option>() { return option_words<option>; });
constexpr auto option_puts =
    by_option<void (*)(std::string_view, RunChoices&)>([]<Option option>() { return put_option<option>; });

Field option_field(Option option) {
  const DescribedOption& entry = entry_of(option);
  const auto place = static_cast<std::size_t>(option);
  Field field{.key = entry.key,
              .flag = entry.flag,
              .group = which,
              .doc = entry.doc,
              .preset = {},
              .example = entry.example,
              .uses = {layer, measure, schedule}};
  if (is_count(option)) {
    field.type = FieldType::count;
    field.most = kibi;
    field.unit = entry.nouns;
  } else {
    field.choices = option_choices[place];
    field.noun = entry.noun;
    field.nouns = entry.nouns;
  }
  field.put = option_puts[place];
  return field;
}

/// Sets the member of price_settings[place]. A training step takes its kind of attention from the plan.
template <std::size_t place>
void put_price(std::string_view text, RunChoices& run) {
  price_settings[place].value.put(text, run.price);
  if constexpr (place == price_place(&PricedAs::attention_kernel)) {
    run.plan.fused_attention = run.price.attention == AttentionKernel::fused;
  }
}

/// Returns the setting of price_settings[place].
template <std::size_t place>
constexpr Field price_field() {
  constexpr const PriceSetting& entry = price_settings[place];
  return Field{.key = entry.key,
               .flag = entry.flag,
               .group = how,
               .doc = entry.doc,
               .preset = entry.preset,
               .example = entry.example,
               .uses = entry.uses}
      .fills({FieldType::choice, entry.value.choices, put_price<place>});
}

constexpr auto fields_of_prices = joined<price_settings.size()>(
    std::array<Field, 0>{}, []<std::size_t place>() { return price_field<place>(); }, fields_after);
// Under sanitizers, g++ 12 does not accept the address of a function as a constant expression.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
constexpr auto fills_a_member = [](const Field& field) { return field.put != nullptr; };
static_assert(std::ranges::all_of(fields_before, fills_a_member) && std::ranges::all_of(fields_of_prices, fills_a_member),
              "every setting fills a member");
#endif

const std::vector<Field>& fields() {
  static const std::vector<Field> table = with_options(fields_before, option_field, fields_of_prices);
  return table;
}

std::optional<std::string> mistake_in_count(const Field& field, std::string_view text) {
  const bool negative = text.substr(0, 1) == "-" && parse_count(text.substr(1));
  const std::optional<std::int64_t> value = negative ? std::numeric_limits<std::int64_t>::min() : parse_count(text);
  if (!value) {
    return misread(text, "a whole number", fmt::format("write one, such as {}", field.example));
  }
  if (*value < field.least || *value > field.most) {
    return fmt::format("{} is out of range; choose {} to {}{}{}", in_quotes(text), field.least,
                       format_count(field.most), field.unit.empty() ? "" : " ", field.unit);
  }
  return std::nullopt;
}

std::optional<std::string> mistake_in_bandwidth(std::string_view text) {
  if (parse_bandwidth_choice(text)) {
    return std::nullopt;
  }
  return misread(text, "a bandwidth", "write how many times the link's own, x0.001 to x1000, or a rate, as in 450GB/s");
}

std::optional<std::string> mistake_in_share(const Field& field, std::string_view text) {
  const std::optional<double> share = parse_share(text);
  if (!share) {
    return misread(text, "a share", fmt::format("write percent, such as {}", field.example));
  }
  if (100.0 * *share < static_cast<double>(field.least) || 100.0 * *share > static_cast<double>(field.most)) {
    return fmt::format("{} is out of range; choose {}% to {}%", in_quotes(text), field.least, field.most);
  }
  return std::nullopt;
}

std::optional<std::string> mistake_in_word(const Field& field, std::string_view word) {
  const Words known = field.choices();
  if (std::find(known.begin(), known.end(), word) != known.end()) {
    return std::nullopt;
  }
  const std::string_view means = choice_for(field, word);
  return fmt::format("unknown {} {}; {}", field.noun, in_quotes(word),
                     means.empty() ? remedy_for(word, known, field.nouns) : fmt::format("did you mean '{}'?", means));
}

std::optional<std::string> mistake_in_words(const Field& field, std::string_view text) {
  Words given;
  for (const std::string_view word : split_list(text)) {
    if (std::optional<std::string> mistake = mistake_in_word(field, word)) {
      return mistake;
    }
    if (std::find(given.begin(), given.end(), word) != given.end()) {
      return fmt::format("{} is given twice; keep one of them", in_quotes(word));
    }
    given.push_back(word);
  }
  const std::string_view every = field.choices().front();
  if (given.size() > 1 && std::find(given.begin(), given.end(), every) != given.end()) {
    return fmt::format("'{}' cannot be combined with other values; write it alone", every);
  }
  return std::nullopt;
}

std::optional<std::string> mistake_in_name(const Field& field, std::string_view text) {
  if (has_control_character(text, "\t")) {
    return fmt::format("{} has control characters; give the file another name", in_quotes(text));
  }
  if (!is_utf8(text)) {
    return fmt::format("{} is not UTF-8; give the file another name", in_quotes(text));
  }
  const bool names_no_file = field.catalogue == Catalogue::frameworks && text == "none";
  if (names_no_file || (field.catalogue == Catalogue::models && bare_mlp_named(text))) {
    return std::nullopt;
  }
  try {
    const std::filesystem::path path = find_config(field.catalogue, text);
    std::error_code error;
    if (std::filesystem::is_directory(path, error)) {
      error = std::make_error_code(std::errc::is_a_directory);
    } else {
      std::filesystem::exists(path, error) || (error = std::make_error_code(std::errc::no_such_file_or_directory));
    }
    if (error && field.catalogue == Catalogue::models && is_hf_id(text)) {
      return fmt::format(
          "{} is no file here, no model of this name is known, and the Hugging Face cache has none; fetch "
          "its shape with `hf download {} config.json`, or choose another model",
          in_quotes(text), text);
    }
    if (error) {
      return fmt::format("{} cannot be read ({}); check the path", in_quotes(text), error.message());
    }
  } catch (const ConfigError& error) {
    return error.what();
  }
  return std::nullopt;
}

/// Checks "all", "none", or names between commas.
std::optional<std::string> mistake_in_names(const Field& field, std::string_view text) {
  const Words given = split_list(text);
  for (const std::string_view name : given) {
    if (name == "all" || name == "none") {
      if (given.size() > 1) {
        return fmt::format("'{}' cannot be combined with other values; write it alone", name);
      }
    } else if (std::optional<std::string> mistake = mistake_in_name(field, name)) {
      return mistake;
    }
  }
  return std::nullopt;
}

std::string_view leaf_of(std::string_view key) { return key.substr(key.rfind('.') + 1); }

}  // namespace

std::span<const Field> run_fields() { return fields(); }

const Field* find_field(std::string_view key) {
  const auto field = std::ranges::find(fields(), key, &Field::key);
  return field == fields().end() ? nullptr : &*field;
}

std::size_t index_of(const Field& field) { return static_cast<std::size_t>(&field - fields().data()); }

bool is_group(std::string_view key) {
  return std::ranges::any_of(fields(), [&](const Field& field) {
    return field.key.size() > key.size() && field.key.substr(0, key.size()) == key && field.key[key.size()] == '.';
  });
}

std::string variable_of(const Field& field) { return variable_of_key(field.key); }

std::vector<std::string> names_known_to(const Field& field) {
  std::vector<std::string> names = known_names(field.catalogue);
  if (field.catalogue == Catalogue::frameworks) {
    names.emplace(names.begin(), "none");
  }
  return names;
}

std::optional<std::string> mistake_in(const Field& field, std::string_view text) {
  switch (field.type) {
    case FieldType::name: return mistake_in_name(field, text);
    case FieldType::names: return mistake_in_names(field, text);
    case FieldType::choice: return mistake_in_word(field, text);
    case FieldType::choices: return mistake_in_words(field, text);
    case FieldType::count: return mistake_in_count(field, text);
    case FieldType::bandwidth: return mistake_in_bandwidth(text);
    case FieldType::share: return mistake_in_share(field, text);
  }
  return std::nullopt;
}

std::string remedy_for_key(std::string_view wrong) {
  Words keys;
  for (const Field& field : fields()) {
    if (leaf_of(field.key) == wrong || field.flag == wrong || field_meant(wrong) == &field) {
      return fmt::format("did you mean '{}'?", field.key);
    }
    keys.push_back(field.key);
  }
  return remedy_for(wrong, keys, "settings");
}

std::string values_in_words(const Field& field) {
  switch (field.type) {
    case FieldType::name: return fmt::format("one of: {}; or a path", fmt::join(names_known_to(field), ", "));
    case FieldType::names:
      return fmt::format("all, none, or some between commas: {}; or paths",
                         fmt::join(known_names(field.catalogue), ", "));
    case FieldType::choice: return fmt::format("one of: {}", fmt::join(field.choices(), ", "));
    case FieldType::choices: return fmt::format("some of, between commas: {}", fmt::join(field.choices(), ", "));
    case FieldType::count:
      return fmt::format("a whole number{}{} from {} to {}", field.unit.empty() ? "" : " of ", field.unit, field.least,
                         format_count(field.most));
    case FieldType::bandwidth:
      return "how many times the link's own, x0.001 to x1000, or a nominal rate of one direction, as in 450GB/s";
    case FieldType::share:
      return fmt::format("a share from {0}% to {1}%, as in {2}", field.least, field.most, field.example);
  }
  return {};
}

}  // namespace commfuse
