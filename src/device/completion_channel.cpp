#include "device/completion_channel.h"

#include <poll.h>

#include <algorithm>
#include <bit>

#include "base/lock_guard.h"
#include "device/completion_queue.h"
#include "device/recording.h"
#include "device/wake_entry.h"

namespace ringbolt::device {
namespace {

uint32_t fresh_number() {
  static std::atomic<uint32_t> last{0};
  uint32_t number = 0;
  while (number == 0) {  // once in four billion channels
    number = last.fetch_add(1, std::memory_order_relaxed) + 1;
  }
  return number;
}

}  // namespace

CompletionChannel::CompletionChannel(link::WakeTable& table)
    : table_(table), number_(fresh_number()), index_(table.add_channel()) {}

CompletionChannel::~CompletionChannel() { table_.remove_channel(index_); }

uint32_t CompletionChannel::add_user() {
  const base::LockGuard guard(mutex_);
  if (!free_places_.empty()) {
    const uint32_t place = free_places_.back();
    free_places_.pop_back();
    return place;
  }
  if (const size_t wanted = users_.size() + 1; free_places_.capacity() < wanted) {
    free_places_.reserve(std::max(wanted, 2 * free_places_.capacity()));
  }
  users_.emplace_back();
  return static_cast<uint32_t>(users_.size() - 1);
}

void CompletionChannel::set_user(uint32_t place, const std::shared_ptr<WakeEntry>& user) {
  const base::LockGuard guard(mutex_);
  users_[place] = user;
}

void CompletionChannel::remove_user(uint32_t place, bool is_rung) {
  const base::LockGuard guard(mutex_);
  count_.take_back(is_rung ? 1 : 0);
  users_[place].reset();
  free_places_.push_back(place);
}

void CompletionChannel::make_room() {
  const base::LockGuard guard(mutex_);
  const size_t wanted = queue_.size() + users_.size() + 1;
  if (wanted > queue_.capacity()) {
    queue_.reserve(2 * wanted);
  }
}

void CompletionChannel::push(CompletionQueue* queue) noexcept {
  push_uncounted(queue);
  count_.add();
}

void CompletionChannel::push_uncounted(CompletionQueue* queue) noexcept {
  record_fate(trace::Kind::event_raised, trace::id_of(queue->handle));
  const base::LockGuard guard(mutex_);
  queue_.push_back(queue);
}

/// A queue that is rung is found here, whose count was not written yet: it is taken by who reads that count.
void CompletionChannel::collect() {
  if (index_ == link::kNoWakeChannel) {
    return;
  }
  std::atomic<uint64_t>& rung = table_.channel(index_).rung;
  // A hint: the caller has taken a count off the descriptor by a system call, before which the bit was set.
  if (rung.load(std::memory_order_relaxed) == 0) {
    return;
  }
  const base::LockGuard guard(mutex_);
  for (uint64_t bits = rung.exchange(0, std::memory_order_seq_cst); bits != 0; bits &= bits - 1) {
    // A bit stands for all places that are the same modulo 64: collect_ring() says which of them was meant.
    for (auto place = static_cast<size_t>(std::countr_zero(bits)); place < users_.size(); place += 64) {
      // Alive: who destroys it removes it here first, and this lock is held.
      const auto user = users_[place].lock();
      if (user != nullptr && user->collect_ring()) {
        record_fate(trace::Kind::event_raised, trace::id_of(user->queue()->handle));
        queue_.push_back(user->queue());
      }
    }
  }
}

int CompletionChannel::take(CompletionQueue*& queue, void (*note)(CompletionQueue&)) {
  for (;;) {
    if (const int error = count_.take()) {
      return error;
    }
    collect();
    const base::LockGuard guard(mutex_);
    if (!queue_.empty()) {
      queue = queue_.front();
      queue_.erase(queue_.begin());
      note(*queue);
      return 0;
    }
  }
}

void CompletionChannel::forget(const CompletionQueue* queue) {
  const base::LockGuard guard(mutex_);
  count_.take_back(std::erase(queue_, queue));
}

void CompletionChannel::count_again() {
  collect();
  const base::LockGuard guard(mutex_);
  pollfd counts{count_.descriptor(), POLLIN, 0};
  if (!queue_.empty() && poll(&counts, 1, 0) == 0) {
    for (size_t i = 0; i < queue_.size(); ++i) {
      count_.add();
    }
  }
}

}  // namespace ringbolt::device
