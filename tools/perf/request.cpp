#include "perf/request.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "failure.h"

namespace ringbolt::tools::perf {
namespace {

constexpr uint64_t kLatencyBytes = 8;
constexpr uint64_t kBandwidthBytes = 65536;
constexpr uint64_t kMostSweptBytes = uint64_t{1} << 23U;
constexpr uint64_t kUsualIterations = 1000;

template <class Value, size_t kCount>
Value chosen(const std::string& text, const char* flag, const std::array<Value, kCount>& all) {
  std::string known;
  for (const Value one : all) {
    if (text == text_of(one)) {
      return one;
    }
    known += fmt::format("{}{}", known.empty() ? "" : ", ", text_of(one));
  }
  throw UsageError(fmt::format("{} \"{}\" is none of {}", flag, text, known));
}

void choose_checks(const PerfOptions& options, Parameters& parameters) {
  if (options.check.empty()) {
    return;
  }
  const Check check = chosen(options.check, "--check", std::array{Check::kFull, Check::kSample, Check::kNone});
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
  Tuning tuning;
  tuning.tx_depth = options.tx_depth;
  tuning.rx_depth = options.rx_depth;
  tuning.signal_every = options.signal_every;
  tuning.post_list = options.post_list;
  tuning.inline_bytes = options.inline_bytes.value_or(-1);
  tuning.has_events = options.has_events;
  tuning.mtu_bytes = options.mtu_bytes;
  tuning.timeout_code = static_cast<uint8_t>(options.timeout_code);
  tuning.retry_count = static_cast<uint8_t>(options.retry_count);
  tuning.port = static_cast<uint8_t>(options.device_port);
  tuning.gid_index = options.gid_index.value_or(-1);
  tuning.line_rate_gbps = options.line_rate_gbps.value_or(-1);
  return tuning;
}

/// Flags that say nothing about the way these two ends meet.
void refuse_idle_flags(const PerfOptions& options) {
  if (!options.nodes.empty() && !options.host.empty()) {
    throw UsageError("HOST and --nodes both say where the other end is: give one of them");
  }
  if (!options.nodes.empty() && !options.device.empty()) {
    throw UsageError("--nodes takes the devices of the cable between them: leave out -d");
  }
  if (options.nodes.empty() && !options.cluster.empty()) {
    throw UsageError("--cluster says where to look for --nodes: give --nodes A,B too, or leave it out");
  }
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
  parameters.operation = chosen(options.operation, "OP",
                                std::array{Operation::kSend, Operation::kWrite, Operation::kRead, Operation::kAtomic});
  parameters.transport = chosen(options.connection, "-c", std::array{Transport::kRc, Transport::kUc, Transport::kUd});
  parameters.atomic_kind =
      chosen(options.atomic_type, "--atomic_type", std::array{AtomicKind::kFetchAdd, AtomicKind::kCompareSwap});
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

std::vector<std::string> words_of(const PerfOptions& options, const std::string& device, const std::string& end,
                                  const std::string& peer) {
  std::vector<std::string> words{"perf", options.operation, "--end", end, "--peer", peer, "-d", device};
  const auto add = [&](const char* flag, const auto& value) {
    words.insert(words.end(), {flag, fmt::format("{}", value)});
  };
  const auto add_flag = [&](const char* flag, bool is_set) {
    if (is_set) {
      words.emplace_back(flag);
    }
  };
  const auto add_if_set = [&](const char* flag, const auto& value) {
    if (value) {
      words.insert(words.end(), {flag, fmt::format("{}", *value)});
    }
  };
  add("--verbs", options.verbs);
  add("-c", options.connection);
  add("--atomic_type", options.atomic_type);
  if (!options.check.empty()) {
    add("--check", options.check);
  }
  add_if_set("-s", options.size_bytes);
  add_if_set("-n", options.iterations);
  add_if_set("-D", options.duration_s);
  add_if_set("--line-rate", options.line_rate_gbps);
  add_if_set("-x", options.gid_index);
  add_if_set("-I", options.inline_bytes);
  add("-q", options.queue_pairs);
  add("-l", options.post_list);
  add("-u", options.timeout_code);
  add("--retry_count", options.retry_count);
  add("-i", options.device_port);
  add("--timeout", options.timeout_s);
  for (const auto& [flag, value] : {std::pair("-m", options.mtu_bytes), std::pair("-t", options.tx_depth),
                                    std::pair("-r", options.rx_depth), std::pair("-Q", options.signal_every)}) {
    if (value != 0) {
      add(flag, value);
    }
  }
  add_flag("--lat", options.has_latency);
  add_flag("--report-both", options.reports_both);
  add_flag("-a", options.is_all_sizes);
  add_flag("-b", options.is_bidirectional);
  add_flag("-e", options.has_events);
  add_flag("--require-counters", options.needs_counters);
  return words;
}

}  // namespace ringbolt::tools::perf
