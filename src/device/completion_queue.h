#pragma once

#include <infiniband/verbs.h>

#include <atomic>
#include <cstdint>
#include <memory>

#include "base/adaptive_mutex.h"
#include "base/result.h"
#include "device/call_stream.h"
#include "device/completion_channel.h"
#include "device/completion_events.h"
#include "device/completion_ring.h"
#include "device/completion_shuffle.h"
#include "device/half_locks.h"
#include "device/poll_backoff.h"
#include "device/ready_list.h"
#include "device/receiver_list.h"
#include "device/remains.h"
#include "device/wake_entry.h"
#include "link/wake_table.h"

namespace ringbolt::device {

class Context;
class QueuePair;
class Network;
class VerbFaults;
struct Port;

/// A completion queue. Completions are put in only by its own progress, under its own lock: by poll(), or by the
/// service thread when nobody polls. Thread-safe.
/// Its lock comes before those of queue pairs, and after that of contexts. It is held while queue pairs are brought on.
/// It owns no queue pair: each detaches itself before it ends, under the lock, so that whom the lists name is alive
/// while the lock is held.
class CompletionQueue {
 public:
  /// EINVAL unless 1 <= cqe <= kMaxCqe. `channel` may be null and must outlive the queue.
  /// ENOMEM too. What is made belongs to its caller and, until Process::remove(), to the process. `context` must
  /// outlive the program's part of it, retire() included.
  static base::Result<std::shared_ptr<CompletionQueue>> create(Context& context, uint32_t cqe,
                                                               CompletionChannel* channel);
  CompletionQueue(const CompletionQueue&) = delete;
  CompletionQueue& operator=(const CompletionQueue&) = delete;

  void* handle = nullptr;  ///< the C object, for events
  base::AdaptiveMutex lock RINGBOLT_ACQUIRED_BEFORE(send_half, receive_half);

  uint32_t capacity() const RINGBOLT_NOT_ANALYSED { return unread_.capacity(); }  // which may be asked without the lock
  /// What it holds and so many sends that are to complete are more than it has room for. Without the lock: a send that
  /// the caller has already seen done is counted among what is held.
  bool may_overflow_with(uint32_t unfinished_sends) const RINGBOLT_NOT_ANALYSED {  // this, too, may be asked without it
    return unread_.may_overflow_with(unfinished_sends);
  }
  Context& context() const { return context_; }

  /// Up to `count` completions; their number, or -1 after an overflow.
  /// Any thread; one at a time is in there, others wait for its lock. Never sleeps, but may give its core away. errno
  /// tells why it returned -1 where a fault or want of memory made it.
  int poll(int count, ibv_wc* wc);
  /// Arms the queue: one event for the next completion (or the next solicited or failed one). Throws std::bad_alloc,
  /// and nothing has changed.
  void request_notification(bool solicited_only);
  /// EINVAL when the entries inside do not fit.
  /// Sends of UD that are not complete count as well. Throws std::bad_alloc, and nothing has changed.
  int resize(uint32_t cqe);

  /// Relaxed: whoever has something to tell makes a full fence first (docs/formats/wake-table.md). A word that peers
  /// write, too.
  bool is_armed() const { return wake_entry_.is_armed(); }
  /// What peers know it by, and where it announces itself: number and descriptor of its channel, or 0 and -1.
  link::WakeName wake_name() const { return wake_entry_.name(); }
  uint32_t channel_number() const { return wake_entry_.channel_number(); }
  int channel_descriptor() const { return wake_entry_.channel_descriptor(); }
  /// What the service thread does: brings every attached queue pair on.
  /// Service thread only. What is left that no bell announces; see Remains.
  Remains serve(uint64_t now_ns);
  /// Takes in what has come, full lanes to their ends, as far as the queue has room. Before a queue pair ends, and
  /// before a peer is known to be gone: what it received and sent until then is told first, whichever queue pair's it
  /// was. On a card a send to a peer that is gone fails only after its retries, long after everything else was told.
  void take_arrived();
  /// Brings its queue pairs on, for a program that polls another queue. False: another thread is at it, and may have
  /// seen less.
  bool try_progress();
  /// When the earliest timer of its queue pairs on the network runs out.
  /// CLOCK_MONOTONIC; 0: what found no room is to be tried again; UINT64_MAX: none runs. Waits for the lock.
  uint64_t wire_deadline_ns();

  // For queue pairs, which have a place here for their receives and one for their sends.
  /// The place. Throws std::bad_alloc, and nothing has changed.
  uint32_t attach(QueuePair& qp, bool receives);
  /// The queue pair is not touched any more once this has returned: it waits for whoever is at it.
  void detach(uint32_t place, bool receives);
  /// The same, but the place is kept for resume(), which can't fail.
  void suspend(uint32_t place, bool receives);
  void resume(QueuePair& qp, uint32_t place, bool receives);
  /// Some queue pair is: ibv_destroy_cq refuses then.
  bool is_attached();
  /// There may be something to do for the receives, or the sends, of the queue pair at that place. Thread-safe, without
  /// locks; what there is to do must be visible before.
  void mark_receiver(uint32_t place);
  void mark_sender(uint32_t place);
  /// It has sends under way, or none any more. Under the queue pair's lock for sending: a post between the last
  /// completion and the clearing of the mark is not missed.
  void note_sending(uint32_t place) { senders_.mark_unless_marked(place); }
  void note_sends_over(uint32_t place) { senders_.clear(place); }
  /// Something can be completed: raises the event. Not under `lock`: its completion comes later. False: it is not what
  /// is waited for.
  bool ring() { return wake_entry_.ring(); }
  /// A peer is gone, perhaps in the middle of raising an event.
  void on_peer_gone();
  /// No further announcement: it is being destroyed.
  /// The channel may end after it. Further calls have no effect.
  void retire();
  /// It is the service thread that gets on with things, not the program's poll.
  bool is_in_service() const RINGBOLT_REQUIRES(lock) { return is_in_service_; }
  /// Whether there is room for one more completion. A poller has as much room as it asked for; the service thread acts
  /// for a program that does not poll, and there one entry too many is the program's error.
  bool has_room() const RINGBOLT_REQUIRES(lock) {
    return out_ != nullptr ? out_ != out_end_ : !unread_.is_full() || is_served_;
  }
  /// Where the next completion is to be written, all fields of it; then commit(). It goes straight into the poller's
  /// array while that has room: one packet that fills a gap may complete many messages. Only from within this queue's
  /// progress.
  ibv_wc& next() RINGBOLT_REQUIRES(lock) { return has_room_for_poller() ? *out_ : next_unread(); }
  /// One completion too many ends the queue and its queue pairs.
  void commit(ibv_wc_status status, bool is_solicited) RINGBOLT_REQUIRES(lock) {
    const bool counts_as_solicited = is_solicited || status != IBV_WC_SUCCESS;
    if (!has_room_for_poller()) {
      return commit_unread(counts_as_solicited);
    }
    ++out_;
    if (wake_entry_.notify() != link::Notify::nothing) [[unlikely]] {
      events_.announce(counts_as_solicited, unread_.committed());
    }
  }
  /// The place in the poller's array for the next completion; null: nobody polls. From within this queue's progress.
  const ibv_wc* poller_place() const RINGBOLT_REQUIRES(lock) { return out_; }
  /// When this poll began, so that queue pairs need not read the clock: what they have to measure is longer than a
  /// poll. 0: nobody has read it. From within this queue's progress.
  uint64_t look_ns() const RINGBOLT_REQUIRES(lock) { return out_ != nullptr ? look_ns_ : 0; }
  /// Whether a good completion of the queue pair lies here that nobody has polled.
  bool holds_success_of(uint32_t qpn);
  /// A program polls it, as of just now. For ports on a network only.
  bool is_polled_at(uint64_t now_ns) const {
    return now_ns < last_poll_ns_.load(std::memory_order_relaxed) + kPollerNs;
  }
  // Relaxed is enough for `last_poll_ns_`: nothing is read by it, and who takes a poller for one that is gone, or the
  // other way round, wakes somebody in vain, or has the service thread look a little later (Network::look_soon).
  static constexpr uint64_t kPollerNs = 20'000;  ///< somebody polls if he did so this short a time ago
  // For RINGBOLT_EXPLAIN.
  Waiters& pollers() { return pollers_; }
  /// Of its channel; null: it has none.
  const Waiters* sleepers() const { return wake_entry_.sleepers(); }
  /// Drops the completions of a queue pair that is being destroyed or reset.
  /// When it is detached: no new ones come.
  void forget(uint32_t qpn);

 private:
  CompletionQueue(Context& context, uint32_t cqe, CompletionChannel* channel);
  ReadyList& list(bool receives) RINGBOLT_REQUIRES(lock) { return receives ? receivers_.all() : senders_; }
  void use_marks(bool receives) RINGBOLT_REQUIRES(lock);
  bool has_room_for_poller() const RINGBOLT_REQUIRES(lock) { return out_ != out_end_; }
  ibv_wc& next_unread() RINGBOLT_REQUIRES(lock);  // out of line: most completions go to the poller
  void commit_unread(bool is_solicited) RINGBOLT_REQUIRES(lock);
  /// Up to `count` completions, of those that lie here or else of what progress brings.
  int collect(int count, ibv_wc* wc) RINGBOLT_REQUIRES(lock);
  /// Takes packets in. How many completions there were before, or after it.
  int poll_network(int count, ibv_wc* wc) RINGBOLT_EXCLUDES(lock);
  /// `looks_at_all`: at those, too, that nobody has marked.
  void progress(bool looks_at_all = false) RINGBOLT_REQUIRES(lock);
  /// The same of a machine that no fault has halted.
  void advance(bool looks_at_all = false) RINGBOLT_REQUIRES(lock);
  void progress_receivers(bool looks_at_all) RINGBOLT_REQUIRES(lock);
  void progress_receiver(QueuePair& qp) RINGBOLT_REQUIRES(lock);
  /// Those that somebody waits for, or all.
  void progress_senders(bool looks_at_all) RINGBOLT_REQUIRES(lock);
  void progress_sender(QueuePair& qp, bool looks_at_all, bool clears_mark) RINGBOLT_REQUIRES(lock);
  void check_timers() RINGBOLT_REQUIRES(lock);
  // Without the lock, which they take.
  int judge_poll() noexcept;  ///< what faults say to it
  bool holds_back();          ///< RINGBOLT_SHUFFLE: the poll finds nothing, whatever lies here
  /// A fault has this machine do nothing.
  bool is_halted() const;
  void overflow() RINGBOLT_REQUIRES(lock);
  void wait_for_room() RINGBOLT_REQUIRES(lock);

  Context& context_;  // not from serve(): the service thread may hold the queue for a moment longer than it lives
  const std::shared_ptr<const Port> port_;
  VerbFaults& faults_;
  Network* const network_;  // null for a port in shared memory
  WakeEntry wake_entry_;    // under the lock where it says so
  CompletionEvents events_ RINGBOLT_GUARDED_BY(lock){wake_entry_};
  CompletionRing unread_ RINGBOLT_GUARDED_BY(lock);
  ibv_wc* out_ RINGBOLT_GUARDED_BY(lock) = nullptr;  // the poller's array, while poll() runs
  ibv_wc* out_end_ RINGBOLT_GUARDED_BY(lock) = nullptr;
  PollBackoff backoff_ RINGBOLT_GUARDED_BY(lock);
  uint64_t look_ns_ RINGBOLT_GUARDED_BY(lock) = 0;  // of the last poll of ports on a network; else 0
  std::atomic<uint64_t> last_poll_ns_{0};           // of a program's last poll, for those who look without the lock
  bool is_in_service_ RINGBOLT_GUARDED_BY(lock) = false;  // in serve() or take_arrived()
  bool is_served_ RINGBOLT_GUARDED_BY(lock) = false;      // likewise, and the program has not polled for long
  bool sends_go_first_ RINGBOLT_GUARDED_BY(lock) = false;
  bool waits_for_room_ RINGBOLT_GUARDED_BY(lock) = false;  // some peers were asked to ring when they make room
  bool has_run_short_ RINGBOLT_GUARDED_BY(lock) = false;   // of memory, while it got on with things
  // Under the lock, but for marking.
  ReceiverList receivers_;
  ReadyList senders_;
  std::unique_ptr<link::MarkSet> sender_marks_ RINGBOLT_GUARDED_BY(lock);
  CallStream polls_ RINGBOLT_GUARDED_BY(lock);
  const std::unique_ptr<CompletionShuffle> shuffle_;  // null but for RINGBOLT_SHUFFLE
  Waiters pollers_;
};

}  // namespace ringbolt::device
