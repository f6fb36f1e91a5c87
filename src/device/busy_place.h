#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <utility>

#include "link/wake_table.h"

namespace ringbolt::device {

/// The place of the one queue pair, of a completion queue's many, that has something again and again. Each poll looks
/// at it, and peers are told to leave out its marks, which would be two cache lines more that go back and forth for
/// each message. It is one, for each is a look more in every poll that finds nothing. When it has had nothing for long
/// it is struck, and found by marks again. Under the lock of the queue.
class BusyPlace {
 public:
  explicit BusyPlace(link::WakeQueue& shown) : shown_(shown) {}

  const std::optional<uint32_t>& get() const { return place_; }
  /// It had something.
  void note_use() { is_used_ = true; }

  /// A poll has found this one alone by its mark. The second time in a row makes it the busy one, if there is none.
  /// True: it is.
  bool note_found(uint32_t place) {
    const bool is_second = std::exchange(last_found_, place) == place;
    if (!place_ && is_second) {
      place_ = place;
      is_used_ = true;
      shown_.busy.store(place + 1, std::memory_order_relaxed);  // who does not see it marks in vain
    }
    return place_ == place;
  }
  /// With each poll. What is returned was struck from time to time, because it had nothing since the last time: it is
  /// to be looked at once more, for what came without a mark.
  std::optional<uint32_t> age() {
    if (++n_polls_ % kPollsBetweenLooks != 0 || std::exchange(is_used_, false)) [[likely]] {
      return std::nullopt;
    }
    return strike();
  }
  /// The same at once: it is to take its turn with those that are marked. Or its queue pair is gone.
  std::optional<uint32_t> strike() {
    const std::optional<uint32_t> struck = std::exchange(place_, std::nullopt);
    if (struck) {
      last_found_.reset();
      shown_.busy.store(0, std::memory_order_relaxed);
      std::atomic_thread_fence(std::memory_order_seq_cst);  // see PeerQueue::mark()
    }
    return struck;
  }

 private:
  // Of some 80 ns each, see PollBackoff: a queue pair that has something every 20 us stays.
  static constexpr uint32_t kPollsBetweenLooks = 256;

  link::WakeQueue& shown_;  // not read back: peers may write there
  std::optional<uint32_t> place_;
  std::optional<uint32_t> last_found_;  // by its mark
  bool is_used_ = false;
  uint32_t n_polls_ = 0;
};

}  // namespace ringbolt::device
