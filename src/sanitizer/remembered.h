#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>

namespace ringbolt::sanitizer {

/// What is known of requests by their numbers for a while after they are gone: when there are too many, all are
/// forgotten, so memory is bounded and an answer may be missing. Not thread-safe.
/// 65536 by default: more than any queue has room for.
template <class Value, size_t kMost = size_t{1} << 16U>
class Remembered {
 public:
  void note(uint32_t number, const Value& value) {
    if (known_.size() >= kMost) {
      known_.clear();
    }
    known_[number] = value;
  }
  /// Value{}: nothing is known of it.
  Value of(uint32_t number) const {
    const auto known = known_.find(number);
    return known == known_.end() ? Value{} : known->second;
  }
  bool is_empty() const { return known_.empty(); }
  void clear() { known_.clear(); }

 private:
  std::unordered_map<uint32_t, Value> known_;
};

}  // namespace ringbolt::sanitizer
