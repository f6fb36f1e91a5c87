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
// Polls before that: some 20 us; next to nothing while completions come only after a yield: the peer needs this core.
constexpr uint32_t kMostPollsBeforeYield = 256;
constexpr uint32_t kLeastPollsBeforeYield = 8;

}  // namespace

base::Result<std::shared_ptr<CompletionQueue>> CompletionQueue::create(Context& context, uint32_t cqe,
                                                                       CompletionChannel* channel) {
  if (cqe == 0 || cqe > kMaxCqe) {
    return base::fail(base::refused(EINVAL, "ibv_create_cq", [&] { return why_entries_refused(cqe, 0); }));
  }
  link::WakeTable& wakes = context.process().wakes();
  bool is_user = false;
  uint32_t place = 0;
  link::WakeName name;
  std::shared_ptr<CompletionQueue> cq;
  try {
    if (channel != nullptr) {
      place = channel->add_user();
      is_user = true;
    }
    const auto given = wakes.add_queue(channel == nullptr ? link::kNoWakeChannel : channel->index(), place);
    if (given) {
      name = *given;
      cq.reset(new CompletionQueue(context, cqe, channel, place, name));
      context.process().add(cq);
      if (channel != nullptr) {
        channel->set_user(place, cq);
      }
      return cq;
    }
  } catch (const std::bad_alloc&) {  // what was given is taken back below
  }
  if (cq == nullptr && name.generation != 0) {
    wakes.remove_queue(name);
  }
  if (is_user) {
    channel->remove_user(place, false);
  }
  return base::fail(ENOMEM);
}

CompletionQueue::CompletionQueue(Context& context, uint32_t cqe, CompletionChannel* channel, uint32_t channel_place,
                                 link::WakeName name)
    : context_(context),
      port_(context.shared_port()),
      faults_(port_->fabric->verb_faults),
      network_(context.network()),
      wakes_(context.process().wakes()),
      name_(name),
      entry_(wakes_.queue(name.index)),
      channel_(channel),
      channel_place_(channel_place),
      channel_number_(channel == nullptr ? 0 : channel->number()),
      channel_descriptor_(channel == nullptr ? -1 : channel->descriptor()),
      ring_(cqe),
      capacity_(cqe),
      busy_(entry_),
      polls_(fault::Call::poll_cq, port_->live->completion_queues_made.fetch_add(1)),
      shuffle_(faults_.shuffle() == nullptr ? nullptr
                                            : std::make_unique<CompletionShuffle>(*faults_.shuffle(), polls_.number())),
      sleepers_(channel == nullptr ? nullptr : channel->waiters()) {}

CompletionQueue::~CompletionQueue() {
  wakes_.remove_queue(name_);
  if (receivers_.uses_marks()) {
    wakes_.remove_set(receiver_set_);
  }
}

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
  if (network_ != nullptr) {
    if (const int taken = poll_network(count, wc); taken != 0) {
      return taken;
    }
  }
  bool gives_way = false;
  {
    const base::LockGuard guard(lock);
    if (const int taken = network_ == nullptr ? collect(count, wc) : 0; taken != 0) {
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
  for (const ReadyList* const users : {&senders_, &receivers_}) {
    users->each([&](const QueuePair& qp) { numbers.push_back(qp.number()); });
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
      advance();
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
    senders_.each_marked([now](QueuePair& qp) { qp.check_timers(now); });
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
  held_.store(count_, std::memory_order_relaxed);
  return static_cast<int>(taken);
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

/// Where memory is short, what is left is looked at by the next poll, or by the service thread in its time.
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
    progress_senders(!is_polled || (out_ == out && empty_polls_ % kPollsBetweenLooks == kPollsBetweenLooks - 1));
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
  if (receivers_.has_one()) [[likely]] {
    receivers_.each([this](QueuePair& qp) RINGBOLT_REQUIRES(lock) { progress_receiver(qp); });
  } else if (receivers_.uses_marks() && !looks_at_all) {
    progress_marked_receivers();
  } else {
    receivers_.in_turn([this](QueuePair& qp) RINGBOLT_REQUIRES(lock) { progress_receiver(qp); });
  }
}

inline void CompletionQueue::progress_marked_receivers() {
  // First: what has come to one that is struck here is found by its mark below, before the program goes to sleep.
  if (const std::optional<uint32_t> struck = busy_.age()) [[unlikely]] {
    receivers_.mark(*struck);
  }
  const auto has_something = [](const QueuePair& qp) { return qp.may_receive() || qp.has_queued_sends(); };
  if (busy_.get()) {
    QueuePair* const qp = receivers_.at(*busy_.get());
    if (qp != nullptr && has_something(*qp)) {
      busy_.note_use();
      progress_receiver(*qp);
    }
  }
  if (!receivers_.has_marked()) [[likely]] {
    return;
  }
  uint32_t found = 0;
  uint32_t n_found = 0;
  bool is_room_short = false;  // for one that is marked
  receivers_.take_marked(
      [&]() RINGBOLT_REQUIRES(lock) {
        is_room_short = !has_room();
        return !is_room_short;
      },
      [&](uint32_t place) RINGBOLT_REQUIRES(lock) {
        QueuePair& qp = *receivers_.at(place);
        if (has_something(qp)) {  // else it was struck, and is marked for this look alone
          found = place;
          ++n_found;
        }
        progress_receiver(qp);
        return qp.may_receive_more() || qp.has_queued_sends();
      });
  if (is_room_short) {
    if (const std::optional<uint32_t> struck = busy_.strike()) {
      receivers_.mark(*struck);  // all are to have their turns
    }
  } else if (n_found == 1 && busy_.note_found(found)) {
    receivers_.clear(found);  // what it may have left, each poll looks at; its own mark must not look like another's
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
  record_made([this]() RINGBOLT_REQUIRES(lock) -> const ibv_wc& { return next_in_ring(); });
  ++count_;
  held_.store(count_, std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_release);  // before the send counts as done: see may_overflow_with()
  ++committed_;
  if (is_solicited) {
    last_solicited_ = committed_;
  }
  if (notify() != link::Notify::nothing) {
    announce(is_solicited, committed_);
  }
}

void CompletionQueue::overflow() {
  if (has_overflowed_) {
    return;
  }
  has_overflowed_ = true;
  context_.announce(IBV_EVENT_CQ_ERR, handle);
  for (const ReadyList* const users : {&receivers_, &senders_}) {
    users->each([](QueuePair& qp) { qp.fail_from_queue(); });
  }
}

int CompletionQueue::resize(uint32_t cqe) {
  const base::LockGuard guard(lock);
  progress();  // what is complete counts, fetched or not
  uint32_t held = count_;
  senders_.each_marked([&](const QueuePair& qp) {
    // Datagrams complete on their own, if only once the lane to their peer is there: their places are taken.
    held += qp.type() == IBV_QPT_UD ? qp.unfinished_sends() : 0;
  });
  if (cqe == 0 || cqe > kMaxCqe || cqe < held) {
    return base::refused(EINVAL, "ibv_resize_cq", [&] { return why_entries_refused(cqe, held); });
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
    senders_.each_marked([now_ns](QueuePair& qp) { qp.check_timers(now_ns); });
  }
  progress();
  wait_for_room();
  is_served_ = is_in_service_ = false;
  auto remains = std::exchange(has_run_short_, false) ? Remains::work : Remains::nothing;
  senders_.each_marked([&](const QueuePair& qp) RINGBOLT_REQUIRES(lock) {
    if (qp.has_queued_sends() || (shuffle_ != nullptr && qp.has_unfinished_sends())) {
      remains = Remains::work;
    } else if ((is_armed() && qp.has_unfinished_sends()) || count_ + qp.unfinished_sends() > capacity_) {
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
    receivers_.each([&](const QueuePair& qp) { may_receive = may_receive || qp.may_receive(); });
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
  const uint32_t before = entry_.notify.exchange(name_.generation << link::kNotifyBits);
  if (!std::exchange(is_retired_, true) && channel_ != nullptr) {
    channel_->remove_user(channel_place_, link::notify_of(before) == link::Notify::rung);
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
      ring_[(head_ + kept++) % capacity_] = wc;
    }
  }
  count_ = kept;
  held_.store(count_, std::memory_order_relaxed);
}

}  // namespace ringbolt::device
