// One block of one series: prints its figures. events.py takes turns and compares.
//   bench_events ping-pong eventfd|unix|verbs|verbs-write BYTES BLOCK_MS
//   bench_events serve tcp|unix|verbs|verbs-write CONNECTIONS BYTES PIPELINE BLOCK_MS
//   bench_events crowd sleeps|polls IDLE CHURN BLOCK_MS: one busy connection beside IDLE ones, after CHURN that are gone

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <map>
#include <string>
#include <vector>

#include "side.h"

namespace ringbolt::bench {
namespace {

constexpr uint64_t kNsPerMs = 1'000'000;

uint64_t percentile(std::vector<uint64_t>& samples, size_t per_thousand) {
  if (samples.empty()) {
    return 0;
  }
  const size_t at = std::min(samples.size() - 1, samples.size() * per_thousand / 1000);
  std::nth_element(samples.begin(), samples.begin() + static_cast<ptrdiff_t>(at), samples.end());
  return samples[at];
}

void print(Served& result) {
  fmt::print("p50_ns {} p99_ns {} count {} per_second {:.0f}\n", percentile(result.latencies_ns, 500),
             percentile(result.latencies_ns, 990), result.requests,
             static_cast<double>(result.requests) * 1e9 / static_cast<double>(std::max<uint64_t>(result.elapsed_ns, 1)));
}

int run(const std::vector<std::string>& words) {
  const std::map<std::string, MakeSide> sides{{"tcp", make_tcp_side},
                                              {"unix", make_unix_side},
                                              {"verbs", make_verbs_side},
                                              {"verbs-write", make_verbs_write_side}};
  const auto number = [&](size_t at) { return static_cast<uint32_t>(std::stoul(words.at(at))); };
  if (words.size() == 4 && words[0] == "ping-pong") {
    PingPong result = ping_pong(words[1], number(2), number(3) * kNsPerMs);
    fmt::print("p50_ns {} p99_ns {} count {}\n", percentile(result.round_trips_ns, 500),
               percentile(result.round_trips_ns, 990), result.round_trips_ns.size());
    return 0;
  }
  if (words.size() == 6 && words[0] == "serve" && sides.contains(words[1])) {
    Shape shape;
    shape.connections = number(2);
    shape.bytes = number(3);
    shape.pipeline = number(4);
    Served result = request_reply(sides.at(words[1]), shape, number(5) * kNsPerMs);
    print(result);
    return 0;
  }
  if (words.size() == 5 && words[0] == "crowd") {
    Shape shape;
    shape.idle = number(2);
    shape.churn = number(3);
    shape.polls = words[1] == "polls";
    Served result = request_reply(make_verbs_side, shape, number(4) * kNsPerMs);
    print(result);
    return 0;
  }
  fmt::print(stderr, "usage: bench_events ping-pong KIND BYTES BLOCK_MS | serve KIND CONNECTIONS BYTES PIPELINE BLOCK_MS "
                     "| crowd sleeps|polls IDLE CHURN BLOCK_MS\n");
  return 2;
}

}  // namespace
}  // namespace ringbolt::bench

int main(int argc, char** argv) try {
  return ringbolt::bench::run({argv + 1, argv + argc});
} catch (const std::exception& error) {
  fmt::print(stderr, "bench_events: {}\n", error.what());
  return 1;
}
