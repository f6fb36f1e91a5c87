#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace ringbolt::collective {

/// A byte range of one rank's input.
struct Origin {
  uint32_t rank = 0;
  uint64_t offset = 0;
  friend auto operator<=>(const Origin&, const Origin&) = default;
};

/// What was added up: equally long ranges of inputs. Up to kMostListed ranks it is a list; of more, besides how many
/// and whether they ascend, only a fingerprint is kept, that others share by less than a chance of 2^-50: the sum, over
/// all ranges, of a random number of the rank and of that number times the offset, modulo 2^64 (Freivalds 1977). So a
/// sum of a thousand takes no more than one of two. A value. Not thread-safe.
class Origins {
 public:
  /// A list of each rank for each symbol grows with the square of the ranks.
  static constexpr uint32_t kMostListed = 32;

  Origins() = default;
  Origins(const Origin& one, bool is_listed);

  /// All ranges begin `bytes` later.
  void shift(uint64_t bytes);
  /// Adds up `next` after these.
  void append(const Origins& next);

  uint64_t count() const { return count_; }
  const Origin& first() const { return first_; }
  bool is_ascending() const { return is_ascending_; }  ///< each rank once, in the order of ranks
  bool is_same_set(const Origins& other) const;        ///< in any order
  std::string text() const;                            ///< "0@16 2@16": rank@input offset
  friend bool operator==(const Origins&, const Origins&) = default;

 private:
  uint64_t count_ = 0;
  Origin first_;
  uint32_t last_rank_ = 0;
  bool is_ascending_ = true;
  uint64_t ranks_ = 0;        // the sum of the ranks' numbers
  uint64_t offsets_ = 0;      // of their numbers times the offset
  std::vector<Origin> list_;  // empty, if there are many ranks
};

/// Bytes that stand for the sum of equally long ranges of inputs.
struct Symbol {
  uint64_t bytes = 0;
  Origins origins;           ///< in the order in which they were added up
  bool is_left_fold = true;  ///< one by one, from the left: ((a + b) + c) + d
  bool is_finished = false;  ///< has had the last touch
  friend bool operator==(const Symbol&, const Symbol&) = default;
};

/// Symbols one after the other.
using Symbols = std::vector<Symbol>;

/// The part of a symbol from `skip` on, `bytes` long.
/// Asserts that it is one.
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
