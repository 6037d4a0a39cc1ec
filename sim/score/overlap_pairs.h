// SPDX-License-Identifier: Apache-2.0
// Reads tables that compare a GEMM and serial communication with overlapped kernels for the same work: one row per
// shape, one column of times per implementation.
//
//   op             ag (all-gather, then GEMM), rs (GEMM, then reduce-scatter) or ar (GEMM, then all-reduce); without
//                  this column, the file name has one of these words
//   M, N, K        sizes of the whole GEMM; N_per_gpu and K_per_gpu are sizes per rank
//   ngpus or tp    number of ranks
//   serial_us, torch_us, nccl_us, ...   the serial baseline; columns of only GEMMs or only communication are skipped
//   flux_us, ...   an implementation, by its name or by a name in the `known_as` of its file
//
// Tables of experts have a grouped GEMM in place of the GEMM: M tokens, each of which passes through `topk` of
// `experts` experts of K x N. There are tp x ep ranks, and the experts are split over ep of them. Flux's own table
// states these numbers in `config` ("tp8ep1_e32_top4_M8192"), the operator in `moe_layer` (0: ag, 1: rs), and the
// widths in a comment ("K=N=8192").
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/config/implementation.h"
#include "model/workload/bare_mlp.h"
#include "sim/score/kinds.h"
#include "sim/score/machine_column.h"
#include "sim/score/row.h"
#include "sim/score/table.h"

namespace commfuse::score {

struct OverlapColumns {
  Column op, hw, m, n, n_of_rank, k, k_of_rank, ranks, dtype, serial;
  struct Implemented {
    Column time;
    std::shared_ptr<const Implementation> implementation;  ///< Null if no file describes it.
  };
  std::vector<Implemented> implemented;
  Column experts, topk, ep;        ///< Columns of a table of experts.
  Column config, layer;            ///< Columns of Flux's own table; `config` is read only beside `layer`.
  std::int64_t width = 0;          ///< K and N of Flux's own table; 0: not stated.
  Column unscored_serial;          ///< Serial times that no schedule predicts.
  bool scatters = false;           ///< GEMM, then reduce-scatter; used if the table has no column `op`.
  bool reduces_all = false;        ///< GEMM, then all-reduce; used if the table has no column `op`.
  bool says_operator = false;      ///< The table or its file name states the operator.
  DType usual = DType::bf16;       ///< Used for rows without a dtype.
  int other_serials = 0;           ///< Number of additional columns of serial times, which are not read.
  Launch launch = Launch::stream;  ///< Follows the table's comments: "eager", "CUDA graph".
};

/// Every implementation in configs/implementations.
using KnownImplementations = std::vector<std::shared_ptr<const Implementation>>;

/// `file_name` must be the file name of the table without extension.
OverlapColumns overlap_columns(const Table& table, std::string_view file_name, const KnownImplementations& known);

/// Returns the source of a table, such as "bytedance/flux/issues/90" or "infinigence/FlashOverlap"; without a comment
/// `# source:`, the file name. Held-out fits exclude all tables of one source.
std::string thread_of(const Table& table, std::string_view file_name);

/// Finds the machine on which a row was measured. The `known_as` of a hardware file may name a source of tables.
class OverlapMachines {
 public:
  OverlapMachines(const Table& table, std::string_view file_name, KnownMachines& machines);
  [[nodiscard]] FoundMachine of(std::string_view hw) const;

 private:
  mutable MachineColumn by_cell_;
  FoundMachine of_table_;
};

/// A row of the table: one shape and its times.
struct OverlapRow {
  bool scatters = false;
  bool reduces_all = false;  ///< GEMM, then all-reduce.
  std::int64_t m = 0, n = 0, k = 0;
  std::int32_t ranks = 1;
  std::optional<BareExperts> experts;
  DType dtype = DType::bf16;
  std::optional<double> serial_us;
  std::vector<std::pair<std::size_t, double>> implemented;  ///< Index into the columns' implementations, and the time.
};

OverlapRow overlap_row(Row& row, const OverlapColumns& columns);

/// Returns the point of a row on a machine: an MLP without a gate, or a mixture of experts, with the scope of the row's
/// GEMM.
Point point_of(const OverlapRow& row, const Machine& machine, Launch launch);

/// Returns the command that simulates the point: "commfuse-sim run --model 8192x28672 --scope down --ranks 8 ...".
std::string command_of(const Point& point, std::string_view implementation);

}  // namespace commfuse::score
