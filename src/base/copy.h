#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace ringbolt::base {

/// Copies `length_bytes` between memory that does not overlap, as memcpy. Differs for blocks of a page and more: the C
/// library moves those by one instruction (rep movsb), which is the best for lines that another core has read, but
/// takes AMD's Zen 3 and 4 up to twenty times as long where the target lies a few bytes further in its page than the
/// source (glibc bug 30994; bench/micro). Long blocks are walked in four streams, each with a prefetcher of its own: 20
/// to 28 % less time from 256 KiB up if another core has just written them. Other processors than x86: memcpy, whose
/// vectors are the C library's; nothing better was measured there. Thread-safe.
void copy(void* target, const void* source, size_t length_bytes);

/// From here on copy_short() is copy().
inline constexpr size_t kLeastCalled = 128;

/// The same for what is often short, without a call, and with each byte written once, in rising order: memcpy writes 8,
/// 16 or 32 bytes twice, and who waits for them in memory may have written there anew in between. 8 bytes at an aligned
/// address are one store. Thread-safe.
inline void copy_short(void* target, const void* source, size_t length_bytes) {
  if (length_bytes == sizeof(uint64_t)) [[likely]] {
    std::memcpy(target, source, sizeof(uint64_t));
    return;
  }
  if (length_bytes >= kLeastCalled) {
    return copy(target, source, length_bytes);
  }
  auto* to = static_cast<std::byte*>(target);
  const auto* from = static_cast<const std::byte*>(source);
  const auto move = [&](auto bytes) {
    if ((length_bytes & bytes.value) != 0) {
      std::memcpy(to, from, bytes.value);  // of a constant length: moves in place
      to += bytes.value;
      from += bytes.value;
    }
  };
  move(std::integral_constant<size_t, 64>());
  move(std::integral_constant<size_t, 32>());
  move(std::integral_constant<size_t, 16>());
  move(std::integral_constant<size_t, 8>());
  move(std::integral_constant<size_t, 4>());
  move(std::integral_constant<size_t, 2>());
  move(std::integral_constant<size_t, 1>());
}

/// Copies likewise, but writes to main memory: the lines of `target` are not fetched first and are in no cache after it.
/// (ARM64 takes the stores for advice.) A store-release after it tells others that all is written. Thread-safe.
void copy_past_caches(void* target, const void* source, size_t length_bytes);

}  // namespace ringbolt::base
