// SPDX-License-Identifier: Apache-2.0
// The caller for the program itself: answers go to stdout, remarks and progress to stderr.
#pragma once

#include "sim/commands/answer.h"

namespace commfuse::sim {

class Terminal : public Caller {
 public:
  /// take() stores the exit code of the command in `status`, which must outlive this object.
  explicit Terminal(int& status) : status_(status) {}

  void take(const Answer& answer) override;
  void note(const std::string& lines) override;
  void progress(const std::string& text) override;
  [[nodiscard]] bool shows_bars() const override;
  /// From this call on, the first SIGINT or SIGTERM sets the flag. A second signal of the same kind ends the program
  /// immediately.
  const std::atomic<bool>& stop() override;

 private:
  int& status_;
};

}  // namespace commfuse::sim
