#include "link/arena.h"

#include <unistd.h>

#include <cerrno>
#include <new>
#include <utility>

#include "base/lock_guard.h"

namespace ringbolt::link {

OwnArenas::OwnArenas() {
  for (uint32_t place = 0; place < kMaxArenas; ++place) {
    free_ids_[place] = next_arena_id(place);
  }
}

base::Result<OwnArenas::Made> OwnArenas::make(size_t length_bytes) try {
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  const size_t rounded = (length_bytes + page - 1) / page * page;
  if (rounded < length_bytes || rounded == 0) {
    return base::fail(ENOMEM);
  }
  auto segment = SharedSegment::create("ringbolt-arena", rounded);
  if (!segment) {
    return base::fail(segment.error().value);
  }
  Made made{0, std::make_shared<const SharedSegment>(std::move(*segment))};
  const base::LockGuard guard(mutex_);
  if (free_count_ == 0) {
    return base::fail(ENOMEM);
  }
  made.arena_id = free_ids_[first_free_];
  by_address_.emplace(reinterpret_cast<uint64_t>(made.segment->data()), arena_index(made.arena_id));
  first_free_ = (first_free_ + 1) % kMaxArenas;
  --free_count_;
  entries_[arena_index(made.arena_id)] = {made.arena_id, 1, false, made.segment};
  return made;
} catch (const std::bad_alloc&) {
  return base::fail(ENOMEM);
}

std::optional<ArenaPlace> OwnArenas::use(uint64_t address, uint64_t length) {
  const base::LockGuard guard(mutex_);
  const auto after = by_address_.upper_bound(address);
  if (after == by_address_.begin()) {
    return std::nullopt;
  }
  const auto& [first, place] = *std::prev(after);
  Entry& entry = entries_[place];
  const uint64_t offset = address - first;
  const uint64_t size = entry.segment->length_bytes();
  if (offset > size || length > size - offset) {
    return std::nullopt;
  }
  ++entry.users;
  return ArenaPlace{entry.id, offset};
}

/// The segment if nobody uses it any more: to be let go of without the lock.
std::shared_ptr<const SharedSegment> OwnArenas::take_user(Entry& entry) {
  if (--entry.users != 0) {
    return nullptr;
  }
  by_address_.erase(reinterpret_cast<uint64_t>(entry.segment->data()));
  entry.id = 0;
  return std::move(entry.segment);
}

bool OwnArenas::drop(uint32_t arena_id) {
  std::shared_ptr<const SharedSegment> unused;
  const base::LockGuard guard(mutex_);
  Entry& entry = entries_[arena_index(arena_id)];
  if (entry.id != arena_id || arena_id == 0) {
    return false;
  }
  unused = take_user(entry);
  return unused != nullptr;
}

std::optional<uint32_t> OwnArenas::free(const void* address) {
  std::shared_ptr<const SharedSegment> unused;
  const base::LockGuard guard(mutex_);
  const auto found = by_address_.find(reinterpret_cast<uint64_t>(address));
  if (found == by_address_.end() || entries_[found->second].is_freed) {
    return std::nullopt;
  }
  Entry& entry = entries_[found->second];
  const uint32_t id = entry.id;
  entry.is_freed = true;
  unused = take_user(entry);
  return unused != nullptr ? std::optional(id) : std::nullopt;
}

void OwnArenas::retire(uint32_t arena_id) {
  const base::LockGuard guard(mutex_);
  free_ids_[(first_free_ + free_count_++) % kMaxArenas] = next_arena_id(arena_id);
}

std::vector<OwnArenas::Made> OwnArenas::all() const {
  const base::LockGuard guard(mutex_);
  std::vector<Made> result;
  result.reserve(by_address_.size());
  for (const auto& [first, place] : by_address_) {
    result.push_back({entries_[place].id, entries_[place].segment});
  }
  return result;
}

int PeerArenas::add(uint32_t arena_id, uint64_t length_bytes, const base::UniqueFd& memory) try {
  Place& place = places_[arena_index(arena_id)];
  const uint32_t newest = place.newest.load(std::memory_order_relaxed);
  if (arena_generation(arena_id) == 0) {
    return EINVAL;
  }
  if (newest != 0 && !is_newer_arena(arena_id, newest)) {
    return EALREADY;
  }
  // An owner frees a place before it gives it out anew: this one lies.
  int error = place.id.load(std::memory_order_relaxed) != 0 ? EINVAL : memory.is_open() ? 0 : EMFILE;
  if (error == 0) {
    auto segment = SharedSegment::map(memory, length_bytes, true);
    if (segment) {
      auto kept = std::make_shared<const SharedSegment>(std::move(*segment));
      place.length.store(length_bytes, std::memory_order_relaxed);
      place.data.store(kept->data(), std::memory_order_relaxed);
      const base::LockGuard guard(mutex_);
      mapped_[arena_id] = std::move(kept);
      place.id.store(arena_id, std::memory_order_release);
    } else {
      error = segment.error().value;
    }
  }
  place.newest.store(arena_id, std::memory_order_release);
  return error;
} catch (const std::bad_alloc&) {
  places_[arena_index(arena_id)].newest.store(arena_id, std::memory_order_release);
  return ENOMEM;
}

bool PeerArenas::hide(uint32_t arena_id) {
  Place& place = places_[arena_index(arena_id)];
  const uint32_t newest = place.newest.load(std::memory_order_relaxed);
  if (arena_generation(arena_id) != 0 && (newest == 0 || is_newer_arena(arena_id, newest))) {
    place.newest.store(arena_id, std::memory_order_release);  // it was freed before we were told of it
  }
  if (place.id.load(std::memory_order_relaxed) != arena_id || arena_id == 0) {
    return false;
  }
  place.id.store(0, std::memory_order_release);
  return true;
}

void PeerArenas::forget(uint32_t arena_id) {
  std::shared_ptr<const SharedSegment> unused;  // let go of without the lock
  const base::LockGuard guard(mutex_);
  if (const auto found = mapped_.find(arena_id); found != mapped_.end()) {
    unused = std::move(found->second);
    mapped_.erase(found);
  }
}

std::shared_ptr<const SharedSegment> PeerArenas::hold(uint32_t arena_id) const {
  const base::LockGuard guard(mutex_);
  const bool is_here = places_[arena_index(arena_id)].id.load(std::memory_order_relaxed) == arena_id;
  const auto found = is_here ? mapped_.find(arena_id) : mapped_.end();
  return found != mapped_.end() ? found->second : nullptr;
}

}  // namespace ringbolt::link
