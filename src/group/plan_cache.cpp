#include "group/plan_cache.h"

#include <algorithm>
#include <utility>

#include "collective/builder.h"
#include "collective/cost.h"

namespace ringbolt::group {

PlanCache::Plan* PlanCache::find(const PlanKey& key) {
  const auto known = std::find_if(plans_.rbegin(), plans_.rend(), [&](const auto& plan) { return plan->key == key; });
  if (known != plans_.rend()) {
    // To the end, as the latest. Plans stay where they are: pointers move, not what they lead to.
    std::rotate(known.base() - 1, known.base(), plans_.end());
    return plans_.back().get();
  }
  const collective::Limits limits;
  const collective::Problem problem = key.whole_problem();
  std::string name = key.algorithm;
  if (name.empty()) {
    name = collective::choose(problem, topology_, limits).front().name;
  } else {
    const auto names = collective::candidates(problem, topology_);
    if (std::find(names.begin(), names.end(), name) == names.end()) {
      return nullptr;
    }
  }
  auto plan = std::make_unique<Plan>();
  plan->key = key;
  plan->name = name;
  plan->program = std::make_shared<const collective::CompiledProgram>(
      collective::build_for(name, problem, topology_, limits, rank_));
  if (plans_.size() == kMostPlans) {
    plans_.erase(plans_.begin());
  }
  plans_.push_back(std::move(plan));
  return plans_.back().get();
}

bool PlanCache::knows(const PlanKey& key) const {
  return std::any_of(plans_.begin(), plans_.end(), [&](const auto& plan) { return plan->key == key; });
}

std::unique_ptr<collective::Execution> PlanCache::take(Plan& plan) {
  if (plan.idle.empty()) {
    return std::make_unique<collective::Execution>(plan.program);
  }
  auto execution = std::move(plan.idle.back());
  plan.idle.pop_back();
  return execution;
}

void PlanCache::give_back(std::unique_ptr<collective::Execution> execution) {
  for (const auto& plan : plans_) {
    if (&execution->compiled() == plan->program.get() && plan->idle.size() < kMostIdle) {
      plan->idle.push_back(std::move(execution));
      return;
    }
  }
}

}  // namespace ringbolt::group
