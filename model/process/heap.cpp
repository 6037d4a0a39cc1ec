// SPDX-License-Identifier: Apache-2.0
#include "model/process/heap.h"

#include <cstdint>
#include <cstdlib>

#ifdef __GLIBC__  // defined by the headers above
#include <malloc.h>
#include <sys/mman.h>
#include <unistd.h>
#endif

namespace commfuse {

void use_large_pages() {
#ifdef __GLIBC__
  // Allocations of up to 32 MiB (the maximum) come from the heap, which keeps freed memory. Its first 128 MiB are only
  // reserved addresses; the first write to a page then maps its whole 2 MiB.
  mallopt(M_MMAP_THRESHOLD, 1 << 25);
  mallopt(M_TRIM_THRESHOLD, 1 << 30);
  mallopt(M_TOP_PAD, 1 << 27);
  constexpr std::uintptr_t page = 1U << 21U;
  void* first = std::malloc(1U << 20U);
  const auto address = reinterpret_cast<std::uintptr_t>(first);
  const std::uintptr_t offset = (page - address % page) % page;
  const auto end = reinterpret_cast<std::uintptr_t>(sbrk(0));
  if (first != nullptr && address + offset < end) {  // otherwise this memory does not belong to the heap
    madvise(static_cast<char*>(first) + offset, end - address - offset, MADV_HUGEPAGE);
  }
  std::free(first);
#endif
}

}  // namespace commfuse
