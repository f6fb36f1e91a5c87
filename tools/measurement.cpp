#include "measurement.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <optional>

#include "base/clock.h"
#include "node_environment.h"
#include "pair/end_facts.h"
#include "pair/two_ends.h"

namespace ringbolt::tools {
namespace {

/// Beyond the probes' own deadline, for them to start and to report.
constexpr uint64_t kSlackNs = 3'000'000'000;

std::vector<std::string> probe_words(const LiveCluster& live, const cluster::CableEnd& end,
                                     const cluster::CableEnd& other, bool is_first, const MatrixOptions& options) {
  std::vector<std::string> words{"probe",
                                 "--device",
                                 live.model.nodes[end.node].ports[end.port].name,
                                 "--end",
                                 is_first ? "client" : "server",
                                 "--peer",
                                 "node " + live.model.nodes[other.node].name,
                                 "--library"};
  words.push_back((live.is_remote() ? live.model.prefix + "/lib/ringbolt" : library_folder()) + "/libibverbs.so.1");
  std::ranges::copy(effort_words(options), std::back_inserter(words));
  return words;
}

ProbeReport report_of(const ProgramEnd& end) {
  const pair::EndOutcome outcome = pair::outcome_of("probe", end);
  const std::optional<ProbeReport> report =
      outcome.result ? pair::value_in<ProbeReport>(*outcome.result) : std::nullopt;
  // Otherwise it would read as if the cable had hung.
  const char* who = outcome.problem == pair::kHung ? "the measuring program: " : "";
  return report ? *report : ProbeReport{who + outcome.problem, outcome.is_echo};
}

Direction direction_of(const ProbeReport& mine, const ProbeReport& other, Direction direction) {
  take_figures(mine.is_echo && !other.problem.empty() && !other.is_echo ? other : mine, direction);
  direction.is_reliable = mine.is_reliable;
  direction.starved_share = static_cast<double>(std::max(mine.starved_ppm.sending, other.starved_ppm.receiving)) / 1e6;
  // In turns: what one waits for, the other waits for, too.
  direction.starved_latency_share = static_cast<double>(mine.starved_ppm.asking + other.starved_ppm.answering) / 1e6;
  return direction;
}

std::string end_of(const cluster::Cluster& model, const Direction& direction, const cluster::CableEnd& end) {
  return direction.cable == Direction::kNoCable ? model.nodes[end.node].name : cluster::end_text(model, end);
}

}  // namespace

std::vector<std::string> effort_words(const Effort& effort) {
  return {"--timeout", std::to_string(effort.timeout_s),  "--seconds",  std::to_string(effort.phase_s),
          "--size",    std::to_string(effort.size_bytes), "--messages", std::to_string(effort.messages),
          "--rounds",  std::to_string(effort.rounds)};
}

const char* state_text(Direction::State state) {
  constexpr std::array kTexts{"measured", "cut", "failed", "unreachable"};
  return kTexts.at(static_cast<size_t>(state));
}

std::string from_text(const cluster::Cluster& model, const Direction& direction) {
  return end_of(model, direction, direction.from);
}

std::string to_text(const cluster::Cluster& model, const Direction& direction) {
  return end_of(model, direction, direction.to);
}

std::string through_text(const cluster::Cluster& model, const Direction& direction) {
  std::string text;
  for (const uint32_t node : direction.through) {
    text += (text.empty() ? "" : ", ") + model.nodes[node].name;
  }
  return text;
}

void take_figures(const ProbeReport& report, Direction& direction) {
  if (!report.problem.empty()) {
    direction.state = Direction::State::kFailed;
    direction.problem = report.problem;
    return;
  }
  direction.state = Direction::State::kMeasured;
  direction.latency_us = report.latency_us;
  direction.latency_p99_us = report.latency_p99_us;
  direction.latency_most_us = report.latency_most_us;
  direction.rounds = report.rounds;
  direction.verified_bytes = report.verified_bytes;
  direction.bandwidth_gbps = pair::gbps_of(report.verified_bytes, report.duration_ns);
}

std::vector<Direction> measure_cable(const LiveCluster& live, uint32_t index, const MatrixOptions& options,
                                     const PairWatch& watch) {
  const cluster::Cable& cable = live.model.cables[index];
  std::vector<Direction> directions(2);
  directions[0].cable = directions[1].cable = index;
  directions[0].message_bytes = directions[1].message_bytes = options.size_bytes;
  directions[0].from = directions[1].to = cable.a;
  directions[0].to = directions[1].from = cable.b;
  live.control.refresh();
  if (live.control.cable_up(index)) {
    const uint64_t deadline_ns = base::now_ns() + static_cast<uint64_t>(options.timeout_s * 1e9) + kSlackNs;
    const std::array<ProgramEnd, 2> probes = run_pair(
        live, {cable.a, cable.b},
        {probe_words(live, cable.a, cable.b, true, options), probe_words(live, cable.b, cable.a, false, options)},
        deadline_ns, watch);
    const ProbeReport first = report_of(probes[0]);
    const ProbeReport second = report_of(probes[1]);
    directions[0] = direction_of(first, second, directions[0]);
    directions[1] = direction_of(second, first, directions[1]);
  }
  live.control.refresh();
  for (Direction& direction : directions) {
    if (direction.state == Direction::State::kFailed && !live.control.cable_up(index)) {
      direction.state = Direction::State::kCut;  // before, or while we measured
      direction.problem.clear();
    }
  }
  if (cable.a == cable.b) {
    directions.pop_back();  // a loopback plug has one
  }
  return directions;
}

}  // namespace ringbolt::tools
