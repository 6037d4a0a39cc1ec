// SPDX-License-Identifier: Apache-2.0
// Logs of nccl-tests and rccl-tests, records of commfuse-validate bench and links --copies, matrices of nvbandwidth and
// results of dcgmi diag, sorted by node.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/expect/evidence.h"
#include "model/hardware/machine.h"
#include "validate/verdict/tool_results.h"

namespace commfuse::validate {

/// The property that tells one node from another.
enum class NodeBy : std::uint8_t {
  host,  ///< Names of the hosts of a log's ranks; a run over several hosts belongs to all of them together.
  file,  ///< The file: for pods that all have the same name.
};

/// One node, or several that ran together.
struct NodeLog {
  std::string name;                ///< "node-7", "node-7+node-8".
  std::vector<std::string> hosts;  ///< One host for a node; for several nodes, in the order of ranks.
  std::vector<MeasuredMessage> rows;
  std::vector<std::string> wrong_results;  ///< "all_reduce.txt: line 14: 3 elements were wrong"
  std::vector<std::string> nccl_versions;  ///< Each once, as far as logs state it.
  std::vector<CopyTable> copies;           ///< From nvbandwidth and records of links --copies.
  std::vector<ToolFinding> findings;       ///< From nvbandwidth and dcgmi diag.
  bool has_passed_tests = false;           ///< From dcgmi diag.
};

/// Returns true for more hosts than fit on a line, such as those of a rack.
inline bool has_many_hosts(const NodeLog& log) { return log.hosts.size() > 3; }

struct NodeLogs {
  std::vector<NodeLog> nodes;            ///< In the order of their names.
  std::vector<std::string> unread;       ///< Sentences: files that could not be read, and why.
  std::vector<std::string> passed_over;  ///< Sentences about data that is not judged; with a count for rows.
};

/// Reads all files; files of other formats are reported as unread. Rows that cannot be judged, such as those that do
/// not fit the machine or the model, are reported in passed_over. If `machine` has a network, sets its number of nodes
/// to at least that of the largest run. A file of copies or of dcgmi diag that names no host belongs to a host that
/// another file names, if that host's name is a folder on the file's path, or the file's name up to its first dot:
/// node-7/dcgm.json, node-7.dcgm.json. Otherwise it is a node of its own.
NodeLogs read_node_logs(const std::vector<std::string>& files, NodeBy by, Machine& machine);

}  // namespace commfuse::validate
