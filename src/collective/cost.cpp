#include "collective/cost.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "collective/builder.h"
#include "collective/estimate.h"

namespace ringbolt::collective {

double predict_us(std::string_view name, const Problem& problem, const Topology& topology, const Limits& limits) {
  return time_us(topology.model(), estimate(name, problem, topology, limits));
}

std::vector<Choice> choose(const Problem& problem, const Topology& topology, const Limits& limits) {
  std::vector<Choice> choices;
  for (const std::string& name : candidates(problem, topology)) {
    const Estimate one = estimate(name, problem, topology, limits);
    std::string why =
        fmt::format("{:.0f} hops one after the other, {:.1f} us of the busiest cable", one.n_levels, one.busiest_us);
    if (one.relayed_bytes > 0) {
      why += fmt::format(", {:.0f} bytes relayed by each rank", one.relayed_bytes);
    }
    if (one.added_bytes > 0) {
      why += fmt::format(", {:.0f} bytes added up", one.added_bytes);
    }
    choices.push_back({name, time_us(topology.model(), one), std::move(why)});
  }
  std::ranges::stable_sort(choices, {}, &Choice::predicted_us);
  return choices;
}

}  // namespace ringbolt::collective
