// SPDX-License-Identifier: Apache-2.0
// Gathers measurements of one machine from files: tables of GEMMs, attention, experts, quantization, memory-bound
// kernels, messages and all-reduces of serving frameworks, output of nccl-tests, profiles of runs, and the
// micro-benchmarks of commfuse-validate.
#pragma once

#include <array>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "model/dtype.h"
#include "model/fit/attention_fit.h"
#include "model/fit/custom_all_reduce_fit.h"
#include "model/fit/expert_layer_fit.h"
#include "model/fit/framework_kernel_fit.h"
#include "model/fit/gemm_fit.h"
#include "model/fit/latent_decode_fit.h"
#include "model/fit/link_fit.h"
#include "model/fit/memory_bound_fit.h"
#include "model/fit/quantization_fit.h"
#include "model/hardware/machine.h"
#include "model/record/run_record.h"

namespace commfuse::calibrate {

/// Rows of one kind, and the files that they come from: "gemm.csv, more.csv".
template <class Measured>
struct Measurements {
  std::vector<Measured> rows;
  std::string source;
};

/// A measured collective. `op` is its name in the table or in nccl-tests, and part of the key that selects held-out
/// rows.
struct ObservedCollective {
  std::string op;
  CollectiveRow row;
  bool of_base = false;  ///< From a table without a machine column; `score` takes such rows for rows of the base.
};
struct ObservedExchange {
  std::string op;
  PeerRow row;
};
/// A measured all-reduce by the kernels of a framework; `kernel` names the kernels as in the table.
struct ObservedCustomAllReduce {
  std::string kernel;
  CustomAllReduceRow row;
};

struct Observations {
  std::string machine;                                             ///< The machine's name in the tables; may be empty.
  std::array<Measurements<MeasuredGemm>, all_dtypes.size()> gemm;  ///< By dtype.
  Measurements<MeasuredAttention> attention;
  Measurements<MeasuredAttention> decode_attention;      ///< With a 16-bit cache.
  Measurements<MeasuredAttention> decode_attention_fp8;  ///< With a cache in fp8.
  Measurements<MeasuredLatentDecode> latent_decode;      ///< With a 16-bit cache.
  Measurements<MeasuredLatentDecode> latent_decode_fp8;  ///< With a cache in fp8.
  Measurements<MeasuredExpertLayer> experts;             ///< With 16-bit weights.
  Measurements<MeasuredExpertLayer> experts_fp8;         ///< In fp8.
  Measurements<MeasuredQuantization> quantization;
  Measurements<MeasuredFrameworkKernel> kernels;
  Measurements<MeasuredTraffic> traffic;  ///< Copies and adds.
  Measurements<ObservedCollective> collectives;
  Measurements<ObservedExchange> peers;
  /// All-reduces inside a node by the kernels of serving frameworks instead of NCCL. The index is an AllReduceKernel.
  std::array<Measurements<ObservedCustomAllReduce>, all_all_reduce_kernels.size()> custom_all_reduces;
  Measurements<ObservedCollective> network_collectives;  ///< Collectives over several whole nodes.
  Measurements<ObservedExchange> network_peers;          ///< Exchanges between two GPUs on two nodes.
  std::optional<Duration> next_op;                       ///< Delay between an op's end and the next op of its lane.
  /// Delay between an op's end and the start of an op that waits for it on another lane.
  std::optional<Duration> wake_up;
  bool measured_on_cpus = false;     ///< Measured on CPUs, so peaks are measured rates.
  std::vector<std::string> faults;   ///< `path:line: reason` of rows that are wrong and omitted.
  std::vector<std::string> skipped;  ///< Sentences about valid rows that no fit can use.
};

/// Returns the largest tensor that a framework's kernels sum: the base's value or, if it has none, 8 MiB, the size of
/// vLLM's and SGLang's buffers.
Parameter<Bytes> largest_sum(const Machine* base, AllReduceKernel framework);

/// Reads files of any known kind: a table is recognized by its header, as in `commfuse-sim score`, a record of
/// commfuse-validate by its schema, a profile by its beginning; other files are read as text or JSON of nccl-tests.
/// Where a table names the machine of a row, all rows must be of one machine; `machine` chooses it. With a `base`, a
/// GEMM in a table or profile is a fault if it exceeds the base's peak by more than 5%, and a message is a fault if it
/// exceeds 1.25 times the rate of the base's links. The size of the base's nodes decides whether a profiled group is
/// within one node. Throws ConfigError for a file of an unknown kind, for a file that cannot be read or is given twice,
/// for rows of several machines, and if so many messages are too fast that the base must be another machine.
Observations read_observations(const std::vector<std::filesystem::path>& files,
                               const std::optional<std::string>& machine, const Machine* base = nullptr);

/// Returns the micro-benchmarks of a record, each by its median; `source` names the record. Ops that no fit uses are
/// skipped. Throws ConfigError if the record has no micro-benchmarks, if its ops were emulated, and for a wrong dtype
/// or size.
Observations observations_of(const RunRecord& record, const std::string& source);

}  // namespace commfuse::calibrate
