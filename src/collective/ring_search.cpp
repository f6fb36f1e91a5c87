#include "collective/ring_search.h"

#include <algorithm>

namespace ringbolt::collective {
namespace {

constexpr uint32_t kMostNodes = 64;
// Bounds the time: Warnsdorff's order finds no way out of every corner.
constexpr uint32_t kMostTries = 20'000;

class Search {
 public:
  explicit Search(const std::vector<std::vector<uint32_t>>& neighbours)
      : neighbours_(neighbours), is_used_(neighbours.size()) {}

  bool extend(uint32_t node) {
    is_used_[node] = true;
    path_.push_back(node);
    if (path_.size() == neighbours_.size()) {
      if (std::ranges::binary_search(neighbours_[node], path_.front())) {
        return true;
      }
    } else if (++n_tries_ <= kMostTries) {
      for (const uint32_t next : narrowest_first(node)) {
        if (extend(next)) {
          return true;
        }
      }
    }
    is_used_[node] = false;
    path_.pop_back();
    return false;
  }
  std::vector<uint32_t> take() { return std::move(path_); }

 private:
  std::vector<uint32_t> narrowest_first(uint32_t node) const {
    const auto is_free = [&](uint32_t one) { return !is_used_[one]; };
    std::vector<uint32_t> next;
    std::ranges::copy_if(neighbours_[node], std::back_inserter(next), is_free);
    std::ranges::stable_sort(next, {}, [&](uint32_t one) { return std::ranges::count_if(neighbours_[one], is_free); });
    return next;
  }

  const std::vector<std::vector<uint32_t>>& neighbours_;
  std::vector<bool> is_used_;
  std::vector<uint32_t> path_;
  uint32_t n_tries_ = 0;
};

}  // namespace

std::optional<std::vector<uint32_t>> find_ring(const std::vector<std::vector<uint32_t>>& neighbours) {
  const auto n_nodes = static_cast<uint32_t>(neighbours.size());
  if (n_nodes < 3) {
    return std::nullopt;
  }
  std::vector<uint32_t> in_order;
  for (uint32_t node = 0; node < n_nodes; ++node) {
    if (std::ranges::binary_search(neighbours[node], (node + 1) % n_nodes)) {
      in_order.push_back(node);
    }
  }
  if (in_order.size() == n_nodes) {
    return in_order;
  }
  Search search(neighbours);
  if (n_nodes > kMostNodes || !search.extend(0)) {
    return std::nullopt;
  }
  return search.take();
}

}  // namespace ringbolt::collective
