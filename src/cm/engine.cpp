#include "cm/engine.h"

#include <algorithm>
#include <cerrno>
#include <new>

#include "base/assert.h"
#include "cm/timing.h"
#include "wire/bytes.h"

namespace ringbolt::cm {
namespace {

// 10 bits of slot, 22 of number: as in queue pair numbers, the owner is told by the number alone.
constexpr unsigned kSlotShift = 22;
constexpr uint32_t kIdMask = (1U << kSlotShift) - 1;

/// Private data of any length into a field of fixed length: what is too long is cut, what is short is followed by
/// zeros.
template <class Target>
void fill(Target& target, std::span<const std::byte> from) {
  std::copy_n(from.begin(), std::min(from.size(), target.size()), target.begin());
}

}  // namespace

Engine::Engine(const Seed& seed, const Host& host) : seed_(seed), host_(host), next_id_(seed.random) {}

Connection& Engine::create(const Path& path) {
  // 4 million connections in one process: the loop below would not end.
  RINGBOLT_ASSERT(connections_.size() < kIdMask);
  Handle id = 0;
  do {
    id = (seed_.slot << kSlotShift) | (next_id_++ & kIdMask);
    // 0 is "none" in messages and in Handle. Numbers of ended connections come back only after 4 million others.
  } while (id == 0 || connections_.contains(id));
  Connection& made = connections_[id];
  made.id = id;
  made.path = path;
  return made;
}

Connection* Engine::find(Handle handle) {
  const auto found = connections_.find(handle);
  return found == connections_.end() ? nullptr : &found->second;
}

State Engine::state_of(Handle handle) const {
  const auto found = connections_.find(handle);
  return found == connections_.end() ? State::idle : found->second.state;
}

size_t Engine::disconnecting() const {
  return static_cast<size_t>(
      std::ranges::count_if(connections_, [](const auto& entry) { return entry.second.state == State::dreq_sent; }));
}

// `connection` is gone afterwards: callers return without touching it.
void Engine::erase(Connection& connection) {
  stop_tries(connection);
  leave_remote(connection);
  release_backlog(connection);
  connections_.erase(connection.id);
}

void Engine::enter_remote(Connection& connection) {
  // Overwrites: of two connections that say they have one number the newer is believed.
  by_remote_id_[{connection.remote_guid, connection.remote_id}] = connection.id;
  // 0 and 1 are those of every port's management, and name no connection.
  if (connection.remote_qpn > wire::kGsiQpn) {
    by_remote_qpn_[{connection.remote_guid, connection.remote_qpn}] = connection.id;
  }
}

/// Without memory for it nobody can end the connection in our place; that is no reason not to have it.
void Engine::begin_to_stand(Connection& connection) try {
  standings_.push_back({connection.id, true, connection.is_active, connection.remote_id, connection.remote_qpn,
                        connection.peer_slot, connection.path});
  connection.stands = true;
} catch (const std::bad_alloc&) {
}

void Engine::leave_remote(Connection& connection) {
  if (std::exchange(connection.stands, false)) {
    try {
      standings_.push_back({.handle = connection.id});
    } catch (const std::bad_alloc&) {
      // Whoever ends it once more is told by the peer that it has none of these numbers.
    }
  }
  const auto drop = [&](auto& map, uint32_t number) {
    const auto found = map.find({connection.remote_guid, number});
    // Another connection may have the number by now.
    if (found != map.end() && found->second == connection.id) {
      map.erase(found);
    }
  };
  drop(by_remote_id_, connection.remote_id);
  drop(by_remote_qpn_, connection.remote_qpn);
}

void Engine::tell(const Connection& connection, Event::Kind kind, int status, const wire::CmMessage& message) {
  // The passive side's program knows the connection only once it has accepted it; before that it hears of the request
  // alone.
  const bool is_new = kind == Event::Kind::request || kind == Event::Kind::lookup;
  if (connection.is_orphan || (!connection.is_active && !connection.is_accepted && !is_new)) {
    return;
  }
  // receive() has reserved room. Elsewhere want of memory is the caller's to hear of.
  events_.push_back({kind, connection.id, connection.listener, status, connection.path, message});
}

void Engine::release_backlog(Connection& connection) {
  if (!connection.is_waiting) {
    return;
  }
  connection.is_waiting = false;
  const auto found = std::ranges::find(listeners_, connection.listener, &Listener::cookie);
  if (found != listeners_.end()) {
    --found->waiting;
  }
}

void Engine::note_fetched(Handle request) {
  if (Connection* connection = find(request)) {
    release_backlog(*connection);
  }
}

// A second call with the cookie changes the backlog, and forgets how many wait.
void Engine::listen(const Listener& listener) {
  unlisten(listener.cookie);
  listeners_.push_back(listener);
}

void Engine::unlisten(uint64_t cookie) {
  std::erase_if(listeners_, [&](const Listener& one) { return one.cookie == cookie; });
}

template <class Message>
void Engine::send(Connection& connection, const Message& message) {
  wire::emit(wire::CmMad{connection.transaction_id, message}, connection.last);
  resend(connection);
}

/// Without memory for it a datagram is as good as lost on the way: timers repeat it, or its receiver's do.
void Engine::resend(const Connection& connection) try {
  outgoing_.push_back({connection.path, connection.last});
} catch (const std::bad_alloc&) {
}

// For what is not repeated by a timer of ours, such as a REJ: `last` stays as it was.
void Engine::send_once(const Connection& connection, const wire::CmMessage& message) {
  Outgoing out{connection.path, {}};
  wire::emit(wire::CmMad{connection.transaction_id, message}, out.bytes);
  try {
    outgoing_.push_back(out);
  } catch (const std::bad_alloc&) {
  }
}

void Engine::send_reject(const Connection& connection, wire::CmAnswered answered, uint16_t reason,
                         std::span<const std::byte> private_data) {
  wire::CmRej message;
  message.local_id = connection.id;
  message.remote_id = connection.remote_id;
  message.answered = answered;
  message.reason = reason;
  fill(message.private_data, private_data);
  // The peer has not answered, so it may not know our id: by our GUID it finds what it has of us (InfiniBand
  // specification, chapter 12.6.7).
  if (reason == wire::kRejTimeout) {
    wire::put_be<uint64_t>(message.info, 0, host_.guid(connection.path.port));
    message.info_length = sizeof(uint64_t);
  }
  send_once(connection, message);
}

// Throws std::bad_alloc with nothing left behind.
Handle Engine::connect(uint64_t now_ns, const Path& path, wire::CmReq request) {
  Connection& connection = create(path);
  connection.is_active = true;
  connection.state = State::req_sent;
  connection.local_qpn = request.local_qpn;
  connection.service_id = request.service_id;
  // Unique among this process' own; answers come under the same.
  connection.transaction_id = uint64_t{seed_.random} << 32 | connection.id;
  request.local_id = connection.id;
  request.local_cm_timeout = request.remote_cm_timeout = kResponseTimeout;
  request.max_cm_retries = kMaxRetries;
  connection.max_retries = kMaxRetries;
  // The peer's REP may say more; until then our own bound counts.
  connection.lifetime = kPacketLifetime;
  try {
    start_tries(now_ns, connection, active_wait_ns(connection.lifetime));
  } catch (...) {
    // Without its timer it would never be heard of again.
    connections_.erase(connection.id);
    throw;
  }
  send(connection, request);
  return connection.id;
}

// EINVAL: no such connection, or not waiting for it. No errno is set: the callers of the engine do that.
int Engine::ready(uint64_t, Handle handle) {
  Connection* connection = find(handle);
  if (connection == nullptr) {
    return EINVAL;
  }
  if (connection->state == State::dreq_received && connection->is_active && !connection->is_accepted) {
    connection->is_accepted = true;  // ended before it began: the peer needs no "ready", and the user hears of the end
    return 0;
  }
  if (connection->state != State::rep_received) {
    return EINVAL;
  }
  connection->is_accepted = true;
  connection->state = State::established;
  send(*connection, wire::CmRtu{connection->id, connection->remote_id, {}});
  return 0;
}

int Engine::accept(uint64_t now_ns, Handle handle, wire::CmRep reply) {
  Connection* connection = find(handle);
  if (connection == nullptr || connection->state != State::req_received) {
    return EINVAL;
  }
  start_tries(now_ns, *connection, connection->wait_ns);  // first: there may be no memory for it
  release_backlog(*connection);
  connection->is_accepted = true;
  connection->state = State::rep_sent;
  connection->local_qpn = reply.local_qpn;
  reply.local_id = connection->id;
  reply.remote_id = connection->remote_id;
  reply.target_ack_delay = kAckDelay;
  send(*connection, reply);
  // From the REP on the peer holds a connection that somebody has to end.
  begin_to_stand(*connection);
  return 0;
}

// By RTU or by data that came before it; both may come, and only the first gets here.
void Engine::become_established(uint64_t now_ns, Connection& connection) {
  connection.state = State::established;
  tell(connection, Event::Kind::established, 0);
  if (connection.wants_end) {
    send_disconnect(now_ns, connection, true);  // takes over the timer, and so needs no memory
  } else {
    stop_tries(connection);
  }
}

int Engine::note_data(uint64_t now_ns, Handle handle) {
  Connection* connection = find(handle);
  if (connection == nullptr) {
    return EINVAL;
  }
  if (connection->state == State::established) {
    return EISCONN;
  }
  if (connection->state != State::rep_sent && connection->state != State::mra_rep_received) {
    return EINVAL;
  }
  become_established(now_ns, *connection);
  return 0;
}

int Engine::reject(uint64_t, Handle handle, uint16_t reason, std::span<const std::byte> private_data) {
  Connection* connection = find(handle);
  if (connection == nullptr) {
    return EINVAL;
  }
  switch (connection->state) {
    case State::req_received:
      send_reject(*connection, wire::CmAnswered::req, reason, private_data);
      break;
    case State::rep_received:
      send_reject(*connection, wire::CmAnswered::rep, reason, private_data);
      break;
    case State::rep_sent:
    case State::mra_rep_received:
      // We have answered already: no message of the peer is the one that is rejected, hence "other".
      send_reject(*connection, wire::CmAnswered::other, reason, private_data);
      break;
    default:
      return EINVAL;
  }
  become_idle(*connection);
  return 0;
}

void Engine::send_disconnect(uint64_t now_ns, Connection& connection, bool wants_answer) {
  // A DREQ begins a transaction of its own; ours, whichever side began the connection.
  connection.transaction_id = uint64_t{seed_.random} << 32 | connection.id;
  // The passive side goes by what the REQ has asked for.
  const uint64_t wait_ns = connection.is_active ? active_wait_ns(connection.lifetime) : connection.wait_ns;
  if (wants_answer) {
    start_tries(now_ns, connection, wait_ns);  // first: there may be no memory for it
  }
  connection.state = State::dreq_sent;
  send(connection, wire::CmDreq{connection.id, connection.remote_id, connection.remote_qpn, {}});
  if (!wants_answer) {
    enter_timewait(now_ns, connection);
  }
}

void Engine::send_agreement(uint64_t now_ns, Connection& connection) {
  send(connection, wire::CmDrep{connection.id, connection.remote_id, {}});
  enter_timewait(now_ns, connection);
}

int Engine::disconnect(uint64_t now_ns, Handle handle) {
  Connection* connection = find(handle);
  if (connection == nullptr) {
    return EINVAL;
  }
  switch (connection->state) {
    case State::rep_sent:
    case State::mra_rep_received:
      // A DREQ needs an established connection: it leaves as soon as the RTU or data come.
      connection->wants_end = true;
      return 0;
    case State::established:
      send_disconnect(now_ns, *connection, true);
      return 0;
    case State::dreq_received:
      // The peer has asked already: an answer ends it, no DREQ of ours.
      send_agreement(now_ns, *connection);
      return 0;
    case State::dreq_sent:
    case State::timewait:
      return 0;
    default:
      return EINVAL;
  }
}

void Engine::destroy(uint64_t now_ns, Handle handle) {
  Connection* connection = find(handle);
  if (connection == nullptr) {
    return;
  }
  // First: nothing that follows is told.
  connection->is_orphan = true;
  switch (connection->state) {
    case State::req_sent:
    case State::mra_req_received:
      send_reject(*connection, wire::CmAnswered::req, wire::kRejTimeout, {});
      break;
    case State::req_received:
      send_reject(*connection, wire::CmAnswered::req, wire::kRejConsumer, {});
      break;
    case State::rep_received:
      send_reject(*connection, wire::CmAnswered::rep, wire::kRejConsumer, {});
      break;
    case State::rep_sent:
    case State::mra_rep_received:
      send_reject(*connection, wire::CmAnswered::other, wire::kRejConsumer, {});
      break;
    case State::established:
      // Nobody waits for the answer: should it get lost, the peer asks, and is told that there is none.
      send_disconnect(now_ns, *connection, false);
      return;
    case State::dreq_sent:
      enter_timewait(now_ns, *connection);
      return;
    case State::dreq_received:
      send_agreement(now_ns, *connection);
      return;
    case State::timewait:
    case State::lookup_answered:
      return;  // its time runs on
    case State::lookup_received: {
      wire::CmSidrRep refusal;
      refusal.status = wire::kSidrRejected;
      static_cast<void>(answer(now_ns, handle, refusal));
      return;
    }
    case State::lookup_sent:
    case State::idle:
      break;
  }
  erase(*connection);
}

}  // namespace ringbolt::cm
