// What happens to a stream besides its data: how it comes about, who sleeps on it, what its descriptor says, and how it
// ends.

#include <poll.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <new>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "stream/stream.h"

namespace ringbolt::stream {
namespace {

// Nobody sleeps longer without a look of his own: an end by another thread's close() has no descriptor.
constexpr uint64_t kMaxSleepNs = 250'000'000;
constexpr int kMostRounds = 1024;  // of completions that lie there at the end

// Reasons of the connection manager's REJ message: invalid service id, and consumer reject.
constexpr int kNobodyListens = 8;    // status of REJECTED: no such service
constexpr int kConsumerReject = 28;  // the listener's program said no

timespec time_of(uint64_t ns) {
  return {static_cast<time_t>(ns / 1'000'000'000), static_cast<long>(ns % 1'000'000'000)};
}

std::string rejection(int status) {
  switch (status) {
    case kNobodyListens:
      return "no listener has this address and port";
    case kConsumerReject:
      return "its program rejected the connection: a list of allowed addresses, or a limit?";
    default:
      return fmt::format("rejected with status {}", status);
  }
}

}  // namespace

void Stream::begin_attempt() {
  phase_ = Phase::resolving_address;
  const std::string refusal = cm_.resolve_next_target();
  if (!refusal.empty()) {
    try_next(CloseReason::unreachable, refusal);
  }
}

/// An attempt has failed, and none of its events is unacknowledged. At most as deep as there are targets.
void Stream::try_next(CloseReason reason, std::string_view what) {
  if (!cm_.has_more_targets()) {
    end(reason, what);
    return;
  }
  // Any look() may come here until the stream is connected: who holds the lock over one asks for connection_ anew.
  connection_.reset();
  completions_.took_event();
  try {
    begin_attempt();
  } catch (const base::Error& error) {
    end(CloseReason::no_resources, error.what());
  }
}

void Stream::make_connection() {
  connection_.emplace(service_->manager(), cm_.id(), role_, settings_, service_->budget());
  completions_.took_event();
  if (readiness_) {
    readiness_->watch(connection_->endpoint().channel_fd());
  }
}

void Stream::request_connection() {
  try {
    make_connection();
  } catch (const base::Error& error) {
    end(error.errno_value() == ENOBUFS ? CloseReason::over_budget : CloseReason::no_resources, error.what());
    return;
  } catch (const std::bad_alloc&) {
    end(CloseReason::no_resources, "out of memory");
    return;
  }
  phase_ = Phase::connecting;
  const std::string refusal = cm_.connect();
  if (!refusal.empty()) {
    try_next(CloseReason::unreachable, refusal);
  }
}

/// The server's side: ready before the answer leaves, for the client's first message may overtake its "ready to use".
void Stream::answer(verbs::OwnedCm<rdma_cm_id> request) {
  cm_.adopt(std::move(request));
  phase_ = Phase::accepting;
  make_connection();
  cm_.accept();
}

void Stream::take_cm_events() {
  while (auto event = cm_.next_event()) {
    // Its private data must not be looked at after that: they go with the event.
    const rdma_cm_event copy = *event;
    event.reset();  // first: an identifier does not go before its events are acknowledged
    take(copy);
  }
}

void Stream::take(const rdma_cm_event& event) {
  if (is_over()) {
    return;
  }
  switch (event.event) {
    case RDMA_CM_EVENT_ADDR_RESOLVED:
      phase_ = Phase::resolving_route;
      if (const std::string refusal = cm_.resolve_route(); !refusal.empty()) {
        try_next(CloseReason::unreachable, refusal);
      }
      break;
    case RDMA_CM_EVENT_ROUTE_RESOLVED:
      request_connection();
      break;
    case RDMA_CM_EVENT_ESTABLISHED:
      phase_ = Phase::connected;
      connection_->established(base::now_ns());
      changed_.notify_all();
      break;
    case RDMA_CM_EVENT_DISCONNECTED:
      // What came before the end has come: it is in the queue, or was refused.
      for (int i = 0; i < kMostRounds && connection_ && connection_->progress(); ++i) {
      }
      end(CloseReason::peer_closed, {});
      break;
    case RDMA_CM_EVENT_REJECTED:
      take_failure(event, CloseReason::refused);
      break;
    case RDMA_CM_EVENT_DEVICE_REMOVAL:
      end(CloseReason::work_failed, "the device has gone");
      break;
    case RDMA_CM_EVENT_ADDR_ERROR:
    case RDMA_CM_EVENT_ROUTE_ERROR:
    case RDMA_CM_EVENT_UNREACHABLE:
    case RDMA_CM_EVENT_CONNECT_ERROR:
      take_failure(event, CloseReason::unreachable);
      break;
    default:
      break;  // of no meaning for us: TIMEWAIT_EXIT, ADDR_CHANGE
  }
}

void Stream::take_failure(const rdma_cm_event& event, CloseReason reason) {
  const std::string_view name = cm_.name_of(event.event);
  if (phase_ == Phase::connected) {  // the peer took its answer back
    end(CloseReason::peer_lost, name);
    return;
  }
  const std::string why = event.status < 0 ? base::reason_of(-event.status) : fmt::format("status {}", event.status);
  try_next(reason, event.event == RDMA_CM_EVENT_REJECTED ? rejection(event.status) : fmt::format("{}: {}", name, why));
}

void Stream::look_at_cm_events(uint64_t now_ns) {
  const bool is_broken = connection_ && connection_->is_broken();
  const bool is_opening = phase_ != Phase::connected;
  if (phase_ == Phase::accepting && connection_->has_heard()) {
    cm_.note_first_data();
  }
  if (cm_watch_.is_look_due(now_ns, is_opening || is_broken, completions_.was_idle())) {
    take_cm_events();
  }
  if (is_opening && phase_ != Phase::connected && !is_over() && cm_watch_.has_opening_timed_out(now_ns)) {
    end(role_ == Role::server ? CloseReason::handshake_timeout : CloseReason::unreachable,
        fmt::format("not connected within {} ms", settings_.connect_timeout_ms));
  }
  if (is_broken && !is_over() && cm_watch_.is_broken_for_good(now_ns)) {
    end(CloseReason::peer_lost, "its requests were flushed");
  }
}

/// What there is besides data: time that has passed, and the connection manager.
void Stream::look_around() {
  if (is_over()) {
    return;
  }
  const uint64_t now_ns = base::now_ns();
  if (connection_) {
    connection_->tick(now_ns);
  }
  look_at_cm_events(now_ns);
  note_end();
}

void Stream::note_end() {
  if (!connection_ || connection_->is_alive() || is_over()) {
    return;
  }
  std::string what;
  if (connection_->failure() != IBV_WC_SUCCESS) {
    const auto status_str = service_->manager().verbs().calls().wc_status_str;
    what = status_str == nullptr ? std::to_string(connection_->failure()) : status_str(connection_->failure());
  } else if (connection_->post_error() != 0) {
    what = base::reason_of(connection_->post_error());
  }
  end(connection_->protocol().reason(), what);
}

/// Once. Tells the peer, and who waits.
void Stream::end(CloseReason reason, std::string_view what) {
  if (is_over()) {
    return;
  }
  const bool was_made = phase_ == Phase::connected || phase_ == Phase::accepting;
  phase_ = Phase::ended;
  end_.come(reason, name_, cm_.peer(), connection_ ? std::string_view(connection_->endpoint().device()) : "", what);
  if (connection_) {
    connection_->end(reason);
    if (was_made) {
      cm_.disconnect();  // also the answer to the peer's
    }
  }
  service_->tally().add(reason);
  if (tally_) {
    tally_->closes.add(reason);
  }
  changed_.notify_all();
}

/// Makes the next completion an event. False: something has come meanwhile.
bool Stream::arm() {
  if (!connection_ || is_over()) {
    return true;
  }
  if (!completions_.is_armed()) {
    completions_.arm(connection_->endpoint().arm() == 0);
  }
  if (!connection_->progress()) {
    return true;
  }
  completions_.found_while_arming();
  note_end();
  return false;
}

/// One thread sleeps on the descriptors for all, since who takes an event off them takes it from the others; the rest
/// wait for its word.
void Stream::sleep_until(uint64_t until_ns) {
  const uint64_t now_ns = base::now_ns();
  uint64_t wake_ns = std::min(until_ns, now_ns + kMaxSleepNs);
  // Looks again by itself when it wakes, also if the leader has gone meanwhile.
  if (is_led_) {
    changed_.wait_for(mutex_, std::chrono::nanoseconds(wake_ns - std::min(now_ns, wake_ns)));
    return;
  }
  if (!arm()) {
    return;
  }
  wake_ns = connection_ ? std::min(wake_ns, connection_->next_tick_ns()) : wake_ns;
  wake_ns = phase_ == Phase::connected ? wake_ns : std::min(wake_ns, cm_watch_.opening_until_ns());
  const timespec limit = time_of(wake_ns - std::min(now_ns, wake_ns));
  std::array<pollfd, 2> readable{
      {{connection_ ? connection_->endpoint().channel_fd() : -1, POLLIN, 0}, {cm_.fd(), POLLIN, 0}}};
  is_led_ = true;
  {
    // Descriptors and connection stay meanwhile: only a failed attempt replaces them, and then its descriptor is
    // closed, which ends no poll(2); the limit does.
    const base::Unlocked unlocked(mutex_);
    ::ppoll(readable.data(), readable.size(), &limit, nullptr);
  }
  is_led_ = false;
  if (readable[0].revents != 0 && connection_ && connection_->endpoint().take_event()) {
    completions_.took_event();
  }
  if (readable[1].revents != 0) {
    take_cm_events();
  }
  changed_.notify_all();
}

/// Before a call returns: the descriptor says what there is, and the queue is armed, so that it says what comes.
void Stream::settle() {
  if (!readiness_) {
    return;
  }
  // A leader takes the events by itself, and settles when it returns.
  constexpr int kTries = 4;  // something may come again and again: then there is something to do anyhow
  for (int i = 0; i < kTries && connection_ && !is_over() && !is_led_; ++i) {
    if (completions_.may_have_event()) {
      completions_.looked_for_event(connection_->endpoint().take_event());
    }
    if (arm()) {
      break;
    }
  }
  readiness_->ring(is_there(wanted_ | (asks_for_room_ ? uint32_t{kWritable} : 0U)));
}

void Stream::look_after() {
  if (!mutex_.try_lock()) {
    // Waiting would hold up all other streams: the keeper's own lock is held.
    return;  // a thread of the program is in it, and looks by itself
  }
  const base::LockGuard lock(mutex_, base::kAdoptLock);
  if (waiting_ == 0 && !is_over()) {
    look();
    cm_watch_.look_soon();
    look_around();
    if (connection_ && !is_over()) {
      connection_->repost();
    }
    settle();
  }
}

}  // namespace ringbolt::stream
