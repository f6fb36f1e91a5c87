#include "perf/hello.h"

#include <string>
#include <vector>

#include <fmt/format.h>

#include "pair/hello.h"

namespace ringbolt::tools::perf {
namespace {

std::string phases_text(const Parameters& one) {
  return !one.has_latency ? "bandwidth" : one.has_bandwidth ? "both" : "latency";
}

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

}  // namespace

std::string emit_hello(const Parameters& mine) { return pair::emit_hello("perf", entries_of(mine)); }

std::string hello_objection(const Parameters& mine, std::string_view theirs) {
  return pair::hello_objection("perf", entries_of(mine), theirs);
}

}  // namespace ringbolt::tools::perf
