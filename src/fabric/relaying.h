#pragma once

#include <cstdint>
#include <string>

#include "fabric/graph.h"
#include "fabric/routes.h"

namespace ringbolt::fabric {

/// How relays keep from waiting for each other.
enum class Discipline : uint8_t {
  one_class,    ///< shortest paths are free of deadlock as they are
  hop_classes,  ///< a buffer class for every hop: any routes will do, also while they change
  dateline,     ///< a ring: another class from one cable on; routes may change only when relays are empty
  up_down,      ///< never up after down: one class, longer paths
};
const char* discipline_text(Discipline discipline);

struct Relaying {
  Discipline discipline = Discipline::one_class;
  uint32_t most_hops = 0;        ///< a chunk that has gone so far is dropped
  uint32_t n_relay_classes = 0;  ///< buffers that a relay keeps for every cable that comes in
};

/// At most so many hop classes are worth their memory.
inline constexpr uint32_t kMostHopClasses = 10;

/// Groups of libringbolt relay over no more hops than this: a chunk names the ranks on its way (engine/chunk_header.h).
inline constexpr uint32_t kMostHopsOfGroup = 13;

/// Hop classes for paths of the diameter after the worst cut and 2 hops more, 6 at least, if these are no more than
/// kMostHopClasses; beyond that what needs the least classes: shortest paths if they are free of deadlock, the dateline
/// on a ring 0 - 1 - ... - 0, up and down on all else. `worst_diameter`: after one cut, or of the graph if a cut parts
/// it. Pure. Thread-safe.
Relaying choose_relaying(const Graph& graph, uint32_t worst_diameter);

/// All routes under the discipline.
Routes routes_of(const Graph& graph, Discipline discipline);

}  // namespace ringbolt::fabric
