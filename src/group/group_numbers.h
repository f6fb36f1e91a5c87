#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "group/word.h"

namespace ringbolt::group {

/// Which numbers of groups one rank has given away. Those of groups that are split off are given again once their group
/// has ended here and nothing that this rank has sent in it is under way: as all ranks of a new group say that of its
/// number, nothing of an earlier group of that number can come to any of them. Numbers of shrunk groups are chosen by
/// votes, and given once. A value. Pure. Not thread-safe.
class GroupNumbers {
 public:
  /// The first number for a split, and for a shrunk group, that none here has had.
  uint16_t next_split() const { return next_split_; }
  uint16_t next_shrunk() const { return next_shrunk_; }

  /// [number]: whether a split may take it. `is_under_way`: [group], with the bit of messages or without.
  /// [kFirstShrunkGroup]. `is_under_way` has 65536 entries.
  std::vector<bool> free_for_split(const std::vector<bool>& is_under_way) const;
  /// Keeps free ones for groups that are about to be made: false if one is given away already. `is_under_way`: as
  /// above.
  /// All of them or none. `numbers`: each once.
  bool reserve(std::span<const uint16_t> numbers, const std::vector<bool>& is_under_way);
  /// Those of them that have not been made never are, unless they are kept again.
  void unreserve(uint16_t number);
  /// Whether a group of that number can be made: it is kept, or none here has had it.
  bool may_make(uint16_t number) const;
  void make(uint16_t number);
  /// Its group is destroyed here.
  void end(uint16_t number);
  /// The number is not given again: others may still be told something of its group, in another way.
  void retire(uint16_t number) { is_retired_[number] = true; }
  /// Whether something may come of a group of that number which is not there: it has not been made yet.
  bool may_come(uint16_t number) const { return states_[number] <= State::kept; }

 private:
  // In this order: up to `kept` something may come of a group that is not there (may_come()).
  enum class State : uint8_t { fresh, kept, made, over };
  bool is_free(uint16_t number, const std::vector<bool>& is_under_way) const;

  std::vector<State> states_ = std::vector<State>(kMessageGroup);
  std::vector<bool> is_retired_ = std::vector<bool>(kMessageGroup);
  uint16_t next_split_ = 0;
  uint16_t next_shrunk_ = kFirstShrunkGroup;
};

}  // namespace ringbolt::group
