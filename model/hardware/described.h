// SPDX-License-Identifier: Apache-2.0
// Describes the parameters of machines. Hardware files are read and written by these entries; the JSON Schema, the list
// of uncertain parameters and the provenance of results follow from them. To add a parameter, add a member and an
// entry.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>

#include "model/describe/describe.h"
#include "model/hardware/accelerator.h"
#include "model/hardware/link.h"

namespace commfuse {

inline constexpr double efficiency_least = 0.001;
inline constexpr double clocks_most = 2.0;  // Clocks may rise above those for which a peak is stated.
inline constexpr double relative_most = 100.0;
inline constexpr double split_keys_most = 65536.0;
inline constexpr double tile_width_most = 4096.0;
inline constexpr double inner_extent_most = 65536.0;
inline constexpr double cta_most = 4096.0;
inline constexpr double sm_most = 4096.0;

template <>
struct Described<GemmParameters> {
  using G = GemmParameters;
  static constexpr std::tuple entries{
      entry("loop_efficiency", &G::loop_efficiency, "Share of an SM's peak inside the k loop")
          .within(efficiency_least, clocks_most),
      entry("hbm_efficiency", &G::hbm_efficiency, "Share of the HBM bandwidth at which weights stream in")
          .within(efficiency_least, 1.0),
      entry("cached_input_cost", &G::cached_input_cost,
            "Time per input byte that L2 holds, relative to a byte of weights")
          .within(0.0, relative_most),
      entry("output_cost", &G::output_cost, "Time per output byte, relative to a byte of weights")
          .within(0.0, relative_most),
      entry("ramp", &G::ramp, "Time to fill and drain the pipeline, once per GEMM"),
      entry("wave_overhead", &G::wave_overhead, "Epilogue of a tile, once per wave"),
      entry("split_overhead", &G::split_overhead, "Time to join partial results when the k loop is split"),
      entry("tile_256x128", &G::tile_256x128, "Speed of this tile, relative to 128 x 128")
          .optional()
          .within(efficiency_least, clocks_most),
      entry("tile_64x256", &G::tile_64x256, "Speed of this tile, relative to 128 x 128")
          .optional()
          .within(efficiency_least, clocks_most),
      entry("tile_128x64", &G::tile_128x64, "Speed of this tile, relative to 128 x 128")
          .optional()
          .within(efficiency_least, clocks_most),
      entry("tile_64x64", &G::tile_64x64, "Speed of this tile, relative to 128 x 128")
          .optional()
          .within(efficiency_least, clocks_most),
      entry("wave_quantum", &G::wave_quantum, "1: a partly full wave takes as long as a full one")
          .optional()
          .within(0.0, 1.0),
      entry("unhidden", &G::unhidden,
            "Adds unhidden x lesser^2 / greater, of HBM time and compute time, to the greater")
          .optional()
          .within(0.0, 1.0),
      entry("join_cost", &G::join_cost, "Time per byte of partial results, relative to a byte of weights")
          .optional()
          .within(0.0, relative_most),
      entry("burst_efficiency", &G::burst_efficiency, "Share of the peak that power allows in a short GEMM")
          .optional()
          .within(efficiency_least, clocks_most),
      entry("sustained_share", &G::sustained_share, "Share of burst_efficiency that a long GEMM keeps")
          .optional()
          .within(efficiency_least, 1.0),
      entry("burst_time", &G::burst_time, "Duration of a GEMM halfway between burst and sustained").optional(),
      entry("conversion_passes", &G::conversion_passes, "Passes over the input to convert its dtype")
          .optional()
          .within(0.0, relative_most),
      entry("cached_conversion_cost", &G::cached_conversion_cost,
            "Time to convert a byte that L2 holds, relative to a byte from HBM")
          .optional()
          .within(0.0, relative_most),
      entry("resident_share", &G::resident_share, "Share of L2 that keeps weights for reuse")
          .optional()
          .within(0.0, relative_most),
      entry("cached_weight_cost", &G::cached_weight_cost,
            "Time per byte of weights that L2 holds, relative to a byte from HBM")
          .optional()
          .within(0.0, relative_most),
      entry("resident_output_share", &G::resident_output_share, "Share of L2 in which an output stays")
          .optional()
          .within(0.0, relative_most),
      entry("cached_output_cost", &G::cached_output_cost,
            "Time per output byte that stays in L2, relative to a byte of weights")
          .optional()
          .within(0.0, relative_most),
      entry("operand_feed", &G::operand_feed, "Rate of operands to the SMs, relative to 256 x 128 tiles at the peak")
          .optional()
          .within(0.0, relative_most)};
};

template <>
struct Described<AttentionParameters> {
  using A = AttentionParameters;
  static constexpr std::tuple entries{
      entry("overhead", &A::overhead, "Time per call"),
      entry("loop_efficiency", &A::loop_efficiency, "Share of the dense peak in both GEMMs of a tile")
          .within(efficiency_least, 1.0),
      entry("exponentials", &A::exponentials, "Exponentials per second on the whole chip"),
      entry("masked_width", &A::masked_width, "Keys beyond the diagonal that a causal query computes")
          .within(0.0, tile_width_most),
      entry("tile_overhead", &A::tile_overhead, "Time per tile of 128 queries of a head, once per wave"),
      entry("query_cost", &A::query_cost, "Time per byte of queries and output, relative to a byte from HBM")
          .within(0.0, relative_most),
      entry("key_cost", &A::key_cost, "Time per byte of keys and values, relative to a byte from HBM")
          .within(0.0, relative_most),
      entry("imbalance", &A::imbalance, "Share of the longest tile's time for which SMs idle")
          .within(0.0, relative_most),
      entry("narrow_overhead", &A::narrow_overhead, "Overheads of heads up to 64 wide, relative to wider ones")
          .optional()
          .within(0.0, relative_most),
      entry("lone_tile", &A::lone_tile, "Time of a tile alone on its SM, relative to a tile among many")
          .optional()
          .within(0.0, relative_most),
      entry(
          "split_cost", &A::split_cost,
          "Time per score with split keys, relative to unsplit keys; 0: the kernel neither packs heads nor splits keys")
          .optional()
          .within(0.0, relative_most),
      entry("unsplit_keys", &A::unsplit_keys, "Keys of a sequence that are never split")
          .optional()
          .within(0.0, split_keys_most)};
};

template <>
struct Described<FrameworkKernels> {
  using F = FrameworkKernels;
  static constexpr std::tuple entries{
      entry("floor", &F::floor, "Time added to every kernel"),
      entry("sum_efficiency", &F::sum_efficiency, "Share of the HBM bandwidth when adding two tensors")
          .within(efficiency_least, 1.0),
      entry("cached_saving", &F::cached_saving, "Share of time that a sum saves on data in L2").within(0.0, 1.0),
      entry("norm_efficiency", &F::norm_efficiency).within(efficiency_least, 1.0),
      entry("norm_step", &F::norm_step),
      entry("activation_efficiency", &F::activation_efficiency).within(efficiency_least, 1.0),
      entry("activation_step", &F::activation_step),
      entry("rotation_efficiency", &F::rotation_efficiency, "Rotary position embedding").within(efficiency_least, 1.0),
      entry("rotation_step", &F::rotation_step)};
};

template <>
struct Described<DecodeAttention> {
  using D = DecodeAttention;
  static constexpr std::tuple entries{
      entry("call", &D::call, "Time per call"),
      entry("packed_start", &D::packed_start, "Shortest time of blocks that process all heads that share keys"),
      entry("packed_block", &D::packed_block, "SM time per block"),
      entry("packed_head", &D::packed_head, "SM time per query head of a block"),
      entry("packed_keys", &D::packed_keys, "Time for a block to read 256 keys"),
      entry("hbm_efficiency", &D::hbm_efficiency, "Share of the HBM bandwidth").within(efficiency_least, 1.0),
      entry("memory_ramp", &D::memory_ramp, "Added time when keys fill the L2"),
      entry("most_parts", &D::most_parts, "Maximum number of blocks across which the keys of one head are split")
          .within(1.0, split_keys_most),
      entry("narrow_time", &D::narrow_time, "Times for heads up to 64 wide, relative to wider heads")
          .optional()
          .within(0.0, relative_most),
      entry("most_packed", &D::most_packed, "Maximum number of query heads in a packed block")
          .optional()
          .within(1.0, sm_most),
      entry("unpacked_start", &D::unpacked_start, "Shortest time of blocks that process one head").optional(),
      entry("unpacked_block", &D::unpacked_block, "SM time per block; 0: no such kernel").optional(),
      entry("unpacked_keys", &D::unpacked_keys, "Time for a block to read 256 keys").optional(),
      entry("vector_rate", &D::vector_rate, "FLOP rate of blocks that process one head; 0: no limit").optional()};
};

template <>
struct Described<LatentDecodeKernel> {
  using L = LatentDecodeKernel;
  static constexpr std::tuple entries{
      entry("call", &L::call, "Time per call"),
      entry("start", &L::start, "Shortest time of the blocks"),
      entry("block", &L::block, "SM time per block of up to 64 heads"),
      entry("head", &L::head, "SM time per head"),
      entry("keys", &L::keys, "Time for a block to read 256 keys"),
      entry("hbm_efficiency", &L::hbm_efficiency, "Share of the HBM bandwidth").within(efficiency_least, 1.0),
      entry("memory_ramp", &L::memory_ramp, "Added time when keys fill the L2"),
      entry("most_parts", &L::most_parts, "Maximum number of blocks across which the keys of a sequence are split")
          .within(1.0, split_keys_most),
      entry("loop_efficiency", &L::loop_efficiency, "Share of the dense peak in the GEMMs")
          .within(efficiency_least, 1.0),
      entry("join_cost", &L::join_cost, "Time per byte of partial outputs, relative to the HBM bandwidth")
          .within(0.0, relative_most),
      entry("reread", &L::reread, "Share of keys that a second block of 16 heads reads again; 0: blocks of 64 heads")
          .optional()
          .within(0.0, relative_most)};
};

template <>
struct Described<ExpertLayer> {
  using E = ExpertLayer;
  static constexpr std::tuple entries{
      entry("call", &E::call, "Time per call"),
      entry("expert", &E::expert, "Time per expert that has tokens"),
      entry("choices", &E::choices, "Time per 1,024 pairs of a token and one of its experts"),
      entry("token_traffic", &E::token_traffic, "Number of times that a token is read and written")
          .within(0.0, relative_most),
      entry("hbm_efficiency", &E::hbm_efficiency, "Share of the HBM bandwidth for weights")
          .within(efficiency_least, 1.0),
      entry("sm_loads", &E::sm_loads, "Rate at which 128 columns of an expert load, relative to sm_bandwidth")
          .within(efficiency_least, relative_most),
      entry("row_traffic", &E::row_traffic, "Number of times that the rows of both GEMMs are moved")
          .within(0.0, relative_most),
      entry("matrix_share", &E::matrix_share, "Share of the dense peak").within(efficiency_least, clocks_most),
      entry("loop_start", &E::loop_start, "Start and end of a tile, as extra elements of the inner extent (k)")
          .within(0.0, inner_extent_most),
      entry("uneven_time", &E::uneven_time, "Compute with uneven loads, relative to balanced loads")
          .optional()
          .within(0.0, relative_most)};
};

template <>
struct Described<Quantization> {
  using Q = Quantization;
  static constexpr std::tuple entries{
      entry("call", &Q::call, "Time per conversion"),
      entry("start", &Q::start, "Shortest time of a conversion, in addition to `call`"),
      entry("hbm_efficiency", &Q::hbm_efficiency, "Share of the HBM bandwidth").within(efficiency_least, 1.0),
      entry("cached_cost", &Q::cached_cost, "Time of a byte that the L2 holds, relative to one that it does not hold")
          .within(0.0, relative_most),
      entry("block", &Q::block, "Time of an SM per block of 2,048 elements"),
      entry("resident_share", &Q::resident_share, "Share of the L2 that keeps tensors").within(0.0, 1.0),
      entry("scale_call", &Q::scale_call, "Time per tensor to find its scale"),
      entry("scale_join", &Q::scale_join, "Time to join the greatest values of 1,024 blocks"),
      entry("scale_efficiency", &Q::scale_efficiency, "Share of the HBM bandwidth").within(efficiency_least, 1.0),
      entry("scale_cached_cost", &Q::scale_cached_cost,
            "Time of a byte that the L2 holds, relative to one that it does not hold")
          .within(0.0, relative_most)};
};

/// Matrix units have no entry here, because they are indexed by dtype.
template <>
struct Described<Accelerator> {
  using A = Accelerator;
  static constexpr std::tuple entries{
      entry("name", &A::name),
      entry("sms", &A::sms, "Streaming multiprocessors").within(1.0, sm_most),
      entry("hbm_bandwidth", &A::hbm_bandwidth),
      entry("hbm_capacity", &A::hbm_capacity),
      entry("l2_capacity", &A::l2_capacity),
      entry("memory_bound_efficiency", &A::memory_bound_efficiency, "Share of the HBM bandwidth that kernels reach")
          .within(efficiency_least, 1.0),
      entry("sm_bandwidth", &A::sm_bandwidth, "HBM bandwidth of one SM"),
      entry("kernel_floor", &A::kernel_floor, "Shortest time of any kernel"),
      entry("launch_cost", &A::launch_cost, "Host time to launch one kernel"),
      entry("eager_cost", &A::eager_cost, "Host time to issue one op from eager PyTorch").optional(),
      entry("event_cost", &A::event_cost, "Host time to make one lane wait for another"),
      entry("graph_launch_cost", &A::graph_launch_cost, "Host time to launch a CUDA graph"),
      entry("graph_node_gap", &A::graph_node_gap, "Wait between graph nodes, beyond kernel_floor"),
      entry("stream_gap", &A::stream_gap, "Wait before a kernel of a stream, beyond kernel_floor").optional(),
      entry("attention", &A::attention).optional(),
      entry("framework_kernels", &A::framework_kernels),
      entry("decode_attention", &A::decode_attention, "Decode attention, with a 16-bit cache"),
      entry("decode_attention_fp8", &A::decode_attention_fp8, "Decode attention, with a cache in fp8"),
      entry("latent_decode", &A::latent_decode, "Latent decode attention, with a 16-bit cache"),
      entry("latent_decode_fp8", &A::latent_decode_fp8, "Latent decode attention, with a cache in fp8"),
      entry("experts", &A::experts, "Routed-expert layer, with 16-bit weights"),
      entry("experts_fp8", &A::experts_fp8, "Routed-expert layer, in fp8"),
      entry("quantization", &A::quantization, "Conversion of activations to fp8 with one scale per tensor")};
};

template <>
struct Described<SmallMessages> {
  static constexpr std::tuple entries{entry("up_to", &SmallMessages::up_to, "Messages up to this size"),
                                      entry("latency", &SmallMessages::latency), entry("rate", &SmallMessages::rate)};
};

template <>
struct Described<PeerParameters> {
  using P = PeerParameters;
  static constexpr std::tuple entries{
      entry("latency", &P::latency, "Time from when both ends are posted until the first byte arrives, without launch"),
      entry("rate", &P::rate, "Rate to a single peer, one direction"),
      entry("aggregate_rate", &P::aggregate_rate, "Rate to all peers of a rank together").optional(),
      entry("ctas", &P::ctas, "SMs that the kernel occupies; 0 for copy engines").within(0.0, cta_most),
      entry("issue_cost", &P::issue_cost, "Host time to issue one grouped send and receive"),
      entry("small", &P::small, "Protocol for small messages; without it, latency and rate apply to every size")};
};

template <>
struct Described<ProtocolParameters> {
  using P = ProtocolParameters;
  static constexpr std::tuple entries{
      entry("base_latency", &P::base_latency, "Time per call, without host issue"),
      entry("step_latency", &P::step_latency, "Time per step"),
      entry("rate", &P::rate, "Wire bytes per second that a rank sends, for very large sizes"),
      entry("own_copy_rate", &P::own_copy_rate, "Rate of copying a rank's own share from input to output"),
      entry("ramp_size", &P::ramp_size, "Wire bytes whose time bounds the cost of filling the pipeline")};
};
template <>
struct Described<RingParameters> {
  using P = RingParameters;
  static constexpr std::tuple entries{
      BaseEntries<ProtocolParameters>{},
      entry("forward_latency", &P::forward_latency, "Time added per step in which a rank passes on a finished block"),
      entry("own_sum_rate", &P::own_sum_rate, "Rate of adding a rank's own share in a reduce-scatter or all-reduce"),
      entry("fill_size", &P::fill_size, "Smallest share of a rank that uses all channels"),
      entry("channel_latency", &P::channel_latency, "Time added when all channels are used instead of one")};
};
/// Key that the maps of LL lack, because LL has no pipeline to fill.
inline constexpr std::string_view key_of_ramp = "ramp_size";

template <>
struct Described<SwitchParameters> {
  using S = SwitchParameters;
  static constexpr std::tuple entries{entry("base_latency", &S::base_latency), entry("rate", &S::rate),
                                      entry("ramp_size_per_rank", &S::ramp_size_per_rank,
                                            "Bytes per rank whose time bounds the cost of filling the pipeline")};
};

template <>
struct Described<TreeProtocol> {
  using T = TreeProtocol;
  static constexpr std::tuple entries{entry("base_latency", &T::base_latency),
                                      entry("level_latency", &T::level_latency, "Time per level of the tree"),
                                      entry("rate", &T::rate), entry("two_nodes_rate", &T::two_nodes_rate)};
};

template <>
struct Described<TreeParameters> {
  using T = TreeParameters;
  static constexpr std::tuple entries{BaseEntries<TreeProtocol>{},
                                      entry("ramp_size_per_rank", &T::ramp_size_per_rank,
                                            "Bytes per rank whose time bounds the cost of filling the pipeline"),
                                      entry("ll", &T::ll), entry("ll128", &T::ll128)};
};

template <>
struct Described<CustomAllReduce> {
  using C = CustomAllReduce;
  static constexpr std::tuple entries{
      entry("up_to", &C::up_to, "Largest tensor; NCCL sums larger ones"),
      entry("one_shot_latency", &C::one_shot_latency, "Time per call in which each rank reads whole tensors"),
      entry("one_shot_step", &C::one_shot_step, "Time per rank whose memory is read"),
      entry("one_shot_rate", &C::one_shot_rate, "Bytes per second that a rank reads"),
      entry("two_shot_latency", &C::two_shot_latency, "Time per call in which ranks read shares, then sums"),
      entry("two_shot_step", &C::two_shot_step, "Time per rank whose memory is read"),
      entry("two_shot_rate", &C::two_shot_rate, "Bytes per second that a rank reads")};
};

template <>
struct Described<CustomAllReduces> {
  using C = CustomAllReduces;
  static constexpr std::tuple entries{entry("vllm", &C::vllm), entry("sglang", &C::sglang),
                                      entry("trtllm", &C::trtllm, "TensorRT-LLM")};
};

/// Algorithms of a collective besides its ring, each in a map of its own. Files, their schema, the output of calibrate
/// and the parameters that are raised by one standard error (raised.h) follow from this list;
/// model/cost/communication.h has the formulas.
inline constexpr std::tuple collective_algorithms{entry("tree", &CollectiveParameters::tree),
                                                  entry("custom_all_reduce", &CollectiveParameters::custom_all_reduce,
                                                        "All-reduce kernels of serving frameworks, in a node")};

/// Calls `visit` with each entry of collective_algorithms.
template <class Visit>
constexpr void each_algorithm(const Visit& visit) {
  std::apply([&](const auto&... entries) { (visit(entries), ...); }, collective_algorithms);
}
/// True for algorithms of the library that runs the ring: they have its CTAs, and its tables measure them, so faults
/// and fits treat them as they treat the ring. The kernels of serving frameworks have tables and CTAs of their own.
template <class Algorithm>
inline constexpr bool is_of_library = true;
template <>
inline constexpr bool is_of_library<CustomAllReduces> = false;

/// Returns whether a rate with this key is that of a rank's own memory: the other rates of an algorithm are those of
/// wires.
constexpr bool is_own_rate(std::string_view key) { return key.starts_with("own_"); }

/// Parameter struct of an algorithm: the pointee type of the shared pointer that its entry names.
template <class E>
using AlgorithmOf = std::remove_const_t<typename std::remove_cvref_t<E>::Member::element_type>;

template <class T>
inline constexpr bool is_parameter = false;
template <class T>
inline constexpr bool is_parameter<Parameter<T>> = true;

template <class M>
inline constexpr bool is_map_of_parameters = HasDescription<M>;
template <class M>
inline constexpr bool is_map_of_parameters<std::optional<M>> = HasDescription<M>;
template <class M>
inline constexpr bool is_map_of_parameters<HeapOptional<M>> = HasDescription<M>;

template <class T>
inline constexpr bool is_optional = false;
template <class T>
inline constexpr bool is_optional<std::optional<T>> = true;
template <class T>
inline constexpr bool is_optional<HeapOptional<T>> = true;

/// Replaces a name if no names are needed.
struct NoNames {};
inline std::string name_below(const std::string& at, std::string_view key) { return at + std::string(key); }
constexpr NoNames name_below(NoNames, std::string_view) { return {}; }

/// Calls `visit(name, parameter)` for each parameter of a described struct and of the structs inside it, in the order
/// of the entries. Names start with `at`, a std::string or NoNames.
template <class S, class At, class Visit>
void each_parameter(S& in, const At& at, const Visit& visit) {
  using T = std::remove_const_t<S>;
  if constexpr (is_parameter<T>) {
    visit(at, in);
  } else if constexpr (is_optional<T>) {
    if (in) {
      each_parameter(*in, at, visit);
    }
  } else if constexpr (HasDescription<T>) {
    each_entry<T>([&](const auto& entry) {
      using Member = typename std::remove_cvref_t<decltype(entry)>::Member;
      const auto name = name_below(at, entry.key);
      if constexpr (is_map_of_parameters<Member>) {
        each_parameter(in.*entry.member, name_below(name, "."), visit);
      } else {
        each_parameter(in.*entry.member, name, visit);
      }
    });
  }
}

/// Returns the bytes of all described members. Equals the size of the struct when every member has an entry.
template <class S>
constexpr std::size_t described_size() {
  std::size_t size = 0;
  each_entry<S>([&](const auto& entry) { size += sizeof(typename std::remove_cvref_t<decltype(entry)>::Member); });
  return size;
}
static_assert(described_size<GemmParameters>() == sizeof(GemmParameters));
static_assert(described_size<AttentionParameters>() == sizeof(AttentionParameters));
static_assert(described_size<FrameworkKernels>() == sizeof(FrameworkKernels));
static_assert(described_size<DecodeAttention>() + sizeof(FitScope) == sizeof(DecodeAttention));
static_assert(described_size<ExpertLayer>() + sizeof(FitScope) == sizeof(ExpertLayer));
static_assert(described_size<Quantization>() + sizeof(FitScope) == sizeof(Quantization));
static_assert(described_size<SmallMessages>() == sizeof(SmallMessages));
static_assert(described_size<PeerParameters>() + sizeof(FitScope) == sizeof(PeerParameters));
static_assert(described_size<ProtocolParameters>() == sizeof(ProtocolParameters));
static_assert(described_size<SwitchParameters>() == sizeof(SwitchParameters));
static_assert(described_size<TreeParameters>() == sizeof(TreeParameters));
static_assert(described_size<CustomAllReduce>() == sizeof(CustomAllReduce));
static_assert(described_size<CustomAllReduces>() == sizeof(CustomAllReduces));

}  // namespace commfuse
