#pragma once

#include <infiniband/verbs.h>

#include <array>
#include <cstdint>
#include <memory>

#include "base/mutex.h"
#include "base/result.h"
#include "device/completion_queue.h"
#include "device/inbox.h"
#include "device/lanes.h"
#include "device/queue_pair_core.h"
#include "device/queue_pair_standing.h"
#include "device/queue_pair_transport.h"
#include "device/receive_queue.h"
#include "device/send_queue.h"

namespace ringbolt::device {

/// A queue pair of type RC, UC or UD: its states and attributes, a send queue, a receive queue, and the transport that
/// joins them to those of its peers. Completions are made only by the progress functions, which its completion queues
/// call under their own locks; posting only queues and moves data. Lock order: modify_lock_, completion queue, the lock
/// for sending, the one for receiving, that of offers. Thread-safe.
class QueuePair {
 public:
  /// Writes the granted capabilities back. `handle` is the C object: events name it, and it shows the state. EINVAL for
  /// capabilities out of range, EOPNOTSUPP for types that the device does not know, ENOMEM.
  /// What is made belongs to its caller, and also to the process until destroy(): the service thread may hold it for a
  /// moment longer. `pd`, and a shared receive queue, count it as a user until destroy().
  static base::Result<std::shared_ptr<QueuePair>> create(ProtectionDomain& pd, CompletionQueues queues,
                                                         ibv_qp_init_attr& wanted, ibv_qp* handle);
  ~QueuePair();
  /// Takes it out of everything that knows it; call once, before letting go of it.
  void destroy();

  uint32_t qpn() const { return core_.qpn; }
  /// Which one of the process at its port it is, from 0.
  uint32_t number() const { return core_.number; }
  /// By Process::add() alone, before find() can give it to anybody.
  void assign_qpn(uint32_t qpn) { core_.qpn = qpn; }
  ibv_qp_type type() const { return core_.type; }
  ProtectionDomain& pd() const { return core_.pd; }

  /// As ibv_modify_qp: 0, EINVAL for a step or attribute that is not allowed, ETIMEDOUT when the path's GID is not at
  /// the other end of the cable.
  /// One call at a time: others wait. The steps to RESET and ERR take in first what has come. That to RESET may block:
  /// for kLeastTimeoutNs where the peer has yet to read, or the socket to take, what was sent, and for kAccessDrainNs
  /// where the peer is in the middle of a copy. ENOMEM, EMFILE and their like where a lane or an engine can't be had.
  /// After an error state and attributes are those of before.
  int modify(const ibv_qp_attr& attributes, int mask);
  /// As ibv_query_qp; waits for a modify() that is under way.
  void query(ibv_qp_attr& attributes, ibv_qp_init_attr& init);
  /// SendQueue::post.
  /// Any thread; never throws. An errno; negated where a quirk stands for a driver that leaves `*bad` alone.
  int post_send(ibv_send_wr* wr, ibv_send_wr** bad) { return send_.post(wr, bad); }
  /// As ibv_post_recv.
  int post_receive(ibv_recv_wr* wr, ibv_recv_wr** bad);
  /// The same for RINGBOLT_EXPLAIN, with where and when it is posted.
  int post_send_noted(ibv_send_wr* wr, ibv_send_wr** bad, const SendPosting& from) {
    return core_.notes == nullptr ? send_.post(wr, bad) : send_.post_noted(wr, bad, from);
  }
  int post_receive_noted(ibv_recv_wr* wr, ibv_recv_wr** bad, const ReceivePosting& from);
  /// ReceiveQueue::receive_in_place.
  int receive_in_place() { return receive_.receive_in_place(); }

  /// Data that came, or the word that signaled sends have arrived, lies unread: in the lane, or as completions that
  /// nobody polled. Never true for datagrams.
  bool has_unread();
  /// Puts what has come into the posted receives and completes what was answered, although nobody polls.
  void take_arrived();

  // For its completion queues, under their locks.
  /// Whether progress_receives() has anything to do. Looks at hints: true may be a mistake, false is none as long as
  /// who has something for it marks it. The transport that it finds can't end meanwhile: reset_whole() or destroy() has
  /// taken the queue pair out of the completion queue before, under the lock that the caller holds.
  bool may_receive() const {
    const QueuePairTransport* const transport = core_.transport.load(std::memory_order_acquire);
    return core_.receive_attention.load(std::memory_order_relaxed) ||
           (transport != nullptr && transport->may_receive());
  }
  bool may_send() const {
    const QueuePairTransport* const transport = core_.transport.load(std::memory_order_acquire);
    return core_.sends.unfinished() != 0 || (transport != nullptr && transport->may_send());
  }
  /// Over a network answers and repetitions keep RC going, whether anybody waits for them or not.
  /// Relaxed loads of counters that the lock for sending guards: see SendProgress.
  bool has_awaited_sends() const { return send_.has_awaited() || (inboxes_ != nullptr && core_.type != IBV_QPT_UC); }
  /// `cq` is the completion queue of its receives. Waits for the lock for receiving, never for a peer. May throw
  /// std::bad_alloc: what has not been taken in stays where it is.
  void progress_receives(CompletionQueue& cq) RINGBOLT_REQUIRES(cq.lock);
  /// Whether progress_receives() has left something that nobody will mark it for.
  bool may_receive_more();
  void progress_sends(CompletionQueue& cq) RINGBOLT_REQUIRES(cq.lock) { send_.progress(cq); }
  /// Under the lock of the completion queue of its receives: without waiting for the lock for sending, which comes
  /// later in the order of locks, but whose owner may be at just that.
  void advance_sends() { send_.advance(); }
  /// Ends what has waited too long; wakes peers that seem to sleep. Not for every poll.
  /// `now_ns`: CLOCK_MONOTONIC. Under the lock of the completion queue of its sends, as everything here that looks at
  /// the transport without a lock of the queue pair's own.
  void check_timers(uint64_t now_ns);
  /// These three are hints without a lock, see SendProgress.
  bool has_unfinished_sends() const { return core_.sends.unfinished() != 0; }
  uint32_t unfinished_sends() const { return core_.sends.unfinished(); }
  bool has_queued_sends() const { return core_.sends.has_queued(); }
  /// Peers ring the service thread, or no longer, when they make room in the lanes.
  void wait_for_room(bool waits) { lanes_.wait_for_room(waits); }
  /// When the timers of its transport want to be looked at, or what found no room tried again; UINT64_MAX: never.
  uint64_t deadline_ns() const;
  /// A completion queue overflowed: nothing can be completed any more.
  void fail_from_queue();

  /// For RINGBOLT_EXPLAIN: how far it is, and what it waits for. Not for longer than the queue pair.
  QueuePairExplainer explainer() { return {core_, send_, receive_}; }
  const CompletionQueues& queues() const { return core_.queues; }

  // For the process.
  /// As long as the queue pair; see Lanes for who may call what.
  Lanes& lanes() { return lanes_; }
  /// The completion queues that have to do with a packet, and that no program polls just now: that of its message, and
  /// that of the acknowledgement which it carries. Null where there is none.
  using Unpolled = std::array<CompletionQueue*, 2>;
  /// A packet from the network whose ICRC was right. Thread-safe and without locks of its own but the inbox's.
  Unpolled arrive(InboundPacket&& packet, uint64_t now_ns);
  /// The faults of the process have changed. Throws std::bad_alloc.
  void look_at_faults();
  /// Faults may have pulled its cable in a way that ends what is connected.
  void look_at_cable();
  /// Returns when no copy from or to the memory of a send is under way for the network, and none lands in the wrong
  /// region; new ones check their keys.
  void wait_for_own_copies();
  /// Returns when no copy is under way that began before the call.
  void wait_for_copies();
  /// Of the window that its send queue waits for, see Process::ask_for_drain().
  const WindowRequests& windows() const { return send_.windows(); }
  /// Nobody uses the key any more that its send queue waits for.
  /// Service thread. No effect if it waits for another key by now.
  void end_drain(uint32_t key);
  /// Before the end, which `ending` names: what has completed early leaves, and what is lost is counted and told. Waits
  /// for the peer until `deadline_ns` at most.
  void settle_told(const char* ending, uint64_t deadline_ns);
  /// The same of what found no room in the socket, and of what the peer has yet to read here: nobody sends it later.
  void send_rest(uint64_t deadline_ns);

 private:
  QueuePair(ProtectionDomain& pd, CompletionQueues queues, const ibv_qp_init_attr& init, ibv_qp* handle);

  // Errnos; 0 is done. Nothing of the attributes or the transport has changed where one fails.
  int acquire_for(ibv_qp_state from, ibv_qp_state to) noexcept RINGBOLT_REQUIRES(modify_lock_, send_half, receive_half);
  int connect() RINGBOLT_REQUIRES(modify_lock_, send_half, receive_half);
  int connect_lane() RINGBOLT_REQUIRES(modify_lock_, send_half, receive_half);
  void install(std::unique_ptr<QueuePairTransport> transport) RINGBOLT_REQUIRES(send_half, receive_half);
  int step(ibv_qp_state from, ibv_qp_state to, const ibv_qp_attr& attributes, int mask) RINGBOLT_REQUIRES(modify_lock_);
  /// RESET as programs ask for it. Not under the locks of the halves: it waits for peers, and takes locks that come
  /// first.
  void reset_whole() RINGBOLT_REQUIRES(modify_lock_);
  void reset() RINGBOLT_REQUIRES(modify_lock_, send_half, receive_half);
  /// Before the end: what has come with a receive waiting for it counts as received, as a card would have acknowledged
  /// it long ago, polled for or not. Its sender, which ends next, must not find it unfinished.
  void finish_receiving();
  /// One try of send_rest().
  bool try_rest();
  void drop(Drop why, const InboundPacket& packet);
  /// Into its inbox. The completion queue that has to do with it, unless a program polls it; null, too, if it is
  /// dropped.
  CompletionQueue* take_in(InboundPacket&& packet, bool is_answer, uint64_t now_ns);

  base::Mutex modify_lock_ RINGBOLT_ACQUIRED_BEFORE(CompletionQueue::lock, send_half);  // one modify at a time
  const ibv_qp_cap caps_;
  const bool diverts_unexpected_;  // messages that meet no receive are dropped, or wait here
  QueuePairCore core_;
  const std::unique_ptr<Inboxes> inboxes_;  // of ports on a network only
  Lanes lanes_;
  SendQueue send_;
  ReceiveQueue receive_;
  std::unique_ptr<QueuePairTransport> transport_;  // the one that core_.transport points to
};

}  // namespace ringbolt::device
