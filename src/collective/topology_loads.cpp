#include "collective/loads.h"
#include "collective/topology.h"
#include "collective/topology_lazy.h"

namespace ringbolt::collective {

/// Of many ranks: as if all cables carried the same.
double Topology::average_load_us() const {
  diameter();
  double rate = 0;
  for (const double one : rates_) {
    rate += one;
  }
  return static_cast<double>(lazy_->distances.sum) / rate;
}

double Topology::relays_of_pairs() const {
  diameter();
  return static_cast<double>(lazy_->distances.sum) / n_ranks() - (n_ranks() - 1);
}

double Topology::pair_load_us() const {
  std::call_once(lazy_->is_pair_load_known, [&] {
    Loads loads(*this);
    for (uint32_t pair = 0; n_ranks() <= kMostBalancedNodes && pair < n_ranks() * n_ranks(); ++pair) {
      if (pair / n_ranks() != pair % n_ranks()) {
        loads.add(pair / n_ranks(), pair % n_ranks(), 1);
      }
    }
    lazy_->pair_load_us = n_ranks() <= kMostBalancedNodes ? loads.most_us() : average_load_us();
  });
  return lazy_->pair_load_us;
}

void Topology::add_split(Loads& loads) const {
  for (uint32_t pair = 0; pair < n_ranks() * n_ranks(); ++pair) {
    const uint32_t from = pair / n_ranks();
    const uint32_t to = pair % n_ranks();
    for (uint32_t part = 0; from != to && part < kWays; ++part) {
      loads.add(from, way(from, to, part), to, 1.0 / kWays);
    }
  }
}

void Topology::add_flood(Loads& loads) const {
  for (uint32_t root = 0; root < n_ranks(); ++root) {
    const std::vector<uint32_t>& parents = parents_towards(root);
    for (uint32_t rank = 0; rank < n_ranks(); ++rank) {
      if (rank != root) {
        loads.add_hop(parents[rank], rank, 1);
      }
    }
  }
}

double Topology::split_load_us() const {
  std::call_once(lazy_->is_split_load_known, [&] {
    Loads loads(*this);
    if (n_ranks() <= kMostBalancedNodes) {
      add_split(loads);
    }
    lazy_->split_load_us = n_ranks() <= kMostBalancedNodes ? loads.most_us() : average_load_us();
  });
  return lazy_->split_load_us;
}

double Topology::flood_load_us() const {
  std::call_once(lazy_->is_flood_load_known, [&] {
    Loads loads(*this);
    add_flood(loads);
    lazy_->flood_load_us = loads.most_us();
  });
  return lazy_->flood_load_us;
}

double Topology::split_and_flood_load_us() const {
  std::call_once(lazy_->is_both_load_known, [&] {
    Loads loads(*this);
    add_flood(loads);
    if (n_ranks() <= kMostBalancedNodes) {
      add_split(loads);
    }
    lazy_->both_load_us = loads.most_us() + (n_ranks() <= kMostBalancedNodes ? 0 : average_load_us());
  });
  return lazy_->both_load_us;
}

}  // namespace ringbolt::collective
