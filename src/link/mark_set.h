#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstdint>

namespace ringbolt::link {

/// As many numbers as a process has queue pairs.
inline constexpr uint32_t kMarks = 1U << 14U;

/// A set of numbers below kMarks that many threads, of several processes, mark, and one takes. An empty set is known
/// from one cache line, and taking costs what is in it, not what could be. Lies in shared memory; zeroes are the empty
/// set. mark() and clear() are for anybody, take() and each() for one at a time.
///
/// Two levels: a bit of `leaves` a number, a bit of `roots` each 64 numbers. The taker takes a root's bit, then the
/// leaf: who marks sets the leaf's bit first, so that a root's bit that it finds set, and leaves alone, is taken after
/// that. Everything is sequentially consistent: the argument needs the order of two words.
/// It trusts nobody: whatever a peer writes into it only makes somebody look in vain, or miss something.
class MarkSet {
 public:
  /// A hint, relaxed: who goes to sleep on it makes a full fence before.
  bool is_empty() const {
    uint64_t some = 0;
    for (const std::atomic<uint64_t>& root : roots_) {
      some |= root.load(std::memory_order_relaxed);
    }
    return some == 0;
  }
  bool has(uint32_t number) const {
    return (leaves_[leaf_of(number)].load(std::memory_order_seq_cst) & bit_of(number)) != 0;
  }
  /// It is marked, and who takes finds it: who marked it has also set the root's bit. One that was killed between the
  /// two leaves the first alone, and then somebody has to mark it again.
  bool is_found(uint32_t number) const {
    const uint32_t leaf = leaf_of(number);
    return has(number) && (roots_[leaf / 64].load(std::memory_order_seq_cst) & bit_of(leaf)) != 0;
  }
  /// A full fence: what was stored before is seen by who takes the mark, or looks after it finds none.
  void mark(uint32_t number) { mark_leaf(leaf_of(number), bit_of(number)); }
  /// Only by who is sure that there is nothing, or looks again after it.
  void clear(uint32_t number) {
    const uint32_t leaf = leaf_of(number);
    if (leaves_[leaf].fetch_and(~bit_of(number), std::memory_order_seq_cst) != bit_of(number)) {
      return;
    }
    roots_[leaf / 64].fetch_and(~bit_of(leaf), std::memory_order_seq_cst);
    if (leaves_[leaf].load(std::memory_order_seq_cst) != 0) {  // marked meanwhile by who still saw the root's bit
      roots_[leaf / 64].fetch_or(bit_of(leaf), std::memory_order_seq_cst);
    }
  }

  /// Calls `use` with each number from `cursor` on, and then with those before it; none is marked any more then. False
  /// from `use`: no more of them for now; it and those that are left stay marked, and `cursor` is where to go on. Where
  /// `use` throws, those that it was to be called with are lost: the caller marks them again.
  template <class Use>
  void take(uint32_t& cursor, Use use) {
    const uint32_t start = cursor;
    if (take_range(start, kMarks, cursor, use)) {
      take_range(0, start, cursor, use);
    }
  }
  /// Calls `use` with each number from `first` on, and then with those before it; they stay marked.
  template <class Use>
  void each(uint32_t first, Use use) const {
    each_in_range(first, kMarks, use);
    each_in_range(0, first, use);
  }
  template <class Use>
  void each(Use use) const {
    each_in_range(0, kMarks, use);
  }

 private:
  static uint32_t leaf_of(uint32_t number) { return number % kMarks / 64; }
  static uint64_t bit_of(uint32_t number) { return uint64_t{1} << (number % 64); }
  void mark_leaf(uint32_t leaf, uint64_t marks) {
    leaves_[leaf].fetch_or(marks, std::memory_order_seq_cst);
    if ((roots_[leaf / 64].load(std::memory_order_seq_cst) & bit_of(leaf)) == 0) {
      roots_[leaf / 64].fetch_or(bit_of(leaf), std::memory_order_seq_cst);
    }
  }

  /// The bits of word `word` that stand for numbers from `first` to `last` - 1; the two overlap.
  static uint64_t bits_between(uint32_t word, uint32_t first, uint32_t last) {
    const uint32_t begin = word * 64;
    const uint64_t from = first <= begin ? ~uint64_t{0} : ~uint64_t{0} << (first - begin);
    return last >= begin + 64 ? from : from & ~(~uint64_t{0} << (last - begin));
  }
  template <class Use>
  void each_in_range(uint32_t first, uint32_t last, Use& use) const {
    const uint32_t first_leaf = first / 64;
    const uint32_t last_leaf = (last + 63) / 64;
    for (uint32_t i = first_leaf / 64; i * 64 < last_leaf; ++i) {
      uint64_t root = roots_[i].load(std::memory_order_seq_cst) & bits_between(i, first_leaf, last_leaf);
      for (; root != 0; root &= root - 1) {
        const uint32_t leaf = i * 64 + static_cast<uint32_t>(std::countr_zero(root));
        uint64_t marks = leaves_[leaf].load(std::memory_order_seq_cst) & bits_between(leaf, first, last);
        for (; marks != 0; marks &= marks - 1) {
          use(leaf * 64 + static_cast<uint32_t>(std::countr_zero(marks)));
        }
      }
    }
  }
  template <class Use>
  bool take_range(uint32_t first, uint32_t last, uint32_t& cursor, Use& use) {
    const uint32_t first_leaf = first / 64;
    const uint32_t last_leaf = (last + 63) / 64;
    for (uint32_t i = first_leaf / 64; i * 64 < last_leaf; ++i) {
      uint64_t root = roots_[i].load(std::memory_order_relaxed) & bits_between(i, first_leaf, last_leaf);
      if (root != 0) {
        roots_[i].fetch_and(~root, std::memory_order_seq_cst);
      }
      for (; root != 0; root &= root - 1) {
        const uint32_t leaf = i * 64 + static_cast<uint32_t>(std::countr_zero(root));
        const uint64_t wanted = bits_between(leaf, first, last);
        const uint64_t found = leaves_[leaf].fetch_and(~wanted, std::memory_order_seq_cst);
        if ((found & ~wanted) != 0) {  // not in the range: they are for the other half of the round
          roots_[i].fetch_or(bit_of(leaf), std::memory_order_seq_cst);
        }
        for (uint64_t marks = found & wanted; marks != 0; marks &= marks - 1) {
          const uint32_t number = leaf * 64 + static_cast<uint32_t>(std::countr_zero(marks));
          if (!use(number)) {
            mark_leaf(leaf, marks);
            roots_[i].fetch_or(root & (root - 1), std::memory_order_seq_cst);
            cursor = number;
            return false;
          }
        }
      }
    }
    return true;
  }

  // Apart, and apart from what lies before and behind: processors fetch cache lines in pairs.
  alignas(128) std::array<std::atomic<uint64_t>, kMarks / 64 / 64> roots_;
  alignas(128) std::array<std::atomic<uint64_t>, kMarks / 64> leaves_;
};

}  // namespace ringbolt::link
