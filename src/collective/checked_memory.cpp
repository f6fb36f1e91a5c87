#include "collective/checked_memory.h"

#include <algorithm>

#include <fmt/format.h>

namespace ringbolt::collective {

std::optional<std::string> CheckedMemory::note(const Chunk& chunk, uint64_t offset, uint64_t bytes, bool is_write,
                                               Happenings& happenings) {
  if (bytes == 0) {
    return std::nullopt;
  }
  longest_ = std::max(longest_, bytes);
  const auto end = accesses_.lower_bound(offset + bytes);
  // None that begins before that reaches into the range.
  for (auto one = offset < longest_ ? accesses_.begin() : accesses_.upper_bound(offset - longest_); one != end; ++one) {
    const auto& [start, other] = *one;
    const bool may_conflict = start + other.bytes > offset && (is_write || other.is_write);
    if (may_conflict && other.chunk.step != chunk.step && !happenings.is_before(other.chunk.event, chunk.event)) {
      return fmt::format("{} {} bytes at offset {}, and nothing says whether step {} has {} them by then",
                         is_write ? "writes" : "reads", bytes, offset, other.chunk.step,
                         other.is_write ? "written" : "read");
    }
  }
  accesses_.emplace(offset, Access{bytes, is_write, chunk});
  return std::nullopt;
}

}  // namespace ringbolt::collective
