// The part of Link that sleeps on completion events.
#include <poll.h>

#include <array>

#include "perf/link.h"

namespace ringbolt::tools::perf {

void Link::arm() const {
  for (ibv_cq* cq : {send_cq(), receive_cq(), credit_cq()}) {
    if (cq == nullptr) {
      continue;
    }
    if (const int error = ibv_req_notify_cq(cq, 0)) {
      fail_call("ibv_req_notify_cq", error);
    }
  }
}

void Link::doze() {
  if (!events_) {
    return;
  }
  if (!is_armed_) {
    // What came before this raises no event: the caller polls once more before it sleeps.
    arm();
    is_armed_ = true;
    return;
  }
  // Short enough for everything that no completion announces: a text of the peer wakes us too.
  constexpr int kMostMs = 20;
  std::array<pollfd, 2> polled{pollfd{events_->fd, POLLIN, 0}, pollfd{peer_.fd(), POLLIN, 0}};
  ::poll(polled.data(), polled.size(), kMostMs);
  is_armed_ = false;
  if ((polled[0].revents & POLLIN) != 0) {
    ibv_cq* cq = nullptr;
    void* context = nullptr;
    if (verbs().get_cq_event(events_.get(), &cq, &context) == 0) {
      verbs().ack_cq_events(cq, 1);
    }
  }
}

}  // namespace ringbolt::tools::perf
