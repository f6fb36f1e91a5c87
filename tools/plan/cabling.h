#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cluster/model.h"
#include "commands.h"
#include "fabric/addresses.h"
#include "fabric/plan.h"

namespace ringbolt::tools::plan {

/// What is planned or judged: the plan, and the names that people use.
struct Cabling {
  std::string shape;      ///< "Petersen graph", or the path of a file
  std::string origin;     ///< a sentence
  bool is_given = false;  ///< by a file or topology
  bool is_best = false;   ///< chosen here, and not asked for by its shape
  fabric::Plan plan;
  cluster::Cluster model;  ///< nodes and ports as in the plan; its cables are in the plan's order
  uint32_t unit_gbps = 1;  ///< what a capacity of 1 stands for
  fabric::AddressPool pool;
  std::vector<std::string> oddities;  ///< of a file: what could not be taken into the plan

  uint32_t n_nodes() const { return plan.n_nodes; }
  const std::string& node_name(uint32_t node) const { return model.nodes[node].name; }
  std::string end_text(const fabric::PlannedEnd& end) const { return cluster::end_text(model, {end.node, end.port}); }
  uint32_t speed_gbps(const fabric::PlannedCable& cable) const;
};

/// Plans, or reads the file. Throws UsageError or base::Error.
Cabling wanted_cabling(const PlanOptions& options);

}  // namespace ringbolt::tools::plan
