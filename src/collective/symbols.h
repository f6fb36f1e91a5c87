#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

namespace ringbolt::collective {

/// A byte range of one rank's input.
struct Origin {
  uint32_t rank = 0;
  uint64_t offset = 0;
  friend auto operator<=>(const Origin&, const Origin&) = default;
};

/// Bytes that stand for the sum of equally long ranges of inputs.
struct Symbol {
  uint64_t bytes = 0;
  std::vector<Origin> origins;  ///< in the order in which they were added up
  bool is_left_fold = true;     ///< one by one, from the left: ((a + b) + c) + d
  bool is_finished = false;     ///< has had the last touch
  friend bool operator==(const Symbol&, const Symbol&) = default;
};

/// Symbols one after the other.
using Symbols = std::vector<Symbol>;

/// The part of a symbol from `skip` on, `bytes` long.
Symbol part_of(const Symbol& symbol, uint64_t skip, uint64_t bytes);

/// The sum of equally long rows, in their order. Nothing if one of several is finished already. Pure.
std::optional<Symbols> sum_of(const std::vector<Symbols>& rows);

/// What a rank's bytes stand for. Not thread-safe.
class SymbolicMemory {
 public:
  void write(uint64_t offset, const Symbols& symbols);
  /// Nothing if one of the bytes was never written; `*hole` is then the first such.
  std::optional<Symbols> read(uint64_t offset, uint64_t bytes, uint64_t* hole) const;

 private:
  std::map<uint64_t, Symbol> symbols_;  // by offset; they do not overlap
};

}  // namespace ringbolt::collective
