#include "link/peer_queue.h"

#include <unistd.h>

namespace ringbolt::link {

WakeQueue PeerQueue::nobody_{};  // zeroes: no mode, no generation

bool PeerQueue::ring() const {
  if (channel_ == nullptr) {
    return false;
  }
  const uint32_t own = name_.generation << kNotifyBits;
  uint32_t notify = queue_->notify.load(std::memory_order_relaxed);
  while ((notify & ~kNotifyMask) == own && is_armed(notify_of(notify))) {
    if (!queue_->notify.compare_exchange_weak(notify, own | static_cast<uint32_t>(Notify::rung),
                                              std::memory_order_seq_cst)) {
      continue;
    }
    // In this order: who takes a count off the descriptor looks there, and finds the queue. If its place went to
    // another queue by now, that one is looked at in vain.
    const uint32_t index = queue_->channel.load(std::memory_order_relaxed);
    const uint64_t bit = uint64_t{1} << (queue_->place.load(std::memory_order_relaxed) % 64);
    memory_->channels[index % kWakeChannels].rung.fetch_or(bit, std::memory_order_seq_cst);
    const uint64_t one = 1;
    [[maybe_unused]] const ssize_t written = write(channel_->get(), &one, sizeof one);
    break;
  }
  return true;
}

}  // namespace ringbolt::link
