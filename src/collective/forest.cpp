#include "collective/forest.h"

#include <algorithm>

#include "base/assert.h"

namespace ringbolt::collective {
namespace {

constexpr uint32_t kNoParent = Topology::kNoParent;

class ForestBuilder {
 public:
  ForestBuilder(const Assignment& assignment, TreeUse use, SumOrder order)
      : assignment_(assignment), use_(use), order_(order), n_sent_(assignment.n_ranks()), n_got_(n_sent_) {}

  void add(const TreePart& tree) {
    parent_ = tree.parents[assignment_.rank];
    children_.clear();
    for (uint32_t rank = 0; rank < assignment_.n_ranks(); ++rank) {
      if (tree.parents[rank] == assignment_.rank) {
        children_.push_back(rank);
      }
    }
    if (use_ != TreeUse::down) {
      add_up(tree);
    }
    if (use_ == TreeUse::down || (use_ == TreeUse::up_and_down && parent_ != kNoParent)) {
      add_down(tree);
    }
  }
  Program take() { return std::move(program_); }

 private:
  void add_up(const TreePart& tree) {
    const uint64_t offset = tree.piece.offset;
    Step step = Assignment::step(tree.piece, tree.chunk_bytes);
    bool has_own = false;
    const auto add_own = [&] {
      step.sources.push_back(from_local(Buffer::input, offset));
      has_own = true;
    };
    if (order_ == SumOrder::own_first) {
      add_own();
    }
    for (const uint32_t child : children_) {
      if (!has_own && child > assignment_.rank) {
        add_own();
      }
      step.sources.push_back(from_transfer(child, n_got_[child]++));
    }
    if (!has_own) {
      add_own();
    }
    if (parent_ != kNoParent) {
      step.targets.push_back(assignment_.send_to(parent_, n_sent_[parent_]++));
    } else {
      step.finishes = reduces(assignment_.problem.operation);
      step.targets.push_back(to_local(Buffer::output, use_ == TreeUse::up ? tree.root_offset : offset));
      if (use_ == TreeUse::up_and_down) {
        send_to_children(step);
      }
    }
    add_step(program_, std::move(step));
  }

  void add_down(const TreePart& tree) {
    Step step = Assignment::step(tree.piece, tree.chunk_bytes);
    step.sources.push_back(parent_ == kNoParent ? from_local(Buffer::input, tree.root_offset)
                                                : from_transfer(parent_, n_got_[parent_]++));
    step.targets.push_back(to_local(Buffer::output, tree.piece.offset));
    send_to_children(step);
    add_step(program_, std::move(step));
  }

  void send_to_children(Step& step) {
    for (const uint32_t child : children_) {
      step.targets.push_back(assignment_.send_to(child, n_sent_[child]++));
    }
  }

  const Assignment& assignment_;
  const TreeUse use_;
  const SumOrder order_;
  std::vector<uint32_t> n_sent_;  // transfers to every rank so far
  std::vector<uint32_t> n_got_;   // and from it
  uint32_t parent_ = kNoParent;
  std::vector<uint32_t> children_;
  Program program_;
};

}  // namespace

Program build_forest(const Assignment& assignment, const std::vector<TreePart>& trees, TreeUse use, SumOrder order) {
  ForestBuilder builder(assignment, use, order);
  for (const TreePart& tree : trees) {
    builder.add(tree);
  }
  return builder.take();
}

TreeUse use_of_trees(Operation operation) {
  switch (operation) {
    case Operation::reduce:
    case Operation::reduce_scatter:
      return TreeUse::up;
    case Operation::broadcast:
    case Operation::all_gather:
      return TreeUse::down;
    default:
      return TreeUse::up_and_down;
  }
}

uint32_t levels_of(const Topology& topology, const TreePart& tree) {
  std::vector<uint32_t> levels(tree.parents.size(), UINT32_MAX);
  levels[tree.root] = 0;
  uint32_t most = 0;
  std::vector<uint32_t> chain;
  for (uint32_t rank = 0; rank < levels.size(); ++rank) {
    for (uint32_t node = rank; levels[node] == UINT32_MAX; node = tree.parents[node]) {
      RINGBOLT_ASSERT(tree.parents[node] != kNoParent && chain.size() < levels.size());
      chain.push_back(node);
    }
    for (; !chain.empty(); chain.pop_back()) {
      const uint32_t parent = tree.parents[chain.back()];
      levels[chain.back()] = levels[parent] + topology.hops(chain.back(), parent);
      most = std::max(most, levels[chain.back()]);
    }
  }
  return most;
}

std::vector<uint32_t> parents_of(const fabric::Tree& tree) {
  std::vector<uint32_t> parents(tree.arcs.size() + 1, kNoParent);
  for (const fabric::Arc& arc : tree.arcs) {
    parents[arc.to] = arc.from;
  }
  return parents;
}

std::vector<TreePart> without_idle_trees(std::vector<TreePart> trees) {
  std::vector<TreePart> kept;
  for (TreePart& tree : trees) {
    if (tree.piece.bytes > 0 || std::ranges::find(kept, tree.root, &TreePart::root) == kept.end()) {
      kept.push_back(std::move(tree));
    }
  }
  return kept;
}

}  // namespace ringbolt::collective
