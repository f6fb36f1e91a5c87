#include "cluster_state.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <system_error>

#include <fmt/format.h>

#include "base/error.h"
#include "base/file_turn.h"
#include "base/nearest.h"
#include "cluster/cluster_file.h"
#include "cluster/names.h"
#include "cluster/read_file.h"
#include "failure.h"
#include "namespace_claim.h"
#include "namespaces.h"
#include "progress_line.h"

namespace ringbolt::tools {
namespace {

namespace fs = std::filesystem;

constexpr const char* kNewPrefix = ".new-";
constexpr const char* kGonePrefix = ".gone-";

constexpr const char* kUnknownBoot = "unknown\n";

/// State outlives a reboot where /tmp does, but no program and no cable setting means anything after one.
std::string boot_id() {
  try {
    return cluster::read_file("/proc/sys/kernel/random/boot_id", 64);
  } catch (const base::Error&) {
    return kUnknownBoot;
  }
}

/// Whether both are known and differ.
bool is_of_another_boot(const std::string& folder) {
  const std::string then = cluster::read_file(folder + "/boot", 64);
  const std::string now = boot_id();
  return then != now && then != kUnknownBoot && now != kUnknownBoot;
}

/// The node that this machine is, as the file beside the cluster's says; none where there is no such file.
std::optional<uint32_t> read_here(const std::string& folder, const cluster::Cluster& model) {
  const std::string path = folder + "/here";
  if (::access(path.c_str(), F_OK) != 0) {
    return std::nullopt;
  }
  const std::string text = cluster::read_file(path, 16);
  uint32_t node = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), node);
  if (error != std::errc{} || node >= model.nodes.size()) {
    throw base::Error(EINVAL, "holds no node of the cluster", path, "make the cluster anew");
  }
  return node;
}

void remove_tree(const std::string& path) {
  std::error_code error;
  fs::remove_all(path, error);
  if (error) {
    throw base::Error(error.value(), "remove", path, "remove it by hand");
  }
}

/// One of the cluster, or one of each node.
std::vector<std::string> slot_folders(const cluster::RuntimeDir& dir, const std::string& name) {
  std::vector<std::string> folders;
  for (const std::string& entry : cluster::names_in(dir.cluster(name))) {
    if (entry.rfind("slots", 0) == 0) {
      folders.push_back(dir.cluster(name) + "/" + entry);
    }
  }
  return folders;
}

void fill(const std::string& path, const cluster::Cluster& model, std::optional<uint32_t> here) {
  cluster::make_private_dir(path);
  if (model.kind == cluster::Kind::emulated) {
    cluster::make_private_dir(path + "/slots");
  }
  cluster::write_new_file(path + "/cluster.json", cluster::emit_cluster(model));
  cluster::write_new_file(path + "/boot", boot_id());
  if (here) {
    cluster::write_new_file(path + "/here", std::to_string(*here) + "\n");
  }
  for (uint32_t node = 0; node < model.nodes.size(); ++node) {
    if (model.kind != cluster::Kind::emulated) {
      cluster::make_private_dir(fmt::format("{}/slots-{}", path, node));
    }
    cluster::write_new_file(fmt::format("{}/node-{}.ports", path, node),
                            cluster::emit_node(cluster::node_spec(model, node)));
  }
  cluster::ControlPage::create(path + "/control", static_cast<uint32_t>(model.cables.size()));
}

}  // namespace

std::vector<std::string> cluster_names(const cluster::RuntimeDir& dir) {
  std::vector<std::string> names = cluster::names_in(dir.clusters());
  std::erase_if(names, [](const std::string& name) { return !cluster::is_cluster_name(name); });
  return names;
}

std::string choose_cluster(const cluster::RuntimeDir& dir, const std::string& wanted) {
  const char* variable = std::getenv("RINGBOLT_CLUSTER");
  std::string name = wanted;
  if (name.empty() && variable != nullptr) {
    name = variable;
  }
  const std::vector<std::string> names = cluster_names(dir);
  const std::string all = names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", "));
  if (name.empty()) {
    if (names.empty()) {
      throw UsageError("no cluster is up; make one: ringbolt up --emulate ring:4");
    }
    if (names.size() > 1) {
      throw UsageError(fmt::format("several clusters are up ({}); choose one: --cluster {}", all, names.front()));
    }
    return names.front();
  }
  if (std::find(names.begin(), names.end(), name) == names.end()) {
    if (wanted.empty()) {
      throw UsageError(
          fmt::format("cluster \"{0}\", from RINGBOLT_CLUSTER, is not up (up: {1}; in {2}); unset the "
                      "variable, or make the cluster: ringbolt up --emulate ring:4 --name {0}",
                      name, all, dir.root()));
    }
    const std::string near = base::nearest(name, names);
    throw UsageError(
        fmt::format("cluster \"{0}\" is not up (up: {1}; in {2}){3}; make it: ringbolt up --emulate ring:4 "
                    "--name {0}",
                    name, all, dir.root(), near.empty() ? "" : fmt::format("; did you mean {}?", near)));
  }
  return name;
}

bool is_evidence(int error) {
  constexpr std::array kTelling = {ENOENT, ENOTDIR, EISDIR, EINVAL, EFBIG, ELOOP};
  return std::ranges::find(kTelling, error) != kTelling.end();
}

std::string Condition::text(const std::string& name) const {
  return kind == Kind::stale
             ? fmt::format("the state of cluster \"{0}\" is stale: {1}; remove it: ringbolt down --cluster {0}", name,
                           reason)
             : fmt::format("the state of cluster \"{}\" can't be looked at, and stays as it is: {}", name, reason);
}

Condition condition_of(const cluster::RuntimeDir& dir, const std::string& name) {
  try {
    cluster::check_private_dir(dir.cluster(name));
    const cluster::Cluster model = cluster::load_cluster(dir.cluster_file(name));
    if (cluster::ControlPage::open(dir.control(name)).n_cables() != model.cables.size()) {
      return {Condition::Kind::stale,
              fmt::format("{} does not have the {} cables of the cluster", dir.control(name), model.cables.size())};
    }
    if (is_of_another_boot(dir.cluster(name))) {
      return {Condition::Kind::stale, "it is from before the machine was booted"};
    }
    if (const std::string missing = model.kind == cluster::Kind::netns ? missing_namespace(model) : "";
        !missing.empty()) {
      return {Condition::Kind::stale, missing};
    }
    return {};
  } catch (const base::Error& error) {
    return {is_evidence(error.errno_value()) ? Condition::Kind::stale : Condition::Kind::unknown, error.what()};
  }
}

LiveCluster open_cluster(const std::string& wanted) {
  cluster::RuntimeDir dir = cluster::RuntimeDir::from_environment();
  const std::string name = choose_cluster(dir, wanted);
  if (const Condition condition = condition_of(dir, name); !condition.is_whole()) {
    throw UsageError(condition.text(name));
  }
  cluster::Cluster model = cluster::load_cluster(dir.cluster_file(name));
  cluster::ControlPage control = cluster::ControlPage::open(dir.control(name));
  const std::optional<uint32_t> here = read_here(dir.cluster(name), model);
  return {std::move(dir), std::move(model), std::move(control), here};
}

base::UniqueFd lock_clusters(const cluster::RuntimeDir& dir) {
  cluster::make_private_dir(dir.clusters());
  return lock_file(dir.clusters() + "/.lock");
}

void make_cluster(const cluster::RuntimeDir& dir, const cluster::Cluster& model, std::optional<uint32_t> here) {
  const std::string hidden = dir.clusters() + "/" + kNewPrefix + model.name;
  try {
    fill(hidden, model, here);
    if (model.kind == cluster::Kind::netns) {
      make_namespaces(model);
    }
    if (::rename(hidden.c_str(), dir.cluster(model.name).c_str()) != 0) {
      throw base::Error(errno, "rename to " + dir.cluster(model.name), hidden);
    }
  } catch (...) {
    std::error_code ignored;
    fs::remove_all(hidden, ignored);
    if (model.kind == cluster::Kind::netns) {
      give_up_namespaces(dir, model.name);
    }
    throw;
  }
}

void remove_cluster(const cluster::RuntimeDir& dir, const std::string& name) {
  const std::string hidden = dir.clusters() + "/" + kGonePrefix + name;
  if (::rename(dir.cluster(name).c_str(), hidden.c_str()) != 0) {
    throw base::Error(errno, "rename", dir.cluster(name), "remove it by hand");
  }
  release_namespaces(dir, name);
  remove_tree(hidden);
}

void cut_every_cable(const cluster::RuntimeDir& dir, const std::string& name) {
  if (!condition_of(dir, name).is_whole()) {
    return;
  }
  cluster::ControlPage control = cluster::ControlPage::open(dir.control(name));
  for (uint32_t cable = 0; cable < control.n_cables(); ++cable) {
    control.set_cable(cable, false);
  }
  poke_cluster(dir, name);
}

size_t remove_leftovers(const cluster::RuntimeDir& dir) {
  std::vector<std::string> leftovers;
  for (const std::string& name : cluster::names_in(dir.clusters())) {
    if (name.starts_with(kNewPrefix) || name.starts_with(kGonePrefix)) {
      leftovers.push_back(dir.clusters() + "/" + name);
    }
  }
  // A folder without its namespaces, or namespaces without their folder: one interrupted command may leave both.
  const size_t claims = release_dead_claims(dir);
  for (const std::string& path : leftovers) {
    remove_tree(path);
  }
  return std::max(leftovers.size(), claims);
}

std::vector<Program> cluster_programs(const cluster::RuntimeDir& dir, const std::string& name) {
  std::vector<Program> programs = owns_namespaces(dir, name) ? namespace_programs(name) : std::vector<Program>();
  for (const std::string& slots : slot_folders(dir, name)) {
    for (Program& program : running_programs(slots)) {
      programs.push_back(std::move(program));
    }
  }
  std::ranges::sort(programs, {}, &Program::pid);
  const auto is_same = [](const Program& a, const Program& b) { return a.pid == b.pid; };
  programs.erase(std::unique(programs.begin(), programs.end(), is_same), programs.end());
  return programs;
}

size_t poke_cluster(const cluster::RuntimeDir& dir, const std::string& name) {
  size_t told = 0;
  for (const std::string& slots : slot_folders(dir, name)) {
    told += poke_programs(slots);
  }
  return told;
}

std::vector<bool> cables_up(const LiveCluster& live) {
  live.control.refresh();
  std::vector<bool> is_up;
  for (uint32_t cable = 0; cable < live.model.cables.size(); ++cable) {
    is_up.push_back(live.control.cable_up(cable));
  }
  return is_up;
}

std::string sysroot_of(const LiveCluster& live, uint32_t node) {
  return fmt::format("{}/sys-{}", live.dir.cluster(live.model.name), node);
}

uint32_t find_node(const cluster::Cluster& model, const std::string& node) {
  uint32_t number = 0;
  const auto [end, error] = std::from_chars(node.data(), node.data() + node.size(), number);
  if (error == std::errc{} && end == node.data() + node.size() && number < model.nodes.size()) {
    return number;
  }
  for (uint32_t index = 0; index < model.nodes.size(); ++index) {
    if (model.nodes[index].name == node) {
      return index;
    }
  }
  throw UsageError(fmt::format("cluster \"{}\" has no node \"{}\"; its nodes are 0 to {} ({} to {})", model.name, node,
                               model.nodes.size() - 1, model.nodes.front().name, model.nodes.back().name));
}

base::UniqueFd lock_file(const std::string& path) {
  constexpr uint64_t kPatienceMs = 10'000;
  base::UniqueFd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!fd.is_open()) {
    throw base::Error(errno, "open", path);
  }
  const Waiting waiting(fmt::format("another ringbolt command holds {}", path));
  const int error = base::take_file_turn(fd.get(), kPatienceMs);
  if (error == EWOULDBLOCK) {
    throw UsageError(fmt::format("another ringbolt command has held {} for 10 s; end it, then try again", path));
  }
  if (error != 0) {
    throw base::Error(error, "lock", path);
  }
  return fd;
}

}  // namespace ringbolt::tools
