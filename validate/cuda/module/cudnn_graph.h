// SPDX-License-Identifier: Apache-2.0
// A graph of attention for cuDNN's backend, and the engines that support it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "validate/cuda/attention_graph.h"
#include "validate/cuda/module/cudnn_library.h"

namespace commfuse::validate {

/// The device for which engines are requested: the device of a handle, or a described one.
struct CudnnTarget {
  cudnnHandle_t handle = nullptr;
  /// Description of a device in cuDNN's JSON (since 9.8); the device need not exist.
  std::string properties{};
};

class CudnnGraph {
 public:
  /// Tensor i has the unique id i + 1. The library must outlive the graph. All members throw std::runtime_error with
  /// cuDNN's error.
  CudnnGraph(const CudnnLibrary& library, const AttentionGraph& graph, const CudnnTarget& target);

  /// Returns the engines that cuDNN's heuristics recommend, best first; an empty list if none supports this graph on
  /// the target.
  [[nodiscard]] std::vector<CudnnDescriptor> engines() const;

 private:
  void add_tensor(const GraphTensor& tensor);
  void add_product(const GraphOperation& operation);
  void add_reduction(const GraphOperation& operation);
  void add_pointwise(const GraphOperation& operation, GraphType type);
  [[nodiscard]] std::vector<CudnnDescriptor> engines(cudnnBackendHeurMode_t mode) const;

  const CudnnLibrary& library_;
  std::vector<CudnnDescriptor> tensors_;
  std::vector<CudnnDescriptor> inner_;  // descriptors that operations refer to
  std::vector<CudnnDescriptor> operations_;
  std::optional<CudnnDescriptor> properties_;
  CudnnDescriptor graph_;
};

}  // namespace commfuse::validate
