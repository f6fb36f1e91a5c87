#include "device/lanes.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <new>
#include <random>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "base/asymmetric_fence.h"
#include "base/clock.h"
#include "base/cpu_pause.h"
#include "base/lock_guard.h"
#include "device/failure_notes.h"
#include "device/gids.h"
#include "device/limits.h"
#include "device/send_queue.h"
#include "wire/syndrome.h"

namespace ringbolt::device {
namespace {

// Offers that came before their receiver was ready for them; more than any real program leaves waiting.
constexpr size_t kMaxStoredOffers = 64;
// Each has a lane to us, of link::kLaneBytes of address space.
constexpr size_t kMaxDatagramPeers = 4096;
constexpr size_t kLeastDatagramPeers = 64;  // below it nobody looks for those that are gone

/// Tells offers apart; it keeps nobody out, so that a pseudorandom one will do.
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

base::Result<Connection*> Lanes::connect() {
  const ibv_qp_attr& attributes = core_.attributes;
  {
    const base::LockGuard guard(offers_lock_);
    const auto stored = offers_.find(attributes.dest_qp_num);
    if (stored != offers_.end() && !stored->second.offered.lane) {
      return base::fail(stored->second.offered.lane.error().value);  // the peer was told, and its queue pair has failed
    }
  }
  auto made = make(attributes.dest_qp_num, address_of(attributes.ah_attr.grh.dgid));
  if (!made) {
    return base::fail(made.error().value);
  }
  Connection& connection = **made;
  adopt(std::move(*made));
  offer(connection);
  const base::LockGuard guard(offers_lock_);
  if (const auto stored = offers_.find(connection.remote_qpn); stored != offers_.end()) {
    // The peer was there first.
    if (!is_useless(core_.type, stored->second.offered.lane)) {
      connection.remote = stored->second.remote;
      attach(connection, stored->second.offer, std::move(stored->second.offered));
    }
    offers_.erase(stored);
  }
  return &connection;
}

/// Its lane is yet to be offered. Throws std::bad_alloc.
base::Result<std::unique_ptr<Connection>> Lanes::make(uint32_t remote_qpn, const std::array<uint8_t, 16>& remote_gid) {
  auto segment = link::SharedSegment::create("ringbolt-lane", link::kLaneBytes);
  if (!segment) {
    return base::fail(segment.error().value);
  }
  auto connection = std::make_unique<Connection>(remote_qpn, std::move(*segment));
  connection->remote_gid = remote_gid;
  connection->own_nonce = fresh_nonce();
  errno = 0;
  connection->remote = core_.process.owner_of(remote_qpn);
  if (connection->remote == nullptr && (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS)) {
    return base::fail(errno);  // there may be somebody: it is we who can't reach him
  }
  publish_attributes(*connection);
  return connection;
}

void Lanes::offer(Connection& connection) {
  if (connection.remote != nullptr) {
    const Port& port = *core_.port;
    const uint8_t index = core_.attributes.ah_attr.grh.sgid_index;
    link::Offer offer;
    offer.source_qpn = core_.qpn;
    offer.target_qpn = connection.remote_qpn;
    offer.qp_type = core_.type;
    offer.pd_key = core_.pd.key;
    offer.nonce = connection.own_nonce;
    // UD has no address of its own: any GID of the port tells the peer who it is.
    offer.source_gid = address_of(core_.type == IBV_QPT_UD ? port.known_gids.front() : port.addresses()->shown[index]);
    offer.target_gid = connection.remote_gid;
    const CompletionQueue& receives = *core_.queues.receive;
    const CompletionQueue& sends = *core_.queues.send;
    offer.receive_queue = receives.wake_name();
    offer.send_queue = sends.wake_name();
    offer.mark = core_.receive_place;
    std::array<int, 3> files{connection.receive_segment.descriptor()};
    size_t count = 1;
    if (receives.channel_number() != 0) {
      offer.receive_channel = receives.channel_number();
      files[count++] = receives.channel_descriptor();
    }
    if (sends.channel_number() != 0) {
      offer.send_channel = sends.channel_number();
      if (offer.send_channel != offer.receive_channel) {
        files[count++] = sends.channel_descriptor();
      }
    }
    connection.remote->peer().send(offer, std::span(files).first(count));
  }
  // It is mapped, and the peer has its own copy by the message.
  connection.receive_segment.close_descriptor();
}

void Lanes::publish_attributes(Connection& connection) {
  connection.receiver.set_access(core_.attributes.qp_access_flags);
  connection.receiver.set_rnr_timer_us(wire::rnr_timer_us(core_.attributes.min_rnr_timer & 31U));
}

void Lanes::publish_attributes() {
  each_sending([this](Connection& connection) RINGBOLT_REQUIRES(send_half) { publish_attributes(connection); });
}

void Lanes::adopt(std::unique_ptr<Connection> connection) {
  const uint32_t qpn = connection->remote_qpn;
  connections_[qpn] = std::move(connection);
}

/// There is a lane.
void Lanes::attach(Connection& connection, const link::Offer& offer, Offered offered) {
  // A peer that was reset and connected again offers anew: what was known of its lane before counts no longer.
  connection.sender.reset();
  connection.send_segment = std::move(*offered.lane);
  connection.receive_queue = std::move(offered.receive_queue);
  connection.send_queue = std::move(offered.send_queue);
  connection.mark = offer.mark;
  connection.sender.emplace(*reinterpret_cast<link::LaneMemory*>(connection.send_segment.data()));
  connection.remote_pd_key = offer.pd_key;
  connection.remote_nonce = offer.nonce;
  connection.heard_consumed.store(0, std::memory_order_relaxed);
  connection.next_operation = connection.operations_end_slot = connection.rung_for = 0;
  connection.peer_state.store(PeerState::present);
  connection.is_refused = false;
  connection.progress_since_ns = 0;  // what waits has somebody to go to only now
  connection.news = 0;
}

void Lanes::disconnect(Connection& connection) {
  connection.receiver.tell();
  connection.receiver.close();
  if (connection.sender) {
    connection.sender->end();
  }
  if (connection.remote != nullptr) {
    connection.remote->peer().send(link::Withdraw{core_.qpn, connection.remote_qpn, connection.own_nonce});
  }
}

void Lanes::disconnect() {
  each_sending([this](Connection& connection) RINGBOLT_REQUIRES(send_half, receive_half) { disconnect(connection); });
  connections_.clear();
}

void Lanes::close() {
  each([](Connection& connection) { connection.receiver.close(); });
}

void Lanes::end_accesses() {
  if (core_.type == IBV_QPT_UD || connections_.empty()) {
    return;
  }
  // Of RC and UC there is one; whose peer it is may change until the lane is closed, and no more after.
  const Connection& connection = *connections_.begin()->second;
  std::shared_ptr<link::RemoteProcess> remote;
  {
    const ReceiveGuard guard(core_.locks);
    close();
    remote = connection.remote;
  }
  // A peer announces its copy, then looks whether the lane is closed: one of the two sees the other.
  base::heavy_fence();
  // Spins: a copy takes microseconds, unless the peer is stopped in the middle of it.
  const uint64_t deadline = base::now_ns() + kAccessDrainNs;
  while (remote != nullptr && !remote->peer().is_gone() && connection.receiver.announced_key() != 0 &&
         base::now_ns() < deadline) {
    base::cpu_pause();
  }
}

Connection* Lanes::find(uint32_t remote_qpn) {
  const auto found = connections_.find(remote_qpn);
  return found == connections_.end() ? nullptr : found->second.get();
}

/// What has begun on one lane can't go on on another one.
bool Lanes::is_busy(const Connection& connection) {
  if (!connection.sender) {
    return false;
  }
  const bool has_begun = connection.sender->published() != 0 || core_.sends.next.load(std::memory_order_relaxed) != 0;
  return (core_.type != IBV_QPT_UD && has_begun && core_.sends.unfinished() != 0) ||
         (connection.peer_state.load() == PeerState::present && !connection.sender->is_closed());
}

bool Lanes::on_offer(const std::shared_ptr<link::RemoteProcess>& remote, const link::Offer& offer, Offered offered) {
  const SendGuard guard(core_.locks);
  const Port& port = *core_.port;
  if (is_retired_ || offer.qp_type != static_cast<uint32_t>(core_.type) || !port.owns(gid_of(offer.target_gid)) ||
      !port.reaches(gid_of(offer.source_gid)) || is_useless(core_.type, offered.lane)) {
    return false;
  }
  Connection* const connection =
      core_.type == IBV_QPT_UD ? reach(offer.source_qpn, offer.source_gid) : find(offer.source_qpn);
  // A queue pair in error will be reset and connected again; it needs the offer then.
  if (connection == nullptr || core_.state() == IBV_QPS_ERR || is_busy(*connection)) {
    const base::LockGuard offers_guard(offers_lock_);
    if (core_.type != IBV_QPT_UD && (offers_.size() < kMaxStoredOffers || offers_.contains(offer.source_qpn))) {
      offers_.insert_or_assign(offer.source_qpn, StoredOffer{remote, offer, std::move(offered)});
    }
    return true;
  }
  if (!offered.lane) {
    fail(*connection, IBV_WC_LOC_QP_OP_ERR);
    return true;
  }
  std::shared_ptr<link::RemoteProcess> newest = remote;
  {
    const ReceiveGuard receive_guard(core_.locks);  // who receives reads it, and tells what it has received
    connection->remote.swap(newest);
    attach(*connection, offer, std::move(offered));
    connection->tell();  // what was received before could not be told
  }
  if (core_.sends.has_queued()) {
    sends_.run();
    core_.process.request_service(*core_.queues.send);
  }
  return true;
}

/// One of its two lanes can't be had, here or there.
void Lanes::fail(Connection& connection, ibv_wc_status status) {
  if (core_.type == IBV_QPT_UD) {
    connection.is_refused = true;  // its datagrams are lost, as datagrams may be, and counted
    core_.kick();
    return;
  }
  core_.when_noting([&](QueuePairNotes& notes) {
    const bool is_here = status == IBV_WC_LOC_QP_OP_ERR;
    notes.say_why_send(
        {fmt::format("the shared memory between {} and this process can't be mapped {}: no descriptor or no "
                     "address space is left for it",
                     peer_text(core_), is_here ? "here" : "there"),
         fmt::format("raise {} limits of open files (ulimit -n) and address space (ulimit -v)",
                     is_here ? "this process'" : "the peer's")});
  });
  const ReceiveGuard guard(core_.locks);
  core_.enter_error(status);
  core_.announce(IBV_EVENT_QP_FATAL);
}

bool Lanes::on_refuse(const link::Refuse& refuse) {
  const SendGuard guard(core_.locks);
  Connection* const found = find(refuse.source_qpn);
  const bool is_known = !is_retired_ && found != nullptr && found->own_nonce == refuse.nonce;
  if (is_known && core_.type != IBV_QPT_UD && core_.state() != IBV_QPS_ERR) {
    fail(*found, IBV_WC_REM_OP_ERR);
  }
  return is_known;
}

Connection* Lanes::reach(uint32_t remote_qpn, const std::array<uint8_t, 16>& remote_gid) try {
  if (Connection* const found = find(remote_qpn)) {
    if (found->peer_state.load() == PeerState::present) {
      return found;
    }
    const ReceiveGuard guard(core_.locks);
    disconnect(*found);
    connections_.erase(remote_qpn);
  }
  const auto count = [this]() RINGBOLT_NOT_ANALYSED { return connections_.size(); };
  if (count() >= purge_at_) {
    purge();
  }
  if (count() >= kMaxDatagramPeers) {
    return nullptr;
  }
  auto connection = make(remote_qpn, remote_gid);
  if (!connection) {
    return nullptr;
  }
  Connection* const made = connection->get();
  const ReceiveGuard guard(core_.locks);
  adopt(std::move(*connection));
  offer(*made);
  return made;
} catch (const std::bad_alloc&) {
  return nullptr;
}

void Lanes::purge() {
  const ReceiveGuard guard(core_.locks);
  for (auto at = connections_.begin(); at != connections_.end();) {
    Connection& connection = *at->second;
    if (connection.peer_state.load() != PeerState::present && !connection.receiver.has_slot()) {
      disconnect(connection);
      at = connections_.erase(at);
    } else {
      ++at;
    }
  }
  purge_at_ = std::max(kLeastDatagramPeers, connections_.size() * 2);
}

void Lanes::on_withdraw(const link::Withdraw& withdraw) {
  const SendGuard guard(core_.locks);
  {
    const base::LockGuard offers_guard(offers_lock_);
    const auto stored = offers_.find(withdraw.source_qpn);
    if (stored != offers_.end() && stored->second.offer.nonce == withdraw.nonce) {
      offers_.erase(stored);
    }
  }
  Connection* const found = find(withdraw.source_qpn);
  if (found == nullptr) {
    return;
  }
  if (withdraw.nonce == link::kNoNonce) {
    if (core_.type == IBV_QPT_UD && !found->sender) {
      found->is_refused = true;
      core_.kick();
    }
  } else if (found->remote_nonce == withdraw.nonce) {
    found->peer_state.store(PeerState::withdrawn);
    found->progress_since_ns = 0;  // what it must answer in is counted from here
    core_.kick();
  }
}

void Lanes::on_peer_gone(const link::Peer& peer, bool was_orderly) {
  const SendGuard send_guard(core_.locks);
  const ReceiveGuard receive_guard(core_.locks);
  {
    const base::LockGuard offers_guard(offers_lock_);
    std::erase_if(offers_, [&](const auto& entry) { return &entry.second.remote->peer() == &peer; });
  }
  each_sending([&](Connection& connection) {
    if (connection.remote != nullptr && &connection.remote->peer() == &peer) {
      connection.take_last_word();
      connection.peer_state.store(was_orderly ? PeerState::left : PeerState::died);
      connection.progress_since_ns = 0;
      core_.ask_for_look();
    }
  });
  core_.kick();
}

bool Lanes::is_accessed(uint32_t key) {
  const ReceiveGuard guard(core_.locks);
  bool is_accessed = false;
  each_receiving([&](const Connection& connection) {
    is_accessed = is_accessed ||
                  (connection.receiver.announced_key() == key && connection.peer_state.load() == PeerState::present);
  });
  return is_accessed;
}

void Lanes::tell_peers() {
  const ReceiveGuard guard(core_.locks);
  each_receiving([](Connection& connection) { connection.tell(); });
}

void Lanes::wait_for_room(bool waits) {
  const SendGuard guard(core_.locks);
  each_sending([waits](Connection& connection) {
    if (connection.sender) {
      connection.sender->wait_for_room(waits);
    }
  });
}

}  // namespace ringbolt::device
