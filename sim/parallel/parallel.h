// SPDX-License-Identifier: Apache-2.0
// Work on all cores. oneTBB is not built for the thread sanitizer, which takes what one thread hands another through it
// for a race (tests/tsan.supp); so it is told here.
#pragma once

#include <cstddef>
#include <functional>
#include <utility>

namespace commfuse {

/// Calls `body` once with every number below `count`, on as many threads as tbb::global_control allows, in any order.
/// What is written before is seen by every call, and what a call writes by whoever comes behind the loop. Throws what
/// a call throws.
void for_each_index(std::size_t count, const std::function<void(std::size_t)>& body);

/// Returns the number of threads that tbb::global_control allows.
std::size_t threads_at_most();

/// What comes before `give` is seen behind a later `take`. This only says so: somebody else has to see to it.
class Handover {
 public:
  void give();
  void take();

 private:
  char mark_ = 0;
};

/// Where a stage of a pipeline has its work from and whom it hands it to; `own` where its calls come one after another.
struct StageMarks {
  Handover* from = nullptr;
  Handover* own = nullptr;
  Handover* to = nullptr;
};

/// A stage that tells of what it is handed. Requires that the marks outlive it.
template <class Body>
auto told(StageMarks marks, Body body) {
  struct Giving {
    explicit Giving(const StageMarks& all) : marks(all) {}
    Giving(const Giving&) = delete;
    Giving& operator=(const Giving&) = delete;
    ~Giving() {
      if (marks.own != nullptr) {
        marks.own->give();
      }
      marks.to->give();
    }
    const StageMarks& marks;
  };
  return [marks, body = std::move(body)]<class... Input>(Input&&... input) {
    marks.from->take();
    if (marks.own != nullptr) {
      marks.own->take();
    }
    const Giving giving{marks};
    return body(std::forward<Input>(input)...);
  };
}

}  // namespace commfuse
