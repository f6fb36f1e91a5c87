#include "device/queue_pair.h"

#include <time.h>

#include <algorithm>
#include <cerrno>
#include <new>
#include <utility>

#include <fmt/format.h>

#include "base/c_border.h"
#include "base/clock.h"
#include "base/lock_guard.h"
#include "device/call_faults.h"
#include "device/datagram_transport.h"
#include "device/explanations.h"
#include "device/failure_notes.h"
#include "device/failures.h"
#include "device/limits.h"
#include "device/receive_quirks.h"
#include "device/send_quirks.h"
#include "wire/greeting.h"

namespace ringbolt::device {
namespace {

int check_caps(const ibv_qp_init_attr& wanted, bool has_srq) {
  const ibv_qp_cap& cap = wanted.cap;
  const bool receives_fit = has_srq || (cap.max_recv_wr <= kMaxQueueDepth && cap.max_recv_sge <= kMaxSge);
  if (cap.max_send_wr > kMaxQueueDepth || cap.max_send_sge > kMaxSge || cap.max_inline_data > kMaxInlineBytes ||
      !receives_fit) {
    return base::refused(EINVAL, "ibv_create_qp", [&] { return why_caps_refused(cap); });
  }
  return 0;
}

ibv_qp_cap granted(const ibv_qp_cap& wanted, bool has_srq) {
  return {std::max(1U, wanted.max_send_wr), has_srq ? 0 : std::max(1U, wanted.max_recv_wr),
          std::max(1U, wanted.max_send_sge), has_srq ? 0 : std::max(1U, wanted.max_recv_sge), wanted.max_inline_data};
}

SendQueue::Limits limits_of(const ibv_qp_cap& caps, const ibv_qp_init_attr& init) {
  return {caps.max_send_wr, caps.max_send_sge, caps.max_inline_data, init.sq_sig_all != 0};
}

bool is_vendor(uint8_t opcode) { return opcode == wire::kGreeting || opcode == wire::kSelectiveAck; }

/// Greetings and reports pass between own peers of RC and UC alone.
bool is_of(ibv_qp_type type, uint8_t opcode) {
  switch (type) {
    case IBV_QPT_UD:
      return wire::is_ud(opcode);
    case IBV_QPT_RC:
      return is_vendor(opcode) || wire::is_rc(opcode);
    default:
      return is_vendor(opcode) || wire::is_uc(opcode);
  }
}

}  // namespace

base::Result<std::shared_ptr<QueuePair>> QueuePair::create(ProtectionDomain& pd, CompletionQueues queues,
                                                           ibv_qp_init_attr& wanted, ibv_qp* handle) {
  if (wanted.qp_type != IBV_QPT_RC && wanted.qp_type != IBV_QPT_UC && wanted.qp_type != IBV_QPT_UD) {
    return base::fail(base::refused(EOPNOTSUPP, "ibv_create_qp", [&] {
      return base::Explanation{
          fmt::format("qp_type is {}; the device has RC (2), UC (3) and UD (4)", static_cast<int>(wanted.qp_type)),
          "set qp_type to one of these"};
    }));
  }
  if (queues.send == nullptr || queues.receive == nullptr) {
    return base::fail(base::refused(EINVAL, "ibv_create_qp", [] {
      return base::Explanation{"send_cq or recv_cq is null", "give both; one completion queue may be both"};
    }));
  }
  if (const int error = check_caps(wanted, queues.shared != nullptr)) {
    return base::fail(error);
  }
  try {
    std::shared_ptr<QueuePair> qp(new QueuePair(pd, std::move(queues), wanted, handle));
    const CompletionQueues& own = qp->core_.queues;
    bool sends = false;
    bool receives = false;
    bool is_known = false;
    const auto undo = [&] {
      if (is_known) {
        pd.context.process().remove(*qp);
      }
      if (receives) {
        own.receive->detach(qp->core_.receive_place, true);
      }
      if (sends) {
        own.send->detach(qp->core_.send_place, false);
      }
    };
    try {
      qp->core_.send_place = own.send->attach(*qp, false);
      sends = true;
      qp->core_.receive_place = own.receive->attach(*qp, true);
      receives = true;
      // Last: the service thread may look at those that are known at any time, and finds the places.
      const auto qpn = pd.context.process().add(qp);
      if (!qpn) {
        undo();
        return base::fail(qpn.error().value);
      }
      is_known = true;
      qp->look_at_faults();  // those that came since it was made were told to the queue pairs that were known
    } catch (const std::bad_alloc&) {
      undo();
      throw;
    }
    pd.users.fetch_add(1, std::memory_order_relaxed);
    if (own.shared != nullptr) {
      own.shared->users.fetch_add(1, std::memory_order_relaxed);
    }
    wanted.cap = qp->caps_;
    return qp;
  } catch (const std::bad_alloc&) {
    return base::fail(ENOMEM);
  }
}

QueuePair::QueuePair(ProtectionDomain& pd, CompletionQueues queues, const ibv_qp_init_attr& init, ibv_qp* handle)
    : caps_(granted(init.cap, queues.shared != nullptr)),
      diverts_unexpected_(ReceiveQuirks::diverts(pd.context.port(), init.qp_type, queues.shared != nullptr)),
      core_(pd, std::move(queues), init, handle),
      inboxes_(core_.port->is_on_network() ? std::make_unique<Inboxes>() : nullptr),
      lanes_(core_, send_),
      send_(core_, limits_of(caps_, init), SendQuirks::slots(core_, caps_.max_send_wr), SendQuirks::create(core_)),
      receive_(core_, std::max(1U, caps_.max_recv_wr), std::max(1U, init.cap.max_recv_sge),
               SendQuirks::are_needed(core_)) {
  if (core_.type == IBV_QPT_UD) {
    transport_ = std::make_unique<DatagramTransport>(core_, lanes_, inboxes_.get());
    core_.transport.store(transport_.get());
  }
  if (base::is_explaining()) {
    core_.notes = std::make_unique<QueuePairNotes>(send_.slots(), caps_.max_send_sge, std::max(1U, caps_.max_recv_wr),
                                                   core_.port->profile.knobs.splits_pieces);
  }
}

QueuePair::~QueuePair() = default;

void QueuePair::destroy() {
  if (core_.process.is_abandoned()) {
    return;  // in a forked child: everything shared is the parent's
  }
  inject_at_destruction(*core_.port);
  if (core_.port->profile.knobs.leaks_after_error && core_.state() == IBV_QPS_ERR) {
    core_.pd.stuck_regions.store(core_.pd.regions_made.load());
  }
  settle_told("a queue pair was destroyed", base::now_ns() + kLeastTimeoutNs);
  finish_receiving();
  send_rest(base::now_ns() + kLeastTimeoutNs);
  core_.queues.receive->detach(core_.receive_place, true);
  core_.queues.send->detach(core_.send_place, false);
  {
    const base::LockGuard one_at_a_time(modify_lock_);
    lanes_.end_accesses();
  }
  core_.when_noting([&](QueuePairNotes&) {
    tell_peer(core_, PeerNotes::Kind::queue_pair_gone, fmt::format("it was destroyed at {}", base::calling_place()));
  });
  core_.process.remove(*this);  // not before: who deregisters memory meanwhile asks the queue pairs that are known
  {
    const base::LockGuard one_at_a_time(modify_lock_);
    const SendGuard send_guard(core_.locks);
    const ReceiveGuard receive_guard(core_.locks);
    lanes_.retire();
    reset();
  }
  core_.queues.receive->forget(core_.qpn);
  core_.queues.send->forget(core_.qpn);
  if (core_.queues.shared != nullptr) {
    core_.queues.shared->users.fetch_sub(1, std::memory_order_relaxed);
  }
  core_.pd.users.fetch_sub(1, std::memory_order_relaxed);
}

void QueuePair::query(ibv_qp_attr& attributes, ibv_qp_init_attr& init) {
  const base::LockGuard one_at_a_time(modify_lock_);
  attributes = core_.attributes;
  attributes.qp_state = attributes.cur_qp_state = core_.state();
  attributes.cap = caps_;
  init = {};
  init.cap = caps_;
  init.qp_type = core_.type;
  init.sq_sig_all = send_.limits().signals_all ? 1 : 0;
}

int QueuePair::post_receive_noted(ibv_recv_wr* wr, ibv_recv_wr** bad, const ReceivePosting& from) try {
  if (core_.faults.has(fault::Subject::state)) [[unlikely]] {
    inject_at_posting(*core_.port);
  }
  if (diverts_unexpected_) {
    take_arrived();
  }
  return core_.notes == nullptr ? receive_.post(wr, bad) : receive_.post_noted(wr, bad, from);
} catch (...) {
  return base::caught_errno();
}

int QueuePair::post_receive(ibv_recv_wr* wr, ibv_recv_wr** bad) try {
  if (core_.faults.has(fault::Subject::state)) [[unlikely]] {
    inject_at_posting(*core_.port);
  }
  if (diverts_unexpected_) {
    take_arrived();  // what came before these receives did not meet them
  }
  return receive_.post(wr, bad);
} catch (...) {
  return base::caught_errno();
}

void QueuePair::progress_receives(CompletionQueue& cq) {
  const ReceiveGuard guard(core_.locks);
  QueuePairTransport* const transport = core_.transport.load(std::memory_order_relaxed);
  switch (core_.state()) {
    case IBV_QPS_ERR:
      if (transport != nullptr) {
        transport->send_unsent_answers();  // a refusal is the last that the peer hears
      }
      // The send that failed comes first: programs report the first bad status they see.
      if (core_.queues.send.get() != &cq || core_.sends.unfinished() == 0) {
        receive_.flush(cq);
      }
      return;
    case IBV_QPS_RESET:
    case IBV_QPS_INIT:
      return;
    default:
      break;
  }
  if (core_.cable.is_cut_off() || (core_.faults.has(fault::Subject::state) && receive_.is_coalescing())) {
    transport->send_unsent_answers();
    return;
  }
  if (diverts_unexpected_ && !receive_.deliver_unexpected(cq)) {
    return;
  }
  if (core_.receive_attention.load(std::memory_order_relaxed) && !diverts_unexpected_) [[unlikely]] {
    // It is paid now. Who changes the state asks for a look after that: if the state is another one by now, for this.
    // An exchange, so that the look at the state is not made before it.
    core_.receive_attention.exchange(false, std::memory_order_seq_cst);
    if (core_.state() == IBV_QPS_ERR) {
      core_.ask_for_look();
      return;
    }
  }
  transport->receive(receive_, cq);
}

bool QueuePair::may_receive_more() {
  const ReceiveGuard guard(core_.locks);
  const QueuePairTransport* const transport = core_.transport.load(std::memory_order_relaxed);
  switch (core_.state()) {
    case IBV_QPS_ERR:
      return !receive_.is_flushed() || (transport != nullptr && transport->has_unsent());
    case IBV_QPS_RESET:
    case IBV_QPS_INIT:
      return false;
    default:
      return core_.receive_attention.load(std::memory_order_relaxed) || transport->has_arrived() ||
             transport->may_have_news();
  }
}

void QueuePair::check_timers(uint64_t now_ns) {
  if (QueuePairTransport* const transport = core_.transport.load(std::memory_order_acquire)) {
    transport->check_timers(send_, now_ns);
  }
}

uint64_t QueuePair::deadline_ns() const {
  const QueuePairTransport* const transport = core_.transport.load(std::memory_order_acquire);
  return transport == nullptr ? UINT64_MAX : transport->deadline_ns();
}

void QueuePair::fail_from_queue() {
  // The caller holds a completion queue's lock, perhaps inside our own progress: no lock of ours may be taken.
  // First the state: who is asked for by what follows looks at that.
  core_.set_state(IBV_QPS_ERR);
  // The transport stays as long as the caller's queue knows us. Of UD it has many lanes, which only a lock keeps; its
  // peers ask for nothing but room for datagrams.
  if (core_.type != IBV_QPT_UD) {
    if (QueuePairTransport* const transport = core_.transport.load(std::memory_order_seq_cst)) {
      transport->close();
    }
  }
  core_.announce(IBV_EVENT_QP_FATAL);
  // Its other queue has work to flush, and its program may sleep on that one.
  core_.process.request_service(*core_.queues.send);
  core_.process.request_service(*core_.queues.receive);
}

void QueuePair::take_arrived() {
  core_.queues.receive->take_arrived();
  if (core_.queues.send != core_.queues.receive) {
    core_.queues.send->take_arrived();
  }
}

void QueuePair::finish_receiving() {
  const ibv_qp_state state = core_.state();
  if (core_.type == IBV_QPT_UD || state == IBV_QPS_RESET || state == IBV_QPS_INIT || state == IBV_QPS_ERR) {
    return;
  }
  take_arrived();
  lanes_.tell_peers();
}

bool QueuePair::has_unread() {
  if (core_.type == IBV_QPT_UD) {
    return false;
  }
  bool has_some = false;
  {
    const ReceiveGuard guard(core_.locks);
    lanes_.each_receiving([&](const Connection& connection) { has_some = connection.receiver.has_slot(); });
  }
  if (!has_some) {
    const SendGuard guard(core_.locks);
    has_some = send_.has_untold_completion();
  }
  return has_some || core_.queues.receive->holds_success_of(core_.qpn) ||
         core_.queues.send->holds_success_of(core_.qpn);
}

void QueuePair::drop(Drop why, const InboundPacket& packet) {
  record_packet(trace::Kind::packet_dropped, core_.qpn, packet.view.headers.bth, packet.view.payload.size(),
                static_cast<uint8_t>(why));
  core_.when_noting([&](QueuePairNotes&) {
    // Others are repeated, or late: whoever waits for an answer is told.
    if (core_.type == IBV_QPT_UD && wire::is_ud(packet.view.headers.bth.opcode)) {
      explain_dropped(core_, source_text(packet.view, packet.flow), why_dropped(why, core_.state()));
    }
  });
  core_.process.network().drops().count(core_.port->netdev_index, why);
}

/// The state is a hint here: a packet that comes in the very moment of a reset waits in an inbox that is emptied then.
QueuePair::Unpolled QueuePair::arrive(InboundPacket&& packet, uint64_t now_ns) {
  const ibv_qp_state state = core_.state();
  const wire::Bth& bth = packet.view.headers.bth;
  record_packet(trace::Kind::packet_came, core_.qpn, bth, packet.view.payload.size());
  const auto dropped = [&](Drop why) {
    drop(why, packet);
    return Unpolled{};
  };
  if (inboxes_ == nullptr || state == IBV_QPS_RESET || state == IBV_QPS_INIT || state == IBV_QPS_ERR) {
    return dropped(Drop::not_ready);
  }
  if (!is_of(core_.type, bth.opcode)) {
    return dropped(Drop::wrong_type);
  }
  if (!inboxes_->is_open.load(std::memory_order_acquire)) {
    return dropped(Drop::not_ready);
  }
  if (bth.opcode == wire::kGreeting) {
    if (const auto greeting = wire::parse_greeting(packet.view.payload)) {
      inboxes_->seal.hear(*greeting);
    }
  } else if (core_.type != IBV_QPT_UD && !inboxes_->seal.admits(packet.view)) {
    return dropped(Drop::unsealed);
  }
  Unpolled unpolled{};
  if (core_.type == IBV_QPT_RC && transport::Seal::admits_carried(packet.view)) {
    InboundPacket carried;
    carried.view.headers = wire::carried_acknowledgement(packet.view.headers);
    carried.flow = packet.flow;
    record_packet(trace::Kind::packet_came, core_.qpn, carried.view.headers.bth, 0);
    unpolled[1] = take_in(std::move(carried), true, now_ns);
  }
  const bool is_answer = wire::is_response(bth.opcode) || bth.opcode == wire::kGreeting;
  unpolled[0] = take_in(std::move(packet), is_answer, now_ns);
  return unpolled;
}

/// First the packet, then the mark: who takes the mark finds it.
CompletionQueue* QueuePair::take_in(InboundPacket&& packet, bool is_answer, uint64_t now_ns) {
  if (!(is_answer ? inboxes_->answers : inboxes_->requests).push(std::move(packet))) {
    drop(Drop::inbox_full, packet);  // which is untouched then
    return nullptr;
  }
  CompletionQueue& cq = is_answer ? *core_.queues.send : *core_.queues.receive;
  is_answer ? cq.mark_sender(core_.send_place) : cq.mark_receiver(core_.receive_place);
  return cq.is_polled_at(now_ns) ? nullptr : &cq;
}

void QueuePair::look_at_faults() {
  if (!core_.faults.has_any()) {
    return;
  }
  {
    const SendGuard guard(core_.locks);
    send_.add_quirks();
  }
  const ReceiveGuard guard(core_.locks);
  receive_.add_quirks();
}

// Service thread.
void QueuePair::look_at_cable() {
  if (core_.port->unplugged() != fault::Unplug::flush) {
    return;
  }
  const SendGuard send_guard(core_.locks);
  const ReceiveGuard receive_guard(core_.locks);
  if (core_.state() != IBV_QPS_RESET && core_.state() != IBV_QPS_INIT) {
    core_.enter_error(IBV_WC_WR_FLUSH_ERR);
  }
}

void QueuePair::wait_for_own_copies() {
  if (inboxes_ != nullptr) {
    const SendGuard guard(core_.locks);  // who builds packets of a send, or places an answer, holds it
  }
  if (core_.port->profile.knobs.wrap_4_gib == profile::Wrap4Gib::corrupt) {
    const ReceiveGuard guard(core_.locks);  // who places data in another region than its receive's holds it
  }
}

void QueuePair::wait_for_copies() {
  // Who copies holds one of the two.
  { const SendGuard guard(core_.locks); }
  { const ReceiveGuard guard(core_.locks); }
}

void QueuePair::end_drain(uint32_t key) {
  const SendGuard guard(core_.locks);
  if (send_.windows().end_drain(key)) {
    send_.run();
  }
}

void QueuePair::settle_told(const char* ending, uint64_t deadline_ns) {
  {
    const SendGuard guard(core_.locks);
    if (SendQuirks* const quirks = send_.quirks(); quirks != nullptr && core_.transport.load() != nullptr) {
      quirks->let_go(send_);
    }
  }
  if (SendQuirks* const early = send_.early()) {
    early->settle_told(send_, ending, deadline_ns);
  }
}

/// False: nothing is left.
bool QueuePair::try_rest() {
  bool is_being_read = false;
  {
    const SendGuard guard(core_.locks);
    QueuePairTransport* const transport = core_.transport.load(std::memory_order_relaxed);
    is_being_read = transport != nullptr && transport->is_being_read();
    if (transport == nullptr || (!is_being_read && !transport->has_unsent())) {
      return false;
    }
    transport->send_unsent(send_);
  }
  const ReceiveGuard guard(core_.locks);
  QueuePairTransport* const transport = core_.transport.load(std::memory_order_relaxed);
  if (transport != nullptr) {
    transport->send_unsent_answers();
  }
  return transport != nullptr && (is_being_read || transport->has_unsent());
}

void QueuePair::send_rest(uint64_t deadline_ns) {
  // Between two tries, without any lock: the service thread, and those who poll, work as well.
  constexpr timespec kPause{0, 100'000};
  while (try_rest() && base::now_ns() < deadline_ns) {
    nanosleep(&kPause, nullptr);
  }
}

}  // namespace ringbolt::device
