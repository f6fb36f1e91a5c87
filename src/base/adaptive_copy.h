#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace ringbolt::base {

/// Two ways to write memory that another core reads next.
enum class CopyWay : uint8_t {
  through_caches,  ///< what the other core has read has to be fetched back line by line before it is written
  past_caches,     ///< the other core then reads it from main memory
};

/// Which way takes less time: tries both in turn, takes the better one for many blocks, and tries again. Pure. Not
/// thread-safe.
class CopyChoice {
 public:
  // Odd, so that the median is one that was measured. Small beside kBlocksPerChoice: at most one block in fifty goes
  // the slower way.
  static constexpr uint32_t kTries = 5;
  static constexpr uint32_t kBlocksPerChoice = 256;

  CopyWay next() const { return is_trying_ ? static_cast<CopyWay>(n_tried_ % 2) : chosen_; }
  /// A block went the way of next() and took so long for each KiB: picoseconds, since a KiB takes some ten nanoseconds,
  /// and whole ones would be too coarse to tell the two ways apart.
  void note(uint64_t ps_per_kib);

 private:
  CopyWay chosen_ = CopyWay::through_caches;
  bool is_trying_ = true;
  uint32_t n_tried_ = 0;
  uint32_t n_left_ = 0;                                     // of those before it tries again
  std::array<std::array<uint64_t, kTries>, 2> times_ = {};  // [CopyWay]
};

/// Copies blocks into memory that another core reads next, as memcpy. Long ones go the way of a CopyChoice: where that
/// core is far away, as on another die, main memory is nearer than its cache. Not thread-safe.
class AdaptiveCopy {
 public:
  // Two looks at the clock are about 40 ns: of a block of this length two in a hundred of the time it takes, of a
  // shorter one too much.
  static constexpr size_t kLeastBytes = 32U << 10U;

  void copy(void* target, const void* source, size_t length_bytes);

 private:
  CopyChoice choice_;
};

}  // namespace ringbolt::base
