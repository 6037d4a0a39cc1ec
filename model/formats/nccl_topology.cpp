// SPDX-License-Identifier: Apache-2.0
// Reads NCCL's topology as NCCL_TOPO_DUMP_FILE writes it (NCCL 2.28.9, src/graph/xml.cc and topo.cc):
//
//   <system version="1">
//     <cpu numaid="0" ...>
//       <pci busid="0000:0a:00.0" class="0x060400" link_speed="32.0 GT/s PCIe" link_width="16">   a PCIe switch
//         <pci busid="0000:0c:00.0" class="0x030200" link_speed="32.0 GT/s PCIe" link_width="16">
//           <gpu dev="0" sm="90" ...>
//             <nvlink target="0000:e2:00.0" count="4" tclass="0x068000"/>   to an NVSwitch, otherwise to a GPU's busid
//           </gpu>
//         </pci>
//         <pci ...> <nic> <net name="mlx5_0" .../> </nic> </pci>
//
// RCCL writes the same format with <gpu ... gcn="gfx942" arch="...">, and <xgmi target= count= tclass=> in place of
// nvlink. The link_speed and link_width of a pci describe the link to its parent. All NVSwitches count as one crossbar,
// as in NCCL.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <pugixml.hpp>
#include <utility>

#include "model/config_error.h"
#include "model/formats/topology_file.h"
#include "model/text/quantity.h"
#include "model/text/suggest.h"
#include "model/text/yaml_document.h"

namespace commfuse {

namespace {

constexpr std::string_view how_a_topology_is_made = "let NCCL write the file, with NCCL_TOPO_DUMP_FILE";

constexpr std::size_t max_cpus = 64;
constexpr std::size_t deepest_bus = 32;
constexpr int deepest_element = 64;  // below a CPU, including elements other than switches

/// Rate of one NVLink in one direction, for GPUs of this compute capability or later. Data sheets give both directions
/// of all links: P100 160 GB/s over 4 links, V100 300 over 6, A100 600 over 12, RTX 3090 112.5 over 4, H100 900 over
/// 18, B200 1800 over 18.
struct NvlinkRate {
  int sm;
  BytesPerSecond rate;
};
constexpr std::array nvlink_rates{NvlinkRate{60, {20e9}},      NvlinkRate{70, {25e9}}, NvlinkRate{80, {25e9}},
                                  NvlinkRate{86, {14.0625e9}}, NvlinkRate{90, {25e9}}, NvlinkRate{100, {50e9}}};

/// Rate of one xGMI link in one direction, by architecture. AMD's data sheets give both directions: MI100 92 GB/s,
/// MI250X 100, MI300X 128, MI355X 153.6.
struct XgmiRate {
  std::string_view gcn;
  BytesPerSecond rate;
};
constexpr std::array xgmi_rates{XgmiRate{"gfx908", {46e9}},  XgmiRate{"908", {46e9}},    XgmiRate{"gfx90a", {50e9}},
                                XgmiRate{"910", {50e9}},     XgmiRate{"gfx942", {64e9}}, XgmiRate{"942", {64e9}},
                                XgmiRate{"gfx950", {76.8e9}}};

/// An element that NCCL and RCCL write. `attributes` lists the attributes that are read here, and those that do not
/// describe links between GPUs (kind of CPU, vendor of a device, ranks, GPUDirect support). Elements below a NIC are
/// not checked, because only the distances of NICs are used. c2c is the link of a GPU to its own CPU.
struct KnownElement {
  std::string_view name;
  std::vector<std::string_view> attributes;
  std::vector<std::string_view> children;
};

std::vector<KnownElement> known_elements() {
  return {{"system", {"version", "name"}, {"cpu"}},
          {"cpu", {"numaid", "affinity", "arch", "vendor", "familyid", "modelid", "host_hash"}, {"pci", "nic"}},
          {"pci",
           {"busid", "class", "vendor", "device", "subsystem_vendor", "subsystem_device", "link_speed", "link_width"},
           {"pci", "gpu", "nic", "pcilink"}},
          {"gpu", {"dev", "sm", "gcn", "arch", "rank", "gdr"}, {"nvlink", "xgmi", "c2c"}},
          {"nvlink", {"target", "count", "tclass"}, {}},
          {"xgmi", {"target", "count", "tclass"}, {}},
          {"c2c", {"bw", "count"}, {}},
          {"pcilink", {"target"}, {}}};
}

constexpr std::string_view remove_it = "remove it from the file if it does not describe links between GPUs";

/// Root element of another program's XML, and a description for messages.
struct OtherRoot {
  std::string_view name;
  std::string_view what;
};
constexpr std::array other_roots{
    OtherRoot{"graphs", "these are the rings and trees that NCCL chose (NCCL_GRAPH_DUMP_FILE), not the links"},
    OtherRoot{"topology", "this is the XML of lstopo, which does not state the rates of links between GPUs"},
    OtherRoot{"nvidia_smi_log", "this is `nvidia-smi -q -x`, which does not describe the links between GPUs"}};

/// Returns the bytes per second of one PCIe lane with this many transfers per second. The line coding is 8b/10b up to
/// generation 2 and 128b/130b from generation 3; generation 6 carries 242 bytes in blocks of 256.
double bytes_per_lane(double transfers) {
  const double coding = transfers < 8e9 ? 8.0 / 10.0 : transfers < 64e9 ? 128.0 / 130.0 : 242.0 / 256.0;
  return transfers * coding / 8.0;
}

class Reader {
 public:
  Reader(const std::string& path, const std::string& text, const WireRates& rates)
      : path_(path), text_(text), rates_(rates) {}

  NodeWires read() {
    pugi::xml_document document;
    const pugi::xml_parse_result result = document.load_buffer(text_.data(), text_.size());
    if (!result) {
      refuse(static_cast<std::size_t>(result.offset),
             fmt::format("this is not XML ({}); {}", result.description(), how_a_topology_is_made));
    }
    const pugi::xml_node system = document.child("system");
    if (!system) {
      refuse_root(document);
    }
    require_one_host(system);
    number_gpus(system);
    add_crossbar();
    for (const pugi::xml_node cpu : system.children("cpu")) {
      add_cpu(cpu);
    }
    join_gpus();
    refuse_switch_links(system);
    check_element(system, 0);
    wires_.nic_of_gpu = nearest_nics(nic_distances());
    return std::move(wires_);
  }

 private:
  struct Gpu {
    pugi::xml_node element;
    std::string bus;
    std::vector<int> above;  // vertices above it, from its CPU down
  };

  [[noreturn]] void refuse(std::size_t offset, const std::string& message) const {
    const std::string_view before = std::string_view(text_).substr(0, offset);
    const auto line = std::count(before.begin(), before.end(), '\n');
    const std::size_t start = before.rfind('\n') + 1;  // 0 where there is none
    throw ConfigError(at_place(path_, {static_cast<int>(line) + 1, static_cast<int>(offset - start) + 1}, message));
  }
  /// Reports a mistake at the element's '<'.
  [[noreturn]] void refuse(const pugi::xml_node& element, const std::string& message) const {
    refuse(static_cast<std::size_t>(std::max<std::ptrdiff_t>(element.offset_debug() - 1, 0)), message);
  }

  [[noreturn]] void refuse_root(const pugi::xml_document& document) const {
    const std::string_view name = document.document_element().name();
    const auto* const other =
        std::find_if(other_roots.begin(), other_roots.end(), [&](const OtherRoot& root) { return root.name == name; });
    refuse(0, fmt::format("{}; {}", other == other_roots.end() ? "no <system> element" : other->what,
                          how_a_topology_is_made));
  }

  /// Refuses unknown attributes and elements, down to the NICs.
  void check_element(const pugi::xml_node& element, int depth) const {
    if (depth > deepest_element) {
      refuse(element, fmt::format("more than {} levels of elements; {}", deepest_element, how_a_topology_is_made));
    }
    const std::string_view name = element.name();
    const auto known = std::find_if(known_.begin(), known_.end(),
                                    [&](const KnownElement& candidate) { return candidate.name == name; });
    if (known == known_.end()) {
      return;  // a NIC
    }
    const auto contains = [](const std::vector<std::string_view>& names, std::string_view wanted) {
      return std::find(names.begin(), names.end(), wanted) != names.end();
    };
    for (const pugi::xml_attribute attribute : element.attributes()) {
      if (!contains(known->attributes, attribute.name())) {
        refuse(element, fmt::format("unknown attribute {} of <{}>; {}", in_quotes(attribute.name()), name, remove_it));
      }
    }
    for (const pugi::xml_node child : element.children()) {
      if (child.type() == pugi::node_element && !contains(known->children, child.name())) {
        refuse(child, fmt::format("unknown element {} in <{}>; {}", in_quotes(child.name()), name, remove_it));
      }
      check_element(child, depth + 1);
    }
  }

  /// Refuses a file of several hosts: NCCL merges the files of all nodes of one NVLink domain (NVL72).
  void require_one_host(const pugi::xml_node& system) const {
    std::string_view first;
    for (const pugi::xml_node cpu : system.children("cpu")) {
      const std::string_view host = cpu.attribute("host_hash").value();
      if (!first.empty() && !host.empty() && host != first) {
        refuse(cpu,
               "this CPU and the previous one are in different hosts (host_hash); let NCCL write the file of one node, "
               "with NCCL_MNNVL_ENABLE=0, or write `kind: nvswitch` for a rack");
      }
      first = host.empty() ? first : host;
    }
  }

  int whole_number(const pugi::xml_node& element, const char* name, int least, int largest) const {
    const std::string_view text = element.attribute(name).value();
    const std::optional<std::int64_t> number = parse_integer(text);
    if (!number || *number < least || *number > largest) {
      refuse(element, fmt::format("{} of {} is {}; write a whole number from {} to {}", name, element.name(),
                                  in_quotes(text), least, largest));
    }
    return static_cast<int>(*number);
  }

  /// Numbers the GPUs by `dev`, regardless of their order in the file.
  void number_gpus(const pugi::xml_node& system) {
    std::map<int, pugi::xml_node> by_device;
    for (const pugi::xpath_node& match : system.select_nodes(".//gpu")) {
      const pugi::xml_node gpu = match.node();
      const int device = whole_number(gpu, "dev", 0, 1023);
      if (!gpu.parent().attribute("busid") || !gpu.select_node("ancestor::cpu")) {
        refuse(gpu,
               fmt::format("GPU {} is not in a <pci> with a busid inside a <cpu>; {}", device, how_a_topology_is_made));
      }
      if (!by_device.emplace(device, gpu).second) {
        refuse(gpu, fmt::format("GPU {} appears twice; give every GPU a different dev", device));
      }
    }
    if (by_device.empty()) {
      refuse(system, fmt::format("no <gpu> element; {}", how_a_topology_is_made));
    }
    if (by_device.size() > max_gpus_of_a_file) {
      refuse(system, fmt::format("{} GPUs are too many; give the file of one node with up to {} GPUs", by_device.size(),
                                 max_gpus_of_a_file));
    }
    for (const auto& [device, element] : by_device) {
      const std::string bus = element.parent().attribute("busid").value();
      if (gpu_at(bus)) {
        refuse(element.parent(),
               fmt::format("busid {} belongs to two GPUs; give every GPU a different busid", in_quotes(bus)));
      }
      gpus_.push_back({element, bus, {}});
    }
    wires_.gpus = static_cast<int>(gpus_.size());
  }

  int add(VertexKind kind) {
    wires_.others.push_back(kind);
    return wires_.gpus + static_cast<int>(wires_.others.size()) - 1;
  }
  void join(int a, int b, BytesPerSecond rate) { wires_.edges.push_back({a, b, rate}); }

  /// Returns true if the link leads to a switch. NCCL writes the class of the target; without a class, as on cloud
  /// machines that hide their switches, the target is a switch if its address is not a GPU's.
  [[nodiscard]] bool goes_to_a_switch(const pugi::xml_node& link) const {
    const std::string_view kind = link.attribute("tclass").value();
    return kind.empty() ? !gpu_at(link.attribute("target").value())
                        : kind.substr(0, 6) == "0x0680" && kind != "0x068001";
  }
  [[nodiscard]] std::optional<int> gpu_at(std::string_view bus) const {
    const auto match = std::find_if(gpus_.begin(), gpus_.end(), [&](const Gpu& gpu) { return gpu.bus == bus; });
    return match == gpus_.end() ? std::nullopt : std::optional(static_cast<int>(match - gpus_.begin()));
  }

  /// Adds the crossbar before all bridges, so that a route prefers it to a PCIe switch with the same number of hops.
  void add_crossbar() {
    int crossbar = -1;
    for (std::size_t i = 0; i < gpus_.size(); ++i) {
      int links = 0;
      for (const pugi::xml_node link : links_of(gpus_[i])) {
        links += goes_to_a_switch(link) ? link_count(link) : 0;
      }
      if (links > 0) {
        crossbar = crossbar < 0 ? add(VertexKind::crossbar) : crossbar;
        join(static_cast<int>(i), crossbar, {links * nvlink_rate(gpus_[i].element).value});
      }
    }
  }

  /// Returns the GPU's NVLinks, or the xGMI links that RCCL writes instead.
  [[nodiscard]] static std::vector<pugi::xml_node> links_of(const Gpu& gpu) {
    std::vector<pugi::xml_node> links;
    for (const char* const tag : {"nvlink", "xgmi"}) {
      const auto children = gpu.element.children(tag);
      links.insert(links.end(), children.begin(), children.end());
    }
    return links;
  }

  [[nodiscard]] BytesPerSecond xgmi_rate(const pugi::xml_node& gpu) const {
    const std::string_view gcn = gpu.attribute("gcn").value();
    const auto* const known = std::find_if(xgmi_rates.begin(), xgmi_rates.end(), [&](const XgmiRate& entry) {
      return gcn.substr(0, entry.gcn.size()) == entry.gcn;  // matches "gfx90a:sramecc+:xnack-"; old files have a number
    });
    if (known == xgmi_rates.end()) {
      refuse(
          gpu,
          fmt::format(
              "the rate of an xGMI link of gcn {} is unknown; set nvlink_rate, the rate of one link, next to the file",
              in_quotes(gcn)));
    }
    return known->rate;
  }

  [[nodiscard]] int link_count(const pugi::xml_node& link) const { return whole_number(link, "count", 1, 64); }

  [[nodiscard]] BytesPerSecond nvlink_rate(const pugi::xml_node& gpu) const {
    if (rates_.nvlink) {
      return *rates_.nvlink;
    }
    if (gpu.child("xgmi")) {
      return xgmi_rate(gpu);
    }
    const int sm = whole_number(gpu, "sm", 10, 999);
    if (sm < nvlink_rates.front().sm) {
      refuse(gpu, fmt::format("the rate of an NVLink of sm {} is unknown; set nvlink_rate next to the file", sm));
    }
    const auto above =
        std::find_if(nvlink_rates.begin(), nvlink_rates.end(), [&](const NvlinkRate& entry) { return entry.sm > sm; });
    return (above - 1)->rate;
  }

  /// Returns what a message calls a link of these GPUs.
  [[nodiscard]] std::string_view link_noun(int gpu, int other) const {
    const auto has_xgmi = [&](int i) { return !gpus_[static_cast<std::size_t>(i)].element.child("xgmi").empty(); };
    return has_xgmi(gpu) || has_xgmi(other) ? "xGMI link" : "NVLink";
  }

  /// Returns the number of links that a GPU lists to another GPU. Ignores links to devices that are not GPUs of the
  /// file.
  [[nodiscard]] int links_between(int gpu, int other) const {
    int links = 0;
    for (const pugi::xml_node link : links_of(gpus_[static_cast<std::size_t>(gpu)])) {
      if (!goes_to_a_switch(link) && gpu_at(link.attribute("target").value()) == other) {
        links += link_count(link);
      }
    }
    return links;
  }

  /// Joins GPUs with links between them. Both GPUs must list the same number of links.
  void join_gpus() {
    for (int a = 0; a < wires_.gpus; ++a) {
      const pugi::xml_node element = gpus_[static_cast<std::size_t>(a)].element;
      if (links_between(a, a) > 0) {
        refuse(element, fmt::format("an {} connects this GPU to itself; set its target to the busid of the other GPU",
                                    link_noun(a, a)));
      }
      for (int b = a + 1; b < wires_.gpus; ++b) {
        const int links = links_between(a, b);
        if (links != links_between(b, a)) {
          refuse(element,
                 fmt::format("this GPU lists {} {}{} to {}, which lists {} in return; {}", links, link_noun(a, b),
                             links == 1 ? "" : "s", in_quotes(gpus_[static_cast<std::size_t>(b)].bus),
                             links_between(b, a), how_a_topology_is_made));
        }
        if (links > 0) {
          join(a, b, {links * nvlink_rate(element).value});
        }
      }
    }
  }

  /// Refuses links between PCIe switches (Broadcom) if any GPU has no NVLinks, because its data may use them.
  void refuse_switch_links(const pugi::xml_node& system) const {
    const pugi::xml_node link = system.select_node(".//pcilink").node();
    const bool all_linked =
        std::all_of(gpus_.begin(), gpus_.end(), [](const Gpu& gpu) { return !links_of(gpu).empty(); });
    if (link && !all_linked) {
      refuse(link,
             "this PCIe switch is linked to another switch, which this program does not model; remove <pcilink> from "
             "the file to connect the GPUs through the CPU");
    }
  }

  void add_cpu(const pugi::xml_node& cpu) {
    if (roots_.size() == max_cpus) {
      refuse(cpu, fmt::format("more than {} CPUs; give the file of one node", max_cpus));
    }
    const int root = add(VertexKind::root);
    for (const int other : roots_) {
      if (rates_.root) {
        join(other, root, *rates_.root);
      }
    }
    roots_.push_back(root);
    std::vector<int> above{root};
    add_below(cpu, above, 0);
  }

  /// Adds the devices below an element. `above` lists the vertices from the CPU down to the element; `depth` is the
  /// number of elements between the CPU and the element.
  void add_below(const pugi::xml_node& element, std::vector<int>& above, int depth) {
    if (above.size() > deepest_bus) {
      refuse(element, fmt::format("more than {} levels of PCIe switches; {}", deepest_bus, how_a_topology_is_made));
    }
    if (depth > deepest_element) {
      refuse(element, fmt::format("more than {} levels of elements; {}", deepest_element, how_a_topology_is_made));
    }
    for (const pugi::xml_node child : element.children()) {
      const std::string_view tag = child.name();
      if (tag == "pci" && child.child("pci")) {
        const int bridge = add(VertexKind::bridge);
        join(bridge, above.back(), pcie_rate(child));
        above.push_back(bridge);
        add_below(child, above, depth + 1);
        above.pop_back();
      } else if (tag == "pci" || tag == "nic") {
        add_below(child, above, depth + 1);
      } else if (tag == "gpu") {
        const int gpu = *gpu_at(element.attribute("busid").value());
        gpus_[static_cast<std::size_t>(gpu)].above = above;
        join(gpu, above.back(), pcie_rate(element));
      } else if (tag == "net") {
        nics_.push_back(above);
      }
    }
  }

  /// Returns the rate of an element's link to its parent. NCCL leaves values empty that the system hides, as in a
  /// virtual machine, and assumes 16 lanes of generation 3.
  [[nodiscard]] BytesPerSecond pcie_rate(const pugi::xml_node& pci) const {
    if (rates_.pcie) {
      return *rates_.pcie;
    }
    const std::string_view speed = pci.attribute("link_speed").value();
    const std::string_view width = pci.attribute("link_width").value();
    double transfers = 8e9;
    if (!speed.empty() && speed.substr(0, 7) != "Unknown") {
      const std::optional<double> giga = parse_number(speed.substr(0, speed.find(' ')));
      if (!giga || *giga <= 0.0 || *giga > 256.0 || speed.find("GT/s") == std::string_view::npos) {
        refuse(pci, fmt::format("link_speed {} is not a PCIe speed; write, for example, \"16.0 GT/s PCIe\"",
                                in_quotes(speed)));
      }
      transfers = *giga * 1e9;
    }
    const int lanes = width.empty() || width == "0" ? 16 : whole_number(pci, "link_width", 1, 32);
    return {lanes * bytes_per_lane(transfers)};
  }

  /// Returns the distance of each GPU from each NIC: the number of vertices that only one of their paths up to the CPU
  /// has, plus 1,000 if they are below different CPUs.
  [[nodiscard]] std::vector<std::vector<int>> nic_distances() const {
    std::vector<std::vector<int>> distances;
    for (const Gpu& gpu : gpus_) {
      std::vector<int> gpu_distances;
      for (const std::vector<int>& nic : nics_) {
        const auto branches = std::mismatch(gpu.above.begin(), gpu.above.end(), nic.begin(), nic.end());
        const auto steps = (gpu.above.end() - branches.first) + (nic.end() - branches.second);
        const bool shares_cpu = branches.first != gpu.above.begin();
        gpu_distances.push_back(static_cast<int>(steps) + (shares_cpu ? 0 : 1000));
      }
      distances.push_back(std::move(gpu_distances));
    }
    return distances;
  }

  const std::string& path_;
  const std::string& text_;
  const WireRates& rates_;
  NodeWires wires_;
  std::vector<KnownElement> known_ = known_elements();
  std::vector<Gpu> gpus_;
  std::vector<int> roots_;
  std::vector<std::vector<int>> nics_;  // for each NIC, the vertices above it
};

}  // namespace

NodeWires read_nccl_topology(const std::string& path, const std::string& text, const WireRates& rates) {
  return Reader(path, text, rates).read();
}

}  // namespace commfuse
