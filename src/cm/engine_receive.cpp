// What comes in on a connection that is known. Requests: engine_requests.cpp.

#include <algorithm>
#include <cerrno>

#include "cm/engine.h"
#include "cm/timing.h"
#include "wire/bytes.h"

namespace ringbolt::cm {

void Engine::receive(uint64_t now_ns, const Arrival& arrival) {
  const auto mad = wire::parse_cm(arrival.bytes);
  if (!mad) {
    return;
  }
  events_.reserve(events_.size() + 4);  // of what there is no memory to tell nothing is done: it will be sent again
  std::visit([&](const auto& message) { on(now_ns, arrival, mad->transaction_id, message); }, mad->message);
}

Connection* Engine::find(Handle local_id, uint32_t remote_id) {
  Connection* connection = find(local_id);
  // Both ids have to fit: one alone may be left from an earlier connection.
  return connection != nullptr && connection->remote_id == remote_id && !is_lookup(connection->state) ? connection
                                                                                                      : nullptr;
}

void Engine::on(uint64_t now_ns, const Arrival& arrival, uint64_t tid, const wire::CmRep& reply) {
  Connection* connection = find(reply.remote_id);
  if (connection == nullptr || !connection->is_active || is_lookup(connection->state)) {
    return;
  }
  const bool is_waiting = connection->state == State::req_sent || connection->state == State::mra_req_received;
  if (!is_waiting) {
    if (connection->remote_id != reply.local_id) {
      return;
    }
    if (connection->state == State::established) {
      resend(*connection);  // our RTU got lost
    } else if (connection->state == State::rep_received) {
      send_once(*connection,
                wire::CmMra{connection->id, connection->remote_id, wire::CmAnswered::rep, kMraTimeout, {}});
    }
    return;
  }
  // The peer has given a queue pair away that we still hold a connection with (a stale connection).
  if (replace_stale(now_ns, reply.local_guid, reply.local_qpn, connection->id)) {
    refuse(arrival, tid, reply.local_id, wire::CmAnswered::rep, wire::kRejStaleConnection, {});
    return;
  }
  connection->state = State::rep_received;
  connection->remote_id = reply.local_id;
  connection->remote_guid = reply.local_guid;
  connection->remote_qpn = reply.local_qpn;
  connection->peer_slot = arrival.peer_slot;
  enter_remote(*connection);
  stop_tries(*connection);
  begin_to_stand(*connection);
  tell(*connection, Event::Kind::response, 0, reply);
}

void Engine::on(uint64_t now_ns, const Arrival& arrival, uint64_t tid, const wire::CmRtu& message) {
  Connection* connection = find(message.remote_id, message.local_id);
  if (connection == nullptr || connection->state == State::idle) {
    // The peer believes itself connected: our REJ was lost, or it came back to life after our last try. Nothing that it
    // waits for would ever come, and no timer of its own runs.
    refuse(arrival, tid, message.local_id, wire::CmAnswered::other, wire::kRejInvalidCommId, {}, message.remote_id);
    return;
  }
  if (connection->state != State::rep_sent && connection->state != State::mra_rep_received) {
    return;
  }
  connection->peer_slot = arrival.peer_slot;
  become_established(now_ns, *connection);
}

void Engine::on(uint64_t now_ns, const Arrival& arrival, uint64_t, const wire::CmMra& message) {
  Connection* connection =
      message.answered == wire::CmAnswered::req ? find(message.remote_id) : find(message.remote_id, message.local_id);
  if (connection == nullptr) {
    return;
  }
  if (connection->state == State::req_sent && message.answered == wire::CmAnswered::req) {
    connection->state = State::mra_req_received;
  } else if (connection->state == State::rep_sent && message.answered == wire::CmAnswered::rep) {
    connection->state = State::mra_rep_received;
  } else {
    return;
  }
  connection->peer_slot = arrival.peer_slot;
  connection->early_ns = connection->wait_ns;  // it has been heard
  set_deadline(*connection,
               now_ns + code_ns(message.service_timeout) + code_ns(static_cast<unsigned>(connection->lifetime) + 1));
}

Connection* Engine::find_rejected(const wire::CmRej& message) {
  if (message.reason == wire::kRejTimeout && message.info_length >= sizeof(uint64_t)) {
    // The sender never learnt our id: it gives its GUID and its own.
    const auto found = by_remote_id_.find({wire::get_be<uint64_t>(message.info, 0), message.local_id});
    return found == by_remote_id_.end() ? nullptr : find(found->second);
  }
  Connection* connection = find(message.remote_id);
  if (connection == nullptr || is_lookup(connection->state)) {
    return nullptr;
  }
  // A REJ can come before the REP that it takes back, or without it.
  const bool knows_peer = connection->remote_id != 0 && message.answered != wire::CmAnswered::req;
  return !knows_peer || connection->remote_id == message.local_id ? connection : nullptr;
}

void Engine::on(uint64_t now_ns, const Arrival&, uint64_t, const wire::CmRej& message) {
  if (Connection* connection = find_rejected(message)) {
    end_by_reject(now_ns, *connection, message.reason, message);
  }
}

void Engine::end_by_reject(uint64_t now_ns, Connection& connection, uint16_t reason, const wire::CmRej& message) {
  switch (connection.state) {
    case State::req_sent:
    case State::mra_req_received:
    case State::req_received:
    case State::rep_sent:
    case State::mra_rep_received:
      // The numbers must not be used again at once, or the next try would be stale, too.
      if (reason == wire::kRejStaleConnection) {
        release_backlog(connection);
        enter_timewait(now_ns, connection);
      } else {
        become_idle(connection);
      }
      break;
    case State::rep_received:
    case State::established:
    case State::dreq_sent:
      enter_timewait(now_ns, connection);
      break;
    // A REJ says nothing to who has ended already.
    default:
      return;
  }
  tell(connection, Event::Kind::rejected, reason, message);
}

void Engine::on(uint64_t now_ns, const Arrival& arrival, uint64_t tid, const wire::CmDreq& message) {
  Connection* connection = find(message.remote_id, message.local_id);
  if (connection == nullptr) {
    // So that the peer's end is not held up by what we have forgotten.
    answer_request(arrival, tid, wire::CmDrep{message.remote_id, message.local_id, {}});
    return;
  }
  // A DREQ of an earlier connection with the same ids.
  if (message.remote_qpn != connection->local_qpn) {
    return;
  }
  switch (connection->state) {
    case State::idle:
    case State::timewait:
      answer_request(arrival, tid, wire::CmDrep{connection->id, connection->remote_id, {}});
      return;
    case State::rep_received:  // the peer took data for our "ready", or it is one that ends what it has just begun
    case State::rep_sent:
    case State::mra_rep_received:
    case State::established:
    case State::dreq_sent:
      break;
    default:
      return;
  }
  const bool wanted_end = connection->state == State::dreq_sent || connection->wants_end;
  // The DREP goes under the DREQ's.
  connection->transaction_id = tid;
  stop_tries(*connection);
  connection->state = State::dreq_received;
  if (!connection->has_told_end) {
    connection->has_told_end = true;
    tell(*connection, Event::Kind::disconnected, 0);
  }
  if (wanted_end) {
    send_agreement(now_ns, *connection);  // both asked at once: the user has said all that he had to
  }
}

void Engine::on(uint64_t now_ns, const Arrival&, uint64_t, const wire::CmDrep& message) {
  Connection* connection = find(message.remote_id, message.local_id);
  if (connection == nullptr || (connection->state != State::dreq_sent && connection->state != State::dreq_received)) {
    return;
  }
  enter_timewait(now_ns, *connection);
  if (!connection->has_told_end) {
    connection->has_told_end = true;
    tell(*connection, Event::Kind::disconnected, 0);
  }
}

void Engine::on(uint64_t, const Arrival&, uint64_t, const wire::CmSidrRep& reply) {
  Connection* connection = find(reply.request_id);
  if (connection == nullptr || connection->state != State::lookup_sent) {
    return;
  }
  become_idle(*connection);
  tell(*connection, Event::Kind::lookup_answer, reply.status, reply);
}

}  // namespace ringbolt::cm
