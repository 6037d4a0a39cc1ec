// SPDX-License-Identifier: Apache-2.0
// One accelerator: its peak rates, and the costs of a kernel beyond them.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string>

#include "model/dtype.h"
#include "model/hardware/fit_scope.h"
#include "model/hardware/heap_optional.h"
#include "model/hardware/kernel_choice.h"
#include "model/hardware/parameter.h"
#include "model/units.h"

namespace commfuse {

/// Parameters that describe how GEMMs of one dtype fall short of the dense peak; model/cost/gemm.h gives the formula. A
/// hardware file may omit the parameters from `tile_256x128` on: their defaults mean that nothing was measured.
struct GemmParameters {
  /// Share of an SM's peak inside the k loop of a tile of 128 x 128. Above 1 if clocks rise above those of the data
  /// sheet.
  Parameter<double> loop_efficiency;
  Parameter<double> hbm_efficiency;  ///< Share of the HBM bandwidth at which weights stream in, in (0, 1].
  /// Time per byte of the m x k input that L2 still holds, relative to a byte of weights.
  Parameter<double> cached_input_cost;
  Parameter<double> output_cost;       ///< Time per byte of the m x n output, relative to a byte of weights.
  Parameter<Duration> ramp;            ///< Filling and draining the pipeline, once per GEMM.
  Parameter<Duration> wave_overhead;   ///< Epilogue of a tile of 128 x 128, once per wave; grows with the tile's cells.
  Parameter<Duration> split_overhead;  ///< Joining the partial results if the k loop is split over SMs.

  /// Speed of other tiles in the k loop, relative to 128 x 128 (and 192 x 128, 128 x 192).
  Parameter<double> tile_256x128{1.0};  ///< Also 128 x 256.
  Parameter<double> tile_64x256{1.0};
  Parameter<double> tile_128x64{1.0};  ///< Also 64 x 128.
  Parameter<double> tile_64x64{1.0};
  Parameter<double> wave_quantum{1.0};  ///< 1: a partly full wave takes as long as a full one; 0: only its share.
  /// The lesser of HBM time and compute time adds unhidden x lesser^2 / greater to the greater.
  Parameter<double> unhidden{0.4};
  Parameter<double> join_cost{1.0};  ///< Time per byte of partial results, relative to a byte of weights.

  /// Share of the dense peak that the power limit allows the whole chip in a short GEMM (0: no limit), and the part of
  /// this share that remains in a long GEMM.
  Parameter<double> burst_efficiency{0.0};
  Parameter<double> sustained_share{1.0};
  Parameter<Duration> burst_time{Duration{1'000'000'000}};  ///< A GEMM that takes this long at the peak runs halfway
                                                            ///< between the burst and the sustained share.

  /// Passes over the m x k input at HBM speed before the GEMM, to convert the input into this dtype.
  Parameter<double> conversion_passes{0.0};
  Parameter<double> cached_conversion_cost{
      1.0};  ///< Time to convert a byte that L2 holds, relative to a byte from HBM.

  /// Weights that a benchmark reuses stay in L2 if they fit, with input and output, into this share of it (0: not
  /// measured, no weights stay). `cached_weight_cost` is the time per byte of these weights relative to a byte of
  /// weights from HBM.
  Parameter<double> resident_share{0.0};
  Parameter<double> cached_weight_cost{1.0};

  /// Share of the L2 in which an output stays, if it and the inputs fit there (0: not measured, outputs go to HBM), and
  /// the time of a byte that stays, relative to a byte of weights.
  Parameter<double> resident_output_share{0.0};
  Parameter<double> cached_output_cost{1.0};

  /// Rate of operands from the L2 to all SMs, relative to the rate that tiles of 256 x 128 need at the dense peak. 0:
  /// not measured, operands never limit a tile.
  Parameter<double> operand_feed{0.0};
};

/// Parameters that describe how a fused attention kernel falls short; model/cost/attention.h gives the formula. A
/// hardware file may omit the whole map: the defaults are assumed.
struct AttentionParameters {
  Parameter<Duration> overhead{
      Duration{5'000'000}};                ///< Time per call, including the work of frameworks around the kernel.
  Parameter<double> loop_efficiency{0.7};  ///< Share of the dense peak in both GEMMs of a tile.
  Parameter<FlopsPerSecond> exponentials{
      FlopsPerSecond{0.0}};  ///< Rate of exponentials of the whole chip, in parallel with the GEMMs; 0: free.
  Parameter<double> masked_width{128.0};  ///< A causal query pays for half of this many keys beyond the diagonal.
  Parameter<Duration> tile_overhead{Duration{2'000'000}};  ///< Time per tile of 128 queries of a head, once per wave.
  Parameter<double> query_cost{1.0};  ///< Time per byte of the queries and the output, relative to the HBM bandwidth.
  Parameter<double> key_cost{1.5};    ///< Time per byte of keys and values, which are also written to their cache.
  Parameter<double> imbalance{0.6};   ///< Share of the longest tile's time for which SMs idle at the end.

  /// A file that has the map may omit the following parameters; their defaults mean that nothing was measured.
  Parameter<double> narrow_overhead{1.0};  ///< Factor on both overheads for heads no wider than 64.
  Parameter<double> lone_tile{1.0};        ///< Time of a tile that has an SM to itself, relative to a tile among many.
  /// Above 0 for the kernel of FlashAttention-3, whose tiles hold all heads that share keys, and which splits the keys
  /// if a sequence has few tiles. The value is the time per score with split keys, relative to unsplit keys.
  Parameter<double> split_cost{0.0};
  Parameter<double> unsplit_keys{512.0};  ///< Longest sequence whose keys are never split: four blocks of that kernel.
};

/// Decode attention: one query per head and sequence. model/cost/decode_attention.h gives the formula. Blocks of a
/// packed kernel process all heads that share keys, blocks of an unpacked one a single head. Without unpacked kernels
/// (unpacked_block 0), the packed kernel runs for any number of heads.
struct DecodeAttention {
  Parameter<Duration> call;             ///< Fixed time per call.
  Parameter<Duration> packed_start;     ///< Shortest time of the packed kernel, after `call`.
  Parameter<Duration> packed_block;     ///< SM time per block.
  Parameter<Duration> packed_head;      ///< SM time per query head of a block.
  Parameter<Duration> packed_keys;      ///< Time for a block to read 256 keys; grows with the square root of the keys.
  Parameter<double> hbm_efficiency;     ///< Share of the HBM bandwidth for keys, values, queries and output.
  Parameter<Duration> memory_ramp;      ///< Added time when keys fill the L2; proportionally less for fewer keys.
  Parameter<double> most_parts;         ///< Maximum number of blocks across which the keys of one head are split.
  Parameter<double> narrow_time{1.0};   ///< Times for heads up to 64 wide, relative to wider heads; excludes traffic.
  Parameter<double> most_packed{32.0};  ///< Maximum number of heads in a packed block.
  Parameter<Duration> unpacked_start;   ///< Like `packed_start`; the next two: like `packed_block` and `packed_keys`.
  Parameter<Duration> unpacked_block;
  Parameter<Duration> unpacked_keys;
  Parameter<FlopsPerSecond> vector_rate;  ///< FLOP rate of the unpacked kernel, which uses no matrix unit; 0: no limit.
  FitScope fit{};
};

/// Decode attention over the narrow keys of latent attention, which all heads share. model/cost/latent_decode.h gives
/// the formula. A block processes up to 64 heads.
struct LatentDecodeKernel {
  Parameter<Duration> call;           ///< Fixed time per call.
  Parameter<Duration> start;          ///< Shortest time after `call`.
  Parameter<Duration> block;          ///< SM time per block.
  Parameter<Duration> head;           ///< SM time per head.
  Parameter<Duration> keys;           ///< Time for a block to read 256 keys.
  Parameter<double> hbm_efficiency;   ///< Share of the HBM bandwidth for keys, queries and output.
  Parameter<Duration> memory_ramp;    ///< Added time when keys fill the L2; proportionally less for fewer keys.
  Parameter<double> most_parts;       ///< Maximum number of blocks across which the keys of a sequence are split.
  Parameter<double> loop_efficiency;  ///< Share of the dense peak in the GEMMs of scores and values.
  Parameter<double> join_cost;        ///< Time per byte of partial outputs, relative to the HBM bandwidth.
  /// Above 0 for kernels with blocks of 16 heads for up to 32 heads: share of the keys that each additional block of a
  /// sequence reads from the HBM again.
  Parameter<double> reread{0.0};
  FitScope fit{};
};

/// Routed-expert layer, as one call of a serving framework. model/cost/expert_layer.h gives the formula.
struct ExpertLayer {
  Parameter<Duration> call;            ///< Time per call: routing, sorting and the launch of all kernels.
  Parameter<Duration> expert;          ///< Time per expert with at least one token.
  Parameter<Duration> choices;         ///< Time per 1,024 pairs of a token and one of its experts, on any GPU.
  Parameter<double> token_traffic;     ///< Number of times that every token is read and written, at HBM bandwidth.
  Parameter<double> hbm_efficiency;    ///< Share of the HBM bandwidth for weights.
  Parameter<double> sm_loads;          ///< Rate at which an SM loads an expert's columns, relative to `sm_bandwidth`.
  Parameter<double> row_traffic;       ///< Number of times that the rows of both GEMMs are moved, at HBM bandwidth.
  Parameter<double> matrix_share;      ///< Share of the dense peak that tiles of full length reach.
  Parameter<double> loop_start;        ///< Start and end of a tile, as extra elements of the inner extent (k).
  Parameter<double> uneven_time{1.0};  ///< Compute with uneven loads, relative to balanced loads.
  FitScope fit{};
};

/// Conversion of 16-bit activations to fp8 with one scale per tensor: the conversion, and the search for the scale
/// (`scale_`). model/cost/quantization.h gives the formula.
struct Quantization {
  Parameter<Duration> call;            ///< Fixed time per conversion.
  Parameter<Duration> start;           ///< Shortest time of a conversion, in addition to `call`.
  Parameter<double> hbm_efficiency;    ///< Share of the HBM bandwidth for bytes that the L2 does not hold.
  Parameter<double> cached_cost;       ///< Time of a byte that the L2 holds, relative to one that it does not hold.
  Parameter<Duration> block;           ///< Time of an SM per block of 2,048 elements.
  Parameter<double> resident_share;    ///< Share of the L2 in which input and output stay from call to call.
  Parameter<Duration> scale_call;      ///< Time per tensor: clearing the scale, and a second kernel.
  Parameter<Duration> scale_join;      ///< Joining the greatest values of 1,024 blocks.
  Parameter<double> scale_efficiency;  ///< Like `hbm_efficiency`; the next is like `cached_cost`.
  Parameter<double> scale_cached_cost;
  FitScope fit{};
};

/// Memory-bound kernels between the GEMMs of a serving framework. Their times are device times, without launch and
/// without the gap after the preceding kernel. model/cost/framework_kernel.h gives the formula; `efficiency` is a share
/// of the HBM bandwidth, in (0, 1], and `step` the time that a thread block takes for 1,024 elements of its row.
struct FrameworkKernels {
  Parameter<Duration> floor;         ///< Time added to each of these kernels.
  Parameter<double> sum_efficiency;  ///< Sum of two tensors.
  Parameter<double> cached_saving;   ///< Share of a byte's time that a sum saves if the L2 still holds the byte.
  Parameter<double> norm_efficiency;
  Parameter<Duration> norm_step;
  Parameter<double> activation_efficiency;
  Parameter<Duration> activation_step;
  Parameter<double> rotation_efficiency;  ///< Rotary position embedding of queries and keys.
  Parameter<Duration> rotation_step;
};

/// Matrix units of an accelerator for one dtype.
struct MatrixUnit {
  Parameter<FlopsPerSecond> dense_peak;
  GemmParameters gemm;
  std::shared_ptr<const KernelChoice> kernel_choice;  ///< null if no library was measured: the formula's own time holds
  FitScope fit;
};

/// Accelerator whose values `load_machine` has checked: counts, peak rates and efficiencies are positive.
struct Accelerator {
  std::string name;
  int sms = 0;  ///< Streaming multiprocessors (AI cores on other vendors' chips).
  Parameter<BytesPerSecond> hbm_bandwidth;
  Bytes hbm_capacity;
  Bytes l2_capacity;
  /// Share of the HBM bandwidth that adds, packs and norms reach, in (0, 1].
  Parameter<double> memory_bound_efficiency;
  Parameter<BytesPerSecond> sm_bandwidth;  ///< HBM bytes per second that a single SM can move.
  Parameter<Duration> kernel_floor;        ///< Shortest time of any kernel on the device, without launch time.
  Parameter<Duration> launch_cost;         ///< Host time to issue one kernel.
  /// Host time to issue one op from Python, as eager PyTorch does. A hardware file may omit it.
  Parameter<Duration> eager_cost{Duration{14'000'000}, 0.3, Provenance::prior,
                                 "PyTorch's eager operations take 11 to 18 us"};
  Parameter<Duration> event_cost;         ///< Host time of one event record with its stream wait.
  Parameter<Duration> graph_launch_cost;  ///< Host time to launch a whole captured graph, once.
  /// Wait of the device between two dependent nodes of a graph, beyond what kernel_floor includes.
  Parameter<Duration> graph_node_gap;
  /// Wait of the device before a GEMM or memory-bound kernel that comes from a stream, beyond what kernel_floor
  /// includes. A hardware file may omit it: 0.
  Parameter<Duration> stream_gap;
  AttentionParameters attention;
  FitScope attention_fit;
  std::optional<FrameworkKernels> framework_kernels;  ///< Present if they were measured.
  FitScope framework_kernel_fit;
  std::optional<DecodeAttention> decode_attention;      ///< Present if it was measured with a 16-bit cache.
  std::optional<DecodeAttention> decode_attention_fp8;  ///< Present if it was measured with a cache in fp8.
  std::optional<LatentDecodeKernel> latent_decode;      ///< Present if it was measured with a 16-bit cache.
  std::optional<LatentDecodeKernel> latent_decode_fp8;  ///< Present if it was measured with a cache in fp8.
  std::optional<ExpertLayer> experts;                   ///< Present if it was measured with 16-bit weights.
  std::optional<ExpertLayer> experts_fp8;               ///< Present if it was measured with weights and inputs in fp8.
  HeapOptional<Quantization> quantization;              ///< Present if it was measured. No price of a step uses it.
  std::array<std::optional<MatrixUnit>, all_dtypes.size()> matrix_units;

  bool supports(DType dtype) const { return matrix_units[index_of(dtype)].has_value(); }
  /// Returns the unit. Aborts unless supports(dtype); `require_supported` is the check for a user's choice.
  const MatrixUnit& matrix_unit(DType dtype) const;
  /// Returns the peak. Aborts unless supports(dtype).
  FlopsPerSecond dense_peak(DType dtype) const { return matrix_unit(dtype).dense_peak.value; }
};

/// Throws a ConfigError that names the supported dtypes, unless `dtype` is one of them.
void require_supported(const Accelerator& accelerator, DType dtype);

}  // namespace commfuse
