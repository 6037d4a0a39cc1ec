// SPDX-License-Identifier: Apache-2.0
// What the static C++ library of GCC 12 and later takes from glibc 2.36, by a function that older ones have too, so
// that programs with that library inside run on glibc 2.34. Linked into packed programs alone (cmake/portable.cmake);
// hidden, so that other objects in the process keep the one of the C library.
#include <unistd.h>

#include <cstdint>
#include <cstdlib>

// What std::random_device reads: the kernel's own source, as in glibc 2.36.
extern "C" __attribute__((visibility("hidden"))) std::uint32_t arc4random() noexcept {
  std::uint32_t number = 0;
  if (::getentropy(&number, sizeof(number)) != 0) {
    std::abort();  // as glibc does: there is nothing random to answer with
  }
  return number;
}
