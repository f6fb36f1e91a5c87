#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "shuffle/wish.h"

namespace ringbolt::shuffle {

/// What happens to an operation: 0 is nothing out of the ordinary, anything else random bits that say how.
/// It may be kept, and drawn from again (delay_ns(), parts_of()): that gives the same each time.
using Lot = uint64_t;

/// The decisions of one process. What happens to an operation depends on the seed, the process' role, the kind, the
/// place (which queue pair or queue of the process it is) and its number there, and on no clock: the same seed does the
/// same again, as far as the program does. A value; thread-safe.
class Shuffle {
 public:
  /// `role`: what tells the processes of a run from each other, the same each time.
  /// No randomness of its own: two with the same arguments decide alike.
  Shuffle(const Wish& wish, uint64_t role);

  /// Of operation `number`, from 1, at `place`. Later ones are seldom odd, so that long runs get on.
  /// Any `place` that is the same in each run, as an index and no address. No allocation, lock or system call.
  Lot draw(Kind kind, uint64_t place, uint64_t number) const;

  const Wish& wish() const { return wish_; }

 private:
  Wish wish_;
  struct OfKind {
    uint64_t key = 0;
    uint64_t one_in = 1;  ///< of the first operations so many are odd
  };
  std::array<OfKind, kKinds> of_kind_;
};

/// A role out of what a program's command line and environment say: the program's name, how many words it was given,
/// its rank and its node. Not the words: many hold port numbers that are others each time.
uint64_t role_of(std::string_view program, size_t words, std::string_view rank, std::string_view node);

/// How much later: 0.05 to 4 ms, mostly less than one; 0 of no lot.
/// In nanoseconds; what it is added to is the caller's. Pure.
uint64_t delay_ns(Lot lot);

/// A part of a message whose bytes appear together.
struct Part {
  uint32_t offset = 0;
  uint32_t length = 0;
  friend bool operator==(const Part&, const Part&) = default;
};

/// Of one message. So Parts is a value without memory of its own, for the hot path.
inline constexpr uint32_t kMostParts = 4;
/// What one access of the processor moves stays whole: a program may well wait for a single word.
/// In bytes, at multiples of it; x86-64 and ARM64 write an aligned word at once.
inline constexpr uint32_t kWordBytes = 8;

struct Parts {
  std::array<Part, kMostParts> at{};
  uint32_t count = 0;
};

/// In which parts, and in which order, `length` bytes that begin at `address` appear: the last part first, more often
/// than not. One part: they can't be parted.
/// Offsets and lengths in bytes; together they are the message, each byte once. Lot 0: one part. Pure.
Parts parts_of(Lot lot, uint64_t address, uint32_t length);

}  // namespace ringbolt::shuffle
