#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cluster_state.h"
#include "commands.h"
#include "perf/probe.h"
#include "program_pair.h"

namespace ringbolt::tools {

/// One direction over one cable, or between two nodes that no cable joins.
struct Direction {
  enum class State {
    kMeasured,
    kCut,
    kFailed,
    kUnreachable,  ///< no cables that are up lead there
  };
  static constexpr uint32_t kNoCable = UINT32_MAX;

  uint32_t cable = 0;      ///< kNoCable: relayed by other nodes
  cluster::CableEnd from;  ///< of relayed ones the node alone counts
  cluster::CableEnd to;
  uint32_t hops = 1;                   ///< cables one after the other; 0: not known
  std::vector<uint32_t> through = {};  ///< nodes that relay, in order
  State state = State::kFailed;
  std::string problem;         ///< why it failed
  double latency_us = 0;       ///< half the median round trip of 8 bytes
  double latency_p99_us = 0;   ///< half the 99th percentile
  double latency_most_us = 0;  ///< half the worst
  uint64_t rounds = 0;         ///< round trips behind the latency
  double bandwidth_gbps = 0;   ///< of bytes that the receiver has verified
  uint64_t verified_bytes = 0;
  uint32_t message_bytes = 0;        ///< of the messages that the bandwidth was measured with
  bool is_reliable = true;           ///< RC carried them, not UC; of relayed ones the group chose
  double starved_share = 0;          ///< of the bandwidth's time, that a program at an end waited for a processor
  double starved_latency_share = 0;  ///< of the round trips' time, that either did: both together
  std::string far = {};  ///< how far its figures are from what they should be (far_cables.h); empty: they are not
};

/// Of the command line of who is to measure so.
std::vector<std::string> effort_words(const Effort& effort);

/// "measured", "cut", "failed" or "unreachable".
const char* state_text(Direction::State state);

/// "n0:rdma_en2" over a cable, "n0" where others relay.
std::string from_text(const cluster::Cluster& model, const Direction& direction);
std::string to_text(const cluster::Cluster& model, const Direction& direction);
/// "n1, n2": the nodes that relay.
std::string through_text(const cluster::Cluster& model, const Direction& direction);

/// Takes over what a probe has measured, or why it could not.
void take_figures(const ProbeReport& report, Direction& direction);

/// Measures both directions of cable `index`, by a process at each end in that node's environment. Takes the options'
/// time limit and little more, whatever happens. A cable that is cut is not measured. Throws only if processes can't be
/// started at all.
/// `watch` may stop it.
std::vector<Direction> measure_cable(const LiveCluster& live, uint32_t index, const MatrixOptions& options,
                                     const PairWatch& watch);

}  // namespace ringbolt::tools
