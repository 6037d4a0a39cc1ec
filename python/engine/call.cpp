// SPDX-License-Identifier: Apache-2.0
#include "python/engine/call.h"

#include <CLI/CLI.hpp>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <optional>
#include <thread>

#include "model/config/command_line.h"
#include "model/text/plain_text.h"
#include "python/engine/keywords.h"
#include "sim/parallel/run_points.h"

namespace commfuse::python {

namespace py = pybind11;

namespace {

/// Keeps the answer and the remarks of a command, and passes its progress to Python.
class Listener : public sim::Caller {
 public:
  Listener(const py::object& write, bool shows_bars) : write_(write), shows_bars_(shows_bars) {}

  void take(const sim::Answer& answer) override {
    called_.answer = answer;
    called_.has_answer = true;
    called_.code = answer.code;
    called_.notes += answer.notes;
  }
  void note(const std::string& lines) override { called_.notes += lines; }
  void progress(const std::string& text) override {
    const py::gil_scoped_acquire lock;
    try {
      write_(text);
    } catch (py::error_already_set& error) {
      error.discard_as_unraisable("commfuse progress");  // a closed stream does not stop a sweep
    }
  }
  [[nodiscard]] bool shows_bars() const override { return shows_bars_; }
  const std::atomic<bool>& stop() override { return stop_; }
  const std::atomic<bool>* cancel() override { return &stop_; }

  void set_stop() { stop_ = true; }
  [[nodiscard]] Called& called() { return called_; }

 private:
  const py::object& write_;
  bool shows_bars_;
  std::atomic<bool> stop_{false};
  Called called_;
};

/// Parses and runs a command as the program does.
void run(const std::string& name, const std::vector<std::string>& words, Listener& listener) {
  CLI::App program("", "commfuse-sim");
  program.require_subcommand(1);
  add_commands(program, listener);
  std::vector<const char*> pointers{"commfuse-sim", name.c_str()};
  for (const std::string& word : words) {
    pointers.push_back(word.c_str());
  }
  Called& called = listener.called();
  try {
    const LastWords last = run_quietly(program, static_cast<int>(pointers.size()), pointers.data(), called.code);
    called.code = last.code;
    called.help = last.help;
    called.sentence = with_escapes(last.sentence, "\t\n");
  } catch (const Interrupted&) {  // The exception that Python raised states the reason.
    called.answer.is_interrupted = true;
  }
}

/// Waits for a thread and checks for signals while it waits.
class Watch {
 public:
  void finish() {
    const std::lock_guard lock(mutex_);
    is_done_ = true;
    done_.notify_all();
  }
  /// Returns the exception that a signal handler raised, if any. Requires the interpreter's lock, and releases it while
  /// it waits.
  std::optional<py::error_already_set> wait(Listener& listener) {
    constexpr std::chrono::milliseconds pause{50};
    std::optional<py::error_already_set> raised;
    for (bool is_over = false; !is_over;) {
      {
        const py::gil_scoped_release unlocked;
        std::unique_lock lock(mutex_);
        is_over = done_.wait_for(lock, pause, [&] { return is_done_; });
      }
      if (PyErr_CheckSignals() == 0) {
        continue;
      }
      listener.set_stop();
      if (raised) {
        PyErr_Clear();  // The caller throws the first exception.
      } else {
        raised.emplace();
      }
    }
    return raised;
  }

 private:
  std::mutex mutex_;
  std::condition_variable done_;
  bool is_done_ = false;
};

}  // namespace

Called call(const std::string& name, const std::vector<std::string>& words, const py::object& write, bool shows_bars) {
  Listener listener(write, shows_bars);
  Watch watch;
  std::exception_ptr failure;
  std::thread worker([&] {
    try {
      run(name, words, listener);
    } catch (...) {
      failure = std::current_exception();
    }
    watch.finish();
  });
  const std::optional<py::error_already_set> raised = watch.wait(listener);
  worker.join();
  if (raised) {
    throw py::error_already_set(*raised);
  }
  if (failure) {
    std::rethrow_exception(failure);
  }
  return std::move(listener.called());
}

}  // namespace commfuse::python
