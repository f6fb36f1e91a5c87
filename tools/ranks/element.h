#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "pattern.h"
#include "ringbolt/group.h"

namespace ringbolt::tools::ranks {

/// What elements a rank's input has. Depends on nothing but itself: every rank can make every other one's. A value.
struct Data {
  Type type = Type::float32;
  Reduction reduction = Reduction::sum;  ///< that they will go through: products get numbers near 1
  /// Numbers that can be reduced in any order without rounding, up to 256 ranks.
  bool is_exact = false;
  uint64_t seed = 0;
  friend bool operator==(const Data&, const Data&) = default;
};

size_t bytes_of(Type type);

/// Whether there are data of that kind that can be reduced in any order. Of products of complex numbers not: the signs
/// of their zeros tell.
bool has_exact_data(Type type, Reduction reduction);

/// Writes elements `first` and following of rank `rank`: each depends on rank and place. `to` is whole elements.
void generate(const Data& data, uint32_t rank, uint64_t first, std::span<std::byte> to);

/// out[i] = ((inputs[0][i] op inputs[1][i]) op inputs[2][i]) ..., an average also over the number of inputs: what the
/// public API promises, written plainly and apart from the code that it is compared with. 16-bit floating-point numbers
/// are reduced as float32 and rounded once. All are equally long, at least one input; no NaN among them.
void reduce_serially(Type type, Reduction reduction, const std::vector<std::span<const std::byte>>& inputs,
                     std::span<std::byte> out);

}  // namespace ringbolt::tools::ranks
