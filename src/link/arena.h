#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <vector>

#include "base/result.h"
#include "link/shared_segment.h"

/// Memory that programs take from us and that peers can therefore map: one copy serves where private memory needs two,
/// or a system call.
namespace ringbolt::link {

inline constexpr uint32_t kMaxArenas = 1024;  ///< ids 1..kMaxArenas-1

/// Where a piece of local memory lies in an arena.
struct ArenaPlace {
  uint32_t arena_id = 0;
  uint64_t offset = 0;
};

/// The arenas that this process made. Thread-safe.
class OwnArenas {
 public:
  struct Made {
    std::byte* data = nullptr;
    uint32_t arena_id = 0;
    uint64_t length_bytes = 0;
    int descriptor = -1;  ///< owned by the arena
  };
  /// Page-aligned zero-filled memory of at least `length_bytes`. ENOMEM when memory or ids run out.
  base::Result<Made> make(size_t length_bytes);
  /// False when `address` is not the start of an arena.
  bool free(void* address);
  /// The arena that holds all `length` bytes from `address`.
  std::optional<ArenaPlace> find(uint64_t address, uint64_t length) const;
  std::vector<Made> all() const;

 private:
  struct Entry {
    uint32_t arena_id;
    SharedSegment segment;
  };
  mutable std::mutex mutex_;
  std::map<uint64_t, Entry> by_address_;
  uint32_t next_id_ = 1;
};

/// The arenas of one peer, as mapped here. find() is lock-free; add() is called from one thread.
class PeerArenas {
 public:
  /// Maps the peer's memory. EINVAL for a bad id or a descriptor that is not what it should be.
  base::Result<int> add(uint32_t arena_id, uint64_t length_bytes, const base::UniqueFd& memory);
  /// `length` bytes at `offset`, or nullptr while we don't have that arena or when they lie outside it.
  std::byte* find(uint32_t arena_id, uint64_t offset, uint64_t length) const {
    if (arena_id == 0 || arena_id >= kMaxArenas) {
      return nullptr;
    }
    std::byte* data = data_[arena_id].load(std::memory_order_acquire);
    const uint64_t size = length_[arena_id].load(std::memory_order_relaxed);
    return data != nullptr && length <= size && offset <= size - length ? data + offset : nullptr;
  }

 private:
  std::array<std::atomic<std::byte*>, kMaxArenas> data_{};
  std::array<std::atomic<uint64_t>, kMaxArenas> length_{};
  std::vector<SharedSegment> mapped_;
};

}  // namespace ringbolt::link
