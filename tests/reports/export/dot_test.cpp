// SPDX-License-Identifier: Apache-2.0
#include "reports/export/dot.h"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "tests/reports/export/exported.h"

namespace commfuse::test {
namespace {

using reports::to_dot;

struct Edge {
  std::string from, to, attributes;
};

/// Contents of a graph, read line by line; a line of any other form is an error.
struct Graph {
  std::map<std::string, std::string> nodes;  // name to label
  std::map<std::string, std::string> cluster_of;
  std::vector<Edge> edges;
  std::string label;

  explicit Graph(const std::string& text) {
    const std::string quoted = R"rx("((?:[^"\\]|\\.)*)")rx";
    const std::regex cluster(R"(  subgraph cluster_(r[0-9]+) \{)");
    const std::regex name("  label=" + quoted + ";");
    const std::regex cluster_name("    label=" + quoted + ";");
    const std::regex node(R"(    (r[0-9]+_op[0-9]+) \[label=)" + quoted + ", fillcolor=" + quoted + R"(\];)");
    const std::regex edge(R"( +(r[0-9]+_op[0-9]+) -> (r[0-9]+_op[0-9]+)(?: \[([^\]]*)\])?;)");
    std::istringstream in(text);
    std::string line;
    std::getline(in, line);
    EXPECT_EQ(line, "digraph schedule {");
    int open_braces = 1;
    std::string open_cluster;
    while (std::getline(in, line)) {
      std::smatch match;
      if (std::regex_match(line, match, cluster)) {
        ++open_braces;
        open_cluster = match[1];
      } else if (std::regex_match(line, match, node)) {
        EXPECT_TRUE(nodes.emplace(match[1], match[2]).second) << line;
        cluster_of[match[1]] = open_cluster;
      } else if (std::regex_match(line, match, edge)) {
        edges.push_back({match[1], match[2], match[3]});
      } else if (std::regex_match(line, match, name)) {
        label = match[1];
      } else if (line == "  }" || line == "}") {
        --open_braces;
      } else {
        EXPECT_TRUE(std::regex_match(line, cluster_name) || line.rfind("  rankdir=", 0) == 0 ||
                    line.rfind("  node [", 0) == 0)
            << line;
      }
    }
    EXPECT_EQ(open_braces, 0);
    for (const Edge& checked : edges) {
      EXPECT_TRUE(nodes.contains(checked.from) && nodes.contains(checked.to)) << checked.from << " -> " << checked.to;
    }
  }

  [[nodiscard]] std::set<std::pair<std::string, std::string>> edges_with(const std::string& attribute) const {
    std::set<std::pair<std::string, std::string>> pairs;
    for (const Edge& edge : edges) {
      if (attribute.empty() ? edge.attributes.empty() : edge.attributes.find(attribute) != std::string::npos) {
        pairs.emplace(edge.from, edge.to);
      }
    }
    return pairs;
  }
};

using Pairs = std::set<std::pair<std::string, std::string>>;

Graph graph_of(Program program, const std::vector<Rank>& ranks) {
  return Graph(to_dot(lower(std::make_shared<const Program>(std::move(program))), ranks));
}

TEST(Dot, DrawsOpsWaitsLanesAndMessages) {
  // Each rank has exchange 0, GEMM 1 and GEMM 2, which waits for 0 and, on its lane, for 1.
  const Graph graph = graph_of(one_site("commfuse", SiteKind::ag_gemm, 2), {0, 1});
  EXPECT_EQ(graph.label, "commfuse (ring) site");
  EXPECT_EQ(graph.nodes.size(), 6U);
  EXPECT_EQ(graph.nodes.at("r0_op0"), R"(op 0: exchange site.gathered; to 1, from 1\ncomm)");
  EXPECT_EQ(graph.nodes.at("r1_op2"), R"(op 2: gemm site[0]\ncompute)");
  EXPECT_EQ(graph.cluster_of.at("r1_op2"), "r1");
  EXPECT_EQ(graph.edges_with(""), (Pairs{{"r0_op0", "r0_op2"}, {"r1_op0", "r1_op2"}}));
  EXPECT_EQ(graph.edges_with("style=dotted"), (Pairs{{"r0_op1", "r0_op2"}, {"r1_op1", "r1_op2"}}));
  EXPECT_EQ(graph.edges_with("#0072B2"), (Pairs{{"r0_op0", "r1_op0"}, {"r1_op0", "r0_op0"}}));
}

TEST(Dot, DrawsOnlyTheRequestedRanks) {
  const Graph graph = graph_of(one_site("commfuse", SiteKind::ag_gemm, 4), {1, 2});
  EXPECT_EQ(graph.nodes.size(), 2U * 7);
  for (const auto& [from, to] : graph.edges_with("#0072B2")) {
    EXPECT_EQ(from.substr(0, 2), "r1");  // the ring sends upwards; edges to 3 and from 0 are not drawn
    EXPECT_EQ(to.substr(0, 2), "r2");
  }
  EXPECT_EQ(graph.edges_with("#0072B2").size(), 3U);
}

TEST(Dot, JoinsTheMembersOfACollectiveThatAreDrawn) {
  const Graph graph = graph_of(one_collective(CollectiveKind::all_reduce, 4), {0, 1, 3});
  EXPECT_EQ(graph.edges_with("#D55E00"), (Pairs{{"r0_op0", "r1_op0"}, {"r1_op0", "r3_op0"}}));
}

TEST(Dot, SpecialCharactersInNamesAreEscaped) {
  Program program = one_site("serial", SiteKind::ag_gemm, 1);
  program.name = "a \"quoted\" name\\n";
  program.buffers.back().name = "y\"; evil -> edge [label=\"";
  const Graph graph = graph_of(std::move(program), {0});
  EXPECT_EQ(graph.label, R"(a \"quoted\" name\\n)");
  EXPECT_EQ(graph.nodes.size(), graph.cluster_of.size());
  EXPECT_TRUE(graph.edges_with("evil").empty());
}

TEST(Dot, EveryScheduleIsAGraph) {
  for (const Strategy& strategy : strategies()) {
    for (const StrategyOptions& options : schedules_to_try(strategy, kinds_of(Scope::layer), 3)) {
      const Program program = generated(Scope::layer, 3, strategy, options);
      SCOPED_TRACE(program.name);
      EXPECT_EQ(graph_of(program, {0, 1, 2}).nodes.size(), 3 * program.ops.size());
    }
  }
}

}  // namespace
}  // namespace commfuse::test
