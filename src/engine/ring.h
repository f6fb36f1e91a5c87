#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace ringbolt::engine {

/// A queue whose memory grows to what it has held at once and stays: adding to it allocates nothing then, as a deque
/// does every few elements. Adding may move all that it holds. Not thread-safe.
template <class T>
/// References are good until the next one that is added. Throws std::bad_alloc only when it grows, and nothing has
/// changed.
class Ring {
 public:
  bool empty() const { return count_ == 0; }
  size_t size() const { return count_; }
  T& front() { return slots_[first_]; }
  const T& front() const { return slots_[first_]; }
  T& operator[](size_t i) { return slots_[(first_ + i) & mask_]; }
  const T& operator[](size_t i) const { return slots_[(first_ + i) & mask_]; }

  /// A new one, at the end.
  T& emplace_back() {
    T* const made = &append();
    std::destroy_at(made);
    return *std::construct_at(made);
  }
  /// Likewise; it holds what the one before it in its place held, until the caller sets all of it.
  T& append() {
    if (count_ == mask_ + 1) [[unlikely]] {
      grow();
    }
    return (*this)[count_++];
  }
  void pop_front() {
    first_ = (first_ + 1) & mask_;
    --count_;
  }
  void clear() { first_ = count_ = 0; }

  // In their order, for loops over all of them.
  template <class Owner>
  struct Iterator {
    Owner* ring;
    size_t i;
    auto& operator*() const { return (*ring)[i]; }
    Iterator& operator++() {
      ++i;
      return *this;
    }
    bool operator!=(const Iterator& other) const { return i != other.i; }
  };
  Iterator<Ring> begin() { return {this, 0}; }
  Iterator<Ring> end() { return {this, count_}; }
  Iterator<const Ring> begin() const { return {this, 0}; }
  Iterator<const Ring> end() const { return {this, count_}; }

 private:
  static constexpr size_t kLeast = 16;
  void grow() {
    std::vector<T> larger(slots_.empty() ? kLeast : 2 * slots_.size());
    for (size_t i = 0; i < count_; ++i) {
      larger[i] = std::move((*this)[i]);
    }
    slots_ = std::move(larger);
    mask_ = slots_.size() - 1;
    first_ = 0;
  }

  std::vector<T> slots_;    // a power of two, or none
  size_t mask_ = SIZE_MAX;  // its size less one
  size_t first_ = 0;
  size_t count_ = 0;
};

}  // namespace ringbolt::engine
