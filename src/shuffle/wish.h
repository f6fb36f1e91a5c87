#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/parsed.h"
#include "shuffle/kind.h"

namespace ringbolt::shuffle {

/// Operations by number, from 1, of their queue pair (completion queue, device); none where `last` is 0.
/// Both ends included.
struct Range {
  /// No upper end as people write it; operations beyond it are not odd.
  static constexpr uint32_t kAll = UINT32_MAX;
  uint32_t first = 1;
  uint32_t last = kAll;

  bool has(uint64_t number) const { return first <= number && number <= last; }
  friend bool operator==(const Range&, const Range&) = default;
};

/// Which oddities there shall be. A value.
struct Wish {
  uint64_t seed = 0;
  std::array<Range, kKinds> ranges{};  ///< by kind

  Range& of(Kind kind) { return ranges[static_cast<size_t>(kind)]; }
  const Range& of(Kind kind) const { return ranges[static_cast<size_t>(kind)]; }
  friend bool operator==(const Wish&, const Wish&) = default;
};

/// Seeds one after the other, with the same kinds. A value.
/// Both ends included; `wish` of another seed is the same but for its number.
struct Seeds {
  uint64_t first = 0;
  uint64_t last = 0;
  Wish wish;  ///< of the first
};

/// "7", "7:late,order", "7:order@17,acks@3-20": one seed, all kinds or these, of all operations or these. Thread-safe.
/// Any text is safe. The error's words say what to give instead.
base::Parsed<Wish> parse_wish(std::string_view text);
/// The same with "1-1000" for a seed.
base::Parsed<Seeds> parse_seeds(std::string_view text);
/// What parse_wish() reads.
/// Pure.
std::string text_of(const Wish& wish);

}  // namespace ringbolt::shuffle
