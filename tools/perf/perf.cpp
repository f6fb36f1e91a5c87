#include <algorithm>
#include <csignal>
#include <cstdio>
#include <optional>
#include <string>

#include <fmt/format.h>

#include "base/printable.h"
#include "base/say.h"
#include "commands.h"
#include "failure.h"
#include "page_file.h"
#include "pair/device.h"
#include "pair/end_facts.h"
#include "pair/peer.h"
#include "pair/two_ends.h"
#include "pair/values.h"
#include "perf/counters.h"
#include "perf/link.h"
#include "perf/measure.h"
#include "perf/parameters.h"
#include "perf/result.h"
#include "progress_line.h"
#include "stop.h"
#include "thresholds.h"

namespace ringbolt::tools::perf {
namespace {

/// What one end was asked for.
struct Request {
  Parameters parameters;
  Tuning tuning;
  std::string library;  ///< path of the verbs library
  std::string device;   ///< empty: the first
  bool needs_counters = false;
};

using pair::chosen;
using pair::EndFacts;

constexpr uint64_t kLatencyBytes = 8;
constexpr uint64_t kBandwidthBytes = 65536;
constexpr uint64_t kMostSweptBytes = uint64_t{1} << 23U;
constexpr uint64_t kUsualIterations = 1000;

void choose_checks(const PerfOptions& options, Parameters& parameters) {
  if (options.check.empty()) {
    return;
  }
  const Check check = chosen(options.check, "--check", kChecks);
  parameters.latency_check = check;
  parameters.bandwidth_check = check;
}

std::vector<uint64_t> sizes_of(const PerfOptions& options, const Parameters& parameters) {
  if (options.is_all_sizes) {
    const uint64_t most = options.size_bytes.value_or(parameters.transport == Transport::kUd ? 4096 : kMostSweptBytes);
    if (most < 2) {
      throw UsageError("-a begins at 2 bytes: -s, where it ends, can't be below that");
    }
    return all_sizes(most);
  }
  if (options.size_bytes) {
    if (*options.size_bytes == 0) {
      throw UsageError("-s is in bytes, from 1 on");
    }
    return {*options.size_bytes};
  }
  if (parameters.operation == Operation::kAtomic) {
    return {8};
  }
  if (!parameters.has_bandwidth) {
    return {kLatencyBytes};
  }
  return {parameters.transport == Transport::kUd ? 0 : kBandwidthBytes};
}

void choose_length(const PerfOptions& options, Parameters& parameters) {
  if (options.iterations && options.duration_s) {
    throw UsageError("-n and -D both say how long: give one of them");
  }
  parameters.duration_s = options.duration_s.value_or(0);
  parameters.iterations = options.duration_s ? 0 : options.iterations.value_or(kUsualIterations);
}

Tuning tuning_of(const PerfOptions& options) {
  Tuning tuning{pair::port_choice_of(options)};
  tuning.tx_depth = options.tx_depth;
  tuning.rx_depth = options.rx_depth;
  tuning.signal_every = options.signal_every;
  tuning.post_list = options.post_list;
  tuning.inline_bytes = options.inline_bytes.value_or(-1);
  tuning.has_events = options.has_events;
  tuning.line_rate_gbps = options.line_rate_gbps.value_or(-1);
  return tuning;
}

/// Flags that say nothing about the way these two ends meet.
void refuse_idle_flags(const PerfOptions& options) {
  pair::refuse_two_meetings(options);
  pair::refuse(pair::first_of({
      {options.has_latency && options.reports_both,
       "--lat is latency alone, --report-both is latency and bandwidth: give one of them"},
      {options.has_histogram && !options.has_latency && !options.reports_both,
       "--histogram is of latency: give --lat or --report-both too"},
      {options.has_histogram && options.is_json, "--json has the histogram always: leave out --histogram"},
      {options.operation != "atomic" && options.atomic_type != "fetch_add", "--atomic_type is of atomic: leave it out"},
  }));
}

/// What the command line asks for. Throws UsageError for what makes no sense, alone or together.
Request request_of(const PerfOptions& options) {
  refuse_idle_flags(options);
  Request request;
  Parameters& parameters = request.parameters;
  parameters.operation = chosen(options.operation, "OP", kOperations);
  parameters.transport = chosen(options.connection, "-c", pair::kTransports);
  parameters.atomic_kind = chosen(options.atomic_type, "--atomic_type", kAtomicKinds);
  parameters.has_latency = options.has_latency || options.reports_both;
  parameters.has_bandwidth = !options.has_latency;
  parameters.is_bidirectional = options.is_bidirectional;
  parameters.queue_pairs = options.queue_pairs;
  choose_checks(options, parameters);
  choose_length(options, parameters);
  parameters.sizes = sizes_of(options, parameters);
  request.tuning = tuning_of(options);
  request.device = options.device;
  request.needs_counters = options.needs_counters;
  // A UD datagram as large as the path takes is settled later.
  // 0 passes here for UD alone.
  pair::refuse(objection_to(parameters, request.tuning));
  return request;
}

/// The lesser of both ports' MTUs.
uint32_t agree_on_mtu(const Device& device, Peer& peer) {
  const auto theirs = pair::exchange<uint32_t>(peer, "mtu", device.mtu_bytes(), "its MTU");
  // From IBV_MTU_256 to well above IBV_MTU_4096.
  if (theirs < 256 || theirs > 65536) {
    peer.fail("an MTU of {} bytes makes no sense", theirs);
  }
  return std::min(device.mtu_bytes(), theirs);
}

/// Those of UD depend on the path.
void settle_sizes(Parameters& parameters, uint32_t mtu_bytes) {
  if (parameters.transport != Transport::kUd) {
    return;
  }
  for (uint64_t& size : parameters.sizes) {
    size = size == 0 ? mtu_bytes : size;
    if (size > mtu_bytes) {
      throw ProbeFailure(
          fmt::format("a UD message is one packet: -s {} is above the path's MTU, {} bytes", size, mtu_bytes));
    }
  }
}

Row measure_size(const Device& device, const Request& request, const Parameters& parameters, uint64_t size, Peer& peer,
                 bool is_client, Progress& progress) {
  Row row;
  row.size_bytes = size;
  if (parameters.has_latency) {
    Link link(device, parameters, request.tuning, {size, true}, peer);
    row.latency = measure_latency(link, peer, is_client, progress);
  }
  if (parameters.has_bandwidth) {
    Link link(device, parameters, request.tuning, {size, false}, peer);
    row.bandwidth = measure_bandwidth(link, peer, is_client, progress);
  }
  return row;
}

/// Whether neither end was asked to stop.
bool agree_to_go_on(Peer& peer) {
  peer.tell("more", is_stopped() ? "no" : "yes");
  return peer.await("more", "whether to go on") == "yes" && !is_stopped();
}

EndFacts facts_of(const Device& device, const Request& request, const std::optional<PortCounters>& before,
                  bool is_client) {
  EndFacts facts{pair::end_name(is_client), device.name(), request.library, device.port_rate_gbps()};
  const std::optional<PortCounters> after = counters_of(device.name(), device.port(), request.library);
  if (before && after) {
    facts.has_counters = true;
    facts.transmitted_bytes = counted_since(before->transmitted_bytes, after->transmitted_bytes);
    facts.received_bytes = counted_since(before->received_bytes, after->received_bytes);
  }
  return facts;
}

/// The server tells what it knows, and gets the whole.
Result share(Result result, const EndFacts& mine, const Request& request, Peer& peer, bool is_client) {
  result.ends = {mine};
  if (!is_client) {
    pair::tell_value(peer, "facts", result);
    return pair::await_value<Result>(peer, "result", "the result");
  }
  const auto theirs = pair::await_value<Result>(peer, "facts", "its device's facts");
  result.ends.insert(result.ends.end(), theirs.ends.begin(), theirs.ends.end());
  result.needs_counters = request.needs_counters || theirs.needs_counters;
  result.line_rate_gbps = pair::line_rate_gbps(request.tuning.line_rate_gbps, result.ends);
  pair::tell_value(peer, "result", result);
  return result;
}

/// One end's whole part: both agree, then measure size after size, and both get the same result, whose line rate is the
/// client's. Asked to stop (stop.h), they end with what they have measured. Throws ProbeFailure, and UsageError if the
/// ends were asked for different things.
Result run_session(const Request& request, Peer& peer, bool is_client, Progress& progress) {
  pair::agree("perf", entries_of(request.parameters), peer);
  const verbs::Library verbs = pair::open_verbs(request.library);
  const Device device(verbs, request.device, request.tuning);
  Result result;
  result.parameters = request.parameters;
  result.mtu_bytes = agree_on_mtu(device, peer);
  settle_sizes(result.parameters, result.mtu_bytes);
  result.needs_counters = request.needs_counters;
  const std::optional<PortCounters> before = counters_of(device.name(), device.port(), request.library);
  for (const uint64_t size : result.parameters.sizes) {
    result.rows.push_back(measure_size(device, request, result.parameters, size, peer, is_client, progress));
    if (size != result.parameters.sizes.back() && !agree_to_go_on(peer)) {
      break;
    }
  }
  const EndFacts mine = facts_of(device, request, before, is_client);
  if (!is_client) {
    result.rows.clear();
  }
  return share(std::move(result), mine, request, peer, is_client);
}

}  // namespace
}  // namespace ringbolt::tools::perf

namespace ringbolt::tools {
namespace {

using perf::Result;

/// Of both ends on nodes, in seconds.
double most_s(const PerfOptions& options, const perf::Parameters& parameters) {
  const double figures = 2.0 * static_cast<double>(parameters.sizes.size());
  // Far slower than any link worth a measurement: it only bounds how long ends on nodes are waited for.
  constexpr double kSecondsAnOperation = 1e-3;
  const double one = options.timeout_s * 2 + parameters.duration_s * 2 +
                     static_cast<double>(parameters.iterations) * kSecondsAnOperation;
  return std::min(figures * one, 1e8);
}

int print(const PerfOptions& options, const Result& result) {
  const bool prints_page = options.html_path == "-";
  if (options.is_json) {
    fmt::print("{}", result_json(result));
  } else if (!prints_page) {
    // Names in it are the other end's word.
    fmt::print("{}", base::printable(result_text(result, {options.is_in_gbits, options.has_histogram}), '?', true));
  }
  std::fflush(stdout);
  if (is_stopped()) {
    base::say("ringbolt perf: interrupted: this is what was measured until then\n");
  }
  const std::vector<std::string> problems = problems_of(result);
  for (const std::string& problem : problems) {
    base::say(fmt::format("ringbolt perf: {}\n", base::printable(problem)));
  }
  const int status = problems.empty() ? kOk : kFoundProblem;
  return options.fail_if.empty() ? status : status_within(status, "perf", result_json(result), options.fail_if);
}

}  // namespace

int perf_run(const PerfOptions& options) {
  ::signal(SIGPIPE, SIG_IGN);
  pair::TwoEnds<Result> ends{"perf", options, static_cast<uint64_t>(options.timeout_s * 1e9)};
  ends.act = [&](pair::Peer& peer, Progress& progress, bool is_client) {
    perf::Request request = perf::request_of(options);
    request.library = pair::verbs_path(options.verbs);
    return perf::run_session(request, peer, is_client, progress);
  };
  if (!options.end.empty()) {
    return ends.answer_as_end();
  }
  if (options.html_path == "-" && options.is_json) {
    throw UsageError("--json and --html - both want stdout: give --html a path");
  }
  check_thresholds(options.fail_if);
  // What is wrong with the words comes before what is wrong with the path.
  ends.most_s = most_s(options, perf::request_of(options).parameters);
  PageFile page(options.html_path);
  try {
    const Result result = ends.run();
    page.write(result_page(result));
    return answer_unless_stopped(print(options, result));
  } catch (const ProbeFailure& failure) {
    base::say(fmt::format("ringbolt perf: {}\n", failure.what()));
    return answer_unless_stopped(kFoundProblem);
  }
}

}  // namespace ringbolt::tools
