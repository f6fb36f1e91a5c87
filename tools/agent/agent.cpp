#include "agent/agent.h"
#include "base/lock_guard.h"

#include <poll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <ctime>
#include <map>
#include <stdexcept>
#include <string>
#include <utility>

#include <fmt/chrono.h>
#include <fmt/format.h>

#include "agent/agents.h"
#include "agent/held_signals.h"
#include "agent/local_ports.h"
#include "agent/roster.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/say.h"
#include "bootstrap/environment.h"
#include "cluster_state.h"
#include "commands.h"
#include "failure.h"
#include "group/knobs.h"
#include "group/world.h"

namespace ringbolt::tools {
namespace {

constexpr int kLookMs = 500;     // after ranks that have failed
constexpr int kPauseMs = 1'000;  // after a meeting that has failed
constexpr uint64_t kMillisecond = 1'000'000;

void say(const std::string& text) { base::say(fmt::format("{:%F %T} {}\n", fmt::localtime(std::time(nullptr)), text)); }

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

bool is_readable(int descriptor) {
  pollfd one{descriptor, POLLIN, 0};
  return ::poll(&one, 1, 0) > 0;
}

/// Tells of ranks that have failed since the last look.
void report_failures(group::World& world, std::map<uint32_t, Status>& known) RINGBOLT_REQUIRES(world.lock()) {
  for (const auto& [rank, status] : world.failed_ranks()) {
    if (known.insert({rank, status}).second) {
      say(fmt::format("node {} is gone: {}; packets to it are dropped", rank, status.text));
    }
  }
}

void report_counts(const agent::LocalPorts& ports, const group::Courier* courier) {
  const group::Courier::Counts counts = courier == nullptr ? group::Courier::Counts() : courier->counts();
  say(fmt::format(
      "ends: {} packets ({} bytes) sent, {} ({} bytes) received; dropped: {} for nodes that are gone, {} for "
      "full ones, {} for no program, {} for full programs, {} strange",
      counts.packets_out, counts.bytes_out, counts.packets_in, counts.bytes_in, counts.dropped_gone,
      counts.dropped_full, ports.counts().dropped_nobody, ports.counts().dropped_full,
      ports.counts().dropped_strange + counts.malformed));
}

group::WorldPlan plan_of(const LiveCluster& live, uint32_t node) {
  bootstrap::Environment environment = bootstrap::environment_of_process();
  // Whatever a launcher says of the program that has started the cluster.
  environment["RINGBOLT_RANK"] = std::to_string(node);
  environment["RINGBOLT_WORLD_SIZE"] = std::to_string(live.model.nodes.size());
  group::WorldPlan plan;
  plan.is_measured = false;  // agents carry packets: they choose no schedules
  plan.meeting = bootstrap::config_from(environment, bootstrap::read_file);
  plan.meeting.group = "overlay-" + live.model.name;
  plan.liveness = group::liveness_from(environment);
  return plan;
}

enum class End { signal, others_are_back };

/// Serves until a signal ends it, or all those that have been lost meanwhile can be had back.
End serve(group::World& world, agent::LocalPorts& ports, group::Courier* courier, agent::Absence absence,
          const agent::Roster::Entry& entry, int signals) {
  std::map<uint32_t, Status> failed;
  std::array<pollfd, 2> descriptors{{{ports.descriptor(), POLLIN, 0}, {signals, POLLIN, 0}}};
  uint64_t next_look_ns = 0;
  for (;;) {
    (void)::poll(descriptors.data(), descriptors.size(), kLookMs);
    if (descriptors[1].revents != 0) {
      return End::signal;
    }
    const uint64_t now_ns = base::now_ns();
    {
      const base::LockGuard guard(world.lock());
      ports.serve(now_ns);
      if (courier != nullptr) {
        courier->flush();
      }
      report_failures(world, failed);
    }
    if (now_ns >= next_look_ns) {
      next_look_ns = now_ns + kLookMs * kMillisecond;
      if (agent::is_forgotten(entry)) {  // by a `down` that looked for agents before this one had begun
        return End::signal;
      }
      if (absence.is_over(failed, now_ns)) {
        return End::others_are_back;
      }
    }
  }
}

/// This node's agent and what it works on.
struct Post {
  const LiveCluster& live;
  const agent::Roster& roster;
  const agent::Roster::Entry& entry;
  const int signals;
  int ready_fd;
};

/// One meeting of all agents, to its end.
End take_part(const group::WorldPlan& plan, agent::LocalPorts& ports, Post& post) {
  const std::shared_ptr<group::World> world = group::World::join(plan);
  const uint32_t meeting = world->made().session;
  post.roster.set_meeting(post.entry, meeting);
  group::Courier* courier = nullptr;
  {
    const base::LockGuard guard(world->lock());
    courier = world->start_courier(ports);
    ports.set_courier(courier);
  }
  say(fmt::format("node {} of {} serves", world->rank(), world->n_ranks()));
  if (post.ready_fd >= 0) {
    (void)!::write(post.ready_fd, "ready\n", 6);
    ::close(std::exchange(post.ready_fd, -1));
  }
  const End end =
      serve(*world, ports, courier, agent::Absence(post.live, post.roster, meeting), post.entry, post.signals);
  post.roster.set_meeting(post.entry, std::nullopt);
  const base::LockGuard guard(world->lock());
  report_counts(ports, courier);
  ports.set_courier(nullptr);
  if (end == End::signal) {
    ports.leave(base::now_ns());
  }
  return end;
}

/// After a meeting that has failed: a while, and until another one may succeed. False if a signal comes first,
/// or the cluster goes.
bool wait_for_chance(const Post& post) {
  agent::Watch watch;
  do {
    pollfd signals{post.signals, POLLIN, 0};
    if (::poll(&signals, 1, kPauseMs) > 0 || agent::is_forgotten(post.entry)) {
      return false;
    }
  } while (!agent::can_all_meet(post.live, post.roster, watch, base::now_ns()));
  return true;
}

/// Meets the others, time and again, until a signal comes. Throws what the first meeting throws.
void meet_and_serve(uint32_t node, agent::LocalPorts& ports, Post& post) {
  std::string last_words;
  for (bool is_first = true;; is_first = false) {
    try {
      if (take_part(plan_of(post.live, node), ports, post) == End::signal) {
        return;
      }
      say("nodes that had gone can be reached again: all meet anew");
      last_words.clear();
    } catch (const std::runtime_error& error) {
      if (is_first || is_readable(post.signals)) {
        throw;
      }
      if (std::exchange(last_words, error.what()) != error.what()) {
        say(fmt::format("{}; trying again", error.what()));
      }
      if (!wait_for_chance(post)) {
        ports.leave(base::now_ns());
        return;
      }
    }
  }
}

}  // namespace

int agent_run(const AgentOptions& options) {
  LiveCluster live = open_cluster(options.cluster);
  if (!live.model.has_overlay) {
    throw UsageError(
        fmt::format("cluster \"{}\" has no overlay: make it anew with ringbolt up --overlay", live.model.name));
  }
  if (options.starts_missing) {
    const agent::HeldSignals signals;
    const size_t n_started = agent::start_agents(live, signals);
    {
      const base::UniqueFd lock = lock_clusters(live.dir);
      live.control.announce();  // the others shall look whether somebody can be had back
    }
    fmt::print("{} agent{} of {} started\n", n_started, n_started == 1 ? "" : "s", live.model.nodes.size());
    return kOk;
  }
  const uint32_t node = own_node(live, options);
  const agent::Roster roster(live.dir, live.model.name);
  const agent::Roster::Entry entry = roster.enter(node);
  const base::UniqueFd signals = take_signals();
  std::signal(SIGPIPE, SIG_IGN);  // who has started it may have gone before it is ready
  agent::LocalPorts ports(live.dir.overlay_socket(live.model.name, node), node,
                          static_cast<uint32_t>(live.model.nodes.size()));
  Post post{live, roster, entry, signals.get(), options.ready_fd};
  meet_and_serve(node, ports, post);
  return kOk;
}

}  // namespace ringbolt::tools
