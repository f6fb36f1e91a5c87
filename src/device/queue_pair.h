#pragma once

#include <infiniband/verbs.h>

#include <atomic>
#include <memory>
#include <span>
#include <unordered_map>

#include "base/adaptive_mutex.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "device/completion_queue.h"
#include "device/completion_queues.h"
#include "device/connection.h"
#include "device/counting.h"
#include "device/inbox.h"
#include "device/memory.h"
#include "device/network.h"
#include "device/pieces.h"
#include "device/queue_pair_halves.h"
#include "device/send_request.h"
#include "device/shared_receive_queue.h"
#include "device/stored_offer.h"
#include "device/wired.h"

namespace ringbolt::device {

/// A queue pair of type RC, UC or UD. Completions are made only by the progress functions, which its completion queues
/// call under their own locks; posting only queues and moves data. Lock order: modify_lock_, completion queue,
/// send_lock_, receive_lock_, offers_lock_. Thread-safe. Split by concern, a file each, named after it; wired_*.cpp are
/// for peers on the network.
class QueuePair {
 public:
  using Queues = CompletionQueues;

  /// Writes the granted capabilities back. `handle` is the C object: events name it, and it shows the state. EINVAL for
  /// capabilities out of range, EOPNOTSUPP for types that the device does not know, ENOMEM.
  static base::Result<std::shared_ptr<QueuePair>> create(ProtectionDomain& pd, Queues queues, ibv_qp_init_attr& wanted,
                                                         ibv_qp* handle);
  ~QueuePair();
  /// Takes it out of everything that knows it; call once, before letting go of it.
  void destroy();

  uint32_t qpn() const { return qpn_; }
  /// Which one of the process at its port it is, from 0.
  uint32_t number() const { return number_; }
  void assign_qpn(uint32_t qpn) { qpn_ = qpn; }
  ibv_qp_type type() const { return type_; }
  ProtectionDomain& pd() const { return pd_; }

  /// As ibv_modify_qp: 0, EINVAL for a step or attribute that is not allowed, ETIMEDOUT when the path's GID is not at
  /// the other end of the cable.
  int modify(const ibv_qp_attr& attributes, int mask);
  void query(ibv_qp_attr& attributes, ibv_qp_init_attr& init);

  /// Where `bad` is null the list is posted whole or not at all; else up to the request that it then names. ENOMEM also
  /// where faults or the profile want bytes to be copied, and there is no memory for the copy.
  int post_send(ibv_send_wr* wr, ibv_send_wr** bad);
  int post_receive(ibv_recv_wr* wr, ibv_recv_wr** bad);
  /// Messages that lie in memory which this process sees anyway are not copied from here on: see base/in_place.h.
  /// EOPNOTSUPP where the profile, a network or a shared receive queue has other ideas of receives.
  int receive_in_place();

  /// Data that came, or the word that signaled sends have arrived, lies unread: in the lane, or as completions that
  /// nobody polled. Never true for datagrams.
  bool has_unread();
  /// Puts what has come into the posted receives and completes what was answered, although nobody polls.
  void take_arrived();

  // For its completion queues, under their locks.
  bool may_receive() const {
    if (receive_attention_.load(std::memory_order_relaxed) || type_ == IBV_QPT_UD) {
      return true;
    }
    if (inboxes_ != nullptr &&
        (!inboxes_->requests.is_empty() || has_unsent_answers_.load(std::memory_order_relaxed))) {
      return true;
    }
    const Connection* connection = connection_.load(std::memory_order_acquire);
    return connection != nullptr && (connection->receiver.has_slot() || connection->receiver.has_news());
  }
  bool may_send() const {
    return has_unfinished_sends() || (inboxes_ != nullptr && (!inboxes_->answers.is_empty() ||
                                                              has_unsent_sends_.load(std::memory_order_relaxed)));
  }
  /// It has sends whose end somebody waits for.
  bool has_awaited_sends() const {
    const uint32_t done = done_.load(std::memory_order_relaxed);
    return type_ != IBV_QPT_UC || static_cast<int32_t>(awaited_.load(std::memory_order_relaxed) - done) > 0 ||
           has_queued_sends() || unfinished_sends() > entry_mask_ / 2 ||
           state_.load(std::memory_order_relaxed) != IBV_QPS_RTS;
  }
  void progress_receives(CompletionQueue& cq) RINGBOLT_REQUIRES(cq.lock_);
  void progress_sends(CompletionQueue& cq) RINGBOLT_REQUIRES(cq.lock_);
  /// Gets on with queued sends without completing any.
  void advance_sends();
  /// Ends what has waited too long; wakes peers that seem to sleep. Not for every poll.
  void check_timers(uint64_t now_ns);
  bool has_unfinished_sends() const { return unfinished_sends() != 0; }
  uint32_t unfinished_sends() const {
    return tail_.load(std::memory_order_relaxed) - done_.load(std::memory_order_relaxed);
  }
  bool has_queued_sends() const {
    return next_.load(std::memory_order_relaxed) != tail_.load(std::memory_order_relaxed);
  }
  void want_receive_bells(bool wanted);
  void want_send_bells(bool wanted);
  /// A completion queue overflowed: nothing can be completed any more.
  void fail_from_queue();

  // For the process.
  /// A packet from the network whose ICRC was right. Thread-safe and without locks of its own but the inbox's.
  void arrive(InboundPacket&& packet, uint64_t now_ns, bool is_on_service_thread);
  /// When the timers of its network engine want to be looked at, or what found no room tried again; UINT64_MAX: never.
  uint64_t wire_deadline_ns() const {
    return has_unsent_answers_.load(std::memory_order_relaxed) ? 0 : wire_deadline_ns_.load(std::memory_order_relaxed);
  }
  /// False: it has no use for that offer. A lane that could not be mapped ends the queue pair as soon as it needs it.
  bool on_offer(const std::shared_ptr<link::RemoteProcess>& remote, const link::Offer& offer,
                base::Result<link::SharedSegment> lane);
  /// The peer can't use the lane that we offered. False: it is none of ours any more.
  bool on_refuse(const link::Refuse& refuse);
  void on_withdraw(const link::Withdraw& withdraw);
  void on_peer_gone(const link::Peer& peer, bool was_orderly);
  /// Faults may have pulled its cable in a way that ends what is connected.
  void look_at_cable();
  /// A peer copies from or to the region of `key` on behalf of a queue pair connected to this one.
  bool is_accessed(uint32_t key);
  /// Returns when no copy from or to the memory of a send is under way for the network, and none lands in the wrong
  /// region; new ones check their keys.
  void wait_for_own_copies();
  /// Of a window that its send queue waits for, see Process::ask_for_drain(); 0: none.
  uint32_t draining_key() const { return draining_key_.load(std::memory_order_seq_cst); }
  uint64_t drain_until_ns() const { return drain_until_ns_.load(std::memory_order_relaxed); }
  void end_drain(uint32_t key);
  /// Returns when no copy is under way that began before the call.
  void wait_for_copies();
  /// Tells every peer how far we are: before the process exits.
  void tell_peers();
  /// Before sends are given up: what has completed early leaves, but for what its lead or a fault still holds back.
  /// Waits for the peer until `deadline_ns` at most. Under modify_lock_ at most.
  void deliver_told(uint64_t deadline_ns);
  /// Before the end, which `ending` names: the same, and counts and tells what is lost.
  void settle_told(const char* ending, uint64_t deadline_ns);
  /// The same of what found no room in the socket: nobody sends it later.
  void send_rest(uint64_t deadline_ns);

 private:
  QueuePair(ProtectionDomain& pd, Queues queues, const ibv_qp_init_attr& init, ibv_qp* handle);

  // queue_pair.cpp
  int check_attributes(const ibv_qp_attr& attributes, int mask) const;

  // queue_pair_rules.cpp: 0, or the error number that the port's profile has for it, after telling why
  int check_step_rules(ibv_qp_state from, ibv_qp_state to, bool is_allowed) const;
  int check_path(const ibv_ah_attr& path) const;
  int check_send_rules(const ibv_send_wr& wr) const RINGBOLT_REQUIRES(send_lock_);
  int check_receive_rules(const ibv_recv_wr& wr, ibv_qp_state state) RINGBOLT_REQUIRES(receive_lock_);
  uint32_t postable_frames(uint32_t granted) const;
  uint32_t frames_of_pieces(const ibv_sge* pieces, int count) const;
  void take_receive_frames() RINGBOLT_REQUIRES(receive_lock_);
  /// Of a message of `total` bytes for the current receive; not success: what the receive completes with.
  ibv_wc_status judge_receive(uint32_t total) RINGBOLT_REQUIRES(receive_lock_);

  void store_attributes(const ibv_qp_attr& attributes, int mask)
      RINGBOLT_REQUIRES(modify_lock_, send_lock_, receive_lock_);
  int acquire_for(ibv_qp_state from, ibv_qp_state to) noexcept
      RINGBOLT_REQUIRES(modify_lock_, send_lock_, receive_lock_);
  void set_state(ibv_qp_state state);
  void reset() RINGBOLT_REQUIRES(modify_lock_, send_lock_, receive_lock_);
  void enter_error(ibv_wc_status first_send_status) RINGBOLT_NOT_ANALYSED;  ///< under either lock
  void announce(ibv_event_type type);  ///< after the change of state that it tells of: who hears it asks for the state
  void kick();

  // connecting.cpp
  int connect() RINGBOLT_REQUIRES(modify_lock_, send_lock_, receive_lock_);
  base::Result<std::unique_ptr<Connection>> make_connection(uint32_t remote_qpn,
                                                            const std::array<uint8_t, 16>& remote_gid)
      RINGBOLT_REQUIRES(send_lock_);
  void offer_lane(Connection& connection) RINGBOLT_REQUIRES(send_lock_);
  void attach_sender(Connection& connection, const link::Offer& offer, link::SharedSegment lane)
      RINGBOLT_REQUIRES(send_lock_);
  void fail_connection(Connection& connection, ibv_wc_status status) RINGBOLT_REQUIRES(send_lock_);
  void purge_datagram_peers() RINGBOLT_REQUIRES(send_lock_);
  Connection* datagram_connection(uint32_t remote_qpn, const std::array<uint8_t, 16>& remote_gid)
      RINGBOLT_REQUIRES(send_lock_);
  void disconnect(Connection& connection) RINGBOLT_REQUIRES(send_lock_, receive_lock_);
  /// Before its connections go: closes them, and returns when no peer copies on their behalf any more, for afterwards
  /// nobody could tell. Bounded as Process::wait_for_accesses is. Under modify_lock_ alone: the peer may be a thread of
  /// this process that holds locks of its own.
  void end_accesses() RINGBOLT_REQUIRES(modify_lock_) RINGBOLT_NOT_ANALYSED;  ///< of RC and UC nobody else changes them
  /// Before the end: what has come with a receive waiting for it counts as received, as a card would have acknowledged
  /// it long ago, polled for or not. Its sender, which ends next, must not find it unfinished.
  void finish_receiving();
  void adopt(std::unique_ptr<Connection> connection) RINGBOLT_REQUIRES(send_lock_, receive_lock_);
  /// How far the peer is, as its messages to us say, those that wait for a receive too.
  void take_last_word(Connection& connection) RINGBOLT_REQUIRES(send_lock_, receive_lock_);

  // requester.cpp
  /// What faults say to the next send.
  int suffer_send() RINGBOLT_REQUIRES(send_lock_) {
    return faults_.has(fault::Subject::call) ? send_.posted.judge(context_.port(), {&number_, 1}) : 0;
  }
  int check_request(const ibv_send_wr& wr) const RINGBOLT_REQUIRES(send_lock_);
  int check_list(const ibv_send_wr* wr) const RINGBOLT_REQUIRES(send_lock_);
  SendRequest describe(const ibv_send_wr& wr) const RINGBOLT_REQUIRES(send_lock_);
  void store(uint32_t index, const SendRequest& request) RINGBOLT_REQUIRES(send_lock_);
  /// One message, for which there is room: 0, or ENOMEM for a copy.
  int enqueue(const ibv_send_wr& wr, ibv_qp_state state, bool has_fates) RINGBOLT_REQUIRES(send_lock_);
  int enqueue_pieces(const ibv_send_wr& wr, ibv_qp_state state, bool has_fates) RINGBOLT_REQUIRES(send_lock_);
  void run_queue() RINGBOLT_REQUIRES(send_lock_);
  void push_out() RINGBOLT_REQUIRES(send_lock_);
  void complete_sends(CompletionQueue& cq) RINGBOLT_REQUIRES(send_lock_, cq.lock_);
  bool is_complete(SendEntry& entry, uint32_t index) RINGBOLT_REQUIRES(send_lock_);
  void push_send(CompletionQueue& cq, const SendEntry& entry, ibv_wc_status status)
      RINGBOLT_REQUIRES(send_lock_, cq.lock_);
  ibv_wc_status refusal_status(const Connection& connection) const RINGBOLT_REQUIRES(send_lock_);

  // send_timers.cpp
  ibv_wc_status overdue(uint64_t now_ns, Connection* connection) RINGBOLT_REQUIRES(send_lock_);
  uint64_t transport_timeout_ns() const RINGBOLT_REQUIRES(send_lock_);
  uint64_t patience_factor(bool has_lane);

  // split_pieces.cpp: for profiles where each piece of a message is a message of its own
  uint32_t messages_of(const ibv_send_wr& wr) const { return splits_pieces_ ? pieces_that_part(wr) : 1; }
  uint32_t pieces_that_part(const ibv_send_wr& wr) const;
  int push_pieces(const ibv_recv_wr& wr) RINGBOLT_REQUIRES(receive_lock_);

  // wrapped_receives.cpp: for profiles whose device adds addresses without the carry
  void scatter(uint32_t offset, const std::byte* data, uint32_t length) RINGBOLT_REQUIRES(receive_lock_) {
    if (wraps_at_4_gib_) [[unlikely]] {
      scatter_wrapped(offset, data, length);
    } else {
      receive_.current.pieces.scatter(offset, data, length);
    }
  }
  void scatter_wrapped(uint32_t offset, const std::byte* data, uint32_t length) RINGBOLT_REQUIRES(receive_lock_);

  // unreceived.cpp: for profiles whose receiver does not hold UC senders back
  /// A message of `total` bytes (0: nobody knows yet) begins: where it goes, which may be past the receives.
  Bypass choose_bypass(uint32_t total) RINGBOLT_REQUIRES(receive_lock_);
  void note_dropped() RINGBOLT_REQUIRES(receive_lock_);
  /// A slot of a message that goes past the receives: dealt with here. False: it is another one's.
  bool divert(Connection& connection, const link::SlotHeader& header) RINGBOLT_REQUIRES(receive_lock_);
  void end_bypass(const link::SlotHeader& header, ibv_wc_opcode opcode, uint32_t length)
      RINGBOLT_REQUIRES(receive_lock_);
  void deliver_parked(CompletionQueue& cq) RINGBOLT_REQUIRES(receive_lock_, cq.lock_);
  ibv_wc_status place_parked(const ParkedMessage& message) RINGBOLT_REQUIRES(receive_lock_);

  // early_sends.cpp: for profiles and faults whose sends complete before they are delivered
  bool may_complete_early() const;
  size_t send_slots() const;
  uint64_t early_departure_ns(uint32_t length, uint64_t now_ns) RINGBOLT_REQUIRES(send_lock_);
  /// Copies what the stored request sends. False: it can't, or must not, be copied. Throws.
  bool stage(uint32_t index) RINGBOLT_REQUIRES(send_lock_);
  void tell_early(CompletionQueue& cq) RINGBOLT_REQUIRES(send_lock_, cq.lock_);
  void drop_copy(uint32_t index) RINGBOLT_REQUIRES(send_lock_);
  void forget_staged(uint32_t index) RINGBOLT_REQUIRES(send_lock_);
  void count_out(const SendEntry& entry) RINGBOLT_REQUIRES(send_lock_);  ///< its frames count no longer
  bool is_delivered(uint32_t index) const RINGBOLT_REQUIRES(send_lock_);
  bool push_told();  ///< false: what of the told ones is not delivered now will not be soon
  bool may_yet_leave(uint32_t index, uint64_t now_ns) RINGBOLT_REQUIRES(send_lock_);
  void count_undelivered(const SendEntry& entry) RINGBOLT_REQUIRES(send_lock_);
  void tell_undelivered(const char* ending);
  /// Posted and, as far as the program knows, not complete.
  uint32_t open_sends() const RINGBOLT_REQUIRES(send_lock_) {
    return tail_.load(std::memory_order_relaxed) - finished_sends();
  }
  uint32_t finished_sends() const RINGBOLT_REQUIRES(send_lock_) { return completes_early_ ? send_.told : done_.load(); }

  // send_faults.cpp
  /// False: there is no memory for fates.
  bool make_fates() noexcept RINGBOLT_REQUIRES(send_lock_);
  /// Of the entry at `index`, made if it has none yet; after make_fates().
  SendFate& fate_of(uint32_t index) RINGBOLT_REQUIRES(send_lock_);
  SendFate* known_fate(uint32_t index) RINGBOLT_REQUIRES(send_lock_) {
    return send_.entries[index & entry_mask_].has_fate ? &send_.fates[index & entry_mask_] : nullptr;
  }
  /// What befalls the stored request. False: there is no memory for it, and nothing was done.
  bool ordain(uint32_t index) noexcept RINGBOLT_REQUIRES(send_lock_);
  /// Takes back sends from `first` on that were stored by the post that is under way.
  void take_back(uint32_t first, uint64_t line_free_ns) RINGBOLT_REQUIRES(send_lock_);
  /// Whether the entry, whose turn it is, has to wait. May fail it, or lose it: then it is executed.
  enum class Turn : uint8_t { execute, wait, over };
  Turn take_turn(uint32_t index) RINGBOLT_REQUIRES(send_lock_);
  Turn try_again(uint32_t index, uint64_t now_ns) RINGBOLT_REQUIRES(send_lock_);
  bool is_next_held() RINGBOLT_REQUIRES(send_lock_);
  bool suffers_fault(uint32_t index, ibv_wc_status& status) RINGBOLT_REQUIRES(send_lock_);

  // receive_faults.cpp
  /// Nothing passes: the cable is down, the machine frozen, or the queue pair too old.
  bool is_cut_off() { return !context_.port().carries() || (faults_.has(fault::Subject::state) && is_silenced()); }
  bool is_silenced();
  bool has_arrived() RINGBOLT_REQUIRES(receive_lock_);
  bool is_coalescing() RINGBOLT_REQUIRES(receive_lock_);
  void note_traffic() {
    if (faults_.has(fault::Subject::state)) {
      last_traffic_ns_.store(base::now_ns(), std::memory_order_relaxed);
    }
  }
  /// Of a message for the current receive; not success: what the receive completes with.
  ibv_wc_status receive_fault() RINGBOLT_REQUIRES(receive_lock_);

  // transfers.cpp: each moves what it can and says whether the entry needs no more pushing.
  bool execute(SendEntry& entry, const SendRequest& request) RINGBOLT_REQUIRES(send_lock_);
  bool send_message(Connection& connection, SendEntry& entry, const SendRequest& request) RINGBOLT_REQUIRES(send_lock_);
  bool send_datagram(SendEntry& entry, const SendRequest& request) RINGBOLT_REQUIRES(send_lock_);
  bool do_local(SendEntry& entry, const SendRequest& request) RINGBOLT_REQUIRES(send_lock_);
  bool fail(SendEntry& entry, ibv_wc_status status) RINGBOLT_REQUIRES(send_lock_);
  /// Longer than the port takes: which is told, too.
  bool fail_overlong(SendEntry& entry, uint32_t length) RINGBOLT_REQUIRES(send_lock_);
  bool finish(SendEntry& entry, const Connection& connection) RINGBOLT_REQUIRES(send_lock_);
  /// Checks the keys of work request pieces and finds the memory; false when one does not allow `access`.
  bool translate(std::span<const ibv_sge> from, bool is_inline, uint32_t access, Pieces& pieces) const;
  void publish(Connection& connection, link::SlotKind kind, unsigned flags, uint32_t length, uint32_t immediate)
      RINGBOLT_REQUIRES(send_lock_);
  void publish_data(Connection& connection, link::SlotKind kind, unsigned flags, uint32_t length, uint32_t immediate,
                    uint32_t data_at) RINGBOLT_REQUIRES(send_lock_);
  void ring_peer(Connection& connection) RINGBOLT_REQUIRES(send_lock_);
  bool has_room(Connection& connection, uint32_t length, link::LaneProducer::Place& place)
      RINGBOLT_REQUIRES(send_lock_);

  // one_sided.cpp
  bool write_remote(Connection& connection, SendEntry& entry, const SendRequest& request) RINGBOLT_REQUIRES(send_lock_);
  bool write_by_peer(Connection& connection, SendEntry& entry, const SendRequest& request, const Pieces& pieces)
      RINGBOLT_REQUIRES(send_lock_);
  bool notify_written(Connection& connection, const SendRequest& request) RINGBOLT_REQUIRES(send_lock_);
  bool read_remote(Connection& connection, SendEntry& entry, const SendRequest& request) RINGBOLT_REQUIRES(send_lock_);
  bool read_by_peer(Connection& connection, SendEntry& entry, const SendRequest& request, const Pieces& pieces)
      RINGBOLT_REQUIRES(send_lock_);
  bool do_atomic(Connection& connection, SendEntry& entry, const SendRequest& request) RINGBOLT_REQUIRES(send_lock_);
  bool finish_answer(SendEntry& entry, const SendRequest& request) RINGBOLT_REQUIRES(send_lock_);
  ibv_wc_status check_remote(Connection& connection, const SendRequest& request, uint32_t access,
                             link::Region& region) const;
  bool refuse_access(Connection& connection, SendEntry& entry, ibv_wc_status status) RINGBOLT_REQUIRES(send_lock_);
  bool must_wait_for_peer(Connection& connection) RINGBOLT_REQUIRES(send_lock_);
  void count_write(uint32_t length, uint32_t extra_words) RINGBOLT_REQUIRES(send_lock_);
  void count_exchange(const Load& request, const Load& answer, RingboltLaneWord kind) RINGBOLT_REQUIRES(send_lock_);

  // responder.cpp: each says whether the slot was dealt with; if not it stays and is looked at again.
  using Current = CurrentReceive;
  void drain(CompletionQueue& cq, Connection& connection) RINGBOLT_REQUIRES(receive_lock_, cq.lock_);
  bool receive_slot(CompletionQueue& cq, Connection& connection, const link::SlotHeader& header)
      RINGBOLT_REQUIRES(receive_lock_, cq.lock_);
  bool receive_message(CompletionQueue& cq, Connection& connection, const link::SlotHeader& header)
      RINGBOLT_REQUIRES(receive_lock_, cq.lock_);
  bool receive_shared(CompletionQueue& cq, Connection& connection, const link::SlotHeader& header)
      RINGBOLT_REQUIRES(receive_lock_, cq.lock_);
  bool receive_datagram(CompletionQueue& cq, Connection& connection, const link::SlotHeader& header)
      RINGBOLT_REQUIRES(receive_lock_, cq.lock_);
  bool receive_written(CompletionQueue& cq, Connection& connection, const link::SlotHeader& header)
      RINGBOLT_REQUIRES(receive_lock_, cq.lock_);
  bool begin_message(CompletionQueue& cq, Connection& connection, uint32_t total)
      RINGBOLT_REQUIRES(receive_lock_, cq.lock_);
  bool take_posted() RINGBOLT_REQUIRES(receive_lock_);
  bool open_receive(Connection& connection) RINGBOLT_REQUIRES(receive_lock_);
  void limit_to_posted(Connection& connection) RINGBOLT_REQUIRES(receive_lock_);
  void drop_unreceived(Connection& connection) RINGBOLT_REQUIRES(receive_lock_);
  bool keep_in_place(Connection& connection, uint32_t arena_id) const RINGBOLT_REQUIRES(receive_lock_);
  void note_established() RINGBOLT_REQUIRES(receive_lock_);
  void note_no_receive(Connection& connection) RINGBOLT_REQUIRES(receive_lock_);
  void count_message(const link::SlotHeader& header, uint32_t length) RINGBOLT_REQUIRES(receive_lock_);
  void complete_receive(CompletionQueue& cq, uint32_t source_qpn, const link::SlotHeader& header, ibv_wc_opcode opcode,
                        uint32_t length, const std::byte* in_place = nullptr)
      RINGBOLT_REQUIRES(receive_lock_, cq.lock_);
  void push_failed_receive(CompletionQueue& cq, uint64_t wr_id, ibv_wc_status status)
      RINGBOLT_REQUIRES(receive_lock_, cq.lock_);
  bool fail_receive(CompletionQueue& cq, Connection& connection, ibv_wc_status status, link::Refusal refusal)
      RINGBOLT_REQUIRES(receive_lock_, cq.lock_);
  void flush_receives(CompletionQueue& cq) RINGBOLT_REQUIRES(receive_lock_, cq.lock_);
  void note_peer_died();

  // serving.cpp: what the requester could not do itself
  bool serve_write(Connection& connection, const link::SlotHeader& header) RINGBOLT_REQUIRES(receive_lock_);
  bool serve_read(Connection& connection) RINGBOLT_REQUIRES(receive_lock_);
  bool serve_atomic(Connection& connection, const link::SlotHeader& header) RINGBOLT_REQUIRES(receive_lock_);
  bool refuse(Connection& connection, link::Refusal refusal) RINGBOLT_REQUIRES(receive_lock_);
  std::byte* find_local(uint64_t address, uint64_t length, uint32_t key, uint32_t access) const
      RINGBOLT_REQUIRES(receive_lock_);
  void settle(Connection& connection) RINGBOLT_REQUIRES(send_lock_);

  // wired_requester.cpp, wired_responder.cpp, wired_datagrams.cpp: peers on the network
  struct AnswerHost;
  struct RequestHost;
  int connect_wired() RINGBOLT_REQUIRES(modify_lock_, send_lock_, receive_lock_);
  void start_requester() RINGBOLT_REQUIRES(modify_lock_, send_lock_, receive_lock_);
  void disconnect_wired() RINGBOLT_REQUIRES(send_lock_, receive_lock_);
  void greet(const wire::Greeting& greeting) RINGBOLT_REQUIRES(send_lock_);
  void greet_again(uint64_t now_ns) RINGBOLT_REQUIRES(send_lock_);
  bool submit_wired(SendEntry& entry, const SendRequest& request) RINGBOLT_REQUIRES(send_lock_);
  uint32_t place_of(uint32_t operation) const RINGBOLT_REQUIRES(send_lock_);
  bool fill_payload(const transport::OutPacket& packet, std::byte* target) RINGBOLT_NOT_ANALYSED;
  /// At a place for the longest one, sealed. False: its bytes are no longer there.
  bool build(Network::Lease& batch, std::span<std::byte> place, transport::OutPacket& packet,
             cluster::CounterLane& lane) RINGBOLT_NOT_ANALYSED;
  /// Of either half. False: some of it finds no room in the socket, and is tried again when there is, or soon.
  bool send_out(std::optional<Network::Lease>& batch) RINGBOLT_NOT_ANALYSED;
  bool send_requests() RINGBOLT_REQUIRES(send_lock_);
  void send_unsent() RINGBOLT_REQUIRES(send_lock_);
  Network::Lease& lease(std::optional<Network::Lease>& batch);
  void note_unsent(std::atomic<bool>& has_unsent, bool is_out);
  void commit(Network::Lease& batch, const link::UdpPath& path, size_t bytes, cluster::CounterLane& lane);
  void send_wired() RINGBOLT_REQUIRES(send_lock_);
  void take_answers() RINGBOLT_REQUIRES(send_lock_);
  ibv_wc_status wired_failure() const RINGBOLT_REQUIRES(send_lock_);
  void serve_requests(CompletionQueue& cq) RINGBOLT_REQUIRES(receive_lock_, cq.lock_);
  bool must_wait_for_receive() const RINGBOLT_REQUIRES(receive_lock_);
  void count_request(const wire::PacketView& view) RINGBOLT_REQUIRES(receive_lock_);
  void count_responder() RINGBOLT_REQUIRES(receive_lock_);
  void note_sender(const wire::PacketView& view) RINGBOLT_REQUIRES(receive_lock_);
  void report(uint32_t psn) RINGBOLT_REQUIRES(receive_lock_);
  void send_answers(uint64_t now_ns) RINGBOLT_REQUIRES(receive_lock_);
  void end_after(CompletionQueue& cq, transport::ResponderFailure failure) RINGBOLT_REQUIRES(receive_lock_, cq.lock_);
  bool send_datagram_out(SendEntry& entry, const SendRequest& request, const Pieces& pieces)
      RINGBOLT_REQUIRES(send_lock_);
  void drop(Drop why) { process_.network().drops().count(port_->netdev_index, why); }
  void receive_datagrams(CompletionQueue& cq) RINGBOLT_REQUIRES(receive_lock_, cq.lock_);
  void receive_datagram(CompletionQueue& cq, const InboundPacket& packet) RINGBOLT_REQUIRES(receive_lock_, cq.lock_);

  // What is changed under both locks is read under either.
  const auto& send_connections() const RINGBOLT_REQUIRES(send_lock_) RINGBOLT_NOT_ANALYSED { return connections_; }
  const auto& receive_connections() const RINGBOLT_REQUIRES(receive_lock_) RINGBOLT_NOT_ANALYSED {
    return connections_;
  }
  const auto& send_attributes() const RINGBOLT_REQUIRES(send_lock_) RINGBOLT_NOT_ANALYSED { return attributes_; }
  const auto& receive_attributes() const RINGBOLT_REQUIRES(receive_lock_) RINGBOLT_NOT_ANALYSED { return attributes_; }
  const auto& kept_attributes() const RINGBOLT_REQUIRES(modify_lock_) RINGBOLT_NOT_ANALYSED { return attributes_; }
  /// Null for a peer in shared memory. Of each half its own.
  Wired* requesting() const RINGBOLT_REQUIRES(send_lock_) RINGBOLT_NOT_ANALYSED { return wired_.get(); }
  Wired* responding() const RINGBOLT_REQUIRES(receive_lock_) RINGBOLT_NOT_ANALYSED { return wired_.get(); }

  ProtectionDomain& pd_;
  Context& context_;
  const std::shared_ptr<const Port> port_;  ///< the service thread may hold us longer than the context lives
  Process& process_;
  VerbFaults& faults_;
  ibv_qp* const handle_;
  const ibv_qp_type type_;
  const Queues queues_;
  const bool signals_all_;
  const bool is_constrained_;  ///< the port's profile takes something away
  const bool counts_frames_;
  const bool completes_early_;  ///< some sends may
  const bool splits_pieces_;
  std::atomic<bool> receives_in_place_{false};
  const bool wraps_at_4_gib_;
  const bool diverts_unreceived_;  ///< a UC SEND that meets no receive is dropped, or parked
  ibv_qp_cap caps_;
  const uint32_t number_;
  uint32_t qpn_ = 0;
  uint32_t mtu_shift_;
  CountingCell counts_;  ///< first lane under send_lock_, second under receive_lock_

  std::atomic<ibv_qp_state> state_{IBV_QPS_RESET};
  base::Mutex modify_lock_ RINGBOLT_ACQUIRED_BEFORE(CompletionQueue::lock_, send_lock_);  // one modify at a time
  ibv_qp_attr attributes_ RINGBOLT_GUARDED_BY(modify_lock_) RINGBOLT_GUARDED_BY(send_lock_)
      RINGBOLT_GUARDED_BY(receive_lock_){};

  /// The one connection of RC and UC, for a look without lock; owned by connections_.
  std::atomic<Connection*> connection_{nullptr};
  std::unordered_map<uint32_t, std::unique_ptr<Connection>> connections_  ///< by remote QPN
      RINGBOLT_GUARDED_BY(send_lock_) RINGBOLT_GUARDED_BY(receive_lock_);

  base::AdaptiveMutex send_lock_ RINGBOLT_ACQUIRED_AFTER(CompletionQueue::lock_);
  SendHalf send_ RINGBOLT_GUARDED_BY(send_lock_);
  // Entries done_..next_ are executed, next_..tail_ are stored (and the request of `next_` may run).
  uint32_t entry_mask_;
  std::atomic<uint32_t> done_{0};
  std::atomic<uint32_t> next_{0};
  std::atomic<uint32_t> tail_{0};
  std::atomic<uint32_t> awaited_{0};  // up to here somebody waits: past the last signaled or failed one
  std::atomic<ibv_wc_status> first_flush_status_{IBV_WC_WR_FLUSH_ERR};
  std::atomic<bool> wants_send_bells_{false};
  std::atomic<uint32_t> draining_key_{0};
  std::atomic<uint64_t> drain_until_ns_{0};

  /// Ports on a network only: what came in, and the tie to the peer (RC, UC).
  const std::unique_ptr<Inboxes> inboxes_;
  std::unique_ptr<Wired> wired_ RINGBOLT_GUARDED_BY(send_lock_) RINGBOLT_GUARDED_BY(receive_lock_);
  std::atomic<bool> is_wired_{false};
  std::atomic<uint64_t> wire_deadline_ns_{UINT64_MAX};
  std::atomic<bool> has_unsent_sends_{false};    // the socket was full, see SendHalf::out
  std::atomic<bool> has_unsent_answers_{false};  // the same of ReceiveHalf::out

  base::AdaptiveMutex receive_lock_ RINGBOLT_ACQUIRED_AFTER(send_lock_);
  ReceiveHalf receive_ RINGBOLT_GUARDED_BY(receive_lock_);
  // Faults that hold for a while.
  std::atomic<uint32_t> plug_at_rtr_{0};
  std::atomic<uint64_t> last_traffic_ns_{0};    // 0: none yet
  std::atomic<bool> owes_fatal_{false};         // IBV_EVENT_QP_FATAL, once the last work request has failed
  std::atomic<bool> receive_attention_{false};  // the progress function has more to look at than lanes
  std::atomic<bool> wants_receive_bells_{false};

  base::Mutex offers_lock_ RINGBOLT_ACQUIRED_AFTER(receive_lock_);
  std::unordered_map<uint32_t, StoredOffer> offers_ RINGBOLT_GUARDED_BY(offers_lock_);
};

}  // namespace ringbolt::device
