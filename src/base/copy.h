#pragma once

#include <cstddef>

namespace ringbolt::base {

/// Copies `length_bytes` between memory that does not overlap, as memcpy. Differs for blocks of a page and more: the C
/// library moves those by one instruction (rep movsb), which is the best for lines that another core has read, but
/// takes AMD's Zen 3 and 4 up to twenty times as long where the target lies a few bytes further in its page than the
/// source (glibc bug 30994; bench/micro). Long blocks are walked in four streams, each with a prefetcher of its own: 20
/// to 28 % less time from 256 KiB up if another core has just written them. Other processors than x86: memcpy, whose
/// vectors are the C library's; nothing better was measured there. Thread-safe.
void copy(void* target, const void* source, size_t length_bytes);

/// Copies likewise, but writes to main memory: the lines of `target` are not fetched first and are in no cache after it.
/// (ARM64 takes the stores for advice.) A store-release after it tells others that all is written. Thread-safe.
void copy_past_caches(void* target, const void* source, size_t length_bytes);

}  // namespace ringbolt::base
