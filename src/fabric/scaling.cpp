#include "fabric/scaling.h"

#include <algorithm>
#include <numeric>

#include "base/assert.h"
#include "fabric/flow.h"

namespace ringbolt::fabric {
namespace {

/// How many trees fit at that scale.
int64_t trees_at(const Graph& graph, const std::function<Fraction(const Graph&)>& rate_of, const Fraction& scale) {
  const Graph pieces = in_pieces(graph, scale);
  // Thin cables may have become none.
  return distances(pieces).is_connected ? rate_of(pieces).floor() : 0;
}

}  // namespace

Scaling exact_scaling(const Graph& graph, const Fraction& rate) {
  const Graph merged = merge_rails(graph);
  const int64_t common = least_common_multiple(common_denominator(merged), rate.denominator());
  int64_t divisor = scaled(rate, common);
  for (const Cable& cable : merged.cables) {
    // The greatest by which all stay whole: fewer pieces, and so fewer trees for the same rate.
    divisor = std::gcd(divisor, scaled(cable.capacity, common));
  }
  const Fraction scale(common, divisor);
  return {scale, (rate * scale).numerator()};
}

Graph in_pieces(const Graph& graph, const Fraction& scale) {
  Graph pieces{graph.n_nodes};
  for (const Cable& cable : merge_rails(graph).cables) {
    if (const int64_t n_pieces = (cable.capacity * scale).floor(); n_pieces > 0) {
      pieces.cables.push_back({cable.a, cable.b, n_pieces});
    }
  }
  return pieces;
}

Scaling few_trees_scaling(const Graph& graph, const std::function<Fraction(const Graph&)>& rate_of,
                          int64_t most_trees) {
  RINGBOLT_ASSERT(most_trees >= 1);
  const Fraction rate = rate_of(graph);
  const Scaling exact = exact_scaling(graph, rate);
  if (exact.n_trees <= most_trees) {
    return exact;
  }
  Scaling best;
  const auto consider = [&](const Fraction& scale) {
    const int64_t n_trees = std::min(most_trees, trees_at(graph, rate_of, scale));
    if (n_trees > 0 && Fraction(n_trees) / scale > best.rate()) {
      best = {scale, n_trees};
    }
  };
  // Whole scales waste nothing of cables of rate 1; scales that would make the rate whole waste nothing of it. Beyond
  // twice the number of trees more pieces gain nothing.
  for (int64_t scale = 1; scale <= most_trees && rate * Fraction(scale) <= Fraction(2 * most_trees); ++scale) {
    consider(scale);
  }
  for (int64_t n_trees = 1; n_trees <= most_trees; ++n_trees) {
    consider(Fraction(n_trees) / rate);
  }
  return best;
}

Scaling coarse_scaling(const Graph& graph, const std::function<Fraction(const Graph&)>& rate_of, int64_t most_trees) {
  Scaling best;
  for (const int64_t scale : {1, 2}) {
    const int64_t n_trees = trees_at(graph, rate_of, scale);
    if (n_trees > 0 && n_trees <= most_trees && Fraction(n_trees) / Fraction(scale) > best.rate()) {
      best = {scale, n_trees};
    }
  }
  return best;
}

}  // namespace ringbolt::fabric
