#include "device/completion_queue.h"

#include <sched.h>

#include <algorithm>
#include <cerrno>
#include <new>
#include <utility>

#include "base/asymmetric_fence.h"
#include "base/c_border.h"
#include "base/clock.h"
#include "base/cpu_pause.h"
#include "base/lock_guard.h"
#include "device/completion_channel.h"
#include "device/context.h"
#include "device/explanations.h"
#include "device/queue_pair.h"
#include "device/recording.h"

namespace ringbolt::device {
namespace {

// A program that has not polled for so long has to have room for what comes.
// In nanoseconds: far longer than a scheduler keeps a thread that polls off its core.
constexpr uint64_t kAbandonedNs = 100'000'000;
// A queue pair takes 64 slots of its lane at a time; one pass more, since the first may look at sends before receives.
constexpr int kPassesForFullLane = link::kLaneSlots / 64 + 1;

}  // namespace

base::Result<std::shared_ptr<CompletionQueue>> CompletionQueue::create(Context& context, uint32_t cqe,
                                                                       CompletionChannel* channel) {
  if (cqe == 0 || cqe > kMaxCqe) {
    return base::fail(base::refused(EINVAL, "ibv_create_cq", [&] { return why_entries_refused(cqe, 0); }));
  }
  std::shared_ptr<CompletionQueue> cq;
  try {
    cq.reset(new CompletionQueue(context, cqe, channel));
    context.process().add(cq);
  } catch (const std::bad_alloc&) {
    return base::fail(ENOMEM);
  }
  cq->wake_entry_.join_channel(cq);
  return cq;
}

CompletionQueue::CompletionQueue(Context& context, uint32_t cqe, CompletionChannel* channel)
    : context_(context),
      port_(context.shared_port()),
      faults_(port_->fabric->verb_faults),
      network_(context.network()),
      wake_entry_(context.process().wakes(), channel, this),
      unread_(cqe),
      receivers_(context.process().wakes(), wake_entry_),
      polls_(fault::Call::poll_cq, port_->live->completion_queues_made.fetch_add(1)),
      shuffle_(faults_.shuffle() == nullptr
                   ? nullptr
                   : std::make_unique<CompletionShuffle>(*faults_.shuffle(), polls_.number())) {}

inline bool CompletionQueue::is_halted() const { return faults_.has(fault::Subject::state) && port_->is_halted(); }

[[gnu::flatten]] int CompletionQueue::poll(int count, ibv_wc* wc) try {
  if (faults_.has(fault::Subject::call)) [[unlikely]] {
    if (const int error = judge_poll()) {
      errno = error;
      return -1;
    }
    if (shuffle_ != nullptr && holds_back()) {
      sched_yield();
      return 0;
    }
  }
  // Completions that lie here already are given out first: see collect(), which poll_network() begins with.
  if (network_ != nullptr) {
    if (const int taken = poll_network(count, wc); taken != 0) {
      return taken;
    }
  }
  PollBackoff::Step step{};
  {
    const base::LockGuard guard(lock);
    if (const int taken = network_ == nullptr ? collect(count, wc) : 0; taken != 0) {
      return taken;
    }
    if (unread_.has_overflowed()) {
      return -1;
    }
    step = backoff_.note_empty();
    if (step.looks_at_timers) {
      check_timers();
    }
  }
  if (step.gives_core_away) {
    sched_yield();
  } else {
    base::cpu_pause();
  }
  return 0;
} catch (...) {
  return base::caught_minus_one();
}

/// First what has come: packets read faster than the program collects what they bring would fill the inboxes.
[[gnu::noinline]] int CompletionQueue::poll_network(int count, ibv_wc* wc) {
  const uint64_t now = base::now_ns();
  last_poll_ns_.store(now, std::memory_order_relaxed);
  {
    const base::LockGuard guard(lock);
    look_ns_ = now;
    if (const int taken = collect(count, wc); taken != 0) {
      return taken;
    }
  }
  if (!network_->poll(now)) {
    return 0;
  }
  const base::LockGuard guard(lock);
  return collect(count, wc);
}

int CompletionQueue::judge_poll() noexcept try {
  const base::LockGuard guard(lock);
  std::vector<uint32_t> numbers;
  for (const ReadyList* const users : {&senders_, &receivers_.all()}) {
    users->each([&](const QueuePair& qp) { numbers.push_back(qp.number()); });
  }
  return polls_.judge(*port_, numbers);
} catch (const std::bad_alloc&) {
  return 0;
}

/// What lies here comes first, and alone: completions keep their order.
int CompletionQueue::collect(int count, ibv_wc* wc) {
  if (is_halted()) [[unlikely]] {
    return 0;
  }
  int taken = unread_.is_empty() ? 0 : unread_.take(count, wc);
  if (taken == 0 && count > 0) {
    out_ = wc;
    out_end_ = wc + count;
    try {
      advance();
    } catch (...) {  // the thread is cancelled: nobody else writes to its array
      out_ = out_end_ = nullptr;
      throw;
    }
    taken = static_cast<int>(out_ - wc);
    out_ = out_end_ = nullptr;
  }
  if (taken != 0) {
    backoff_.note_found();
  }
  return taken;
}

void CompletionQueue::check_timers() {
  const uint64_t now = base::now_ns();
  if (!is_halted() && backoff_.is_check_due(now)) {
    senders_.each_marked([now](QueuePair& qp) { qp.check_timers(now); });
  }
}

bool CompletionQueue::try_progress() {
  if (!lock.try_lock()) {
    return false;
  }
  const base::LockGuard guard(lock, base::kAdoptLock);
  progress();
  return !has_run_short_;
}

void CompletionQueue::progress(bool looks_at_all) {
  if (!is_halted()) [[likely]] {
    advance(looks_at_all);
  }
}

/// Where memory is short, what is left is looked at by the next poll, or by the service thread in its time; likewise
/// where the thread is cancelled: those that it did not get to stay marked (ReadyList::take_marked).
void CompletionQueue::advance(bool looks_at_all) try {
  // A program that polls for few completions at a time, and is sent more meanwhile, must see its own sends complete
  // too: where there was no room left last time, sends go first.
  const bool sends_go_first = sends_go_first_;
  const ibv_wc* const out = out_;
  if (sends_go_first) {
    progress_senders(true);
  }
  progress_receivers(looks_at_all);
  const bool is_polled = out_ != nullptr;
  if (!sends_go_first) {
    progress_senders(!is_polled || (out_ == out && backoff_.looks_at_all_sends()));
  }
  sends_go_first_ = is_polled && out_ == out_end_ && !sends_go_first;
  if (is_polled && out_ == out_end_) {
    list(!sends_go_first).end_turn();  // those that had all the room
  }
} catch (const std::bad_alloc&) {
  has_run_short_ = true;
}

inline void CompletionQueue::progress_receiver(QueuePair& qp) {
  if (qp.may_receive()) {
    qp.progress_receives(*this);
  }
  if (qp.has_queued_sends()) {
    qp.advance_sends();  // its program may poll this queue alone until an answer comes
  }
}

inline void CompletionQueue::progress_receivers(bool looks_at_all) {
  const auto progress_one = [this](QueuePair& qp) RINGBOLT_REQUIRES(lock) { progress_receiver(qp); };
  const ReadyList& all = receivers_.all();
  if (all.has_one()) [[likely]] {
    all.each(progress_one);
  } else if (all.uses_marks() && !looks_at_all) {
    receivers_.progress_marked([this]() RINGBOLT_REQUIRES(lock) { return has_room(); },
                               [](const QueuePair& qp) { return qp.may_receive() || qp.has_queued_sends(); },
                               progress_one,
                               [](QueuePair& qp) { return qp.may_receive_more() || qp.has_queued_sends(); });
  } else {
    all.in_turn(progress_one);
  }
}

inline void CompletionQueue::progress_sender(QueuePair& qp, bool looks_at_all, bool clears_mark) {
  const bool may_send = qp.may_send();
  if (may_send ? looks_at_all || qp.has_awaited_sends() : clears_mark) {
    qp.progress_sends(*this);
  }
}

void CompletionQueue::progress_senders(bool looks_at_all) {
  if (senders_.has_one()) [[likely]] {
    senders_.each([=, this](QueuePair& qp) RINGBOLT_REQUIRES(lock) { progress_sender(qp, looks_at_all, false); });
  } else if (senders_.uses_marks()) {
    senders_.marked_in_turn([=, this](QueuePair& qp)
                                RINGBOLT_REQUIRES(lock) { progress_sender(qp, looks_at_all, true); });
  } else {
    senders_.in_turn([=, this](QueuePair& qp) RINGBOLT_REQUIRES(lock) { progress_sender(qp, looks_at_all, false); });
  }
}

ibv_wc& CompletionQueue::next_unread() { return unread_.next(); }

void CompletionQueue::commit_unread(bool is_solicited) {
  if (unread_.is_full()) {
    if (unread_.note_overflow()) {
      overflow();
    }
    return;
  }
  record_made([this]() RINGBOLT_REQUIRES(lock) -> const ibv_wc& { return unread_.next(); });
  unread_.commit(is_solicited);
  if (wake_entry_.notify() != link::Notify::nothing) {
    events_.announce(is_solicited, unread_.committed());
  }
}

/// Under the lock, in the middle of some queue pair's progress: fail_from_queue() takes no lock of a queue pair.
void CompletionQueue::overflow() {
  context_.announce(IBV_EVENT_CQ_ERR, handle);
  for (const ReadyList* const users : {&receivers_.all(), &senders_}) {
    users->each([](QueuePair& qp) { qp.fail_from_queue(); });
  }
}

int CompletionQueue::resize(uint32_t cqe) {
  const base::LockGuard guard(lock);
  progress();  // what is complete counts, fetched or not
  uint32_t held = unread_.count();
  senders_.each_marked([&](const QueuePair& qp) {
    // Datagrams complete on their own, if only once the lane to their peer is there: their places are taken.
    // The lock keeps `done` where it is, so that what is unfinished can only grow meanwhile.
    held += qp.type() == IBV_QPT_UD ? qp.unfinished_sends() : 0;
  });
  if (cqe == 0 || cqe > kMaxCqe || cqe < held) {
    return base::refused(EINVAL, "ibv_resize_cq", [&] { return why_entries_refused(cqe, held); });
  }
  unread_.resize(cqe);
  return 0;
}

Remains CompletionQueue::serve(uint64_t now_ns) {
  const base::LockGuard guard(lock);
  // On a network the service thread gets on with things while the program polls, too: then it waits for room.
  // `is_served_` lets it overflow the queue, as a card would.
  is_in_service_ = true;
  is_served_ = now_ns >= last_poll_ns_.load(std::memory_order_relaxed) + kAbandonedNs;
  progress();
  if (!is_halted()) {
    senders_.each_marked([&](QueuePair& qp) RINGBOLT_REQUIRES(lock) {
      try {
        qp.check_timers(now_ns);
      } catch (const std::bad_alloc&) {
        has_run_short_ = true;  // the others' timers are looked at all the same
      }
    });
  }
  progress();
  wait_for_room();
  is_served_ = is_in_service_ = false;
  auto remains = std::exchange(has_run_short_, false) ? Remains::work : Remains::nothing;
  senders_.each_marked([&](const QueuePair& qp) RINGBOLT_REQUIRES(lock) {
    if (qp.has_queued_sends() || (shuffle_ != nullptr && qp.has_unfinished_sends())) {
      remains = Remains::work;
    } else if ((is_armed() && qp.has_unfinished_sends()) ||
               unread_.count() + qp.unfinished_sends() > unread_.capacity()) {
      // Somebody sleeps on them, or there are more than this has room for: nobody may poll, and it is to overflow then.
      remains = std::max(remains, Remains::timers);
    }
  });
  return remains;
}

/// Sends that found no room go on when a peer says that there is some, while the program sleeps.
void CompletionQueue::wait_for_room() {
  bool has_queued = false;
  senders_.each_marked([&](const QueuePair& qp) { has_queued = has_queued || qp.has_queued_sends(); });
  const bool waits = has_queued && is_armed();
  if (!waits && !waits_for_room_) {
    return;
  }
  senders_.each([waits](QueuePair& qp) { qp.wait_for_room(waits && qp.has_queued_sends()); });
  waits_for_room_ = waits;
  if (waits) {
    base::heavy_fence();
    progress();
  }
}

void CompletionQueue::take_arrived() {
  const base::LockGuard guard(lock);
  is_in_service_ = true;
  for (int pass = 0; pass < kPassesForFullLane; ++pass) {
    progress(true);
    bool may_receive = false;
    receivers_.all().each([&](const QueuePair& qp) { may_receive = may_receive || qp.may_receive(); });
    if (pass != 0 && !may_receive) {
      break;
    }
  }
  is_in_service_ = false;
}

uint64_t CompletionQueue::wire_deadline_ns() {
  const base::LockGuard guard(lock);
  uint64_t deadline = UINT64_MAX;
  senders_.each([&](const QueuePair& qp) { deadline = std::min(deadline, qp.deadline_ns()); });
  return deadline;
}

void CompletionQueue::retire() {
  const base::LockGuard guard(lock);
  events_.retire();
}

bool CompletionQueue::holds_success_of(uint32_t qpn) {
  const base::LockGuard guard(lock);
  return unread_.holds_success_of(qpn);
}

void CompletionQueue::forget(uint32_t qpn) {
  const base::LockGuard guard(lock);
  unread_.forget(qpn);
}

}  // namespace ringbolt::device
