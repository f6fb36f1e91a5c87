#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "base/lock_guard.h"
#include "link/mark_set.h"

namespace ringbolt::device {

class QueuePair;

/// The queue pairs of a completion queue, each at a place of its own, and which of them may have something for it:
/// while they are few, all; when they have once been many, those that are marked. So looking for what is new costs what
/// is new, and not what could be. Under the lock of the completion queue, except where said.
class ReadyList {
 public:
  /// So many are looked at sooner than found by marks, each of which is a cache line that goes back and forth.
  static constexpr size_t kFew = 8;

  /// Room for one more: add() does not fail then. Throws std::bad_alloc, and nothing has changed.
  void make_room();
  uint32_t add(QueuePair& qp);
  /// The place may be given to another queue pair at once: a mark that is left there costs one look.
  void remove(uint32_t place);
  /// Keeps the place; put() gives it back to its queue pair.
  void suspend(uint32_t place) { places_[place] = nullptr; }
  void put(uint32_t place, QueuePair& qp) { places_[place] = &qp; }

  bool is_empty() const { return count_ == 0; }
  /// They are many, and nobody marks them so far.
  bool wants_marks() const { return marks_.load(std::memory_order_relaxed) == nullptr && places_.size() > kFew; }
  /// From here on they are found by `marks`, which must outlive this. All are marked: who does not know of it yet may
  /// have something. The caller sees to those who do not look (base/asymmetric_fence.h).
  void use(link::MarkSet& marks);
  bool uses_marks() const { return marks_.load(std::memory_order_relaxed) != nullptr; }
  /// It has something, or may have. Thread-safe, without a lock: who keeps what it has stored apart from the lock of
  /// the completion queue makes it visible by this.
  void mark(uint32_t place) {
    if (link::MarkSet* const marks = marks_.load(std::memory_order_acquire)) {
      marks->mark(place);
    }
  }
  /// The same where it is marked often: only if it is not. What the caller has stored must be seen under a lock that
  /// who clears the mark takes as well.
  void mark_unless_marked(uint32_t place) {
    if (link::MarkSet* const marks = marks_.load(std::memory_order_acquire); marks != nullptr && !marks->has(place)) {
      marks->mark(place);
    }
  }
  void clear(uint32_t place) {
    if (link::MarkSet* const marks = marks_.load(std::memory_order_acquire)) {
      marks->clear(place);
    }
  }

  /// Null: nobody has it, or it is suspended.
  /// Marks come from peers, too, so `place` may be any number.
  QueuePair* at(uint32_t place) const { return place < places_.size() ? places_[place] : nullptr; }
  /// Whether one is marked. Only if uses_marks().
  // Relaxed where it is read under the lock: use() has stored it under the same one.
  bool has_marked() const { return !marks_.load(std::memory_order_relaxed)->is_empty(); }
  template <class Use>
  void each(Use use) const {
    for (QueuePair* const qp : places_) {
      if (qp != nullptr) {
        base::call_locked(use, *qp);
      }
    }
  }
  /// Calls `use` with the places of those that are marked, and not any more then, unless it says that they may have
  /// more. Ends when `has_room` is false, and begins there the next time. Only if uses_marks(). Throws what `use` does;
  /// then all are marked, as those are not known that it did not get to.
  template <class HasRoom, class Use>
  void take_marked(HasRoom has_room, Use use) {
    link::MarkSet* const marks = marks_.load(std::memory_order_relaxed);
    if (marks->is_empty()) [[likely]] {
      return;
    }
    try {
      marks->take(cursor_, [&](uint32_t place) {
        if (!base::call_locked(has_room)) {
          return false;
        }
        if (at(place) != nullptr && base::call_locked(use, place)) {
          marks->mark(place);
        }
        return true;
      });
    } catch (...) {
      mark_all();
      throw;
    }
  }
  bool has_one() const { return places_.size() == 1; }
  /// Calls `use` with all, beginning with the one whose turn it is.
  template <class Use>
  void in_turn(Use use) const {
    each_between(turn_, places_.size(), use);
    each_between(0, turn_, use);
  }
  /// The same with those that are marked, which they stay. Only if uses_marks().
  template <class Use>
  void marked_in_turn(Use use) {
    const link::MarkSet* const marks = marks_.load(std::memory_order_relaxed);
    if (!marks->is_empty()) [[unlikely]] {
      each_marked_in_turn(*marks, use);
    }
  }
  /// Those called in turn found no room for more: it is the next one's turn. So each has its own, however much
  /// the others bring.
  void end_turn() {
    turn_ = (uses_marks() ? began_ : turn_) + 1;
    turn_ = turn_ < places_.size() ? turn_ : 0;
  }
  /// Those that are marked, which they stay; or all.
  template <class Use>
  void each_marked(Use use) const {
    const link::MarkSet* const marks = marks_.load(std::memory_order_relaxed);
    if (marks == nullptr) {
      each(use);
      return;
    }
    if (marks->is_empty()) [[likely]] {
      return;
    }
    marks->each([&](uint32_t place) {
      if (place < places_.size() && places_[place] != nullptr) {
        base::call_locked(use, *places_[place]);
      }
    });
  }

 private:
  /// Only if uses_marks().
  void mark_all();
  template <class Use>
  void each_between(size_t first, size_t end, Use& use) const {
    for (QueuePair* const* place = places_.data() + first; place != places_.data() + end; ++place) {
      if (*place != nullptr) {
        base::call_locked(use, **place);
      }
    }
  }
  template <class Use>
  [[gnu::noinline]] void each_marked_in_turn(const link::MarkSet& marks, Use& use) {
    bool is_first = true;
    marks.each(turn_, [&](uint32_t place) {
      if (place < places_.size() && places_[place] != nullptr) {
        began_ = std::exchange(is_first, false) ? place : began_;
        base::call_locked(use, *places_[place]);
      }
    });
  }

  std::vector<QueuePair*> places_;  // null: free, or suspended
  std::vector<uint32_t> free_;      // has room for all places
  size_t count_ = 0;                // that are not free
  uint32_t cursor_ = 0;             // where take_marked() goes on, when there was no room
  uint32_t turn_ = 0;               // where those called in turn begin
  uint32_t began_ = 0;              // whom it called first, of those that are marked
  std::atomic<link::MarkSet*> marks_{nullptr};
};

}  // namespace ringbolt::device
