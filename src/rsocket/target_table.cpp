#include "rsocket/target_table.h"

#include <atomic>
#include <bit>
#include <cstring>

namespace ringbolt::rsocket {
namespace {

uint32_t swapped(uint32_t value) { return __builtin_bswap32(value); }
uint64_t swapped(uint64_t value) { return __builtin_bswap64(value); }

template <class T>
void put(std::byte* at, T value, bool swap) {
  const T written = swap ? swapped(value) : value;
  std::memcpy(at, &written, sizeof written);
}

/// Somebody else writes this memory: each word is read once.
template <class T>
T load(const std::byte* at) {
  // Relaxed: the completion of the peer's message came before, and the device orders its WRITEs before that; words of
  // an entry that a wrong peer writes meanwhile may not fit each other, which only harms that peer.
  return std::atomic_ref<T>(*reinterpret_cast<T*>(const_cast<std::byte*>(at))).load(std::memory_order_relaxed);
}

RemoteBlock load_block(const std::byte* at) {
  return {load<uint64_t>(at), load<uint32_t>(at + 8), load<uint32_t>(at + 12)};
}

}  // namespace

std::array<std::byte, kTargetBytes> emit_target(const RemoteBlock& block, bool swap) {
  std::array<std::byte, kTargetBytes> out{};
  put(out.data(), block.address, swap);
  put(out.data() + 8, block.key, swap);
  put(out.data() + 12, block.length, swap);
  return out;
}

std::array<std::byte, kIomapBytes> emit_iomap(uint64_t offset, const RemoteBlock& block, bool swap) {
  std::array<std::byte, kIomapBytes> out{};
  put(out.data(), offset, swap);
  const auto rest = emit_target(block, swap);
  std::memcpy(out.data() + 8, rest.data(), rest.size());
  return out;
}

void TargetTable::begin(const RemoteBlock& first) {
  next_ = 1;
  count_ = first.length == 0 ? 0 : 1;
  queue_[0] = first;
}

void TargetTable::take_written() {
  if (count_ == kTargets) {
    return;
  }
  std::byte* at = memory_.data() + next_ * kTargetBytes;
  const RemoteBlock written = load_block(at);
  if (written.length == 0) {
    return;
  }
  // The peer writes this entry again only when all of what it names now has been filled.
  std::memset(at, 0, kTargetBytes);
  queue_[count_++] = written;
  next_ = (next_ + 1) % kTargets;
}

void TargetTable::advance(uint32_t length) {
  queue_[0].address += length;
  queue_[0].length -= length;
  if (queue_[0].length == 0) {
    queue_[0] = queue_[1];
    --count_;
  }
}

std::optional<RemoteBlock> TargetTable::find(uint64_t offset) const {
  const std::byte* at = memory_.data() + kTargets * kTargetBytes;
  for (uint32_t i = 0; i < iomap_entries_; ++i, at += kIomapBytes) {
    const auto begin = load<uint64_t>(at);
    const RemoteBlock block = load_block(at + 8);
    if (offset >= begin && offset - begin < block.length) {
      const auto skip = static_cast<uint32_t>(offset - begin);
      // `offset - begin` is below a length of 32 bits.
      return RemoteBlock{block.address + skip, block.key, block.length - skip};
    }
  }
  return std::nullopt;
}

}  // namespace ringbolt::rsocket
