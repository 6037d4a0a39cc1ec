// SPDX-License-Identifier: Apache-2.0
// Implements, with older functions, a function of glibc 2.36 that the static C++ library of GCC 12 and later needs, so
// that programs with that library run on glibc 2.34. Only packed programs link it (cmake/portable.cmake); it is hidden,
// so that other objects in the process use the C library's function.
#include <unistd.h>

#include <cstdint>
#include <cstdlib>

// std::random_device calls this function, which reads the kernel's random source, as glibc 2.36 does.
extern "C" __attribute__((visibility("hidden"))) std::uint32_t arc4random() noexcept {
  std::uint32_t number = 0;
  if (::getentropy(&number, sizeof(number)) != 0) {
    std::abort();  // glibc aborts too, because no random number is available.
  }
  return number;
}
