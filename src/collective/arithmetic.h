#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "collective/element.h"

namespace ringbolt::collective {

/// out = ((sources[0] op sources[1]) op sources[2]) ..., element by element, then divided by `divisor` unless that
/// is 0. `length_bytes` is of each of them, whole elements; none needs to be aligned. `out` may be one of the sources;
/// otherwise nothing overlaps. There is at least one source.
///
/// 16-bit floating-point numbers are reduced as float32 and rounded once, to nearest, ties to even. So
/// is the result the same, bit for bit, on every processor and for every way of cutting the elements into calls.
/// Reduction::avg adds; its division is the divisor's. Requires can_reduce(type, reduction). Never blocks. Thread-safe.
void reduce(Type type, Reduction reduction, std::byte* out, std::span<const std::byte* const> sources,
            size_t length_bytes, uint32_t divisor = 0);

/// Which code does that: "avx2" or "baseline". For reports and tests.
const char* arithmetic_name();

/// The same by code that any processor has: what others must equal. For tests.
void reduce_baseline(Type type, Reduction reduction, std::byte* out, std::span<const std::byte* const> sources,
                     size_t length_bytes, uint32_t divisor = 0);

}  // namespace ringbolt::collective
