// SPDX-License-Identifier: Apache-2.0
// The only source that includes MPI. Messages are sent and received by nonblocking calls, so that a lost process keeps
// no other process waiting.
#include "model/process/mpi_module.h"

#include <mpi.h>

#include <array>
#include <climits>
#include <cstdlib>
#include <deque>
#include <stdexcept>
#include <string>
#include <utility>

namespace commfuse {

namespace {

void require(int status, const char* call) {
  if (status != MPI_SUCCESS) {
    std::array<char, MPI_MAX_ERROR_STRING> text{};
    int length = 0;
    MPI_Error_string(status, text.data(), &length);
    throw std::runtime_error(std::string(call) + " failed: " + text.data());
  }
}

class MpiWorld final : public World {
 public:
  MpiWorld() {
    // Containers forbid processes from reading each other's memory, which Open MPI detects too late. A value that the
    // user has set is kept; other MPI libraries ignore the variable.
    ::setenv("OMPI_MCA_btl_vader_single_copy_mechanism", "none", 0);  // NOLINT(concurrency-mt-unsafe): before threads
    int provided = MPI_THREAD_SINGLE;
    require(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided), "MPI_Init_thread");
    require(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
    require(MPI_Comm_rank(MPI_COMM_WORLD, &process_), "MPI_Comm_rank");
    require(MPI_Comm_size(MPI_COMM_WORLD, &processes_), "MPI_Comm_size");
    incoming_.resize(static_cast<std::size_t>(processes_));
  }

  [[nodiscard]] int process() const override { return process_; }
  [[nodiscard]] int processes() const override { return processes_; }

  void send(int to, Payload bytes) override {
    const int count = count_of(bytes);
    outgoing_.push_back({.bytes = std::move(bytes)});
    Transfer& out = outgoing_.back();
    // NOLINTNEXTLINE(clang-analyzer-optin.mpi.MPI-Checker): drop_completed_sends() tests the request until it completes
    require(MPI_Isend(out.bytes.data(), count, MPI_BYTE, to, 0, MPI_COMM_WORLD, &out.request), "MPI_Isend");
    drop_completed_sends();
  }

  std::optional<Parcel> receive() override {
    start_receiving();
    drop_completed_sends();
    for (int from = 0; from < processes_; ++from) {
      std::deque<Transfer>& queue = incoming_[static_cast<std::size_t>(from)];
      if (!queue.empty() && is_complete(queue.front())) {
        Parcel parcel{from, std::move(queue.front().bytes)};
        queue.pop_front();
        return parcel;
      }
    }
    return std::nullopt;
  }

  [[nodiscard]] std::string library() const override {
    std::array<char, MPI_MAX_LIBRARY_VERSION_STRING> text{};
    int length = 0;
    require(MPI_Get_library_version(text.data(), &length), "MPI_Get_library_version");
    const std::string version(text.data());
    return version.substr(0, version.find_first_of(",\n"));
  }

  [[nodiscard]] std::string host() const override {
    std::array<char, MPI_MAX_PROCESSOR_NAME> text{};
    int length = 0;
    require(MPI_Get_processor_name(text.data(), &length), "MPI_Get_processor_name");
    return text.data();
  }

  void close() override {
    while (!outgoing_.empty()) {
      drop_completed_sends();
    }
    require(MPI_Finalize(), "MPI_Finalize");
  }

  [[noreturn]] void abort(int code) override {
    MPI_Abort(MPI_COMM_WORLD, code);
    std::_Exit(code);
  }

 private:
  struct Transfer {
    Payload bytes;
    MPI_Request request = MPI_REQUEST_NULL;
  };

  static int count_of(const Payload& bytes) {
    if (bytes.size() > INT_MAX) {
      throw std::runtime_error("a message between processes is larger than 2 GiB; choose a smaller seq or model");
    }
    return static_cast<int>(bytes.size());
  }

  static bool is_complete(Transfer& transfer) {
    int complete = 0;
    require(MPI_Test(&transfer.request, &complete, MPI_STATUS_IGNORE), "MPI_Test");
    return complete != 0;
  }

  /// Starts receiving every parcel that has arrived. A large parcel that is still on its way holds back the sender's
  /// later parcels.
  void start_receiving() {
    for (;;) {
      int has_message = 0;
      MPI_Message message = MPI_MESSAGE_NULL;
      MPI_Status status;
      require(MPI_Improbe(MPI_ANY_SOURCE, 0, MPI_COMM_WORLD, &has_message, &message, &status), "MPI_Improbe");
      if (has_message == 0) {
        return;
      }
      int count = 0;
      require(MPI_Get_count(&status, MPI_BYTE, &count), "MPI_Get_count");
      std::deque<Transfer>& queue = incoming_[static_cast<std::size_t>(status.MPI_SOURCE)];
      queue.push_back({.bytes = Payload(static_cast<std::size_t>(count))});
      require(MPI_Imrecv(queue.back().bytes.data(), count, MPI_BYTE, &message, &queue.back().request), "MPI_Imrecv");
    }
  }

  void drop_completed_sends() {
    while (!outgoing_.empty() && is_complete(outgoing_.front())) {
      outgoing_.pop_front();
    }
  }

  int process_ = 0;
  int processes_ = 1;
  std::deque<Transfer> outgoing_;  // in the order of sending; a deque, because its elements keep their addresses
  std::vector<std::deque<Transfer>> incoming_;  // by sender
};

}  // namespace

}  // namespace commfuse

/// The entry point that mpi_module_entry names; the caller owns the result.
extern "C" commfuse::World* commfuse_open_mpi_world_2() { return new commfuse::MpiWorld; }
