// SPDX-License-Identifier: Apache-2.0
#include "tests/software_gpu/fibers.h"

#include <setjmp.h>
#include <sys/mman.h>
#include <ucontext.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/software_gpu/gpu.h"
#include "tests/software_gpu/misuse.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#endif
#if defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
#endif

constinit thread_local uint3 threadIdx{};
constinit thread_local uint3 blockIdx{};
constinit thread_local dim3 blockDim{};
constinit thread_local dim3 gridDim{};

namespace software_gpu {

namespace {

constexpr std::size_t stack_bytes = std::size_t{256} << 10U;
constexpr unsigned warp = 32;

enum class State : std::uint8_t { ready, at_block_barrier, at_warp_barrier, asleep, returned };

class ThreadBlock;

/// A stack that runs threads of a block one after another.
class Fiber {
 public:
  Fiber()
      : memory_(::mmap(nullptr, stack_bytes + page_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) {
    check(memory_ != MAP_FAILED, "no memory for the stack of a fiber");
    ::mprotect(memory_, page_bytes, PROT_NONE);  // a stack that grows beyond its end causes a fault
    ::getcontext(&context_);
    context_.uc_stack.ss_sp = stack();
    context_.uc_stack.ss_size = stack_bytes;
    context_.uc_link = nullptr;
#if defined(__SANITIZE_THREAD__)
    tsan_ = __tsan_create_fiber(0);
#endif
    ::makecontext(&context_, &Fiber::begin, 0);
  }
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;
  ~Fiber() {
#if defined(__SANITIZE_THREAD__)
    __tsan_destroy_fiber(tsan_);
#endif
    ::munmap(memory_, stack_bytes + page_bytes);
  }

  /// Continues the thread on this fiber, or starts `body` as a new one, until it yields or returns.
  void resume(const std::function<void()>& body) {
    body_ = &body;
    current = this;
    switch_to(context_, host_);
    current = nullptr;
  }
  void yield(State why) {
    state = why;
    switch_to(host_, context_);
  }

  /// Fiber that runs on this host thread; null: none.
  static thread_local Fiber* current;

  State state = State::returned;
  unsigned thread = 0;     // number of the thread in its block
  std::int64_t wakes = 0;  // end of its sleep
  ThreadBlock* block = nullptr;

 private:
  static void begin();

  [[nodiscard]] void* stack() const { return static_cast<std::byte*>(memory_) + page_bytes; }

  void switch_to(ucontext_t& to, ucontext_t& from) {
    const bool leaves = &from == &context_;
#if defined(__SANITIZE_ADDRESS__)
    void* fake = nullptr;
    __sanitizer_start_switch_fiber(&fake, leaves ? host_stack_ : stack(), leaves ? host_bytes_ : stack_bytes);
#endif
#if defined(__SANITIZE_THREAD__)
    if (!leaves) {
      host_tsan_ = __tsan_get_current_fiber();
    }
    __tsan_switch_to_fiber(leaves ? host_tsan_ : tsan_, 0);
#endif
    jump(to, from, leaves);
#if defined(__SANITIZE_ADDRESS__)
    if (leaves) {
      __sanitizer_finish_switch_fiber(fake, &host_stack_, &host_bytes_);
    } else {
      __sanitizer_finish_switch_fiber(fake, nullptr, nullptr);
    }
#else
    static_cast<void>(leaves);
#endif
  }
  /// swapcontext() makes a system call for the signal mask, which never changes here, so it is used only to start a
  /// stack: later jumps take a tenth of its time. Sanitizers support only swapcontext().
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  static void jump(ucontext_t& to, ucontext_t& from, bool /*leaves*/) { ::swapcontext(&from, &to); }
#else
  void jump(ucontext_t& to, ucontext_t& from, bool leaves) {
    if (::_setjmp(leaves ? fiber_place_ : host_place_) != 0) {
      return;
    }
    if (!leaves && !has_begun_) {
      has_begun_ = true;
      ::swapcontext(&from, &to);  // returns by _longjmp() only
    }
    ::_longjmp(leaves ? host_place_ : fiber_place_, 1);
  }
#endif
  void arrive() {
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_finish_switch_fiber(nullptr, &host_stack_, &host_bytes_);
#endif
  }

  void* memory_;
  ucontext_t context_{};
  ucontext_t host_{};
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  jmp_buf fiber_place_{};
  jmp_buf host_place_{};
  bool has_begun_ = false;
#endif
  const std::function<void()>* body_ = nullptr;
#if defined(__SANITIZE_ADDRESS__)
  const void* host_stack_ = nullptr;
  std::size_t host_bytes_ = 0;
#endif
#if defined(__SANITIZE_THREAD__)
  void* tsan_ = nullptr;
  void* host_tsan_ = nullptr;
#endif
};

thread_local Fiber* Fiber::current = nullptr;

/// Assigns to the fiber the next thread of its block that has not begun; returns false if all have begun.
bool begin_next_thread(Fiber& fiber);

/// Runs threads of a block. Threads that return without a barrier run one after another without a switch.
void Fiber::begin() {
  Fiber& self = *current;
  self.arrive();
  for (;;) {
    do {
      (*self.body_)();
    } while (begin_next_thread(self));
    self.yield(State::returned);
  }
}

/// Idle fibers of this host thread.
class FiberPool {
 public:
  std::unique_ptr<Fiber> take() {
    if (free_.empty()) {
      return std::make_unique<Fiber>();
    }
    std::unique_ptr<Fiber> fiber = std::move(free_.back());
    free_.pop_back();
    return fiber;
  }
  void give_back(std::unique_ptr<Fiber> fiber) { free_.push_back(std::move(fiber)); }

 private:
  std::vector<std::unique_ptr<Fiber>> free_;
};

/// Shuffles with SplitMix64.
class Shuffle {
 public:
  explicit Shuffle(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next() {
    std::uint64_t z = state_ += 0x9e3779b97f4a7c15U;
    z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27U)) * 0x94d049bb133111ebU;
    return z ^ (z >> 31U);
  }
  template <class Elements>
  void operator()(Elements& elements) {
    for (std::size_t i = elements.size(); i > 1; --i) {
      // Multiplies, because a kernel has a hundred thousand threads to order and a division takes ten times as long.
      __extension__ using Wide = unsigned __int128;
      std::swap(elements[i - 1], elements[static_cast<std::size_t>(Wide{next()} * i >> 64U)]);
    }
  }

 private:
  std::uint64_t state_;
};

/// True if the kernel of this thread waits for the host, by the processor's clock.
thread_local bool waits_for_host = false;

bool uses_stated_clock() { return time_is_stated() && !waits_for_host; }

std::int64_t now_ns() {
  if (uses_stated_clock()) {
    return stated_now();
  }
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

/// A block that has begun.
class ThreadBlock {
 public:
  ThreadBlock(const char* name, const KernelShape& shape, uint3 index, Shuffle& shuffle, FiberPool& pool)
      : name_(name),
        shape_(shape),
        index_(index),
        shuffle_(shuffle),
        pool_(pool),
        shared_((shape.shared_bytes + sizeof(float4) - 1) / sizeof(float4)),
        exchanged_(std::size_t{shape.block.x} * shape.block.y * shape.block.z) {
    not_begun_.reserve(exchanged_.size());
    for (unsigned i = 0; i < exchanged_.size(); ++i) {
      not_begun_.push_back(i);
    }
    shuffle_(not_begun_);
  }

  /// Runs until all threads have returned, or until no thread can continue before a sleeping one wakes up. Returns
  /// whether all have returned.
  bool run(const std::function<void()>& body) {
    for (;;) {
      if (std::exchange(some_may_continue_, false)) {
        continue_threads(body);
      }
      if (!not_begun_.empty()) {
        begin(body);
      } else if (live_.empty()) {
        return true;
      } else if (!release()) {
        if (count(State::asleep) == 0) {
          misuse(std::string("threads of a block of the kernel '") + name_ +
                 "' wait for each other at different barriers");
        }
        return false;
      }
    }
  }

  /// Returns the time at which the first sleeping thread wakes up.
  [[nodiscard]] std::int64_t wakes() const {
    std::int64_t first = INT64_MAX;
    for (const auto& fiber : live_) {
      first = fiber->state == State::asleep ? std::min(first, fiber->wakes) : first;
    }
    return first;
  }

  bool begin_next_thread(Fiber& fiber) {
    if (not_begun_.empty()) {
      return false;
    }
    fiber.thread = not_begun_.back();
    not_begun_.pop_back();
    place(fiber.thread);
    return true;
  }

  [[nodiscard]] void* shared() { return shared_.data(); }
  std::uint64_t& exchanged(unsigned thread) { return exchanged_[thread]; }

 private:
  [[nodiscard]] std::size_t count(State state) const {
    return static_cast<std::size_t>(
        std::ranges::count_if(live_, [&](const auto& fiber) { return fiber->state == state; }));
  }

  void place(unsigned thread) const {
    threadIdx = shape_.block.y == 1 && shape_.block.z == 1
                    ? uint3{thread, 0, 0}
                    : uint3{thread % shape_.block.x, thread / shape_.block.x % shape_.block.y,
                            thread / (shape_.block.x * shape_.block.y)};
  }

  void run_one(Fiber& fiber, const std::function<void()>& body) {
    blockIdx = index_;
    blockDim = shape_.block;
    gridDim = shape_.grid;
    place(fiber.thread);
    fiber.state = State::ready;
    fiber.block = this;
    fiber.resume(body);
  }

  void begin(const std::function<void()>& body) {
    std::unique_ptr<Fiber> fiber = pool_.take();
    fiber->thread = not_begun_.back();
    not_begun_.pop_back();
    run_one(*fiber, body);
    keep(std::move(fiber));
  }

  void continue_threads(const std::function<void()>& body) {
    const std::int64_t now = count(State::asleep) > 0 ? now_ns() : 0;
    std::vector<std::unique_ptr<Fiber>> former = std::exchange(live_, {});
    live_.reserve(former.size());
    for (std::unique_ptr<Fiber>& fiber : former) {
      if (fiber->state == State::ready || (fiber->state == State::asleep && fiber->wakes <= now)) {
        run_one(*fiber, body);
      }
      keep(std::move(fiber));
    }
  }

  void keep(std::unique_ptr<Fiber> fiber) {
    if (fiber->state == State::returned) {
      pool_.give_back(std::move(fiber));
    } else {
      some_may_continue_ = some_may_continue_ || fiber->state == State::ready || fiber->state == State::asleep;
      live_.push_back(std::move(fiber));
    }
  }

  /// Releases threads from a barrier that all of them have reached. Returns whether a thread can run.
  bool release() {
    if (count(State::ready) > 0) {
      return true;
    }
    if (count(State::at_block_barrier) == live_.size()) {
      shuffle_(live_);
      std::ranges::for_each(live_, [](const auto& fiber) { fiber->state = State::ready; });
      some_may_continue_ = true;
      return true;
    }
    bool released = false;
    for (unsigned first = 0; first < exchanged_.size(); first += warp) {
      const auto in_warp = [&](const auto& fiber) { return fiber->thread / warp == first / warp; };
      const auto waits = [&](const auto& fiber) { return !in_warp(fiber) || fiber->state == State::at_warp_barrier; };
      if (std::ranges::any_of(live_, in_warp) && std::ranges::all_of(live_, waits)) {
        std::ranges::for_each(live_,
                              [&](const auto& fiber) { fiber->state = in_warp(fiber) ? State::ready : fiber->state; });
        released = true;
        some_may_continue_ = true;
      }
    }
    return released;
  }

  const char* name_;
  const KernelShape& shape_;
  uint3 index_;
  Shuffle& shuffle_;
  FiberPool& pool_;
  std::vector<unsigned> not_begun_;
  std::vector<std::unique_ptr<Fiber>> live_;
  /// True if a thread of live_ does not wait for a barrier. It is stored because a search whenever a thread begins
  /// would take longer than the kernel.
  bool some_may_continue_ = false;
  std::vector<float4> shared_;
  std::vector<std::uint64_t> exchanged_;  // values of exchanges within a warp
};

bool begin_next_thread(Fiber& fiber) { return fiber.block->begin_next_thread(fiber); }

Fiber& running() {
  check(Fiber::current != nullptr, "a function of device code is called outside a kernel");
  return *Fiber::current;
}

/// Returns the indices of all blocks.
std::vector<uint3> indices_of(const dim3& grid) {
  std::vector<uint3> indices;
  for (unsigned z = 0; z < grid.z; ++z) {
    for (unsigned y = 0; y < grid.y; ++y) {
      for (unsigned x = 0; x < grid.x; ++x) {
        indices.push_back({x, y, z});
      }
    }
  }
  return indices;
}

}  // namespace

void run_kernel(const char* name, const KernelShape& shape, const std::function<void()>& body, std::uint64_t seed) {
  thread_local FiberPool pool;
  waits_for_host = std::strcmp(name, gate_kernel) == 0;
  Shuffle shuffle(seed);
  std::vector<uint3> not_begun = indices_of(shape.grid);
  shuffle(not_begun);
  std::vector<std::unique_ptr<ThreadBlock>> begun;
  for (;;) {
    std::int64_t wakes = INT64_MAX;
    const std::size_t ended =
        std::erase_if(begun, [&](const std::unique_ptr<ThreadBlock>& block) { return block->run(body); });
    if (ended > 0) {
      beat();
    }
    for (const std::unique_ptr<ThreadBlock>& block : begun) {
      wakes = std::min(wakes, block->wakes());
    }
    if (!not_begun.empty()) {
      begun.push_back(std::make_unique<ThreadBlock>(name, shape, not_begun.back(), shuffle, pool));
      not_begun.pop_back();
    } else if (begun.empty()) {
      waits_for_host = false;
      return;
    } else if (uses_stated_clock()) {
      wait_for_stated(wakes);
    } else if (const std::int64_t remaining = wakes - now_ns(); remaining > 0) {
      std::this_thread::sleep_for(std::chrono::nanoseconds(std::min<std::int64_t>(remaining, 50'000)));
    }
  }
}

std::int64_t device_time() { return now_ns(); }

void sleep_until(std::int64_t time) {
  Fiber& fiber = running();
  fiber.wakes = time;
  fiber.yield(State::asleep);
}

void* dynamic_shared_memory() { return running().block->shared(); }

std::uint64_t exchange_in_warp(std::uint64_t bits, int mask) {
  Fiber& fiber = running();
  const unsigned other = fiber.thread ^ static_cast<unsigned>(mask);
  fiber.block->exchanged(fiber.thread) = bits;
  fiber.yield(State::at_warp_barrier);
  const std::uint64_t received = fiber.block->exchanged(other);
  fiber.yield(State::at_warp_barrier);
  return received;
}

}  // namespace software_gpu

void __syncthreads() { software_gpu::running().yield(software_gpu::State::at_block_barrier); }

void __nanosleep(unsigned nanoseconds) { software_gpu::sleep_until(software_gpu::now_ns() + nanoseconds); }
