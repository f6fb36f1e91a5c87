// Hot path.
#pragma once

#include <cstdint>
#include <new>
#include <optional>

#include "base/asymmetric_fence.h"
#include "base/lock_guard.h"
#include "device/busy_place.h"
#include "device/ready_list.h"
#include "device/wake_entry.h"
#include "link/wake_table.h"

namespace ringbolt::device {

/// The queue pairs that receive into one completion queue. Once they are many, peers mark in the wake table which of
/// them they have sent to, and a poll looks at these, and at the one that is busy. Under the lock of the queue, but for
/// marks.
class ReceiverList {
 public:
  /// Both must outlive it.
  ReceiverList(link::WakeTable& table, WakeEntry& entry) : table_(table), entry_(entry), busy_(entry.shown()) {}
  ~ReceiverList();
  ReceiverList(const ReceiverList&) = delete;
  ReceiverList& operator=(const ReceiverList&) = delete;

  ReadyList& all() { return all_; }
  const ReadyList& all() const { return all_; }
  /// Has peers mark them, if they are so many that this is worth it, and the table has a set of marks left.
  void use_marks() noexcept;
  /// The queue pair is gone.
  void remove(uint32_t place);

  /// One look at those that are marked, and at the busy one; only with marks. `progress` brings a queue pair on;
  /// `has_something` says whether it may do so, `has_more` whether it left something. Ends when `has_room` is false,
  /// and begins there the next time.
  template <class HasRoom, class HasSomething, class Progress, class HasMore>
  void progress_marked(HasRoom has_room, HasSomething has_something, Progress progress, HasMore has_more) {
    // First: what has come to one that is struck here is found by its mark below, before the program goes to sleep.
    if (const std::optional<uint32_t> struck = busy_.age()) [[unlikely]] {
      all_.mark(*struck);
    }
    if (busy_.get()) {
      QueuePair* const qp = all_.at(*busy_.get());
      if (qp != nullptr && has_something(*qp)) {
        busy_.note_use();
        base::call_locked(progress, *qp);
      }
    }
    if (!all_.has_marked()) [[likely]] {
      return;
    }
    uint32_t found = 0;
    uint32_t n_found = 0;
    bool is_room_short = false;  // for one that is marked
    all_.take_marked(
        [&] {
          is_room_short = !base::call_locked(has_room);
          return !is_room_short;
        },
        [&](uint32_t place) {
          QueuePair& qp = *all_.at(place);
          if (has_something(qp)) {  // else it was struck, and is marked for this look alone
            found = place;
            ++n_found;
          }
          base::call_locked(progress, qp);
          return has_more(qp);
        });
    if (is_room_short) {
      if (const std::optional<uint32_t> struck = busy_.strike()) {
        all_.mark(*struck);  // all are to have their turns
      }
    } else if (n_found == 1 && busy_.note_found(found)) {
      all_.clear(found);  // what it may have left, each poll looks at; its own mark must not look like another's
    }
  }

 private:
  link::WakeTable& table_;
  WakeEntry& entry_;
  ReadyList all_;
  BusyPlace busy_;
  uint32_t set_ = 0;  // the number of its marks, if it has some; not read back from where peers write
};

inline ReceiverList::~ReceiverList() {
  if (all_.uses_marks()) {
    table_.remove_set(set_);
  }
}

inline void ReceiverList::use_marks() noexcept {
  try {
    if (!all_.wants_marks() || !table_.add_set(set_)) {
      return;
    }
  } catch (const std::bad_alloc&) {
    return;  // as where no set is left
  }
  entry_.shown().mode.fetch_or((set_ + 1) << link::kWakeSetShift, std::memory_order_seq_cst);
  all_.use(table_.set(set_));
  // Peers that have not seen the new mode have published what is found at the first look at all.
  base::heavy_fence();
}

inline void ReceiverList::remove(uint32_t place) {
  all_.remove(place);
  all_.clear(place);
  if (busy_.get() == place) {
    busy_.strike();
  }
}

}  // namespace ringbolt::device
