#pragma once

#include <infiniband/verbs.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>

#include "device/cable_state.h"
#include "device/completion_queues.h"
#include "device/counting.h"
#include "device/half_locks.h"
#include "device/memory.h"
#include "device/pieces.h"
#include "device/queue_pair_notes.h"

namespace ringbolt::device {

class QueuePairTransport;

/// How far the sends of a queue pair are, by numbers that wrap: those before `done` are complete, those before `next`
/// were executed, those before `tail` posted. Written under the lock for sending; anybody may look.
/// Relaxed throughout: the lock for sending orders them for those who hold it, and nothing else is read by what the
/// others find. The two loads of unfinished() are not one look for these: with a post and a completion in between it
/// may be any number. So they only decide by it whether to look, and whoever posts sees to it that somebody looks again
/// (SendQueue::end_post).
struct SendProgress {
  std::atomic<uint32_t> done{0};
  std::atomic<uint32_t> next{0};
  std::atomic<uint32_t> tail{0};
  std::atomic<uint32_t> awaited{0};  ///< up to here somebody waits: past the last signaled or failed one

  uint32_t unfinished() const { return tail.load(std::memory_order_relaxed) - done.load(std::memory_order_relaxed); }
  bool has_queued() const { return next.load(std::memory_order_relaxed) != tail.load(std::memory_order_relaxed); }
  void reset() {
    done.store(0);
    next.store(0);
    tail.store(0);
    awaited.store(0);
  }
};

/// What the parts of a queue pair share: what it is and belongs to, its attributes, its state. Thread-safe, as far as
/// nothing else is said.
struct QueuePairCore {
  QueuePairCore(ProtectionDomain& domain, CompletionQueues completion_queues, const ibv_qp_init_attr& init,
                ibv_qp* c_object);

  /// A hint without one of the two locks, under which the state changes, but for CompletionQueue::overflow(). Whoever
  /// changes it asks for a look afterwards, so that nobody sleeps on the old one.
  ibv_qp_state state() const { return state_.load(std::memory_order_relaxed); }
  /// Also shows it in the C object, whose memory the program may read at any time.
  void set_state(ibv_qp_state state);
  /// The same, but ERR stays, which a completion queue that overflows sets without a lock: false then.
  bool set_state_unless_failed(ibv_qp_state state);
  /// Everything that is posted ends in errors from here on, the first send with `first_send_status`. No effect in the
  /// state ERR. Under the lock for sending or the one for receiving: either keeps the transport as it is.
  void enter_error(ibv_wc_status first_send_status);
  /// After the change of state that it tells of: who hears it asks for the state.
  void announce(ibv_event_type event) const { context.announce(event, handle); }
  /// A connected queue pair has failed as its peer died: what the profile makes of it.
  /// Without waiting: announces at once, or once the last work request has failed, or never.
  void note_peer_died();
  /// The service thread gets on with it if the program may sleep meanwhile.
  /// Marks both halves in their completion queues as well. Thread-safe, takes no lock; may make a system call to wake
  /// the service thread.
  void kick();
  /// Who receives has more to look at than what the transport knows.
  void ask_for_look() {
    receive_attention.store(true, std::memory_order_relaxed);
    queues.receive->mark_receiver(receive_place);
  }

  /// Checks the keys of work request pieces and finds the memory; false when one does not allow `access`.
  /// `pieces` is the caller's, with its `count` at 0; it names memory of the program's, which may go when the program
  /// deregisters it: it is looked up anew each time that bytes move. Inline pieces are taken as they are. No lock: the
  /// region table is read as peers read it. On false `pieces` may hold some of the pieces already.
  bool translate(std::span<const ibv_sge> from, bool is_inline, uint32_t access, Pieces& pieces) const {
    link::RegionTableView::Place place;
    if (from.size() == 1 && !is_inline && pieces.count == 0 && from[0].length != 0 &&
        process.regions().locate(from[0].lkey, pd.key, link::kAnyQueuePair, access, from[0].addr, from[0].length,
                                 place)) [[likely]] {
      pieces.arena = {place.arena_id, place.arena_offset};
      pieces.at[0] = {reinterpret_cast<void*>(place.host), from[0].length};
      pieces.count = 1;
      return true;
    }
    return translate_each(from, is_inline, access, pieces);
  }
  /// Where memory lies that a peer names; null where the key or the queue pair does not allow it `access`.
  /// `address` is the region's own (it may be zero-based), what is returned a pointer of this process. Either lock
  /// keeps the attributes as they are. The memory may be unmapped all the same: see base/guarded_copy.h.
  std::byte* find_local(uint64_t address, uint64_t length, uint32_t key, uint32_t access) const;
  /// `use` hears of the notes if there are some, and may throw: then nothing is noted.
  template <class Use>
  void when_noting(Use&& use) const noexcept {
    if (notes != nullptr) [[unlikely]] {
      with_notes(use);
    }
  }
  /// A SEND of that many bytes can't be: notes it, to be told.
  void note_overlong(uint32_t length);

  // `pd`, `context`, `handle` and a shared receive queue end after destroy() at the earliest, and perhaps before this
  // does, which the service thread may still hold: nothing looks at them from then on.
  ProtectionDomain& pd;
  Context& context;
  const std::shared_ptr<const Port> port;  ///< the service thread may hold the queue pair longer than the context lives
  Process& process;
  VerbFaults& faults;
  ibv_qp* const handle;  ///< the C object: events name it, and it shows the state
  const ibv_qp_type type;
  const CompletionQueues queues;
  const uint32_t number;  ///< which one of the process at its port it is, from 0
  uint32_t qpn = 0;       ///< given before anybody else knows of it
  HalfLocks locks;
  CountingCell counts;  ///< the first lane under the lock for sending, the second under the one for receiving
  CableState cable;
  SendProgress sends;
  uint32_t mtu_shift;        ///< of the path; changed under both locks, read under either
  ibv_qp_attr attributes{};  ///< likewise
  /// Set with the step to RTR, of UD from the beginning; null again under both locks, and when no completion queue
  /// knows the queue pair.
  std::atomic<QueuePairTransport*> transport{nullptr};
  std::atomic<ibv_wc_status> first_flush_status{IBV_WC_WR_FLUSH_ERR};
  // Two hints that are looked at without a lock and settled under one: who sets one marks the queue pair after that.
  std::atomic<bool> owes_fatal{false};         ///< IBV_EVENT_QP_FATAL, once the last work request has failed
  std::atomic<bool> receive_attention{false};  ///< see ask_for_look()
  uint32_t receive_place = 0;                  ///< its place in its completion queue of receives, and of sends; given
  uint32_t send_place = 0;                     ///< when it is attached, before anybody else knows of it
  /// Null unless RINGBOLT_EXPLAIN asks for it; set before anybody else knows of the queue pair.
  std::unique_ptr<QueuePairNotes> notes;

 private:
  // Out of line, as what calls when_noting() should be on a hot path: its words take registers.
  template <class Use>
  [[gnu::cold, gnu::noinline]] void with_notes(Use& use) const noexcept {
    try {
      use(*notes);
    } catch (...) {  // no memory for words
    }
  }
  bool translate_each(std::span<const ibv_sge> from, bool is_inline, uint32_t access, Pieces& pieces) const;
  void show_state(ibv_qp_state state);

  std::atomic<ibv_qp_state> state_{IBV_QPS_RESET};
};

}  // namespace ringbolt::device
