// SPDX-License-Identifier: Apache-2.0
#include "model/formats/topology_file.h"

#include <algorithm>

#include "model/formats/topology_table.h"
#include "model/text/files.h"

namespace commfuse {

NodeWires read_topology_file(const std::string& path, const WireRates& rates) {
  const std::string text = read_small_file(path);
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first != std::string::npos && text[first] == '<') {
    return read_nccl_topology(path, text, rates);
  }
  return is_rocm_topology(text) ? read_rocm_topology(path, text, rates) : read_topology_matrix(path, text, rates);
}

std::vector<int> nearest_nics(const std::vector<std::vector<int>>& distances) {
  if (distances.empty() || distances.front().empty()) {
    return {};
  }
  std::vector<int> users(distances.front().size());
  std::vector<int> chosen;
  for (const std::vector<int>& gpu_distances : distances) {
    const int nearest = *std::min_element(gpu_distances.begin(), gpu_distances.end());
    std::size_t best = gpu_distances.size();
    for (std::size_t nic = 0; nic < gpu_distances.size(); ++nic) {
      if (gpu_distances[nic] == nearest && (best == gpu_distances.size() || users[nic] < users[best])) {
        best = nic;
      }
    }
    ++users[best];
    chosen.push_back(static_cast<int>(best));
  }
  for (int& nic : chosen) {
    nic = static_cast<int>(std::count_if(users.begin(), users.begin() + nic, [](int count) { return count > 0; }));
  }
  return chosen;
}

}  // namespace commfuse
