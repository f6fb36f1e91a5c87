#include "perf/probe.h"

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <system_error>

#include <fmt/format.h>

#include "base/clock.h"
#include "commands.h"
#include "failure.h"
#include "pair/two_ends.h"
#include "pair/values.h"
#include "perf/link.h"
#include "perf/measure.h"
#include "stop.h"

namespace ringbolt::tools::perf {
namespace {

/// How long the thread of this process that waited longest for a processor, while it could have run, has done so since
/// it began, as the kernel counts it; 0 if it does not.
/// Of /proc/PID/task/TID/schedstat the second number: nanoseconds spent waiting on a run queue (the kernel's
/// Documentation/scheduler/sched-stats.rst).
uint64_t starved_ns() {
  uint64_t longest = 0;
  std::error_code error;
  for (std::filesystem::directory_iterator task("/proc/self/task", error), end; !error && task != end;
       task.increment(error)) {
    std::ifstream file(task->path() / "schedstat");
    uint64_t ran = 0;
    uint64_t waited = 0;
    if (file >> ran >> waited) {
      longest = std::max(longest, waited);
    }
  }
  return longest;
}

/// What share of its time, in millionths, this process waited for a processor in a part of its work.
template <class Work>
uint64_t starved_ppm_of(const Work& work) {
  const uint64_t begin = base::now_ns();
  const uint64_t before = starved_ns();
  work();
  if (is_stopped()) {
    throw ProbeFailure("it was interrupted");
  }
  return (std::max(starved_ns(), before) - before) * 1'000'000 / std::max<uint64_t>(base::now_ns() - begin, 1);
}

/// RC where both ends have it, otherwise UC, of which nothing may get lost either.
pair::Transport common_transport(const pair::Device& device, Peer& peer) {
  const bool has_theirs = pair::exchange<bool>(peer, "has-rc", device.has_rc(), "its transports");
  return device.has_rc() && has_theirs ? Transport::kRc : Transport::kUc;
}

/// As many messages under way as fill a cable with delay, too, within a bound of memory.
Tuning stream_tuning(uint64_t size_bytes) {
  constexpr uint64_t kUnderWayBytes = uint64_t{15} << 20U;
  constexpr uint64_t kMostUnderWay = 64;
  const uint64_t depth = std::clamp<uint64_t>(kUnderWayBytes / std::max<uint64_t>(size_bytes, 1), 2, kMostUnderWay);
  Tuning tuning;
  tuning.tx_depth = tuning.rx_depth = static_cast<uint32_t>(depth);
  return tuning;
}

// A link is made before the time counts for which a thread waits for a processor: to set it up is not measured.

void measure_round_trips(Link&& link, bool is_mine, Peer& peer, Progress& progress, ProbeReport& report) {
  (is_mine ? report.starved_ppm.asking : report.starved_ppm.answering) = starved_ppm_of([&] {
    if (const auto found = measure_latency(link, peer, is_mine, progress)) {
      report.latency_us = found->p50_us;
      report.latency_p99_us = found->p99_us;
      report.latency_most_us = found->most_us;
      report.rounds = found->rounds;
    }
  });
}

void measure_stream(Link&& link, bool is_mine, Peer& peer, Progress& progress, ProbeReport& report) {
  (is_mine ? report.starved_ppm.sending : report.starved_ppm.receiving) = starved_ppm_of([&] {
    for (const BandwidthFigures& found : measure_bandwidth(link, peer, is_mine, progress)) {
      report.verified_bytes = found.verified_bytes;
      report.duration_ns = found.duration_ns;
    }
  });
}

ProbeReport measure_both_ways(const ProbeOptions& options, Peer& peer, Progress& progress, bool is_first) {
  const verbs::Library verbs = pair::open_verbs(options.library);
  const pair::Device device(verbs, options.device, {});
  if (options.size_bytes > device.most_message_bytes()) {
    throw ProbeFailure(fmt::format("{} takes messages of up to {} bytes, not {}: give a smaller --size", device.name(),
                                   device.most_message_bytes(), options.size_bytes));
  }
  Parameters parameters;
  parameters.transport = common_transport(device, peer);
  parameters.may_lose = false;
  parameters.most_s = options.phase_s;
  parameters.latency_check = Check::kFull;
  ProbeReport report;
  report.is_reliable = parameters.transport == Transport::kRc;
  for (const bool is_mine : {is_first, !is_first}) {
    parameters.iterations = options.rounds;
    measure_round_trips(Link(device, parameters, {}, {sizeof(uint64_t), true}, peer), is_mine, peer, progress, report);
    parameters.iterations = options.messages;
    // Queues in frames refuse receives long before they are full: there as few as by default.
    const Tuning tuning = device.counts_frames() ? Tuning{} : stream_tuning(options.size_bytes);
    measure_stream(Link(device, parameters, tuning, {options.size_bytes, false}, peer), is_mine, peer, progress,
                   report);
  }
  return report;
}

}  // namespace
}  // namespace ringbolt::tools::perf

int ringbolt::tools::probe(const ProbeOptions& options) {
  // As pair::Channel demands: a peer that is gone shall be an error, and not the end of this process.
  ::signal(SIGPIPE, SIG_IGN);
  return pair::answer_as_end("probe", options, static_cast<uint64_t>(options.timeout_s * 1e9),
                             [&](pair::Peer& peer, Progress& progress, bool is_client) {
                               // Who started this waits little longer, and then takes its silence for a hang.
                               peer.set_end(base::now_ns() + static_cast<uint64_t>(options.timeout_s * 1e9));
                               return perf::measure_both_ways(options, peer, progress, is_client);
                             });
}
