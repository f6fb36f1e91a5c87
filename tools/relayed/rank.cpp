#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/say.h"
#include "bootstrap/environment.h"
#include "commands.h"
#include "failure.h"
#include "ranks/meeting.h"
#include "ranks/start.h"
#include "relayed/exchange.h"
#include "relayed/report.h"

namespace ringbolt::tools {
namespace {

using relayed::Report;

/// The members of the group are nodes in their order: this one's rank.
GroupOptions group_options(const RelayProbeOptions& options) {
  GroupOptions wanted;
  wanted.timeout_ms = static_cast<uint64_t>(options.timeout_s * 1000) + 1;
  wanted.verbs = "soft";
  wanted.environment = bootstrap::environment_of_process();
  const std::string node = wanted.environment["RINGBOLT_NODE"];
  const auto found = std::ranges::find_if(options.members, [&](uint32_t one) { return std::to_string(one) == node; });
  if (found == options.members.end()) {
    throw UsageError(fmt::format("RINGBOLT_NODE is \"{}\", which is no member of the group", node));
  }
  ranks::take_rank(wanted.environment, static_cast<uint32_t>(found - options.members.begin()),
                   static_cast<uint32_t>(options.members.size()), options.members.front());
  return wanted;
}

/// Pairs of ranks that others relay, which all ranks agree in.
std::vector<std::pair<uint32_t, uint32_t>> relayed_pairs(Group& group) {
  std::vector<uint8_t> mine(group.size());
  for (uint32_t peer = 0; peer < group.size(); ++peer) {
    mine[peer] = peer != group.rank() && !group.relays(peer).empty() ? 1 : 0;
  }
  std::vector<uint8_t> all(size_t{group.size()} * group.size());
  if (const Status status = group.all_gather(mine.data(), all.data(), mine.size(), Type::uint8); !status.is_ok()) {
    throw UsageError(status.text);
  }
  std::vector<std::pair<uint32_t, uint32_t>> pairs;
  for (uint32_t a = 0; a < group.size(); ++a) {
    for (uint32_t b = a + 1; b < group.size(); ++b) {
      if (all[size_t{a} * group.size() + b] != 0) {
        pairs.emplace_back(a, b);
      }
    }
  }
  return pairs;
}

/// This rank's part in measuring one pair; others wait. False if it failed: then the group is of no use any more.
bool measure_pair(Group& group, const std::pair<uint32_t, uint32_t>& pair, const RelayProbeOptions& options) {
  const bool is_lower = group.rank() == pair.first;
  if (!is_lower && group.rank() != pair.second) {
    return true;
  }
  const uint32_t peer = is_lower ? pair.second : pair.first;
  Report report{options.members[group.rank()], options.members[peer], {}, {}};
  for (const uint32_t relay : group.relays(peer)) {
    report.through.push_back(options.members[relay]);
  }
  try {
    for (const bool is_mine : {is_lower, !is_lower}) {
      is_mine ? relayed::measure(group, peer, options, report.figures) : relayed::answer(group, peer, options);
    }
  } catch (const ProbeFailure& failure) {
    report.figures.problem = failure.what();
    std::ranges::replace(report.figures.problem, '\n', ' ');
    group.abort(fmt::format("measuring ranks {} and {} has failed", pair.first, pair.second));
  }
  fmt::print("{}", relayed::emit(report));
  std::fflush(stdout);
  return report.figures.problem.empty();
}

}  // namespace

int relay_probe(const RelayProbeOptions& options) {
  Group group = ranks::join(group_options(options), static_cast<uint32_t>(options.members.size()));
  CallOptions while_others_measure;
  // Two ranks measure, each message within its time limit, and this one waits for both to end.
  while_others_measure.timeout_ms = static_cast<uint64_t>((options.timeout_s + 4 * options.phase_s + 1) * 1000);
  for (const auto& pair : relayed_pairs(group)) {
    if (!measure_pair(group, pair, options)) {
      return kFoundProblem;
    }
    if (const Status status = group.barrier(while_others_measure); !status.is_ok()) {
      base::say(fmt::format("rank {}: {}\n", group.rank(), status.text));
      return kFoundProblem;
    }
  }
  return kOk;
}

}  // namespace ringbolt::tools
