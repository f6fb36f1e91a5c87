#include "link/wake_table.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/lock_guard.h"

namespace ringbolt::link {

base::Result<int> WakeTable::create() {
  auto segment = SharedSegment::create("ringbolt-wakes", kWakeBytes);
  if (!segment) {
    return base::fail(segment.error().value);
  }
  segment_ = std::move(*segment);
  return segment_.descriptor();
}

/// Throws std::bad_alloc, and nothing has changed.
bool WakeTable::Places::take(uint32_t& place) {
  if (!free_.empty()) {
    place = free_.back();
    free_.pop_back();
    return true;
  }
  if (never_used_ == count_) {
    return false;
  }
  if (free_.capacity() <= never_used_) {
    free_.reserve(std::max<size_t>(16, 2 * free_.capacity()));
  }
  place = never_used_++;
  return true;
}

void WakeTable::Places::give_back(uint32_t place) { free_.push_back(place); }

base::Result<WakeName> WakeTable::add_queue(uint32_t channel, uint32_t place) {
  const base::LockGuard guard(lock_);
  uint32_t index = 0;
  if (!queues_.take(index)) {
    return base::fail(ENOMEM);
  }
  WakeQueue& queue = this->queue(index);
  // Who knows the queue of before by its generation finds another one from here on.
  uint32_t generation =
      ((queue.notify.load(std::memory_order_relaxed) >> kNotifyBits) + 1) & (UINT32_MAX >> kNotifyBits);
  generation = std::max(generation, 1U);
  // Released by the last store, which names the generation: who has heard of that by an offer finds all of them.
  queue.channel.store(channel, std::memory_order_relaxed);
  queue.place.store(place, std::memory_order_relaxed);
  queue.busy.store(0, std::memory_order_relaxed);
  queue.mode.store(0, std::memory_order_relaxed);
  queue.notify.store(generation << kNotifyBits, std::memory_order_seq_cst);
  return WakeName{index, generation};
}

void WakeTable::remove_queue(WakeName name) {
  if (is_abandoned_.load(std::memory_order_relaxed)) {
    return;
  }
  const base::LockGuard guard(lock_);
  WakeQueue& queue = this->queue(name.index);
  queue.notify.store(name.generation << kNotifyBits, std::memory_order_seq_cst);
  queues_.give_back(name.index);
}

uint32_t WakeTable::add_channel() {
  const base::LockGuard guard(lock_);
  uint32_t index = kNoWakeChannel;
  if (channels_.take(index)) {
    channel(index).rung.store(0, std::memory_order_relaxed);
  }
  return index;
}

void WakeTable::remove_channel(uint32_t index) {
  if (index != kNoWakeChannel && !is_abandoned_.load(std::memory_order_relaxed)) {
    const base::LockGuard guard(lock_);
    channels_.give_back(index);
  }
}

bool WakeTable::add_set(uint32_t& index) {
  const base::LockGuard guard(lock_);
  return sets_.take(index);
}

void WakeTable::remove_set(uint32_t index) {
  if (is_abandoned_.load(std::memory_order_relaxed)) {
    return;
  }
  const base::LockGuard guard(lock_);
  sets_.give_back(index);
}

}  // namespace ringbolt::link
