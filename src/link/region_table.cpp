#include "link/region_table.h"

#include <algorithm>
#include <cerrno>
#include <new>
#include <random>
#include <utility>
#include <vector>

#include "base/lock_guard.h"

namespace ringbolt::link {
namespace {

constexpr uint32_t kIndexMask = (kRegionCount - 1) << 8U;
constexpr uint32_t kLowByte = 0xff;
// 6 bits are left above it: what counts the uses of an entry, see RegionTableView::index_of().
constexpr uint32_t kTagStep = 1U << (kRegionIndexBits + 8U);
// A freed entry is used again only after this many others: stale keys are caught, not honoured.
constexpr size_t kRestingEntries = 1024;

uint32_t random_bits() {
  // No thread_local with a destructor: where there is no memory to note that, glibc ends the program.
  return std::random_device{}();
}

}  // namespace

base::Result<RegionTableView> RegionTableView::open(const SharedSegment& segment) {
  if (segment.length_bytes() != kRegionTableBytes) {
    return base::fail(EINVAL);
  }
  const auto* header = reinterpret_cast<const RegionTableHeader*>(segment.data());
  if (header->magic != kRegionTableMagic || header->version != 1) {
    return base::fail(EINVAL);
  }
  RegionTableView view;
  view.entries_ = reinterpret_cast<RegionEntry*>(segment.data() + sizeof(RegionTableHeader));
  view.key_mask_ = header->key_mask;
  return view;
}

base::Result<int> RegionTable::create() {
  auto segment = SharedSegment::create("ringbolt-regions", kRegionTableBytes);
  if (!segment) {
    return base::fail(segment.error().value);
  }
  segment_ = std::move(*segment);
  key_mask_ = random_bits();
  new (segment_.data()) RegionTableHeader{kRegionTableMagic, 1, key_mask_};
  entries_ = reinterpret_cast<RegionEntry*>(segment_.data() + sizeof(RegionTableHeader));
  return segment_.descriptor();
}

base::Result<uint32_t> RegionTable::add(const Region& region) try {
  const base::LockGuard guard(lock_);
  uint32_t tag_and_index = 0;
  if (never_used_ < kRegionCount && free_count_ < kRestingEntries) {
    make_room_for_free();
    tag_and_index = (random_bits() & ~kIndexMask) | (never_used_++ << 8U);
  } else if (free_count_ != 0) {
    // Counted on, so that the entry's last 63 keys differ above the byte that windows may choose.
    tag_and_index = (free_[free_head_] ^ key_mask_) + kTagStep;
    free_head_ = (free_head_ + 1) % free_.size();
    --free_count_;
  } else {
    return base::fail(ENOMEM);
  }
  uint32_t key = 0;
  while (key == 0 || key == 0xffffffffU) {
    key = ((tag_and_index & ~kLowByte) | (random_bits() & kLowByte)) ^ key_mask_;
  }
  publish(key, region);
  return key;
} catch (const std::bad_alloc&) {
  return base::fail(ENOMEM);
}

/// For one key more than ever was. Throws std::bad_alloc, and nothing has changed.
void RegionTable::make_room_for_free() {
  if (never_used_ < free_.size()) {
    return;
  }
  std::vector<uint32_t> larger(std::max<size_t>(2 * free_.size(), kRestingEntries));
  for (size_t i = 0; i < free_count_; ++i) {
    larger[i] = free_[(free_head_ + i) % free_.size()];
  }
  free_ = std::move(larger);
  free_head_ = 0;
}

void RegionTable::hide(uint32_t key) { entries_[index_of(key)].key.store(0, std::memory_order_seq_cst); }

void RegionTable::release(uint32_t key) {
  const base::LockGuard guard(lock_);
  free_[(free_head_ + free_count_) % free_.size()] = key;
  ++free_count_;
}

bool RegionTable::is_held(uint32_t pd_key, uint64_t host_address, uint64_t size, uint32_t access) {
  uint32_t count = 0;
  {
    const base::LockGuard guard(lock_);
    count = never_used_;
  }
  Region region;
  for (uint32_t i = 0; i < count; ++i) {
    const bool is_there = find(entries_[i].key.load(std::memory_order_acquire), region);
    const uint64_t offset = host_address - region.host_first;
    if (is_there && region.pd_key == pd_key && (region.access & access) == access &&
        host_address >= region.host_first && size <= region.length && offset <= region.length - size) {
      return true;
    }
  }
  return false;
}

void RegionTable::publish(uint32_t key, const Region& region) {
  RegionEntry& entry = entries_[index_of(key)];
  // After the 0 that hide() stored, also for those who look: a store that releases holds back only what precedes it.
  std::atomic_thread_fence(std::memory_order_release);
  entry.access.store(region.access, std::memory_order_relaxed);
  entry.first.store(region.first, std::memory_order_relaxed);
  entry.length.store(region.length, std::memory_order_relaxed);
  entry.host_first.store(region.host_first, std::memory_order_relaxed);
  entry.arena_offset.store(region.arena_offset, std::memory_order_relaxed);
  entry.arena_id.store(region.arena_id, std::memory_order_relaxed);
  entry.pd_key.store(region.pd_key, std::memory_order_relaxed);
  entry.bound_qpn.store(region.bound_qpn, std::memory_order_relaxed);
  entry.key.store(key, std::memory_order_release);
}

}  // namespace ringbolt::link
