#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/byte_writer.h"
#include "base/clock.h"
#include "base/say.h"
#include "bootstrap/environment.h"
#include "bootstrap/side_channel.h"
#include "circuit/paths.h"
#include "cluster/model.h"
#include "cluster_state.h"
#include "commands.h"
#include "failure.h"
#include "json_text.h"
#include "nccl/plugin.h"
#include "ranks/start.h"
#include "ring_order.h"
#include "table.h"

namespace ringbolt::tools::nccl_command {
namespace {

/// Which way messages between two nodes go, as the plugin chooses (circuit/paths.h).
struct PairPaths {
  uint32_t a = 0;
  uint32_t b = 0;
  uint32_t n_hops = 0;                 ///< 0: there is no way
  std::vector<std::string> ways = {};  ///< "n0:en2-n1:en3", "n1", "n1, n2": a cable, or who relays
};

/// A node of that number: 0 is nobody's.
circuit::NodeId id_of(uint32_t node) { return node + 1; }

std::string way_text(const cluster::Cluster& model, const circuit::Path& path) {
  if (path.size() == 2) {
    const auto from = static_cast<uint32_t>(path[0].member - 1);
    const auto to = static_cast<uint32_t>(path[1].member - 1);
    return fmt::format("{}-{}", cluster::end_text(model, {from, path[0].exit.port}),
                       cluster::end_text(model, {to, path[1].entry.port}));
  }
  std::vector<std::string> relays;
  for (size_t i = 1; i + 1 < path.size(); ++i) {
    relays.push_back(model.nodes[path[i].member - 1].name);
  }
  return fmt::format("by {}", fmt::join(relays, ", "));
}

/// Of all pairs a < b, over cables that are up. [cables] of `is_up`. Pure.
std::vector<PairPaths> pair_paths(const cluster::Cluster& model, const std::vector<bool>& is_up) {
  std::vector<circuit::Link> links;
  for (size_t i = 0; i < model.cables.size(); ++i) {
    cluster::CableEnd a = model.cables[i].a;
    cluster::CableEnd b = model.cables[i].b;
    if (b.node < a.node) {
      std::swap(a, b);
    }
    if (a.node != b.node && is_up[i]) {
      links.push_back({id_of(a.node),
                       id_of(b.node),
                       {static_cast<uint16_t>(a.port), 0},
                       {static_cast<uint16_t>(b.port), 0},
                       model.cables[i].speed_gbps * 1000,
                       true});
    }
  }
  const auto n_nodes = static_cast<uint32_t>(model.nodes.size());
  circuit::MembersOfNode members;
  for (uint32_t node = 0; node < n_nodes; ++node) {
    members[id_of(node)] = {id_of(node)};
  }
  std::vector<PairPaths> pairs;
  for (uint32_t a = 0; a < n_nodes; ++a) {
    for (uint32_t b = a + 1; b < n_nodes; ++b) {
      PairPaths& pair = pairs.emplace_back(PairPaths{a, b});
      for (const circuit::PlannedPath& planned :
           circuit::plan_paths(links, {}, members, {id_of(a), id_of(a)}, {id_of(b), id_of(b)})) {
        pair.n_hops = static_cast<uint32_t>(planned.path.size() - 1);
        pair.ways.push_back(way_text(model, planned.path));
      }
    }
  }
  return pairs;
}

/// An order of nodes in which each shares a cable with the next, and the last with the first; empty: there is none.
std::vector<uint32_t> channel_order(const cluster::Cluster& model, const std::vector<bool>& is_up) {
  const size_t n = model.nodes.size();
  if (n == 2) {
    const bool is_joined = std::ranges::any_of(model.cables, [&](const cluster::Cable& cable) {
      return is_up[static_cast<size_t>(&cable - model.cables.data())] && cable.a.node != cable.b.node;
    });
    return is_joined ? std::vector<uint32_t>{0, 1} : std::vector<uint32_t>();
  }
  bootstrap::JacclDevices devices;
  devices.cells.assign(n, std::vector<std::vector<std::string>>(n));
  for (size_t i = 0; i < model.cables.size(); ++i) {
    const cluster::Cable& cable = model.cables[i];
    if (is_up[i] && cable.a.node != cable.b.node) {
      devices.cells[cable.a.node][cable.b.node].push_back(model.nodes[cable.a.node].ports[cable.a.port].name);
      devices.cells[cable.b.node][cable.a.node].push_back(model.nodes[cable.b.node].ports[cable.b.port].name);
    }
  }
  return n < 3 ? std::vector<uint32_t>() : ring_order(devices).ranks;
}

}  // namespace
}  // namespace ringbolt::tools::nccl_command

namespace ringbolt::tools {
namespace {

using nccl_command::Figure;
using nccl_command::Pair;
using nccl_command::PairPaths;
using nccl_command::Plugin;

constexpr uint64_t kExchangeNs = 120'000'000'000;
constexpr uint64_t kConnectNs = 30'000'000'000;

std::string plugin_of(const NcclOptions& options) {
  return options.plugin.empty() ? nccl_command::installed_plugin() : options.plugin;
}

/// Whether NCCL without a plugin reaches what it has to: neighbours of its ring alone, with the cables it can choose.
std::string without_plugin(const cluster::Cluster& model, const std::vector<PairPaths>& pairs) {
  std::vector<std::string> far;
  for (const PairPaths& pair : pairs) {
    if (pair.n_hops != 1) {
      far.push_back(fmt::format("{} and {}", model.nodes[pair.a].name, model.nodes[pair.b].name));
    }
  }
  if (far.empty()) {
    return model.nodes.size() == 2
               ? "yes, where the cables' ports pair by number; else from 2.30.7 on with NCCL_IB_SUBNET_AWARE_ROUTING=1"
               : "from 2.30.7 on, with NCCL_IB_SUBNET_AWARE_ROUTING=1 and a subnet for each cable; without failover";
  }
  constexpr size_t kMost = 4;
  const size_t n_more = far.size() - std::min(far.size(), kMost);
  far.resize(std::min(far.size(), kMost));
  return fmt::format("no: no cable joins {}{}", fmt::join(far, ", "),
                     n_more == 0 ? "" : fmt::format(" and {} more pairs", n_more));
}

void print_plan(const NcclOptions& options, const cluster::Cluster& model, const std::vector<PairPaths>& pairs,
                const std::vector<uint32_t>& order) {
  if (!options.is_json) {
    std::vector<std::string> names;
    for (const uint32_t node : order) {
      names.push_back(model.nodes[node].name);
    }
    fmt::print("export NCCL_NET_PLUGIN={}\nexport NCCL_NET=Ringbolt\n\n", plugin_of(options));
    fmt::print("order of ranks  {}\n", names.empty() ? "none in which all neighbours share a cable: take any"
                                                     : fmt::format("{}", fmt::join(names, " ")));
    fmt::print("without it      {}\n\n", without_plugin(model, pairs));
    std::fflush(stdout);
  }
  Table table("pairs", {{"A"}, {"B"}, {"HOPS", Table::Kind::kNumber}, {"WAYS"}}, options.is_json);
  for (const PairPaths& pair : pairs) {
    table.add({model.nodes[pair.a].name, model.nodes[pair.b].name, pair.n_hops == 0 ? "" : std::to_string(pair.n_hops),
               pair.ways.empty() ? "none" : fmt::format("{}", fmt::join(pair.ways, "; "))});
  }
  table.print();
}

/// One rank's connections with all others.
class Connections {
 public:
  Connections(Plugin& plugin, bootstrap::SideChannel& side_channel) : plugin_(plugin), rank_(side_channel.rank()) {
    const uint32_t n = side_channel.n_ranks();
    std::vector<Plugin::Handle> own(n);
    std::vector<void*> listeners(n);
    base::ByteWriter writer;
    for (uint32_t other = 0; other < n; ++other) {
      listeners[other] = plugin.listen(own[other]);
      writer.put_bytes(own[other]);
    }
    const auto shares = side_channel.all_gather(writer.bytes(), base::now_ns() + kExchangeNs);
    if (!shares) {
      throw FoundProblem(shares.error().text);
    }
    std::vector<Plugin::Handle> theirs(n);
    for (uint32_t other = 0; other < n; ++other) {
      base::ByteReader reader((*shares)[other]);
      (void)reader.take_bytes(rank_ * sizeof(Plugin::Handle));
      const auto bytes = reader.take_bytes(sizeof(Plugin::Handle));
      if (!reader.is_sound()) {
        throw FoundProblem(fmt::format("rank {} gave no handles", other));
      }
      std::copy(bytes.begin(), bytes.end(), theirs[other].begin());
      pairs_.push_back({plugin, nullptr, nullptr, rank_, other});
    }
    connect_all(listeners, theirs);
    for (void* const listener : listeners) {
      plugin.close_listener(listener);
    }
  }
  ~Connections() {
    for (const Pair& pair : pairs_) {
      if (pair.other != rank_) {
        plugin_.close_send(pair.send_comm);
        plugin_.close_receive(pair.receive_comm);
      }
    }
  }
  Connections(const Connections&) = delete;
  Connections& operator=(const Connections&) = delete;

  Pair& with(uint32_t other) { return pairs_[other]; }

 private:
  void connect_all(const std::vector<void*>& listeners, std::vector<Plugin::Handle>& theirs) {
    const uint64_t deadline_ns = base::now_ns() + kConnectNs;
    for (bool is_done = false; !is_done;) {
      is_done = true;
      for (Pair& pair : pairs_) {
        if (pair.other == rank_) {
          continue;
        }
        if (pair.send_comm == nullptr) {
          pair.send_comm = plugin_.connect(theirs[pair.other]);
        }
        if (pair.receive_comm == nullptr) {
          pair.receive_comm = plugin_.accept(listeners[pair.other]);
        }
        const bool is_connected = pair.send_comm != nullptr && pair.receive_comm != nullptr;
        is_done = is_done && is_connected;
        if (!is_connected && base::now_ns() > deadline_ns) {
          throw FoundProblem(fmt::format("rank {} and rank {} were not connected within {} s", rank_, pair.other,
                                         kConnectNs / 1'000'000'000));
        }
      }
      ::usleep(200);
    }
  }

  Plugin& plugin_;
  const uint32_t rank_;
  std::vector<Pair> pairs_;
};

int run_rank(const NcclOptions& options) {
  bootstrap::SideChannel side_channel =
      bootstrap::SideChannel::join(bootstrap::config_from(bootstrap::environment_of_process(), bootstrap::read_file));
  Plugin plugin(plugin_of(options));
  Connections connections(plugin, side_channel);
  const bool prints = side_channel.rank() == 0;
  uint64_t n_wrong = 0;
  Table table("figures",
              {{"FROM", Table::Kind::kNumber},
               {"TO", Table::Kind::kNumber},
               {"SIZE", Table::Kind::kNumber},
               {"TIME_US", Table::Kind::kNumber},
               {"ALGBW_GBPS", Table::Kind::kNumber},
               {"WRONG", Table::Kind::kNumber}},
              true);
  if (prints && !options.is_json) {
    fmt::print(
        "#  from    to        size        time   algbw  #wrong\n#                     (B)        (us)  (GB/s)\n");
  }
  for (uint32_t from = 0; from < side_channel.n_ranks(); ++from) {
    for (uint32_t to = 0; to < side_channel.n_ranks(); ++to) {
      for (uint64_t size = options.least; from != to && size <= options.most;
           size = std::max<uint64_t>(size * options.factor, 1)) {
        std::optional<Figure> figure;
        if (side_channel.rank() == from || side_channel.rank() == to) {
          figure = measure(connections.with(side_channel.rank() == from ? to : from), from < to, size);
        }
        const std::string mine = to_line(figure);
        const auto shares = side_channel.all_gather(std::as_bytes(std::span(mine)), base::now_ns() + kExchangeNs);
        if (!shares) {
          throw FoundProblem(shares.error().text);
        }
        const std::span<const std::byte> told((*shares)[to]);
        const auto found = from_line<Figure>({reinterpret_cast<const char*>(told.data()), told.size()});
        if (!found) {
          throw FoundProblem("a rank gave no figure");
        }
        const Figure& its = *found;
        n_wrong += its.n_wrong;
        if (prints && options.is_json) {
          table.add({std::to_string(from), std::to_string(to), std::to_string(size), fmt::format("{:.2f}", its.time_us),
                     fmt::format("{:.3f}", its.gb_per_s), std::to_string(its.n_wrong)});
        } else if (prints) {
          fmt::print("{:>7} {:>5} {:>11} {:>11.2f} {:>7.2f} {:>7}\n", from, to, size, its.time_us, its.gb_per_s,
                     its.n_wrong);
          std::fflush(stdout);
        }
      }
    }
  }
  if (prints && options.is_json) {
    table.print();
  } else if (prints) {
    fmt::print("# {} of all messages were wrong\n", n_wrong == 0 ? "none" : std::to_string(n_wrong));
  }
  return n_wrong == 0 ? kOk : kFoundProblem;
}

/// A cluster that lives as long as this.
class Emulated {
 public:
  explicit Emulated(const NcclOptions& options) {
    UpOptions up_options;
    up_options.spec = options.emulate;
    up_options.like = options.like;
    up_options.name = fmt::format("nccl-test-{}", ::getpid());
    if (const int failed = up(up_options); failed != kOk) {
      throw FoundProblem("the cluster could not be made");
    }
    name_ = up_options.name;
    std::fflush(stdout);  // before what its ranks print
  }
  ~Emulated() {
    try {
      std::fflush(stdout);
      (void)down({name_, true});
    } catch (const std::exception& error) {
      base::say(fmt::format("ringbolt nccl test: {}\n", error.what()));
    }
  }
  Emulated(const Emulated&) = delete;
  Emulated& operator=(const Emulated&) = delete;
  const std::string& name() const { return name_; }

 private:
  std::string name_;
};

}  // namespace

int nccl_plan(const NcclOptions& options) {
  const LiveCluster live = open_cluster(options.cluster);
  const std::vector<bool> is_up = cables_up(live);
  const std::vector<PairPaths> pairs = nccl_command::pair_paths(live.model, is_up);
  print_plan(options, live.model, pairs, nccl_command::channel_order(live.model, is_up));
  const bool is_whole = std::ranges::all_of(pairs, [](const PairPaths& pair) { return pair.n_hops > 0; });
  return is_whole ? kOk : kFoundProblem;
}

int nccl_test(const NcclOptions& options) {
  if (options.is_rank) {
    return run_rank(options);
  }
  constexpr uint64_t kMostBytes = uint64_t{1} << 30U;  // NCCL's own limit
  if (options.most > kMostBytes) {
    throw UsageError(fmt::format("-e {}: at most {} bytes", options.most, kMostBytes));
  }
  if (options.least > options.most) {
    throw UsageError(fmt::format("-b {} is more than -e {}", options.least, options.most));
  }
  if (!options.like.empty() && options.emulate.empty()) {
    throw UsageError("--like is for the cluster that --emulate makes");
  }
  std::optional<Emulated> emulated;
  if (!options.emulate.empty()) {
    emulated.emplace(options);
  }
  return ranks::run_on_all_nodes(emulated ? emulated->name() : options.cluster, options.words, std::nullopt);
}

}  // namespace ringbolt::tools
