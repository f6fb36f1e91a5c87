#pragma once

#include <atomic>
#include <cstdint>
#include <thread>

#include "base/clock.h"
#include "device/next_look.h"
#include "device/service_ticks.h"
#include "link/mark_set.h"
#include "link/rendezvous.h"

namespace ringbolt::device {

/// The thread that does what no program polls for: what it is asked for, how often it looks at what no bell announces,
/// and when it sleeps, which it does in Rendezvous::dispatch(). What it then does is its owner's: see Duties. It knows
/// completion queues by their places in the wake table only.
///
/// Asking and falling asleep are Dekker's problem: each side writes one word and then reads the other's, and one of
/// them at least has to see what the other wrote.
///
///   who asks      stores what is to be done   full fence   finds or makes the mark or flag; then reads pace_, and
///   wakes
///                                                          if it is lower than what is asked for
///   the thread    pace_ = sleeping            full fence   takes marks and flags, and looks at what they stand for
///
/// The fence is for what is to be done, behind a mark that is found. A mark that is made has to be visible before pace_
/// is read, too: making it and that read are sequentially consistent operations.
/// So either the thread sees the mark, and what was stored before it, in the look that begins now; or who asks sees
/// that the thread has lowered pace_ since, and wakes it. The end of a look only ever raises pace_ from `sleeping`: if
/// somebody was faster, a bell has been rung for it, which cuts the next sleep short.
///
/// Thread-safe where it doesn't say "service thread only".
class ServiceThread {
 public:
  /// Called on the service thread, without locks held. What is thrown for want of memory is tried again soon.
  class Duties {
   public:
    /// Looks at what no program polls for: all completion queues, or those of take_marked().
    virtual ServiceFindings serve(uint64_t now_ns, bool looks_at_all) = 0;
    /// Lets send queues go on that wait for a window to be out of use. True: some still have to wait.
    virtual bool drain_windows() = 0;
    /// Tells what ports shall tell. Also called on the thread that calls ServiceThread::tell_remarks().
    virtual void tell_remarks() = 0;

   protected:
    ~Duties() = default;
  };

  /// All three must outlive it, and whoever asks it for something must end before it does. `clock`: in nanoseconds.
  ServiceThread(link::Rendezvous& rendezvous, link::MarkSet& marks, Duties& duties, uint64_t (*clock)() = base::now_ns)
      : rendezvous_(rendezvous), marks_(marks), duties_(duties), clock_(clock) {}
  /// Not while the thread runs: after stop() or abandon_after_fork(), or before start().
  ~ServiceThread() = default;
  ServiceThread(const ServiceThread&) = delete;
  ServiceThread& operator=(const ServiceThread&) = delete;

  /// Once; from here on `duties` is called. `changes_by_clock`: see ServiceFindings. Throws std::system_error.
  void start(bool changes_by_clock);
  /// The look that is under way, or comes next, is the last one. Wakes nobody.
  void end() { is_stopping_.store(true); }
  /// end(), and waits for it. Not on the service thread.
  void stop();
  /// In a forked child: the thread stayed with the parent, and what is asked for is done by nobody.
  void abandon_after_fork();

  /// Somebody must get on with queued work although no program thread may poll: that completion queue is looked at, at
  /// once unless the thread is at work already.
  void request(uint32_t queue_index) {
    mark(queue_index);
    hurry(Pace::work);
  }
  /// The same for who does not know which completion queue it is.
  void request_all() {
    serves_all_.store(true, std::memory_order_seq_cst);
    std::atomic_thread_fence(std::memory_order_seq_cst);  // as in mark(), of the flag
    hurry(Pace::work);
  }
  /// The same for sends that nothing ails so far: their timers are looked at from time to time. As long as there are
  /// such again and again, this costs nothing.
  void watch_timers(uint32_t queue_index) {
    mark(queue_index);
    hurry(Pace::timers);
  }
  /// A timer runs out then that ServiceFindings::deadline_ns of the next look tells of: there is a look in time.
  void watch_until(uint64_t deadline_ns) {
    if (next_look_.is_too_late_for(deadline_ns)) {
      rendezvous_.wake();
    }
  }
  /// Wakes the thread, whatever it is at. A system call only once a look: the look that clears the flag comes after
  /// what was stored before it was set, for both are exchanges of one word.
  void wake() {
    if (!is_woken_.exchange(true, std::memory_order_seq_cst)) {
      rendezvous_.wake();
    }
  }
  void ask_for_drain() {
    has_drains_.store(true, std::memory_order_seq_cst);
    wake();
  }
  void tell_soon() {
    has_remarks_.store(true, std::memory_order_seq_cst);
    wake();
  }
  /// Tells at once, on the caller's thread, what tell_soon() was called for and nobody has told yet.
  void tell_remarks();

  /// The queue is looked at in the next look, whenever that is. A full fence comes first: what the caller has stored is
  /// seen by who takes a mark that is found here, or one that is made here; and the thread has not yet said that it
  /// sleeps, or hurry() finds that it does. Only those call who have something to wait for.
  void mark(uint32_t queue_index);

  // For the service thread alone.
  /// Calls `use` with each number that is marked; it is not any more then. A number stands for all queues whose index
  /// is the same modulo link::kMarks.
  template <class Use>
  void take_marked(Use use) {
    uint32_t cursor = 0;
    marks_.take(cursor, [&](uint32_t number) {
      use(number);
      return true;
    });
  }
  /// The bell rang, maybe for things that the thread looks at without being asked.
  void note_bell() { has_bell_ = true; }

 private:
  /// How often the thread looks at what no bell announces; the faster, the greater.
  enum class Pace : uint8_t { sleeping, timers, work };

  void hurry(Pace pace) {
    // Not before the mark is made, see above: a plain load on x86, and on ARM64 one that waits for the mark's store.
    for (Pace now = pace_.load(std::memory_order_seq_cst); now < pace;) {
      if (pace_.compare_exchange_weak(now, pace, std::memory_order_seq_cst)) {
        rendezvous_.wake();
        return;
      }
    }
  }
  void run(int tick_ms);
  int serve_once(int tick_ms);
  bool drain();
  int agreed_tick_ms(int tick_ms, uint64_t look_at_ns);

  link::Rendezvous& rendezvous_;
  link::MarkSet& marks_;  // completion queues that somebody wants looked at, modulo link::kMarks
  Duties& duties_;
  uint64_t (*const clock_)();
  std::atomic<bool> is_woken_{false};
  std::atomic<Pace> pace_{Pace::sleeping};
  NextLook next_look_;  // at what has timers of its own
  std::atomic<bool> serves_all_{false};
  std::atomic<bool> has_drains_{false};
  std::atomic<bool> has_remarks_{false};
  std::atomic<bool> is_stopping_{false};
  // Service thread only.
  ServiceTicks ticks_;
  bool has_bell_ = false;
  bool has_run_short_ = false;  // of memory, and said so
  std::thread thread_;
};

}  // namespace ringbolt::device
