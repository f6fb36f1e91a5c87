#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "bootstrap/side_channel.h"
#include "bringup/cables.h"
#include "engine/station.h"
#include "fabric/cost_model.h"
#include "fabric/graph.h"
#include "mesh/measuring.h"

namespace ringbolt::mesh {

struct BringUpPlan {
  std::string verbs = "auto";  ///< which library: verbs::Library::open()
  engine::Checksums checksums = engine::Checksums::carried;
  /// Of this rank (base::now_ns()); all take the earliest of any.
  uint64_t deadline_ns = 0;
  /// Whether the speed of cables is measured; all ranks must say the same. Off: what their devices say.
  bool is_measured = true;
  /// Which devices lead where, as a JACCL device file says; empty: it is found out.
  bringup::DeviceMatrix matrix = {};
};

/// A cable of the fabric, in words and numbers that all ranks share.
struct CableWords {
  uint32_t a = 0;
  uint32_t b = 0;
  std::string device_a;
  std::string device_b;
  uint32_t rate_mbps = 0;  ///< 0: unknown
  std::string how;         ///< how it was found

  /// "cable 0-1 (rdma_en2 to rdma_en3)".
  std::string text() const;
};

/// What bring-up makes. `station` is null in a mesh of one rank.
struct BroughtUp {
  uint32_t session = 0;  ///< of all ranks the same, and by all likelihood of no other group; 0 in a mesh of one rank
  std::shared_ptr<engine::Station> station;
  std::vector<CableWords> cables;      ///< of the fabric, in the order of EnginePlan::fabric
  fabric::Graph graph;                 ///< of all ranks; capacities in units of the slowest cable
  fabric::CostModel model;             ///< what schedules are chosen by
  std::vector<LinkFigures> links;      ///< what was measured, if anything was
  uint32_t n_measured_links = 0;       ///< that the model is of; 0: it is nominal
  std::vector<std::string> unmatched;  ///< ports without a cable, and why
};

/// Finds the cables between the ranks and connects them: settings are compared, ports looked at, cards
/// exchanged, cables matched by identity (by trying where addresses don't tell), queue pairs made, connected, all ranks
/// wait for all, and for some milliseconds cables are measured, all at the same time (measuring_stage.h).
/// Blocks until the earliest deadline of any rank at most: a call of the driver that does not return is left behind a
/// second before that, in a thread of its own (verbs/errand.h). Throws JoinError, on all ranks, saying which rank,
/// device and step failed and what to do.
BroughtUp bring_up(bootstrap::SideChannel& side_channel, const BringUpPlan& plan);

}  // namespace ringbolt::mesh
