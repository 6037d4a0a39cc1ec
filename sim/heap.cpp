// SPDX-License-Identifier: Apache-2.0
#include "sim/heap.h"

#include <cstdint>
#include <cstdlib>

#ifdef __GLIBC__  // which the headers above say
#include <malloc.h>
#include <sys/mman.h>
#include <unistd.h>
#endif

namespace commfuse::sim {

void use_large_pages() {
#ifdef __GLIBC__
  // Lists of up to 32 MiB (the most there is) come from the heap, which keeps what they leave. Its first 128 MiB are
  // only addresses until something is written there; then a page of 2 MiB comes in at once.
  mallopt(M_MMAP_THRESHOLD, 1 << 25);
  mallopt(M_TRIM_THRESHOLD, 1 << 30);
  mallopt(M_TOP_PAD, 1 << 27);
  constexpr std::uintptr_t page = 1U << 21U;
  void* first = std::malloc(1U << 20U);
  const std::uintptr_t begin = (reinterpret_cast<std::uintptr_t>(first) + page - 1) / page * page;
  const auto end = reinterpret_cast<std::uintptr_t>(sbrk(0));
  if (begin < end) {  // else this memory is not the heap's
    madvise(reinterpret_cast<void*>(begin), end - begin, MADV_HUGEPAGE);
  }
  std::free(first);
#endif
}

}  // namespace commfuse::sim
