#pragma once

#include <infiniband/verbs.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/adaptive_mutex.h"
#include "base/result.h"
#include "device/call_stream.h"
#include "device/half_locks.h"

namespace ringbolt::device {

class CompletionChannel;
class Context;
class QueuePair;
class Network;
class VerbFaults;
struct Port;

/// A completion queue. Completions are put in only by its own progress, under its own lock: by poll(), or by the
/// service thread when nobody polls. Thread-safe.
class CompletionQueue {
 public:
  /// EINVAL unless 1 <= cqe <= kMaxCqe. `channel` may be null and must outlive the queue.
  static base::Result<std::shared_ptr<CompletionQueue>> create(Context& context, uint32_t cqe,
                                                               CompletionChannel* channel);

  void* handle = nullptr;  ///< the C object, for events
  base::AdaptiveMutex lock RINGBOLT_ACQUIRED_BEFORE(send_half, receive_half);

  uint32_t capacity() const { return capacity_; }
  Context& context() const { return context_; }

  /// Up to `count` completions; their number, or -1 after an overflow.
  int poll(int count, ibv_wc* wc);
  /// Arms the queue: one event for the next completion (or the next solicited or failed one). Throws std::bad_alloc,
  /// and nothing has changed.
  void request_notification(bool solicited_only);
  /// EINVAL when the entries inside do not fit.
  int resize(uint32_t cqe);

  bool is_armed() const { return armed_.load(std::memory_order_relaxed) != kNotArmed; }
  /// What is left after serve() that no peer's bell will announce.
  enum class Remains {
    nothing,
    timers,  ///< sends whose time may run out while their program sleeps
    work,    ///< sends that found no room
  };
  /// What the service thread does: brings every attached queue pair on.
  Remains serve(uint64_t now_ns);
  /// Takes in what has come, full lanes to their ends, as far as the queue has room. Before a queue pair ends, and
  /// before a peer is known to be gone: what it received and sent until then is told first, whichever queue pair's it
  /// was. On a card a send to a peer that is gone fails only after its retries, long after everything else was told.
  void take_arrived();
  /// When the earliest timer of its queue pairs on the network runs out.
  uint64_t wire_deadline_ns();

  // For queue pairs.
  /// Throws std::bad_alloc, and nothing has changed.
  void attach(QueuePair& qp, bool receives, bool sends);
  void detach(const QueuePair& qp);
  /// The same, but for resume() only: it takes back the place that was kept, and can't fail.
  void suspend(const QueuePair& qp);
  void resume(QueuePair& qp, bool receives, bool sends);
  bool is_attached();
  /// No further announcement: it is being destroyed.
  void retire();
  /// It is the service thread that gets on with things, not the program's poll.
  bool is_in_service() const RINGBOLT_REQUIRES(lock) { return is_in_service_; }
  /// Whether there is room for one more completion. A poller has as much room as it asked for; the service thread acts
  /// for a program that does not poll, and there one entry too many is the program's error.
  bool has_room() const RINGBOLT_REQUIRES(lock) {
    return out_ != nullptr ? out_ != out_end_ : count_ < capacity_ || is_served_;
  }
  /// Where the next completion is to be written, all fields of it; then commit(). It goes straight into the poller's
  /// array while that has room: one packet that fills a gap may complete many messages. Only from within this queue's
  /// progress.
  ibv_wc& next() RINGBOLT_REQUIRES(lock) { return has_room_for_poller() ? *out_ : next_in_ring(); }
  /// One completion too many ends the queue and its queue pairs.
  void commit(ibv_wc_status status, bool is_solicited) RINGBOLT_REQUIRES(lock) {
    const bool counts_as_solicited = is_solicited || status != IBV_WC_SUCCESS;
    if (!has_room_for_poller()) {
      return commit_to_ring(counts_as_solicited);
    }
    ++out_;
    if (is_armed()) [[unlikely]] {
      announce_if_armed(counts_as_solicited, committed_);
    }
  }
  /// Whether a good completion of the queue pair lies here that nobody has polled.
  bool holds_success_of(uint32_t qpn);
  /// A program polls it, as of just now. For ports on a network only.
  bool is_polled_at(uint64_t now_ns) const {
    return now_ns < last_poll_ns_.load(std::memory_order_relaxed) + kPollerNs;
  }
  static constexpr uint64_t kPollerNs = 20'000;  ///< somebody polls if he did so this short a time ago
  /// Drops the completions of a queue pair that is being destroyed or reset.
  void forget(uint32_t qpn);

 private:
  enum Armed : uint32_t { kNotArmed, kArmedSolicited, kArmedNext };

  CompletionQueue(Context& context, uint32_t cqe, CompletionChannel* channel);
  void enter(QueuePair& qp, bool receives, bool sends) RINGBOLT_REQUIRES(lock);
  bool has_room_for_poller() const RINGBOLT_REQUIRES(lock) { return out_ != out_end_; }
  ibv_wc& next_in_ring() RINGBOLT_REQUIRES(lock);
  void commit_to_ring(bool is_solicited) RINGBOLT_REQUIRES(lock);
  /// Up to `count` completions, of those that lie here or else of what progress brings.
  int collect(int count, ibv_wc* wc) RINGBOLT_REQUIRES(lock);
  int take(int count, ibv_wc* wc) RINGBOLT_REQUIRES(lock);
  void progress() RINGBOLT_REQUIRES(lock);
  /// Those that somebody waits for, or all.
  void progress_senders(bool looks_at_all) RINGBOLT_REQUIRES(lock);
  void check_timers() RINGBOLT_REQUIRES(lock);
  int judge_poll() noexcept;  ///< what faults say to it
  void adapt_patience() RINGBOLT_REQUIRES(lock);
  /// A fault has this machine do nothing.
  bool is_halted() const;
  void overflow() RINGBOLT_REQUIRES(lock);
  void announce_if_armed(bool is_solicited, uint64_t completion) RINGBOLT_REQUIRES(lock);
  void want_bells(bool wanted) RINGBOLT_REQUIRES(lock);

  Context& context_;  // not from serve(): the service thread may hold the queue for a moment longer than it lives
  const std::shared_ptr<const Port> port_;
  VerbFaults& faults_;
  Network* const network_;  // null for a port in shared memory
  CompletionChannel* channel_ RINGBOLT_GUARDED_BY(lock);
  std::vector<ibv_wc> ring_ RINGBOLT_GUARDED_BY(lock);
  uint32_t capacity_;
  ibv_wc* out_ RINGBOLT_GUARDED_BY(lock) = nullptr;  // the poller's array, while poll() runs
  ibv_wc* out_end_ RINGBOLT_GUARDED_BY(lock) = nullptr;
  ibv_wc excess_ RINGBOLT_GUARDED_BY(lock){};  // where a completion goes that finds no room
  uint32_t head_ RINGBOLT_GUARDED_BY(lock) = 0;
  uint32_t count_ RINGBOLT_GUARDED_BY(lock) = 0;
  uint64_t committed_ RINGBOLT_GUARDED_BY(lock) = 0;       // completions that went into the ring, ever
  uint64_t last_solicited_ RINGBOLT_GUARDED_BY(lock) = 0;  // which of them was the last solicited or failed one
  uint64_t announced_ RINGBOLT_GUARDED_BY(lock) = 0;       // which of them raised the last event
  uint32_t empty_polls_ RINGBOLT_GUARDED_BY(lock) = 0;
  uint64_t checked_ns_ RINGBOLT_GUARDED_BY(lock) = 0;     // when a poller last looked at the timers
  uint32_t patience_ RINGBOLT_GUARDED_BY(lock) = 64;      // empty polls before the core is given away
  bool is_in_service_ RINGBOLT_GUARDED_BY(lock) = false;  // in serve() or take_arrived()
  bool is_served_ RINGBOLT_GUARDED_BY(lock) = false;      // likewise, and the program has not polled for long
  bool sends_go_first_ RINGBOLT_GUARDED_BY(lock) = false;
  bool has_overflowed_ RINGBOLT_GUARDED_BY(lock) = false;
  bool drops_bells_ RINGBOLT_GUARDED_BY(lock) = false;    // no longer armed: the peers need not ring
  bool has_run_short_ RINGBOLT_GUARDED_BY(lock) = false;  // of memory, while it got on with things
  std::atomic<uint32_t> armed_{kNotArmed};
  std::atomic<uint64_t> last_poll_ns_{0};
  std::vector<QueuePair*> receivers_ RINGBOLT_GUARDED_BY(lock);
  std::vector<QueuePair*> senders_ RINGBOLT_GUARDED_BY(lock);
  size_t places_kept_ RINGBOLT_GUARDED_BY(lock) = 0;  // in both, for those that are suspended
  CallStream polls_ RINGBOLT_GUARDED_BY(lock);
};

}  // namespace ringbolt::device
