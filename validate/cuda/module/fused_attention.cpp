// SPDX-License-Identifier: Apache-2.0
#include "validate/cuda/module/fused_attention.h"

#ifdef COMMFUSE_WITH_CUDNN

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <span>
#include <stdexcept>

#include "validate/cuda/attention_graph.h"
#include "validate/cuda/module/cudnn_graph.h"
#include "validate/cuda/module/views.h"

namespace commfuse::validate {

/// The kernel for one shape, or the reason why there is none.
class FusedAttention::Plan {
 public:
  Plan(const CudnnLibrary& library, cudnnHandle_t handle, const AttentionPieceShape& shape)
      : graph_(attention_graph(shape)) {
    try {
      cudnn_graph_.emplace(library, graph_, CudnnTarget{.handle = handle});
      engines_ = cudnn_graph_->engines();
    } catch (const std::runtime_error& error) {
      reason_ = error.what();
    }
    for (std::size_t i = 0; i < engines_.size() && !plan_; ++i) {
      try {
        make(library, handle, engines_[i]);
      } catch (const std::runtime_error& error) {  // the next engine may succeed
        reason_ = error.what();
      }
    }
    if (!plan_ && reason_.empty()) {
      reason_ = "no cuDNN engine supports this shape";
    }
    lay_out_arguments();
  }

  /// Returns an empty string if run() may be called.
  [[nodiscard]] std::string refused() const { return plan_ ? "" : reason_; }

  void run(const CudnnLibrary& library, cudnnHandle_t handle, const AttentionPiece& piece,
           const std::function<void*(std::size_t)>& room) {
    std::ranges::transform(std::array{piece.queries, piece.keys, piece.values, piece.out}, pointers_.begin(),
                           pointer_to);
    void* const workspace = workspace_ > 0 ? room(static_cast<std::size_t>(workspace_)) : nullptr;
    CudnnDescriptor pack(library, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
    pack.set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, std::span<const std::int64_t>(ids_))
        .set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, std::span<void* const>(pointers_))
        .set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, workspace)
        .finish();
    library.require(library.execute(handle, plan_->handle(), pack.handle()), "cudnnBackendExecute");
  }

 private:
  /// A number that a kernel takes as an argument.
  union Value {
    float real;
    std::int32_t whole;
  };

  /// The first four tensors are operands, whose addresses come with every call; the others are numbers.
  void lay_out_arguments() {
    values_.resize(graph_.tensors.size());
    for (std::size_t i = 0; i < graph_.tensors.size(); ++i) {
      const GraphTensor& tensor = graph_.tensors[i];
      if (tensor.place == GraphTensor::Place::inside) {
        continue;
      }
      if (tensor.type == GraphType::int32) {
        values_[i].whole = static_cast<std::int32_t>(tensor.value);
      } else {
        values_[i].real = static_cast<float>(tensor.value);
      }
      ids_.push_back(static_cast<std::int64_t>(i) + 1);
      pointers_.push_back(&values_[i]);
    }
  }

  void make(const CudnnLibrary& library, cudnnHandle_t handle, const CudnnDescriptor& engine) {
    CudnnDescriptor plan(library, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
    plan.set(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, handle)
        .set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, engine)
        .finish();
    std::int64_t count = 0;
    library.require(library.get_attribute(plan.handle(), CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1,
                                          &count, &workspace_),
                    "requesting the workspace size of a plan");
    plan_.emplace(std::move(plan));
  }

  AttentionGraph graph_;
  std::optional<CudnnGraph> cudnn_graph_;
  std::vector<CudnnDescriptor> engines_;
  std::optional<CudnnDescriptor> plan_;
  std::int64_t workspace_ = 0;
  std::string reason_;
  std::vector<Value> values_;
  std::vector<std::int64_t> ids_;
  std::vector<void*> pointers_;
};

struct FusedAttention::Plans {
  CudnnLibrary library;
  std::string missing = library.absence().empty()
                            ? validate::refused({.header = CUDNN_VERSION, .library = library.version()})
                            : library.absence();
  cudnnHandle_t handle = nullptr;
  std::map<AttentionPieceShape, Plan> by_shape;

  Plans() = default;
  Plans(const Plans&) = delete;
  Plans& operator=(const Plans&) = delete;
  ~Plans() {
    by_shape.clear();
    if (handle != nullptr) {
      static_cast<void>(library.destroy(handle));
    }
  }

  /// Opens a handle, or sets `missing` to the reason why there is none.
  void open() {
    try {
      library.require(library.create(&handle), "cudnnCreate");
    } catch (const std::runtime_error& error) {
      missing = error.what();
    }
  }

  Plan& plan_of(const AttentionPieceShape& shape, const std::function<void()>& require_open) {
    const auto known = by_shape.find(shape);
    if (known != by_shape.end()) {
      return known->second;
    }
    require_open();
    return by_shape.try_emplace(shape, library, handle, shape).first->second;
  }
};

FusedAttention::FusedAttention() : plans_(std::make_unique<Plans>()) {}
FusedAttention::~FusedAttention() = default;

std::string FusedAttention::version() const { return cudnn_in_words(plans_->library.version()); }

std::string FusedAttention::refused(const std::vector<AttentionPiece>& pieces,
                                    const std::function<void()>& require_open) {
  if (!plans_->missing.empty()) {
    return plans_->missing;
  }
  if (plans_->handle == nullptr) {
    require_open();
    plans_->open();
    return refused(pieces, require_open);
  }
  for (const AttentionPiece& piece : pieces) {
    std::string why = unfit_for_fusing(piece);
    if (why.empty()) {
      why = plans_->plan_of(piece.shape, require_open).refused();
    }
    if (!why.empty()) {
      return why;
    }
  }
  return "";
}

void FusedAttention::run(cudaStream_t stream, const std::vector<AttentionPiece>& pieces,
                         const std::function<void*(std::size_t)>& room) {
  plans_->library.require(plans_->library.set_stream(plans_->handle, stream), "cudnnSetStream");
  for (const AttentionPiece& piece : pieces) {
    plans_->by_shape.at(piece.shape).run(plans_->library, plans_->handle, piece, room);
  }
}

}  // namespace commfuse::validate

#else

namespace commfuse::validate {

struct FusedAttention::Plans {};

FusedAttention::FusedAttention() = default;
FusedAttention::~FusedAttention() = default;
std::string FusedAttention::version() const { return ""; }
std::string FusedAttention::refused(const std::vector<AttentionPiece>& /*pieces*/,
                                    const std::function<void()>& /*require_open*/) {
  return "this build was made without the headers of cuDNN 9.8 or later";
}
void FusedAttention::run(cudaStream_t /*stream*/, const std::vector<AttentionPiece>& /*pieces*/,
                         const std::function<void*(std::size_t)>& /*room*/) {}

}  // namespace commfuse::validate

#endif
