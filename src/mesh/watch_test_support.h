#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/loop_fabric_test_support.h"
#include "mesh/mender.h"
#include "mesh/watch.h"
#include "mesh/word.h"

// Of tests alone: what ranks of one thread have brought up, over the device.
namespace ringbolt::mesh::test {

inline const fabric::Graph kRing{3, {{0, 1}, {1, 2}, {0, 2}}};
inline const fabric::Graph kLine{3, {{0, 1}, {1, 2}}};

inline std::vector<engine::FabricCable> fabric_of(const fabric::Graph& graph) {
  std::vector<engine::FabricCable> cables;
  for (const fabric::Cable& cable : graph.cables) {
    cables.push_back({cable.a, cable.b});
  }
  return cables;
}

/// Not owned: the fabric's, which outlives it.
inline std::shared_ptr<engine::Station> station_of(engine::test::LoopFabric& fabric, uint32_t rank) {
  return {std::shared_ptr<void>(), fabric.stations[rank].get()};
}

inline BroughtUp brought_up(engine::test::LoopFabric& fabric, uint32_t rank, const fabric::Graph& graph) {
  BroughtUp made;
  made.station = station_of(fabric, rank);
  made.graph = graph;
  for (const fabric::Cable& cable : graph.cables) {
    made.cables.push_back({cable.a, cable.b, "rdma_a", "rdma_b", 0, "test"});
  }
  return made;
}

/// The local number, at one rank, of a cable of the fabric.
inline uint32_t local_cable(const engine::Station& station, uint32_t fabric_cable) {
  uint32_t cable = 0;
  while (station.fabric_cable(cable) != fabric_cable) {
    ++cable;
  }
  return cable;
}

}  // namespace ringbolt::mesh::test
