// SPDX-License-Identifier: Apache-2.0
// Reading JSON that a stranger wrote, within bounds: the library takes any depth and any size, and 100 MB of "[" or
// "1," become gigabytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace commfuse {

/// What a document takes in memory while it is read, in about bytes.
class JsonBudget {
 public:
  static constexpr int deepest = 100;
  static constexpr std::size_t most_bytes = std::size_t{400} << 20U;

  /// What counts of what has been read.
  struct Taken {
    std::size_t bytes = 0;
    std::size_t objects = 0;
  };

  /// `place` begins its sentences.
  explicit JsonBudget(std::string place, std::size_t most_objects = std::numeric_limits<std::size_t>::max())
      : place_(std::move(place)), most_objects_(most_objects) {}

  /// These throw ConfigError when there is too much. A list or object begins, `depth` others around it:
  void begin_list(int depth) { begin(depth); }
  void begin_object(int depth) {
    if (++taken_.objects > most_objects_) {
      refuse_objects();
    }
    begin(depth);
  }
  void key(std::size_t length) { take(key_bytes + length); }
  void value() { take(value_bytes); }
  void text(std::size_t length) { take(value_bytes + length); }

  [[nodiscard]] const Taken& taken() const { return taken_; }
  /// Of what has been read since `before` and forgotten nothing counts.
  void forget_since(const Taken& before) { taken_ = before; }

 private:
  // nlohmann::json: 16 bytes a value; lists double, so that 24 stand for a number, and up to 48 while it grows; nodes
  // of maps and strings come from the heap.
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
    if (taken_.bytes > most_bytes) {
      refuse_size();
    }
  }
  [[noreturn]] void refuse_depth() const;
  [[noreturn]] void refuse_objects() const;
  [[noreturn]] void refuse_size() const;

  std::string place_;
  std::size_t most_objects_;
  Taken taken_;
};

/// Counts what nlohmann's parser tells its callback.
template <class Json>
void count_event(JsonBudget& budget, int depth, typename Json::parse_event_t event, const Json& value) {
  using Event = typename Json::parse_event_t;
  if (event == Event::object_start) {
    budget.begin_object(depth);
  } else if (event == Event::array_start) {
    budget.begin_list(depth);
  } else if (event == Event::key) {
    budget.key(value.template get_ref<const std::string&>().size());
  } else if (event == Event::value && value.is_string()) {
    budget.text(value.template get_ref<const std::string&>().size());
  } else if (event == Event::value) {
    budget.value();
  }
}

/// A callback of nlohmann's parser for long documents: what stands `depth` deep is given to `take` with the event that
/// ends it, and forgotten. The library looks at all that is kept whenever an object ends, so at most 1000 may be kept
/// at once.
template <class Json, class Take>
class TakeAndForget {
 public:
  using Event = typename Json::parse_event_t;
  static constexpr std::size_t most_objects = 1000;

  TakeAndForget(std::string place, int depth, Take take)
      : budget_(std::move(place), most_objects), depth_(depth), take_(std::move(take)) {}

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

/// Parses a text, or what stands between two iterators, with such a callback. Throws as the callback and the parser do.
template <class Json, class Take, class... Input>
void take_and_forget(const std::string& place, int depth, const Take& take, const Input&... input) {
  TakeAndForget<Json, Take> callback(place, depth, take);
  [[maybe_unused]] const Json rest = Json::parse(
      input..., [&](int at, typename Json::parse_event_t event, Json& value) { return callback(at, event, value); });
}

/// What nlohmann's SAX parser tells, counted and forgotten.
template <class Json>
class JsonCounter {
 public:
  explicit JsonCounter(const std::string& place) : budget_(place) {}

  bool null() { return value(); }
  bool boolean(bool /*is*/) { return value(); }
  bool number_integer(typename Json::number_integer_t /*is*/) { return value(); }
  bool number_unsigned(typename Json::number_unsigned_t /*is*/) { return value(); }
  bool number_float(typename Json::number_float_t /*is*/, const std::string& /*text*/) { return value(); }
  bool binary(typename Json::binary_t& /*is*/) { return value(); }
  bool string(std::string& text) {
    budget_.text(text.size());
    return true;
  }
  bool key(std::string& text) {
    budget_.key(text.size());
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
  /// Who parses it for good says it better.
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

/// What `text` says. Throws ConfigError, which begins with `place`, where it is nested deeper than 100 or takes more
/// than about 400 MiB in memory; and what the parser throws.
template <class Json, class Text>
Json parse_json(const Text& text, const std::string& place) {
  JsonCounter<Json> counter(place);
  Json::sax_parse(text, &counter);
  return Json::parse(text);
}

/// A whole number of 64 bits; nothing where the value is none. What the library itself makes of 1e80 is undefined.
template <class Json>
std::optional<std::int64_t> whole_number(const Json& value) {
  constexpr auto most = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  const bool is_whole =
      value.is_number_integer() && (!value.is_number_unsigned() || value.template get<std::uint64_t>() <= most);
  return is_whole ? std::optional(value.template get<std::int64_t>()) : std::nullopt;
}

/// "line:col", both from 1, of the byte that the parser read last.
std::string line_and_column(std::string_view text, std::size_t byte);

}  // namespace commfuse
