// SPDX-License-Identifier: Apache-2.0
#include "sim/parallel/parallel.h"

#include <tbb/global_control.h>
#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>

#include <algorithm>
#include <exception>
#include <vector>

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

void Handover::give() {
#ifdef COMMFUSE_TELLS_THREADS
  __tsan_release(&mark_);
#endif
}

void Handover::take() {
#ifdef COMMFUSE_TELLS_THREADS
  __tsan_acquire(&mark_);
#endif
}

void for_each_index(std::size_t count, const std::function<void(std::size_t)>& body) {
  Handover before_loop;
  Handover after_loop;
  before_loop.give();
  // The destructor takes the handover even if a call throws, because other threads read and write until the loop ends.
  struct Taking {
    Handover& from;
    ~Taking() { from.take(); }
  } const taking{after_loop};
  // A thread that waits for the end of an inner loop must not start another iteration of the outer loop, because the
  // data that the thread keeps for its current iteration is still in use.
  tbb::this_task_arena::isolate([&] {
    tbb::parallel_for(std::size_t{0}, count,
                      marked({.from = &before_loop, .to = &after_loop}, [&](std::size_t i) { body(i); }));
  });
}

void for_each_index_to_the_end(std::size_t count, const std::function<void(std::size_t)>& body) {
  std::vector<std::exception_ptr> errors(count);
  for_each_index(count, [&](std::size_t i) {
    try {
      body(i);
    } catch (...) {
      errors[i] = std::current_exception();
    }
  });
  const auto first = std::ranges::find_if(errors, [](const std::exception_ptr& error) { return error != nullptr; });
  if (first != errors.end()) {
    std::rethrow_exception(*first);
  }
}

std::size_t threads_at_most() {
  return tbb::global_control::active_value(tbb::global_control::max_allowed_parallelism);
}

}  // namespace commfuse
