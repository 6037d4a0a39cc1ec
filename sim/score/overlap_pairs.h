// SPDX-License-Identifier: Apache-2.0
// Tables that set serial communication and one GEMM against the same work by overlapped kernels: one row a shape, one
// column of times an implementation.
//
//   op             ag (all-gather, then GEMM) or rs (GEMM, then reduce-scatter); without it the file's name says so
//   M, N, K        sizes of the whole product; N_per_gpu and K_per_gpu are a rank's
//   ngpus or tp    ranks
//   serial_us, torch_us, nccl_us, ...   the serial baseline; columns of GEMMs or communication alone are passed over
//   flux_us, ...   an implementation by its name, or by what its file says it is known as
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/config/implementation.h"
#include "sim/score/kinds.h"
#include "sim/score/machine_column.h"
#include "sim/score/row.h"
#include "sim/score/table.h"

namespace commfuse::score {

struct OverlapColumns {
  Column op, hw, m, n, n_of_rank, k, k_of_rank, ranks, dtype, serial;
  struct Implemented {
    Column time;
    std::shared_ptr<const Implementation> implementation;  ///< Null: nobody described it.
  };
  std::vector<Implemented> implemented;
  bool scatters = false;       ///< Where no column says it.
  bool says_operator = false;  ///< Whether the table or its name tells what it does.
  DType usual = DType::bf16;
  int other_serials = 0;  ///< Columns of serial times behind the first one, which are not read.
  bool is_eager = false;  ///< Issued op by op from Python, as the comments say.
};

/// Every implementation of configs/implementations.
using KnownImplementations = std::vector<std::shared_ptr<const Implementation>>;

/// `file_name` is the table's, without its ending.
OverlapColumns overlap_columns(const Table& table, std::string_view file_name, const KnownImplementations& known);

/// Where a table is from, as fits are kept apart: "bytedance/flux/issues/90", "infinigence/FlashOverlap".
std::string thread_of(const Table& table);

/// Which machine a row was measured on. A file's `known_as` may name a source whose machines it describes.
class OverlapMachines {
 public:
  OverlapMachines(const Table& table, std::string_view file_name, KnownMachines& machines);
  [[nodiscard]] FoundMachine of(std::string_view hw) const;

 private:
  mutable MachineColumn by_cell_;
  FoundMachine of_table_;
};

/// One shape and its point without a machine.
struct OverlapRow {
  bool scatters = false;
  bool reduces_all = false;  ///< GEMM before an all-reduce, which no scope is.
  std::int64_t m = 0, n = 0, k = 0;
  std::int32_t ranks = 1;
  DType dtype = DType::bf16;
  std::optional<double> serial_us;
  std::vector<std::pair<std::size_t, double>> implemented;  ///< Place among the columns' implementations, and its time.
};

OverlapRow overlap_row(Row& row, const OverlapColumns& columns);

/// The point of a row on a machine: one product of a model that has nothing else.
Point point_of(const OverlapRow& row, const Machine& machine);

/// Whether eager Python takes longer to issue the row's serial work than GPUs to do it: nothing that is known of GPUs
/// says how long it takes. Decided by what is predicted.
bool is_host_bound(const OverlapRow& row, const Machine& machine, Predictor& predictor);

/// The command that runs the row again: "commfuse-sim run --model 8192x28672 --scope down --ranks 8 ...".
std::string command_of(const OverlapRow& row, const Machine& machine, std::string_view implementation);

}  // namespace commfuse::score
