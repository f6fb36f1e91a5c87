#include "namespaces.h"

#include <dirent.h>
#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <set>
#include <sstream>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/start_thread.h"
#include "base/unique_fd.h"
#include "child_process.h"
#include "cluster/address_plan.h"
#include "cluster/model.h"
#include "cluster/read_file.h"
#include "failure.h"
#include "iproute.h"
#include "node_environment.h"
#include "progress_line.h"

namespace ringbolt::tools {
namespace {

constexpr uint64_t kPatienceNs = 5'000'000'000;
constexpr std::chrono::milliseconds kPause{5};

/// A socket of that namespace, which asks for its interfaces. By a thread that enters it and ends: this one stays
/// outside.
base::UniqueFd socket_within(const std::string& path) {
  base::UniqueFd made;
  base::start_thread([&] {
    const base::UniqueFd place(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (place.is_open() && ::setns(place.get(), CLONE_NEWNET) == 0) {
      made.reset(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    }
  }).join();
  return made;
}

bool has_carrier(int socket, const std::string& netdev) {
  ifreq request{};
  netdev.copy(request.ifr_name, sizeof request.ifr_name - 1);
  return ::ioctl(socket, SIOCGIFFLAGS, &request) != 0 || (request.ifr_flags & IFF_RUNNING) != 0;
}

/// Waits until the kernel says that both ends of every cable of a cluster of namespaces are up, as it does up to a
/// second after they were brought up; until then ports are down, and what is sent is lost. After 5 s it goes on
/// without: `ringbolt status` and programs see which port has no carrier. Blocks.
void wait_for_carriers(const cluster::Cluster& model) {
  const uint64_t deadline_ns = base::now_ns() + kPatienceNs;
  for (uint32_t node = 0; node < model.nodes.size(); ++node) {
    std::vector<std::string> netdevs;
    std::ranges::transform(model.nodes[node].ports, std::back_inserter(netdevs), &cluster::Port::netdev);
    if (model.has_management) {
      netdevs.emplace_back(cluster::kManagementNetdev);
    }
    const base::UniqueFd socket = socket_within(namespace_path(model.name, node));
    for (const std::string& netdev : netdevs) {
      while (socket.is_open() && !has_carrier(socket.get(), netdev) && base::now_ns() < deadline_ns) {
        std::this_thread::sleep_for(kPause);
      }
    }
  }
}

namespace fs = std::filesystem;

constexpr const char* kNetnsFolder = "/run/netns";
/// The group of our network devices, by which they are removed at once: `ip link delete group default` refuses, for lo
/// is in that group too. What `ip netns delete` takes along goes when the kernel gets around to it.
constexpr int kLinkGroup = 4791;
constexpr auto kNamespaceMagic = 0x6e736673;  // NSFS_MAGIC: what was there before the mount is an empty file

uint32_t mtu_of(const cluster::Cluster& model) { return model.mtu == 0 ? cluster::kDefaultMtu : model.mtu; }

const cluster::Port& port_at(const cluster::Cluster& model, const cluster::CableEnd& end) {
  return model.nodes[end.node].ports[end.port];
}

/// Effective rights of this process, as the kernel prints them.
uint64_t effective_rights() {
  std::istringstream lines(cluster::read_file("/proc/self/status", size_t{1} << 16U));
  constexpr std::string_view kField = "CapEff:\t";
  uint64_t rights = 0;
  for (std::string line; std::getline(lines, line);) {
    if (line.rfind(kField, 0) == 0) {
      std::from_chars(line.data() + kField.size(), line.data() + line.size(), rights, 16);
    }
  }
  return rights;
}

/// What a loopback plug is on its far side, so that the port has a carrier. What a port sends to its own address never
/// gets there.
std::string plug_netdev(uint32_t cable) { return fmt::format("plug{}", cable); }

/// What the switch calls its ports, by the node at the other end.
std::string switch_port(uint32_t node) { return fmt::format("node{}", node); }

/// The management network: a switch in a namespace of its own and a cable from each node to it. Not one of the
/// cluster's cables: nothing cuts it, holds it to a rate or makes a device of it.
std::string management_script(const cluster::Cluster& model) {
  const std::string hub = cluster::management_namespace(model.name);
  std::string script = fmt::format("netns add {}\n", hub);
  for (uint32_t node = 0; node < model.nodes.size(); ++node) {
    script +=
        fmt::format("link add name {} group {} netns {} type veth peer name {} group {} netns {}\n", switch_port(node),
                    kLinkGroup, hub, cluster::kManagementNetdev, kLinkGroup, cluster::namespace_name(model.name, node));
  }
  return script;
}

std::string switch_script(const cluster::Cluster& model) {
  std::string script = "link add name lan type bridge\nlink set dev lan addrgenmode none\nlink set dev lan up\n";
  for (uint32_t node = 0; node < model.nodes.size(); ++node) {
    script += fmt::format("link set dev {0} addrgenmode none\nlink set dev {0} master lan up\n", switch_port(node));
  }
  return script;
}

std::string management_up_script(uint32_t node) {
  return fmt::format("link set dev {0} addrgenmode none\nlink set dev {0} up\naddr replace {1} dev {0}\n",
                     cluster::kManagementNetdev, cluster::management_address(node).text_with_prefix());
}

std::string link_script(const cluster::Cluster& model) {
  std::string script;
  for (uint32_t node = 0; node < model.nodes.size(); ++node) {
    script += fmt::format("netns add {}\n", cluster::namespace_name(model.name, node));
  }
  for (uint32_t index = 0; index < model.cables.size(); ++index) {
    const cluster::Cable& cable = model.cables[index];
    const bool is_plug = cable.a == cable.b;
    script += fmt::format(
        "link add name {0} mtu {1} group {5} netns {2} type veth peer name {3} mtu {1} group {5} netns {4}\n",
        port_at(model, cable.a).netdev, mtu_of(model), cluster::namespace_name(model.name, cable.a.node),
        is_plug ? plug_netdev(index) : port_at(model, cable.b).netdev,
        cluster::namespace_name(model.name, cable.b.node), kLinkGroup);
  }
  return script;
}

/// The kernel would make a link-local address of its own, and take a second or two to believe it.
std::string up_script(const cluster::Port& port) {
  return fmt::format("link set dev {} addrgenmode none\n", port.netdev) + link_up_script(port);
}

void run_in(const cluster::Cluster& model, uint32_t node, const char* tool, const std::string& script) {
  run_iproute({tool, "-n", cluster::namespace_name(model.name, node)}, script);
}

/// The kernel queues what comes in by processor, and what a cable's rate has held back leaves on any: two processors
/// would hand over frames in another order than they were sent in, which costs UC a message. So all that comes in at a
/// port goes through one of them, and ports take turns. The kernel refuses that within a user namespace: there it stays
/// so.
std::string order_script(const cluster::Port& port, uint32_t turn) {
  constexpr long kMostProcessors = 32;  // in one word of a mask
  const long n_processors = std::clamp(sysconf(_SC_NPROCESSORS_ONLN), 1L, kMostProcessors);
  return fmt::format("echo {:x} > /sys/class/net/{}/queues/rx-0/rps_cpus\n",
                     1U << (turn % static_cast<uint32_t>(n_processors)), port.netdev);
}

void keep_order(const cluster::Cluster& model, uint32_t node, const std::string& script) {
  if (script.empty()) {
    return;
  }
  constexpr double kShellPatienceS = 10;
  Launch launch;
  launch.command = {find_program("sh", "dash")};
  launch.environment = merged_environment({});
  launch.netns = namespace_path(model.name, node);
  (void)run_captured(std::move(launch), script, kShellPatienceS);
}

/// The pids in a namespace, by its inode. Throws base::Error where /proc does not tell.
std::vector<pid_t> pids_in(const std::string& path) {
  std::vector<pid_t> pids;
  struct stat wanted {};
  if (::stat(path.c_str(), &wanted) != 0) {
    return pids;
  }
  struct stat own {};
  if (constexpr const char* kOwn = "/proc/self/ns/net"; ::stat(kOwn, &own) != 0) {
    throw base::Error(errno, "look for processes in network namespaces", kOwn, "mount /proc");
  }
  for (const std::string& name : cluster::names_in("/proc")) {
    pid_t pid = 0;
    const auto [stop, refused] = std::from_chars(name.data(), name.data() + name.size(), pid);
    struct stat seen {};
    if (refused == std::errc{} && stop == name.data() + name.size() &&
        ::stat(fmt::format("/proc/{}/ns/net", pid).c_str(), &seen) == 0 && seen.st_ino == wanted.st_ino &&
        seen.st_dev == wanted.st_dev) {
      pids.push_back(pid);
    }
  }
  return pids;
}

/// True too where nobody can tell.
bool is_occupied(const std::string& path) {
  try {
    return !pids_in(path).empty();
  } catch (const base::Error&) {
    return true;
  }
}

}  // namespace

void require_namespace_rights() {
  constexpr uint64_t kNetAdmin = uint64_t{1} << 12U;
  constexpr uint64_t kSysAdmin = uint64_t{1} << 21U;
  if ((effective_rights() & (kNetAdmin | kSysAdmin)) != (kNetAdmin | kSysAdmin)) {
    throw UsageError(
        "network namespaces take the rights CAP_NET_ADMIN and CAP_SYS_ADMIN: run it as root (sudo), or in a user "
        "namespace of your own (docs/cluster.md, \"Without root\"), or leave --netns out");
  }
  find_program("ip", "iproute2");
}

std::string namespace_path(const std::string& cluster, uint32_t node) {
  return fmt::format("{}/{}", kNetnsFolder, cluster::namespace_name(cluster, node));
}

std::vector<std::string> namespaces_of(const std::string& cluster) {
  const std::string prefix = cluster::namespace_name(cluster, 0).substr(0, cluster.size() + 4);
  std::vector<std::string> names;
  for (const std::string& name : cluster::names_in(kNetnsFolder)) {
    const bool is_node = name.rfind(prefix, 0) == 0 && name.size() > prefix.size() &&
                         std::all_of(name.begin() + static_cast<std::ptrdiff_t>(prefix.size()), name.end(),
                                     [](char c) { return c >= '0' && c <= '9'; });
    if (is_node || name == cluster::management_namespace(cluster)) {
      names.push_back(name);
    }
  }
  return names;
}

std::string missing_namespace(const cluster::Cluster& model) {
  std::vector<std::string> paths;
  for (uint32_t node = 0; node < model.nodes.size(); ++node) {
    paths.push_back(namespace_path(model.name, node));
  }
  if (model.has_management) {
    paths.push_back(fmt::format("{}/{}", kNetnsFolder, cluster::management_namespace(model.name)));
  }
  for (const std::string& path : paths) {
    struct statfs status {};
    if (::statfs(path.c_str(), &status) != 0 && errno != ENOENT) {
      throw base::Error(errno, "statfs", path);
    }
    if (status.f_type != kNamespaceMagic) {
      return fmt::format("network namespace {} is gone", path);
    }
  }
  return "";
}

void make_namespaces(const cluster::Cluster& model) {
  Waiting waiting(fmt::format("making {} network namespaces", model.nodes.size()));
  run_iproute({"ip"}, link_script(model));
  if (model.has_management) {
    run_iproute({"ip"}, management_script(model));
    run_iproute({"ip", "-n", cluster::management_namespace(model.name)}, switch_script(model));
  }
  std::vector<std::string> up(model.nodes.size(), "link set dev lo up\n");
  std::vector<std::string> rates(model.nodes.size());
  std::vector<std::string> order(model.nodes.size());
  uint32_t n_shaped = 0;
  for (uint32_t index = 0; index < model.cables.size(); ++index) {
    const cluster::Cable& cable = model.cables[index];
    if (cable.a == cable.b) {
      up[cable.a.node] += fmt::format("link set dev {} up\n", plug_netdev(index));
    }
    for (const auto& end : std::set{std::pair{cable.a.node, cable.a.port}, std::pair{cable.b.node, cable.b.port}}) {
      const cluster::Port& port = model.nodes[end.first].ports[end.second];
      up[end.first] += up_script(port);
      if (cable.rate_mbps != 0) {
        rates[end.first] += rate_script(port.netdev, cable.rate_mbps, mtu_of(model));
        order[end.first] += order_script(port, n_shaped++);
      }
    }
  }
  for (uint32_t node = 0; node < model.nodes.size(); ++node) {
    waiting.show(fmt::format("bringing up network namespace {} of {}", node + 1, model.nodes.size()));
    run_in(model, node, "ip", up[node] + (model.has_management ? management_up_script(node) : ""));
    run_in(model, node, "tc", rates[node]);
    keep_order(model, node, order[node]);
  }
  waiting.show("waiting for the cables to be up");
  wait_for_carriers(model);
}

void remove_namespaces(const std::string& cluster) {
  const Waiting waiting(fmt::format("removing the network namespaces of {}", cluster));
  std::string script;
  for (const std::string& name : namespaces_of(cluster)) {
    if (is_occupied(fmt::format("{}/{}", kNetnsFolder, name))) {
      // The namespace lives on under what runs in it; its cables must not.
      run_iproute({"ip", "-n", name}, fmt::format("link delete group {}\n", kLinkGroup), OnFailure::go_on);
    }
    script += fmt::format("netns delete {}\n", name);
  }
  run_iproute({"ip"}, script, OnFailure::go_on);
  if (const std::vector<std::string> left = namespaces_of(cluster); !left.empty()) {
    throw UsageError(
        fmt::format("these network namespaces could not be removed: {}; remove them by hand: ip netns "
                    "delete {}",
                    fmt::join(left, ", "), left.front()));
  }
}

std::vector<Program> namespace_programs(const std::string& cluster) {
  std::vector<Program> programs;
  for (const std::string& name : namespaces_of(cluster)) {
    for (const pid_t pid : pids_in(fmt::format("{}/{}", kNetnsFolder, name))) {
      programs.push_back(program_of(pid));
    }
  }
  return programs;
}

void set_cable_link(const cluster::Cluster& model, uint32_t cable, bool is_up) {
  const cluster::Cable& wanted = model.cables[cable];
  for (const cluster::CableEnd& end : {wanted.a, wanted.b}) {
    const cluster::Port& port = port_at(model, end);
    run_in(model, end.node, "ip", is_up ? up_script(port) : fmt::format("link set dev {} down\n", port.netdev));
  }
}

std::string link_up_script(const cluster::Port& port) {
  std::string script = fmt::format("link set dev {} up\n", port.netdev);
  for (const cluster::IpAddress& address : port.addresses) {
    // `replace`: also after a cut, which takes the IPv6 ones off and leaves the IPv4 ones on.
    script += fmt::format("addr replace {} dev {}{}\n", address.text_with_prefix(), port.netdev,
                          address.is_ipv4() ? "" : " nodad");
  }
  return script;
}

std::string rate_script(const std::string& netdev, uint32_t rate_mbps, uint32_t mtu) {
  // A bucket of a millisecond, but of some frames at least: the kernel fills it by its timer. What waits, waits 10 ms
  // at most, as in the buffers of a switch; but a slow cable holds what two queue pairs that nobody slows down (UC)
  // have on their way, since cables that machines are joined by directly lose nothing.
  constexpr uint32_t kLeastFrames = 4;
  constexpr uint64_t kLeastQueueBytes = 512 * 1024;
  constexpr uint64_t kMostQueueBytes = UINT32_MAX;  // that tc takes
  const uint64_t bytes_per_ms = uint64_t{rate_mbps} * 1'000'000 / 8 / 1000;
  return fmt::format("qdisc replace dev {} root tbf rate {}mbit burst {} limit {}\n", netdev, rate_mbps,
                     std::max<uint64_t>(bytes_per_ms, uint64_t{kLeastFrames} * mtu),
                     std::clamp(10 * bytes_per_ms, kLeastQueueBytes, kMostQueueBytes));
}

const char* enter_namespace(const char* path) {
  const int fd = ::open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) {
    return "open the network namespace";
  }
  const int entered = ::setns(fd, CLONE_NEWNET);
  const int refused = errno;
  ::close(fd);
  if (entered != 0) {
    errno = refused;
    return "setns";
  }
  // /sys/class/net shows the namespace of whoever mounted it. The mount is for this process and its children only.
  if (::unshare(CLONE_NEWNS) != 0) {
    return "unshare";
  }
  if (::mount("", "/", nullptr, MS_SLAVE | MS_REC, nullptr) != 0) {
    return "make mounts private";
  }
  ::umount2("/sys", MNT_DETACH);  // whether it was a mount or not
  return ::mount("ringbolt", "/sys", "sysfs", 0, nullptr) == 0 ? nullptr : "mount /sys";
}

}  // namespace ringbolt::tools
