#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>

namespace ringbolt::sanitizer {

/// Ranges of addresses, each of something that a number names; they may overlap. Not thread-safe.
/// Each by its first byte and its number: one number may have several, at different addresses.
class Spans {
 public:
  /// Nothing is added for an empty range.
  void add(uint64_t first, uint64_t length, uint32_t number) {
    if (length != 0) {
      uint64_t& known = spans_[Key{first, number}];
      known = std::max(known, length);
      longest_ = std::max(longest_, length);
    }
  }
  bool is_empty() const { return spans_.empty(); }
  void remove(uint64_t first, uint32_t number) { spans_.erase(Key{first, number}); }

  /// The first for which `is_wanted(number)`, of those that overlap the range; nothing: there is none.
  /// A range that ends beyond 2^64 is seen up to there.
  template <class IsWanted>
  std::optional<uint32_t> overlap(uint64_t first, uint64_t length, IsWanted&& is_wanted) const {
    if (length == 0 || spans_.empty()) {
      return std::nullopt;
    }
    const uint64_t lowest = first > longest_ ? first - longest_ : 0;
    for (auto at = spans_.lower_bound(Key{lowest, 0}); at != spans_.end(); ++at) {
      const auto& [begin, number] = at->first;
      if (begin >= first && begin - first >= length) {
        break;
      }
      if ((begin >= first || first - begin < at->second) && is_wanted(number)) {
        return number;
      }
    }
    return std::nullopt;
  }

 private:
  struct Key {
    uint64_t first;
    uint32_t number;
    friend auto operator<=>(const Key&, const Key&) = default;
  };
  std::map<Key, uint64_t> spans_;
  // Of all that ever were: bounds how far before a range one may begin that reaches into it.
  uint64_t longest_ = 0;
};

}  // namespace ringbolt::sanitizer
