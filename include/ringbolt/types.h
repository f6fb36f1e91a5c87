#pragma once

#include <cstdint>
#include <string>

namespace ringbolt {

/// What a buffer's elements are.
enum class Type : uint8_t {
  boolean,  ///< a byte; 0 is false, all else true
  int8,
  int16,
  int32,
  int64,
  uint8,
  uint16,
  uint32,
  uint64,
  float16,
  bfloat16,
  float32,
  float64,
  complex64,  ///< two float32
};

/// How elements of different ranks become one.
enum class Reduction : uint8_t {
  sum,   ///< of integers modulo 2^bits; of booleans: or
  prod,  ///< of booleans: and
  max,   ///< any NaN makes the result NaN; not of complex numbers
  min,
  avg,  ///< the sum over the number of ranks; of integers, the sum modulo 2^bits, rounded towards zero; not of booleans
};

/// What a call may be asked for besides its work.
struct CallOptions {
  /// The call ends by then, one way or the other. 0: the group's own (JoinOptions::timeout_ms).
  uint64_t timeout_ms = 0;
  /// Sums and products of floating-point numbers are reduced in the order of ranks, so that every rank, run, cabling
  /// and algorithm gives the same bits. Off: whatever is fastest.
  bool is_reproducible = true;
  /// "direct", "ring", "trees", ... (docs/algorithms.md); empty: the one that should be fastest. All ranks must ask for
  /// the same.
  std::string algorithm = {};
};

}  // namespace ringbolt
