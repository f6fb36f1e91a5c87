#include "device/service_thread.h"

#include <sys/prctl.h>

#include <algorithm>
#include <new>
#include <utility>

#include "base/assert.h"
#include "base/say.h"
#include "base/start_thread.h"

namespace ringbolt::device {

void ServiceThread::start(bool changes_by_clock) {
  const int tick_ms = changes_by_clock ? ServiceTicks::kClockMs : ServiceTicks::kNoTick;
  thread_ = base::start_thread([this, tick_ms] { run(tick_ms); });
}

void ServiceThread::stop() {
  RINGBOLT_ASSERT(thread_.joinable());
  end();
  rendezvous_.wake();
  thread_.join();
}

void ServiceThread::abandon_after_fork() {
  if (thread_.joinable()) {
    thread_.detach();  // it did not come along into this child
  }
}

void ServiceThread::mark(uint32_t queue_index) {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  const uint32_t number = queue_index % link::kMarks;
  if (!marks_.is_found(number)) {
    marks_.mark(number);
  }
}

void ServiceThread::tell_remarks() {
  if (!has_remarks_.exchange(false, std::memory_order_seq_cst)) {
    return;
  }
  try {
    duties_.tell_remarks();
  } catch (const std::bad_alloc&) {
    has_remarks_.store(true, std::memory_order_seq_cst);
    throw;
  }
}

void ServiceThread::run(int tick_ms) {
  prctl(PR_SET_NAME, "ringbolt");
  while (!is_stopping_.load()) {
    try {
      tick_ms = serve_once(tick_ms);
    } catch (const std::bad_alloc&) {
      // No reason to end the program. What is left is looked at soon, and so is what was asked for and got lost by
      // this; a message of a peer that is lost ends in the time limits of its queue pair.
      if (!std::exchange(has_run_short_, true)) {
        base::say("ringbolt: out of memory: what peers asked for may end in errors\n");
      }
      serves_all_.store(true, std::memory_order_seq_cst);
      tick_ms = ServiceTicks::kFirstMs;
    }
  }
}

/// Waits for something to do, for `tick_ms` at most, and does it. How long to wait then.
int ServiceThread::serve_once(int tick_ms) {
  has_bell_ = false;
  rendezvous_.dispatch(tick_ms);
  // Cleared before looking: what is asked for from here on wakes us again.
  pace_.exchange(Pace::sleeping, std::memory_order_seq_cst);  // an exchange sees what was stored before it was set
  is_woken_.exchange(false, std::memory_order_seq_cst);
  std::atomic_thread_fence(std::memory_order_seq_cst);  // pairs with the one in mark(), and in request_all()
  const uint64_t look_at_ns = next_look_.begin();
  const bool is_draining = drain();
  const ServiceFindings found = duties_.serve(clock_(), serves_all_.exchange(false, std::memory_order_seq_cst));
  tell_remarks();  // last: it may fail for want of memory, and others have waited longer
  tick_ms = ticks_.next(has_bell_ && tick_ms > 0 ? ServiceTicks::kFirstMs : tick_ms, found, clock_());
  tick_ms = agreed_tick_ms(is_draining ? ServiceTicks::kFirstMs : tick_ms, look_at_ns);
  if (tick_ms >= 0) {
    // Who wants more has changed it meanwhile, and woken us.
    Pace asleep = Pace::sleeping;
    pace_.compare_exchange_strong(asleep, tick_ms > ServiceTicks::kClockMs ? Pace::timers : Pace::work,
                                  std::memory_order_seq_cst);
  }
  return tick_ms;
}

/// True: windows are still in use, and nobody tells when they no longer are.
bool ServiceThread::drain() {
  if (!has_drains_.exchange(false, std::memory_order_seq_cst)) {
    return false;
  }
  bool is_draining = true;
  try {
    is_draining = duties_.drain_windows();
  } catch (const std::bad_alloc&) {
    has_drains_.store(true, std::memory_order_seq_cst);  // send queues wait for it, without a time limit of their own
    throw;
  }
  if (is_draining) {
    has_drains_.store(true, std::memory_order_seq_cst);
  }
  return is_draining;
}

/// What is wanted, or what a timer wants that was set since the look began. A look that is still to come is kept,
/// whether its timer stands or not: the next send would only ask for one that is hardly later, and wake us for that.
int ServiceThread::agreed_tick_ms(int tick_ms, uint64_t look_at_ns) {
  const uint64_t now = clock_();
  const uint64_t wanted = tick_ms < 0 ? UINT64_MAX : now + static_cast<uint64_t>(tick_ms) * 1'000'000;
  const uint64_t at = next_look_.end(look_at_ns > now ? std::min(wanted, look_at_ns) : wanted);
  return at == UINT64_MAX ? tick_ms : ServiceTicks::until(now, at);
}

}  // namespace ringbolt::device
