#include "perf/request.h"

#include <fmt/format.h>

#include "failure.h"

namespace ringbolt::tools::perf {
namespace {

using pair::chosen;

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
  if (options.has_latency && options.reports_both) {
    throw UsageError("--lat is latency alone, --report-both is latency and bandwidth: give one of them");
  }
  if (options.has_histogram && !options.has_latency && !options.reports_both) {
    throw UsageError("--histogram is of latency: give --lat or --report-both too");
  }
  if (options.has_histogram && options.is_json) {
    throw UsageError("--json has the histogram always: leave out --histogram");
  }
  if (options.operation != "atomic" && options.atomic_type != "fetch_add") {
    throw UsageError("--atomic_type is of atomic: leave it out");
  }
}

}  // namespace

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
  const std::string objection = objection_to(parameters, request.tuning);
  if (!objection.empty()) {
    throw UsageError(objection);
  }
  return request;
}

}  // namespace ringbolt::tools::perf
