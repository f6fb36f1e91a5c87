// How a queue pair finds its peer: offers of lanes, and what happens when a peer goes.

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <random>
#include <utility>

#include "base/asymmetric_fence.h"
#include "base/clock.h"
#include "base/lock_guard.h"
#include "base/cpu_pause.h"
#include "device/gids.h"
#include "device/limits.h"
#include "device/queue_pair.h"

namespace ringbolt::device {
namespace {

// Offers that came before their receiver was ready for them; more than any real program leaves waiting.
constexpr size_t kMaxStoredOffers = 64;
constexpr size_t kMaxDatagramPeers = 4096;
constexpr size_t kLeastDatagramPeers = 64;  // below it nobody looks for those that are gone

// Table of RNR NAK timer values in units of 10 us (InfiniBand Architecture Specification 1.4, table 45).
constexpr std::array<uint32_t, 32> kRnrTimers10us = {
    65536, 1,   2,   3,   4,    6,    8,    12,   16,   24,   32,   48,    64,    96,    128,   192,
    256,   384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152};

uint64_t fresh_nonce() {
  static thread_local std::mt19937_64 engine = [] {
    std::random_device device;
    return std::mt19937_64((uint64_t{device()} << 32U) | device());
  }();
  return std::max(engine(), link::kNoNonce + 1);
}

/// Its maker has closed it since it offered it, and the next offer may be on its way. UC would lose what it sends when
/// the news of the end comes; RC learns from such a lane that nobody answers, and takes the next one all the same.
bool is_useless(ibv_qp_type type, const base::Result<link::SharedSegment>& lane) {
  return lane && type == IBV_QPT_UC &&
         reinterpret_cast<const link::LaneMemory*>(lane->data())->is_closed.load(std::memory_order_acquire) != 0;
}

}  // namespace

/// Throws std::bad_alloc. If it fails, either way, nothing has changed.
int QueuePair::connect() {
  if (context_.port().is_remote(attributes_.ah_attr.grh.dgid)) {
    return connect_wired();
  }
  {
    const base::LockGuard guard(offers_lock_);
    const auto stored = offers_.find(attributes_.dest_qp_num);
    if (stored != offers_.end() && !stored->second.lane) {
      return stored->second.lane.error().value;  // the peer was told, and its queue pair has failed
    }
  }
  std::unique_ptr<CountingCell> peer_counts;
  if (const Port& port = context_.port(); !port.owns(attributes_.ah_attr.grh.dgid)) {
    peer_counts =
        std::make_unique<CountingCell>(process_.counters(port.peer_counter_path, cluster::CounterPage::Port::peers));
  }
  auto connection = make_connection(attributes_.dest_qp_num, address_of(attributes_.ah_attr.grh.dgid));
  if (!connection) {
    return connection.error().value;
  }
  Connection& made = **connection;
  adopt(std::move(*connection));
  mtu_shift_ = mtu_shift(attributes_.path_mtu);
  send_.peer_counts = std::move(peer_counts);
  offer_lane(made);
  const base::LockGuard guard(offers_lock_);
  if (const auto stored = offers_.find(made.remote_qpn); stored != offers_.end()) {
    if (!is_useless(type_, stored->second.lane)) {
      made.remote = stored->second.remote;
      attach_sender(made, stored->second.offer, std::move(*stored->second.lane));
    }
    offers_.erase(stored);
  }
  return 0;
}

/// Its lane is yet to be offered. Throws std::bad_alloc.
base::Result<std::unique_ptr<Connection>> QueuePair::make_connection(uint32_t remote_qpn,
                                                                     const std::array<uint8_t, 16>& remote_gid) {
  auto segment = link::SharedSegment::create("ringbolt-lane", link::kLaneBytes);
  if (!segment) {
    return base::fail(segment.error().value);
  }
  auto connection = std::make_unique<Connection>(remote_qpn, std::move(*segment));
  connection->remote_gid = remote_gid;
  connection->own_nonce = fresh_nonce();
  errno = 0;
  connection->remote = process_.owner_of(remote_qpn);
  if (connection->remote == nullptr && (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS)) {
    return base::fail(errno);  // there may be somebody: it is we who can't reach him
  }
  settle(*connection);
  connection->receiver.want_bell(wants_receive_bells_.load(std::memory_order_relaxed));  // before a peer can write
  return connection;
}

void QueuePair::offer_lane(Connection& connection) {
  if (connection.remote != nullptr) {
    const auto& path = send_attributes().ah_attr.grh;
    link::Offer offer;
    offer.source_qpn = qpn_;
    offer.target_qpn = connection.remote_qpn;
    offer.qp_type = type_;
    offer.pd_key = pd_.key;
    offer.nonce = connection.own_nonce;
    const Port& port = context_.port();
    offer.source_gid =
        address_of(type_ == IBV_QPT_UD ? port.known_gids.front() : port.addresses()->shown[path.sgid_index]);
    offer.target_gid = connection.remote_gid;
    connection.remote->peer().send(offer, connection.receive_segment.descriptor());
  }
  connection.receive_segment.close_descriptor();
}

void QueuePair::settle(Connection& connection) {
  connection.receiver.set_access(send_attributes().qp_access_flags);
  connection.receiver.set_rnr_timer_us(kRnrTimers10us[send_attributes().min_rnr_timer & 31U] * 10U);
}

void QueuePair::adopt(std::unique_ptr<Connection> connection) {
  Connection& adopted = *connection;
  connections_[adopted.remote_qpn] = std::move(connection);
  if (type_ != IBV_QPT_UD) {
    connection_.store(&adopted, std::memory_order_seq_cst);
  }
  adopted.receiver.want_bell(wants_receive_bells_.load(std::memory_order_relaxed));
}

void QueuePair::attach_sender(Connection& connection, const link::Offer& offer, link::SharedSegment lane) {
  connection.sender.reset();
  connection.send_segment = std::move(lane);
  connection.sender.emplace(*reinterpret_cast<link::LaneMemory*>(connection.send_segment.data()));
  connection.remote_pd_key = offer.pd_key;
  connection.remote_nonce = offer.nonce;
  connection.heard_consumed.store(0, std::memory_order_relaxed);
  connection.next_operation = connection.operations_end_slot = connection.rung_for = 0;
  connection.peer_state.store(PeerState::present);
  connection.is_refused = false;
  send_.progress_since_ns = 0;  // what waits has somebody to go to only now
  connection.sender->want_bell(wants_send_bells_.load(std::memory_order_relaxed));
}

void QueuePair::disconnect(Connection& connection) {
  connection.receiver.tell();
  connection.receiver.close();
  if (connection.sender) {
    connection.sender->end();
  }
  if (connection.remote != nullptr) {
    connection.remote->peer().send(link::Withdraw{qpn_, connection.remote_qpn, connection.own_nonce});
  }
}

void QueuePair::end_accesses() {
  if (type_ == IBV_QPT_UD || connections_.empty()) {
    return;
  }
  {
    const base::LockGuard guard(receive_lock_);
    for (const auto& [qpn, connection] : receive_connections()) {
      connection->receiver.close();
    }
  }
  // A peer announces its copy, then looks whether the lane is closed: one of the two sees the other.
  base::heavy_fence();
  const uint64_t deadline = base::now_ns() + kAccessDrainNs;
  for (const auto& [qpn, connection] : connections_) {
    while (connection->remote != nullptr && !connection->remote->peer().is_gone() &&
           connection->receiver.announced_key() != 0 && base::now_ns() < deadline) {
      base::cpu_pause();
    }
  }
}

bool QueuePair::on_offer(const std::shared_ptr<link::RemoteProcess>& remote, const link::Offer& offer,
                         base::Result<link::SharedSegment> lane) {
  const base::LockGuard guard(send_lock_);
  const Port& port = *port_;
  if (send_.is_destroyed || offer.qp_type != static_cast<uint32_t>(type_) || !port.owns(gid_of(offer.target_gid)) ||
      !port.reaches(gid_of(offer.source_gid)) || is_useless(type_, lane)) {
    return false;
  }
  Connection* connection = nullptr;
  if (type_ == IBV_QPT_UD) {
    connection = datagram_connection(offer.source_qpn, offer.source_gid);
  } else if (const auto found = send_connections().find(offer.source_qpn); found != send_connections().end()) {
    connection = found->second.get();
  }
  // A queue pair in error will be reset and connected again; it needs the offer then.
  const bool is_failed = state_.load(std::memory_order_relaxed) == IBV_QPS_ERR;
  const bool has_lane = connection != nullptr && connection->sender.has_value();
  // What has begun on one lane can't go on on another one.
  const bool has_begun =
      has_lane && (connection->sender->published() != 0 || next_.load(std::memory_order_relaxed) != 0);
  const bool is_busy =
      has_lane && ((type_ != IBV_QPT_UD && has_begun && has_unfinished_sends()) ||
                   (connection->peer_state.load() == PeerState::present && !connection->sender->is_closed()));
  if (connection == nullptr || is_failed || is_busy) {
    const base::LockGuard offers_guard(offers_lock_);
    if (type_ != IBV_QPT_UD && (offers_.size() < kMaxStoredOffers || offers_.contains(offer.source_qpn))) {
      offers_.insert_or_assign(offer.source_qpn, StoredOffer{remote, offer, std::move(lane)});
    }
    return true;
  }
  if (!lane) {
    fail_connection(*connection, IBV_WC_LOC_QP_OP_ERR);
    return true;
  }
  {
    std::shared_ptr<link::RemoteProcess> newest = remote;
    const base::LockGuard receive_guard(receive_lock_);  // who receives reads it
    connection->remote.swap(newest);
  }
  attach_sender(*connection, offer, std::move(*lane));
  if (has_queued_sends()) {
    run_queue();
    process_.request_service();
  }
  return true;
}

/// One of its two lanes can't be had, here or there. Under send_lock_.
void QueuePair::fail_connection(Connection& connection, ibv_wc_status status) {
  if (type_ == IBV_QPT_UD) {
    connection.is_refused = true;  // its datagrams are lost, as datagrams may be, and counted
    kick();
    return;
  }
  const base::LockGuard receive_guard(receive_lock_);
  enter_error(status);
  announce(IBV_EVENT_QP_FATAL);
}

bool QueuePair::on_refuse(const link::Refuse& refuse) {
  const base::LockGuard guard(send_lock_);
  const auto found = send_connections().find(refuse.source_qpn);
  const bool is_known =
      !send_.is_destroyed && found != send_connections().end() && found->second->own_nonce == refuse.nonce;
  if (is_known && type_ != IBV_QPT_UD && state_.load(std::memory_order_relaxed) != IBV_QPS_ERR) {
    fail_connection(*found->second, IBV_WC_REM_OP_ERR);
  }
  return is_known;
}

/// Null when there are too many, or no memory or descriptor for one more.
Connection* QueuePair::datagram_connection(uint32_t remote_qpn, const std::array<uint8_t, 16>& remote_gid) try {
  if (const auto found = send_connections().find(remote_qpn); found != send_connections().end()) {
    if (found->second->peer_state.load() == PeerState::present) {
      return found->second.get();
    }
    const base::LockGuard guard(receive_lock_);
    disconnect(*found->second);
    connections_.erase(found);
  }
  if (send_connections().size() >= send_.purge_at) {
    purge_datagram_peers();
  }
  if (send_connections().size() >= kMaxDatagramPeers) {
    return nullptr;
  }
  auto connection = make_connection(remote_qpn, remote_gid);
  if (!connection) {
    return nullptr;
  }
  Connection* made = connection->get();
  const base::LockGuard guard(receive_lock_);
  adopt(std::move(*connection));
  offer_lane(*made);
  return made;
} catch (const std::bad_alloc&) {
  return nullptr;
}

void QueuePair::purge_datagram_peers() {
  const base::LockGuard guard(receive_lock_);
  for (auto at = connections_.begin(); at != connections_.end();) {
    Connection& connection = *at->second;
    if (connection.peer_state.load() != PeerState::present && !connection.receiver.has_slot()) {
      disconnect(connection);
      at = connections_.erase(at);
    } else {
      ++at;
    }
  }
  send_.purge_at = std::max(kLeastDatagramPeers, connections_.size() * 2);
}

void QueuePair::on_withdraw(const link::Withdraw& withdraw) {
  const base::LockGuard guard(send_lock_);
  {
    const base::LockGuard offers_guard(offers_lock_);
    const auto stored = offers_.find(withdraw.source_qpn);
    if (stored != offers_.end() && stored->second.offer.nonce == withdraw.nonce) {
      offers_.erase(stored);
    }
  }
  const auto found = send_connections().find(withdraw.source_qpn);
  if (withdraw.nonce == link::kNoNonce) {
    if (type_ == IBV_QPT_UD && found != send_connections().end() && !found->second->sender) {
      found->second->is_refused = true;
      kick();
    }
    return;
  }
  if (found != send_connections().end() && found->second->remote_nonce == withdraw.nonce) {
    found->second->peer_state.store(PeerState::withdrawn);
    send_.progress_since_ns = 0;  // what it must answer in is counted from here
    kick();
  }
}

void QueuePair::on_peer_gone(const link::Peer& peer, bool was_orderly) {
  const base::LockGuard send_guard(send_lock_);
  const base::LockGuard receive_guard(receive_lock_);
  {
    const base::LockGuard offers_guard(offers_lock_);
    std::erase_if(offers_, [&](const auto& entry) { return &entry.second.remote->peer() == &peer; });
  }
  for (const auto& [qpn, connection] : connections_) {
    if (connection->remote != nullptr && &connection->remote->peer() == &peer) {
      take_last_word(*connection);
      connection->peer_state.store(was_orderly ? PeerState::left : PeerState::died);
      send_.progress_since_ns = 0;
      receive_attention_.store(true, std::memory_order_relaxed);
    }
  }
  kick();
}

void QueuePair::take_last_word(Connection& connection) {
  if (!connection.sender) {
    return;
  }
  connection.sender->take_consumed(connection.heard_consumed.load(std::memory_order_acquire));
  if (uint32_t consumed = 0; connection.receiver.last_heard(consumed)) {
    connection.sender->take_consumed(consumed);
  }
}

bool QueuePair::is_accessed(uint32_t key) {
  const base::LockGuard guard(receive_lock_);
  return std::ranges::any_of(receive_connections(), [key](const auto& entry) {
    const Connection& connection = *entry.second;
    return connection.receiver.announced_key() == key && connection.peer_state.load() == PeerState::present;
  });
}

void QueuePair::wait_for_own_copies() {
  if (inboxes_ != nullptr) {
    const base::LockGuard guard(send_lock_);  // who builds packets of a send, or places an answer, holds it
  }
  if (wraps_at_4_gib_) {
    const base::LockGuard guard(receive_lock_);  // who places data in another region than its receive's holds it
  }
}

void QueuePair::end_drain(uint32_t key) {
  const base::LockGuard guard(send_lock_);
  if (draining_key_.load(std::memory_order_relaxed) == key) {
    draining_key_.store(0, std::memory_order_relaxed);
    run_queue();
  }
}

void QueuePair::wait_for_copies() {
  // Who copies holds one of the two.
  { const base::LockGuard guard(send_lock_); }
  { const base::LockGuard guard(receive_lock_); }
}

void QueuePair::tell_peers() {
  const base::LockGuard guard(receive_lock_);
  for (const auto& [qpn, connection] : receive_connections()) {
    if (connection->receiver.tell() && connection->remote != nullptr) {
      connection->remote->peer().ring();
    }
  }
}

void QueuePair::want_receive_bells(bool wanted) {
  // Under the lock, as adopt() is: else a new connection could get the wish of before.
  const base::LockGuard guard(receive_lock_);
  wants_receive_bells_.store(wanted, std::memory_order_relaxed);
  for (const auto& [qpn, connection] : receive_connections()) {
    connection->receiver.want_bell(wanted);
  }
}

void QueuePair::want_send_bells(bool wanted) {
  const base::LockGuard guard(send_lock_);
  wants_send_bells_.store(wanted, std::memory_order_relaxed);
  for (const auto& [qpn, connection] : send_connections()) {
    if (connection->sender) {
      connection->sender->want_bell(wanted);
    }
  }
}

}  // namespace ringbolt::device
