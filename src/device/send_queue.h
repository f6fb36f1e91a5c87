#pragma once

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "device/completion_queue.h"
#include "device/queue_pair_core.h"
#include "device/send_request.h"
#include "device/window_requests.h"

namespace ringbolt::device {

class SendQuirks;

/// The send queue of a queue pair: takes work requests, has the transport execute them in order, and completes them in
/// order. The functions without a role take the lock for sending themselves. Thread-safe.
/// Owns copies of all requests that are not complete, their pieces and inline bytes; never the memory that the pieces
/// name, which is the program's until the completion. The lock for sending orders everything; completing needs the lock
/// of the completion queue first.
class SendQueue {
 public:
  struct Limits {
    uint32_t requests;
    uint32_t pieces;        ///< of one request
    uint32_t inline_bytes;  ///< of one request
    /// sq_sig_all of ibv_create_qp
    bool signals_all;
  };

  /// `quirks`: of the port's profile and faults; null for a plain device. `slots`: a power of two, as many requests at
  /// least as the limits say. Throws std::bad_alloc.
  SendQueue(QueuePairCore& core, const Limits& limits, size_t slots, std::unique_ptr<SendQuirks> quirks);
  ~SendQueue();
  SendQueue(const SendQueue&) = delete;
  SendQueue& operator=(const SendQueue&) = delete;

  /// As ibv_post_send. Where `bad` is null the list is posted whole or not at all; else up to the request that it then
  /// names. ENOMEM also where quirks want bytes to be copied, and there is no memory for the copy.
  /// EINVAL for a request that no device takes, or a state that takes none; ENOMEM when the queue is full. Never blocks
  /// longer than for the lock, never throws. With `bad`, what was taken before an error stays posted.
  int post(ibv_send_wr* wr, ibv_send_wr** bad);
  /// The same, with notes of each request and of where it was posted; there are notes.
  int post_noted(ibv_send_wr* wr, ibv_send_wr** bad, const SendPosting& from);
  /// `cq` is the completion queue of its sends. As far as that has room: the oldest stays until it has. May throw
  /// std::bad_alloc, and goes on from there the next time.
  /// Takes in answers, completes what is complete, and gets on with the rest.
  void progress(CompletionQueue& cq) RINGBOLT_REQUIRES(cq.lock);
  /// Gets on with queued sends without completing any, unless somebody else is at it.
  void advance();
  /// It has sends whose end somebody waits for.
  /// Without the lock, and so now and then true where it is not: a poll looks in vain then. UD, a half full queue and
  /// what waits for its turn are always worth a look: nothing else makes room for them.
  bool has_awaited() const;

  // For the parts of the queue pair.
  /// RINGBOLT_EXPLAIN: why this request was not taken.
  void explain_refusal(int error, const ibv_send_wr* wr) const RINGBOLT_REQUIRES(send_half);
  QueuePairCore& core() const { return core_; }
  const Limits& limits() const { return limits_; }
  // References are good until the lock is given back: the place is used again for the request `slots()` later. Indices
  // are the wrapping numbers of SendProgress.
  SendEntry& entry(uint32_t index) RINGBOLT_REQUIRES(send_half) { return entries_[index & mask_]; }
  const SendEntry& entry(uint32_t index) const RINGBOLT_REQUIRES(send_half) { return entries_[index & mask_]; }
  SendRequest& request(uint32_t index) RINGBOLT_REQUIRES(send_half) { return requests_[index & mask_]; }
  /// The queue's own copy of a stored request's pieces: `Limits::pieces` of them.
  ibv_sge* pieces(uint32_t index) RINGBOLT_REQUIRES(send_half) {
    return pieces_.data() + size_t{index & mask_} * limits_.pieces;
  }
  uint32_t slots() const { return mask_ + 1; }
  uint32_t place(uint32_t index) const { return index & mask_; }
  uint32_t place(const SendEntry& entry) const RINGBOLT_REQUIRES(send_half) {
    return static_cast<uint32_t>(&entry - entries_.data());
  }
  SendQuirks* quirks() const RINGBOLT_REQUIRES(send_half) { return quirks_.get(); }
  /// The same if some sends may complete before they are delivered, else null; that is so from the beginning or never.
  SendQuirks* early() const { return early_; }
  /// There are faults now, which a plain queue knows nothing of. Throws std::bad_alloc.
  void add_quirks() RINGBOLT_REQUIRES(send_half);
  WindowRequests& windows() { return windows_; }
  const WindowRequests& windows() const { return windows_; }

  /// Has the transport execute what is queued, as far as it gets.
  /// Stops at the first that can't begin: a later one may not overtake it (InfiniBand Architecture Specification, 9.5).
  /// Ends with push_out(), whatever began.
  void run() RINGBOLT_REQUIRES(send_half);
  /// The entry, whose turn it is, is complete with an error, and nothing after it may begin. Always true.
  /// The queue pair itself fails only when the completion is made, see retire(): what was sent before ends first.
  bool fail(SendEntry& entry, ibv_wc_status status) RINGBOLT_REQUIRES(send_half);
  /// The same of a message that is longer than any port takes, which is told, too.
  bool fail_overlong(SendEntry& entry, uint32_t length) RINGBOLT_REQUIRES(send_half);
  bool has_failed_send() const RINGBOLT_REQUIRES(send_half) { return has_failed_send_; }
  /// The step to RTS: what was posted since the last failure begins.
  void resume() RINGBOLT_REQUIRES(send_half);
  /// Forgets all requests, without completions. When no completion queue knows the queue pair.
  void reset() RINGBOLT_REQUIRES(send_half);
  /// The oldest send is done, its completion would be told, and nobody has polled it yet.
  bool has_untold_completion() RINGBOLT_REQUIRES(send_half);

  // The steps of posting and completing, which quirks take, too.
  /// 0, or the errno for a request that no device takes.
  int check(const ibv_send_wr& wr) const RINGBOLT_REQUIRES(send_half);
  /// Puts the request in at `sends.tail`, where there is room. It is not executed yet, and not visible.
  SendEntry& append(const ibv_send_wr& wr, uint32_t length) RINGBOLT_REQUIRES(send_half);
  SendRequest describe(const ibv_send_wr& wr) const RINGBOLT_REQUIRES(send_half);
  void store(uint32_t index, const SendRequest& request) RINGBOLT_REQUIRES(send_half);
  /// What was appended becomes visible.
  /// To those who look without the lock as well, so that the entry must be whole.
  void commit(const SendEntry& entry) RINGBOLT_REQUIRES(send_half);
  /// Executes the entry at `sends.next`, whose request is stored. False: it has to be pushed on.
  bool execute(SendEntry& entry, const SendRequest& request) RINGBOLT_REQUIRES(send_half);
  /// Of the oldest send: nothing while it is under way, else what it completes with.
  /// Once it has given a status the send must be retired: the status of the first one that is flushed is told once.
  std::optional<ibv_wc_status> outcome(uint32_t index) RINGBOLT_REQUIRES(send_half);
  void push_completion(CompletionQueue& cq, const SendEntry& entry, ibv_wc_status status)
      RINGBOLT_REQUIRES(send_half, cq.lock);
  /// The oldest send is over.
  void retire(uint32_t index, ibv_wc_status status) RINGBOLT_REQUIRES(send_half);

 private:
  int post_locked(ibv_send_wr* wr, ibv_send_wr** bad) RINGBOLT_REQUIRES(send_half);
  /// How far a list is noted: `places` of `one` are, and `at` is the next index.
  struct NotedList {
    const ibv_send_wr* one;
    const ibv_send_wr* original;
    uint32_t at;
    uint64_t peer_notes;
    uint32_t places = 0;
  };
  void note_up_to(uint32_t end, NotedList& list, const SendPosting& from) RINGBOLT_REQUIRES(send_half);
  void note_failure(const SendEntry& entry, ibv_wc_status status) const RINGBOLT_REQUIRES(send_half);
  void explain_failure(const SendEntry& entry, ibv_wc_status status) RINGBOLT_REQUIRES(send_half);
  int check_list(const ibv_send_wr* wr) const RINGBOLT_REQUIRES(send_half);
  static bool is_plain(const ibv_send_wr& wr);
  void begin(SendEntry& entry, const ibv_send_wr& wr, bool may_begin) RINGBOLT_REQUIRES(send_half);
  int append_list(ibv_send_wr*& wr) RINGBOLT_REQUIRES(send_half);
  /// Sees to it that somebody gets on with what is unfinished when the program does not poll.
  void end_post() RINGBOLT_REQUIRES(send_half);
  void complete(CompletionQueue& cq) RINGBOLT_REQUIRES(send_half, cq.lock);
  bool is_over(const SendEntry& entry, uint32_t index) const RINGBOLT_REQUIRES(send_half);
  bool is_complete(SendEntry& entry, uint32_t index) RINGBOLT_REQUIRES(send_half);
  /// Null before RTR and in RESET. Relaxed, for it changes under the lock that the caller holds.
  QueuePairTransport* transport() const RINGBOLT_REQUIRES(send_half) {
    return core_.transport.load(std::memory_order_relaxed);
  }

  QueuePairCore& core_;
  const Limits limits_;
  const uint32_t mask_;
  std::unique_ptr<SendQuirks> quirks_ RINGBOLT_GUARDED_BY(send_half);
  // The same object as `quirks_`, for those without the lock: it is set once, and ends with the queue.
  SendQuirks* const early_;
  bool has_failed_send_ RINGBOLT_GUARDED_BY(send_half) = false;  // nothing after it may begin
  std::vector<SendEntry> entries_ RINGBOLT_GUARDED_BY(send_half);
  std::vector<SendRequest> requests_ RINGBOLT_GUARDED_BY(send_half);
  std::vector<ibv_sge> pieces_ RINGBOLT_GUARDED_BY(send_half);
  std::vector<std::byte> inline_ RINGBOLT_GUARDED_BY(send_half);
  WindowRequests windows_;
};

}  // namespace ringbolt::device
