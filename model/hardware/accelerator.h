// SPDX-License-Identifier: Apache-2.0
// One accelerator: what it can do at most, and what a kernel on it costs beside that.
#pragma once

#include <array>
#include <optional>
#include <string>

#include "model/dtype.h"
#include "model/hardware/fit_scope.h"
#include "model/hardware/parameter.h"
#include "model/units.h"

namespace commfuse {

/// How matrix products of one dtype fall short of the dense peak; model/cost/gemm.h says how each enters. Those from
/// `tile_256x128` on may be left out of a hardware file: their defaults mean that nobody has looked.
struct GemmParameters {
  /// Share of an SM's peak inside the k loop of a tile of 128 x 128. Above 1 where clocks rise over the data sheet's.
  Parameter<double> loop_efficiency;
  Parameter<double> hbm_efficiency;     ///< Share of the HBM bandwidth at which weights stream in, in (0, 1].
  Parameter<double> cached_input_cost;  ///< Time of an m x k byte that L2 still holds, relative to a weight byte.
  Parameter<double> output_cost;        ///< Time of an m x n byte, relative to a weight byte.
  Parameter<Duration> ramp;             ///< Filling and draining the pipeline, once a product.
  Parameter<Duration> wave_overhead;  ///< Epilogue of a tile of 128 x 128, once a wave; it grows with the tile's cells.
  Parameter<Duration> split_overhead;  ///< Joining the partial products when the k loop is split over SMs.

  /// Speed of other tiles in the k loop, relative to 128 x 128 (and 192 x 128, 128 x 192).
  Parameter<double> tile_256x128{1.0};  ///< And 128 x 256.
  Parameter<double> tile_64x256{1.0};
  Parameter<double> tile_128x64{1.0};  ///< And 64 x 128.
  Parameter<double> tile_64x64{1.0};
  Parameter<double> wave_quantum{1.0};  ///< 1: a wave that is partly full takes as long as a full one; 0: its share.
  Parameter<double> unhidden{0.4};      ///< How much of HBM traffic or loops, the lesser, shows beside the greater.
  Parameter<double> join_cost{1.0};     ///< Time of a byte of partial products, relative to a weight byte.

  /// What power allows the whole chip in a short product, as a share of the dense peak (0: no limit), and what is left
  /// of that in one that lasts.
  Parameter<double> burst_efficiency{0.0};
  Parameter<double> sustained_share{1.0};
  Parameter<Duration> burst_time{Duration{1'000'000'000}};  ///< A product this long at the peak is half way between.

  /// Passes over the m x k input at HBM speed before the product, to convert it into this dtype.
  Parameter<double> conversion_passes{0.0};

  /// Weights that a benchmark uses again before others have filled this share of the L2 are still there (0: nobody has
  /// looked, they never are), and a byte of them takes so much of a weight byte's time.
  Parameter<double> resident_share{0.0};
  Parameter<double> cached_weight_cost{1.0};
};

/// How a fused attention kernel falls short; model/cost/attention.h says how each enters. A hardware file may leave all
/// of it out: the defaults are judgement.
struct AttentionParameters {
  Parameter<Duration> overhead{Duration{5'000'000}};  ///< Once a call, with what frameworks do around the kernel.
  Parameter<double> loop_efficiency{0.7};             ///< Share of the dense peak in both products of a tile.
  Parameter<FlopsPerSecond> exponentials{FlopsPerSecond{0.0}};  ///< Of the whole chip, beside the products; 0: free.
  Parameter<double> masked_width{128.0};                   ///< Keys behind the diagonal that a causal query pays for.
  Parameter<Duration> tile_overhead{Duration{2'000'000}};  ///< Of a tile of 128 queries of a head, once a wave.
  Parameter<double> query_cost{1.0};  ///< Time of a byte of the queries and the output, relative to the HBM bandwidth.
  Parameter<double> key_cost{1.5};    ///< The same of keys and values, which are also written to their cache.
  Parameter<double> imbalance{0.6};   ///< Share of the longest tile's time for which SMs idle at the end.

  /// These may be left out of a hardware file: nobody has looked.
  Parameter<double> narrow_overhead{1.0};  ///< Both overheads of heads no wider than 64, relative to wider ones.
  Parameter<double> lone_tile{1.0};        ///< Time of a tile that has an SM to itself, relative to one among many.
  /// Above 0: the kernel is FlashAttention-3's, whose tiles hold all heads that share keys, and which splits the keys
  /// where a sequence has few tiles. Then a score takes so much longer than one of keys in one piece.
  Parameter<double> split_cost{0.0};
  Parameter<double> unsplit_keys{512.0};  ///< So many are never split: four of its blocks.
};

/// Memory-bound kernels between the products of a serving framework, by their own time on the device: no launch, and
/// no gap to the kernel before. model/cost/framework_kernel.h says how each enters; `efficiency` is a share of the HBM
/// bandwidth, in (0, 1], and `step` what a thread block takes for 1024 elements of its row.
struct FrameworkKernels {
  Parameter<Duration> floor;         ///< Of every one.
  Parameter<double> sum_efficiency;  ///< Of two tensors.
  Parameter<double> cached_saving;   ///< Share of its time that a sum saves on bytes which the L2 still holds.
  Parameter<double> norm_efficiency;
  Parameter<Duration> norm_step;
  Parameter<double> activation_efficiency;
  Parameter<Duration> activation_step;
  Parameter<double> rotation_efficiency;  ///< Rotary position embedding of queries and keys.
  Parameter<Duration> rotation_step;
};

/// The matrix units of an accelerator for one dtype.
struct MatrixUnit {
  Parameter<FlopsPerSecond> dense_peak;
  GemmParameters gemm;
  FitScope fit;
};

/// Valid for ever after `load_machine`: counts and rates are positive, efficiencies lie in (0, 1].
struct Accelerator {
  std::string name;
  int sms = 0;  ///< Streaming multiprocessors (AI cores on other makes).
  Parameter<BytesPerSecond> hbm_bandwidth;
  Bytes hbm_capacity;
  Bytes l2_capacity;
  Parameter<double> memory_bound_efficiency;  ///< Share of the HBM bandwidth adds, packs and norms reach, in (0, 1].
  Parameter<BytesPerSecond> sm_bandwidth;     ///< HBM bytes a second that one SM alone can move.
  Parameter<Duration> kernel_floor;           ///< Shortest time of any kernel on the device, launch not counted.
  Parameter<Duration> launch_cost;            ///< Host lane: issuing one kernel.
  Parameter<Duration> event_cost;             ///< Host lane: one event record with its stream wait.
  Parameter<Duration> graph_launch_cost;      ///< Host lane: launching a whole captured graph, once.
  /// Device: wait between two dependent nodes of a graph, beyond what kernel_floor includes.
  Parameter<Duration> graph_node_gap;
  /// Device: wait before a GEMM or memory-bound kernel that comes from a stream, beyond what kernel_floor includes. A
  /// hardware file may omit it: 0.
  Parameter<Duration> stream_gap;
  AttentionParameters attention;
  FitScope attention_fit;
  std::optional<FrameworkKernels> framework_kernels;  ///< Where somebody measured them.
  std::array<std::optional<MatrixUnit>, all_dtypes.size()> matrix_units;

  bool supports(DType dtype) const { return matrix_units[index_of(dtype)].has_value(); }
  /// Aborts unless supports(dtype); `require_supported` is the check for a user's choice.
  const MatrixUnit& matrix_unit(DType dtype) const;
  /// Aborts unless supports(dtype).
  FlopsPerSecond dense_peak(DType dtype) const { return matrix_unit(dtype).dense_peak.value; }
};

/// Throws ConfigError naming the dtypes there are, unless the accelerator supports this one.
void require_supported(const Accelerator& accelerator, DType dtype);

}  // namespace commfuse
