#pragma once

#include <cstdint>
#include <vector>

#include "collective/topology.h"

namespace ringbolt::collective {

/// Adds up for how long each direction between two neighbours sends. Not thread-safe.
class Loads {
 public:
  /// `topology` must outlive it.
  explicit Loads(const Topology& topology) : topology_(topology), us_(topology.n_links()) {}

  /// Over a path, by default the first of the shortest.
  void add(uint32_t from, uint32_t to, double bytes) { add(from, topology_.path(from, to), to, bytes); }
  void add(uint32_t from, const std::vector<uint32_t>& via, uint32_t to, double bytes) {
    relayed_bytes_ += bytes * static_cast<double>(via.size());
    uint32_t node = from;
    for (const uint32_t next : via) {
      add_hop(node, next, bytes);
      node = next;
    }
    add_hop(node, to, bytes);
  }
  /// The two are neighbours.
  void add_hop(uint32_t from, uint32_t to, double bytes) {
    const uint32_t link = topology_.link(from, to);
    double& us = us_[link];
    us += bytes / topology_.rate_of_link(link);
    most_us_ = us > most_us_ ? us : most_us_;
  }
  /// Of the busiest.
  double most_us() const { return most_us_; }
  /// Of all ranks together.
  double relayed_bytes() const { return relayed_bytes_; }

 private:
  const Topology& topology_;
  std::vector<double> us_;  // by link
  double most_us_ = 0;
  double relayed_bytes_ = 0;
};

}  // namespace ringbolt::collective
