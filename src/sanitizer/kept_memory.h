#pragma once

#include <infiniband/verbs.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

namespace ringbolt::sanitizer {

/// Registered memory of a protection domain in which data wait until the program may see them. Not thread-safe.
/// Owns mapped chunks and their regions, which only grow, until it is destroyed. `pd` must outlive it. Under the lock
/// of Shadow, as all of it.
class KeptMemory {
 public:
  /// What registers and deregisters: the border's, without a place among the program's objects. `add` returns null
  /// where that can't be.
  struct Calls {
    /// Returns a region, which `remove` takes; *lkey is written on success.
    void* (*add)(ibv_pd*, void* memory, size_t length_bytes, uint32_t* lkey);
    void (*remove)(void* region);
  };
  /// A piece of it; null: there is none.
  /// Of take() until it is given back as often as it is used. Its bytes are what the one before has left there:
  /// nothing clears them.
  struct Piece {
    std::byte* memory = nullptr;
    uint32_t lkey = 0;
    uint32_t length = 0;  ///< as asked for
  };

  KeptMemory(ibv_pd* pd, const Calls& calls) : pd_(pd), calls_(calls) {}
  KeptMemory(const KeptMemory&) = delete;
  KeptMemory& operator=(const KeptMemory&) = delete;
  /// Pieces must have been given back.
  ~KeptMemory();

  /// In bytes; 0 is allowed. Null beyond 16 MiB, and where a domain has 1 GiB already.
  Piece take(uint32_t length);
  /// Another request uses a piece that was taken, and gives it back, too. Throws std::bad_alloc.
  void share(const Piece& piece) { ++shares_[piece.memory]; }
  /// Free when nobody else uses it.
  void give_back(const Piece& piece);

  /// Somebody copies out of it, without a lock: it must stay. From begin_use() to end_use(), any number of times.
  void begin_use() { ++uses_; }
  void end_use() { --uses_; }
  bool is_used() const { return uses_ != 0; }

 private:
  struct Chunk {
    void* memory;
    size_t length;
    void* region;
  };
  // So a piece takes at most twice its length, and any piece of a class serves any request of it.
  static constexpr size_t kClasses = 32;  // by the power of two that holds a piece

  ibv_pd* const pd_;
  const Calls calls_;
  std::vector<Chunk> chunks_;
  std::array<std::vector<Piece>, kClasses> free_;
  std::unordered_map<const std::byte*, uint32_t> shares_;  // uses of a piece beyond the first; none is 0
  size_t total_bytes_ = 0;
  uint32_t uses_ = 0;
};

}  // namespace ringbolt::sanitizer
