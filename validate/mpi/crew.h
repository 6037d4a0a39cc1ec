// SPDX-License-Identifier: Apache-2.0
// Keeps processes in step: they begin and end a run together, and all give up when one is lost or when all of them
// wait. Process 0 leads: it alone starts and ends runs, and it alone reports why a run was given up.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "model/process/world.h"
#include "validate/mpi/note.h"

namespace commfuse::validate {

/// The work of a process in a run. All calls come from Crew::perform().
class Activity {
 public:
  Activity() = default;
  Activity(const Activity&) = delete;
  Activity& operator=(const Activity&) = delete;
  virtual ~Activity() = default;

  virtual void begin() {}
  /// Advances as far as possible without waiting. Returns false if nothing advanced.
  virtual bool step() { return false; }
  /// Takes a note about an op, which may come before begin() and after done().
  virtual void take(int /*from*/, const Note& /*note*/) {}
  [[nodiscard]] virtual bool done() const { return true; }
  /// Returns the report for the leader, once the activity is done.
  [[nodiscard]] virtual Payload report() const { return {}; }
  /// Returns a sentence for every place where the activity waits: "rank 1 waits at op 3 (exchange) for rank 0".
  [[nodiscard]] virtual std::vector<std::string> standing() const { return {}; }
};

/// The end of a process, as reported to the leader: an exit code from 0 to 255, and a string without control characters
/// other than tabs and line ends.
struct Ending {
  int process = 0;
  int code = 0;
  std::string message;
};

class Crew {
 public:
  /// A run is given up when nothing has happened on any process for this long. The world must outlive the crew.
  Crew(World& world, std::chrono::nanoseconds patience) : world_(world), patience_(patience) {
    const auto count = static_cast<std::size_t>(world.processes());
    arrived_.resize(count);
    reports_.resize(count);
    answers_.resize(count);
    endings_.resize(count);
  }

  [[nodiscard]] World& world() { return world_; }
  [[nodiscard]] int process() const { return world_.process(); }
  [[nodiscard]] int processes() const { return world_.processes(); }
  [[nodiscard]] bool leads() const { return process() == 0; }
  void set_patience(std::chrono::nanoseconds patience) { patience_ = patience; }
  [[nodiscard]] std::chrono::nanoseconds patience() const { return patience_; }

  void send(int to, const Note& note) { world_.send(to, packed(note)); }

  /// Runs the activity on the first `members` processes, each of which must call it, from a common start until all are
  /// done. Returns their reports by process on the leader, and nothing on the others. Throws Stuck on all processes
  /// when the run is given up, and std::runtime_error when an earlier run was given up.
  std::vector<Payload> perform(int members, Activity& activity);
  /// Returns the payloads of all processes, by process, on the leader. Throws as perform() does.
  std::vector<Payload> gather(int members, Payload mine);
  /// Returns the leader's payload for this process. All of the first `members` processes must call it; only the
  /// leader's `by_process` is used, which must have a payload for each of them. Throws as perform() does.
  Payload scatter(int members, std::vector<Payload> by_process);

  /// The end of the program on all processes. The leader learns how all processes ended, and all exit with the same
  /// code: the leader's if it failed, else the largest of the others. On the leader, `endings` are those of the
  /// processes that failed. agree() returns nothing if the processes have lost contact, so that only this one's code is
  /// known.
  struct Agreement {
    int code = 0;
    std::vector<Ending> endings{};
  };
  std::optional<Agreement> agree(int code, const std::string& message);

  /// Returns the reason why the processes have lost contact, so that nothing further can run; nothing if they have not.
  [[nodiscard]] const std::optional<std::string>& broken() const { return reason_; }

 private:
  using Clock = std::chrono::steady_clock;

  void send_to_all(int members, const Note& note);
  /// Takes notes and advances until the condition holds.
  template <class Until>
  void work(int members, Activity* activity, bool may_step, Until&& until);
  bool take_notes(Activity* activity);
  void take(int from, const Note& note, Activity* activity);
  void answer(Activity* activity);
  void watch(int members, Activity* activity);
  void keep_in_touch(Clock::time_point now);
  [[noreturn]] void give_up(int members, Activity* activity);
  [[noreturn]] void fail(const std::string& reason);
  void pause();

  World& world_;
  std::chrono::nanoseconds patience_;
  std::optional<std::string> reason_;

  int started_ = 0;
  int over_ = 0;
  Clock::time_point last_moved_{};   // last progress of this process; on the leader, of the others too
  Clock::time_point last_beat_{};    // time of the last beat that this process sent
  Clock::time_point last_leader_{};  // last message from the leader, plus the time of steps since then
  bool moved_since_beat_ = false;
  std::optional<int> verdict_;

  // The leader's data, by process.
  std::vector<int> arrived_;  // runs that the process has arrived at and that have not started
  std::vector<std::optional<Payload>> reports_;
  std::vector<std::optional<Payload>> answers_;
  std::vector<std::optional<Ending>> endings_;
};

}  // namespace commfuse::validate
