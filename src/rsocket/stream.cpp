#include "rsocket/stream.h"

#include <netinet/in.h>
#include <netinet/tcp.h>

#include <new>
#include <utility>

#include "rsocket/piece_size.h"
#include "rsocket/stream_facts.h"

namespace ringbolt::rsocket {
namespace {

/// Polls that found nothing between two looks at the event channel, which costs a system call.
// Who sleeps sees events by their descriptor; this is for those who spin or poll without end.
constexpr unsigned kPollsPerLook = 256;
/// How long closing waits for a connection whose last message of the set-up is still under way.
constexpr uint64_t kSetUpNs = 5'000'000'000;

Status status_of(int error) { return error == 0 ? Status{} : base::fail(error); }

}  // namespace

base::Result<std::shared_ptr<Socket>> Stream::create(int family) {
  auto link = CmLink::create(RDMA_PS_TCP);
  if (!link) {
    return base::fail(link.error().value);
  }
  Options options;
  options.settings = default_settings();
  return std::shared_ptr<Socket>(new Stream(std::move(*link), family, options));
}

Stream::~Stream() = default;

Status Stream::bind(const Address& address) {
  const base::LockGuard lock(lock_);
  int error = state_.objection_to_bind();
  error = error == 0 ? link_.bind(address) : error;
  if (error == 0) {
    state_.enter(Phase::bound);
  }
  return status_of(error);
}

Status Stream::listen(int backlog) {
  const base::LockGuard lock(lock_);
  if (state_.is(Phase::listening)) {
    return {};
  }
  int error = state_.objection_to_listen();
  error = error == 0 ? link_.listen(backlog) : error;
  if (error == 0) {
    state_.enter(Phase::listening);
  }
  return status_of(error);
}

Status Stream::connect(const Address& address) {
  const base::LockGuard lock(lock_);
  const int objection = state_.objection_to_connect();
  if (objection != 0) {
    return base::fail(state_.is(Phase::failed) ? state_.report(objection) : objection);
  }
  peer_ = address;
  steps_.begin();
  resolve_address();
  const auto status = await_connected(deadline_of(options_.send_timeout, 0));
  // The attempt goes on: SO_ERROR and POLLOUT tell how it ends (connect(2)).
  if (!status && status.error().value == EAGAIN) {
    return base::fail(EINPROGRESS);
  }
  return status;
}

Status Stream::await_connected(const Deadline& deadline) {
  if (state_.phase() < Phase::resolving_address) {
    return base::fail(ENOTCONN);
  }
  if (state_.is_opening()) {
    const auto status = wait(deadline, [this]() RINGBOLT_REQUIRES(lock_) { return !state_.is_opening(); });
    if (!status) {
      return status;
    }
    if (state_.is(Phase::failed)) {
      return base::fail(state_.report(state_.error()));
    }
  }
  if (!connection_.has_value()) {
    return base::fail(state_.is(Phase::failed) ? state_.report(state_.error()) : ENOTCONN);
  }
  return {};
}

void Stream::resolve_address() {
  state_.enter(Phase::resolving_address);
  const int error = link_.resolve_address(peer_, steps_.begin_attempt_ms());
  if (error != 0) {
    fail(error);
  }
}

void Stream::resolve_route() {
  state_.enter(Phase::resolving_route);
  const int error = link_.resolve_route(options_.route, steps_.begin_attempt_ms());
  if (error != 0) {
    fail(error);
  }
}

Status Stream::make_connection() {
  try {
    connection_.emplace(link_.id(), options_.settings);
  } catch (const base::Error& error) {
    return base::fail(error.errno_value());
  } catch (const std::bad_alloc&) {
    return base::fail(ENOMEM);
  }
  options_.settings = connection_->settings();
  keepalive_.restart(base::now_ns());
  return {};
}

void Stream::request_connection() {
  const auto made = make_connection();
  if (!made) {
    fail(made.error().value);
    return;
  }
  state_.enter(Phase::connecting);
  const int error = link_.connect(connection_->local_data().emit());
  if (error != 0) {
    fail(error);
  }
}

/// Never waits for the peer's last word, so that one thread can connect to itself: the new socket does, when it is
/// used.
base::Result<std::shared_ptr<Socket>> Stream::accept() {
  std::optional<Request> request;
  Options options;
  {
    const base::LockGuard lock(lock_);
    if (!state_.is(Phase::listening)) {
      return base::fail(EINVAL);
    }
    const auto status = wait(deadline_of(options_.receive_timeout, 0), [this]() RINGBOLT_REQUIRES(lock_) {
      return !requests_.is_empty() || !state_.is(Phase::listening);
    });
    if (!status) {
      return base::fail(status.error().value);
    }
    if (requests_.is_empty()) {
      return base::fail(state_.is(Phase::failed) ? state_.error() : EINVAL);
    }
    request.emplace(requests_.pop());
    options = options_;
  }
  // The path is the peer's choice here.
  options.route.clear();
  const int family = request->link.peer().family();
  const std::shared_ptr<Stream> made(new Stream(std::move(request->link), family, options));
  const auto accepted = made->become_accepted(*request);
  if (!accepted) {
    return base::fail(accepted.error().value);  // destroying the id rejects the request
  }
  return std::shared_ptr<Socket>(made);
}

/// `request`: without its link, which is ours.
Status Stream::become_accepted(const Request& request) {
  const base::LockGuard lock(lock_);
  peer_ = link_.peer();
  auto status = make_connection();
  if (status) {
    status = connection_->join(request.peer);
  }
  if (!status) {
    return status;
  }
  const int error = link_.accept(request.param, connection_->local_data().emit());
  if (error == 0) {
    state_.enter(Phase::accepting);
  }
  return status_of(error);
}

void Stream::handle_events() {
  while (CmEvent event = link_.next()) {
    if (event->event == RDMA_CM_EVENT_CONNECT_REQUEST) {
      requests_.take(std::move(event), state_.is(Phase::listening));
    } else {
      handle_event(*event);
    }
  }
}

void Stream::handle_event(const rdma_cm_event& event) {
  using Next = OpeningSteps::Next;
  switch (steps_.after(event.event, event.status, state_.phase())) {
    case Next::nothing:
      break;
    case Next::resolve_address:
      resolve_address();
      break;
    case Next::resolve_route:
      resolve_route();
      break;
    case Next::request_connection:
      request_connection();
      break;
    case Next::be_established:
      handle_established(event);
      break;
    case Next::fail:
      fail(error_of(event));
      break;
    case Next::be_disconnected:
      handle_disconnected();
      break;
  }
}

void Stream::handle_established(const rdma_cm_event& event) {
  if (state_.is(Phase::connecting)) {
    const rdma_conn_param& told = event.param.conn;
    const auto* bytes = static_cast<const std::byte*>(told.private_data);
    const auto peer = ConnectionData::parse({bytes, bytes == nullptr ? size_t{0} : told.private_data_len});
    const auto joined = peer ? connection_->join(*peer) : base::fail(peer.error().value);
    if (!joined) {
      // Before the state: the peer waits for the answer.
      link_.disconnect();
      fail(joined.error().value);
      return;
    }
  }
  if (state_.is_opening()) {
    state_.enter(Phase::connected);
    wake_all();
  }
}

/// The peer, or whoever cleans up behind it, has ended the connection. A peer that ends in order has said so before, in
/// the stream, so that nothing can be cut off without notice.
void Stream::handle_disconnected() {
  if (has_data_part()) {
    connection_->progress();
    note_peer();
  }
  link_.disconnect();
  fail(ECONNRESET);
}

void Stream::fail(int error) {
  state_.fail(error);
  wake_all();
}

void Stream::progress() {
  if (state_.is_opening() || state_.is(Phase::listening)) {
    handle_events();
  }
  if (!has_data_part()) {
    return;
  }
  if (connection_->progress()) {
    note_peer();
    wake_all();
    idle_polls_ = 0;
  } else if (++idle_polls_ % kPollsPerLook == 0) {
    handle_events();
  }
  if (connection_->error() != 0) {
    fail(connection_->error());
  }
}

/// Draws the conclusions of what the peer has sent.
void Stream::note_peer() {
  if (options_.keepalive != 0) {
    keepalive_.restart(base::now_ns());
  }
  // Data may overtake the last message of the connection's set-up, and is as good.
  if (state_.is(Phase::accepting) && connection_->has_heard_from_peer()) {
    state_.enter(Phase::connected);
  }
  if (connection_->peer_has_shut_down()) {
    directions_.peer_finished();
  }
  const bool both_finished = connection_->peer_has_shut_down() && directions_.has_said_goodbye();
  if (state_.is(Phase::connected) && (connection_->peer_has_disconnected() || both_finished)) {
    state_.enter(Phase::closed);
  }
}

/// A peer that vanished says nothing: a WRITE of no bytes finds out. Done by whoever waits.
void Stream::keep_alive() {
  if (options_.keepalive == 0 || !state_.is(Phase::connected)) {
    return;
  }
  const uint64_t now_ns = base::now_ns();
  if (keepalive_.is_due(now_ns, options_.keepalive_idle_s) && connection_->can_send_control()) {
    connection_->send_control(Control::keepalive);
    keepalive_.restart(now_ns);
  }
}

short Stream::events_now(short events) const {
  PollFacts facts;
  facts.has_data = connection_.has_value() && connection_->readable() > 0;
  facts.has_room = state_.is(Phase::connected) && connection_->can_send(PieceSize::kFirstBytes);
  facts.has_request = !requests_.is_empty();
  return poll_events(state_, directions_, facts, events);
}

void Stream::add_waits(std::vector<pollfd>& waits) const {
  waits.push_back({link_.fd(), POLLIN, 0});
  if (has_data_part()) {
    waits.push_back({connection_->endpoint().channel_fd(), POLLIN, 0});
  }
}

void Stream::take_events() {
  if (connection_.has_value() && connection_->endpoint().take_events()) {
    is_armed_ = false;
  }
  handle_events();
  keep_alive();
}

bool Stream::arm() {
  if (is_armed_ || !has_data_part()) {
    return false;
  }
  const int error = connection_->endpoint().arm();
  if (error != 0) {
    fail(error);
  }
  is_armed_ = true;
  return true;
}

Status Stream::shut_down(int how) {
  if (how != SHUT_RD && how != SHUT_WR && how != SHUT_RDWR) {
    return base::fail(EINVAL);
  }
  const base::LockGuard lock(lock_);
  const Deadline deadline = options_.linger_deadline();
  const auto status = await_connected(deadline);
  if (!status || !state_.is(Phase::connected)) {
    return status;
  }
  const auto what = directions_.shut(how);
  wake_all();
  return what ? say_goodbye(*what, deadline) : Status{};
}

/// Tells the peer, and waits until that and all before it has arrived. A signal does not end this: a program that calls
/// close() again would close somebody else's socket.
Status Stream::say_goodbye(Control what, const Deadline& deadline) {
  const auto is_over = [this]() RINGBOLT_REQUIRES(lock_) { return !state_.is(Phase::connected); };
  const auto status = wait_through_signals(
      deadline, [&]() RINGBOLT_REQUIRES(lock_) { return connection_->can_send_control() || is_over(); });
  if (!status || is_over()) {
    return status;
  }
  connection_->send_control(what);
  directions_.said_goodbye();
  const auto arrived = await_arrival(deadline);
  if (arrived && what == Control::disconnect && state_.is(Phase::connected)) {
    state_.enter(Phase::closed);
    wake_all();
  }
  return arrived;
}

/// Waits until everything sent has reached the peer's memory, or nobody is there to take it.
Status Stream::await_arrival(const Deadline& deadline) {
  return wait_through_signals(deadline, [this]() RINGBOLT_REQUIRES(lock_) {
    return connection_->is_idle() || state_.is(Phase::failed) || connection_->peer_has_disconnected();
  });
}

void Stream::close() {
  const base::LockGuard lock(lock_);
  if (state_.is(Phase::accepting)) {
    (void)await_connected(Deadline::in_ns(kSetUpNs));
  }
  const Deadline deadline = options_.linger_deadline();
  if (state_.is(Phase::connected)) {
    directions_.shut(SHUT_RDWR);
    (void)say_goodbye(Control::disconnect, deadline);
  }
  if (state_.is(Phase::closed) && connection_.has_value()) {
    (void)await_arrival(deadline);
  }
  requests_.clear();
  if (has_data_part()) {
    link_.disconnect();
  }
  state_.enter(Phase::closed);
  wake_all();
}

base::Result<Address> Stream::peer_name() {
  const base::LockGuard lock(lock_);
  if (!state_.may_have_data() || peer_.length() == 0) {
    return base::fail(ENOTCONN);
  }
  return peer_;
}

base::Result<Address> Stream::own_name() {
  const base::LockGuard lock(lock_);
  Address own = link_.local();
  if (own.length() == 0) {
    own.storage.ss_family = static_cast<sa_family_t>(family_);
  }
  return own;
}

Status Stream::set_option(int level, int name, const void* value, socklen_t length) {
  const base::LockGuard lock(lock_);
  const auto status = options_.set(level, name, value, length, state_.phase() >= Phase::resolving_address);
  if (!status) {
    return status;
  }
  const bool is_reuse = level == SOL_SOCKET && name == SO_REUSEADDR;
  if (is_reuse || (level == IPPROTO_IPV6 && name == IPV6_V6ONLY)) {
    const int error = is_reuse ? link_.set_flag(RDMA_OPTION_ID_REUSEADDR, options_.reuse_address)
                               : link_.set_flag(RDMA_OPTION_ID_AFONLY, options_.ipv6_only);
    // Once there is an address it is too late, as with other sockets, but no error there.
    if (error != 0 && state_.is(Phase::fresh)) {
      return base::fail(error);
    }
  }
  if (level == SOL_SOCKET && name == SO_KEEPALIVE) {
    keepalive_.restart(base::now_ns());
  }
  return {};
}

Status Stream::get_option(int level, int name, void* value, socklen_t* length) {
  const base::LockGuard lock(lock_);
  if (level == SOL_SOCKET && name == SO_ERROR) {
    progress();
    return put_option(state_.take_unreported(), value, length);
  }
  const StreamFacts facts{family_, state_.is(Phase::listening), link_.id()->route};
  return get_stream_option(facts, options_, level, name, value, length);
}

}  // namespace ringbolt::rsocket
