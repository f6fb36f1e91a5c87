#include "perf/session.h"

#include <algorithm>
#include <cstdlib>
#include <optional>

#include <fmt/format.h>

#include "failure.h"
#include "pair/device.h"
#include "perf/counters.h"
#include "perf/latency.h"
#include "perf/link.h"
#include "stop.h"

namespace ringbolt::tools::perf {
namespace {

/// The port's MTU at both ends.
uint32_t agree_on_mtu(const Device& device, Peer& peer) {
  peer.tell("mtu", {device.mtu_bytes()});
  const uint64_t theirs = peer.numbers_in(peer.await("mtu", "its MTU"), 1)[0];
  if (theirs < 256 || theirs > 65536) {
    peer.fail("what the other end tells of its MTU makes no sense");
  }
  return std::min(device.mtu_bytes(), static_cast<uint32_t>(theirs));
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

/// Those that the system shows; of our own library, which shows some to programs of `ringbolt run` alone, its file's.
std::optional<PortCounters> counters_of(const Device& device, const Request& request) {
  const std::optional<PortCounters> shown = read_port_counters(counters_root(), device.name(), device.port());
  const bool is_ours = request.library.find("/lib/ringbolt/") != std::string::npos;
  return shown || !is_ours ? shown : read_own_counters(device.name());
}

EndFacts facts_of(const Device& device, const Request& request, const std::optional<PortCounters>& before,
                  bool is_client) {
  EndFacts facts{is_client ? "client" : "server", device.name(), request.library, device.port_rate_gbps()};
  const std::optional<PortCounters> after = counters_of(device, request);
  if (before && after) {
    facts.has_counters = true;
    facts.transmitted_bytes = after->transmitted_bytes - before->transmitted_bytes;
    facts.received_bytes = after->received_bytes - before->received_bytes;
  }
  return facts;
}

double line_rate(const Tuning& tuning, const std::vector<EndFacts>& ends) {
  if (tuning.line_rate_gbps >= 0) {
    return tuning.line_rate_gbps;
  }
  double slowest = 0;
  for (const EndFacts& end : ends) {
    slowest = slowest == 0 || (end.port_rate_gbps > 0 && end.port_rate_gbps < slowest) ? end.port_rate_gbps : slowest;
  }
  return slowest;
}

Result result_in(Peer& peer, const std::string& text) {
  std::optional<Result> result = parse_result(text);
  if (!result) {
    peer.fail("the result of the other end makes no sense");
  }
  return std::move(*result);
}

/// The server tells what it knows, and gets the whole.
Result share(Result result, const EndFacts& mine, const Request& request, Peer& peer, bool is_client) {
  result.ends = {mine};
  if (!is_client) {
    peer.tell("facts", emit_result(result));
    return result_in(peer, peer.await("result", "the result"));
  }
  const Result theirs = result_in(peer, peer.await("facts", "its device's facts"));
  result.ends.insert(result.ends.end(), theirs.ends.begin(), theirs.ends.end());
  result.needs_counters = request.needs_counters || theirs.needs_counters;
  result.line_rate_gbps = line_rate(request.tuning, result.ends);
  peer.tell("result", emit_result(result));
  return result;
}

}  // namespace

Result run_session(const Request& request, Peer& peer, bool is_client, Progress& progress) {
  pair::agree("perf", entries_of(request.parameters), peer);
  const verbs::Library verbs = pair::open_verbs(request.library);
  const Device device(verbs, request.device, request.tuning);
  Result result;
  result.parameters = request.parameters;
  result.mtu_bytes = agree_on_mtu(device, peer);
  settle_sizes(result.parameters, result.mtu_bytes);
  result.needs_counters = request.needs_counters;
  const std::optional<PortCounters> before = counters_of(device, request);
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

}  // namespace ringbolt::tools::perf
