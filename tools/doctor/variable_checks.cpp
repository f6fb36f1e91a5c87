// Variables of engines, against what is there.
#include <algorithm>
#include <set>

#include "base/variables.h"
#include "doctor/check.h"
#include "node_environment.h"

namespace ringbolt::tools::doctor {
namespace {

std::vector<std::string> items_of(std::string_view list) {
  std::vector<std::string> items;
  while (!list.empty()) {
    const size_t end = std::min(list.find(','), list.size());
    if (const std::string_view item = trimmed(list.substr(0, end)); !item.empty()) {
      items.emplace_back(item);
    }
    list.remove_prefix(std::min(end + 1, list.size()));
  }
  return items;
}

bool begins_with_any(std::string_view text, std::initializer_list<const char*> beginnings) {
  return std::ranges::any_of(beginnings, [&](const char* one) { return text.starts_with(one); });
}

/// A variable that says what of RDMA is used, where there is a device.
void judge_use(Probe& at, const Host& host, const char* name, bool is_wrong, const char* message) {
  at.given(!host.variable(name).empty() && !host.devices.empty())
      .judge(is_wrong, {host, name}, "{}", message)
      .unset()
      .seen("devices", names_of(host.devices));
}

/// What a variable names in a list: "mlx5_0:1,mlx5_1", "=eth0". NCCL's are prefixes unless "=" stands before; "^" takes
/// out, and so names nothing.
struct Named {
  const char* variable;
  std::string name;  ///< without the port of a device
  bool is_prefix;

  template <class Thing>
  bool is_among(const std::vector<Thing>& all) const {
    return std::ranges::any_of(
        all, [&](const Thing& one) { return is_prefix ? one.name.starts_with(name) : one.name == name; });
  }
};

std::vector<Named> named_by(const Host& host, std::initializer_list<const char*> variables) {
  std::vector<Named> found;
  for (const char* variable : variables) {
    const std::string_view list = host.variable(variable);
    const bool is_exact = list.starts_with('=') || !std::string_view(variable).starts_with("NCCL");
    for (const std::string& item : items_of(list.substr(list.starts_with('=') ? 1 : 0))) {
      if (!list.starts_with('^') && item.find('/') == std::string::npos) {  // Open MPI also takes subnets
        found.push_back({variable, item.substr(0, item.find(':')), !is_exact});
      }
    }
  }
  return found;
}

std::vector<Named> named_interfaces(const Host& host) {
  return named_by(host,
                  {"NCCL_SOCKET_IFNAME", "GLOO_SOCKET_IFNAME", "TP_SOCKET_IFNAME", "OMPI_MCA_btl_tcp_if_include"});
}

/// Whether all machines should have the same.
bool is_common(std::string_view name) {
  constexpr const char* kPerHost[] = {"IFNAME",     "IB_HCA",   "HOST",        "RANK",    "NET_DEVICES",
                                      "GID_INDEX",  "NODE",     "DEVICE",      "ADDR",    "COORDINATOR",
                                      "if_include", "RDMA_DEV", "RUNTIME_DIR", "SYSROOT", "LD_"};
  return begins_with_any(name, {"NCCL_", "UCX_", "RINGBOLT_"}) &&
         std::ranges::none_of(kPerHost, [&](const char* part) { return contains(name, part); });
}

void differing_variables(Probe& at) {
  auto hosts = at.all<Host>();
  std::erase_if(hosts, [](const Host* one) { return !one->was_asked("environment"); });
  for (size_t i = 1; i < hosts.size(); ++i) {
    const Host& host = *hosts[i];
    const Host& first = *hosts[0];
    std::set<std::string> names;
    for (const Host* one : {&first, &host}) {
      for (const auto& [name, value] : one->environment) {
        names.insert(name);
      }
    }
    at.looked();
    for (const std::string& name : names) {
      const auto text = [&](const Host& one) { return one.variable(name).empty() ? "unset" : one.variable(name); };
      at.judge(is_common(name) && host.variable(name) != first.variable(name), {host, name}, "{} here, {} on {}",
               text(host), text(first), first.name)
          .variable(name)
          .variable(first, name)
          .advise("set it alike on all machines, or nowhere; `ringbolt nccl` says what a job needs");
    }
  }
}

/// What JACCL and MLX open, "PATH may not be read".
void missing_named_files(Probe& at, const Host& host) {
  constexpr std::string_view kMissing = " may not be read";
  for (const std::string_view line : lines_of(host.text("named files"))) {
    const std::string path(line.substr(0, line.size() - std::min(line.size(), kMissing.size())));
    const Judgement told =
        at.judge(line.ends_with(kMissing), {host, path}, "a variable names this file, and it can't be read");
    for (const auto& [name, value] : host.environment) {
      if (value == path) {
        told.variable(name);
      }
    }
    told.seen("named files", line).advise("write it: `ringbolt hostfile --format jaccl -o FILE`");
  }
}

/// "10.0.0.1:32323" must be an address of one of them, if all were read.
void unknown_coordinators(Probe& at, const Host& host) {
  for (const char* name : {"JACCL_COORDINATOR", "MLX_JACCL_COORDINATOR", "RINGBOLT_COORDINATOR"}) {
    const std::string_view value = host.variable(name);
    if (const auto ip = cluster::IpAddress::parse(value.substr(0, value.rfind(':')))) {
      at.given(at.facts.hosts.size() >= 2)
          .judge(std::ranges::none_of(at.facts.hosts, [&](const Host& one) { return one.has_ip(*ip); }), {host, name},
                 "none of these machines has {}", ip->text())
          .variable(name)
          .advise("give it an address of rank 0 that all others reach");
    }
  }
}

constexpr Check kVariableChecks[] = {
    {"nccl-rdma-off", kWarning, kLinux, "NCCL_IB_DISABLE keeps NCCL from RDMA", "it goes over sockets", "",
     [](Probe& at, const Host& host) {
       const bool is_off = host.variable("NCCL_IB_DISABLE") != "0";
       judge_use(at, host, "NCCL_IB_DISABLE", is_off, "NCCL leaves RDMA devices alone");
     }},
    {"nccl-device-unknown", kError, kLinux, "NCCL_IB_HCA names a device that is not there",
     "NCCL finds no device, and goes over sockets or ends", "",
     [](Probe& at, const Host& host) {
       for (const Named& one : named_by(host, {"NCCL_IB_HCA"})) {
         at.given(!host.devices.empty())
             .judge(!one.is_among(host.devices) && !at.has_found(host), {host, one.variable}, "there is no device {}",
                    one.name)
             .unset()
             .seen("devices", names_of(host.devices));
       }
     }},
    {"nccl-prefix-length", kWarning, kLinux, "NCCL_IB_SUBNET_PREFIX_LEN is not that of the cables",
     "NCCL takes several cables for one subnet, or one for several, and pairs the wrong ports", "",
     [](Probe& at, const Netdev& port) {
       const char* name = "NCCL_IB_SUBNET_PREFIX_LEN";
       const std::string_view length = port.host->variable(name);
       if (const Address* address = port.ipv4()) {
         const uint32_t bits = address->ip.prefix_bits;
         at.given(!length.empty())
             .judge(number_of(length) != bits, port, "its subnet is a /{}, {} says {}", bits, name, length)
             .variable(name)
             .seen(address->value())
             .step(By::shell, "export {0}={1}", "export {0}={2}", name, bits, shell_quoted(std::string(length)));
       }
     }},
    {"socket-interface-unknown", kError, kAll, "a variable names an interface that is not there",
     "the engine ends at the start, or takes another one", "",
     [](Probe& at, const Host& host) {
       for (const Named& one : named_interfaces(host)) {
         at.given(!host.netdevs.empty())
             .judge(one.name != "lo" && !one.is_among(host.netdevs), {host, one.variable}, "there is no interface {}",
                    one.name)
             .unset()
             .seen("interfaces", names_of(host.netdevs));
       }
     }},
    {"socket-interface-away", kError, kAll, "a variable names loopback, a bridge or a VPN",
     "ranks on other machines can't be reached, or slowly", "",
     [](Probe& at, const Host& host) {
       for (const Named& one : named_interfaces(host)) {
         const bool is_useless =
             begins_with_any(one.name, {"lo", "docker", "br-", "virbr", "tailscale", "wg", "utun", "veth"});
         at.given(!host.netdevs.empty())
             .judge(is_useless, {host, one.variable}, "{} leads to no other machine, or through a VPN", one.name)
             .unset();
       }
     }},
    {"ucx-device-unknown", kError, kLinux, "UCX_NET_DEVICES names a device that is not there",
     "UCX ends at the start, or goes over TCP", "",
     [](Probe& at, const Host& host) {
       for (const Named& one : named_by(host, {"UCX_NET_DEVICES"})) {
         const bool is_known = one.name == "all" || one.is_among(host.netdevs) || one.is_among(host.devices);
         at.given(!host.netdevs.empty())
             .judge(!is_known && !at.has_found(host), {host, one.variable}, "there is no device {}", one.name)
             .unset()
             .seen("devices", names_of(host.devices));
       }
     }},
    {"ucx-rdma-off", kWarning, kLinux, "UCX_TLS leaves no RDMA transport", "UCX goes over TCP", "",
     [](Probe& at, const Host& host) {
       const std::string_view list = host.variable("UCX_TLS");
       const bool has_rdma = std::ranges::any_of(items_of(list), [](const std::string& item) {
         return begins_with_any(item, {"rc", "ud", "dc", "ib", "all"});
       });
       if (!list.starts_with('^')) {
         judge_use(at, host, "UCX_TLS", !has_rdma, "it leaves no RDMA transport to UCX");
       }
     }},
    {"vllm-host-unknown", kError, kLinux, "VLLM_HOST_IP is no address of this machine",
     "workers wait for each other until they time out", "",
     [](Probe& at, const Host& host) {
       const std::string_view own = host.variable("VLLM_HOST_IP");
       const auto ip = cluster::IpAddress::parse(own);
       at.given(ip && !host.netdevs.empty())
           .judge(ip && !host.has_ip(*ip), {host, "VLLM_HOST_IP"}, "no interface here has {}", own)
           .unset();
     }},
    {"named-file-missing", kError, kAll, "a variable names a file that can't be read",
     "JACCL, MLX and groups end at the start", "", missing_named_files},
    {"coordinator-unknown", kError, kAll, "the coordinator is an address that no machine has",
     "all ranks wait for rank 0 at a place where nobody is", "", unknown_coordinators},
    {"variables-differ", kWarning, kAll, "a variable of NCCL, UCX or Ringbolt differs between machines",
     "ranks choose different ways and wait for each other", "", differing_variables},
    {"mlx-fast-synch", kNote, kAll, "MLX_METAL_FAST_SYNCH is set", "people report hangs with it", "",
     [](Probe& at, const Host& host) {
       at.given(host.was_asked("environment"))
           .judge(!host.variable("MLX_METAL_FAST_SYNCH").empty(), {host, "MLX_METAL_FAST_SYNCH"},
                  "it is set: people report hangs with it, also on one machine")
           .unset();
     }},
    {"ringbolt-variable-odd", kWarning, kAll, "a variable of Ringbolt has a value or name that means nothing",
     "it has no effect", "",
     [](Probe& at, const Host& host) {
       at.looked(host.was_asked("environment"));
       for (const auto& [name, value] : host.environment) {
         const std::string entry = name + "=" + value;
         const char* const one[] = {entry.c_str(), nullptr};
         for (const std::string& line : base::odd_variables(one)) {  // values that nothing takes, names that are slips
           at.given(name.starts_with("RINGBOLT_")).judge(true, {host, name}, "{}", line).unset();
         }
       }
     }},
};

}  // namespace

std::span<const Check> variable_checks() { return kVariableChecks; }

}  // namespace ringbolt::tools::doctor
