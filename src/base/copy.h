#pragma once

#include <cstddef>

namespace ringbolt::base {

/// Copies `length_bytes` between memory that does not overlap. As memcpy, but faster for long blocks that another core
/// has just written: it walks four streams at once, each with a prefetcher of its own (bench/micro: 20 to 28 % less
/// time from 256 KiB up). Thread-safe.
void copy(void* target, const void* source, size_t length_bytes);

/// Copies likewise, but writes to main memory: the lines of `target` are not fetched first and are in no cache after it.
/// Everything is written when it returns. Thread-safe.
void copy_past_caches(void* target, const void* source, size_t length_bytes);

}  // namespace ringbolt::base
