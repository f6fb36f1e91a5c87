#include "shuffle/shuffle.h"

#include <algorithm>
#include <utility>

#include "fault/dice.h"

namespace ringbolt::shuffle {
namespace {

// Of the first operations one in so many is odd: some seeds are gentle, so that mistakes which need a rare oddity in
// the middle of much that is usual are met as well.
// Drawn by seed and kind; 2 twice, so that half of the seeds are rough.
constexpr std::array<uint64_t, 4> kOneIn{2, 2, 5, 16};
// From these numbers on eight times fewer.
constexpr std::array<uint64_t, 2> kThinnedFrom{256, 4096};
constexpr uint64_t kThinning = 8;

// Upper ends, in nanoseconds; a delay is between half of one of them and it.
constexpr std::array<uint64_t, 4> kDelaysNs{100'000, 400'000, 1'500'000, 4'000'000};

/// The length is part of it, so that "ab", "c" and "a", "bc" one after the other differ. Alike on all machines.
uint64_t hash_of(std::string_view text, uint64_t start) {
  uint64_t hash = start;
  for (const char one : text) {
    hash = fault::scramble(hash + static_cast<unsigned char>(one) + 1);
  }
  return fault::scramble(hash + text.size());
}

}  // namespace

Shuffle::Shuffle(const Wish& wish, uint64_t role) : wish_(wish) {
  for (size_t i = 0; i < kKinds; ++i) {
    of_kind_[i].key = fault::scramble(fault::scramble(wish.seed + 1) + fault::scramble(role + i));
    fault::Dice of_seed(wish.seed, i);  // the same in all processes of a run
    of_kind_[i].one_in = kOneIn[of_seed.below(kOneIn.size())];
  }
}

Lot Shuffle::draw(Kind kind, uint64_t place, uint64_t number) const {
  if (!wish_.of(kind).has(number)) {
    return 0;
  }
  const OfKind& own = of_kind_[static_cast<size_t>(kind)];
  uint64_t one_in = own.one_in;
  for (const uint64_t from : kThinnedFrom) {
    one_in *= number >= from ? kThinning : 1;
  }
  fault::Dice dice(own.key + fault::scramble(place), number);
  // Never 0, which says that nothing happens.
  return dice.below(one_in) == 0 ? dice.next() | 1U : 0;
}

uint64_t role_of(std::string_view program, size_t words, std::string_view rank, std::string_view node) {
  return hash_of(node, hash_of(rank, hash_of(program, words)));
}

uint64_t delay_ns(Lot lot) {
  if (lot == 0) {
    return 0;
  }
  fault::Dice dice(lot, 0);
  const uint64_t most = kDelaysNs[dice.below(kDelaysNs.size())];
  return most / 2 + dice.below(most / 2);
}

Parts parts_of(Lot lot, uint64_t address, uint32_t length) {
  Parts parts;
  parts.at[0] = {0, length};
  parts.count = 1;
  // Whole words of the target between the first boundary in it and the last one that leaves something behind it.
  // Bytes to the first boundary of the target, 1 to 8.
  const auto first = static_cast<uint32_t>(kWordBytes - address % kWordBytes);
  if (lot == 0 || length <= first) {
    return parts;
  }
  const uint32_t boundaries = (length - first - 1) / kWordBytes + 1;
  fault::Dice dice(lot, 1);
  std::array<uint32_t, kMostParts - 1> cuts{};
  const auto wanted = static_cast<uint32_t>(dice.below(kMostParts - 1)) + 1;
  for (uint32_t i = 0; i < wanted; ++i) {
    // The last boundary first: it leaves the last word alone, which programs look at.
    const uint32_t which = i == 0 ? boundaries - 1 : static_cast<uint32_t>(dice.below(boundaries));
    cuts[i] = first + which * kWordBytes;
  }
  std::sort(cuts.begin(), cuts.begin() + wanted);
  const auto end = std::unique(cuts.begin(), cuts.begin() + wanted);
  uint32_t from = 0;
  parts.count = 0;
  for (auto cut = cuts.begin(); cut != end; ++cut) {
    parts.at[parts.count++] = {from, *cut - from};
    from = *cut;
  }
  parts.at[parts.count++] = {from, length - from};
  // The last part appears first: who waits for the last word of a message takes it for whole.
  std::swap(parts.at[0], parts.at[parts.count - 1]);
  for (uint32_t i = parts.count - 1; i > 1; --i) {
    std::swap(parts.at[i], parts.at[1 + dice.below(i)]);
  }
  if (constexpr uint64_t kElsewhere = 4; dice.below(kElsewhere) == 0) {
    std::swap(parts.at[0], parts.at[dice.below(parts.count)]);
  }
  return parts;
}

}  // namespace ringbolt::shuffle
