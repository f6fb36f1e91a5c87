#include <algorithm>
#include <cerrno>

#include "cm/engine.h"
#include "cm/timing.h"

namespace ringbolt::cm {
namespace {

// How long the answer to a lookup is kept for questions that are repeated because it got lost.
constexpr uint64_t kAnswerKeptNs = 16'384'000'000;
// Of the first wait, which takes seconds, some is spent on trying again, at twice the distance each time: over UDP
// datagrams get lost, and a host whose programs have just begun, or end, says nothing, where a kernel would.
constexpr uint64_t kFirstPauseNs = 50'000'000;

}  // namespace

/// Only a connection's first deadline needs memory. Throws std::bad_alloc, and nothing has changed.
void Engine::set_deadline(Connection& connection, uint64_t deadline_ns) {
  auto entry = timers_.extract({connection.deadline_ns, connection.id});
  // The node is used again: moving a deadline needs no memory.
  if (deadline_ns != UINT64_MAX && !entry.empty()) {
    entry.value().first = deadline_ns;
    timers_.insert(std::move(entry));
  } else if (deadline_ns != UINT64_MAX) {
    timers_.emplace(deadline_ns, connection.id);
  }
  connection.deadline_ns = deadline_ns;
}

void Engine::start_tries(uint64_t now_ns, Connection& connection, uint64_t wait_ns) {
  connection.wait_ns = wait_ns;
  // Tries after the first one, which the caller sends.
  connection.tries_left = connection.max_retries;
  connection.early_ns = 0;
  set_deadline(connection, now_ns + next_pause_ns(connection));
}

/// From this try to the next. Early ones come on top of those that the user has asked for, if he wants any.
uint64_t Engine::next_pause_ns(Connection& connection) {
  if (connection.early_ns >= connection.wait_ns) {
    return connection.wait_ns;
  }
  const uint64_t before_ns = connection.early_ns;
  const bool tries_early = connection.max_retries > 0;
  connection.early_ns = tries_early ? std::min(2 * before_ns + kFirstPauseNs, connection.wait_ns) : connection.wait_ns;
  return connection.early_ns - before_ns;
}

void Engine::enter_timewait(uint64_t now_ns, Connection& connection) {
  leave_remote(connection);
  connection.state = State::timewait;
  // While packets of it may be under way its numbers are not used.
  set_deadline(connection, now_ns + timewait_ns(static_cast<uint8_t>(connection.lifetime + 1)));
}

void Engine::become_idle(Connection& connection) {
  leave_remote(connection);
  release_backlog(connection);
  stop_tries(connection);
  connection.state = State::idle;
}

void Engine::on_timer(uint64_t now_ns) {
  while (!timers_.empty() && timers_.begin()->first <= now_ns) {
    // erase() takes the timer first.
    Connection& connection = connections_.at(timers_.begin()->second);
    if (connection.state == State::timewait || connection.state == State::lookup_answered) {
      const bool was_lookup = connection.state == State::lookup_answered;
      // Stops its timer, so that the loop ends.
      become_idle(connection);
      if (connection.is_orphan) {
        erase(connection);
      } else if (!was_lookup) {
        tell(connection, Event::Kind::timewait_exit, 0);
      }
    } else if (connection.tries_left > 0) {
      // Early tries are free.
      if (connection.early_ns >= connection.wait_ns) {
        --connection.tries_left;
      }
      if (connection.state == State::mra_req_received) {
        connection.state = State::req_sent;
      } else if (connection.state == State::mra_rep_received) {
        connection.state = State::rep_sent;
      }
      resend(connection);
      set_deadline(connection, now_ns + next_pause_ns(connection));
    } else {
      give_up(now_ns, connection);
    }
  }
}

void Engine::give_up(uint64_t now_ns, Connection& connection) {
  if (connection.state == State::dreq_sent) {
    enter_timewait(now_ns, connection);
    if (!connection.has_told_end) {
      connection.has_told_end = true;
      tell(connection, Event::Kind::disconnected, -ETIMEDOUT);
    }
    return;
  }
  become_idle(connection);
  tell(connection, Event::Kind::unreachable, -ETIMEDOUT);
}

void Engine::on_peer_gone(uint64_t now_ns, uint32_t slot) {
  // Nothing here adds or erases connections: the loop stays good.
  for (auto& [id, connection] : connections_) {
    if (connection.peer_slot == slot) {
      forget_peer(now_ns, connection);
    } else if (connection.state == State::req_sent && connection.peer_slot == kNoSlot) {
      // It may have been the one that our request waits at: asking again finds out.
      set_deadline(connection, now_ns);
    }
  }
}

void Engine::on_peer_lost(uint64_t now_ns, Handle handle) {
  if (Connection* connection = find(handle); connection != nullptr && connection->stands) {
    forget_peer(now_ns, *connection);
  }
}

void Engine::forget_peer(uint64_t now_ns, Connection& connection) {
  wire::CmRej as_if;
  // A kernel that destroys what a dead process had sends just that.
  as_if.reason = wire::kRejConsumer;
  switch (connection.state) {
    case State::req_sent:
    case State::mra_req_received:
    case State::req_received:
    case State::rep_sent:
    case State::mra_rep_received:
    case State::rep_received:
      end_by_reject(now_ns, connection, as_if.reason, as_if);
      break;
    case State::established:
    case State::dreq_sent:
      enter_timewait(now_ns, connection);
      if (!connection.has_told_end) {
        connection.has_told_end = true;
        tell(connection, Event::Kind::disconnected, 0);
      }
      break;
    case State::lookup_sent:
      set_deadline(connection, now_ns);
      break;
    default:
      break;
  }
}

Handle Engine::look_up(uint64_t now_ns, const Path& path, wire::CmSidrReq question) {
  Connection& connection = create(path);
  connection.is_active = true;
  connection.state = State::lookup_sent;
  connection.service_id = question.service_id;
  connection.transaction_id = uint64_t{seed_.random} << 32 | connection.id;
  question.request_id = connection.id;
  wire::emit(wire::CmMad{connection.transaction_id, question}, connection.last);
  resend(connection);
  start_tries(now_ns, connection, code_ns(kResponseTimeout));
  return connection.id;
}

int Engine::answer(uint64_t now_ns, Handle handle, wire::CmSidrRep reply) {
  Connection* connection = find(handle);
  if (connection == nullptr || connection->state != State::lookup_received) {
    return EINVAL;
  }
  release_backlog(*connection);
  reply.request_id = connection->remote_id;
  reply.service_id = connection->service_id;
  wire::emit(wire::CmMad{connection->transaction_id, reply}, connection->last);
  resend(*connection);
  connection->state = State::lookup_answered;
  set_deadline(*connection, now_ns + kAnswerKeptNs);
  return 0;
}

}  // namespace ringbolt::cm
