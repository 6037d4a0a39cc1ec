// SPDX-License-Identifier: Apache-2.0
// A node's /proc, /sys and /dev as files in a temporary folder: GPUs and NICs behind PCIe switches, RDMA ports.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace commfuse::test {

class PlantedNode {
 public:
  PlantedNode() {
    std::string name = (std::filesystem::temp_directory_path() / "commfuse-node-XXXXXX").string();
    root_ = mkdtemp(name.data());
    write("proc/sys/kernel/hostname", "node-1");
    write("proc/sys/kernel/osrelease", "6.1.0-18-amd64");
    write("proc/cmdline", "quiet");
    write("sys/devices/system/node/online", "0-1");
  }
  PlantedNode(const PlantedNode&) = delete;
  PlantedNode& operator=(const PlantedNode&) = delete;
  ~PlantedNode() { std::filesystem::remove_all(root_); }

  /// Plants two healthy GPUs and two healthy NICs, one of each per NUMA node and PCIe switch.
  void plant_healthy_node() {
    plant_driver("550.54.15");
    write("sys/module/nvidia_peermem/version", "550.54.15");
    write("dev/kmsg", "6,1,0,-;Linux version 6.1.0\n");
    for (const char* const numa : {"0", "1"}) {
      const std::string bus = std::string("pci0000:0") + numa;
      const std::string root_port = bus + "/0000:0" + numa + ":01.0";
      const std::string upper = root_port + "/0000:1" + numa + ":00.0";
      plant_bridge(root_port, "32.0 GT/s PCIe", "16");
      plant_bridge(upper, "32.0 GT/s PCIe", "16");
      plant_bridge(upper + "/0000:2" + numa + ":00.0", "32.0 GT/s PCIe", "16");
      plant_bridge(upper + "/0000:2" + numa + ":01.0", "32.0 GT/s PCIe", "16");
      plant_gpu(upper + "/0000:2" + numa + ":00.0/0000:3" + numa + ":00.0", numa);
      plant_nic(upper + "/0000:2" + numa + ":01.0/0000:4" + numa + ":00.0", numa, std::string("mlx5_") + numa);
    }
  }
  void plant_driver(const std::string& version) const {
    write("sys/module/nvidia/version", version);
    write("proc/driver/nvidia/version", "NVRM version: NVIDIA UNIX x86_64 Kernel Module  " + version);
  }
  /// Plants a PCI function in the folder `place` below sys/devices.
  void plant_function(const std::string& place, const std::string& code, const std::string& vendor) const {
    const std::string folder = "sys/devices/" + place;
    write(folder + "/class", code);
    write(folder + "/vendor", vendor);
    set_link(folder, "32.0 GT/s PCIe", "16");
    const std::string name = std::filesystem::path(place).filename();
    std::filesystem::create_directories(root_ / "sys/bus/pci/devices");
    std::filesystem::create_symlink("../../../devices/" + place, root_ / "sys/bus/pci/devices" / name);
  }
  void plant_bridge(const std::string& place, const std::string& speed, const std::string& width,
                    unsigned char redirection = 0) const {
    plant_function(place, "0x060400", "0x1000");
    set_link("sys/devices/" + place, speed, width);
    write_acs("sys/devices/" + place, redirection);
  }
  void plant_gpu(const std::string& place, const std::string& numa) const {
    plant_function(place, "0x030200", "0x10de");
    write("sys/devices/" + place + "/numa_node", numa);
    write("sys/bus/pci/drivers/nvidia/module", "");
    std::filesystem::create_symlink("/sys/bus/pci/drivers/nvidia", root_ / "sys/devices" / place / "driver");
  }
  void plant_nic(const std::string& place, const std::string& numa, const std::string& name) const {
    plant_function(place, "0x020700", "0x15b3");
    write("sys/devices/" + place + "/numa_node", numa);
    write("sys/devices/" + place + "/infiniband/" + name + "/node_type", "1: CA");
    const std::string folder = "sys/class/infiniband/" + name;
    write(folder + "/fw_ver", "28.39.1002");
    write(folder + "/hca_type", "MT4129");
    write(folder + "/board_id", "MT_0000000838");
    set_port(name, "4: ACTIVE", "5: LinkUp", "400 Gb/sec (4X NDR)");
    write(folder + "/ports/1/link_layer", "InfiniBand");
  }
  void set_port(const std::string& nic, const std::string& state, const std::string& physical,
                const std::string& rate) const {
    const std::string folder = "sys/class/infiniband/" + nic + "/ports/1";
    write(folder + "/state", state);
    write(folder + "/phys_state", physical);
    write(folder + "/rate", rate);
  }
  /// Makes the NIC's port a RoCE port over `interface`, with GIDs of versions 1 and 2 of a link-local and of an IPv4
  /// address, in the order of Linux; congestion settings are as MLNX_OFED shows them.
  void make_roce(const std::string& nic, const std::string& interface, const std::string& ipv4) const {
    const std::string port = "sys/class/infiniband/" + nic + "/ports/1";
    write(port + "/link_layer", "Ethernet");
    for (int index = 0; index < 6; ++index) {
      write(port + "/gids/" + std::to_string(index), "0000:0000:0000:0000:0000:0000:0000:0000");
    }
    set_gid(nic, 0, "fe80:0000:0000:0000:0e42:a1ff:fe00:0001", "IB/RoCE v1", interface);
    set_gid(nic, 1, "fe80:0000:0000:0000:0e42:a1ff:fe00:0001", "RoCE v2", interface);
    set_gid(nic, 2, "0000:0000:0000:0000:0000:ffff:" + ipv4, "IB/RoCE v1", interface);
    set_gid(nic, 3, "0000:0000:0000:0000:0000:ffff:" + ipv4, "RoCE v2", interface);
    write("sys/class/net/" + interface + "/qos/trust", "dscp");
    for (int priority = 0; priority < 8; ++priority) {
      set_ecn(interface, priority, priority == 3 ? "1" : "0", priority == 3 ? "1" : "0");
    }
    write(port + "/hw_counters/np_ecn_marked_roce_packets", "17");
    write(port + "/hw_counters/packet_seq_err", "3");
  }
  void set_gid(const std::string& nic, int index, const std::string& address, const std::string& type,
               const std::string& interface) const {
    const std::string port = "sys/class/infiniband/" + nic + "/ports/1";
    const std::string name = std::to_string(index);
    write(port + "/gids/" + name, address);
    write(port + "/gid_attrs/types/" + name, type);
    write(port + "/gid_attrs/ndevs/" + name, interface);
  }
  void set_ecn(const std::string& interface, int priority, const std::string& notifies,
               const std::string& reacts) const {
    const std::string folder = "sys/class/net/" + interface + "/ecn";
    write(folder + "/roce_np/enable/" + std::to_string(priority), notifies);
    write(folder + "/roce_rp/enable/" + std::to_string(priority), reacts);
  }
  /// Sets the current and the maximum speed and width of a link.
  void set_link(const std::string& folder, const std::string& speed, const std::string& width) const {
    write(folder + "/current_link_speed", speed);
    write(folder + "/max_link_speed", speed);
    write(folder + "/current_link_width", width);
    write(folder + "/max_link_width", width);
  }
  /// Writes a configuration space with the ACS capability after AER, which comes first on real bridges.
  void write_acs(const std::string& folder, unsigned char redirection) const {
    std::string space(4096, '\0');
    space[0x100] = 0x01;  // AER, version 1, next at 0x148
    space[0x102] = static_cast<char>(0x81);
    space[0x103] = 0x14;
    space[0x148] = 0x0D;  // ACS, version 1, the last
    space[0x14A] = 0x01;
    space[0x14E] = static_cast<char>(redirection);
    write(folder + "/config", space);
  }
  void write(const std::filesystem::path& path, const std::string& text) const {
    std::filesystem::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path, std::ios::binary) << text << (text.size() == 4096 ? "" : "\n");
  }
  void remove(const std::filesystem::path& path) const { std::filesystem::remove_all(root_ / path); }
  [[nodiscard]] const std::filesystem::path& root() const { return root_; }

 private:
  std::filesystem::path root_;
};

}  // namespace commfuse::test
