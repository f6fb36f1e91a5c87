#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>

namespace ringbolt::fault {

/// Frames that are held back, each until so many others have gone first or until a time, whichever comes first. Frames
/// that are due at the same time come out in their order. Not thread-safe.
template <class Frame>
class Shelf {
 public:
  /// What a queue in a switch holds; a frame more is lost.
  static constexpr size_t kMaxFrames = 8192;

  bool is_full() const { return frames_.size() >= kMaxFrames; }
  bool is_empty() const { return frames_.empty(); }

  /// `overtakers` 0: only the time counts. Not when it is full. `due_ns` is of the clock that take() is asked with.
  /// With `overtakers` the frame goes when so many others have passed from now on, or at `due_ns`.
  void put(Frame frame, uint32_t overtakers, uint64_t due_ns) {
    const Key by_time{due_ns, next_number_++};
    const Key by_count{overtakers == 0 ? UINT64_MAX : passed_ + overtakers, by_time.second};
    if (overtakers != 0) {
      counted_.emplace(by_count, by_time);
    }
    frames_.emplace(by_time, Held{std::move(frame), by_count});
  }
  /// A frame went by that is not held back. For frames that were sent past the shelf; one that take() gives out must
  /// not be counted.
  void count_passing() { ++passed_; }
  /// The time has come for all that are here. For a change of rules: take() gives out one after the other, whatever
  /// what is put while they go goes too.
  void release_all() { is_released_ = !frames_.empty(); }

  /// The next one that is due; nothing if there is none. Frames whose overtakers have passed go before those whose
  /// time has come.
  std::optional<Frame> take(uint64_t now_ns) {
    if (!counted_.empty() && counted_.begin()->first.first <= passed_) {
      return take_at(frames_.find(counted_.begin()->second));
    }
    if (!frames_.empty() && (is_released_ || frames_.begin()->first.first <= now_ns)) {
      return take_at(frames_.begin());
    }
    is_released_ = is_released_ && !frames_.empty();
    return std::nullopt;
  }
  /// When take() has something at the latest; 0: now; UINT64_MAX: there is nothing.
  uint64_t next_due_ns() const {
    if (frames_.empty()) {
      return UINT64_MAX;
    }
    const bool is_now = is_released_ || (!counted_.empty() && counted_.begin()->first.first <= passed_);
    return is_now ? 0 : frames_.begin()->first.first;
  }

 private:
  using Key = std::pair<uint64_t, uint64_t>;  // what it waits for, and its number
  struct Held {
    Frame frame;
    Key by_count;
  };

  std::optional<Frame> take_at(typename std::map<Key, Held>::iterator at) {
    counted_.erase(at->second.by_count);
    std::optional<Frame> frame(std::move(at->second.frame));
    frames_.erase(at);
    return frame;
  }

  // Numbers make the keys unique and keep the order of equal times.
  std::map<Key, Held> frames_;  // by time
  std::map<Key, Key> counted_;  // those that wait for others, by how many must have passed
  uint64_t passed_ = 0;
  uint64_t next_number_ = 0;
  bool is_released_ = false;
};

}  // namespace ringbolt::fault
