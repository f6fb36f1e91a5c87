#include "perf/hello.h"

#include <string>

#include <fmt/format.h>

namespace ringbolt::tools::perf {
namespace {

std::string phases_text(const Parameters& one) {
  return !one.has_latency ? "bandwidth" : one.has_bandwidth ? "both" : "latency";
}

}  // namespace

std::vector<pair::HelloEntry> entries_of(const Parameters& one) {
  return {{"operation", "OP", text_of(one.operation)},
          {"connection", "-c", text_of(one.transport)},
          {"measured", "--lat or --report-both", phases_text(one)},
          {"directions", "-b", one.is_bidirectional ? "both" : "one"},
          {"atomic", "--atomic_type", text_of(one.atomic_kind)},
          {"sizes", "-s or -a", fmt::format("{}", fmt::join(one.sizes, ","))},
          {"queue-pairs", "-q", std::to_string(one.queue_pairs)},
          {"iterations", "-n", std::to_string(one.iterations)},
          {"seconds", "-D", fmt::format("{}", one.duration_s)},
          {"latency-check", "--check", text_of(one.latency_check)},
          {"bandwidth-check", "--check", text_of(one.bandwidth_check)}};
}

}  // namespace ringbolt::tools::perf
