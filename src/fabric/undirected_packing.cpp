#include "fabric/packing.h"

#include <algorithm>
#include <map>
#include <vector>

#include "base/assert.h"

namespace ringbolt::fabric {
namespace {

constexpr uint32_t kNone = UINT32_MAX;

/// Forests that share pieces of cables. A new piece is taken in if, by moving others from forest to forest, all stay
/// without cycles: a shortest chain of such moves is found breadth first.
class Forests {
 public:
  Forests(uint32_t n_nodes, size_t n_forests)
      : beside_(n_forests, std::vector<std::vector<Step>>(n_nodes)), n_nodes_(n_nodes) {}

  /// Whether the piece between a and b found a place.
  bool take(uint32_t a, uint32_t b) {
    const auto piece = static_cast<uint32_t>(pieces_.size());
    pieces_.push_back({{a, b}, kNone});
    if (!make_room(piece)) {
      pieces_.pop_back();
      return false;
    }
    return true;
  }

  std::vector<Arc> arcs(size_t forest) const {
    std::vector<Arc> found;
    for (const Piece& piece : pieces_) {
      if (piece.forest == forest) {
        found.push_back(piece.ends);
      }
    }
    return found;
  }

 private:
  struct Piece {
    Arc ends;
    uint32_t forest;  ///< kNone: in none yet
  };
  struct Step {
    uint32_t to;
    uint32_t piece;
  };

  bool make_room(uint32_t piece) {
    std::vector<uint32_t> pushed_by(pieces_.size(), kNone);
    std::vector<uint32_t> queue{piece};
    // The chain ends where a piece has pushed itself.
    pushed_by[piece] = piece;
    std::vector<uint32_t> path;
    for (size_t next = 0; next < queue.size(); ++next) {
      const uint32_t one = queue[next];
      for (uint32_t turn = 0; turn < beside_.size(); ++turn) {
        // Each piece begins with another forest, so that all of them grow alike.
        const auto forest = static_cast<uint32_t>((piece + turn) % beside_.size());
        if (forest == pieces_[one].forest) {
          continue;
        }
        // It would close no circle there.
        if (!find_path(forest, pieces_[one].ends, path)) {
          move_chain(one, forest, pushed_by);
          return true;
        }
        // Taking out any of these would make room for it.
        for (const uint32_t other : path) {
          if (pushed_by[other] == kNone) {
            pushed_by[other] = one;
            queue.push_back(other);
          }
        }
      }
    }
    return false;
  }

  /// Puts `piece` into `forest`, what pushed it out into the place that it had, and so on.
  void move_chain(uint32_t piece, uint32_t forest, const std::vector<uint32_t>& pushed_by) {
    for (;;) {
      const uint32_t before = pieces_[piece].forest;
      if (before != kNone) {
        unlink(piece, before);
      }
      link(piece, forest);
      if (pushed_by[piece] == piece) {
        return;
      }
      forest = before;
      piece = pushed_by[piece];
    }
  }

  /// The pieces of the forest between the two ends; false if it does not join them.
  bool find_path(uint32_t forest, const Arc& ends, std::vector<uint32_t>& path) {
    path.clear();
    // A member, so that its memory is kept from call to call.
    came_by_.assign(n_nodes_, {kNone, kNone});
    came_by_[ends.from] = {ends.from, kNone};
    std::vector<uint32_t> stack{ends.from};
    while (!stack.empty() && came_by_[ends.to].to == kNone) {
      const uint32_t node = stack.back();
      stack.pop_back();
      for (const Step& step : beside_[forest][node]) {
        if (came_by_[step.to].to == kNone) {
          came_by_[step.to] = {node, step.piece};
          stack.push_back(step.to);
        }
      }
    }
    if (came_by_[ends.to].to == kNone) {
      return false;
    }
    for (uint32_t node = ends.to; node != ends.from; node = came_by_[node].to) {
      path.push_back(came_by_[node].piece);
    }
    return true;
  }

  void link(uint32_t piece, uint32_t forest) {
    const Arc& ends = pieces_[piece].ends;
    beside_[forest][ends.from].push_back({ends.to, piece});
    beside_[forest][ends.to].push_back({ends.from, piece});
    pieces_[piece].forest = forest;
  }

  void unlink(uint32_t piece, uint32_t forest) {
    const auto is_it = [piece](const Step& step) { return step.piece == piece; };
    std::erase_if(beside_[forest][pieces_[piece].ends.from], is_it);
    std::erase_if(beside_[forest][pieces_[piece].ends.to], is_it);
  }

  std::vector<std::vector<std::vector<Step>>> beside_;  ///< shape [n_forests][n_nodes][]
  std::vector<Piece> pieces_;
  std::vector<Step> came_by_;  ///< of find_path(): by node, the node before and the piece
  uint32_t n_nodes_;
};

}  // namespace

Packing pack_undirected(const Graph& graph, const Scaling& scaling) {
  const Graph pieces = in_pieces(graph, scaling.scale);
  Forests forests(graph.n_nodes, static_cast<size_t>(scaling.n_trees));
  const int64_t wanted = scaling.n_trees * (graph.n_nodes - 1);
  int64_t taken = 0;
  // Round by round one piece of every cable, so that no cable fills all forests first. A cable of which one found no
  // place has none for more of it: what the forests span only grows.
  std::vector<bool> is_done(pieces.cables.size());
  for (int64_t round = 0; round < scaling.n_trees && taken < wanted; ++round) {
    for (size_t index = 0; index < pieces.cables.size() && taken < wanted; ++index) {
      const Cable& cable = pieces.cables[index];
      is_done[index] = is_done[index] || round >= cable.capacity.numerator() || !forests.take(cable.a, cable.b);
      taken += is_done[index] ? 0 : 1;
    }
  }
  RINGBOLT_ASSERT(taken == wanted);  // Nash-Williams, Tutte
  // By their arcs in order: equal trees become one with a multiplicity.
  std::map<std::vector<Arc>, Tree> different;
  for (size_t index = 0; index < static_cast<size_t>(scaling.n_trees); ++index) {
    Tree tree = rooted_at_centre(graph.n_nodes, forests.arcs(index));
    std::vector<Arc> key = tree.arcs;
    std::ranges::sort(key);
    const auto [place, is_new] = different.try_emplace(std::move(key), std::move(tree));
    place->second.multiplicity += is_new ? 0 : 1;
  }
  Packing packing{scaling.scale};
  for (auto& [key, tree] : different) {
    packing.trees.push_back(std::move(tree));
  }
  return packing;
}

}  // namespace ringbolt::fabric
