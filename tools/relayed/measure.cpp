#include "relayed/measure.h"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <map>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/text_fields.h"
#include "child_process.h"
#include "fabric/graph.h"
#include "node_environment.h"
#include "ranks/start.h"

extern char** environ;  // NOLINT(readability-redundant-declaration): unistd.h has it for GNU sources alone

namespace ringbolt::tools::relayed {
namespace {

/// For the ranks to start, to meet and to end.
constexpr double kMeetingS = 60;

using Figures = std::map<std::pair<uint32_t, uint32_t>, Report>;

/// `ringbolt run` of a rank on every node of a part.
Launch launch_of(const LiveCluster& live, const std::vector<uint32_t>& members, const MatrixOptions& options,
                 double patience_s) {
  const std::string own = std::filesystem::read_symlink("/proc/self/exe").string();
  const bool is_elsewhere = live.is_remote() && !live.model.prefix.empty();
  Launch launch;
  launch.command = {own,
                    "run",
                    "--cluster",
                    live.model.name,
                    "--no-tag",
                    "--nodes",
                    fmt::format("{}", fmt::join(members, ",")),
                    "--timeout",
                    fmt::format("{:.1f}", patience_s),
                    "--",
                    is_elsewhere ? live.model.prefix + "/bin/ringbolt" : own,
                    "relay-probe",
                    "--members",
                    fmt::format("{}", fmt::join(members, ","))};
  std::ranges::copy(effort_words(options), std::back_inserter(launch.command));
  for (char** variable = environ; *variable != nullptr; ++variable) {
    launch.environment.emplace_back(*variable);
  }
  return launch;
}

/// What the ranks of one part have measured; `problem`: why some figures may be missing.
void measure_part(const LiveCluster& live, const std::vector<uint32_t>& members, size_t n_pairs,
                  const MatrixOptions& options, const PairWatch& watch, Figures& figures, std::string& problem) {
  const double patience_s = kMeetingS + options.timeout_s * static_cast<double>(n_pairs);
  const Captured done =
      run_captured(launch_of(live, members, options, patience_s), "", patience_s + kMeetingS, watch.is_stopped);
  const auto is_node = [&](uint32_t node) { return node < live.model.nodes.size(); };
  for (Report& report : parse(done.output)) {
    if (!std::ranges::all_of(report.through, is_node)) {
      continue;  // of no rank of this cluster
    }
    const std::pair key(report.from, report.to);
    figures.insert_or_assign(key, std::move(report));
  }
  if (done.exit_code != 0 || done.is_late) {
    problem = fmt::format("the group that measures relayed pairs {}: {}", done.is_late ? "took too long" : "failed",
                          one_line(done.error_output));
  }
}

Direction direction_of(uint32_t from, uint32_t to, const Figures& figures, const std::string& problem) {
  Direction direction;
  direction.cable = Direction::kNoCable;
  direction.from.node = from;
  direction.to.node = to;
  direction.hops = 0;
  const auto found = figures.find({from, to});
  if (found == figures.end()) {
    direction.problem = problem.empty() ? "no rank has reported a figure" : problem;
    return direction;
  }
  direction.through = found->second.through;
  direction.hops = static_cast<uint32_t>(direction.through.size()) + 1;
  take_figures(found->second.figures, direction);
  return direction;
}

std::vector<std::vector<uint32_t>> neighbours_of(const cluster::Cluster& model,
                                                 const std::function<bool(uint32_t cable)>& is_up) {
  fabric::Graph graph{static_cast<uint32_t>(model.nodes.size()), {}};
  for (uint32_t index = 0; index < model.cables.size(); ++index) {
    const cluster::Cable& cable = model.cables[index];
    if (cable.a.node != cable.b.node && is_up(index)) {
      fabric::join(graph, cable.a.node, cable.b.node);
    }
  }
  return fabric::neighbours(graph);
}

}  // namespace

std::vector<Direction> measure_relayed(const LiveCluster& live, const MatrixOptions& options, const PairWatch& watch) {
  live.control.refresh();
  const auto is_up = [&](uint32_t cable) { return live.control.cable_up(cable); };
  const auto pairs = pairs_without_cable(live.model, is_up);
  std::vector<uint32_t> part_of(live.model.nodes.size());
  const auto parts = parts_of(live.model, is_up);
  for (uint32_t part = 0; part < parts.size(); ++part) {
    for (const uint32_t node : parts[part]) {
      part_of[node] = part;
    }
  }
  ranks::prepare_meeting();
  Figures figures;
  std::vector<std::string> problems(parts.size());
  for (uint32_t part = 0; part < parts.size(); ++part) {
    const auto n_pairs = static_cast<size_t>(std::ranges::count_if(
        pairs, [&](const auto& pair) { return part_of[pair.first] == part && part_of[pair.second] == part; }));
    if (n_pairs > 0) {
      measure_part(live, parts[part], n_pairs, options, watch, figures, problems[part]);
    }
  }
  std::vector<Direction> directions;
  for (const auto& [a, b] : pairs) {
    for (const auto& [from, to] : {std::pair(a, b), std::pair(b, a)}) {
      directions.push_back(direction_of(from, to, figures, problems[part_of[from]]));
      if (part_of[from] != part_of[to]) {
        directions.back().state = Direction::State::kUnreachable;
        directions.back().problem.clear();
      }
    }
  }
  return directions;
}

std::vector<std::vector<uint32_t>> parts_of(const cluster::Cluster& model,
                                            const std::function<bool(uint32_t cable)>& is_up) {
  const auto neighbours = neighbours_of(model, is_up);
  std::vector<std::vector<uint32_t>> parts;
  std::vector<bool> is_placed(neighbours.size());
  for (uint32_t first = 0; first < neighbours.size(); ++first) {
    if (is_placed[first]) {
      continue;
    }
    const std::vector<uint32_t> hops = fabric::hops_from(neighbours, first);
    parts.emplace_back();
    for (uint32_t node = 0; node < hops.size(); ++node) {
      if (hops[node] != fabric::kUnreachable) {
        parts.back().push_back(node);
        is_placed[node] = true;
      }
    }
  }
  return parts;
}

std::vector<std::pair<uint32_t, uint32_t>> pairs_without_cable(const cluster::Cluster& model,
                                                               const std::function<bool(uint32_t cable)>& is_up) {
  const auto neighbours = neighbours_of(model, is_up);
  std::vector<std::pair<uint32_t, uint32_t>> pairs;
  for (uint32_t a = 0; a < neighbours.size(); ++a) {
    for (uint32_t b = a + 1; b < neighbours.size(); ++b) {
      if (std::ranges::find(neighbours[a], b) == neighbours[a].end()) {
        pairs.emplace_back(a, b);
      }
    }
  }
  return pairs;
}

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Report, from, to, through, figures)

namespace {

constexpr std::string_view kMark = "ringbolt-relayed ";

}  // namespace

std::string emit(const Report& report) { return fmt::format("{}{}\n", kMark, to_line(report)); }

std::vector<Report> parse(std::string_view text) {
  std::vector<Report> reports;
  while (!text.empty()) {
    const std::string_view line = base::take_until(text, '\n');
    if (auto report = line.starts_with(kMark) ? from_line<Report>(line.substr(kMark.size())) : std::nullopt) {
      reports.push_back(std::move(*report));
    }
  }
  return reports;
}

}  // namespace ringbolt::tools::relayed
