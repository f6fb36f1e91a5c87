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
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/chrono.h>
#include <fmt/format.h>

#include "agent/agents.h"
#include "agent/attendance.h"
#include "agent/held_signals.h"
#include "agent/local_ports.h"
#include "agent/roster.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/say.h"
#include "bootstrap/environment.h"
#include "circuit/settings.h"
#include "cluster/address_plan.h"
#include "cluster_state.h"
#include "commands.h"
#include "failure.h"
#include "mesh/courier.h"
#include "mesh/knobs.h"
#include "mesh/mesh.h"

namespace ringbolt::tools {
namespace {

// Less than kStillNs of roster.cpp, by which others take an agent that does not move for one that stands still.
constexpr int kLookMs = 500;     // after who has failed, and who calls
constexpr int kAwaitMs = 100;    // likewise, for who has nothing else to do
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

/// Before any thread is made: they inherit the mask, so that no other thread is interrupted.
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

void tell(int descriptor, std::string_view word) { (void)!::write(descriptor, word.data(), word.size()); }

bool is_readable(int descriptor) {
  pollfd one{descriptor, POLLIN, 0};
  return ::poll(&one, 1, 0) > 0;
}

/// Tells of nodes whose agents have failed since the last look.
void report_failures(mesh::Mesh& mesh, const agent::Meeting& meeting, std::map<uint32_t, Status>& known)
    RINGBOLT_REQUIRES(mesh.lock) {
  for (const auto& [rank, status] : mesh.failed_ranks()) {
    if (known.insert({meeting.nodes[rank], status}).second) {
      say(fmt::format("node {} is gone: {}; packets to it are dropped", meeting.nodes[rank], status.text));
    }
  }
}

void report_counts(const agent::LocalPorts& ports, const mesh::Courier* courier) {
  const mesh::Courier::Counts counts = courier == nullptr ? mesh::Courier::Counts() : courier->counts();
  say(fmt::format(
      "ends: {} packets ({} bytes) sent, {} ({} bytes) received; dropped: {} for nodes that are gone, {} for "
      "full ones, {} for no program, {} for full programs, {} strange",
      counts.packets_out, counts.bytes_out, counts.packets_in, counts.bytes_in,
      counts.dropped_gone + ports.counts().dropped_away, counts.dropped_full, ports.counts().dropped_nobody,
      ports.counts().dropped_full, ports.counts().dropped_strange + counts.malformed));
}

/// This node's agent and what it works on.
/// Views of what agent_run() has, but for `ready_fd`, which this closes.
struct Post {
  const LiveCluster& live;
  const agent::Roster& roster;
  const agent::Roster::Entry& entry;
  const agent::Meetings& meetings;
  const std::string& secret_file;
  const uint32_t node;
  const int signals;
  int ready_fd;
  bool has_served = false;
};

/// Whether the meeting can't come about any more: a later one has been called, or one of its agents has ended or stands
/// still, or this one is to end.
/// Reads files of the cluster's folder: some milliseconds.
bool is_called_off(const agent::Meeting& meeting, const Post& post) {
  const std::optional<agent::Meeting> last = post.meetings.of(post.node);
  return is_readable(post.signals) || agent::is_forgotten(post.entry) || (last && last->number > meeting.number) ||
         std::ranges::any_of(meeting.nodes, [&](uint32_t node) {
           const std::optional<agent::Roster::Agent> one = post.roster.look(node);
           return !one || agent::is_stopped(*one);
         });
}

mesh::MeshPlan plan_of(const agent::Meeting& meeting, const Post& post) {
  bootstrap::Environment environment = bootstrap::environment_of_process();
  // Whatever a launcher says of the program that has started the cluster.
  const auto place = std::ranges::lower_bound(meeting.nodes, post.node) - meeting.nodes.begin();
  environment["RINGBOLT_RANK"] = std::to_string(place);
  environment["RINGBOLT_WORLD_SIZE"] = std::to_string(meeting.nodes.size());
  environment["RINGBOLT_GROUP_PORT"] = std::to_string(meeting.port);
  // Two secrets would be refused.
  environment.erase("RINGBOLT_SECRET");
  environment["RINGBOLT_SECRET_FILE"] = post.secret_file;
  if (const auto host = environment.find("RINGBOLT_MEETING_HOST"); host != environment.end()) {
    host->second = cluster::management_address(meeting.nodes.front()).text();
  }
  mesh::MeshPlan plan;
  plan.is_measured = false;  // agents carry packets: they choose no schedules
  plan.meeting = bootstrap::config_from(environment, bootstrap::read_file);
  plan.meeting.group = fmt::format("overlay-{}", meeting.number);
  plan.liveness = mesh::liveness_from(environment);
  return plan;
}

void report_meeting(const agent::Meeting& meeting, const Post& post) {
  std::string text = fmt::format("node {} of {} serves", post.node, post.live.model.nodes.size());
  for (const std::string& absent : agent::words_of_absent(post.live, post.roster, meeting.nodes)) {
    text += "; " + absent;
  }
  say(text);
}

/// The nodes of a better meeting than this agent's; none while agents are being started, who are all to be called.
std::vector<uint32_t> whom_to_call(agent::Attendance& attendance, const std::map<uint32_t, Status>& failed,
                                   const Post& post) {
  const bool was_starting = post.roster.is_starting();
  std::vector<uint32_t> wanted = attendance.wanted(failed, base::now_ns());
  return was_starting || post.roster.is_starting() ? std::vector<uint32_t>() : std::move(wanted);
}

enum class End { signal, called };

/// Serves until a signal ends it, or another meeting is called.
/// Takes the mesh's lock for each turn, so that the mesh's thread and this one share the courier.
End serve(mesh::Mesh& mesh, agent::LocalPorts& ports, mesh::Courier* courier, agent::Attendance& attendance,
          const agent::Meeting& meeting, const Post& post) {
  std::map<uint32_t, Status> failed;
  std::array<pollfd, 2> descriptors{{{ports.descriptor(), POLLIN, 0}, {post.signals, POLLIN, 0}}};
  uint64_t next_look_ns = 0;
  for (;;) {
    (void)::poll(descriptors.data(), descriptors.size(), kLookMs);
    if (descriptors[1].revents != 0) {
      return End::signal;
    }
    const uint64_t now_ns = base::now_ns();
    {
      const base::LockGuard guard(mesh.lock);
      ports.serve(now_ns);
      if (courier != nullptr) {
        courier->flush();
      }
      report_failures(mesh, meeting, failed);
    }
    if (now_ns >= next_look_ns) {
      next_look_ns = now_ns + kLookMs * kMillisecond;
      if (agent::is_forgotten(post.entry)) {  // by a `down` that looked for agents before this one had begun
        return End::signal;
      }
      const std::optional<agent::Meeting> last = post.meetings.of(post.node);
      if (last && last->number > meeting.number) {
        return End::called;
      }
      if (const auto nodes = whom_to_call(attendance, failed, post); !nodes.empty()) {
        static_cast<void>(post.meetings.call(post.node, nodes, meeting.number));
        return End::called;
      }
    }
  }
}

/// One meeting, to its end.
End take_part(const agent::Meeting& meeting, bool& was_called_off, agent::LocalPorts& ports,
              agent::Attendance& attendance, Post& post) {
  mesh::MeshPlan plan = plan_of(meeting, post);
  plan.meeting.is_called_off = [&] { return was_called_off = was_called_off || is_called_off(meeting, post); };
  std::unique_ptr<mesh::Courier> courier;  // before the mesh, which has it take part until it has left
  // Blocks until all have come, or is_called_off() says that they will not.
  const std::unique_ptr<mesh::Mesh> mesh = mesh::Mesh::join(plan);
  post.roster.set_meeting(post.entry, meeting.number);
  attendance.set_meeting(meeting);
  {
    const base::LockGuard guard(mesh->lock);
    if (mesh->engine() != nullptr) {
      courier = std::make_unique<mesh::Courier>(*mesh->engine(), mesh->rank(), mesh->n_ranks(), ports);
      for (const auto& [failed, status] : mesh->failed_ranks()) {
        courier->give_up(failed);
      }
      mesh->attach(*courier, mesh::kCourierChannels);
    }
    ports.set_courier(courier.get(), meeting.nodes);
  }
  report_meeting(meeting, post);
  if (post.ready_fd >= 0) {
    tell(post.ready_fd, agent::kReady);
    ::close(std::exchange(post.ready_fd, -1));
  }
  post.has_served = true;
  const End end = serve(*mesh, ports, courier.get(), attendance, meeting, post);
  const base::LockGuard guard(mesh->lock);
  report_counts(ports, courier.get());
  if (end == End::signal) {
    ports.leave(base::now_ns());
  }
  return end;
}

/// Whatever has ended it.
void leave_meeting(agent::LocalPorts& ports, agent::Attendance& attendance, const Post& post) {
  ports.set_courier(nullptr, {});
  attendance.set_meeting(std::nullopt);
  post.roster.set_meeting(post.entry, std::nullopt);
}

/// Leaves a meeting that has failed. Whether it was called off: not where that can't be found out, for want of a
/// descriptor, say.
bool leave_failed(const agent::Meeting& meeting, agent::LocalPorts& ports, agent::Attendance& attendance,
                  const Post& post) {
  try {
    leave_meeting(ports, attendance, post);
    return is_called_off(meeting, post);
  } catch (const base::Error&) {
    return false;
  }
}

/// The words of what keeps an agent from serving, said once however often it happens in a row.
class Complaints {
 public:
  void say_once(const std::string& words) {
    if (std::exchange(last_, words) != words) {
      say(fmt::format("{}; trying again", words));
    }
  }
  void forget() { last_.clear(); }

 private:
  std::string last_;
};

/// Waits until somebody calls this agent to a meeting later than number `known`, or calls one itself. Nothing if a
/// signal comes first, or the cluster goes. Throws base::Error only of an agent that has never served: others look
/// again, since what is missing, as descriptors are, comes back.
std::optional<agent::Meeting> await_meeting(agent::Attendance& attendance, Complaints& complaints, const Post& post,
                                            uint32_t known) {
  pollfd signals{post.signals, POLLIN, 0};
  for (int pause_ms = 0; ::poll(&signals, 1, pause_ms) <= 0 && !agent::is_forgotten(post.entry);) {
    pause_ms = kAwaitMs;
    try {
      if (std::optional<agent::Meeting> last = post.meetings.of(post.node); last && last->number > known) {
        return last;
      }
      if (const auto nodes = whom_to_call(attendance, {}, post); !nodes.empty()) {
        return post.meetings.call(post.node, nodes, known);
      }
    } catch (const base::Error& error) {
      if (!post.has_served) {
        throw;
      }
      complaints.say_once(error.what());
      pause_ms = kPauseMs;
    }
  }
  return std::nullopt;
}

/// Meets the others, time and again, until a signal comes. Throws what keeps it from meeting anybody at first.
void meet_and_serve(agent::LocalPorts& ports, Post& post, uint32_t known) {
  agent::Attendance attendance(post.live, post.roster, post.node);
  Complaints complaints;
  while (const std::optional<agent::Meeting> meeting = await_meeting(attendance, complaints, post, known)) {
    known = meeting->number;
    bool was_called_off = false;
    try {
      if (take_part(*meeting, was_called_off, ports, attendance, post) == End::signal) {
        return;
      }
      leave_meeting(ports, attendance, post);
      say("another meeting is called: all who are called meet anew");
      complaints.forget();
    } catch (const std::runtime_error& error) {
      const bool is_off = leave_failed(*meeting, ports, attendance, post);
      if (was_called_off || is_off) {  // who has died may have been missed first
        continue;
      }
      if (!post.has_served) {
        throw;
      }
      complaints.say_once(error.what());
      pollfd signals{post.signals, POLLIN, 0};
      (void)::poll(&signals, 1, kPauseMs);
    }
  }
  ports.leave(base::now_ns());
}

}  // namespace

namespace {

/// NCCL's ranks on other nodes send to each other by way of this one, also while it holds none (docs/nccl.md). Null: it
/// can't be; the overlay does without.
std::unique_ptr<circuit::Endpoint> relay_circuits() {
  try {
    circuit::Settings settings = circuit::settings_from_process();
    settings.plan.name = "the agent of " + settings.plan.name;
    return std::make_unique<circuit::Endpoint>(settings.plan, [](circuit::Level level, const std::string& text) {
      if (level == circuit::Level::warning) {
        say(text);
      }
    });
  } catch (const std::exception& error) {
    say(fmt::format("relays nothing for NCCL's ranks: {}", error.what()));
    return nullptr;
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
    fmt::print("{} agent{} of {} started\n{}", n_started, n_started == 1 ? "" : "s", live.model.nodes.size(),
               agent::parts_text(live));
    return kOk;
  }
  const uint32_t node = own_node(live, options);
  // write(2) answers EPIPE then.
  std::signal(SIGPIPE, SIG_IGN);  // who has started it may have gone before it is ready
  const agent::Roster roster(live.dir, live.model.name);
  const agent::Meetings meetings(live.dir.cluster(live.model.name) + "/agents.meetings");
  const uint32_t known = meetings.last();  // those before are of another agent of this node
  const std::string secret = agent::secret_file(live);
  const agent::Roster::Entry entry = roster.enter(node);
  if (options.ready_fd >= 0) {
    tell(options.ready_fd, agent::kHere);
  }
  const base::UniqueFd signals = take_signals();
  agent::LocalPorts ports(live.dir.overlay_socket(live.model.name, node), node,
                          static_cast<uint32_t>(live.model.nodes.size()));
  const std::unique_ptr<circuit::Endpoint> relay = relay_circuits();
  Post post{live, roster, entry, meetings, secret, node, signals.get(), options.ready_fd, false};
  meet_and_serve(ports, post, known);
  return kOk;
}

}  // namespace ringbolt::tools
