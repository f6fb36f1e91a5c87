#include "ranks/memory.h"

#include <algorithm>
#include <cstring>

#include "base/assert.h"

namespace ringbolt::tools::ranks {

GuardedMemory::GuardedMemory(size_t length_bytes) { resize(length_bytes); }

void GuardedMemory::resize(size_t length_bytes) {
  length_bytes_ = length_bytes;
  all_.resize(length_bytes + 2 * kGuardBytes);
  std::fill_n(all_.begin(), kGuardBytes, kGuard);
  std::fill_n(all_.end() - static_cast<ptrdiff_t>(kGuardBytes), kGuardBytes, kGuard);
}

void GuardedMemory::fill_with_canary() {
  const std::span<std::byte> to = bytes();
  for (size_t at = 0; at < to.size(); at += sizeof(kCanary)) {
    std::memcpy(to.data() + at, &kCanary, std::min(sizeof(kCanary), to.size() - at));
  }
}

bool GuardedMemory::is_guard_intact() const {
  const auto is_guard = [](std::byte one) { return one == kGuard; };
  return std::all_of(all_.begin(), all_.begin() + static_cast<ptrdiff_t>(kGuardBytes), is_guard) &&
         std::all_of(all_.end() - static_cast<ptrdiff_t>(kGuardBytes), all_.end(), is_guard);
}

size_t first_difference(std::span<const std::byte> got, std::span<const std::byte> want, size_t element_bytes) {
  RINGBOLT_ASSERT(got.size() == want.size() && element_bytes > 0);
  if (got.empty() || std::memcmp(got.data(), want.data(), got.size()) == 0) {
    return got.size() / element_bytes;
  }
  const auto at = std::mismatch(got.begin(), got.end(), want.begin()).first - got.begin();
  return static_cast<size_t>(at) / element_bytes;
}

}  // namespace ringbolt::tools::ranks
