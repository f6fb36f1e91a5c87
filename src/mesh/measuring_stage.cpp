#include "mesh/measuring_stage.h"

#include <fmt/core.h>
#include <sched.h>

#include "base/clock.h"
#include "mesh/failure.h"
#include "mesh/shares.h"

namespace ringbolt::mesh {
namespace {

std::vector<std::byte> emit(const std::vector<LinkFigures>& links) {
  base::ByteWriter writer;
  for (const LinkFigures& link : links) {
    writer.put(link.a);
    writer.put(link.b);
    writer.put(link.latency_ns);
    writer.put(link.bytes_per_ms);
  }
  return writer.bytes();
}

/// Any bytes are safe. Throws JoinError that names the rank, whose words all ranks have alike.
std::vector<LinkFigures> parse(std::span<const std::byte> bytes, size_t rank) {
  std::vector<LinkFigures> links;
  for (base::ByteReader reader(bytes); !reader.is_at_end();) {
    LinkFigures link;
    link.a = reader.take<uint32_t>();
    link.b = reader.take<uint32_t>();
    link.latency_ns = reader.take<uint64_t>();
    link.bytes_per_ms = reader.take<uint64_t>();
    if (!reader.is_sound()) {
      throw JoinError(fmt::format("rank {} described its measurements wrongly", rank));
    }
    links.push_back(link);
  }
  return links;
}

}  // namespace

std::vector<LinkFigures> measure_links(bootstrap::SideChannel& side_channel, engine::Engine& engine,
                                       const fabric::Graph& graph, uint64_t deadline_ns) {
  Measuring measuring(engine, side_channel.rank(), fabric::neighbours(graph)[side_channel.rank()]);
  // By this rank's clock from its own beginning: a rank that ends early answers its neighbours no more, whose figures
  // are then of fewer bursts.
  const uint64_t end_ns = base::now_ns() + kMostMeasuringMs * 1'000'000;
  measuring.start();
  for (uint64_t now_ns = base::now_ns(); now_ns < end_ns && !measuring.is_done(); now_ns = base::now_ns()) {
    if (!measuring.progress(now_ns)) {
      sched_yield();  // ranks may be more than processors
    }
  }
  std::vector<std::vector<LinkFigures>> of_ranks;
  for (const auto& bytes : share(side_channel, emit(measuring.figures()), {}, deadline_ns)) {
    of_ranks.push_back(parse(bytes, of_ranks.size()));
  }
  return merged(of_ranks);
}

}  // namespace ringbolt::mesh
