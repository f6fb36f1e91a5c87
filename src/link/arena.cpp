#include "link/arena.h"

#include <unistd.h>

#include <cerrno>

namespace ringbolt::link {

base::Result<OwnArenas::Made> OwnArenas::make(size_t length_bytes) {
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  const size_t rounded = (length_bytes + page - 1) / page * page;
  if (rounded < length_bytes || rounded == 0) {
    return base::fail(ENOMEM);
  }
  auto segment = SharedSegment::create("ringbolt-arena", rounded);
  if (!segment) {
    return base::fail(segment.error().value);
  }
  const std::scoped_lock guard(mutex_);
  // An id is not used twice: a peer may still hold the arena that had it.
  if (next_id_ >= kMaxArenas) {
    return base::fail(ENOMEM);
  }
  const Made made{segment->data(), next_id_++, rounded, segment->descriptor()};
  by_address_.emplace(reinterpret_cast<uint64_t>(made.data), Entry{made.arena_id, std::move(*segment)});
  return made;
}

bool OwnArenas::free(void* address) {
  const std::scoped_lock guard(mutex_);
  return by_address_.erase(reinterpret_cast<uint64_t>(address)) != 0;
}

std::optional<ArenaPlace> OwnArenas::find(uint64_t address, uint64_t length) const {
  const std::scoped_lock guard(mutex_);
  auto after = by_address_.upper_bound(address);
  if (after == by_address_.begin()) {
    return std::nullopt;
  }
  const auto& [first, entry] = *std::prev(after);
  const uint64_t offset = address - first;
  const uint64_t size = entry.segment.length_bytes();
  if (offset > size || length > size - offset) {
    return std::nullopt;
  }
  return ArenaPlace{entry.arena_id, offset};
}

std::vector<OwnArenas::Made> OwnArenas::all() const {
  const std::scoped_lock guard(mutex_);
  std::vector<Made> result;
  for (const auto& [first, entry] : by_address_) {
    result.push_back({entry.segment.data(), entry.arena_id, entry.segment.length_bytes(), entry.segment.descriptor()});
  }
  return result;
}

base::Result<int> PeerArenas::add(uint32_t arena_id, uint64_t length_bytes, const base::UniqueFd& memory) {
  if (arena_id == 0 || arena_id >= kMaxArenas || data_[arena_id].load(std::memory_order_relaxed) != nullptr) {
    return base::fail(EINVAL);
  }
  auto segment = SharedSegment::map(memory, length_bytes, true);
  if (!segment) {
    return base::fail(segment.error().value);
  }
  length_[arena_id].store(length_bytes, std::memory_order_relaxed);
  data_[arena_id].store(segment->data(), std::memory_order_release);
  mapped_.push_back(std::move(*segment));
  return 0;
}

}  // namespace ringbolt::link
