// Completion channels and asynchronous events.

#include <fcntl.h>
#include <poll.h>

#include <cerrno>
#include <chrono>
#include <optional>

#include "abi/objects.h"
#include "abi/recorded.h"
#include "base/c_border.h"
#include "device/object_rules.h"

namespace ringbolt::abi {
namespace {

/// Of the object that an event names; nothing where it names a port or the device.
/// The object is there as long as an event of it is not acknowledged: its destroy waits.
std::optional<Acknowledgements> acknowledgements_of(const ibv_async_event& event) {
  switch (event.event_type) {
    case IBV_EVENT_CQ_ERR:
      return asynchronous_of(*event.element.cq);
    case IBV_EVENT_QP_FATAL:
    case IBV_EVENT_QP_REQ_ERR:
    case IBV_EVENT_QP_ACCESS_ERR:
    case IBV_EVENT_COMM_EST:
    case IBV_EVENT_SQ_DRAINED:
    case IBV_EVENT_PATH_MIG:
    case IBV_EVENT_PATH_MIG_ERR:
    case IBV_EVENT_QP_LAST_WQE_REACHED:
      return asynchronous_of(*event.element.qp);
    case IBV_EVENT_SRQ_ERR:
    case IBV_EVENT_SRQ_LIMIT_REACHED:
      return asynchronous_of(*event.element.srq);
    default:
      return std::nullopt;
  }
}

/// RINGBOLT_EXPLAIN: a thread of the program waits there.
class NotedWait {
 public:
  explicit NotedWait(const device::CompletionChannel& channel)
      : waiters_(base::is_explaining() ? channel.waiters() : nullptr) {
    if (waiters_ != nullptr) {
      waiters_->note(base::call_site());
      // Relaxed: for words to people alone.
      waiters_->now.fetch_add(1, std::memory_order_relaxed);
    }
  }
  ~NotedWait() {
    if (waiters_ != nullptr) {
      waiters_->now.fetch_sub(1, std::memory_order_relaxed);
    }
  }
  NotedWait(const NotedWait&) = delete;
  NotedWait& operator=(const NotedWait&) = delete;

 private:
  const std::shared_ptr<device::Waiters> waiters_;
};

}  // namespace

bool wait_for_acknowledgement(const Acknowledgements& events, const char* call) {
  if (shadow() == nullptr) {
    events.wait();
    return true;
  }
  // Long enough for a thread that just handles its event; then the program gets a finding instead of a hang.
  const uint32_t missing = events.wait_for(std::chrono::seconds(1));
  if (missing != 0) {
    tell_sanitizer(
        [&](sanitizer::Shadow& known, const base::CallSite& site) { known.unacknowledged(call, missing, site); });
  }
  return missing == 0;
}

}  // namespace ringbolt::abi

using ringbolt::abi::Channel;
using ringbolt::abi::Context;

extern "C" {

ibv_comp_channel* ibv_create_comp_channel(ibv_context* context) try {
  if (const int error = ringbolt::device::check_channel(ringbolt::abi::port_of(context))) {
    return ringbolt::abi::refuse<ibv_comp_channel>(error);
  }
  auto channel = std::make_unique<Channel>(ringbolt::abi::process_of(context));
  channel->c = {context, channel->impl.descriptor(), 0};
  channel->place = ringbolt::abi::place_in(context);
  ringbolt::abi::note_made(ringbolt::sanitizer::ObjectKind::channel, &channel->c);
  return &channel.release()->c;
} catch (...) {
  return ringbolt::base::caught_null();
}

/// EBUSY: completion queues use it. No thread may wait at it.
int ibv_destroy_comp_channel(ibv_comp_channel* c) try {
  if (c->refcnt != 0) {
    return ringbolt::abi::in_use("ibv_destroy_comp_channel", c, "the channel", static_cast<uint32_t>(c->refcnt),
                                 "the completion queues that were made with it");
  }
  ringbolt::abi::note_gone(c);
  delete &Channel::of(c);
  return 0;
} catch (...) {
  return ringbolt::base::caught_errno();
}

int ibv_get_cq_event(ibv_comp_channel* channel, ibv_cq** cq, void** cq_context) try {
  ringbolt::abi::tell_sanitizer([&](ringbolt::sanitizer::Shadow& known, const ringbolt::base::CallSite& site) {
    pollfd events{channel->fd, POLLIN, 0};
    const bool returns_at_once = (::fcntl(channel->fd, F_GETFL) & O_NONBLOCK) != 0 || ::poll(&events, 1, 0) != 0;
    known.sleeping(*channel, returns_at_once, site);
  });
  ringbolt::device::CompletionQueue* queue = nullptr;
  // Counted while it is taken: who destroys the queue meanwhile waits for the acknowledgement.
  const auto count = [](ringbolt::device::CompletionQueue& taken) {
    ringbolt::abi::completions_of(*static_cast<ibv_cq*>(taken.handle)).take();
  };
  const ringbolt::abi::NotedWait noted(Channel::of(channel).impl);
  if (const int error = Channel::of(channel).impl.take(queue, count)) {
    errno = error;
    return -1;
  }
  *cq = static_cast<ibv_cq*>(queue->handle);
  *cq_context = (*cq)->cq_context;
  ringbolt::abi::record_queue(ringbolt::trace::Kind::event_taken, *cq);
  return 0;
} catch (...) {
  return ringbolt::base::caught_minus_one();
}

void ibv_ack_cq_events(ibv_cq* cq, unsigned count) try {
  ringbolt::abi::record_queue(ringbolt::trace::Kind::event_acknowledged, cq, count);
  ringbolt::abi::completions_of(*cq).acknowledge(count);  // from here on the queue may go
} catch (...) {
  ringbolt::base::caught_nothing();
}

int ibv_get_async_event(ibv_context* context, ibv_async_event* event) try {
  const auto count = [](ibv_async_event& taken) {
    if (const auto events = ringbolt::abi::acknowledgements_of(taken)) {
      events->take();
    }
  };
  // Blocks, unless the program has made async_fd non-blocking: EAGAIN then.
  if (const int error = Context::of(context).impl->events().take(*event, count)) {
    errno = error;
    return -1;
  }
  return 0;
} catch (...) {
  return ringbolt::base::caught_minus_one();
}

void ibv_ack_async_event(ibv_async_event* event) try {
  if (const auto events = ringbolt::abi::acknowledgements_of(*event)) {
    events->acknowledge(1);
  }
} catch (...) {
  ringbolt::base::caught_nothing();
}

}  // extern "C"
