#include "engine/paths.h"

#include <utility>

#include "fabric/relaying.h"

namespace ringbolt::engine {

static_assert(fabric::kMostHopsOfGroup == kMostVia + 1, "ringbolt plan says which nodes can form a group");

Paths::Paths(uint32_t rank, uint32_t n_ranks, std::vector<FabricCable> cables)
    : rank_(rank),
      n_ranks_(n_ranks),
      cables_(std::move(cables)),
      is_up_(cables_.size(), true),
      n_up_(size_t{n_ranks} * n_ranks) {
  for (const FabricCable& cable : cables_) {
    ++n_up_[cable.a * n_ranks_ + cable.b];
    ++n_up_[cable.b * n_ranks_ + cable.a];
  }
  find();
}

bool Paths::set_up(uint32_t cable, bool is_up) {
  if (is_up_[cable] == is_up) {
    return false;
  }
  is_up_[cable] = is_up;
  const uint32_t change = is_up ? 1U : UINT32_MAX;
  n_up_[cables_[cable].a * n_ranks_ + cables_[cable].b] += change;
  n_up_[cables_[cable].b * n_ranks_ + cables_[cable].a] += change;
  find();
  return true;
}

bool Paths::is_open(std::span<const uint8_t> via, uint32_t destination) const {
  uint32_t at = rank_;
  for (const uint8_t next : via) {
    if (!is_joined(at, next)) {
      return false;
    }
    at = next;
  }
  return is_joined(at, destination);
}

bool Paths::can_spare(uint32_t cable) const {
  if (!is_up_[cable]) {
    return true;
  }
  Paths without = *this;
  without.set_up(cable, false);
  return without.is_reachable_ == is_reachable_;
}

void Paths::find() {
  is_reachable_.assign(n_ranks_, false);
  via_.assign(n_ranks_, {});
  is_reachable_[rank_] = true;
  std::vector<uint32_t> level = {rank_};
  for (uint32_t hops = 0; !level.empty() && hops <= kMostVia; ++hops) {
    std::vector<uint32_t> next_level;
    for (const uint32_t from : level) {
      for (uint32_t to = 0; to < n_ranks_; ++to) {
        if (is_reachable_[to] || !is_joined(from, to)) {
          continue;
        }
        is_reachable_[to] = true;
        via_[to] = via_[from];
        if (from != rank_) {
          via_[to].push_back(static_cast<uint8_t>(from));
        }
        next_level.push_back(to);
      }
    }
    level = std::move(next_level);
  }
}

}  // namespace ringbolt::engine
