#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace ringbolt::bench {

/// Inputs whose sums are exact: every element is a number of one power of two, with a mantissa that depends on its
/// place, its rank and the call, so that the sum over 1, 2 or 4 ranks has the next exponents and the mean of the
/// mantissas. All of it is done on words of 32 bits (one element of four bytes, or two of two bytes), so that looking
/// at a byte costs the same in every type.
struct Pattern {
  uint32_t base = 0;      ///< the word's elements with empty mantissas
  uint32_t doubling = 0;  ///< what the word grows by when its elements double
  uint32_t mask = 0;      ///< mantissa bits in use; the two lowest are not

  friend bool operator==(const Pattern&, const Pattern&) = default;
};

/// Of "float32", "float16", "bfloat16". Throws std::runtime_error for other names.
Pattern pattern_of(const std::string& type);

/// Writes what `rank` gives to call `call`. `length_bytes` is a multiple of 4.
void write_input(const Pattern& pattern, std::byte* out, std::size_t length_bytes, unsigned rank, uint64_t call);

/// Reads every byte; throws std::runtime_error that names the first byte that is not the sum of what ranks first,
/// first + 1, ..., first + ranks - 1 gave to the call. `ranks` is 1, 2 or 4.
void expect_sum(const Pattern& pattern, const std::byte* data, std::size_t length_bytes, unsigned first, unsigned ranks,
                uint64_t call);

}  // namespace ringbolt::bench
