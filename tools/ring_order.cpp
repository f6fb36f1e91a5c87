#include "ring_order.h"

#include <algorithm>
#include <functional>
#include <set>

namespace ringbolt::tools {
namespace {

using Neighbours = std::vector<std::vector<uint32_t>>;

/// A cycle through all nodes from node 0 on, by trying: from each node first to those with the fewest ways on.
class CycleSearch {
 public:
  explicit CycleSearch(const Neighbours& neighbours)
      : neighbours_(neighbours), is_used_(neighbours.size(), false), path_{0} {
    is_used_[0] = true;
  }

  bool find() {
    const bool is_hopeless = std::ranges::any_of(neighbours_, [](const auto& some) { return some.size() < 2; });
    return !is_hopeless && extend();
  }
  bool has_given_up() const { return n_steps_ > kMostSteps; }
  const std::vector<uint32_t>& path() const { return path_; }

 private:
  static constexpr size_t kMostSteps = 200'000;  // well below a second

  size_t ways_on(uint32_t node) const {
    return static_cast<size_t>(
        std::ranges::count_if(neighbours_[node], [&](uint32_t next) { return !is_used_[next]; }));
  }

  bool extend() {
    const std::vector<uint32_t>& around = neighbours_[path_.back()];
    if (path_.size() == neighbours_.size()) {
      return std::ranges::find(around, 0U) != around.end();
    }
    std::vector<uint32_t> next;
    std::ranges::copy_if(around, std::back_inserter(next), [&](uint32_t node) { return !is_used_[node]; });
    std::ranges::stable_sort(next, {}, [&](uint32_t node) { return ways_on(node); });
    for (const uint32_t node : next) {
      if (++n_steps_ > kMostSteps) {
        return false;
      }
      is_used_[node] = true;
      path_.push_back(node);
      if (extend()) {
        return true;
      }
      path_.pop_back();
      is_used_[node] = false;
    }
    return false;
  }

  const Neighbours& neighbours_;
  std::vector<bool> is_used_;
  std::vector<uint32_t> path_;
  size_t n_steps_ = 0;
};

RingOrder order_of(const bootstrap::JacclDevices& devices, const std::function<bool(size_t)>& is_wanted) {
  Neighbours neighbours(devices.cells.size());
  for (size_t rank = 0; rank < neighbours.size(); ++rank) {
    for (uint32_t other = 0; other < neighbours.size(); ++other) {
      if (is_wanted(devices.cells[rank][other].size())) {
        neighbours[rank].push_back(other);
      }
    }
  }
  CycleSearch search(neighbours);
  RingOrder order;
  if (search.find()) {
    order.ranks = search.path();
  }
  order.is_certain = !search.has_given_up();
  return order;
}

}  // namespace

RingOrder ring_order(const bootstrap::JacclDevices& devices) {
  std::set<size_t, std::greater<>> rails;
  for (const auto& row : devices.cells) {
    for (const auto& cell : row) {
      rails.insert(cell.size());
    }
  }
  rails.erase(0);
  for (const size_t n_rails : rails) {
    RingOrder order = order_of(devices, [&](size_t count) { return count == n_rails; });
    if (!order.ranks.empty()) {
      order.n_rails = n_rails;
      order.is_even = true;
      return order;
    }
  }
  RingOrder order = order_of(devices, [](size_t count) { return count > 0; });
  for (size_t i = 0; i < order.ranks.size(); ++i) {
    const size_t count = devices.cells[order.ranks[i]][order.ranks[(i + 1) % order.ranks.size()]].size();
    order.n_rails = i == 0 ? count : std::min(order.n_rails, count);
  }
  return order;
}

}  // namespace ringbolt::tools
