// SPDX-License-Identifier: Apache-2.0
#include "model/config/plan_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <utility>

#include "model/check.h"
#include "model/config/plan_field.h"
#include "model/config/resolver.h"
#include "model/text/misread.h"
#include "model/text/plain_text.h"
#include "model/text/quantity.h"
#include "model/text/suggest.h"

namespace commfuse {

namespace {

/// Reads the fields of one map as the table of plan fields describes them. If the map is absent, every field has its
/// preset.
class FieldReader {
 public:
  FieldReader(YamlFile& file, std::optional<YamlMap> map, std::string prefix)
      : file_(file), map_(std::move(map)), prefix_(std::move(prefix)) {}

  /// Returns true if there is a value to read. A required value that is absent is a mistake.
  bool has(std::string_view key) {
    if (!map_ || map_->has(key)) {
      return map_.has_value();
    }
    at(key).required ? static_cast<void>(map_->text(key, at(key).example))
                     : static_cast<void>(map_->optional_value(key));
    return false;
  }

  /// Returns "path:line:col" of a value that is given.
  std::string place(std::string_view key) { return map_->optional_value(key)->where(); }

  std::string text(std::string_view key) {
    return has(key) ? map_->text(key, at(key).example) : std::string(at(key).preset);
  }

  double number(std::string_view key) {
    const Range<double> range = at(key).range;
    const double value = parsed(key, "a number", parse_amount).value_or(range.least);
    if (value < range.least || value > range.most) {
      map_->mistake(key, fmt::format("'{}' is {}; choose {} to {}", key, value, range.least, range.most));
    }
    return value;
  }

  std::int64_t count(std::string_view key) {
    const PlanField& field = at(key);
    return has(key) ? map_->count(key, {std::llround(field.range.least), std::llround(field.range.most)})
                    : std::llround(parse_amount(field.preset).value_or(field.range.least));
  }

  Seconds span(std::string_view key) {
    constexpr Seconds longest{100.0 * 365.25 * 86400.0};
    const Seconds value = parsed(key, "a span of time", parse_span).value_or(Seconds{});
    if (!(value <= longest)) {
      map_->mistake(key, fmt::format("'{}' is more than 100 years; choose a shorter span", key));
    }
    return value;
  }

  Watts power(std::string_view key) {
    constexpr double limit = 1e12;
    const Watts watts = parsed(key, "a power", parse_power).value_or(Watts{});
    if (!(watts.value <= limit)) {
      map_->mistake(key, fmt::format("'{}' is more than {:g} W; choose less", key, limit));
    }
    return watts;
  }

  std::optional<std::chrono::sys_days> date(std::string_view key) { return parsed(key, "a date", parse_date); }

  /// Reads the field like a run's setting of the same name.
  void setting(std::string_view key, Settings& settings) {
    if (!has(key)) {
      return;
    }
    const Field& field = *find_field(key);
    if (std::optional<Setting> value = read_setting(file_, field, *map_->optional_value(key))) {
      settings.put(field, *std::move(value));
    }
  }

  void mistake(std::string_view key, const std::string& message) { map_->mistake(key, message); }

 private:
  [[nodiscard]] const PlanField& at(std::string_view key) const {
    const PlanField* field = find_plan_field(prefix_ + std::string(key));
    check(field != nullptr, "every field of a plan is in its table");
    return *field;
  }

  /// Parses the field if it exists, or its preset; notes a mistake and returns nullopt when the value is wrong.
  template <class T>
  std::optional<T> parsed(std::string_view key, std::string_view what, std::optional<T> (*parse)(std::string_view)) {
    const std::string written = text(key);
    std::optional<T> value = parse(written);
    if (!value && !written.empty()) {
      map_->mistake(key, misread(written, what, fmt::format("write one, as in \"{}: {}\"", key, at(key).example)));
    }
    return value;
  }

  YamlFile& file_;
  std::optional<YamlMap> map_;
  std::string prefix_;
};

class PlanReader {
 public:
  explicit PlanReader(YamlFile& file) : file_(file), top_(file, file.root(), "") {}

  PlanFile read() {
    read_run();
    read_limits();
    read_failures_and_energy();
    read_what_ifs();
    for (const std::string& name : names_of_gpus()) {
      if (file_.is_full()) {
        // Mistakes in the offer would not be shown. Reading it only keeps its key from counting as unknown.
        file_.root().map("gpus").optional_value(name);
      } else {
        plan_.gpus.push_back(offer(name));
      }
    }
    if (!file_.has_mistakes()) {
      note_clashes();
    }
    return std::move(plan_);
  }

 private:
  FieldReader group(std::string_view name) {
    return {file_, file_.root().optional_map(name), fmt::format("{}.", name)};
  }

  void read_run() {
    const std::string title = top_.text("title");
    plan_.title = title.empty() ? std::filesystem::path(file_.path()).stem().string() : title;
    plan_.tokens = top_.number("tokens");
    plan_.confidence = top_.number("confidence");
    plan_.currency = top_.text("currency");
    if (top_.has("model_error")) {
      plan_.model_error = top_.number("model_error");
    }
    if (top_.has("budget")) {
      plan_.budget = top_.number("budget");
    }
    const std::optional<std::chrono::sys_days> start = top_.date("start");
    const std::string deadline = top_.text("deadline");
    if (const auto day = parse_date(deadline)) {
      read_deadline_day(*day, start);
    } else if (!deadline.empty()) {
      read_deadline_span(deadline, start.has_value());
    } else if (start) {
      top_.mistake("start", "'start' requires 'deadline'; add the day by which training must end, or remove 'start'");
    }
    plan_.deadline_text = deadline;
  }

  void read_deadline_day(std::chrono::sys_days day, const std::optional<std::chrono::sys_days>& start) {
    if (!start) {
      top_.mistake("deadline",
                   "'deadline' is a day, but 'start' is missing; add the day on which training begins, as in \"start: "
                   "2026-12-01\"");
    } else if (*start >= day) {
      top_.mistake("deadline", "'deadline' is not after 'start'; choose a later day");
    } else {
      plan_.deadline = Seconds{day - *start};
    }
  }

  void read_deadline_span(const std::string& deadline, bool has_start) {
    plan_.deadline = parse_span(deadline);
    if (!plan_.deadline || plan_.deadline->count() <= 0.0) {
      top_.mistake("deadline", misread(deadline, "a span of time above 0 or a day",
                                       "write one, as in \"deadline: 60 days\" or \"deadline: 2027-03-01\""));
    } else if (has_start) {
      top_.mistake("start", "'start' requires a day as 'deadline'; write the day, or remove 'start'");
    }
  }

  void read_limits() {
    FieldReader limits = group("limits");
    plan_.memory_share = limits.number("memory_share");
    if (const Seconds step = limits.span("p99_step"); step.count() > 0.0) {
      plan_.p99_step = step;
    } else {
      refuse_zero(limits, "p99_step", parse_span(limits.text("p99_step")).has_value(), "a time", "30 s");
    }
    if (const Watts power = limits.power("power"); power.value > 0.0) {
      plan_.power = power;
    } else {
      refuse_zero(limits, "power", parse_power(limits.text("power")).has_value(), "a power", "10 MW");
    }
  }

  /// Refuses a limit of zero, which would allow nothing. `is_read` is true if the value exists and has no other
  /// mistake.
  static void refuse_zero(FieldReader& fields, std::string_view key, bool is_read, std::string_view what,
                          std::string_view example) {
    if (is_read) {
      fields.mistake(
          key, fmt::format("'{0}' is 0, which no run can meet; give {1} above 0, as in \"{0}: {2}\", or remove it", key,
                           what, example));
    }
  }

  void read_failures_and_energy() {
    FieldReader failures = group("failures");
    plan_.failures = {.per_gpu_hour = failures.number("per_gpu_hour"),
                      .error = failures.number("error"),
                      .checkpoint = failures.span("checkpoint"),
                      .restart = failures.span("restart")};
    FieldReader energy = group("energy");
    plan_.pue = energy.number("pue");
    plan_.energy_price = energy.number("price");
  }

  void read_what_ifs() {
    FieldReader what_if = group("what_if");
    plan_.slow_node = what_if.number("slow_node");
    plan_.change = what_if.number("change");
  }

  std::vector<std::string> names_of_gpus() {
    std::vector<std::string> names = file_.root().map("gpus").keys();
    if (names.empty() && !file_.has_mistakes()) {
      top_.mistake("gpus",
                   "'gpus' is empty; add a kind of GPU below it, as in \"h100: {hardware: dgx-h100-x2, price: 2.5, "
                   "price_date: 2026-05-04, available: 4096}\"");
    }
    for (const std::string& name : names) {
      if (has_control_character(name, "\t")) {
        file_.root().map("gpus").mistake(
            name, fmt::format("{} must be plain text; remove control characters", in_quotes(name)));
      } else if (!is_utf8(name)) {
        file_.root().map("gpus").mistake(name, fmt::format("{} is not UTF-8; save the file as UTF-8", in_quotes(name)));
      }
    }
    return names;
  }

  GpuOffer offer(const std::string& name) {
    FieldReader fields(file_, file_.root().map("gpus").map(name), "gpus.NAME.");
    GpuOffer offer{.name = name};
    fields.setting("hardware", offer.machine);
    fields.setting("link_bandwidth", offer.machine);
    fields.setting("network_bandwidth", offer.machine);
    offer.price = fields.number("price");
    if (fields.has("price_date")) {
      fields.date("price_date");
      offer.price_date = fields.text("price_date");
    }
    offer.price_source = fields.text("price_source");
    offer.price_error = fields.number("price_error");
    read_counts(fields, offer);
    if (const Watts power = fields.power("power"); power.value > 0.0) {
      offer.power = power;
    } else if (parse_power(fields.text("power"))) {
      fields.mistake("power",
                     "'power' is 0, but every GPU draws power; give what one GPU, including its share of the node, "
                     "draws, as in \"power: 1.3 kW\", or remove it");
    }
    return offer;
  }

  static void read_counts(FieldReader& fields, GpuOffer& offer) {
    const bool has_available = fields.has("available");
    if (fields.has("count")) {
      offer.count = fields.count("count");
      offer.count_place = fields.place("count");
    } else if (!has_available) {
      fields.mistake(
          "", fmt::format("'available' or 'count' is missing in 'gpus.{}'; add how many GPUs are available, as in "
                          "\"available: 4096\", or the exact number to use, as in \"count: 1024\"",
                          offer.name));
    }
    offer.available = has_available ? fields.count("available") : offer.count.value_or(1);
    if (offer.count.value_or(0) > offer.available) {
      fields.mistake("count",
                     fmt::format("'count' is {}, but 'available' is {}; choose a smaller count or a larger 'available'",
                                 *offer.count, offer.available));
    }
  }

  /// Notes fields that are right on their own but contradict each other or lack a counterpart.
  void note_clashes() {
    const bool is_chosen =
        std::ranges::any_of(plan_.gpus, [](const GpuOffer& offer) { return !offer.count.has_value(); });
    if (is_chosen && !plan_.deadline && !plan_.budget) {
      top_.mistake("tokens",
                   "'deadline' or 'budget' is required; add one, as in \"deadline: 60 days\", or the exact 'count' of "
                   "every kind of GPU");
    }
    if (!is_chosen && !plan_.gpus.empty() && top_.has("confidence") && !plan_.deadline && !plan_.budget) {
      top_.mistake("confidence",
                   "'confidence' is the probability of meeting 'deadline' and 'budget', and neither is given; add one, "
                   "or remove 'confidence'");
    }
    for (const GpuOffer& offer : plan_.gpus) {
      if (offer.power) {
        continue;
      }
      YamlMap map = file_.root().map("gpus").map(offer.name);
      if (plan_.power) {
        map.mistake("", fmt::format("'limits.power' is given, but 'gpus.{}' has no 'power'; add what one GPU, "
                                    "including its share of the node, draws, as in \"power: 1.3 kW\"",
                                    offer.name));
      } else if (plan_.energy_price > 0.0) {
        map.mistake("", fmt::format("'energy.price' is given, but 'gpus.{}' has no 'power'; add what one GPU, "
                                    "including its share of the node, draws, as in \"power: 1.3 kW\"",
                                    offer.name));
      }
    }
  }

  YamlFile& file_;
  FieldReader top_;
  PlanFile plan_;
};

/// Notes settings that have no meaning in a plan, or that belong to a kind of GPU.
void note_other_settings(YamlFile& file, const YamlValue& set, const std::string& prefix = "") {
  for (const YamlValue::Field& entry : set.fields()) {
    const std::string key = prefix + entry.key;
    const Field* field = find_field(key);
    if (field != nullptr && find_plan_field("gpus.NAME." + key) != nullptr) {
      file.mistake(entry.place, fmt::format("'{}' belongs to a kind of GPU; write it below 'gpus'", key));
    } else if (key == "scope") {
      file.mistake(entry.place,
                   "a plan trains a model and does not use 'scope'; remove it, or for serving compare rows of "
                   "`commfuse-sim run --scope decode --jitter default --price 2.80` by time_p99_ms and cost_per_mtok");
    } else if (field != nullptr && !is_plan_setting(*field)) {
      file.mistake(entry.place, fmt::format("a plan does not use '{}'; remove it", key));
    } else if (field == nullptr && is_group(key) && entry.value.kind() == YamlKind::map) {
      note_other_settings(file, entry.value, key + ".");
    }
  }
}

/// Turns jitter on unless the file sets it, because whole runs vary.
void choose_jitter(Settings& settings) {
  const Field& jitter = *find_field("jitter");
  if (settings.at(jitter).origin.source == Source::preset) {
    settings.put(jitter, {"default", {}});
  }
}

/// Checks that the run has at least one step.
void require_a_step(YamlFile& file, const PlanFile& plan) {
  const double step =
      static_cast<double>(plan.settings.count("batch")) * static_cast<double>(plan.settings.count("seq"));
  if (plan.tokens < step) {
    file.root().mistake("tokens",
                        fmt::format("'tokens' is {:.0f}, less than one step of {:.0f} (batch {} x seq {}); "
                                    "give more tokens, or a smaller batch",
                                    plan.tokens, step, plan.settings.text("batch"), plan.settings.text("seq")));
    file.finish();
  }
}

PlanFile read_plan(YamlFile& file) {
  YamlMap root = file.root();
  root.schema(plan_schema);
  Resolver resolver;
  if (const std::optional<YamlValue> set = root.optional_value("set")) {
    if (set->kind() == YamlKind::map) {
      note_other_settings(file, *set);
      resolver.read_map(file, *set);
    } else {
      file.mistake(set->place(), "'set' is not a map; write settings below it, as in \"set: {model: llama-3.1-70b}\"");
    }
  }
  PlanFile plan = PlanReader(file).read();
  file.finish();
  plan.settings = resolver.finish();
  require_a_step(file, plan);
  choose_jitter(plan.settings);
  for (GpuOffer& offer : plan.gpus) {
    Settings settings = plan.settings;
    for (const std::string_view key : {"hardware", "link_bandwidth", "network_bandwidth"}) {
      const Field& field = *find_field(key);
      settings.put(field, offer.machine.at(field));
    }
    offer.machine = std::move(settings);
  }
  return plan;
}

}  // namespace

bool is_plan_setting(const Field& field) { return field.uses.has(Use::plan); }

PlanFile load_plan(const std::string& path) {
  YamlFile file(path);
  return read_plan(file);
}

PlanFile parse_plan(const std::string& name, const std::string& text) {
  YamlFile file(name, text);
  return read_plan(file);
}

}  // namespace commfuse
