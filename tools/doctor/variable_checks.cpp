// Variables of engines, against what is there.
#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "base/variables.h"
#include "doctor/check.h"
#include "node_environment.h"

namespace ringbolt::tools::doctor {
namespace {

Finding& variable_seen(Finding& found, const Host& host, std::string_view name) {
  const std::string* value = host.variable(name);
  return found.seen(host, "environment", fmt::format("{}={}", name, value == nullptr ? "" : *value));
}

/// Takes it out of this shell; the undoing puts it back.
Finding& unset(Finding& found, const Host& host, std::string_view name) {
  const std::string* value = host.variable(name);
  return found.step(host, fmt::format("unset {}", name),
                    fmt::format("export {}={}", name, shell_quoted(value == nullptr ? "" : *value)), By::shell);
}

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

std::string names_of(const std::vector<Device>& devices) {
  std::string names;
  for (const Device& one : devices) {
    names += (names.empty() ? "" : ", ") + one.name;
  }
  return names.empty() ? "none" : names;
}

void nccl_without_rdma(Probe& probe) {
  probe.each_host([&](const Host& host) {
    const std::string* off = host.variable("NCCL_IB_DISABLE");
    if (off == nullptr || host.devices.empty()) {
      return;
    }
    probe.looked();
    if (*off != "0") {
      unset(variable_seen(probe.found(host, "NCCL_IB_DISABLE", "NCCL leaves RDMA devices alone"), host,
                          "NCCL_IB_DISABLE"),
            host, "NCCL_IB_DISABLE")
          .seen(host, "devices", names_of(host.devices));
    }
  });
}

/// "mlx5_0,mlx5_1", "=mlx5_0:1", "mlx5": a prefix unless "=" stands before; "^" takes out.
void unknown_nccl_devices(Probe& probe) {
  probe.each_host([&](const Host& host) {
    const std::string* list = host.variable("NCCL_IB_HCA");
    if (list == nullptr || host.devices.empty() || list->starts_with('^')) {
      return;
    }
    probe.looked();
    const bool is_exact = list->starts_with('=');
    for (const std::string& item : items_of(std::string_view(*list).substr(is_exact ? 1 : 0))) {
      const std::string name = item.substr(0, item.find(':'));
      const bool is_there = std::ranges::any_of(
          host.devices, [&](const Device& one) { return is_exact ? one.name == name : one.name.starts_with(name); });
      if (!is_there) {
        unset(variable_seen(probe.found(host, "NCCL_IB_HCA", fmt::format("there is no device {}", name)), host,
                            "NCCL_IB_HCA"),
              host, "NCCL_IB_HCA")
            .seen(host, "devices", names_of(host.devices));
        return;
      }
    }
  });
}

void other_prefix_length(Probe& probe) {
  const char* name = "NCCL_IB_SUBNET_PREFIX_LEN";
  probe.each_cabled([&](const Host& host, const Netdev& netdev) {
    const std::string* length = host.variable(name);
    if (length == nullptr || netdev.ipv4() == nullptr) {
      return;
    }
    probe.looked();
    if (number_of(*length) != netdev.ipv4()->ip.prefix_bits) {
      variable_seen(
          probe.found(host, netdev.name,
                      fmt::format("its subnet is a /{}, {} says {}", netdev.ipv4()->ip.prefix_bits, name, *length)),
          host, name)
          .seen(host, "ip -o address", netdev.ipv4()->line)
          .step(host, fmt::format("export {}={}", name, netdev.ipv4()->ip.prefix_bits),
                fmt::format("export {}={}", name, shell_quoted(*length)), By::shell);
    }
  });
}

constexpr const char* kInterfaceVariables[] = {"NCCL_SOCKET_IFNAME", "GLOO_SOCKET_IFNAME", "TP_SOCKET_IFNAME",
                                               "OMPI_MCA_btl_tcp_if_include"};

/// Calls `look` with each interface that a variable names; NCCL's are prefixes, unless "=" stands before.
template <class Look>
void each_named_interface(const Host& host, Look look) {
  for (const char* variable : kInterfaceVariables) {
    const std::string* list = host.variable(variable);
    if (list == nullptr || host.netdevs.empty() || list->starts_with('^')) {
      continue;
    }
    const bool is_prefix = std::string_view(variable).starts_with("NCCL") && !list->starts_with('=');
    for (const std::string& item : items_of(std::string_view(*list).substr(list->starts_with('=') ? 1 : 0))) {
      if (item.find('/') == std::string::npos) {  // Open MPI also takes subnets
        look(variable, item, is_prefix);
      }
    }
  }
}

void unknown_interfaces(Probe& probe) {
  probe.each_host([&](const Host& host) {
    each_named_interface(host, [&](const char* variable, const std::string& item, bool is_prefix) {
      probe.looked();
      const bool is_there = item == "lo" || std::ranges::any_of(host.netdevs, [&](const Netdev& one) {
                              return is_prefix ? one.name.starts_with(item) : one.name == item;
                            });
      if (!is_there) {
        std::string there;
        for (const Netdev& one : host.netdevs) {
          there += (there.empty() ? "" : ", ") + one.name;
        }
        unset(variable_seen(probe.found(host, variable, fmt::format("there is no interface {}", item)), host, variable),
              host, variable)
            .seen(host, "interfaces", there);
      }
    });
  });
}

void useless_interfaces(Probe& probe) {
  constexpr const char* kUseless[] = {"lo", "docker", "br-", "virbr", "tailscale", "wg", "utun", "veth"};
  probe.each_host([&](const Host& host) {
    each_named_interface(host, [&](const char* variable, const std::string& item, bool) {
      probe.looked();
      if (std::ranges::any_of(kUseless, [&](std::string_view one) { return item.starts_with(one); })) {
        unset(variable_seen(
                  probe.found(host, variable, fmt::format("{} leads to no other machine, or through a VPN", item)),
                  host, variable),
              host, variable);
      }
    });
  });
}

/// "mlx5_0:1"; also names of interfaces, and "all".
void unknown_ucx_devices(Probe& probe) {
  probe.each_host([&](const Host& host) {
    const std::string* list = host.variable("UCX_NET_DEVICES");
    if (list == nullptr || *list == "all" || host.netdevs.empty()) {
      return;
    }
    probe.looked();
    for (const std::string& item : items_of(*list)) {
      const std::string name = item.substr(0, item.find(':'));
      if (host.device(name) == nullptr && host.netdev(name) == nullptr) {
        unset(variable_seen(probe.found(host, "UCX_NET_DEVICES", fmt::format("there is no device {}", name)), host,
                            "UCX_NET_DEVICES"),
              host, "UCX_NET_DEVICES")
            .seen(host, "devices", names_of(host.devices));
        return;
      }
    }
  });
}

void ucx_without_rdma(Probe& probe) {
  constexpr const char* kRdma[] = {"rc", "ud", "dc", "ib", "all"};
  probe.each_host([&](const Host& host) {
    const std::string* list = host.variable("UCX_TLS");
    if (list == nullptr || host.devices.empty() || list->starts_with('^')) {
      return;
    }
    probe.looked();
    const auto items = items_of(*list);
    const bool has_rdma = std::ranges::any_of(items, [&](const std::string& item) {
      return std::ranges::any_of(kRdma, [&](std::string_view one) { return item.starts_with(one); });
    });
    if (!has_rdma) {
      unset(variable_seen(probe.found(host, "UCX_TLS", "it leaves no RDMA transport to UCX"), host, "UCX_TLS"), host,
            "UCX_TLS")
          .seen(host, "devices", names_of(host.devices));
    }
  });
}

/// What each machine has for itself.
bool is_per_host(std::string_view name) {
  for (const char* part : {"IFNAME", "IB_HCA", "HOST", "RANK", "NET_DEVICES", "GID_INDEX", "NODE", "DEVICE", "ADDR",
                           "COORDINATOR", "if_include", "RDMA_DEV", "RUNTIME_DIR", "SYSROOT", "LD_"}) {
    if (contains(name, part)) {
      return true;
    }
  }
  return !(name.starts_with("NCCL_") || name.starts_with("UCX_") || name.starts_with("RINGBOLT_"));
}

void differing_variables(Probe& probe) {
  const Host* first = nullptr;
  probe.each_host([&](const Host& host) {
    if (host.recording->find(host.name, "environment") == nullptr) {
      return;
    }
    if (first == nullptr) {
      first = &host;
      return;
    }
    probe.looked();
    std::map<std::string, int, std::less<>> names;
    for (const Host* one : {first, &host}) {
      for (const auto& [name, value] : one->environment) {
        names[name] += is_per_host(name) ? 0 : 1;
      }
    }
    for (const auto& [name, count] : names) {
      const std::string* own = host.variable(name);
      const std::string* other = first->variable(name);
      if (count != 0 && (own == nullptr ? other != nullptr : other == nullptr || *own != *other)) {
        const auto text = [](const std::string* value) { return value == nullptr ? "unset" : *value; };
        variable_seen(probe.found(host, name, fmt::format("{} here, {} on {}", text(own), text(other), first->name)),
                      host, name);
        variable_seen(probe.findings().back(), *first, name)
            .advise("set it alike on all machines, or nowhere; `ringbolt nccl` says what a job needs");
      }
    }
  });
}

void unknown_vllm_host(Probe& probe) {
  probe.each_host([&](const Host& host) {
    const std::string* own = host.variable("VLLM_HOST_IP");
    const auto ip = own == nullptr ? std::nullopt : cluster::IpAddress::parse(*own);
    if (!ip || host.netdevs.empty()) {
      return;
    }
    probe.looked();
    const bool is_there = std::ranges::any_of(host.netdevs, [&](const Netdev& netdev) {
      return std::ranges::any_of(netdev.addresses, [&](const Address& one) { return one.ip.bytes == ip->bytes; });
    });
    if (!is_there) {
      unset(variable_seen(probe.found(host, "VLLM_HOST_IP", fmt::format("no interface here has {}", *own)), host,
                          "VLLM_HOST_IP"),
            host, "VLLM_HOST_IP");
    }
  });
}

/// What JACCL and MLX open, "PATH may not be read".
void missing_named_files(Probe& probe) {
  probe.each_host([&](const Host& host) {
    for (const std::string_view line : lines_of(host.text("named files"))) {
      probe.looked();
      if (line.ends_with(" may not be read")) {
        const std::string path(line.substr(0, line.size() - std::string_view(" may not be read").size()));
        Finding& found = probe.found(host, path, "a variable names this file, and it can't be read");
        for (const auto& [name, value] : host.environment) {
          if (value == path) {
            variable_seen(found, host, name);
          }
        }
        found.seen(host, "named files", line).advise("write it: `ringbolt hostfile --format jaccl -o FILE`");
      }
    }
  });
}

/// "10.0.0.1:32323" must be an address of one of them, if all were read.
void unknown_coordinators(Probe& probe) {
  probe.each_host([&](const Host& host) {
    for (const char* name : {"JACCL_COORDINATOR", "MLX_JACCL_COORDINATOR", "RINGBOLT_COORDINATOR"}) {
      const std::string* value = host.variable(name);
      const auto ip = value == nullptr ? std::nullopt : cluster::IpAddress::parse(value->substr(0, value->rfind(':')));
      if (!ip || probe.facts.hosts.size() < 2) {
        continue;
      }
      probe.looked();
      const bool is_there = std::ranges::any_of(probe.facts.hosts, [&](const Host& one) {
        return std::ranges::any_of(one.netdevs, [&](const Netdev& netdev) {
          return std::ranges::any_of(netdev.addresses, [&](const Address& own) { return own.ip.bytes == ip->bytes; });
        });
      });
      if (!is_there) {
        variable_seen(probe.found(host, name, fmt::format("none of these machines has {}", ip->text())), host, name)
            .advise("give it an address of rank 0 that all others reach");
      }
    }
  });
}

void fast_synch(Probe& probe) {
  const char* name = "MLX_METAL_FAST_SYNCH";
  probe.each_host([&](const Host& host) {
    if (host.recording->find(host.name, "environment") == nullptr) {
      return;
    }
    probe.looked();
    if (host.variable(name) != nullptr) {
      unset(variable_seen(probe.found(host, name, "it is set: people report hangs with it, also on one machine"), host,
                          name),
            host, name);
    }
  });
}

/// Ours: values that nothing takes, names that are slips.
void odd_variables(Probe& probe) {
  probe.each_host([&](const Host& host) {
    if (host.recording->find(host.name, "environment") == nullptr) {
      return;
    }
    probe.looked();
    for (const auto& [name, value] : host.environment) {
      if (!name.starts_with("RINGBOLT_")) {
        continue;
      }
      const std::string entry = name + "=" + value;
      const char* const one[] = {entry.c_str(), nullptr};
      for (const std::string& line : base::odd_variables(one)) {
        unset(variable_seen(probe.found(host, name, line), host, name), host, name);
      }
    }
  });
}

constexpr Check kVariableChecks[] = {
    {"nccl-rdma-off", Severity::warning, Platform::linux, "NCCL_IB_DISABLE keeps NCCL from RDMA",
     "it goes over sockets", "", nccl_without_rdma},
    {"nccl-device-unknown", Severity::error, Platform::linux, "NCCL_IB_HCA names a device that is not there",
     "NCCL finds no device, and goes over sockets or ends", "", unknown_nccl_devices},
    {"nccl-prefix-length", Severity::warning, Platform::linux, "NCCL_IB_SUBNET_PREFIX_LEN is not that of the cables",
     "NCCL takes several cables for one subnet, or one for several, and pairs the wrong ports", "",
     other_prefix_length},
    {"socket-interface-unknown", Severity::error, Platform::all, "a variable names an interface that is not there",
     "the engine ends at the start, or takes another one", "", unknown_interfaces},
    {"socket-interface-away", Severity::error, Platform::all, "a variable names loopback, a bridge or a VPN",
     "ranks on other machines can't be reached, or slowly", "", useless_interfaces},
    {"ucx-device-unknown", Severity::error, Platform::linux, "UCX_NET_DEVICES names a device that is not there",
     "UCX ends at the start, or goes over TCP", "", unknown_ucx_devices},
    {"ucx-rdma-off", Severity::warning, Platform::linux, "UCX_TLS leaves no RDMA transport", "UCX goes over TCP", "",
     ucx_without_rdma},
    {"vllm-host-unknown", Severity::error, Platform::linux, "VLLM_HOST_IP is no address of this machine",
     "workers wait for each other until they time out", "", unknown_vllm_host},
    {"named-file-missing", Severity::error, Platform::all, "a variable names a file that can't be read",
     "JACCL, MLX and groups end at the start", "", missing_named_files},
    {"coordinator-unknown", Severity::error, Platform::all, "the coordinator is an address that no machine has",
     "all ranks wait for rank 0 at a place where nobody is", "", unknown_coordinators},
    {"variables-differ", Severity::warning, Platform::all,
     "a variable of NCCL, UCX or Ringbolt differs between machines",
     "ranks choose different ways and wait for each other", "", differing_variables},
    {"mlx-fast-synch", Severity::note, Platform::all, "MLX_METAL_FAST_SYNCH is set", "people report hangs with it", "",
     fast_synch},
    {"ringbolt-variable-odd", Severity::warning, Platform::all,
     "a variable of Ringbolt has a value or name that means nothing", "it has no effect", "", odd_variables},
};

}  // namespace

std::span<const Check> variable_checks() { return kVariableChecks; }

}  // namespace ringbolt::tools::doctor
