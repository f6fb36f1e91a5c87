// How a stream comes about and how it ends: what the connection manager tells.

#include <cerrno>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "stream/end_words.h"
#include "stream/stream.h"

namespace ringbolt::stream {
namespace {

constexpr int kResolveMs = 2000;
constexpr uint8_t kMostRetries = 7;  // of RNR: for ever
// Stock peers ask for no more than one READ at a time, and use none.
constexpr uint8_t kReads = 1;
// Between an empty poll and a look at the connection manager, which is a call into the system.
constexpr uint64_t kCmPaceNs = 50'000;
// Requests were flushed: the connection manager says why, or nobody does.
constexpr uint64_t kBrokenGraceNs = 1'000'000'000;
constexpr int kMostRounds = 1024;  // of completions that lie there at the end

constexpr int kNobodyListens = 8;    // status of REJECTED: no such service
constexpr int kConsumerReject = 28;  // the listener's program said no

rdma_conn_param parameters(uint8_t retries) {
  rdma_conn_param wanted{};
  wanted.responder_resources = wanted.initiator_depth = kReads;
  wanted.retry_count = retries;
  wanted.rnr_retry_count = kMostRetries;
  return wanted;
}

std::string reason_of_errno(const char* call) { return fmt::format("{}: {}", call, base::reason_of(errno)); }

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
  const verbs::ConnectionManager& manager = service_->manager();
  peer_ = targets_[next_target_++];
  id_.emplace(manager, channel_);
  phase_ = Phase::resolving_address;
  errno = 0;
  if (manager.calls().resolve_addr(id_->get(), nullptr, peer_.get(), kResolveMs) != 0) {
    try_next(CloseReason::unreachable, reason_of_errno("rdma_resolve_addr"));
  }
}

/// An attempt has failed, and none of its events is unacknowledged. At most as deep as there are targets.
void Stream::try_next(CloseReason reason, std::string what) {
  if (next_target_ == targets_.size()) {
    end(reason, what);
    return;
  }
  connection_.reset();
  is_armed_ = false;
  id_.reset();
  try {
    begin_attempt();
  } catch (const base::Error& error) {
    end(CloseReason::no_resources, error.what());
  }
}

void Stream::make_connection() {
  connection_.emplace(service_->manager(), id_->get(), role_, settings_, service_->budget());
  is_armed_ = false;
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
  rdma_conn_param wanted = parameters(kMostRetries);
  phase_ = Phase::connecting;
  errno = 0;
  if (service_->manager().calls().connect(id_->get(), &wanted) != 0) {
    try_next(CloseReason::unreachable, reason_of_errno("rdma_connect"));
  }
}

/// The server's side: ready before the answer leaves, for the client's first message may overtake its "ready to use".
void Stream::answer(verbs::OwnedCm<rdma_cm_id> request) {
  id_.emplace(service_->manager(), std::move(request), channel_);
  peer_ = Address(*rdma_get_peer_addr(id_->get()));
  phase_ = Phase::accepting;
  make_connection();
  constexpr uint8_t kServerRetries = 5;
  rdma_conn_param wanted = parameters(kServerRetries);
  errno = 0;
  if (service_->manager().calls().accept(id_->get(), &wanted) != 0) {
    throw base::Error(errno == 0 ? ECONNABORTED : errno, "rdma_accept", peer_.text());
  }
}

void Stream::take_cm_events() {
  while (auto event = channel_.next()) {
    const rdma_cm_event copy = *event;
    event.reset();  // first: an identifier does not go before its events are acknowledged
    take(copy);
  }
}

void Stream::take(const rdma_cm_event& event) {
  if (is_over()) {
    return;
  }
  const bool was_connected = phase_ == Phase::connected;
  const auto failed = [&](CloseReason reason) RINGBOLT_REQUIRES(mutex_) {
    if (was_connected) {  // the peer took its answer back
      end(CloseReason::peer_lost, service_->manager().calls().event_str(event.event));
      return;
    }
    const char* name = service_->manager().calls().event_str(event.event);
    const std::string why = event.status < 0 ? base::reason_of(-event.status) : fmt::format("status {}", event.status);
    try_next(reason,
             event.event == RDMA_CM_EVENT_REJECTED ? rejection(event.status) : fmt::format("{}: {}", name, why));
  };
  switch (event.event) {
    case RDMA_CM_EVENT_ADDR_RESOLVED:
      phase_ = Phase::resolving_route;
      errno = 0;
      if (service_->manager().calls().resolve_route(id_->get(), kResolveMs) != 0) {
        try_next(CloseReason::unreachable, reason_of_errno("rdma_resolve_route"));
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
      failed(CloseReason::refused);
      break;
    case RDMA_CM_EVENT_DEVICE_REMOVAL:
      end(CloseReason::work_failed, "the device has gone");
      break;
    case RDMA_CM_EVENT_ADDR_ERROR:
    case RDMA_CM_EVENT_ROUTE_ERROR:
    case RDMA_CM_EVENT_UNREACHABLE:
    case RDMA_CM_EVENT_CONNECT_ERROR:
      failed(CloseReason::unreachable);
      break;
    default:
      break;  // of no meaning for us: TIMEWAIT_EXIT, ADDR_CHANGE
  }
}

/// Who sends is connected. The message that says so may be lost; it comes again only after a minute if this side was
/// told before that the peer's program needs time (an MRA).
void Stream::note_first_data() {
  if (phase_ == Phase::accepting && !has_noted_data_ && connection_->has_heard()) {
    has_noted_data_ = true;
    service_->manager().calls().notify(id_->get(), IBV_EVENT_COMM_EST);
  }
}

void Stream::look_at_cm_events(uint64_t now_ns, bool is_idle) {
  const bool is_broken = connection_ && connection_->is_broken();
  const bool is_opening = phase_ != Phase::connected;
  note_first_data();
  if (is_opening || is_broken || (is_idle && now_ns - looked_at_cm_ns_ >= kCmPaceNs)) {
    looked_at_cm_ns_ = now_ns;
    take_cm_events();
  }
  if (is_opening && phase_ != Phase::connected && !is_over() && now_ns >= opening_until_ns_) {
    end(role_ == Role::server ? CloseReason::handshake_timeout : CloseReason::unreachable,
        fmt::format("not connected within {} ms", settings_.connect_timeout_ms));
  }
  if (is_broken && !is_over()) {
    broken_since_ns_ = broken_since_ns_ == 0 ? now_ns : broken_since_ns_;
    if (now_ns - broken_since_ns_ >= kBrokenGraceNs) {
      end(CloseReason::peer_lost, "its requests were flushed");
    }
  }
}

/// Once. Tells the peer, and who waits.
void Stream::end(CloseReason reason, const std::string& what) {
  if (is_over()) {
    return;
  }
  const bool was_made = phase_ == Phase::connected || phase_ == Phase::accepting;
  phase_ = Phase::ended;
  reason_ = reason;
  try {
    const std::string through = connection_ ? fmt::format(" through {}", connection_->endpoint().device()) : "";
    words_ = fmt::format("{}{}: {}: {}{}{}{}", name_.empty() ? peer_.text() : name_, through, name_of(reason),
                         words_of(reason), what.empty() ? "" : " (", what, what.empty() ? "" : ")");
  } catch (const std::bad_alloc&) {
    words_.clear();  // the reason alone has to do
  }
  if (connection_) {
    connection_->end(reason);
    if (was_made) {
      service_->manager().calls().disconnect(id_->get());  // also the answer to the peer's
    }
  }
  service_->tally().add(reason);
  if (tally_) {
    tally_->closes.add(reason);
  }
  changed_.notify_all();
}

}  // namespace ringbolt::stream
