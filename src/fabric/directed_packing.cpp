#include "fabric/packing.h"

#include <algorithm>
#include <vector>

#include "base/assert.h"
#include "fabric/flow.h"

namespace ringbolt::fabric {
namespace {

/// Equal trees that grow together: they reach the same nodes by the same arcs so far.
struct Growing {
  Tree tree;
  std::vector<bool> reaches;
  std::vector<uint32_t> order;  ///< of the nodes that it reaches; shallow ones first
};

/// Grows trees arc by arc. An arc is taken as often as all unfinished trees can still be finished without it.
class Forest {
 public:
  Forest(const Graph& pieces, const std::vector<uint32_t>& roots, int64_t n_trees)
      : n_nodes_(pieces.n_nodes), lists_(neighbours(pieces)), left_(n_nodes_, std::vector<int64_t>(n_nodes_)) {
    for (const Cable& cable : pieces.cables) {
      // in_pieces() has merged rails and made capacities whole.
      left_[cable.a][cable.b] = left_[cable.b][cable.a] = cable.capacity.numerator();
    }
    for (const uint32_t root : n_trees > 0 ? roots : std::vector<uint32_t>{}) {
      Growing one{{root, n_trees}, std::vector<bool>(n_nodes_), {root}};
      one.reaches[root] = true;
      unfinished_.push_back(std::move(one));
    }
  }

  std::vector<Tree> grow() {
    std::vector<Tree> finished;
    while (!unfinished_.empty()) {
      while (unfinished_.back().order.size() < n_nodes_) {
        add_arc();
      }
      finished.push_back(std::move(unfinished_.back().tree));
      unfinished_.pop_back();
    }
    std::ranges::reverse(finished);
    return finished;
  }

 private:
  /// One more arc for the last of the unfinished; splits it if not all of its trees can have that arc.
  void add_arc() {
    Growing& one = unfinished_.back();
    // Shallow nodes first, so that trees become broad rather than deep.
    for (const uint32_t from : one.order) {
      for (const uint32_t to : lists_[from]) {
        if (one.reaches[to] || left_[from][to] == 0) {
          continue;
        }
        // So often at once, as trees that are equal so far have no reason to differ.
        const int64_t most = std::min({left_[from][to], one.tree.multiplicity, spare(from, to)});
        if (most > 0) {
          take(from, to, most);
          return;
        }
      }
    }
    constexpr bool kSomeArcCanAlwaysBeTaken = false;  // Edmonds: else the scaling is not that of the graph
    RINGBOLT_ASSERT(kSomeArcCanAlwaysBeTaken);
  }

  void take(uint32_t from, uint32_t to, int64_t count) {
    left_[from][to] -= count;
    // The rest looks for another arc when its turn comes.
    if (Growing& one = unfinished_.back(); count < one.tree.multiplicity) {
      Growing rest = one;
      rest.tree.multiplicity -= count;
      one.tree.multiplicity = count;
      unfinished_.insert(unfinished_.end() - 1, std::move(rest));
    }
    Growing& one = unfinished_.back();
    one.tree.arcs.push_back({from, to});
    one.reaches[to] = true;
    one.order.push_back(to);
  }

  /// How often the arc can be spared: the least, over all sets with `to` and without `from`, of the pieces that lead in
  /// less the other trees that have not reached the set.
  int64_t spare(uint32_t from, uint32_t to) const {
    const auto n_others = static_cast<uint32_t>(unfinished_.size() - 1);
    FlowNetwork network(n_nodes_ + n_others);
    int64_t total = 0;
    for (uint32_t a = 0; a < n_nodes_; ++a) {
      for (const uint32_t b : lists_[a]) {
        if (left_[a][b] > 0) {
          network.add_arc(a, b, left_[a][b]);
        }
      }
    }
    for (uint32_t index = 0; index < n_others; ++index) {
      const Growing& other = unfinished_[index];
      // What the other trees need to reach `to`, as if it came from `from`.
      network.add_arc(from, n_nodes_ + index, other.tree.multiplicity);
      for (const uint32_t node : other.order) {
        network.add_arc(n_nodes_ + index, node, other.tree.multiplicity);  // as good as without limit
      }
      total += other.tree.multiplicity;
    }
    return network.max_flow(from, to) - total;
  }

  uint32_t n_nodes_;
  std::vector<std::vector<uint32_t>> lists_;
  std::vector<std::vector<int64_t>> left_;  ///< pieces of each direction; shape [n_nodes][n_nodes]
  std::vector<Growing> unfinished_;         ///< the last is worked on
};

}  // namespace

Packing pack_from_all(const Graph& graph, const Scaling& scaling) {
  std::vector<uint32_t> roots;
  for (uint32_t node = 0; node < graph.n_nodes; ++node) {
    roots.push_back(graph.n_nodes - 1 - node);  // the last is grown first
  }
  std::vector<Tree> trees = Forest(in_pieces(graph, scaling.scale), roots, scaling.n_trees).grow();
  std::ranges::stable_sort(trees, {}, &Tree::root);
  return {scaling.scale, std::move(trees)};
}

Packing pack_from_one(const Graph& graph, uint32_t root, const Scaling& scaling) {
  RINGBOLT_ASSERT(root < graph.n_nodes);
  return {scaling.scale, Forest(in_pieces(graph, scaling.scale), {root}, scaling.n_trees).grow()};
}

}  // namespace ringbolt::fabric
