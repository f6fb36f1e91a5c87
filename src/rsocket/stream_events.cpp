#include "rsocket/stream.h"

namespace ringbolt::rsocket {
namespace {

constexpr int kAttempts = 6;  ///< at resolving the address, and at resolving the route

}  // namespace

void Stream::handle_events() {
  while (CmEvent event = link_.next()) {
    if (event->event == RDMA_CM_EVENT_CONNECT_REQUEST) {
      take_request(std::move(event));
    } else {
      handle_event(*event);
    }
  }
}

void Stream::handle_event(const rdma_cm_event& event) {
  switch (event.event) {
    case RDMA_CM_EVENT_ADDR_RESOLVED:
      attempts_ = 0;
      if (phase_ == Phase::resolving_address) {
        resolve_route();
      }
      break;
    case RDMA_CM_EVENT_ROUTE_RESOLVED:
      attempts_ = 0;
      if (phase_ == Phase::resolving_route) {
        request_connection();
      }
      break;
    case RDMA_CM_EVENT_ADDR_ERROR:
    case RDMA_CM_EVENT_ROUTE_ERROR:
      handle_failed_step(event);
      break;
    case RDMA_CM_EVENT_ESTABLISHED:
      handle_established(event);
      break;
    case RDMA_CM_EVENT_CONNECT_ERROR:
    case RDMA_CM_EVENT_UNREACHABLE:
    case RDMA_CM_EVENT_REJECTED:
    case RDMA_CM_EVENT_DEVICE_REMOVAL:
      fail(error_of(event));
      break;
    case RDMA_CM_EVENT_DISCONNECTED:
      handle_disconnected();
      break;
    default:
      break;
  }
}

void Stream::handle_failed_step(const rdma_cm_event& event) {
  const bool may_try_again = event.status == -ETIMEDOUT && attempts_ < kAttempts;
  if (may_try_again && phase_ == Phase::resolving_address) {
    resolve_address();
  } else if (may_try_again && phase_ == Phase::resolving_route) {
    resolve_route();
  } else {
    fail(error_of(event));
  }
}

void Stream::handle_established(const rdma_cm_event& event) {
  if (phase_ == Phase::connecting) {
    const auto joined = join(event.param.conn.private_data, event.param.conn.private_data_len);
    if (!joined) {
      rdma_disconnect(link_.id());
      fail(joined.error().value);
      return;
    }
  }
  if (is_opening()) {
    phase_ = Phase::connected;
    watchers_.ring();
  }
}

/// The peer, or whoever cleans up behind it, has ended the connection. A peer that ends in order has said so before, in
/// the stream, so that nothing can be cut off without notice.
void Stream::handle_disconnected() {
  if (has_data_part()) {
    connection_->progress();
    note_peer();
  }
  rdma_disconnect(link_.id());
  fail(ECONNRESET);
}

}  // namespace ringbolt::rsocket
