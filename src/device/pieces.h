#pragma once

#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/copy.h"
#include "device/limits.h"
#include "link/arena.h"

namespace ringbolt::device {

/// The pieces of a work request as they lie in this process, after their keys were checked.
/// It owns none of the memory, which the program may give away at any time: whoever makes it uses it at once, under the
/// lock of its half (QueuePair::wait_for_copies() waits for that).
struct Pieces {
  std::array<iovec, kMaxSge> at;
  uint32_t count = 0;
  link::ArenaPlace arena;  ///< where the only piece lies in shareable memory; id 0 otherwise

  uint64_t length() const {
    if (count == 1) [[likely]] {
      return at[0].iov_len;
    }
    uint64_t sum = 0;
    for (uint32_t i = 0; i < count; ++i) {
      sum += at[i].iov_len;
    }
    return sum;
  }
  std::span<const iovec> span() const { return {at.data(), count}; }
  /// The first `length` bytes, which they must have.
  Pieces first(uint64_t length) const {
    Pieces some;
    for (; length > 0; ++some.count) {
      some.at[some.count] = {at[some.count].iov_base, std::min<size_t>(at[some.count].iov_len, length)};
      length -= some.at[some.count].iov_len;
    }
    return some;
  }

  /// Copies `length` bytes from `offset` of the pieces to `target`. Stops at the end of the pieces, as scatter() does:
  /// callers have compared the lengths.
  void gather(uint32_t offset, std::byte* target, uint32_t length) const {
    each(offset, length, [&](std::byte* piece, size_t size) {
      base::copy_short(target, piece, size);
      target += size;
    });
  }
  /// Copies `length` bytes from `source` to `offset` of the pieces.
  void scatter(uint32_t offset, const std::byte* source, uint32_t length) const {
    each(offset, length, [&](std::byte* piece, size_t size) {
      base::copy_short(piece, source, size);
      source += size;
    });
  }

 private:
  template <class Copy>
  void each(uint32_t offset, uint32_t length, Copy copy) const {
    if (count == 1 && offset + uint64_t{length} <= at[0].iov_len) [[likely]] {
      return copy(static_cast<std::byte*>(at[0].iov_base) + offset, length);
    }
    for (uint32_t i = 0; i < count && length > 0; ++i) {
      if (offset >= at[i].iov_len) {
        offset -= static_cast<uint32_t>(at[i].iov_len);
        continue;
      }
      const auto size = static_cast<uint32_t>(std::min<size_t>(at[i].iov_len - offset, length));
      copy(static_cast<std::byte*>(at[i].iov_base) + offset, size);
      length -= size;
      offset = 0;
    }
  }
};

}  // namespace ringbolt::device
