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
#include "model/strategies/strategies.h"
#include "model/text/misread.h"
#include "model/text/plain_text.h"
#include "model/text/quantity.h"
#include "model/text/ranges.h"
#include "model/text/suggest.h"
#include "model/workload/bare_mlp.h"
#include "model/workload/training_plan.h"

namespace commfuse {

using Words = std::vector<std::string_view>;

namespace run_settings {

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

}  // namespace run_settings

namespace {

template <Option option>
Words option_words() {
  return words_of(option);
}

template <Option option>
void put_option(std::string_view text, RunChoices& run) {
  put(option, is_count(option) ? std::to_string(*parse_count(text)) : text, run.schedules.options);
  run.schedules.fixed.add(option);
}

constexpr auto option_choices = by_option<Words (*)()>([]<Option option>() { return option_words<option>; });
constexpr auto option_puts =
    by_option<void (*)(std::string_view, RunChoices&)>([]<Option option>() { return put_option<option>; });

Field option_field(Option option) {
  const DescribedOption& entry = entry_of(option);
  const auto index = static_cast<std::size_t>(option);
  Field field{.key = entry.key,
              .flag = entry.flag,
              .group = run_settings::which,
              .doc = entry.doc,
              .preset = {},
              .example = entry.example,
              .uses = {Use::layer, Use::measure, Use::schedule}};
  if (is_count(option)) {
    field.type = FieldType::count;
    field.most = run_settings::kibi;
    field.unit = entry.nouns;
  } else {
    field.choices = option_choices[index];
    field.noun = entry.noun;
    field.nouns = entry.nouns;
  }
  field.put = option_puts[index];
  return field;
}

/// Sets the member of price_settings[index]. A training step reads its kind of attention from the plan.
template <std::size_t index>
void put_price(std::string_view text, RunChoices& run) {
  price_settings[index].value.put(text, run.price);
  if constexpr (index == price_place(&PricedAs::attention_kernel)) {
    run.plan.fused_attention = run.price.attention == AttentionKernel::fused;
  }
}

/// Returns the setting of price_settings[index].
template <std::size_t index>
constexpr Field price_field() {
  constexpr const PriceSetting& entry = price_settings[index];
  return Field{.key = entry.key,
               .flag = entry.flag,
               .group = run_settings::how,
               .doc = entry.doc,
               .preset = entry.preset,
               .example = entry.example,
               .uses = entry.uses}
      .fills({FieldType::choice, entry.value.choices, put_price<index>});
}

/// Returns the settings of a struct in RunChoices as settings of a run.
template <const auto& table, auto member>
constexpr auto of_run() {
  return joined<table.size()>(
      std::array<Field, 0>{},
      []<std::size_t index>() {
        return table[index].template of<RunChoices>(
            [](std::string_view text, RunChoices& run) { table[index].put(text, run.*member); });
      },
      std::array<Field, 0>{});
}

constexpr auto fields_before =
    concatenated(run_settings::of_subject, of_run<run_settings::of_plan, &RunChoices::plan>(), run_settings::of_models,
                 run_settings::of_schedules);
constexpr auto fields_after = joined<price_settings.size()>(
    std::array<Field, 0>{}, []<std::size_t index>() { return price_field<index>(); },
    concatenated(run_settings::of_draws, of_run<run_settings::of_verdicts, &RunChoices::verdict>(),
                 run_settings::of_evaluation));
// Under sanitizers, g++ 12 does not accept the address of a function as a constant expression.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
constexpr auto fills_a_member = [](const Field& field) { return field.put != nullptr; };
static_assert(std::ranges::all_of(fields_before, fills_a_member) && std::ranges::all_of(fields_after, fills_a_member),
              "every setting fills a member");
#endif

const std::vector<Field>& fields() {
  static const std::vector<Field> table = with_options(fields_before, option_field, fields_after);
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
  return misread(text, "a bandwidth", "write a factor from x0.001 to x1000, or a rate, as in 450GB/s");
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

std::optional<std::string> mistake_in_amount(const Field& field, std::string_view text) {
  const std::optional<double> amount = parse_amount(text);
  if (!amount) {
    return misread(text, "a number", fmt::format("write one, such as {}", field.example));
  }
  if (!(*amount >= static_cast<double>(field.least) && *amount <= static_cast<double>(field.most))) {
    return fmt::format("{} is out of range; choose {} to {}", in_quotes(text), field.least, field.most);
  }
  return std::nullopt;
}

std::optional<std::string> mistake_in_word(const Field& field, std::string_view word) {
  const Words known = field.choices();
  if (std::find(known.begin(), known.end(), word) != known.end()) {
    return std::nullopt;
  }
  const std::string_view meaning = choice_for(field, word);
  std::string message =
      fmt::format("unknown {} {}; {}", field.noun, in_quotes(word),
                  meaning.empty() ? remedy_for(word, known, field.nouns) : fmt::format("did you mean '{}'?", meaning));
  if (const auto implementation = field.key == "strategy.name" ? implementation_meant(word) : std::nullopt) {
    message += fmt::format("{} commfuse-sim prices the implementation with --as {}", message.ends_with('?') ? "" : ";",
                           *implementation);
  }
  return message;
}

std::optional<std::string> mistake_in_words(const Field& field, std::string_view text) {
  Words words;
  for (const std::string_view word : split_list(text)) {
    if (std::optional<std::string> mistake = mistake_in_word(field, word)) {
      return mistake;
    }
    if (std::find(words.begin(), words.end(), word) != words.end()) {
      return fmt::format("{} is given twice; keep one of them", in_quotes(word));
    }
    words.push_back(word);
  }
  const std::string_view word_for_all = field.choices().front();
  if (words.size() > 1 && std::find(words.begin(), words.end(), word_for_all) != words.end()) {
    return fmt::format("'{}' cannot be combined with other values; write it alone", word_for_all);
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
  if (!names_config(field, text)) {
    return std::nullopt;
  }
  try {
    if (field.catalogue == Catalogue::implementations && find_strategy(text) != nullptr) {
      const std::vector<std::string> implementations = known_names(field.catalogue);
      if (std::find(implementations.begin(), implementations.end(), text) == implementations.end()) {
        return fmt::format("{} is a strategy; name it by --strategy", in_quotes(text));
      }
    }
    const std::filesystem::path path = find_config(field.catalogue, text);
    std::error_code error;
    if (std::filesystem::is_directory(path, error)) {
      error = std::make_error_code(std::errc::is_a_directory);
    } else {
      std::filesystem::exists(path, error) || (error = std::make_error_code(std::errc::no_such_file_or_directory));
    }
    if (error && field.catalogue == Catalogue::models && is_hf_id(text)) {
      return fmt::format(
          "{} is not a file here, no model of this name is known, and the Hugging Face cache has none; fetch "
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

/// Checks "all", "none", or names separated by commas; returns the mistake, if any.
std::optional<std::string> mistake_in_names(const Field& field, std::string_view text) {
  const Words names = split_list(text);
  for (auto name = names.begin(); name != names.end(); ++name) {
    if (*name == "all" || *name == "none") {
      if (names.size() > 1) {
        return fmt::format("'{}' cannot be combined with other values; write it alone", *name);
      }
    } else if (std::optional<std::string> mistake = mistake_in_name(field, *name)) {
      return mistake;
    }
    if (std::find(names.begin(), name, *name) != name) {
      return fmt::format("{} is given twice; keep one of them", in_quotes(*name));
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

bool names_config(const Field& field, std::string_view text) {
  return !(field.catalogue == Catalogue::frameworks && text == "none") &&
         !(field.catalogue == Catalogue::models && bare_mlp_named(text));
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
    case FieldType::amount: return mistake_in_amount(field, text);
  }
  return std::nullopt;
}

const Field* field_called(std::string_view word) {
  std::string flag(word);  // data_parallel is the flag data-parallel in the spelling of a key
  std::ranges::replace(flag, '_', '-');
  const auto field = std::ranges::find_if(fields(), [&](const Field& known) {
    return leaf_of(known.key) == word || known.flag == flag || field_meant(word) == &known;
  });
  return field == fields().end() ? nullptr : &*field;
}

std::string remedy_for_key(std::string_view wrong) {
  if (const Field* const field = field_called(wrong)) {
    return fmt::format("did you mean '{}'?", field->key);
  }
  Words keys;
  for (const Field& field : fields()) {
    keys.push_back(field.key);
  }
  return remedy_for(wrong, keys, "settings");
}

std::string values_in_words(const Field& field) {
  switch (field.type) {
    case FieldType::name: return fmt::format("one of: {}; or a path", fmt::join(names_known_to(field), ", "));
    case FieldType::names:
      return fmt::format("all, none, or names separated by commas: {}; or paths",
                         fmt::join(known_names(field.catalogue), ", "));
    case FieldType::choice: return fmt::format("one of: {}", fmt::join(field.choices(), ", "));
    case FieldType::choices:
      return fmt::format("one or more of, separated by commas: {}", fmt::join(field.choices(), ", "));
    case FieldType::count:
      return fmt::format("a whole number{}{} from {} to {}", field.unit.empty() ? "" : " of ", field.unit, field.least,
                         format_count(field.most));
    case FieldType::bandwidth:
      return "a factor on the link's own rate, x0.001 to x1000, or a nominal rate of one direction, for example "
             "450GB/s";
    case FieldType::share:
      return fmt::format("a share from {0}% to {1}%, for example {2}", field.least, field.most, field.example);
    case FieldType::amount:
      return fmt::format("a number from {} to {}, for example {}", field.least, field.most, field.example);
  }
  return {};
}

}  // namespace commfuse
