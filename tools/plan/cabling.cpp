#include "plan/cabling.h"

#include <algorithm>

#include <fmt/format.h>

#include "cabling_file.h"
#include "cluster/limits.h"
#include "cluster/topology.h"
#include "fabric/shape.h"
#include "failure.h"
#include "like.h"

namespace ringbolt::tools::plan {
namespace {

using fabric::AddressPool;
using fabric::Fraction;
using fabric::PlannedCable;
using fabric::Shape;

uint32_t needed(const std::optional<uint32_t>& given, const char* option) {
  if (!given) {
    throw UsageError(fmt::format("{} is required; for example: ringbolt plan --nodes 10 --ports 3", option));
  }
  return *given;
}

/// Nodes with all their ports, and the cables of the plan.
cluster::Cluster model_of(const fabric::Plan& plan, uint32_t unit_gbps) {
  cluster::Cluster model;
  for (uint32_t node = 0; node < plan.n_nodes; ++node) {
    cluster::Node& made = model.nodes.emplace_back();
    made.name = fmt::format("n{}", node);
    for (uint32_t port = 0; port < plan.n_ports; ++port) {
      made.ports.push_back({cluster::port_device(port)});
    }
  }
  for (const PlannedCable& cable : plan.cables) {
    model.cables.push_back({{cable.a.node, cable.a.port}, {cable.b.node, cable.b.port}, unit_gbps, 0, cable.id});
  }
  return model;
}

Cabling planned(const PlanOptions& options) {
  const uint32_t n_nodes = needed(options.nodes, "--nodes");
  const uint32_t n_ports = needed(options.ports, "--ports");
  base::Parsed<Shape> shape = options.shape.empty() ? fabric::best_shape(n_nodes, n_ports)
                                                    : fabric::named_shape(options.shape, n_nodes, n_ports);
  if (!shape) {
    throw UsageError(shape.error().text());
  }
  Cabling cabling;
  cabling.shape = shape->name;
  cabling.origin = shape->origin;
  cabling.is_best = options.shape.empty();
  cabling.plan = fabric::make_plan(shape->graph, n_ports);
  cabling.unit_gbps = options.speed_gbps.value_or(cluster::kDefaultSpeedGbps);
  // Or the remark on equal port numbers would be on our own plan.
  const bool is_crossed = profile_of(options.like).name == "spark" && n_nodes > 2;
  const std::vector<bool> is_last_odd =
      is_crossed ? fabric::cross_ports(cabling.plan) : std::vector<bool>(n_nodes, false);
  cabling.model = model_of(cabling.plan, cabling.unit_gbps);
  take_likeness(cabling.model, options.like, true);
  for (uint32_t node = 0; node < n_nodes; ++node) {
    if (is_last_odd[node]) {
      cabling.model.nodes[node].ports.back().name = port_name("spark", n_ports);  // the other half of that port
    }
  }
  return cabling;
}

/// The cluster that `spec` names as it does for `up --emulate`.
cluster::Cluster named_cluster(const std::string& spec) {
  if (!cluster::names_topology(spec)) {
    return load_cabling(spec);
  }
  cluster::Parsed<cluster::Cluster> parsed = cluster::parse_topology(spec);
  if (!parsed) {
    throw UsageError(fmt::format("\"{}\": {}", spec, parsed.error().text()));
  }
  return std::move(*parsed);
}

/// Gives each cable a number: the one that the file has, and to others the next ones. In their order.
void number_cables(std::vector<cluster::Cable>& cables) {
  uint32_t next_id = 0;
  for (const cluster::Cable& cable : cables) {
    next_id = std::max(next_id, cable.id ? *cable.id + 1 : 0);
  }
  for (cluster::Cable& cable : cables) {
    cable.id = cable.id ? *cable.id : next_id++;
  }
  std::ranges::sort(cables, {}, &cluster::Cable::id);
}

Cabling judged(const std::string& path, const std::string& like) {
  Cabling cabling;
  cabling.shape = path;
  cabling.origin = cluster::names_topology(path) ? "as up --emulate makes it" : "as the file has it";
  cabling.is_given = true;
  cabling.model = named_cluster(path);
  cluster::Cluster& model = cabling.model;
  take_likeness(model, like, cluster::names_topology(path));
  if (model.nodes.size() < 2) {
    throw UsageError(fmt::format("{}: has 1 node; there is nothing to judge below 2", path));
  }
  std::vector<cluster::Cable> all = std::move(model.cables);
  model.cables.clear();
  number_cables(all);
  cabling.unit_gbps = cluster::kMaxSpeedGbps;
  for (const cluster::Cable& cable : all) {
    cabling.unit_gbps = std::min(cabling.unit_gbps, cable.speed_gbps);
  }
  fabric::Plan& plan = cabling.plan;
  plan.n_nodes = static_cast<uint32_t>(model.nodes.size());
  for (const cluster::Node& node : model.nodes) {
    plan.n_ports = std::max(plan.n_ports, static_cast<uint32_t>(node.ports.size()));
  }
  for (const cluster::Cable& cable : all) {
    const uint32_t id = *cable.id;
    plan.next_id = id + 1;
    if (cable.a.node == cable.b.node) {
      cabling.oddities.push_back(fmt::format("cable {} leads from {} back to the same node: it was left out", id,
                                             cluster::end_text(model, cable.a)));
      continue;
    }
    const auto& [low, high] = cable.a.node < cable.b.node ? std::pair(cable.a, cable.b) : std::pair(cable.b, cable.a);
    const auto rail = std::ranges::count_if(plan.cables, [&, low = low, high = high](const PlannedCable& one) {
      return one.a.node == low.node && one.b.node == high.node;
    });
    plan.cables.push_back({id,
                           {low.node, low.port},
                           {high.node, high.port},
                           static_cast<uint32_t>(rail),
                           Fraction(cable.speed_gbps, cabling.unit_gbps)});
    model.cables.push_back({low, high, cable.speed_gbps, cable.rate_mbps, id});
  }
  return cabling;
}

/// Refuses cables that have no subnet.
void check_numbers(const Cabling& cabling) {
  const std::vector<PlannedCable>& cables = cabling.plan.cables;
  const uint32_t most = cabling.pool.most_cables();
  const uint32_t length = cabling.pool.prefix_length;
  constexpr uint32_t kLongest = AddressPool{}.prefix_length;
  if (cables.size() > most) {
    throw UsageError(
        fmt::format("{} cables do not fit into one /16: subnets of /{} are enough for {}; give fewer nodes or ports{}",
                    cables.size(), length, most,
                    length < kLongest ? fmt::format(", or --prefix-length {}", kLongest) : std::string()));
  }
  if (!cables.empty() && cables.back().id >= most) {  // they ascend
    const PlannedCable& last = cables.back();
    throw UsageError(fmt::format(
        "cable {} ({}-{}) does not fit into one /16: subnets of /{} are enough for numbers up to {}; give {}", last.id,
        cabling.end_text(last.a), cabling.end_text(last.b), length, most - 1,
        length < kLongest ? fmt::format("--prefix-length {}", kLongest) : std::string("it a free one as its id")));
  }
}

/// Of a Spark's port, by its device, of which it has two; of others by their place. None: no Spark.
std::optional<uint32_t> port_number(const Cabling& cabling, const fabric::PlannedEnd& end) {
  const cluster::Node& node = cabling.model.nodes[end.node];
  if (profile_of(node.like).name != "spark") {
    return std::nullopt;
  }
  const std::string& name = node.ports[end.port].name;
  const size_t function = name.rfind('f');
  const bool has_function = name.starts_with("roce") && function + 2 == name.size();
  return has_function ? static_cast<uint32_t>(name.back() - '0') : end.port;
}

/// NCCL's own IB transport takes the same device index at both ends of a channel of its ring, and each rank sends by
/// one port and receives by the other. Two machines are no ring: there equal numbers are right.
void remark_on_equal_ports(Cabling& cabling) {
  std::vector<std::string> equal;
  for (const PlannedCable& cable : cabling.plan.cables) {
    const std::optional<uint32_t> a = port_number(cabling, cable.a);
    if (a && a == port_number(cabling, cable.b)) {
      equal.push_back(fmt::format("{} ({}-{})", cable.id, cabling.end_text(cable.a), cabling.end_text(cable.b)));
    }
  }
  if (equal.empty() || cabling.model.nodes.size() < 3) {
    return;
  }
  constexpr size_t kMostNamed = 4;
  const std::string more = equal.size() > kMostNamed ? fmt::format(" and {} more", equal.size() - kMostNamed) : "";
  equal.resize(std::min(equal.size(), kMostNamed));
  cabling.oddities.push_back(
      fmt::format("these cables join ports of equal numbers: {}{}. Stock NCCL pairs devices by index and fails there "
                  "at RTR with 110 "
                  "(ETIMEDOUT); cross them: port 1 of each machine to port 0 of the next",
                  fmt::join(equal, ", "), more));
}

}  // namespace

uint32_t Cabling::speed_gbps(const PlannedCable& cable) const {
  return static_cast<uint32_t>((cable.capacity * Fraction(unit_gbps)).floor());
}

Cabling wanted_cabling(const PlanOptions& options) {
  if (options.file.empty() && !options.nodes && !options.ports) {
    throw UsageError(
        "--nodes and --ports are required, or a topology or cluster file to judge; for example: ringbolt plan --nodes "
        "10 --ports 3");
  }
  Cabling cabling = options.file.empty() ? planned(options) : judged(options.file, options.like);
  cabling.pool.prefix_length = options.prefix_length;
  check_numbers(cabling);
  remark_on_equal_ports(cabling);
  return cabling;
}

}  // namespace ringbolt::tools::plan
