// SPDX-License-Identifier: Apache-2.0
// Processes that are threads of a test and send each other messages without MPI.
#pragma once

#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "model/process/world.h"

namespace commfuse::validate::test {

/// Messages in flight, by receiver.
struct Mail {
  explicit Mail(int processes) : boxes(static_cast<std::size_t>(processes)) {}
  std::mutex mutex;
  std::vector<std::deque<Parcel>> boxes;
};

class ThreadsWorld final : public World {
 public:
  ThreadsWorld(Mail& mail, int process) : mail_(mail), process_(process) {}
  [[nodiscard]] int process() const override { return process_; }
  [[nodiscard]] int processes() const override { return static_cast<int>(mail_.boxes.size()); }
  void send(int to, Payload bytes) override {
    const std::lock_guard lock(mail_.mutex);
    mail_.boxes[static_cast<std::size_t>(to)].push_back({process_, std::move(bytes)});
  }
  std::optional<Parcel> receive() override {
    const std::lock_guard lock(mail_.mutex);
    std::deque<Parcel>& box = mail_.boxes[static_cast<std::size_t>(process_)];
    if (box.empty()) {
      return std::nullopt;
    }
    Parcel parcel = std::move(box.front());
    box.pop_front();
    return parcel;
  }
  [[nodiscard]] std::string library() const override { return "threads"; }
  [[nodiscard]] std::string host() const override { return "here"; }
  void close() override {}
  [[noreturn]] void abort(int /*code*/) override { std::terminate(); }

 private:
  Mail& mail_;
  int process_;
};

/// Calls `work` on `count` processes simultaneously. Returns for each process the message of the exception that it
/// threw; empty if it threw none.
inline std::vector<std::string> on_processes(int count, const std::function<void(World&)>& work) {
  Mail mail(count);
  std::vector<std::string> thrown(static_cast<std::size_t>(count));
  std::vector<std::jthread> threads;
  threads.reserve(thrown.size());
  for (int process = 0; process < count; ++process) {
    threads.emplace_back([&, process] {
      ThreadsWorld world(mail, process);
      try {
        work(world);
      } catch (const std::exception& error) {
        thrown[static_cast<std::size_t>(process)] = error.what();
      }
    });
  }
  threads.clear();
  return thrown;
}

}  // namespace commfuse::validate::test
