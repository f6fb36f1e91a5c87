#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace ringbolt::collective {

/// What a buffer's elements are. The values are part of the wire format and of the C API.
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
inline constexpr uint32_t kTypes = 14;

/// How elements of different ranks become one. The values are part of the wire format and of the C API.
enum class Reduction : uint8_t {
  sum,   ///< of integers modulo 2^bits; of booleans: or
  prod,  ///< of booleans: and
  max,   ///< any NaN makes the result a NaN, the positive quiet one without payload; +0 is above -0
  min,
  avg,  ///< the sum over the number of ranks; of integers, the sum modulo 2^bits, rounded towards zero
};
inline constexpr uint32_t kReductions = 5;

/// `type` is one of kTypes, as in all functions here: values from outside are checked before.
uint32_t bytes_of(Type type);

/// "float32", "sum". And back; also "half", "float", "double", "f32"... as nccl-tests and others write them.
std::string_view text(Type type);
std::string_view text(Reduction reduction);
std::optional<Type> type_of(std::string_view text);
std::optional<Reduction> reduction_of(std::string_view text);

/// Complex numbers have no order, booleans no average.
bool can_reduce(Type type, Reduction reduction);

/// Whether the result depends on the order in which ranks' elements are reduced: sums and products of floating-point
/// numbers round.
bool depends_on_order(Type type, Reduction reduction);

}  // namespace ringbolt::collective
