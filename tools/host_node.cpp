#include "host_node.h"

#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <system_error>

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/say.h"
#include "cluster/cluster_file.h"
#include "cluster/names.h"
#include "failure.h"
#include "fault/plan_text.h"
#include "fault_file.h"
#include "host_survey.h"
#include "iproute.h"
#include "namespaces.h"
#include "node_environment.h"
#include "port_counts.h"
#include "standard_input.h"
#include "sysroot.h"

namespace ringbolt::tools {
namespace {

namespace fs = std::filesystem;

/// The node that this process was told to be.
struct Self {
  std::string cluster;
  uint32_t node = 0;
};

Self parse_self(const std::string& text) {
  Self self;
  const size_t slash = text.find('/');
  self.cluster = text.substr(0, slash);
  const char* const end = text.data() + text.size();
  const char* const number = slash == std::string::npos ? end : text.data() + slash + 1;
  const auto [stop, error] = std::from_chars(number, end, self.node);
  if (!cluster::is_cluster_name(self.cluster) || error != std::errc{} || stop != end ||
      self.node >= cluster::kMaxNodes) {
    throw UsageError("--host-node is for `ringbolt up --hosts`: NAME/NUMBER");
  }
  return self;
}

std::string told(size_t count) { return nlohmann::ordered_json{{"told", count}}.dump() + "\n"; }

int look() {
  library_folder();  // refuses if it is not whole
  fmt::print("{}", emit_look(look_here()));
  return kOk;
}

int make_node(const cluster::RuntimeDir& dir, const Self& self) {
  const std::string& name = self.cluster;
  const std::string text = read_input(stdin, cluster::kMaxClusterFileBytes);
  cluster::Parsed<cluster::Cluster> model = cluster::parse_cluster(text);
  if (!model || model->name != name || model->kind != cluster::Kind::hosts || self.node >= model->nodes.size()) {
    throw UsageError(
        fmt::format("the description of cluster {} is damaged{}", name, model ? "" : ": " + model.error().text()));
  }
  const base::UniqueFd lock = lock_clusters(dir);
  remove_leftovers(dir);
  // Whatever was here: the machine that commands knows that the name is free.
  if (const std::vector<Program> programs = cluster_programs(dir, name); !programs.empty()) {
    throw UsageError(
        fmt::format("programs of an earlier cluster {} run here: {}; end them", name, list_programs(programs)));
  }
  if (!cluster_names(dir).empty()) {
    remove_cluster(dir, name);
  }
  make_cluster(dir, *model, self.node);
  return kOk;
}

int remove_node(const cluster::RuntimeDir& dir, const std::string& name, bool is_forced) {
  {
    const base::UniqueFd lock = lock_clusters(dir);
    const std::vector<Program> programs = cluster_programs(dir, name);
    if (!programs.empty() && !is_forced) {
      throw UsageError(fmt::format("programs run here: {}", list_programs(programs)));
    }
    cut_every_cable(dir, name);
    if (!cluster_names(dir).empty()) {
      remove_cluster(dir, name);
    }
  }
  std::error_code error;
  fs::remove_all(dir.root(), error);
  if (error) {
    throw base::Error(error.value(), "remove", dir.root(), "remove it by hand");
  }
  ::rmdir(fs::path(dir.root()).parent_path().c_str());  // stays while other nodes of the cluster are here
  return kOk;
}

int list_node(const cluster::RuntimeDir& dir, const std::string& name) {
  std::vector<Program> programs = cluster_programs(dir, name);
  if (!programs.empty() && condition_of(dir, name).is_whole()) {
    add_port_uses(open_cluster(""), programs);
  }
  fmt::print("{}\n", programs_json(programs));
  return kOk;
}

int list_counters() {
  std::vector<std::string> problems;
  fmt::print("{}\n", counts_json(cluster_counts(open_cluster(""), problems)));
  for (const std::string& problem : problems) {
    base::say(fmt::format("{}\n", problem));
  }
  return problems.empty() ? kOk : kFoundProblem;
}

int set_node_cable(uint32_t node, uint32_t cable, bool is_up) {
  LiveCluster live = open_cluster("");
  if (cable >= live.model.cables.size()) {
    throw UsageError(fmt::format("there is no cable {}", cable));
  }
  const base::UniqueFd lock = lock_clusters(live.dir);
  for (const cluster::CableEnd& end : {live.model.cables[cable].a, live.model.cables[cable].b}) {
    if (end.node == node) {
      const cluster::Port& port = live.model.nodes[node].ports[end.port];
      if (!port.netdev.empty()) {  // streams are cut by the control page alone
        run_iproute({"ip"}, is_up ? link_up_script(port) : fmt::format("link set dev {} down\n", port.netdev));
      }
      set_sysroot_state(sysroot_of(live, node), port.name, is_up);
    }
  }
  if (live.control.set_cable(cable, is_up) && !is_up) {
    count_cut(live, cable);
  }
  fmt::print("{}", told(poke_cluster(live.dir, live.model.name)));
  return kOk;
}

int set_node_faults() {
  LiveCluster live = open_cluster("");
  const fault::Plan plan = read_faults(live, read_input(stdin, fault::kMaxPlanBytes));
  const base::UniqueFd lock = lock_clusters(live.dir);
  fmt::print("{}", told(store_faults(live, plan)));
  return kOk;
}

}  // namespace

void enter_host_node(const std::string& text) {
  const Self self = parse_self(text);
  std::string folder = cluster::RuntimeDir::from_environment().root();
  for (const std::string& part : {std::string("nodes"), self.cluster, std::to_string(self.node)}) {
    folder += "/" + part;
    cluster::make_private_dir(folder);
  }
  ::setenv("RINGBOLT_RUNTIME_DIR", folder.c_str(), 1);
  ::setenv("RINGBOLT_CLUSTER", self.cluster.c_str(), 1);
}

int host(const HostOptions& options) {
  if (options.action == "look") {
    return look();
  }
  const Self self = parse_self(options.node);
  const cluster::RuntimeDir dir = cluster::RuntimeDir::from_environment();
  if (options.action == "up") {
    return make_node(dir, self);
  }
  if (options.action == "down") {
    return remove_node(dir, self.cluster, options.is_forced);
  }
  if (options.action == "programs") {
    return list_node(dir, self.cluster);
  }
  if (options.action == "counters") {
    return list_counters();
  }
  if (options.action == "cable") {
    return set_node_cable(self.node, options.cable, options.is_up);
  }
  if (options.action == "faults") {
    return set_node_faults();
  }
  throw UsageError(fmt::format("\"{}\" is nothing that a host does", options.action));
}

}  // namespace ringbolt::tools
