// SPDX-License-Identifier: Apache-2.0
// A library to preload: every write and sync takes SLOW_DISK_US microseconds longer, as on a network file system. After
// SLOW_DISK_FAILS_AFTER syncs have succeeded, the next sync and everything after it fail, as when the server
// disappears.
#include <dlfcn.h>
#include <sys/types.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>

namespace {

long number_in(const char* variable, long otherwise) {
  const char* const text = std::getenv(variable);
  return text == nullptr ? otherwise : std::strtol(text, nullptr, 10);
}

bool fails(bool is_sync) {
  static const long delay = number_in("SLOW_DISK_US", 0);
  static const long last_success = number_in("SLOW_DISK_FAILS_AFTER", -1);
  static std::atomic<long> syncs{0};
  usleep(static_cast<useconds_t>(delay));
  const long now = is_sync ? ++syncs : syncs.load();
  return last_success >= 0 && now > last_success;
}

template <class Function>
Function next(const char* name) {
  return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));  // NOLINT(*-reinterpret-cast): what dlsym is for
}

}  // namespace

// Only positional writes, which files use, are slow; terminals and pipes use write(), which is unchanged.
extern "C" ssize_t pwrite64(int file, const void* bytes, size_t count, off64_t at) {
  static const auto real = next<ssize_t (*)(int, const void*, size_t, off64_t)>("pwrite64");
  if (fails(false)) {
    errno = EIO;
    return -1;
  }
  return real(file, bytes, count, at);
}

extern "C" int fdatasync(int file) {
  static const auto real = next<int (*)(int)>("fdatasync");
  if (fails(true)) {
    errno = EIO;
    return -1;
  }
  return real(file);
}

extern "C" int fsync(int file) {
  static const auto real = next<int (*)(int)>("fsync");
  if (fails(true)) {
    errno = EIO;
    return -1;
  }
  return real(file);
}
