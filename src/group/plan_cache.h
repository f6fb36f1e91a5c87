#pragma once

#include <memory>
#include <string>
#include <vector>

#include "collective/executor.h"
#include "collective/problem.h"
#include "collective/topology.h"
#include "group/call.h"

namespace ringbolt::group {

/// The programs of calls that have been made, and executions ready to be used again: a call of a known shape allocates
/// nothing. Keeps the latest shapes. Not thread-safe.
class PlanCache {
 public:
  PlanCache(const collective::Topology& topology, uint32_t rank) : topology_(topology), rank_(rank) {}

  struct Plan {
    collective::Problem problem;
    std::string asked;  ///< algorithm; empty: the fastest
    std::string name;   ///< the one that was taken
    std::shared_ptr<const collective::CompiledProgram> program;
    CallShape shape = {};  ///< of the latest call; its signature is 0 before the first one
    uint32_t signature = 0;
    std::vector<std::unique_ptr<collective::Execution>> idle;
  };
  /// The plan of that problem; null if no algorithm of that name does it. Lives until the next find().
  Plan* find(const collective::Problem& problem, const std::string& algorithm);

  std::unique_ptr<collective::Execution> take(Plan& plan);
  /// Keeps an execution for the next call of its plan.
  void give_back(std::unique_ptr<collective::Execution> execution);

 private:
  static constexpr size_t kMostPlans = 64;
  static constexpr size_t kMostIdle = 8;
  const collective::Topology& topology_;
  uint32_t rank_;
  std::vector<std::unique_ptr<Plan>> plans_;  // latest last
};

}  // namespace ringbolt::group
