// SPDX-License-Identifier: Apache-2.0
#include "sim/parallel.h"

#include <tbb/parallel_for.h>

#ifdef __has_feature
#if __has_feature(thread_sanitizer)
#define COMMFUSE_TELLS_THREADS
#endif
#endif
#ifdef __SANITIZE_THREAD__
#define COMMFUSE_TELLS_THREADS
#endif
#ifdef COMMFUSE_TELLS_THREADS
#include <sanitizer/tsan_interface.h>
#endif

namespace commfuse {

namespace {

// oneTBB is not built for the thread sanitizer, which would take what one thread hands another for a race
// (tests/tsan.supp). So it is told: what comes before `hands_over` is seen behind `takes_over` of the same mark.

void hands_over([[maybe_unused]] void* mark) {
#ifdef COMMFUSE_TELLS_THREADS
  __tsan_release(mark);
#endif
}

void takes_over([[maybe_unused]] void* mark) {
#ifdef COMMFUSE_TELLS_THREADS
  __tsan_acquire(mark);
#endif
}

}  // namespace

void for_each_index(std::size_t count, const std::function<void(std::size_t)>& body) {
  char begun = 0;
  char done = 0;
  hands_over(&begun);
  tbb::parallel_for(std::size_t{0}, count, [&](std::size_t i) {
    takes_over(&begun);
    body(i);
    hands_over(&done);
  });
  takes_over(&done);
}

}  // namespace commfuse
