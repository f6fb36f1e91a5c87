// The places of queue pairs in a completion queue, and their marks (docs/formats/wake-table.md).

#include <new>

#include "base/lock_guard.h"
#include "device/completion_queue.h"
#include "device/queue_pair.h"

namespace ringbolt::device {

uint32_t CompletionQueue::attach(QueuePair& qp, bool receives) {
  const base::LockGuard guard(lock);
  list(receives).make_room();
  const uint32_t place = list(receives).add(qp);
  polls_.look_again();
  use_marks(receives);
  list(receives).mark(place);
  return place;
}

/// Where they have become many. Packets of networks are for queue pairs that nobody marks in time for their timers, so
/// that there all are looked at.
void CompletionQueue::use_marks(bool receives) {
  if (network_ != nullptr || !list(receives).wants_marks()) {
    return;
  }
  if (receives) {
    receivers_.use_marks();
  } else if (auto marks = std::unique_ptr<link::MarkSet>(new (std::nothrow) link::MarkSet())) {
    sender_marks_ = std::move(marks);
    senders_.use(*sender_marks_);
  }
}

void CompletionQueue::detach(uint32_t place, bool receives) {
  const base::LockGuard guard(lock);
  if (receives) {
    receivers_.remove(place);
  } else {
    senders_.remove(place);
    senders_.clear(place);
  }
}

void CompletionQueue::suspend(uint32_t place, bool receives) {
  const base::LockGuard guard(lock);
  list(receives).suspend(place);
}

void CompletionQueue::resume(QueuePair& qp, uint32_t place, bool receives) {
  const base::LockGuard guard(lock);
  polls_.look_again();
  list(receives).put(place, qp);
  list(receives).mark(place);
}

bool CompletionQueue::is_attached() {
  const base::LockGuard guard(lock);
  return !receivers_.all().is_empty() || !senders_.is_empty();
}

void CompletionQueue::mark_receiver(uint32_t place) {
  std::atomic_thread_fence(std::memory_order_seq_cst);  // or those marked by use_marks() would not cover it
  receivers_.all().mark(place);
}

void CompletionQueue::mark_sender(uint32_t place) {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  senders_.mark(place);
}

}  // namespace ringbolt::device
