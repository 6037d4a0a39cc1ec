// SPDX-License-Identifier: Apache-2.0
// Reads tables that compare serial communication and one GEMM with the same work by overlapped kernels: one row per
// shape, one column of times per implementation.
//
//   op             ag (all-gather, then GEMM) or rs (GEMM, then reduce-scatter); without it the file's name says so
//   M, N, K        sizes of the whole GEMM; N_per_gpu and K_per_gpu are a rank's
//   ngpus or tp    ranks
//   serial_us, torch_us, nccl_us, ...   the serial baseline; columns of GEMMs or communication alone are skipped
//   flux_us, ...   an implementation by its name, or by the names in its file's `known_as`
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
    std::shared_ptr<const Implementation> implementation;  ///< Null: no file describes it.
  };
  std::vector<Implemented> implemented;
  bool scatters = false;       ///< Used where no column says it.
  bool says_operator = false;  ///< The table or its name tells the operator.
  DType usual = DType::bf16;
  int other_serials = 0;  ///< Further columns of serial times, which are not read.
  bool is_eager = false;  ///< Issued op by op from Python, according to the comments.
};

/// Every implementation in configs/implementations.
using KnownImplementations = std::vector<std::shared_ptr<const Implementation>>;

/// `file_name` is the table's, without its ending.
OverlapColumns overlap_columns(const Table& table, std::string_view file_name, const KnownImplementations& known);

/// Returns the source of a table, by which fits are kept apart: "bytedance/flux/issues/90", "infinigence/FlashOverlap".
std::string thread_of(const Table& table);

/// Finds the machine that a row was measured on. A file's `known_as` may name a source whose machines it describes.
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
  bool reduces_all = false;  ///< GEMM before an all-reduce, which is not a scope.
  std::int64_t m = 0, n = 0, k = 0;
  std::int32_t ranks = 1;
  DType dtype = DType::bf16;
  std::optional<double> serial_us;
  std::vector<std::pair<std::size_t, double>> implemented;  ///< Index into the columns' implementations, and the time.
};

OverlapRow overlap_row(Row& row, const OverlapColumns& columns);

/// Returns the point of a row on a machine: a model with a single GEMM.
Point point_of(const OverlapRow& row, const Machine& machine);

/// Returns whether eager Python takes longer to issue the row's serial work than the GPUs to do it: then the time does
/// not depend on known properties of GPUs. Decided by the prediction.
bool is_host_bound(const OverlapRow& row, const Machine& machine, Predictor& predictor);

/// Returns the command that runs the row again: "commfuse-sim run --model 8192x28672 --scope down --ranks 8 ...".
std::string command_of(const OverlapRow& row, const Machine& machine, std::string_view implementation);

}  // namespace commfuse::score
