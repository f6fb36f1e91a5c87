#include "agent/agent.h"

#include <poll.h>
#include <sys/file.h>
#include <sys/signalfd.h>
#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <ctime>
#include <map>
#include <mutex>
#include <string>

#include <fmt/chrono.h>
#include <fmt/format.h>

#include "agent/local_ports.h"
#include "agent/roster.h"
#include "base/clock.h"
#include "base/error.h"
#include "bootstrap/environment.h"
#include "cluster_state.h"
#include "commands.h"
#include "failure.h"
#include "group/world.h"

namespace ringbolt::tools {
namespace {

constexpr int kLookMs = 500;  // after ranks that have failed

void say(const std::string& text) {
  fmt::print(stderr, "{:%F %T} {}\n", fmt::localtime(std::time(nullptr)), text);
}

uint32_t own_node(const LiveCluster& live, const AgentOptions& options) {
  const char* node = std::getenv("RINGBOLT_NODE");
  if (options.node.empty() && node == nullptr) {
    throw UsageError("say which node this agent is of: --node N, or RINGBOLT_NODE as `ringbolt run` sets it");
  }
  return find_node(live.model, options.node.empty() ? node : options.node);
}

base::UniqueFd take_signals() {
  sigset_t ends;
  sigemptyset(&ends);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) {
    sigaddset(&ends, signal);
  }
  pthread_sigmask(SIG_BLOCK, &ends, nullptr);  // in all threads that follow, too
  base::UniqueFd signals(::signalfd(-1, &ends, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!signals.is_open()) {
    throw base::Error(errno, "signalfd", "agent", "look at the limits of this process (ulimit -n)");
  }
  return signals;
}

/// Tells of ranks that have failed since the last look.
void report_failures(const group::World& world, std::map<uint32_t, Status>& known) {
  for (const auto& [rank, status] : world.failed_ranks()) {
    if (known.insert({rank, status}).second) {
      say(fmt::format("node {} is gone: {}; packets to it are dropped", rank, status.text));
    }
  }
}

void report_counts(const agent::LocalPorts& ports, const group::Courier* courier) {
  const group::Courier::Counts counts = courier == nullptr ? group::Courier::Counts() : courier->counts();
  say(fmt::format("ends: {} packets ({} bytes) sent, {} ({} bytes) received; dropped: {} for nodes that are gone, {} for "
                  "full ones, {} for no program, {} for full programs, {} strange",
                  counts.packets_out, counts.bytes_out, counts.packets_in, counts.bytes_in, counts.dropped_gone,
                  counts.dropped_full, ports.counts().dropped_nobody, ports.counts().dropped_full,
                  ports.counts().dropped_strange + counts.malformed));
}

group::WorldPlan plan_of(const LiveCluster& live, uint32_t node) {
  bootstrap::Environment environment = bootstrap::environment_of_process();
  environment["RINGBOLT_NODE"] = std::to_string(node);
  group::WorldPlan plan;
  plan.is_measured = false;  // agents carry packets: they choose no schedules
  plan.meeting = bootstrap::config_from(environment, bootstrap::read_file);
  plan.meeting.group = "overlay-" + live.model.name;
  return plan;
}

/// Serves until a signal ends it.
void serve(group::World& world, agent::LocalPorts& ports, group::Courier* courier, int signals) {
  std::map<uint32_t, Status> failed;
  std::array<pollfd, 2> descriptors{{{ports.descriptor(), POLLIN, 0}, {signals, POLLIN, 0}}};
  for (;;) {
    (void)::poll(descriptors.data(), descriptors.size(), kLookMs);
    const std::lock_guard<std::mutex> guard(world.lock());
    if (descriptors[1].revents != 0) {
      return;
    }
    ports.serve(base::now_ns());
    if (courier != nullptr) {
      courier->flush();
    }
    report_failures(world, failed);
  }
}

}  // namespace

int agent_run(const AgentOptions& options) {
  const LiveCluster live = open_cluster(options.cluster);
  if (!live.model.has_overlay) {
    throw UsageError(fmt::format("cluster \"{}\" has no overlay: make it anew with ringbolt up --overlay",
                                 live.model.name));
  }
  const uint32_t node = own_node(live, options);
  const agent::Roster::Entry entry = agent::Roster(live.dir, live.model.name).enter(node);
  const base::UniqueFd signals = take_signals();
  const auto n_nodes = static_cast<uint32_t>(live.model.nodes.size());
  agent::LocalPorts ports(live.dir.overlay_socket(live.model.name, node), node, n_nodes);
  const std::shared_ptr<group::World> world = group::World::join(plan_of(live, node));
  group::Courier* courier = nullptr;
  {
    const std::lock_guard<std::mutex> guard(world->lock());
    courier = world->start_courier(ports);
    ports.set_courier(courier);
  }
  say(fmt::format("node {} of {} serves {}", node, n_nodes, live.dir.overlay_socket(live.model.name, node)));
  if (options.ready_fd >= 0) {
    (void)!::write(options.ready_fd, "ready\n", 6);
    ::close(options.ready_fd);
  }
  serve(*world, ports, courier, signals.get());
  const std::lock_guard<std::mutex> guard(world->lock());
  ports.leave(base::now_ns());
  report_counts(ports, courier);
  return kOk;
}

}  // namespace ringbolt::tools
