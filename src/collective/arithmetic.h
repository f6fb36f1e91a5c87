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
/// is the result the same, bit for bit, on every processor and for every way of cutting the elements into calls; but of a
/// sum or product that is not a number only that: which NaN it is is up to the processor and the compiler.
/// Reduction::avg adds; its division is the divisor's. Requires can_reduce(type, reduction). Never blocks. Thread-safe.
void reduce(Type type, Reduction reduction, std::byte* out, std::span<const std::byte* const> sources,
            size_t length_bytes, uint32_t divisor = 0);

/// A code for that, by what it needs of a processor.
enum class Arithmetic : uint8_t { baseline, avx2, avx512, neon };
inline constexpr Arithmetic kArithmetics[] = {Arithmetic::baseline, Arithmetic::avx2, Arithmetic::avx512,
                                              Arithmetic::neon};
/// Whether this program has it and this processor can run it.
bool can_run(Arithmetic arithmetic);
/// The code that reduce() takes: the last that can be run. For reports.
Arithmetic arithmetic();
const char* text(Arithmetic arithmetic);
/// reduce() by one of the codes that can be run: all of them give the same bits. For tests.
void reduce_by(Arithmetic arithmetic, Type type, Reduction reduction, std::byte* out,
               std::span<const std::byte* const> sources, size_t length_bytes, uint32_t divisor = 0);

}  // namespace ringbolt::collective
