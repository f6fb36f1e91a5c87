#include "check/rank_order.h"

#include <algorithm>
#include <charconv>
#include <numeric>
#include <string>
#include <utility>

#include "ranks/element.h"
#include "ranks/start.h"

namespace ringbolt::tools::check {
namespace {

std::optional<uint32_t> number_of(const bootstrap::Environment& environment, const char* name) {
  const auto found = environment.find(name);
  if (found == environment.end()) {
    return std::nullopt;
  }
  const std::string& text = found->second;
  uint32_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() ? std::optional(number) : std::nullopt;
}

}  // namespace

std::vector<uint32_t> rank_order(uint64_t seed, uint32_t n_nodes) {
  std::vector<uint32_t> ranks(n_nodes);
  std::iota(ranks.begin(), ranks.end(), 0U);
  // Fisher and Yates. Not std::shuffle: what that does with a seed, each library decides for itself.
  for (uint32_t i = n_nodes; i > 1; --i) {
    seed = mixed(seed);
    std::swap(ranks[i - 1], ranks[seed % i]);
  }
  return ranks;
}

std::optional<bootstrap::Environment> with_rank_order(bootstrap::Environment environment, uint64_t seed) {
  const auto node = number_of(environment, "RINGBOLT_NODE");
  const auto n_nodes = number_of(environment, "RINGBOLT_NODES");
  if (!node || !n_nodes || *node >= *n_nodes || environment.contains("RINGBOLT_RANK") ||
      environment.contains("RINGBOLT_COORDINATOR")) {
    return std::nullopt;
  }
  const std::vector<uint32_t> order = rank_order(seed, *n_nodes);
  const auto first = static_cast<uint32_t>(std::find(order.begin(), order.end(), 0U) - order.begin());
  ranks::take_rank(environment, order[*node], *n_nodes, first);
  return environment;
}

}  // namespace ringbolt::tools::check
