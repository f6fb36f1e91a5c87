#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/chunk_header.h"

namespace ringbolt::engine {

/// A cable of the fabric between two ranks, by its place in the plan that all ranks share.
struct FabricCable {
  uint32_t a = 0;
  uint32_t b = 0;
  friend bool operator==(const FabricCable&, const FabricCable&) = default;
};

/// Which ways lead from this rank to the others over cables that are up. Pure. Not thread-safe.
/// Part of an engine. Ranks and cables are numbers of the plan, and must be in it.
class Paths {
 public:
  Paths(uint32_t rank, uint32_t n_ranks, std::vector<FabricCable> cables);

  /// True if that changed anything.
  /// Looks for all paths anew. Throws std::bad_alloc.
  bool set_up(uint32_t cable, bool is_up);
  bool is_up(uint32_t cable) const { return is_up_[cable]; }
  const std::vector<FabricCable>& cables() const { return cables_; }

  /// Whether a cable that is up joins the two.
  bool is_joined(uint32_t a, uint32_t b) const { return n_up_[a * n_ranks_ + b] > 0; }
  /// Whether `via` leads to `destination` over cables that are up.
  bool is_open(std::span<const uint8_t> via, uint32_t destination) const;
  bool is_reachable(uint32_t destination) const { return is_reachable_[destination]; }
  /// Whether all ranks that can be reached now still could be without that cable.
  bool can_spare(uint32_t cable) const;
  /// The ranks between this one and a reachable destination on a shortest path; of equal ones through the lowest ranks.
  /// Longer than kMostVia only if no chunk can go so far: then the destination counts as unreachable.
  const std::vector<uint8_t>& via(uint32_t destination) const { return via_[destination]; }

 private:
  void find();

  uint32_t rank_;
  uint32_t n_ranks_;
  std::vector<FabricCable> cables_;
  std::vector<bool> is_up_;
  std::vector<uint32_t> n_up_;  // [a * n + b]
  std::vector<bool> is_reachable_;
  std::vector<std::vector<uint8_t>> via_;
};

}  // namespace ringbolt::engine
