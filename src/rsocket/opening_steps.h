#pragma once

#include <rdma/rdma_cma.h>

#include <cstdint>

#include "rsocket/stream_state.h"

namespace ringbolt::rsocket {

/// The way from an address to a connection: resolve the address, then the route, ask the peer; each of the first two is
/// tried again where nobody answered, and given twice the time. Says what comes next, and does nothing. Not
/// thread-safe: under the socket's lock.
/// Source: rdma_cm(7), "Client Operation".
class OpeningSteps {
 public:
  static constexpr int kAttempts = 6;  ///< at resolving the address, and at resolving the route
  /// Then 2, 4, 8, 16 and 32 s.
  static constexpr int kFirstTimeoutMs = 1000;

  enum class Next {
    nothing,
    resolve_address,
    resolve_route,
    request_connection,
    be_established,  ///< the peer has agreed, or heard that we have
    fail,            ///< the event says why
    be_disconnected,
  };

  /// From the address again, with all attempts left.
  void begin() { attempts_ = 0; }
  /// One more attempt at the step that is under way. Returns how long it may take.
  int begin_attempt_ms() { return kFirstTimeoutMs << attempts_++; }
  /// What an event means in this phase. `status`: of the event; negative, it is an errno.
  Next after(rdma_cm_event_type event, int status, Phase phase);

 private:
  int attempts_ = 0;  // of the step that is under way
};

inline OpeningSteps::Next OpeningSteps::after(rdma_cm_event_type event, int status, Phase phase) {
  switch (event) {
    case RDMA_CM_EVENT_ADDR_RESOLVED:
      attempts_ = 0;
      return phase == Phase::resolving_address ? Next::resolve_route : Next::nothing;
    case RDMA_CM_EVENT_ROUTE_RESOLVED:
      attempts_ = 0;
      return phase == Phase::resolving_route ? Next::request_connection : Next::nothing;
    case RDMA_CM_EVENT_ADDR_ERROR:
    case RDMA_CM_EVENT_ROUTE_ERROR:
      if (status == -ETIMEDOUT && attempts_ < kAttempts) {
        return phase == Phase::resolving_address ? Next::resolve_address
               : phase == Phase::resolving_route ? Next::resolve_route
                                                 : Next::fail;
      }
      return Next::fail;
    case RDMA_CM_EVENT_ESTABLISHED:
      return Next::be_established;
    case RDMA_CM_EVENT_CONNECT_ERROR:
    case RDMA_CM_EVENT_UNREACHABLE:
    case RDMA_CM_EVENT_REJECTED:
    case RDMA_CM_EVENT_DEVICE_REMOVAL:
      return Next::fail;
    case RDMA_CM_EVENT_DISCONNECTED:
      return Next::be_disconnected;
    default:
      return Next::nothing;  // of no meaning here: TIMEWAIT_EXIT, ADDR_CHANGE
  }
}

}  // namespace ringbolt::rsocket
