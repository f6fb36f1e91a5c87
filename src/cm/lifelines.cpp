#include "cm/lifelines.h"

namespace ringbolt::cm {
namespace {

// Connections that end at once need no line, and "ready to use" goes first. A peer that has not answered then is a
// stranger, or no datagram gets through; either way silence is not held against it.
constexpr uint64_t kFirstOfferNs = 20'000'000;
constexpr uint64_t kNextOfferNs = 100'000'000;  // twice as long each time
// 0.02 + 0.1 + 0.2 + 0.4 s after the connection stands.
constexpr uint32_t kOffers = 4;
// Who connects again soon finds the line standing.
constexpr uint64_t kIdleLineNs = 5'000'000'000;
// After that the line is left alone: something between the hosts ends such connections.
constexpr uint32_t kMaxBroken = 3;
constexpr uint64_t kMendNs = 100'000'000;

}  // namespace

void Lifelines::set_deadline(Handle handle, Connection& connection, uint64_t deadline_ns) {
  timers_.erase({connection.deadline_ns, {handle, 0}});
  if (deadline_ns != UINT64_MAX) {
    timers_.insert({deadline_ns, {handle, 0}});
  }
  connection.deadline_ns = deadline_ns;
}

void Lifelines::set_deadline(Token token, Process& process, uint64_t deadline_ns) {
  timers_.erase({process.deadline_ns, {0, token}});
  if (deadline_ns != UINT64_MAX) {
    timers_.insert({deadline_ns, {0, token}});
  }
  process.deadline_ns = deadline_ns;
}

void Lifelines::add(uint64_t now_ns, const Standing& connection) {
  remove(now_ns, connection.handle);
  Connection& made = connections_[connection.handle];
  made.standing = connection;
  // The passive side answers, so that a line is not agreed on twice.
  if (connection.is_active) {
    set_deadline(connection.handle, made, now_ns + kFirstOfferNs);
  }
}

void Lifelines::remove(uint64_t now_ns, Handle handle) {
  const auto found = connections_.find(handle);
  if (found == connections_.end()) {
    return;
  }
  const Token token = found->second.token;
  set_deadline(handle, found->second, UINT64_MAX);
  connections_.erase(found);
  const auto process = processes_.find(token);
  if (process == processes_.end()) {
    return;
  }
  process->second.handles.erase(handle);
  if (process->second.handles.empty()) {
    set_deadline(token, process->second, now_ns + kIdleLineNs);
  }
}

void Lifelines::offer(const Connection& connection, bool is_answer) {
  const Standing& standing = connection.standing;
  if (const uint16_t port = port_at_(standing.path); port != 0) {
    Outgoing out{standing.path, {}};
    wire::emit(wire::LifelineOffer{standing.handle, standing.remote_id, own_, port, is_answer}, out.bytes);
    outgoing_.push_back(out);
  }
}

bool Lifelines::receive(uint64_t, const Arrival& arrival) {
  const auto said = wire::parse_lifeline_offer(arrival.bytes);
  if (!said) {
    return false;
  }
  const auto found = connections_.find(said->remote_id);
  // Both ids and the address must be the connection's: who knows them could also end it by a DREQ.
  if (found == connections_.end() || found->second.standing.remote_id != said->local_id ||
      found->second.standing.path.remote != arrival.path.remote || said->token == 0 || said->port == 0 ||
      found->second.standing.is_active != said->is_answer) {
    // An offer all the same: nobody else is to look at it.
    return true;
  }
  Connection& connection = found->second;
  // The first one counts: a process does not change under a connection.
  if (connection.token == 0) {
    associate(connection, *said);
  }
  if (!said->is_answer && connection.token == said->token) {
    offer(connection, true);
  }
  if (said->is_answer) {
    set_deadline(found->first, connection, UINT64_MAX);
    // It is there as long as one of its connections is: see associate(), erase().
    Process& process = processes_.at(connection.token);
    // A connection with oneself needs no line.
    if (!process.is_called && connection.token != own_) {
      process.is_called = true;
      const Path& path = connection.standing.path;
      orders_.push_back({Order::Kind::call, connection.token, {path.port, path.local, path.remote, said->port}});
    }
  }
  return true;
}

void Lifelines::associate(Connection& connection, const wire::LifelineOffer& from) {
  connection.token = from.token;
  Process& process = processes_[from.token];
  // It may have been about to be forgotten.
  set_deadline(from.token, process, UINT64_MAX);
  process.handles.insert(connection.standing.handle);
  const Path& path = connection.standing.path;
  orders_.push_back({Order::Kind::expect, from.token, {path.port, path.local, path.remote, from.port}});
}

void Lifelines::on_timer(uint64_t now_ns) {
  while (!timers_.empty() && timers_.begin()->first <= now_ns) {
    const auto [handle, token] = timers_.begin()->second;
    if (handle == 0) {
      // Only processes without connections have a timer.
      erase(token);
      continue;
    }
    Connection& connection = connections_.at(handle);
    if (connection.tries == kOffers) {
      set_deadline(handle, connection, UINT64_MAX);
      continue;
    }
    // Before the offer: the loop ends even if that is left out.
    set_deadline(handle, connection, now_ns + (kNextOfferNs << connection.tries));
    ++connection.tries;
    offer(connection, false);
  }
}

void Lifelines::erase(Token token) {
  Process& process = processes_.at(token);
  set_deadline(token, process, UINT64_MAX);
  orders_.push_back({Order::Kind::drop, token, {}});
  orders_.push_back({Order::Kind::forget, token, {}});
  processes_.erase(token);
}

std::vector<Handle> Lifelines::take_dead(Token token) {
  const auto found = processes_.find(token);
  if (found == processes_.end()) {
    return {};
  }
  const std::vector<Handle> dead(found->second.handles.begin(), found->second.handles.end());
  for (const Handle handle : dead) {
    set_deadline(handle, connections_.at(handle), UINT64_MAX);
    connections_.erase(handle);
  }
  erase(token);
  return dead;
}

void Lifelines::on_broken(uint64_t now_ns, Token token) {
  const auto found = processes_.find(token);
  if (found == processes_.end()) {
    return;
  }
  Process& process = found->second;
  process.is_called = false;
  if (++process.broken > kMaxBroken) {
    return;
  }
  for (const Handle handle : process.handles) {
    Connection& connection = connections_.at(handle);
    if (connection.standing.is_active) {
      connection.tries = 0;
      set_deadline(handle, connection, now_ns + kMendNs);
      return;  // one speaks for all
    }
  }
}

}  // namespace ringbolt::cm
