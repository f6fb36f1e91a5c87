#pragma once

#include <memory>
#include <string>
#include <vector>

#include "collective/executor.h"
#include "collective/problem.h"
#include "collective/topology.h"
#include "group/call.h"

namespace ringbolt::group {

/// What a plan is for. Most calls have shares of one size: to find their plan again, nothing needs to be allocated.
struct PlanKey {
  collective::Problem problem;  ///< with its shares, unless they are equal
  uint64_t n_equal_shares = 0;
  uint64_t equal_share_bytes = 0;
  std::string algorithm = {};  ///< empty: the fastest
  friend bool operator==(const PlanKey&, const PlanKey&) = default;

  /// With its shares.
  collective::Problem whole_problem() const {
    collective::Problem whole = problem;
    whole.shares.insert(whole.shares.end(), n_equal_shares, equal_share_bytes);
    return whole;
  }
};

/// The programs of calls that have been made, and executions ready to be used again: a call of a known shape allocates
/// nothing. Keeps the latest shapes. Not thread-safe.
/// `topology` must outlive it.
class PlanCache {
 public:
  PlanCache(const collective::Topology& topology, uint32_t rank) : topology_(topology), rank_(rank) {}

  struct Plan {
    PlanKey key;
    std::string name;  ///< of the algorithm that was taken
    std::shared_ptr<const collective::CompiledProgram> program;
    CallShape shape = {};  ///< of the latest call; its signature is 0 before the first one
    uint32_t signature = 0;
    std::vector<std::unique_ptr<collective::Execution>> idle;
  };
  /// The plan for that; null if no algorithm of that name does it. Lives until the next find().
  /// Makes it if there is none, which may take milliseconds, and drops the one that was not used for longest.
  Plan* find(const PlanKey& key);
  /// What find() has found last.
  /// Only after a find() that has found something.
  const Plan& latest() const { return *plans_.back(); }
  bool knows(const PlanKey& key) const;

  /// The caller's until give_back().
  std::unique_ptr<collective::Execution> take(Plan& plan);
  /// Keeps an execution for the next call of its plan.
  /// Destroys it if its plan is gone or has enough of them.
  void give_back(std::unique_ptr<collective::Execution> execution);

 private:
  static constexpr size_t kMostPlans = 64;
  static constexpr size_t kMostIdle = 8;
  const collective::Topology& topology_;
  uint32_t rank_;
  std::vector<std::unique_ptr<Plan>> plans_;  // latest last
};

}  // namespace ringbolt::group
