// SPDX-License-Identifier: Apache-2.0
// Reads untrusted JSON within bounds. The library accepts any depth and any size, and 100 MB of "[" or "1," would take
// gigabytes of memory.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace commfuse {

/// Estimates the memory in bytes that a document takes while it is read, and limits it.
class JsonBudget {
 public:
  static constexpr int deepest = 100;
  static constexpr std::size_t max_bytes = std::size_t{400} << 20U;

  /// Counts so far.
  struct Taken {
    std::size_t bytes = 0;
    std::size_t objects = 0;
  };

  static constexpr std::size_t unlimited = std::numeric_limits<std::size_t>::max();

  struct Limits {
    std::size_t objects = unlimited;
    std::size_t keys = unlimited;  ///< Keys of one object.
  };

  /// `place` begins every message.
  JsonBudget(std::string place, const Limits& limits) : place_(std::move(place)), limits_(limits) {}

  /// begin_list(), begin_object(), key(), value() and text() throw ConfigError when a limit is exceeded. `depth` is the
  /// number of open lists and objects around the new one.
  void begin_list(int depth) { begin(depth); }
  void begin_object(int depth) {
    if (++taken_.objects > limits_.objects) {
      refuse_objects();
    }
    begin(depth);
    keys_[static_cast<std::size_t>(depth)] = 0;
  }
  /// Counts a key of an object that is nested in `depth` lists and objects.
  void key(std::size_t length, int depth = 0) {
    if (++keys_[static_cast<std::size_t>(depth)] > limits_.keys) {
      refuse_keys();
    }
    take(key_bytes + length);
  }
  void value() { take(value_bytes); }
  void text(std::size_t length) { take(value_bytes + length); }

  [[nodiscard]] const Taken& taken() const { return taken_; }
  /// Forgets everything that was counted since `before`, because the caller has dropped it.
  void forget_since(const Taken& before) { taken_ = before; }

 private:
  // Sizes in nlohmann::json: a value takes 16 bytes. Lists double when they grow, so a number counts as 24 bytes (48 at
  // worst during growth). Nodes of maps and strings come from the heap.
  static constexpr std::size_t value_bytes = 24;
  static constexpr std::size_t key_bytes = 96;
  static constexpr std::size_t container_bytes = 80;

  void begin(int depth) {
    if (depth >= deepest) {
      refuse_depth();
    }
    take(container_bytes);
  }
  void take(std::size_t bytes) {
    taken_.bytes += bytes;
    if (taken_.bytes > max_bytes) {
      refuse_size();
    }
  }
  [[noreturn]] void refuse_depth() const;
  [[noreturn]] void refuse_objects() const;
  [[noreturn]] void refuse_keys() const;
  [[noreturn]] void refuse_size() const;

  std::string place_;
  Limits limits_;
  std::array<std::size_t, deepest> keys_{};  // keys of the open objects, by depth
  Taken taken_;
};

/// Limit on the keys of one object. The ordered kind of JSON stores an object as a list and searches it from the front
/// for every key, so it needs a limit.
template <class Json>
constexpr std::size_t max_keys = requires(typename Json::object_t object) {
  object.capacity();
}
? 1000 : JsonBudget::unlimited;

/// Counts the events that nlohmann's parser passes to its callback.
template <class Json>
void count_event(JsonBudget& budget, int depth, typename Json::parse_event_t event, const Json& value) {
  using Event = typename Json::parse_event_t;
  if (event == Event::object_start) {
    budget.begin_object(depth);
  } else if (event == Event::array_start) {
    budget.begin_list(depth);
  } else if (event == Event::key) {
    budget.key(value.template get_ref<const std::string&>().size(), depth - 1);
  } else if (event == Event::value && value.is_string()) {
    budget.text(value.template get_ref<const std::string&>().size());
  } else if (event == Event::value) {
    budget.value();
  }
}

/// Callback of nlohmann's parser for long documents: passes each value at nesting level `depth` to `take` when the
/// value ends, then drops it. The library visits every kept value whenever an object ends, so at most 1,000 objects may
/// be kept at a time.
template <class Json, class Take>
class TakeAndForget {
 public:
  using Event = typename Json::parse_event_t;
  static constexpr std::size_t max_objects = 1000;

  TakeAndForget(std::string place, int depth, Take take)
      : budget_(std::move(place), {.objects = max_objects, .keys = max_keys<Json>}),
        depth_(depth),
        take_(std::move(take)) {}

  bool operator()(int depth, Event event, Json& value) {
    const bool begins = event == Event::object_start || event == Event::array_start;
    if (depth == depth_ && (begins || event == Event::value)) {
      before_ = budget_.taken();
    }
    count_event(budget_, depth, event, value);
    if (depth != depth_ || begins || event == Event::key) {
      return true;
    }
    take_(event, value);
    budget_.forget_since(before_);
    return false;
  }

 private:
  JsonBudget budget_;
  int depth_;
  Take take_;
  JsonBudget::Taken before_;
};

/// Parses a string, or the characters between two iterators, with TakeAndForget. Throws whatever the callback and the
/// parser throw.
template <class Json, class Take, class... Input>
void take_and_forget(const std::string& place, int depth, const Take& take, const Input&... input) {
  TakeAndForget<Json, Take> callback(place, depth, take);
  [[maybe_unused]] const Json rest = Json::parse(
      input..., [&](int at, typename Json::parse_event_t event, Json& value) { return callback(at, event, value); });
}

/// Receiver of nlohmann's SAX events that counts them and keeps nothing.
template <class Json>
class JsonCounter {
 public:
  explicit JsonCounter(const std::string& place) : budget_(place, {.keys = max_keys<Json>}) {}

  bool null() { return value(); }
  bool boolean(bool /*value*/) { return value(); }
  bool number_integer(typename Json::number_integer_t /*value*/) { return value(); }
  bool number_unsigned(typename Json::number_unsigned_t /*value*/) { return value(); }
  bool number_float(typename Json::number_float_t /*value*/, const std::string& /*text*/) { return value(); }
  bool binary(typename Json::binary_t& /*value*/) { return value(); }
  bool string(std::string& text) {
    budget_.text(text.size());
    return true;
  }
  bool key(std::string& text) {
    budget_.key(text.size(), depth_ - 1);
    return true;
  }
  bool start_object(std::size_t /*size*/) {
    budget_.begin_object(depth_++);
    return true;
  }
  bool start_array(std::size_t /*size*/) {
    budget_.begin_list(depth_++);
    return true;
  }
  bool end_object() { return end(); }
  bool end_array() { return end(); }
  /// Reports nothing, because parse_json() parses the document again and then gets a better message.
  bool parse_error(std::size_t /*byte*/, const std::string& /*token*/, const typename Json::exception& /*error*/) {
    return false;
  }

 private:
  bool value() {
    budget_.value();
    return true;
  }
  bool end() {
    --depth_;
    return true;
  }

  JsonBudget budget_;
  int depth_ = 0;
};

/// Returns the parsed `text`. Throws a ConfigError that begins with `place` when the text is nested deeper than 100,
/// takes more than about 400 MiB in memory, or has an object of more than max_keys<Json> keys; also throws whatever
/// the parser throws.
template <class Json, class Text>
Json parse_json(const Text& text, const std::string& place) {
  JsonCounter<Json> counter(place);
  Json::sax_parse(text, &counter);
  return Json::parse(text);
}

/// Returns the value as a 64-bit integer, or nullopt when it is not a whole number in that range. The check is needed
/// because the library's own conversion of 1e80 is undefined.
template <class Json>
std::optional<std::int64_t> whole_number(const Json& value) {
  constexpr auto largest = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  const bool is_whole =
      value.is_number_integer() && (!value.is_number_unsigned() || value.template get<std::uint64_t>() <= largest);
  return is_whole ? std::optional(value.template get<std::int64_t>()) : std::nullopt;
}

/// Returns "line:col", both counted from 1, of the last byte read; `byte` is the number of bytes that the parser has
/// read.
std::string line_and_column(std::string_view text, std::size_t byte);

}  // namespace commfuse
