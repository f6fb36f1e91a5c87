#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace ringbolt::circuit {

/// NCCL's LL128 protocol: 120 bytes of data, then a flag of 8 bytes.
inline constexpr size_t kLineBytes = 128;

/// Copies to memory where somebody, a GPU perhaps, waits for flags while it is written: in rising order, and the last 8
/// bytes of each line of 128 become visible after the 120 before them; aligned words of 8 bytes are never seen half
/// written (protocol LL: 4 bytes of data, 4 of flag). Lines are counted from `target`, so pieces of a message must
/// begin at multiples of 128. Hot path. Thread-safe.
inline void copy_lines(void* target, const void* source, size_t length_bytes) {
  auto* to = static_cast<std::byte*>(target);
  const auto* from = static_cast<const std::byte*>(source);
  // Of `target` alone: sources are read in any way.
  const bool is_aligned = reinterpret_cast<uintptr_t>(to) % sizeof(uint64_t) == 0;
  const auto put_word = [&](size_t at) {
    uint64_t word = 0;
    std::memcpy(&word, from + at, sizeof word);
    // Released: a weakly ordered processor lets nobody see it before what was stored earlier. Its alignment was
    // checked. Pairs with the acquire, or its like, of whoever waits for the flag: a GPU's ld.acquire, NCCL's
    // volatile load of 16 bytes.
    std::atomic_ref<uint64_t>(*reinterpret_cast<uint64_t*>(to + at)).store(word, std::memory_order_release);
  };
  if (is_aligned) {
    for (; length_bytes >= kLineBytes; length_bytes -= kLineBytes, to += kLineBytes, from += kLineBytes) {
      std::memcpy(to, from, kLineBytes - sizeof(uint64_t));  // of a constant length: moves in place
      put_word(kLineBytes - sizeof(uint64_t));
    }
    for (; length_bytes >= sizeof(uint64_t);
         length_bytes -= sizeof(uint64_t), to += sizeof(uint64_t), from += sizeof(uint64_t)) {
      put_word(0);
    }
  }
  std::memcpy(to, from, length_bytes);  // no protocol waits in what is not aligned
}

}  // namespace ringbolt::circuit
