// Completion channels and asynchronous events.

#include <fcntl.h>
#include <poll.h>

#include <cerrno>
#include <ctime>

#include "abi/objects.h"
#include "abi/recorded.h"
#include "base/c_border.h"
#include "device/object_rules.h"

namespace ringbolt::abi {
namespace {

/// The object that an event names: the C structure's count of acknowledgements and our count of taken events. Without
/// `mutex` the event names a port or the device.
struct Subject {
  pthread_mutex_t* mutex = nullptr;
  pthread_cond_t* condition = nullptr;
  uint32_t* completed = nullptr;
  Taken* taken = nullptr;
};

Subject subject_of(ibv_async_event& event) {
  switch (event.event_type) {
    case IBV_EVENT_CQ_ERR: {
      ibv_cq* cq = event.element.cq;
      return {&cq->mutex, &cq->cond, &cq->async_events_completed, &Cq::of(cq).asynchronous};
    }
    case IBV_EVENT_QP_FATAL:
    case IBV_EVENT_QP_REQ_ERR:
    case IBV_EVENT_QP_ACCESS_ERR:
    case IBV_EVENT_COMM_EST:
    case IBV_EVENT_SQ_DRAINED:
    case IBV_EVENT_PATH_MIG:
    case IBV_EVENT_PATH_MIG_ERR:
    case IBV_EVENT_QP_LAST_WQE_REACHED: {
      ibv_qp* qp = event.element.qp;
      return {&qp->mutex, &qp->cond, &qp->events_completed, &Qp::of(qp).asynchronous};
    }
    case IBV_EVENT_SRQ_ERR:
    case IBV_EVENT_SRQ_LIMIT_REACHED: {
      ibv_srq* srq = event.element.srq;
      return {&srq->mutex, &srq->cond, &srq->events_completed, &Srq::of(srq).asynchronous};
    }
    default:
      return {};
  }
}

/// RINGBOLT_EXPLAIN: a thread of the program waits there.
class NotedWait {
 public:
  explicit NotedWait(const device::CompletionChannel& channel)
      : waiters_(base::is_explaining() ? channel.waiters() : nullptr) {
    if (waiters_ != nullptr) {
      waiters_->note(base::call_site());
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

bool wait_for_acknowledgement(pthread_mutex_t& mutex, pthread_cond_t& condition, const uint32_t& completed,
                              const Taken& taken, const char* call) {
  timespec give_up{};
  clock_gettime(CLOCK_REALTIME, &give_up);
  give_up.tv_sec += 1;
  pthread_mutex_lock(&mutex);
  bool may_wait = true;
  while (may_wait && completed != taken.events.load()) {
    if (shadow() == nullptr) {
      pthread_cond_wait(&condition, &mutex);
    } else {
      may_wait = pthread_cond_timedwait(&condition, &mutex, &give_up) != ETIMEDOUT;
    }
  }
  const uint32_t missing = taken.events.load() - completed;
  pthread_mutex_unlock(&mutex);
  if (missing != 0) {
    tell_sanitizer(
        [&](sanitizer::Shadow& known, const base::CallSite& site) { known.unacknowledged(call, missing, site); });
  }
  return missing == 0;
}

}  // namespace ringbolt::abi

using ringbolt::abi::Channel;
using ringbolt::abi::Context;
using ringbolt::abi::Cq;

extern "C" {

ibv_comp_channel* ibv_create_comp_channel(ibv_context* context) try {
  if (const int error = ringbolt::device::check_channel(ringbolt::abi::port_of(context))) {
    return ringbolt::abi::refuse<ibv_comp_channel>(error);
  }
  auto channel = std::make_unique<Channel>(Context::of(context).impl->process());
  channel->c = {context, channel->impl.descriptor(), 0};
  Context::of(context).objects.fetch_add(1);
  ringbolt::abi::note_made(ringbolt::sanitizer::ObjectKind::channel, &channel->c);
  return &channel.release()->c;
} catch (...) {
  return ringbolt::base::caught_null();
}

int ibv_destroy_comp_channel(ibv_comp_channel* c) try {
  if (c->refcnt != 0) {
    return ringbolt::abi::in_use("ibv_destroy_comp_channel", c, "the channel", static_cast<uint32_t>(c->refcnt),
                                 "the completion queues that were made with it");
  }
  Context::of(c->context).objects.fetch_sub(1);
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
    Cq::of(static_cast<ibv_cq*>(taken.handle)).completions.events.fetch_add(1);
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
  pthread_mutex_lock(&cq->mutex);
  cq->comp_events_completed += count;
  ringbolt::abi::record_queue(ringbolt::trace::Kind::event_acknowledged, cq, count);
  pthread_cond_signal(&cq->cond);
  pthread_mutex_unlock(&cq->mutex);
} catch (...) {
  ringbolt::base::caught_nothing();
}

int ibv_get_async_event(ibv_context* context, ibv_async_event* event) try {
  const auto count = [](ibv_async_event& taken) {
    if (const auto subject = ringbolt::abi::subject_of(taken); subject.taken != nullptr) {
      subject.taken->events.fetch_add(1);
    }
  };
  if (const int error = Context::of(context).impl->events().take(*event, count)) {
    errno = error;
    return -1;
  }
  return 0;
} catch (...) {
  return ringbolt::base::caught_minus_one();
}

void ibv_ack_async_event(ibv_async_event* event) try {
  const auto subject = ringbolt::abi::subject_of(*event);
  if (subject.mutex != nullptr) {
    pthread_mutex_lock(subject.mutex);
    ++*subject.completed;
    pthread_cond_signal(subject.condition);
    pthread_mutex_unlock(subject.mutex);
  }
} catch (...) {
  ringbolt::base::caught_nothing();
}

}  // extern "C"
