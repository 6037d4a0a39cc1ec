// SPDX-License-Identifier: Apache-2.0
// Runs work on all cores. oneTBB is not built with the thread sanitizer, which therefore reports a race for data that
// oneTBB hands from thread to thread (tests/tsan.supp); this header tells the sanitizer about each handover.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <utility>

namespace commfuse {

/// Calls `body` once with every number below `count`, on as many threads as tbb::global_control allows, in any order.
/// Every call sees what was written before the loop, and the code after the loop sees what the calls wrote. Rethrows an
/// exception thrown by a call.
void for_each_index(std::size_t count, const std::function<void(std::size_t)>& body);

/// Works like for_each_index(), but makes every call even if some calls throw, and rethrows the exception of the lowest
/// number.
void for_each_index_to_the_end(std::size_t count, const std::function<void(std::size_t)>& body);

/// Returns the number of threads that tbb::global_control allows.
std::size_t threads_at_most();

/// Returns whether the caller of a run has set its stop flag. A null flag is never set.
inline bool is_stopped(const std::atomic<bool>* stop) { return stop != nullptr && stop->load(); }

/// Tells the sanitizer that writes before `give` are visible after a later `take`. It does not synchronize threads;
/// oneTBB does.
class Handover {
 public:
  void give();
  void take();

 private:
  char mark_ = 0;
};

/// Handovers of a pipeline stage: `from` the previous stage, `to` the next stage, and `between` consecutive calls of
/// this stage if they run one at a time.
struct StageMarks {
  Handover* from = nullptr;
  Handover* between = nullptr;
  Handover* to = nullptr;
};

/// Returns `body` as a stage that reports its handovers. The marks must outlive the stage.
template <class Body>
auto marked(StageMarks marks, Body body) {
  struct Giving {
    explicit Giving(const StageMarks& stage_marks) : marks(stage_marks) {}
    Giving(const Giving&) = delete;
    Giving& operator=(const Giving&) = delete;
    ~Giving() {
      if (marks.between != nullptr) {
        marks.between->give();
      }
      marks.to->give();
    }
    const StageMarks& marks;
  };
  return [marks, body = std::move(body)]<class... Input>(Input&&... input) {
    marks.from->take();
    if (marks.between != nullptr) {
      marks.between->take();
    }
    const Giving giving{marks};
    return body(std::forward<Input>(input)...);
  };
}

}  // namespace commfuse
