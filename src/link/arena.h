#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "base/mutex.h"
#include "base/result.h"
#include "link/shared_segment.h"

/// Memory that programs take from us and that peers can therefore map: one copy serves where private memory needs two,
/// or a system call.
namespace ringbolt::link {

inline constexpr uint32_t kArenaIndexBits = 10;
inline constexpr uint32_t kMaxArenas = 1U << kArenaIndexBits;  ///< of one process, at a time

/// An arena's id: its place in the tables of both ends below, and above it the generation, which counts from 1 how
/// often that place was given out. So no id is ever 0, and one that was is told from the one that is.
constexpr uint32_t arena_index(uint32_t id) { return id & (kMaxArenas - 1); }
constexpr uint32_t arena_generation(uint32_t id) { return id >> kArenaIndexBits; }
/// The next one at the same place.
constexpr uint32_t next_arena_id(uint32_t id) {
  const uint32_t next = id + kMaxArenas;
  return arena_generation(next) == 0 ? next + kMaxArenas : next;
}
/// Of two ids of one place, the first was given out after the second (generations wrap).
constexpr bool is_newer_arena(uint32_t id, uint32_t than) {
  const uint32_t ahead = (id - than) >> kArenaIndexBits;
  return ahead != 0 && ahead < 1U << (31U - kArenaIndexBits);
}

/// Where a piece of local memory lies in an arena.
struct ArenaPlace {
  uint32_t arena_id = 0;
  uint64_t offset = 0;
};

/// The arenas that this process made. One lives as long as it has users: the program that took it, and each region over
/// it. Thread-safe.
/// Owned by the process. Its lock is a leaf; memory is unmapped without it.
class OwnArenas {
 public:
  struct Made {
    uint32_t arena_id = 0;
    std::shared_ptr<const SharedSegment> segment;
  };
  OwnArenas();

  /// Page-aligned zero-filled memory of at least `length_bytes`, with one user. ENOMEM when memory or ids run out,
  /// EMFILE.
  /// `Made::segment` keeps it mapped and its descriptor open; the entry does so, too, until the last user is gone.
  base::Result<Made> make(size_t length_bytes);
  /// The arena that holds all `length` bytes from `address`, which gets one more user.
  /// The caller gives that back by drop().
  std::optional<ArenaPlace> use(uint64_t address, uint64_t length);
  /// One user less. True: it was the last, the memory is gone, and so are all users of the id here.
  bool drop(uint32_t arena_id);
  /// drop() for the program's own use, by the address that it got: the id, if that was the last user. Nothing either
  /// when it is no arena's, or was freed before.
  std::optional<uint32_t> free(const void* address);
  /// The place of an id whose last user is gone may be given out anew: once every peer was told so.
  void retire(uint32_t arena_id);
  std::vector<Made> all() const;

 private:
  struct Entry {
    uint32_t id = 0;
    uint32_t users = 0;
    bool is_freed = false;
    std::shared_ptr<const SharedSegment> segment;
  };
  std::shared_ptr<const SharedSegment> take_user(Entry& entry) RINGBOLT_REQUIRES(mutex_);

  mutable base::Mutex mutex_;
  std::array<Entry, kMaxArenas> entries_ RINGBOLT_GUARDED_BY(mutex_);
  std::map<uint64_t, uint32_t> by_address_ RINGBOLT_GUARDED_BY(mutex_);  // places
  // First in, first out, so that a place rests as long as can be. Of the ids to give out next.
  std::array<uint32_t, kMaxArenas> free_ids_ RINGBOLT_GUARDED_BY(mutex_);
  uint32_t first_free_ RINGBOLT_GUARDED_BY(mutex_) = 0;
  uint32_t free_count_ RINGBOLT_GUARDED_BY(mutex_) = kMaxArenas;
};

/// The arenas of one peer, as mapped here. Their owner's messages change it, on one thread; find() and look() are
/// lock-free and for all.
/// Owned by its RemoteProcess. Pointers that find() gives are good until the caller gives back the lock that forget()'s
/// caller waits for (QueuePair::wait_for_copies()).
class PeerArenas {
 public:
  /// Maps the peer's memory; `memory` is not open: its descriptor got lost. 0, or an errno: then the id is refused from
  /// here on. EINVAL: for a bad id, or a descriptor that is not what it should be. EALREADY: known before, no change.
  int add(uint32_t arena_id, uint64_t length_bytes, const base::UniqueFd& memory);
  /// The peer has freed it: nobody finds it from here on. True: somebody may still copy there; forget() once nobody
  /// does.
  bool hide(uint32_t arena_id);
  void forget(uint32_t arena_id);

  /// `length` bytes at `offset`, or nullptr when we don't have that arena or when they lie outside it.
  std::byte* find(uint32_t arena_id, uint64_t offset, uint64_t length) const {
    const Place& place = places_[arena_index(arena_id)];
    if (place.id.load(std::memory_order_acquire) != arena_id || arena_id == 0) {
      return nullptr;
    }
    const uint64_t size = place.length.load(std::memory_order_relaxed);
    return length <= size && offset <= size - length ? place.data.load(std::memory_order_relaxed) + offset : nullptr;
  }
  /// The same for what a peer's message names: where there is nothing, whether news of it is on its way. If it is not,
  /// the arena was freed, could not be mapped, or is too short, and the message can never be read.
  struct Found {
    const std::byte* data = nullptr;
    bool is_awaited = false;
  };
  Found look(uint32_t arena_id, uint64_t offset, uint64_t length) const {
    // The order of add() turned round: what is known to have come is found, if it is there at all.
    const uint32_t newest = places_[arena_index(arena_id)].newest.load(std::memory_order_acquire);
    if (newest == 0 || is_newer_arena(arena_id, newest)) {
      return {nullptr, true};
    }
    return {find(arena_id, offset, length), false};
  }
  /// For who reads there without the locks that forget() waits for: keeps it mapped.
  std::shared_ptr<const SharedSegment> hold(uint32_t arena_id) const;

 private:
  struct Place {
    std::atomic<uint32_t> id{0};      // of the arena that is mapped; 0: none
    std::atomic<uint32_t> newest{0};  // that was heard of, mapped or not
    std::atomic<std::byte*> data{nullptr};
    std::atomic<uint64_t> length{0};
  };
  std::array<Place, kMaxArenas> places_{};
  mutable base::Mutex mutex_;                                                                              // a leaf
  std::unordered_map<uint32_t, std::shared_ptr<const SharedSegment>> mapped_ RINGBOLT_GUARDED_BY(mutex_);  // by id
};

}  // namespace ringbolt::link
