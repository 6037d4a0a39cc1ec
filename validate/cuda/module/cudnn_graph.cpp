// SPDX-License-Identifier: Apache-2.0
#include "validate/cuda/module/cudnn_graph.h"

#include <span>
#include <utility>

namespace commfuse::validate {

namespace {

cudnnDataType_t cudnn_type_of(GraphType type) {
  switch (type) {
    case GraphType::bf16: return CUDNN_DATA_BFLOAT16;
    case GraphType::fp16: return CUDNN_DATA_HALF;
    case GraphType::fp32: return CUDNN_DATA_FLOAT;
    case GraphType::int32: return CUDNN_DATA_INT32;
    case GraphType::boolean: return CUDNN_DATA_BOOLEAN;
  }
  return CUDNN_DATA_FLOAT;
}

cudnnPointwiseMode_t mode_of(GraphFunction function) {
  switch (function) {
    case GraphFunction::multiply: return CUDNN_POINTWISE_MUL;
    case GraphFunction::add: return CUDNN_POINTWISE_ADD;
    case GraphFunction::subtract: return CUDNN_POINTWISE_SUB;
    case GraphFunction::divide: return CUDNN_POINTWISE_DIV;
    case GraphFunction::exponential: return CUDNN_POINTWISE_EXP;
    case GraphFunction::logarithm: return CUDNN_POINTWISE_LOG;
    case GraphFunction::row:
    case GraphFunction::column: return CUDNN_POINTWISE_GEN_INDEX;
    case GraphFunction::not_less: return CUDNN_POINTWISE_CMP_GE;
    case GraphFunction::select: return CUDNN_POINTWISE_BINARY_SELECT;
    default: return CUDNN_POINTWISE_IDENTITY;  // not a pointwise function
  }
}

/// Returns the type in which an operation computes: the type of its result, except for positions and for results that
/// are only stored in a shorter type.
GraphType computed_in(GraphFunction function, GraphType out) {
  const bool counts = function == GraphFunction::add || function == GraphFunction::subtract;
  return function == GraphFunction::not_less || (counts && out == GraphType::int32) ? out : GraphType::fp32;
}

std::vector<cudnnBackendDescriptor_t> handles_of(std::span<const CudnnDescriptor> descriptors) {
  std::vector<cudnnBackendDescriptor_t> handles;
  for (const CudnnDescriptor& descriptor : descriptors) {
    handles.push_back(descriptor.handle());
  }
  return handles;
}

}  // namespace

CudnnGraph::CudnnGraph(const CudnnLibrary& library, const AttentionGraph& graph, const CudnnTarget& target)
    : library_(library), graph_(library, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR) {
  for (const GraphTensor& tensor : graph.tensors) {
    add_tensor(tensor);
  }
  for (const GraphOperation& operation : graph.operations) {
    switch (operation.function) {
      case GraphFunction::product: add_product(operation); break;
      case GraphFunction::largest:
      case GraphFunction::sum: add_reduction(operation); break;
      default:
        add_pointwise(operation,
                      computed_in(operation.function, graph.tensors[static_cast<std::size_t>(operation.out)].type));
    }
  }
  const std::vector<cudnnBackendDescriptor_t> handles = handles_of(operations_);
  graph_.set(CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR,
             std::span<const cudnnBackendDescriptor_t>(handles));
  if (target.handle != nullptr) {
    graph_.set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, target.handle);
  } else {
    properties_.emplace(library, CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR)
        .set(CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR, std::span<const char>(target.properties))
        .finish();
  }
  graph_.finish();
}

void CudnnGraph::add_tensor(const GraphTensor& tensor) {
  const bool is_value = tensor.place == GraphTensor::Place::value;
  const std::int64_t alignment = is_value ? 4 : 16;
  tensors_.emplace_back(library_, CUDNN_BACKEND_TENSOR_DESCRIPTOR)
      .set(CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, static_cast<std::int64_t>(tensors_.size()))
      .set(CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, cudnn_type_of(tensor.type))
      .set(CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, std::span<const std::int64_t>(tensor.extents))
      .set(CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, std::span<const std::int64_t>(tensor.strides))
      .set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, alignment)
      .set(CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, tensor.place == GraphTensor::Place::inside)
      .set(CUDNN_ATTR_TENSOR_IS_BY_VALUE, CUDNN_TYPE_BOOLEAN, is_value)
      .finish();
}

void CudnnGraph::add_product(const GraphOperation& operation) {
  inner_.emplace_back(library_, CUDNN_BACKEND_MATMUL_DESCRIPTOR)
      .set(CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT)
      .finish();
  operations_.emplace_back(library_, CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR)
      .set(CUDNN_ATTR_OPERATION_MATMUL_ADESC, tensors_[static_cast<std::size_t>(operation.a)])
      .set(CUDNN_ATTR_OPERATION_MATMUL_BDESC, tensors_[static_cast<std::size_t>(operation.b)])
      .set(CUDNN_ATTR_OPERATION_MATMUL_CDESC, tensors_[static_cast<std::size_t>(operation.out)])
      .set(CUDNN_ATTR_OPERATION_MATMUL_DESC, inner_.back())
      .finish();
}

void CudnnGraph::add_reduction(const GraphOperation& operation) {
  inner_.emplace_back(library_, CUDNN_BACKEND_REDUCTION_DESCRIPTOR)
      .set(CUDNN_ATTR_REDUCTION_OPERATOR, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE,
           operation.function == GraphFunction::largest ? CUDNN_REDUCE_TENSOR_MAX : CUDNN_REDUCE_TENSOR_ADD)
      .set(CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT)
      .finish();
  operations_.emplace_back(library_, CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR)
      .set(CUDNN_ATTR_OPERATION_REDUCTION_XDESC, tensors_[static_cast<std::size_t>(operation.a)])
      .set(CUDNN_ATTR_OPERATION_REDUCTION_YDESC, tensors_[static_cast<std::size_t>(operation.out)])
      .set(CUDNN_ATTR_OPERATION_REDUCTION_DESC, inner_.back())
      .finish();
}

void CudnnGraph::add_pointwise(const GraphOperation& operation, GraphType type) {
  constexpr std::int64_t row_axis = 2;
  inner_.emplace_back(library_, CUDNN_BACKEND_POINTWISE_DESCRIPTOR)
      .set(CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, mode_of(operation.function))
      .set(CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, cudnn_type_of(type));
  if (operation.function == GraphFunction::row || operation.function == GraphFunction::column) {
    inner_.back().set(CUDNN_ATTR_POINTWISE_AXIS, CUDNN_TYPE_INT64,
                      operation.function == GraphFunction::row ? row_axis : row_axis + 1);
  }
  inner_.back().finish();
  CudnnDescriptor& descriptor = operations_.emplace_back(library_, CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
  descriptor.set(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, inner_.back())
      .set(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, tensors_[static_cast<std::size_t>(operation.a)])
      .set(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, tensors_[static_cast<std::size_t>(operation.out)]);
  if (operation.b >= 0) {
    descriptor.set(CUDNN_ATTR_OPERATION_POINTWISE_BDESC, tensors_[static_cast<std::size_t>(operation.b)]);
  }
  if (operation.mask >= 0) {
    descriptor.set(CUDNN_ATTR_OPERATION_POINTWISE_TDESC, tensors_[static_cast<std::size_t>(operation.mask)]);
  }
  descriptor.finish();
}

std::vector<CudnnDescriptor> CudnnGraph::engines() const {
  std::vector<CudnnDescriptor> preferred = engines(CUDNN_HEUR_MODE_A);
  return preferred.empty() ? engines(CUDNN_HEUR_MODE_FALLBACK) : std::move(preferred);
}

std::vector<CudnnDescriptor> CudnnGraph::engines(cudnnBackendHeurMode_t mode) const {
  CudnnDescriptor heuristic(library_, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
  heuristic.set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph_)
      .set(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, mode);
  if (properties_) {
    heuristic.set(CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, *properties_);
  }
  heuristic.finish();
  std::int64_t count = 0;
  library_.require(library_.get_attribute(heuristic.handle(), CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                          CUDNN_TYPE_BACKEND_DESCRIPTOR, 0, &count, nullptr),
                   "counting engines");
  std::vector<CudnnDescriptor> configurations;
  for (std::int64_t i = 0; i < count; ++i) {
    configurations.emplace_back(library_, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
  }
  std::vector<cudnnBackendDescriptor_t> handles = handles_of(configurations);
  library_.require(library_.get_attribute(heuristic.handle(), CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                          CUDNN_TYPE_BACKEND_DESCRIPTOR, count, &count, handles.data()),
                   "requesting engines");
  while (std::cmp_greater(configurations.size(), count)) {
    configurations.pop_back();
  }
  return configurations;
}

}  // namespace commfuse::validate
