#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "agent/agents.h"
#include "base/clock.h"
#include "cluster_state.h"
#include "commands.h"
#include "failure.h"
#include "hosts.h"
#include "node_environment.h"
#include "page_file.h"
#include "port_counts.h"
#include "run_record.h"
#include "sanitizer_report.h"
#include "shuffle_search.h"
#include "ssh.h"
#include "standing.h"
#include "supervisor.h"
#include "trace/recordings.h"

namespace ringbolt::tools {
namespace {

std::vector<uint32_t> chosen_nodes(const LiveCluster& live, const RunOptions& options) {
  std::vector<uint32_t> nodes;
  if (options.nodes.empty()) {
    for (uint32_t node = 0; node < live.model.nodes.size(); ++node) {
      nodes.push_back(node);
    }
  }
  for (const std::string& text : options.nodes) {
    const uint32_t node = find_node(live.model, text);
    if (std::find(nodes.begin(), nodes.end(), node) != nodes.end()) {
      throw UsageError(fmt::format("node {} is given twice", text));
    }
    nodes.push_back(node);
  }
  return nodes;
}

/// `findings`: the file for those of the sanitizer; empty: none is wanted.
Launch launch_of(const LiveCluster& live, uint32_t node, const RunOptions& options, const std::string& findings) {
  if (live.is_remote()) {
    std::vector<std::string> words{"run", "--node", std::to_string(node), "--no-tag", "--remote"};
    if (options.is_explained) {
      words.emplace_back("--explain");
    }
    if (!options.sanitized.empty()) {
      words.push_back("--sanitize=" + options.sanitized);
    }
    if (!options.recorded.empty()) {
      words.push_back("--record=" + options.recorded);
    }
    if (!options.shuffled.empty()) {
      words.push_back("--shuffle=" + options.shuffled);
    }
    words.emplace_back("--");
    words.insert(words.end(), options.command.begin(), options.command.end());
    Launch launch = node_launch(live.model, node, std::move(words));
    launch.is_remote = true;
    return launch;
  }
  NodeEnvironment environment = node_environment(live, node);
  if (options.is_explained) {
    environment.set.push_back({"RINGBOLT_EXPLAIN", "on"});
  }
  if (!options.sanitized.empty()) {
    environment.set.push_back({"RINGBOLT_SANITIZE", options.sanitized});
  }
  if (!options.recorded.empty()) {
    environment.set.push_back({"RINGBOLT_RECORD", options.recorded});
  }
  if (!options.shuffled.empty()) {
    environment.set.push_back({"RINGBOLT_SHUFFLE", options.shuffled});
  }
  if (!findings.empty()) {
    environment.set.push_back({"RINGBOLT_SANITIZE_JSON", findings});
  }
  Launch launch;
  launch.command = options.command;
  launch.environment = merged_environment(environment);
  launch.netns = environment.netns;
  return launch;
}

/// What `run` knows of its programs, for `status` and for its own last words.
class Witness {
 public:
  Witness(const LiveCluster& live, const std::vector<std::string>& command, std::vector<std::string> labels)
      : live_(live), labels_(std::move(labels)), record_(live, command) {}

  RunWatch watch() {
    return {[this](size_t index, pid_t pid, const std::string& how) { record_.note_failure(labels_[index], pid, how); },
            [this] { before_ = programs(); }, [this] { return explain(); }};
  }

 private:
  std::vector<Program> programs() const {
    constexpr double kHostPatienceS = 2;  // the time limit is near
    std::vector<std::string> ignored;     // of a host that can't be asked there is nothing to say
    if (live_.is_remote()) {
      return host_programs(live_.model, ignored, kHostPatienceS);
    }
    std::vector<Program> all =
        agent::without_agents(live_.dir, live_.model.name, cluster_programs(live_.dir, live_.model.name));
    add_port_uses(live_, all);
    return all;
  }

  /// A line for each program on a node of ours that stands still.
  std::vector<std::string> explain() const {
    std::vector<std::string> lines;
    for (const Standing& one : standings(live_.model, cables_up(live_), before_, programs(), record_.deaths())) {
      if (std::ranges::find(labels_, one.program.node) != labels_.end() && one.state != Standing::State::kActive) {
        lines.push_back(standing_text(one));
      }
    }
    return lines;
  }

  const LiveCluster& live_;
  std::vector<std::string> labels_;
  RunRecord record_;
  std::vector<Program> before_;
};

int run_once(const RunOptions& options) {
  const LiveCluster live = open_cluster(options.cluster);
  const std::vector<uint32_t> nodes = chosen_nodes(live, options);
  const bool is_tagged = !options.is_untagged && (options.is_tagged || nodes.size() > 1);
  size_t width = 0;
  for (const uint32_t node : nodes) {
    width = std::max(width, live.model.nodes[node].name.size());
  }
  if (live.is_remote() && !options.reports.empty()) {
    throw UsageError("--report takes nodes of this machine: on others set RINGBOLT_SANITIZE_JSON and fetch that file");
  }
  if (!options.html_path.empty() &&
      (live.is_remote() || (options.recorded.empty() && !options.is_explained && options.sanitized.empty()))) {
    throw UsageError("--html takes --record, --explain or --sanitize, and nodes of this machine");
  }
  PageFile page(options.html_path);
  const uint64_t begin_ns = base::now_ns();
  SanitizerReport report(options.reports);
  std::vector<Member> members;
  for (const uint32_t node : nodes) {
    Member member;
    member.label = live.model.nodes[node].name;
    member.prefix = is_tagged ? fmt::format("{:<{}} | ", member.label, width) : "";
    member.launch = launch_of(live, node, options, report.lines_path());
    members.push_back(std::move(member));
  }
  SuperviseOptions supervised{"ringbolt run", options.timeout_s, options.keeps_going, options.is_remote};
  supervised.shows_progress = options.shows_progress;
  std::optional<Witness> witness;
  if (!options.is_remote) {  // there the machine that commands is the witness
    std::vector<std::string> labels;
    std::ranges::transform(members, std::back_inserter(labels), &Member::label);
    supervised.watch = witness.emplace(live, options.command, std::move(labels)).watch();
  }
  const int status = supervise(std::move(members), supervised);
  page.write(options.html_path.empty() ? "" : trace_command::run_page(live, begin_ns));
  report.write();  // last, for it throws where something else than findings is among them
  return status;
}

}  // namespace

int run(const RunOptions& options) {
  if (!options.emulated.spec.empty()) {
    return run_emulated(options);
  }
  if (options.emulated.is_netns || !options.emulated.like.empty() || options.emulated.has_overlay ||
      !options.faults.empty()) {
    throw UsageError(
        "--netns, --like, --overlay and --fault are of the cluster that --emulate makes: give that, too; of one that "
        "is up, `ringbolt up` and `ringbolt fault add` take them");
  }
  return options.shuffled.empty() ? run_once(options) : run_shuffled(options, run_once);
}

}  // namespace ringbolt::tools
