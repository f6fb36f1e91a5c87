// The service thread: does what no program polls for.

#include <sys/prctl.h>

#include <algorithm>
#include <new>
#include <utility>

#include "base/asymmetric_fence.h"
#include "base/clock.h"
#include "base/lock_guard.h"
#include "base/say.h"
#include "device/completion_queue.h"
#include "device/context.h"
#include "device/process.h"
#include "device/queue_pair.h"

namespace ringbolt::device {
namespace {

// How often the service thread looks at work that no bell announces: often at first, then ever less often.
constexpr int kFirstTickMs = 1;
constexpr int kLastTickMs = 64;
constexpr int kStateTickMs = 2;
// Sends that a sleeping program makes again and again, and that complete: looked at so often while there are some, and
// for so many looks after the last, so that posting one need not wake the service thread.
constexpr int kWatchTickMs = 8;
constexpr int kMostQuietTicks = 128;

/// Rounded up: a timer that is looked at too early is looked at twice.
int wait_ms(uint64_t now_ns, uint64_t deadline_ns) {
  const uint64_t wait = deadline_ns <= now_ns ? 0 : (deadline_ns - now_ns) / 1'000'000 + 1;
  return static_cast<int>(std::clamp<uint64_t>(wait, kFirstTickMs, kLastTickMs));
}

}  // namespace

/// Those that somebody wants the service thread to look at: they are not marked any more then.
template <class Use>
void Process::each_marked_queue(Use use) {
  uint32_t cursor = 0;
  wakes_.service().take(cursor, [&](uint32_t number) {
    for (uint32_t index = number; index < link::kWakeQueues; index += link::kMarks) {
      if (const auto queue = completion_queue_at(index)) {
        use(*queue);
      }
    }
    return true;
  });
}

void Process::serve() {
  prctl(PR_SET_NAME, "ringbolt");
  int tick_ms = fabric_->verb_faults.has(fault::Subject::state) ? kStateTickMs : -1;
  while (!is_stopping_.load()) {
    try {
      tick_ms = serve_once(tick_ms);
    } catch (const std::bad_alloc&) {
      // No reason to end the program. What is left is looked at soon; a message of a peer that is lost by this ends in
      // the time limits of its queue pair.
      if (!std::exchange(has_run_short_, true)) {
        base::say("ringbolt: out of memory: what peers asked for may end in errors\n");
      }
      tick_ms = kFirstTickMs;
    }
  }
}

/// Waits for something to do, for `tick_ms` at most, and does it. How long to wait then.
int Process::serve_once(int tick_ms) {
  has_bell_ = false;
  rendezvous_->dispatch(tick_ms);
  // Cleared before looking: what is asked for from here on wakes us again.
  pace_.exchange(Pace::sleeping, std::memory_order_seq_cst);  // an exchange sees what was stored before it was set
  is_woken_.exchange(false, std::memory_order_seq_cst);
  std::atomic_thread_fence(std::memory_order_seq_cst);  // pairs with request_service()
  const uint64_t look_at_ns = next_look_.begin();
  const bool is_draining = drain_windows();
  tell_remarks();
  if (const uint64_t due = management_->orphans().next_deadline_ns(); due != UINT64_MAX && due <= base::now_ns()) {
    management_->orphans().on_timer(base::now_ns());
  }
  tick_ms = next_tick_ms(has_bell_ && tick_ms > 0 ? kFirstTickMs : tick_ms);
  tick_ms = agreed_tick_ms(is_draining ? kFirstTickMs : tick_ms, look_at_ns);
  if (tick_ms >= 0) {
    // Who wants more has changed it meanwhile, and woken us.
    Pace asleep = Pace::sleeping;
    pace_.compare_exchange_strong(asleep, tick_ms > kStateTickMs ? Pace::timers : Pace::work,
                                  std::memory_order_seq_cst);
  }
  return tick_ms;
}

/// What is wanted, or what a timer wants that was set since the look began. A look that is still to come is kept,
/// whether its timer stands or not: the next send would only ask for one that is hardly later, and wake us for that.
int Process::agreed_tick_ms(int tick_ms, uint64_t look_at_ns) {
  const uint64_t now = base::now_ns();
  const uint64_t wanted = tick_ms < 0 ? UINT64_MAX : now + static_cast<uint64_t>(tick_ms) * 1'000'000;
  const uint64_t at = next_look_.end(look_at_ns > now ? std::min(wanted, look_at_ns) : wanted);
  return at == UINT64_MAX ? tick_ms : wait_ms(now, at);
}

int Process::next_tick_ms(int last_tick_ms) {
  const bool has_states = fabric_->verb_faults.has(fault::Subject::state);
  if (has_states) {
    look_at_ports();
    each_queue_pair([](QueuePair& qp) { qp.look_at_cable(); });
  }
  const uint64_t now = base::now_ns();
  auto remains = CompletionQueue::Remains::nothing;
  uint64_t deadline = std::min(management_->orphans().next_deadline_ns(), release_late_events(now));
  const auto serve = [&](CompletionQueue& queue) {
    const CompletionQueue::Remains left = queue.serve(now);
    if (left != CompletionQueue::Remains::nothing) {
      mark(queue);
    }
    remains = std::max(remains, left);
  };
  const bool is_on_network = open_network_.load(std::memory_order_acquire) != nullptr;
  if (serves_all_.exchange(false, std::memory_order_seq_cst) || has_states || is_on_network) {
    each_completion_queue([&](CompletionQueue& queue) {
      serve(queue);
      deadline = is_on_network ? std::min(deadline, queue.wire_deadline_ns()) : deadline;
    });
  } else {
    each_marked_queue(serve);
  }
  if (has_states) {
    return kStateTickMs;  // they change by the clock
  }
  const bool is_shuffled = fabric_->verb_faults.shuffle() != nullptr;  // then sends wait by a clock of their own
  if (deadline != UINT64_MAX && !(is_shuffled && remains == CompletionQueue::Remains::work)) {
    return wait_ms(now, deadline);
  }
  switch (remains) {
    case CompletionQueue::Remains::nothing:
      return linger(last_tick_ms);
    case CompletionQueue::Remains::work:
      return kFirstTickMs;
    default:
      break;
  }
  // What was there when nothing was, the last time, has only just begun.
  const bool is_new = last_tick_ms < 0 || quiet_ticks_ != 0;
  quiet_ticks_ = 0;
  return is_new ? kFirstTickMs : std::min(last_tick_ms * 2, kLastTickMs);
}

/// Those that RINGBOLT_SHUFFLE has come late. When the next one is due.
uint64_t Process::release_late_events(uint64_t now_ns) {
  uint64_t next_ns = UINT64_MAX;
  if (fabric_->verb_faults.shuffle() != nullptr) [[unlikely]] {
    const base::LockGuard guard(registry_);
    for (Context* const context : contexts_) {
      next_ns = std::min(next_ns, context->events().release_late(now_ns));
    }
  }
  return next_ns;
}

/// There is nothing to look at; there was, not long ago, and may be again.
int Process::linger(int last_tick_ms) {
  if (last_tick_ms < 0 || ++quiet_ticks_ > kMostQuietTicks) {
    quiet_ticks_ = 0;
    return -1;
  }
  return kWatchTickMs;
}

}  // namespace ringbolt::device
