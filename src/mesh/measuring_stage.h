#pragma once

#include <cstdint>
#include <vector>

#include "bootstrap/side_channel.h"
#include "engine/engine.h"
#include "fabric/graph.h"
#include "mesh/measuring.h"

namespace ringbolt::mesh {

/// A cable of 1 Gb/s sends its bursts, 18 chunks or 1.2 MB, in half of that.
inline constexpr uint64_t kMostMeasuringMs = 20;

/// The stage of bring-up in which all cables of `graph` are measured at the same time, for kMostMeasuringMs at most,
/// and all ranks share what they found: the same list on all of them. The engine's cables are connected at both ends.
/// Throws JoinError as share() does.
std::vector<LinkFigures> measure_links(bootstrap::SideChannel& side_channel, engine::Engine& engine,
                                       const fabric::Graph& graph, uint64_t deadline_ns);

}  // namespace ringbolt::mesh
