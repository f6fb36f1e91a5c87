#include "agent/attendance.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <sstream>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "base/locked_file.h"
#include "cluster/limits.h"
#include "fabric/relaying.h"
#include "fault_file.h"
#include "ranks/start.h"

namespace ringbolt::tools::agent {
namespace {

/// Whether any cable of the cabling ends at the node.
bool has_cable(const fabric::Graph& cabling, uint32_t node) {
  return std::ranges::any_of(cabling.cables, [&](const fabric::Cable& one) { return one.a == node || one.b == node; });
}

/// All cables of the cluster, whatever has become of them.
fabric::Graph planned_cabling(const LiveCluster& live) {
  fabric::Graph all{static_cast<uint32_t>(live.model.nodes.size()), {}};
  for (const cluster::Cable& cable : live.model.cables) {
    if (cable.a.node != cable.b.node) {
      fabric::join(all, cable.a.node, cable.b.node);
    }
  }
  return all;
}

constexpr const char* kHead = "ringbolt-meetings 1";
constexpr uint64_t kPatienceMs = 5'000;  // others hold the file for microseconds, unless one was stopped just then

bool names(const Meeting& meeting, uint32_t node) { return std::ranges::binary_search(meeting.nodes, node); }

std::optional<Meeting> meeting_of(const MeetingsText& text, uint32_t node) {
  const auto found = std::ranges::find_if(text.meetings, [&](const Meeting& one) { return names(one, node); });
  return found == text.meetings.end() ? std::nullopt : std::optional(*found);
}

/// What is damaged says nothing: agents then call each other anew.
MeetingsText read(const base::LockedFile& file) {
  const std::optional<std::string> text = file.read();
  return (text ? parse_meetings(*text) : std::nullopt).value_or(MeetingsText());
}

}  // namespace

std::vector<uint32_t> joined_with(const fabric::Graph& cabling, const std::vector<bool>& comes, uint32_t node) {
  fabric::Graph between{cabling.n_nodes, {}};
  std::ranges::copy_if(cabling.cables, std::back_inserter(between.cables), [&](const fabric::Cable& one) {
    return (comes[one.a] || one.a == node) && (comes[one.b] || one.b == node);
  });
  std::vector<uint32_t> joined = fabric::breadth_first(fabric::neighbours(between), node);
  std::ranges::sort(joined);
  return joined;
}

bool can_be_group(const fabric::Graph& cabling, const std::vector<uint32_t>& nodes) {
  fabric::Graph among{static_cast<uint32_t>(nodes.size()), {}};
  const auto place = [&](uint32_t node) { return std::ranges::lower_bound(nodes, node) - nodes.begin(); };
  for (const fabric::Cable& one : cabling.cables) {
    if (std::ranges::binary_search(nodes, one.a) && std::ranges::binary_search(nodes, one.b)) {
      fabric::join(among, static_cast<uint32_t>(place(one.a)), static_cast<uint32_t>(place(one.b)));
    }
  }
  const fabric::Distances distances = fabric::distances(among);
  return distances.is_connected && distances.diameter <= fabric::kMostHopsOfGroup;
}

fabric::Graph usable_cabling(const LiveCluster& live) {
  const std::vector<bool> is_dead = dead_cables(live);
  fabric::Graph up{static_cast<uint32_t>(live.model.nodes.size()), {}};
  for (uint32_t i = 0; i < live.model.cables.size(); ++i) {
    const cluster::Cable& cable = live.model.cables[i];
    if (cable.a.node != cable.b.node && live.control.cable_up(i) && !is_dead[i]) {
      fabric::join(up, cable.a.node, cable.b.node);
    }
  }
  return up;
}

std::vector<std::string> words_of_absent(const LiveCluster& live, const Roster& roster,
                                         const std::vector<uint32_t>& nodes) {
  live.control.refresh();
  const fabric::Graph planned = planned_cabling(live);
  const fabric::Graph usable = usable_cabling(live);
  std::vector<std::string> words;
  for (uint32_t node = 0; node < live.model.nodes.size(); ++node) {
    if (std::ranges::binary_search(nodes, node)) {
      continue;
    }
    const std::optional<Roster::Agent> agent = roster.look(node);
    const char* why = !has_cable(planned, node)  ? "has no cable"
                      : !agent                   ? "has no agent that runs"
                      : !has_cable(usable, node) ? "has no cable that is up"
                      : is_stopped(*agent)       ? "has an agent that stands still"
                                                 : "is joined to these by no cable that is up";
    words.push_back(fmt::format("node {} ({}) {}", node, live.model.nodes[node].name, why));
  }
  return words;
}

Attendance::Attendance(const LiveCluster& live, const Roster& roster, uint32_t node)
    : live_(live), roster_(roster), node_(node) {}

void Attendance::set_meeting(const std::optional<Meeting>& meeting) {
  live_.control.refresh();
  generation_ = live_.control.generation();
  meeting_ = meeting;
  lost_.clear();
}

bool Attendance::is_member(uint32_t node) const {
  return meeting_ && std::ranges::binary_search(meeting_->nodes, node);
}

std::optional<bool> Attendance::would_come(uint32_t node, const std::map<uint32_t, Status>& failed, uint64_t now_ns) {
  const std::optional<Roster::Agent> agent = roster_.look(node);
  if (!agent) {
    return false;
  }
  const std::optional<bool> runs =
      watch_.runs(node, *agent, now_ns);  // asked of all each time: who moves is told by two looks
  const auto status = failed.find(node);
  if (!is_member(node) || status == failed.end()) {
    return runs;
  }
  // Whose silence was the reason has stood still: it is back as soon as it moves.
  Lost& lost = lost_.try_emplace(node, Lost{generation_, status->second.code == EHOSTDOWN}).first->second;
  lost.is_changed =
      lost.is_changed || agent->meeting != meeting_->number || lost.generation != live_.control.generation();
  return lost.is_changed ? runs : false;
}

std::vector<uint32_t> Attendance::wanted(const std::map<uint32_t, Status>& failed, uint64_t now_ns) {
  live_.control.refresh();
  std::vector<bool> comes(live_.model.nodes.size());
  bool is_known = true;
  for (uint32_t node = 0; node < comes.size(); ++node) {
    const std::optional<bool> would = node == node_ ? std::optional(true) : would_come(node, failed, now_ns);
    is_known = is_known && would;
    comes[node] = would.value_or(false);
  }
  generation_ = live_.control.generation();
  if (!is_known) {
    return {};
  }
  const fabric::Graph cabling = usable_cabling(live_);
  std::vector<uint32_t> nodes = joined_with(cabling, comes, node_);
  const bool is_better =
      !meeting_ || std::ranges::any_of(nodes, [&](uint32_t node) { return !is_member(node) || failed.contains(node); });
  return is_better && can_be_group(cabling, nodes) ? std::move(nodes) : std::vector<uint32_t>();
}

std::string emit(const MeetingsText& text) {
  std::string lines = fmt::format("{}\nlast {}\n", kHead, text.last);
  for (const Meeting& meeting : text.meetings) {
    lines += fmt::format("meeting {} {} {}\n", meeting.number, meeting.port, fmt::join(meeting.nodes, " "));
  }
  return lines;
}

std::optional<MeetingsText> parse_meetings(const std::string& text) {
  std::istringstream lines(text);
  std::string line;
  std::string word;
  MeetingsText found;
  if (!std::getline(lines, line) || line != kHead || !(lines >> word >> found.last) || word != "last") {
    return std::nullopt;
  }
  while (lines >> word && word == "meeting" && std::getline(lines, line)) {
    std::istringstream words(line);
    Meeting meeting;
    words >> meeting.number >> meeting.port;
    for (uint32_t node = 0; words >> node;) {
      meeting.nodes.push_back(node);
    }
    found.meetings.push_back(std::move(meeting));
  }
  // Whatever the loop has passed over makes the text another one.
  return emit(found) == text ? std::optional(std::move(found)) : std::nullopt;
}

uint32_t Meetings::last() const {
  const base::LockedFile file(AT_FDCWD, path_, kPatienceMs);
  return file.is_held() ? read(file).last : 0;
}

std::optional<Meeting> Meetings::of(uint32_t node) const {
  const base::LockedFile file(AT_FDCWD, path_, kPatienceMs);
  return file.is_held() ? meeting_of(read(file), node) : std::nullopt;
}

Meeting Meetings::call(uint32_t node, const std::vector<uint32_t>& nodes, uint32_t known) const {
  const base::LockedFile file(AT_FDCWD, path_, kPatienceMs);
  if (!file.is_held()) {
    throw base::Error(file.error(), "lock", path_);
  }
  MeetingsText text = read(file);
  if (std::optional<Meeting> others = meeting_of(text, node); others && others->number > known) {
    return *std::move(others);
  }
  Meeting made{std::max(text.last, known) + 1, ranks::free_port(), nodes};
  text.last = made.number;
  std::erase_if(text.meetings, [&](const Meeting& one) {
    return std::ranges::any_of(nodes, [&](uint32_t called) { return names(one, called); });
  });
  text.meetings.push_back(made);
  if (const int error = file.write(emit(text))) {
    throw base::Error(error, "write", path_);
  }
  return made;
}

}  // namespace ringbolt::tools::agent
