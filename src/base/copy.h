#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace ringbolt::base {

/// Copies `length_bytes` between memory that does not overlap, as memcpy. Differs for blocks of a page and more: the C
/// library moves those by one instruction (rep movsb), which is the best for lines that another core has read, but
/// takes AMD's Zen 3 and 4 up to twenty times as long where the target lies a few bytes further in its page than the
/// source (glibc bug 30994; bench/micro). Long blocks are walked in four streams, each with a prefetcher of its own: 20
/// to 28 % less time from 256 KiB up if another core has just written them. Other processors than x86: memcpy, whose
/// vectors are the C library's; nothing better was measured there. Thread-safe.
void copy(void* target, const void* source, size_t length_bytes);

/// The same for what is often short: up to 16 bytes are two moves, which may overlap, instead of two calls. 8 bytes at
/// aligned addresses are one store: who waits for them in memory sees all of them or none. Thread-safe.
inline void copy_short(void* target, const void* source, size_t length_bytes) {
  constexpr size_t kWord = sizeof(uint64_t);
  if (length_bytes > 2 * kWord || length_bytes < kWord) {
    return copy(target, source, length_bytes);
  }
  const size_t last = length_bytes - kWord;
  uint64_t front;
  uint64_t back;
  std::memcpy(&front, source, kWord);
  std::memcpy(&back, static_cast<const std::byte*>(source) + last, kWord);
  std::memcpy(target, &front, kWord);
  std::memcpy(static_cast<std::byte*>(target) + last, &back, kWord);
}

/// Copies likewise, but writes to main memory: the lines of `target` are not fetched first and are in no cache after it.
/// (ARM64 takes the stores for advice.) A store-release after it tells others that all is written. Thread-safe.
void copy_past_caches(void* target, const void* source, size_t length_bytes);

}  // namespace ringbolt::base
