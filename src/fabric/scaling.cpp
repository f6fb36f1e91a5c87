#include "fabric/scaling.h"

#include <algorithm>
#include <numeric>

#include "base/assert.h"
#include "fabric/bounds.h"
#include "fabric/flow.h"

namespace ringbolt::fabric {

Scaling exact_scaling(const Graph& graph, const Fraction& rate) {
  const Graph merged = merge_rails(graph);
  const int64_t common = least_common_multiple(common_denominator(merged), rate.denominator());
  int64_t divisor = scaled(rate, common);
  for (const Cable& cable : merged.cables) {
    divisor = std::gcd(divisor, scaled(cable.capacity, common));
  }
  // With the divisor the scale may be a fraction; the least whole one is what pieces need.
  const int64_t scale = common / std::gcd(common, divisor);
  return {scale, scaled(rate, scale)};
}

Graph in_pieces(const Graph& graph, int64_t scale) {
  Graph pieces{graph.n_nodes};
  for (const Cable& cable : merge_rails(graph).cables) {
    if (const int64_t n_pieces = (cable.capacity * Fraction(scale)).floor(); n_pieces > 0) {
      pieces.cables.push_back({cable.a, cable.b, n_pieces});
    }
  }
  return pieces;
}

Scaling tree_scaling(const Graph& graph, int64_t most_trees) {
  RINGBOLT_ASSERT(most_trees >= 1);
  const Fraction rate = tree_rate(graph);
  const Scaling exact = exact_scaling(graph, rate);
  if (exact.n_trees <= most_trees) {
    return exact;
  }
  Scaling best;
  // Beyond this scale even a loss of half would give too many trees.
  const int64_t most_scale = (Fraction(2 * most_trees) / rate).floor() + 1;
  constexpr int64_t kMostTried = 200;
  for (int64_t scale = 1; scale <= std::min(most_scale, kMostTried); ++scale) {
    const Graph pieces = in_pieces(graph, scale);
    if (!distances(pieces).is_connected) {
      continue;
    }
    const bool is_whole = std::ranges::all_of(
        graph.cables, [&](const Cable& cable) { return (cable.capacity * Fraction(scale)).is_whole(); });
    const int64_t n_trees = std::min(most_trees, (is_whole ? rate * Fraction(scale) : tree_rate(pieces)).floor());
    if (n_trees > 0 && Fraction(n_trees, scale) > best.rate()) {
      best = {scale, n_trees};
    }
  }
  return best;
}

}  // namespace ringbolt::fabric
