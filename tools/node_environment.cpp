#include "node_environment.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <system_error>

#include <fmt/format.h>

#include "cluster/address.h"
#include "cluster/address_plan.h"
#include "cluster/cabling.h"
#include "cluster_state.h"
#include "failure.h"
#include "fault/plan_text.h"
#include "fault_file.h"
#include "like.h"
#include "namespaces.h"
#include "sysroot.h"

extern char** environ;  // NOLINT: POSIX names it so

namespace ringbolt::tools {
namespace {

namespace fs = std::filesystem;

constexpr const char* kPathsLibrary = "/libringbolt-paths.so";
// Without one of them a program would take the system's in its place, and mixed they do not work.
constexpr std::array kLibraries = {"/libibverbs.so.1", "/librdmacm.so.1",   "/libmlx5.so.1",
                                   "/libefa.so.1",     "/libringbolt.so.0", kPathsLibrary};

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string() : std::string(value);
}

std::vector<std::string> entries_but(const std::string& list, const std::string& entry) {
  std::vector<std::string> entries;
  for (size_t begin = 0; begin <= list.size();) {
    const size_t end = std::min(list.find(':', begin), list.size());
    const std::string one = list.substr(begin, end - begin);
    if (!one.empty() && one != entry) {
      entries.push_back(one);
    }
    begin = end + 1;
  }
  return entries;
}

/// Names of variables that describe neighbours, in this process's environment.
std::vector<std::string> neighbour_variables() {
  std::vector<std::string> names;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    if (text.rfind("RINGBOLT_ADDR_", 0) == 0 || text.rfind("RINGBOLT_DEVICE_", 0) == 0) {
      names.push_back(text.substr(0, text.find('=')));
    }
  }
  return names;
}

NodeEnvironment common_environment(const cluster::RuntimeDir& dir, const std::string& libraries,
                                   const std::string& sysroot) {
  NodeEnvironment environment;
  environment.set = {
      {"RINGBOLT_RUNTIME_DIR", dir.root()},
      {"RINGBOLT_SYSROOT", sysroot},
      {"LD_LIBRARY_PATH", with_first(variable("LD_LIBRARY_PATH"), libraries)},
      // Last: a sanitizer's runtime must stay first.
      {"LD_PRELOAD", with_last(variable("LD_PRELOAD"), libraries + kPathsLibrary)},
  };
  environment.unset = neighbour_variables();
  return environment;
}

void set(NodeEnvironment& environment, const std::string& name, const std::string& value) {
  environment.set.push_back({name, value});
  environment.unset.erase(std::remove(environment.unset.begin(), environment.unset.end(), name),
                          environment.unset.end());
}

/// As this port reaches its peer; a host need not have IPv4 addresses.
std::string peer_address(const cluster::Cluster& model, uint32_t node, const cluster::PortSpec& port) {
  if (model.kind == cluster::Kind::emulated) {
    return cluster::ipv4_text(port.peer_ipv4);
  }
  const cluster::Cable& cable = model.cables[port.cable];
  const bool is_a = cable.a.node == node && model.nodes[node].ports[cable.a.port].name == port.device;
  return cluster::address_across(model, port.cable, is_a ? cable.a : cable.b);
}

/// Made by the first program on the node: a mesh of many nodes has more of these files than all the rest.
std::string node_sysroot(const LiveCluster& live, const cluster::NodeSpec& spec) {
  fault::Plan looks = load_faults(live.dir, live.model.name);
  std::erase_if(looks.rules,
                [](const fault::Rule& rule) { return fault::subject_of(rule.kind) != fault::Subject::look; });
  // A tree for each look: programs that run keep the one that they have seen.
  const size_t look = looks.rules.empty() ? 0 : std::hash<std::string>{}(fault::emit_plan(looks));
  const std::string path = sysroot_of(live, spec.node) + (look == 0 ? "" : fmt::format("-{:016x}", look));
  if (make_sysroot(path, sysroot_devices(live.dir, live.model, spec, looks))) {
    for (const cluster::PortSpec& port : spec.ports) {
      if (!live.control.cable_up(port.cable)) {
        set_sysroot_state(path, port.device, false);
      }
    }
  }
  return path;
}

}  // namespace

std::string own_prefix() {
  std::error_code error;
  return fs::read_symlink("/proc/self/exe", error).parent_path().parent_path().string();
}

std::string library_folder() {
  const std::string folder = own_prefix() + "/lib/ringbolt";
  for (const char* library : kLibraries) {
    if (::access((folder + library).c_str(), R_OK) != 0) {
      throw UsageError(
          fmt::format("{}{} is missing: build everything (cmake --build), or install ringbolt anew", folder, library));
    }
  }
  return folder;
}

NodeEnvironment node_environment(const LiveCluster& live, uint32_t node) {
  const cluster::NodeSpec spec = cluster::node_spec(live.model, node);
  const std::string libraries = library_folder();  // refuses before anything is made
  NodeEnvironment environment = common_environment(live.dir, libraries, node_sysroot(live, spec));
  set(environment, "RINGBOLT_CLUSTER", live.model.name);
  set(environment, "RINGBOLT_NODE", std::to_string(node));
  set(environment, "RINGBOLT_NODES", std::to_string(live.model.nodes.size()));
  if (live.model.kind == cluster::Kind::netns) {
    environment.netns = namespace_path(live.model.name, node);
  }
  if (live.model.kind == cluster::Kind::netns && live.model.has_management) {
    set(environment, "RINGBOLT_MEETING_HOST", cluster::management_address(0).text());
  } else {
    environment.unset.emplace_back("RINGBOLT_MEETING_HOST");
  }
  std::vector<uint32_t> told;
  for (const cluster::PortSpec& port : spec.ports) {
    // Of parallel cables the first.
    if (std::find(told.begin(), told.end(), port.peer_node) == told.end()) {
      told.push_back(port.peer_node);
      if (port.stream.empty()) {  // a stream leads to no address that sockets know
        set(environment, fmt::format("RINGBOLT_ADDR_{}", port.peer_node), peer_address(live.model, node, port));
      }
      set(environment, fmt::format("RINGBOLT_DEVICE_{}", port.peer_node), port.device);
    }
  }
  return environment;
}

NodeEnvironment local_environment(const cluster::RuntimeDir& dir) {
  const std::string libraries = library_folder();
  const std::string like = variable("RINGBOLT_LIKE");
  const std::string sysroot = dir.default_dir() + "/sys" + (like.empty() ? "" : "-" + like);
  cluster::make_private_dir(dir.default_dir());
  make_sysroot(sysroot, {local_device(dir, profile_of(like))});
  NodeEnvironment environment = common_environment(dir, libraries, sysroot);
  for (const char* name : {"RINGBOLT_CLUSTER", "RINGBOLT_NODE", "RINGBOLT_NODES", "RINGBOLT_MEETING_HOST"}) {
    environment.unset.emplace_back(name);
  }
  return environment;
}

std::vector<std::string> merged_environment(const NodeEnvironment& changes) {
  std::vector<std::string> merged;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    const std::string name = text.substr(0, text.find('='));
    const bool is_changed =
        std::any_of(changes.set.begin(), changes.set.end(), [&](const Variable& v) { return v.name == name; }) ||
        std::find(changes.unset.begin(), changes.unset.end(), name) != changes.unset.end();
    if (!is_changed) {
      merged.push_back(text);
    }
  }
  for (const Variable& one : changes.set) {
    merged.push_back(one.name + "=" + one.value);
  }
  return merged;
}

std::string shell_quoted(const std::string& text) {
  std::string quoted = "'";
  for (const char c : text) {
    quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  }
  return quoted + "'";
}

std::string with_first(const std::string& list, const std::string& entry) {
  std::vector<std::string> entries = entries_but(list, entry);
  entries.insert(entries.begin(), entry);
  return fmt::format("{}", fmt::join(entries, ":"));
}

std::string with_last(const std::string& list, const std::string& entry) {
  std::vector<std::string> entries = entries_but(list, entry);
  entries.push_back(entry);
  return fmt::format("{}", fmt::join(entries, ":"));
}

NodeEnvironment environment_of(const std::string& cluster, const std::string& node) {
  if (node == "local") {
    return local_environment(cluster::RuntimeDir::from_environment());
  }
  const LiveCluster live = open_cluster(cluster);
  const uint32_t number = find_node(live.model, node);
  if (live.is_remote()) {
    throw UsageError(fmt::format("node {} is another machine; start programs there with ringbolt run or exec",
                                 live.model.nodes[number].name));
  }
  return node_environment(live, number);
}

}  // namespace ringbolt::tools
