// SPDX-License-Identifier: Apache-2.0
#include "validate/mpi/crew.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <thread>
#include <utility>

#include "model/check.h"
#include "model/config/command_line.h"
#include "model/text/plain_text.h"
#include "validate/executor.h"
#include "validate/standing.h"

namespace commfuse::validate {

namespace {

using std::chrono::nanoseconds;

/// Time that the leader waits for all answers, and, after its own failure, for the other processes to end.
constexpr nanoseconds grace = std::chrono::seconds(3);
/// Time for which a waiting process yields to others before it sleeps.
constexpr nanoseconds yield_time = std::chrono::milliseconds(2);
constexpr nanoseconds sleep_time = std::chrono::microseconds(100);

/// Largest number of notes that are read before the run continues.
constexpr int max_notes = 4096;

/// Reads a sentence of another process, which may contain anything.
std::string sentence_in(PayloadReader& body) { return with_escapes(body.get_text(), "\t\n"); }

/// Reads an exit code. A shell sees only its last eight bits, so a code outside 0 to 255 becomes exit_code::failed.
int exit_code_in(PayloadReader& body) {
  const auto code = body.get<int>();
  return code >= 0 && code <= 255 ? code : exit_code::failed;
}

bool is_decided_by_leader(Note::Kind kind) {
  using Kind = Note::Kind;
  return kind == Kind::start || kind == Kind::over || kind == Kind::ask || kind == Kind::fail || kind == Kind::verdict;
}

std::string gave_up(const Ending& ending) {
  return fmt::format("process {} gave up: {}", ending.process, ending.message);
}

std::string seconds_in_words(nanoseconds time) {
  return fmt::format("{:g} s", std::chrono::duration<double>(time).count());
}

}  // namespace

void Crew::send_to_all(int members, const Note& note) {
  for (int process = 0; process < members; ++process) {
    send(process, note);
  }
}

template <class Until>
void Crew::work(int members, Activity* activity, bool may_step, Until&& until) {
  const Clock::time_point now = Clock::now();
  last_moved_ = now;
  last_leader_ = now;
  while (!until()) {
    bool moved = take_notes(activity);
    if (may_step) {
      const Clock::time_point begun = Clock::now();
      moved = activity->step() || moved;
      last_leader_ += Clock::now() - begun;  // the leader could not be heard meanwhile
    }
    if (moved) {
      last_moved_ = Clock::now();
      moved_since_beat_ = true;
    } else {
      pause();
    }
    watch(members, activity);
  }
}

void Crew::pause() {
  if (Clock::now() - last_moved_ < yield_time) {
    std::this_thread::yield();
  } else {
    std::this_thread::sleep_for(sleep_time);
  }
}

std::vector<Payload> Crew::perform(int members, Activity& activity) {
  check(members >= 1 && members <= processes() && process() < members,
        "this process is a member, and all members exist");
  if (reason_) {
    throw std::runtime_error(*reason_);
  }
  for (const std::optional<Ending>& ending : endings_) {  // received between two runs
    if (ending && ending->code != 0) {
      fail(gave_up(*ending));
    }
  }
  const auto first = [&](auto& by_process) { return std::span(by_process).first(static_cast<std::size_t>(members)); };
  send(0, {.kind = Note::Kind::arrived});
  if (leads()) {
    work(members, &activity, false, [&] { return std::ranges::all_of(first(arrived_), [](int n) { return n > 0; }); });
    std::ranges::for_each(first(arrived_), [](int& n) { --n; });
    send_to_all(members, {.kind = Note::Kind::start});
  }
  work(members, &activity, false, [&] { return started_ > 0; });
  --started_;
  activity.begin();
  work(members, &activity, true, [&] { return activity.done(); });
  send(0, {.kind = Note::Kind::left, .body = activity.report()});
  std::vector<Payload> reports;
  if (leads()) {
    work(members, &activity, false,
         [&] { return std::ranges::all_of(first(reports_), [](const auto& report) { return report.has_value(); }); });
    for (std::optional<Payload>& report : first(reports_)) {
      reports.push_back(*std::exchange(report, std::nullopt));
    }
    send_to_all(members, {.kind = Note::Kind::over});
  }
  work(members, &activity, false, [&] { return over_ > 0; });
  --over_;
  return reports;
}

std::vector<Payload> Crew::gather(int members, Payload mine) {
  class ReportOnly final : public Activity {
   public:
    explicit ReportOnly(Payload mine) : mine_(std::move(mine)) {}
    [[nodiscard]] Payload report() const override { return mine_; }

   private:
    Payload mine_;
  };
  ReportOnly activity(std::move(mine));
  return perform(members, activity);
}

Payload Crew::scatter(int members, std::vector<Payload> by_process) {
  class Reception final : public Activity {
   public:
    Reception(Crew& crew, std::vector<Payload> by_process) : crew_(crew), by_process_(std::move(by_process)) {}
    void begin() override {
      for (std::size_t other = 0; other < by_process_.size(); ++other) {
        crew_.send(static_cast<int>(other), {.kind = Note::Kind::data, .body = by_process_[other]});
      }
    }
    void take(int from, const Note& note) override {
      if (from != 0 || note.kind != Note::Kind::data) {
        throw std::runtime_error(fmt::format(
            "process {} sent a message that only process 0 may send; run the same program everywhere", from));
      }
      received_ = note.body;
    }
    [[nodiscard]] bool done() const override { return received_.has_value(); }
    [[nodiscard]] Payload received() const { return *received_; }

   private:
    Crew& crew_;
    std::vector<Payload> by_process_;
    std::optional<Payload> received_;
  };
  Reception reception(*this, leads() ? std::move(by_process) : std::vector<Payload>{});
  perform(members, reception);
  return reception.received();
}

std::optional<Crew::Agreement> Crew::agree(int code, const std::string& message) {
  if (reason_) {
    return std::nullopt;
  }
  try {
    PayloadWriter writer;
    writer.put(code);
    writer.put_text(message);
    send(0, {.kind = Note::Kind::finished, .body = writer.take()});
    if (!leads()) {
      work(processes(), nullptr, false, [&] { return verdict_.has_value(); });
      return Agreement{.code = *verdict_};
    }
    const auto all_ended = [&] {
      return std::ranges::all_of(endings_, [](const auto& ending) { return ending.has_value(); });
    };
    const Clock::time_point until = Clock::now() + grace;
    work(processes(), nullptr, false, [&] { return all_ended() || (code != 0 && Clock::now() > until); });
    if (!all_ended()) {
      fail("process 0 gave up: " + message);
    }
    Agreement agreement{.code = code};
    for (const std::optional<Ending>& ending : endings_) {
      if (ending->code != 0) {
        agreement.code = code != 0 ? code : std::max(agreement.code, ending->code);
        agreement.endings.push_back(*ending);
      }
    }
    PayloadWriter verdict;
    verdict.put(agreement.code);
    send_to_all(processes(), {.kind = Note::Kind::verdict, .body = verdict.take()});
    work(processes(), nullptr, false, [&] { return verdict_.has_value(); });
    return agreement;
  } catch (const std::exception& error) {
    reason_ = reason_.value_or(error.what());
    return std::nullopt;
  }
}

bool Crew::take_notes(Activity* activity) {
  bool has_progressed = false;
  for (int notes = 0; notes < max_notes; ++notes) {
    const std::optional<Parcel> parcel = world_.receive();
    if (!parcel) {
      break;
    }
    if (parcel->from == 0) {
      last_leader_ = Clock::now();
    }
    const Note note = unpacked(parcel->bytes);
    has_progressed = has_progressed || note.kind != Note::Kind::beat || leads();
    take(parcel->from, note, activity);
  }
  return has_progressed;
}

void Crew::take(int from, const Note& note, Activity* activity) {
  const auto sender = static_cast<std::size_t>(from);
  PayloadReader body(note.body);
  if (from != 0 && is_decided_by_leader(note.kind)) {
    throw std::runtime_error(
        fmt::format("process {} sent a message that only process 0 may send; run the same program everywhere", from));
  }
  switch (note.kind) {
    case Note::Kind::arrived: ++arrived_[sender]; return;
    case Note::Kind::start: ++started_; return;
    case Note::Kind::left: reports_[sender] = note.body; return;
    case Note::Kind::over: ++over_; return;
    case Note::Kind::beat: return;
    case Note::Kind::ask: answer(activity); return;
    case Note::Kind::standing: answers_[sender] = note.body; return;
    case Note::Kind::fail: reason_ = sentence_in(body); throw Stuck(*reason_);
    case Note::Kind::finished: {
      const int code = exit_code_in(body);
      endings_[sender] = Ending{from, code, sentence_in(body)};
      if (activity != nullptr && code != 0) {
        fail(gave_up(*endings_[sender]));
      }
      return;
    }
    case Note::Kind::verdict: verdict_ = exit_code_in(body); return;
    default: break;
  }
  if (activity == nullptr) {  // any program that reaches the port may send such a note
    throw std::runtime_error(
        fmt::format("process {} reported an op while nothing runs; run the same program everywhere", from));
  }
  activity->take(from, note);
}

void Crew::answer(Activity* activity) {
  const std::vector<std::string> sentences = activity == nullptr ? std::vector<std::string>{} : activity->standing();
  PayloadWriter writer;
  writer.put(static_cast<std::int64_t>(sentences.size()));
  for (const std::string& sentence : sentences) {
    writer.put_text(sentence);
  }
  send(0, {.kind = Note::Kind::standing, .body = writer.take()});
}

void Crew::watch(int members, Activity* activity) {
  const Clock::time_point now = Clock::now();
  keep_in_touch(now);
  if (leads()) {
    if (now - last_moved_ > patience_) {
      give_up(members, activity);
    }
  } else if (now - last_leader_ > 2 * patience_ + grace) {
    reason_ = fmt::format("process 0 has not answered for {}", seconds_in_words(now - last_leader_));
    throw Stuck(*reason_);
  }
}

void Crew::keep_in_touch(Clock::time_point now) {
  if (now - last_beat_ < patience_ / 4) {
    return;
  }
  last_beat_ = now;
  if (leads()) {
    for (int process = 1; process < processes(); ++process) {
      send(process, {.kind = Note::Kind::beat});
    }
  } else if (std::exchange(moved_since_beat_, false)) {
    send(0, {.kind = Note::Kind::beat});
  }
}

void Crew::give_up(int members, Activity* activity) {
  std::ranges::fill(answers_, std::nullopt);
  send_to_all(members, {.kind = Note::Kind::ask});
  const auto answers = std::span(answers_).first(static_cast<std::size_t>(members));
  const Clock::time_point until = Clock::now() + std::min(grace, patience_);
  while (Clock::now() < until && !std::ranges::all_of(answers, [](const auto& answer) { return answer.has_value(); })) {
    take_notes(activity);
    std::this_thread::sleep_for(sleep_time);
  }
  std::vector<std::string> silent;
  std::vector<std::string> sentences;
  for (std::size_t process = 0; process < answers.size(); ++process) {
    if (!answers[process]) {
      silent.push_back(fmt::format("process {} does not answer", process));
      continue;
    }
    PayloadReader reader(*answers[process]);
    for (auto remaining = reader.get<std::int64_t>(); remaining > 0; --remaining) {
      sentences.push_back(sentence_in(reader));
    }
  }
  sentences.insert(sentences.begin(), silent.begin(), silent.end());
  fail(fmt::format("no op has completed for {}: {}", seconds_in_words(patience_),
                   sentences.empty() ? "no rank waits at an op" : standing_in_words(sentences)));
}

void Crew::fail(const std::string& reason) {
  reason_ = reason;
  for (int process = 1; process < processes(); ++process) {
    try {
      send(process, {.kind = Note::Kind::fail, .body = text_payload(reason)});
    } catch (const std::runtime_error&) {  // it has ended; the others still need the message
      continue;
    }
  }
  throw Stuck(reason);
}

}  // namespace commfuse::validate
