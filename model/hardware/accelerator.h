// SPDX-License-Identifier: Apache-2.0
// One accelerator: what it can do at most, and what a kernel on it costs beside that.
#pragma once

#include <array>
#include <optional>
#include <string>

#include "model/dtype.h"
#include "model/hardware/parameter.h"
#include "model/units.h"

namespace commfuse {

/// How matrix products of one dtype fall short of the dense peak; model/cost/gemm.h says how each enters.
struct GemmParameters {
  Parameter<double> loop_efficiency;    ///< Share of an SM's peak inside the k loop of a tile, in (0, 1].
  Parameter<double> hbm_efficiency;     ///< Share of the HBM bandwidth at which weights stream in, in (0, 1].
  Parameter<double> cached_input_cost;  ///< Time of an m x k byte that L2 still holds, relative to a weight byte.
  Parameter<double> output_cost;        ///< Time of an m x n byte, relative to a weight byte.
  Parameter<Duration> ramp;             ///< Filling and draining the pipeline, once a product.
  Parameter<Duration> wave_overhead;    ///< Epilogue and next prologue, once a wave.
  Parameter<Duration> split_overhead;   ///< Joining the partial products when the k loop is split over SMs.
};

/// The matrix units of an accelerator for one dtype.
struct MatrixUnit {
  Parameter<FlopsPerSecond> dense_peak;
  GemmParameters gemm;
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
  Parameter<Duration> graph_node_gap;         ///< Device: between two dependent nodes of a graph.
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
