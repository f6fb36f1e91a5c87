#include "device/completion_queue.h"

#include <sched.h>

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <new>
#include <utility>

#include "base/asymmetric_fence.h"
#include "base/c_border.h"
#include "base/clock.h"
#include "base/cpu_pause.h"
#include "base/lock_guard.h"
#include "device/completion_channel.h"
#include "device/context.h"
#include "device/queue_pair.h"

namespace ringbolt::device {
namespace {

// A program that has not polled for so long has to have room for what comes.
constexpr uint64_t kAbandonedNs = 100'000'000;
// A queue pair takes 64 slots of its lane at a time; one pass more, since the first may look at sends before receives.
constexpr int kPassesForFullLane = link::kLaneSlots / 64 + 1;
// How a poller that finds nothing backs off, counted in empty polls of some 80 ns.
constexpr uint32_t kPollsBetweenChecks = 256;  // of timers and of peers that sleep
// The same for a poller that gives its core away: each time it may be gone for milliseconds, so that polls tell nothing
// of time. A target that sleeps is rung from there.
constexpr uint64_t kNsBetweenChecks = 50'000;
constexpr uint32_t kPollsBetweenYields = 8;  // once the core is given away now and then
// Sends that nobody waits for are looked at once in so many empty polls: each look brings a cache line that the peer
// has just written, and what arrives meanwhile is seen that much later.
constexpr uint32_t kPollsBetweenLooks = 16;
// Polls before that: some 20 us where that suffices; next to nothing while completions come only after a yield, which
// means that the peer needs this very core.
constexpr uint32_t kMostPollsBeforeYield = 256;
constexpr uint32_t kLeastPollsBeforeYield = 8;

}  // namespace

base::Result<std::shared_ptr<CompletionQueue>> CompletionQueue::create(Context& context, uint32_t cqe,
                                                                       CompletionChannel* channel) {
  if (cqe == 0 || cqe > kMaxCqe) {
    return base::fail(EINVAL);
  }
  try {
    std::shared_ptr<CompletionQueue> cq(new CompletionQueue(context, cqe, channel));
    context.process().add(cq);
    if (channel != nullptr) {
      channel->add_user();
    }
    return cq;
  } catch (const std::bad_alloc&) {
    return base::fail(ENOMEM);
  }
}

CompletionQueue::CompletionQueue(Context& context, uint32_t cqe, CompletionChannel* channel)
    : context_(context),
      port_(context.shared_port()),
      faults_(port_->fabric->verb_faults),
      network_(context.network()),
      channel_(channel),
      ring_(cqe),
      capacity_(cqe),
      polls_(fault::Call::poll_cq, port_->live->completion_queues_made.fetch_add(1)) {}

inline bool CompletionQueue::is_halted() const {
  return faults_.has(fault::Subject::state) && port_->is_halted();
}

[[gnu::flatten]] int CompletionQueue::poll(int count, ibv_wc* wc) try {
  if (faults_.has(fault::Subject::call)) [[unlikely]] {
    if (const int error = judge_poll()) {
      errno = error;
      return -1;
    }
  }
  if (network_ != nullptr) {
    const uint64_t now = base::now_ns();
    last_poll_ns_.store(now, std::memory_order_relaxed);
    // First what has come: packets read faster than the program collects what they bring would fill the inboxes.
    {
      const base::LockGuard guard(lock);
      if (const int taken = collect(count, wc); taken != 0) {
        return taken;
      }
    }
    network_->poll(now);
  }
  bool gives_way = false;
  {
    const base::LockGuard guard(lock);
    if (const int taken = collect(count, wc); taken != 0) {
      return taken;
    }
    if (has_overflowed_) {
      return -1;
    }
    ++empty_polls_;
    const bool shares_core = patience_ == kLeastPollsBeforeYield;
    gives_way = empty_polls_ >= patience_ && (shares_core || empty_polls_ % kPollsBetweenYields == 0);
    if (gives_way || empty_polls_ % kPollsBetweenChecks == 0) {
      check_timers();
    }
  }
  if (gives_way) {
    sched_yield();
  } else {
    base::cpu_pause();
  }
  return 0;
} catch (...) {
  return base::caught_minus_one();
}

int CompletionQueue::judge_poll() noexcept try {
  const base::LockGuard guard(lock);
  std::vector<uint32_t> numbers;
  for (const auto* users : {&senders_, &receivers_}) {
    std::ranges::transform(*users, std::back_inserter(numbers), &QueuePair::number);
  }
  return polls_.judge(*port_, numbers);
} catch (const std::bad_alloc&) {
  return 0;
}

int CompletionQueue::collect(int count, ibv_wc* wc) {
  if (is_halted()) [[unlikely]] {
    return 0;
  }
  int taken = count_ != 0 ? take(count, wc) : 0;
  if (taken == 0 && count > 0) {
    out_ = wc;
    out_end_ = wc + count;
    try {
      progress();
    } catch (...) {  // the thread is cancelled: nobody else writes to its array
      out_ = out_end_ = nullptr;
      throw;
    }
    taken = static_cast<int>(out_ - wc);
    out_ = out_end_ = nullptr;
  }
  if (taken != 0) {
    adapt_patience();
  }
  return taken;
}

void CompletionQueue::check_timers() {
  const uint64_t now = base::now_ns();
  if (!is_halted() && now - checked_ns_ >= kNsBetweenChecks) {
    checked_ns_ = now;
    for (QueuePair* qp : senders_) {
      qp->check_timers(now);
    }
  }
}

void CompletionQueue::adapt_patience() {
  if (empty_polls_ > patience_) {
    patience_ = std::max(patience_ / 2, kLeastPollsBeforeYield);
  } else if (empty_polls_ != 0) {
    patience_ = std::min(patience_ * 2, kMostPollsBeforeYield);
  }
  empty_polls_ = 0;
}

int CompletionQueue::take(int count, ibv_wc* wc) {
  const uint32_t taken = std::min(count_, count > 0 ? static_cast<uint32_t>(count) : 0U);
  for (uint32_t i = 0; i < taken; ++i) {
    wc[i] = ring_[head_];
    head_ = head_ + 1 == capacity_ ? 0 : head_ + 1;
  }
  count_ -= taken;
  return static_cast<int>(taken);
}

/// Where memory is short, what is left is looked at by the next poll, or by the service thread in its time.
void CompletionQueue::progress() try {
  if (is_halted()) [[unlikely]] {
    return;
  }
  // A program that polls for one completion at a time, and is sent more meanwhile, must see its own sends complete too:
  // where receives took all the room last time, sends go first.
  const bool sends_go_first = sends_go_first_;
  const ibv_wc* const out = out_;
  if (sends_go_first) {
    progress_senders(true);
  }
  for (QueuePair* qp : receivers_) {
    if (qp->may_receive()) {
      qp->progress_receives(*this);
    }
    if (qp->has_queued_sends()) {
      qp->advance_sends();  // its program may poll this queue alone until an answer comes
    }
  }
  sends_go_first_ = !sends_go_first && out_ != nullptr && out_ == out_end_;
  if (!sends_go_first) {
    const bool is_polled = out_ != nullptr;
    progress_senders(!is_polled || (out_ == out && empty_polls_ % kPollsBetweenLooks == kPollsBetweenLooks - 1));
  }
  if (drops_bells_) {
    drops_bells_ = false;
    want_bells(false);
  }
} catch (const std::bad_alloc&) {
  has_run_short_ = true;
}

void CompletionQueue::progress_senders(bool looks_at_all) {
  for (QueuePair* qp : senders_) {
    if (qp->may_send() && (looks_at_all || qp->has_awaited_sends())) {
      qp->progress_sends(*this);
    }
  }
}

ibv_wc& CompletionQueue::next_in_ring() {
  if (count_ == capacity_) {
    return excess_;
  }
  const uint32_t at = head_ + count_;
  return ring_[at >= capacity_ ? at - capacity_ : at];
}

void CompletionQueue::commit_to_ring(bool is_solicited) {
  if (count_ == capacity_) {
    overflow();
    return;
  }
  ++count_;
  ++committed_;
  if (is_solicited) {
    last_solicited_ = committed_;
  }
  announce_if_armed(is_solicited, committed_);
}

void CompletionQueue::announce_if_armed(bool is_solicited, uint64_t completion) {
  const uint32_t armed = armed_.load(std::memory_order_relaxed);
  if (armed == kArmedNext || (armed == kArmedSolicited && is_solicited)) {
    armed_.store(kNotArmed, std::memory_order_relaxed);
    announced_ = completion;
    drops_bells_ = true;  // not here: the queue pair that completes holds its own lock
    if (channel_ != nullptr) {
      channel_->push(this);
    }
  }
}

void CompletionQueue::overflow() {
  if (has_overflowed_) {
    return;
  }
  has_overflowed_ = true;
  context_.announce(IBV_EVENT_CQ_ERR, handle);
  for (QueuePair* qp : receivers_) {
    qp->fail_from_queue();
  }
  for (QueuePair* qp : senders_) {
    qp->fail_from_queue();
  }
}

void CompletionQueue::request_notification(bool solicited_only) {
  const base::LockGuard guard(lock);
  if (channel_ != nullptr) {
    channel_->make_room();
  }
  if (armed_.load(std::memory_order_relaxed) != kArmedNext) {  // a wider wish is not narrowed
    armed_.store(solicited_only ? kArmedSolicited : kArmedNext, std::memory_order_relaxed);
  }
  want_bells(true);
  base::heavy_fence();
  // What was filled before the peers could see the wish rings no bell: fetch it now. Sends that still run need
  // somebody to watch their timers.
  progress();
  // As with a NIC, whose arming says how far the program has read: what lies there unread raises an event at once,
  // since UCX and perftest do not look again after arming. Only the one completion that has raised an event already
  // does not raise a second one: perftest arms before it reads.
  const uint64_t known = std::max(announced_, committed_ - count_);
  if (committed_ > known) {
    announce_if_armed(last_solicited_ > known, known + 1);
  }
  if (drops_bells_) {
    drops_bells_ = false;
    want_bells(false);
  }
  if (std::ranges::any_of(senders_, [](QueuePair* qp) { return qp->has_unfinished_sends(); })) {
    context_.process().request_service();
  }
}

void CompletionQueue::want_bells(bool wanted) {
  for (QueuePair* qp : receivers_) {
    qp->want_receive_bells(wanted);
  }
  for (QueuePair* qp : senders_) {
    qp->want_send_bells(wanted);
  }
}

int CompletionQueue::resize(uint32_t cqe) {
  const base::LockGuard guard(lock);
  progress();  // what is complete counts, fetched or not
  uint32_t held = count_;
  for (const QueuePair* qp : senders_) {
    // Datagrams complete on their own, if only once the lane to their peer is there: their places are taken.
    held += qp->type() == IBV_QPT_UD ? qp->unfinished_sends() : 0;
  }
  if (cqe == 0 || cqe > kMaxCqe || cqe < held) {
    return EINVAL;
  }
  std::vector<ibv_wc> ring(cqe);
  for (uint32_t i = 0; i < count_; ++i) {
    ring[i] = ring_[(head_ + i) % capacity_];
  }
  ring_ = std::move(ring);
  capacity_ = cqe;
  head_ = 0;
  return 0;
}

CompletionQueue::Remains CompletionQueue::serve(uint64_t now_ns) {
  const base::LockGuard guard(lock);
  // On a network the service thread gets on with things while the program polls, too: then it waits for room.
  is_in_service_ = true;
  is_served_ = now_ns >= last_poll_ns_.load(std::memory_order_relaxed) + kAbandonedNs;
  progress();
  if (!is_halted()) {
    for (QueuePair* qp : senders_) {
      qp->check_timers(now_ns);
    }
  }
  progress();
  is_served_ = is_in_service_ = false;
  if (std::exchange(has_run_short_, false)) {
    return Remains::work;
  }
  auto remains = Remains::nothing;
  for (const QueuePair* qp : senders_) {
    if (qp->has_queued_sends()) {
      return Remains::work;
    }
    if (is_armed() && qp->has_unfinished_sends()) {
      remains = Remains::timers;
    }
  }
  return remains;
}

void CompletionQueue::take_arrived() {
  const base::LockGuard guard(lock);
  is_in_service_ = true;
  for (int pass = 0; pass < kPassesForFullLane; ++pass) {
    progress();
    if (pass != 0 && std::ranges::none_of(receivers_, [](QueuePair* qp) { return qp->may_receive(); })) {
      break;
    }
  }
  is_in_service_ = false;
}

uint64_t CompletionQueue::wire_deadline_ns() {
  const base::LockGuard guard(lock);
  uint64_t deadline = UINT64_MAX;
  for (const QueuePair* qp : senders_) {
    deadline = std::min(deadline, qp->deadline_ns());
  }
  return deadline;
}

void CompletionQueue::attach(QueuePair& qp, bool receives, bool sends) {
  const base::LockGuard guard(lock);
  for (std::vector<QueuePair*>* list : {&receivers_, &senders_}) {
    if (const size_t wanted = list->size() + places_kept_ + 1; list->capacity() < wanted) {
      list->reserve(std::max(wanted, 2 * list->capacity()));
    }
  }
  enter(qp, receives, sends);
}

void CompletionQueue::suspend(const QueuePair& qp) {
  const base::LockGuard guard(lock);
  std::erase(receivers_, &qp);
  std::erase(senders_, &qp);
  ++places_kept_;
}

void CompletionQueue::resume(QueuePair& qp, bool receives, bool sends) {
  const base::LockGuard guard(lock);
  --places_kept_;
  enter(qp, receives, sends);
}

/// There is room. Under lock.
void CompletionQueue::enter(QueuePair& qp, bool receives, bool sends) {
  polls_.look_again();
  // Under the lock: who arms it at the same time comes before, and is seen, or after, and finds the queue pair.
  if (receives) {
    receivers_.push_back(&qp);
    qp.want_receive_bells(is_armed());
  }
  if (sends) {
    senders_.push_back(&qp);
    qp.want_send_bells(is_armed());
  }
}

void CompletionQueue::detach(const QueuePair& qp) {
  const base::LockGuard guard(lock);
  std::erase(receivers_, &qp);
  std::erase(senders_, &qp);
}

bool CompletionQueue::is_attached() {
  const base::LockGuard guard(lock);
  return !receivers_.empty() || !senders_.empty();
}

void CompletionQueue::retire() {
  const base::LockGuard guard(lock);
  armed_.store(kNotArmed);
  if (channel_ != nullptr) {
    std::exchange(channel_, nullptr)->remove_user();
  }
}

bool CompletionQueue::holds_success_of(uint32_t qpn) {
  const base::LockGuard guard(lock);
  for (uint32_t i = 0; i < count_; ++i) {
    const ibv_wc& one = ring_[(head_ + i) % capacity_];
    if (one.qp_num == qpn && one.status == IBV_WC_SUCCESS) {
      return true;
    }
  }
  return false;
}

void CompletionQueue::forget(uint32_t qpn) {
  const base::LockGuard guard(lock);
  uint32_t kept = 0;
  for (uint32_t i = 0; i < count_; ++i) {
    const ibv_wc& wc = ring_[(head_ + i) % capacity_];
    if (wc.qp_num != qpn) {
      ring_[(head_ + kept) % capacity_] = wc;
      ++kept;
    }
  }
  count_ = kept;
}

}  // namespace ringbolt::device
