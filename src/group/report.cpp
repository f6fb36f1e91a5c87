#include "group/report.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

namespace ringbolt::group {

std::string report(const Standing& here, const mesh::BroughtUp& made) {
  std::string text = fmt::format("rank {} of {}\n", here.rank, here.n_ranks);
  for (const mesh::CableWords& cable : made.cables) {
    text += fmt::format("  {}: {}, found by {}\n", cable.text(),
                        cable.rate_mbps > 0 ? fmt::format("{:.1f} Gb/s", cable.rate_mbps / 1000.0) : "rate unknown",
                        cable.how);
  }
  for (const mesh::LinkFigures& link : made.links) {
    text += link.bytes_per_ms == 0 ? fmt::format("  ranks {}-{}: too slow to be measured in time\n", link.a, link.b)
                                   : fmt::format("  ranks {}-{}: {:.1f} us and {:.1f} Gb/s measured\n", link.a, link.b,
                                                 static_cast<double>(link.latency_ns) / 1000,
                                                 static_cast<double>(link.bytes_per_ms) * 8e-6);
  }
  for (const std::string& port : made.unmatched) {
    text += fmt::format("  no cable: {}\n", port);
  }
  if (made.station == nullptr) {  // a mesh of one rank
    return text;
  }
  const engine::Engine& engine = made.station->engine();
  for (uint32_t other = 0; other < here.n_world_ranks; ++other) {
    if (other == here.world_rank) {
      continue;
    }
    if (!engine.paths().is_reachable(other)) {
      text += fmt::format("  rank {} of the world: no way\n", other);
      continue;
    }
    const auto& via = engine.paths().via(other);
    text += fmt::format("  rank {} of the world: {}\n", other,
                        via.empty() ? "direct" : fmt::format("through {}", fmt::join(via, ", ")));
  }
  const engine::EngineCounts& counts = engine.counts();
  text += fmt::format(
      "  chunks sent {}, received {}, sent again {}, received twice {}, relayed {}, dropped by relays {}, bad headers "
      "{}, "
      "bad payloads {}, strangers {}, acknowledgements {}\n",
      counts.chunks_sent, counts.chunks_received, counts.resent, counts.duplicates, counts.relayed, counts.relay_drops,
      counts.bad_headers, counts.bad_payloads, counts.strangers, counts.acks_sent);
  return text;
}

}  // namespace ringbolt::group
