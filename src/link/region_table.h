#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/adaptive_mutex.h"
#include "base/result.h"
#include "link/shared_segment.h"

/// The table of memory regions that a process publishes to its peers, read-only for them. An initiator finds there what
/// a remote key allows; the owner finds what a local key allows. Layout: docs/formats/region-table.md.
namespace ringbolt::link {

inline constexpr uint32_t kRegionIndexBits = 18;
inline constexpr uint32_t kRegionCount = 1U << kRegionIndexBits;
/// The bits of `access` are those of enum ibv_access_flags.
inline constexpr uint32_t kAnyQueuePair = 0xffffffffU;

/// What one key allows.
struct Region {
  uint64_t first = 0;       ///< address as the key's users give it (iova; 0 for zero-based)
  uint64_t length = 0;      ///< bytes
  uint64_t host_first = 0;  ///< where byte `first` lies in the owner's address space
  uint64_t arena_offset = 0;
  uint32_t arena_id = 0;  ///< shareable memory that holds it; 0: private memory
  uint32_t access = 0;
  uint32_t pd_key = 0;
  uint32_t bound_qpn = kAnyQueuePair;  ///< the one queue pair that may use it (type 2 windows)

  bool holds(uint64_t address, uint64_t size) const {
    return address >= first && size <= length && address - first <= length - size;
  }
};

/// As it lies in shared memory. `key` is 0 while the entry is unused or being changed. A sequence lock whose number is
/// the key: the fences of publish() and find() pair, so that who has read a field of a new region no longer finds the
/// old key.
struct alignas(64) RegionEntry {
  std::atomic<uint32_t> key;
  std::atomic<uint32_t> access;
  std::atomic<uint64_t> first;
  std::atomic<uint64_t> length;
  std::atomic<uint64_t> host_first;
  std::atomic<uint64_t> arena_offset;
  std::atomic<uint32_t> arena_id;
  std::atomic<uint32_t> pd_key;
  std::atomic<uint32_t> bound_qpn;
};
static_assert(sizeof(RegionEntry) == 64);

struct alignas(64) RegionTableHeader {
  uint64_t magic;
  uint32_t version;
  uint32_t key_mask;  ///< key ^ key_mask = tag and index
};
inline constexpr uint64_t kRegionTableMagic = 0x31424154474e4952U;  // "RINGTAB1"
inline constexpr size_t kRegionTableBytes = sizeof(RegionTableHeader) + size_t{kRegionCount} * sizeof(RegionEntry);

/// A table mapped by its owner or by a peer. Thread-safe.
/// It does not own the memory, and must not outlive it. Peers have it mapped for reading alone. Nothing here waits: who
/// meets an entry that is being changed finds no such key.
class RegionTableView {
 public:
  RegionTableView() = default;
  /// EINVAL when the segment is no region table.
  static base::Result<RegionTableView> open(const SharedSegment& segment);

  bool is_open() const { return entries_ != nullptr; }

  /// The region of `key`, or nothing known (false). The caller announces the access first where the owner must be able
  /// to wait for it (see LaneProducer::announce_access).
  /// `region` may have been written to on false.
  bool find(uint32_t key, Region& region) const {
    const RegionEntry& entry = entries_[index_of(key)];
    if (key == 0 || entry.key.load(std::memory_order_acquire) != key) {
      return false;
    }
    region.first = entry.first.load(std::memory_order_relaxed);
    region.length = entry.length.load(std::memory_order_relaxed);
    region.host_first = entry.host_first.load(std::memory_order_relaxed);
    region.arena_offset = entry.arena_offset.load(std::memory_order_relaxed);
    region.arena_id = entry.arena_id.load(std::memory_order_relaxed);
    region.access = entry.access.load(std::memory_order_relaxed);
    region.pd_key = entry.pd_key.load(std::memory_order_relaxed);
    region.bound_qpn = entry.bound_qpn.load(std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_acquire);
    return entry.key.load(std::memory_order_relaxed) == key;
  }

  /// Where the bytes lie that a key allows access to.
  struct Place {
    uint64_t host = 0;  ///< in the owner's address space
    uint64_t arena_offset = 0;
    uint32_t arena_id = 0;
  };
  /// The same as find() for who asks for `length` bytes from `address` alone, in the domain, with all of `access`, for
  /// the queue pair `qpn` (kAnyQueuePair: for the owner): half as many instructions. False: the key does not allow
  /// that.
  bool locate(uint32_t key, uint32_t pd_key, uint32_t qpn, uint32_t access, uint64_t address, uint64_t length,
              Place& place) const {
    const RegionEntry& entry = entries_[index_of(key)];
    if (key == 0 || entry.key.load(std::memory_order_acquire) != key) {
      return false;
    }
    const uint64_t offset = address - entry.first.load(std::memory_order_relaxed);
    const uint64_t room = entry.length.load(std::memory_order_relaxed);
    const bool is_allowed = entry.pd_key.load(std::memory_order_relaxed) == pd_key &&
                            (entry.access.load(std::memory_order_relaxed) & access) == access && offset <= room &&
                            length <= room - offset && is_for(qpn, entry.bound_qpn.load(std::memory_order_relaxed));
    place.host = entry.host_first.load(std::memory_order_relaxed) + offset;
    place.arena_id = entry.arena_id.load(std::memory_order_relaxed);
    place.arena_offset = entry.arena_offset.load(std::memory_order_relaxed) + offset;
    std::atomic_thread_fence(std::memory_order_acquire);
    return is_allowed && entry.key.load(std::memory_order_relaxed) == key;
  }

 protected:
  /// A key is, under the mask: 6 bits that count the uses of its entry, the index, and a low byte that owners of
  /// windows may choose.
  uint32_t index_of(uint32_t key) const { return ((key ^ key_mask_) >> 8U) & (kRegionCount - 1); }

  static bool is_for(uint32_t qpn, uint32_t bound_qpn) {
    return bound_qpn == kAnyQueuePair || qpn == kAnyQueuePair || qpn == bound_qpn;
  }

  RegionEntry* entries_ = nullptr;
  uint32_t key_mask_ = 0;
};

/// The owner's side. Thread-safe.
/// Owned by the process. Its lock, a leaf, is for which entries are free; an entry is changed by who has its key, one
/// at a time, without it.
class RegionTable : public RegionTableView {
 public:
  RegionTable() = default;
  RegionTable(const RegionTable&) = delete;
  RegionTable& operator=(const RegionTable&) = delete;

  /// Makes the shared table. Fails with ENOMEM, EMFILE. Call once.
  base::Result<int> create();
  int descriptor() const { return segment_.descriptor(); }

  /// Publishes a region under a fresh key. ENOMEM when the table is full.
  base::Result<uint32_t> add(const Region& region);
  /// Publishes `region` in a hidden entry under `key`, which may differ from the key that add() gave in its low byte.
  void publish(uint32_t key, const Region& region);
  /// No new access finds the key from here on; the entry stays reserved.
  /// Accesses that have found it may go on: the caller waits for these (Process::wait_for_accesses) before release().
  void hide(uint32_t key);
  /// Gives a hidden entry back.
  void release(uint32_t key);
  /// A region of the domain holds these bytes of the owner's memory whole, and allows all of `access`. Looks at every
  /// region: not for hot paths.
  bool is_held(uint32_t pd_key, uint64_t host_address, uint64_t size, uint32_t access);

 private:
  void make_room_for_free() RINGBOLT_REQUIRES(lock_);

  SharedSegment segment_;
  base::AdaptiveMutex lock_;
  /// Keys that were; first in, first out: a stale key stays stale for long. A ring with room for all that were given
  /// out, so that to release one needs no memory.
  std::vector<uint32_t> free_ RINGBOLT_GUARDED_BY(lock_);
  size_t free_head_ RINGBOLT_GUARDED_BY(lock_) = 0;
  size_t free_count_ RINGBOLT_GUARDED_BY(lock_) = 0;
  uint32_t never_used_ RINGBOLT_GUARDED_BY(lock_) = 0;
};

}  // namespace ringbolt::link
