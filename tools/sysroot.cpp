#include "sysroot.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <iterator>
#include <optional>
#include <system_error>

#include <fmt/format.h>

#include "base/error.h"
#include "cluster/address.h"
#include "cluster/address_plan.h"
#include "cluster/counter_page.h"
#include "cluster/read_file.h"
#include "fault/look.h"
#include "like.h"
#include "profile/gid_layout.h"

namespace ringbolt::tools {
namespace {

constexpr const char* kNoNumber = "/no-counter";  // what every counter's file in the tree is
constexpr size_t kAttributeBytes = 4096;          // sysfs gives every file this size
constexpr size_t kMostAddresses = 8;              // as many as the device takes of an interface

void make_folder(const std::string& path) {
  if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) {
    throw base::Error(errno, "mkdir", path);
  }
}

/// Makes `root` and below it every folder of `path` ("a/b/c").
void make_folders(const std::string& root, const std::string& path) {
  make_folder(root);
  for (size_t slash = path.find('/'); slash != std::string::npos; slash = path.find('/', slash + 1)) {
    make_folder(root + "/" + path.substr(0, slash));
  }
  make_folder(root + "/" + path);
}

void make_link(const std::string& target, const std::string& path) {
  if (::symlink(target.c_str(), path.c_str()) != 0) {
    throw base::Error(errno, "symlink", path);
  }
}

std::string guid_words(uint64_t guid) {
  return fmt::format("{:04x}:{:04x}:{:04x}:{:04x}", guid >> 48U, (guid >> 32U) & 0xffffU, (guid >> 16U) & 0xffffU,
                     guid & 0xffffU);
}

std::string gid_words(const cluster::IpAddress& address) {
  std::string words;
  for (size_t i = 0; i < address.bytes.size(); i += 2) {
    words += fmt::format("{}{:02x}{:02x}", i == 0 ? "" : ":", address.bytes[i], address.bytes[i + 1]);
  }
  return words;
}

profile::GidKind kind_of(const cluster::IpAddress& one) {
  return one.is_link_local() ? profile::GidKind::link_local
         : one.is_ipv4()     ? profile::GidKind::ipv4
                             : profile::GidKind::other;
}

std::vector<cluster::IpAddress> emulated_addresses(const SysrootDevice& device) {
  std::vector<cluster::IpAddress> addresses{cluster::link_local_of(device.guid),
                                            cluster::IpAddress::from_ipv4(device.ipv4, 32)};
  if (device.like.look.gids == profile::GidLayout::apple || device.like.look.gids == profile::GidLayout::late) {
    // link_local_of() turns the universal bit, which this identifier has as it should be.
    constexpr uint64_t kUniversalBit = uint64_t{2} << 56U;
    addresses.push_back(cluster::link_local_of(profile::second_interface_id(device.guid) ^ kUniversalBit));
  }
  return addresses;
}

/// As the device fills its table: link-local, then IPv4, then the others, in the order of its profile.
std::vector<cluster::IpAddress> gid_table(const SysrootDevice& device) {
  std::vector<cluster::IpAddress> found = device.addresses.empty() ? emulated_addresses(device) : device.addresses;
  std::ranges::stable_sort(found, {}, kind_of);
  found.resize(std::min<size_t>(found.size(), kMostAddresses));
  std::vector<profile::GidKind> kinds;
  std::ranges::transform(found, std::back_inserter(kinds), kind_of);
  std::vector<cluster::IpAddress> table;
  for (const std::optional<size_t> slot : profile::gid_slots(device.like.look.gids, kinds)) {
    table.push_back(slot ? found[*slot] : cluster::IpAddress{});
  }
  if (!device.gid_order) {
    return table;
  }
  std::vector<cluster::IpAddress> ordered;
  for (const size_t index : *device.gid_order) {
    ordered.push_back(table[index]);
  }
  return ordered;
}

/// The kernel's text form of a rate: speed, lanes and the name of the lane's speed.
std::string rate_text(uint32_t speed_gbps) {
  return fmt::format("{} Gb/sec (4X {})", speed_gbps, speed_gbps <= 40 ? "QDR" : speed_gbps <= 100 ? "EDR" : "HDR");
}

void write_state(const std::string& port, bool is_up) {
  cluster::replace_file(port + "/state", is_up ? "4: ACTIVE\n" : "1: DOWN\n");
  cluster::replace_file(port + "/phys_state", is_up ? "5: LinkUp\n" : "2: Polling\n");
}

void make_port(const std::string& port, const SysrootDevice& device) {
  make_folders(port, "gid_attrs/types");
  make_folders(port, "gid_attrs/ndevs");
  make_folders(port, "gids");
  make_folders(port, "pkeys");
  write_state(port, true);
  cluster::write_new_file(port + "/link_layer", "Ethernet\n");
  cluster::write_new_file(port + "/pkeys/0", "0xffff\n");  // the default partition, the only one of the device
  cluster::write_new_file(port + "/lid", fmt::format("{:#x}\n", profile::shown_lid(device.like.look, device.guid)));
  cluster::write_new_file(port + "/rate", rate_text(device.speed_gbps) + "\n");
  const std::vector<cluster::IpAddress> gids = gid_table(device);
  const profile::Look& look = device.like.look;
  for (uint32_t index = 0; index < look.gid_table_length; ++index) {
    const cluster::IpAddress gid = index < gids.size() ? gids[index] : cluster::IpAddress{};
    cluster::write_new_file(fmt::format("{}/gids/{}", port, index), gid_words(gid) + "\n");
    if (gid.bytes != cluster::IpAddress{}.bytes) {  // an empty slot has no attributes, as in the kernel
      cluster::write_new_file(fmt::format("{}/gid_attrs/types/{}", port, index),
                              profile::is_version_1(look.gids, index) ? "IB/RoCE v1\n" : "RoCE v2\n");
      cluster::write_new_file(fmt::format("{}/gid_attrs/ndevs/{}", port, index), device.netdev + "\n");
    }
  }
}

/// Names alone: the shim reads the numbers when a program opens one. All are one file, as a mesh of many nodes has
/// many.
void make_counters(const std::string& path, const std::string& port, const SysrootDevice& device) {
  make_folders(port, "counters");
  make_folders(port, "hw_counters");
  for (const RingboltCounter& counter : cluster::all_counters()) {
    const std::string file = fmt::format("{}/{}/{}", port, counter.folder, counter.name);
    if (::link((path + kNoNumber).c_str(), file.c_str()) != 0) {
      throw base::Error(errno, "link", file);
    }
  }
  make_link(device.counter_path, path + "/counters/" + device.name);
}

void make_device(const std::string& path, const SysrootDevice& device, size_t index) {
  const std::string folder = fmt::format("{}/sys/class/infiniband/{}", path, device.name);
  make_folders(folder, "device/net/" + device.netdev);
  make_folders(folder, "ports/1");
  cluster::write_new_file(folder + "/node_type", "1: CA\n");
  const std::string guid =
      guid_words(profile::shown_guid(device.like.look, device.guid, static_cast<uint32_t>(index))) + "\n";
  cluster::write_new_file(folder + "/node_guid", guid);
  cluster::write_new_file(folder + "/sys_image_guid", guid);
  cluster::write_new_file(folder + "/device/numa_node", "-1\n");
  cluster::write_new_file(folder + "/device/vendor", "0xffff\n");
  cluster::write_new_file(folder + "/device/device", "0x0000\n");
  make_port(folder + "/ports/1", device);
  make_counters(path, folder + "/ports/1", device);

  // Programs check that the node is a character device which they may open for reading and writing, no more.
  const std::string uverbs = fmt::format("uverbs{}", index);
  make_link("/dev/null", fmt::format("{}/dev/infiniband/{}", path, uverbs));
  const std::string verbs_folder = fmt::format("{}/sys/class/infiniband_verbs/{}", path, uverbs);
  make_folder(verbs_folder);
  cluster::write_new_file(verbs_folder + "/ibdev", device.name + "\n");
}

void fill(const std::string& path, const std::vector<SysrootDevice>& devices) {
  make_folders(path, "sys/class/infiniband");
  make_folders(path, "sys/class/infiniband_verbs");
  make_folders(path, "dev/infiniband");
  make_folders(path, "counters");
  cluster::write_new_file(path + kNoNumber, std::string(kAttributeBytes, '\0'));
  ::chmod((path + kNoNumber).c_str(), 0444);
  make_link("/dev/null", path + "/dev/infiniband/rdma_cm");  // UCX asks for it before it loads its connection manager
  for (size_t index = 0; index < devices.size(); ++index) {
    make_device(path, devices[index], index);
  }
}

}  // namespace

std::vector<SysrootDevice> sysroot_devices(const cluster::RuntimeDir& dir, const cluster::Cluster& model,
                                           const cluster::NodeSpec& spec, const fault::Plan& looks) {
  const profile::Profile like = profile_of(spec.like);
  std::vector<fault::Place> places;
  for (const cluster::PortSpec& port : spec.ports) {
    places.push_back({spec.node, port.cable, port.device, port.peer_node});
  }
  const std::vector<std::string> names = fault::device_names(looks, places);
  std::vector<SysrootDevice> devices;
  for (const cluster::PortSpec& port : spec.ports) {
    SysrootDevice device;
    device.name = names[devices.size()];
    device.guid = port.guid;
    device.ipv4 = port.ipv4;
    device.speed_gbps = port.speed_gbps;
    device.like = like;
    device.counter_path = dir.counter_file(model.name, spec.node, port.device);
    if (!port.netdev.empty()) {
      const std::vector<cluster::Port>& ports = model.nodes[spec.node].ports;
      device.netdev = port.netdev;
      device.addresses = std::ranges::find(ports, port.device, &cluster::Port::name)->addresses;
    }
    if (!looks.rules.empty()) {
      device.gid_order = fault::gid_order(looks, places[devices.size()], gid_table(device).size());
    }
    devices.push_back(std::move(device));
  }
  if (spec.n_overlay_nodes != 0) {
    SysrootDevice device;
    device.name = cluster::kOverlayDevice;
    device.guid = cluster::overlay_guid(spec.node);
    device.ipv4 = cluster::overlay_ipv4(spec.node);
    device.speed_gbps = 100;
    device.counter_path = dir.counter_file(model.name, spec.node, device.name);
    devices.push_back(std::move(device));
  }
  return devices;
}

SysrootDevice local_device(const cluster::RuntimeDir& dir, const profile::Profile& like) {
  SysrootDevice device;
  device.like = like;
  device.name = "rdma_lo";
  device.counter_path = dir.default_dir() + "/" + device.name + cluster::RuntimeDir::kCounterSuffix;
  device.guid = 0x0252420000000001U;
  device.ipv4 = 0x7f000001U;
  device.speed_gbps = 100;
  return device;
}

void set_sysroot_state(const std::string& path, const std::string& device, bool is_up) {
  const std::string port = fmt::format("{}/sys/class/infiniband/{}/ports/1", path, device);
  if (::access(port.c_str(), F_OK) == 0) {
    write_state(port, is_up);
  }
}

bool make_sysroot(const std::string& path, const std::vector<SysrootDevice>& devices) {
  if (::access((path + kNoNumber).c_str(), F_OK) == 0) {
    return false;
  }
  const std::string mine = fmt::format("{}.new-{}", path, ::getpid());
  std::error_code ignored;
  std::filesystem::remove_all(path, ignored);  // of a release that had no counters
  std::filesystem::remove_all(mine, ignored);  // of a process of our number that was interrupted here
  try {
    fill(mine, devices);
  } catch (...) {
    std::filesystem::remove_all(mine, ignored);
    throw;
  }
  if (::rename(mine.c_str(), path.c_str()) == 0) {
    return true;
  }
  const int refused = errno;
  std::filesystem::remove_all(mine, ignored);
  if (refused != ENOTEMPTY && refused != EEXIST) {  // else another process was quicker
    throw base::Error(refused, "rename to " + path, mine);
  }
  return false;
}

}  // namespace ringbolt::tools
