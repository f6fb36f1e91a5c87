// Completion queues.

#include <cerrno>
#include <new>

#include "abi/objects.h"
#include "base/c_border.h"
#include "device/object_rules.h"

namespace ringbolt::abi {
namespace {

/// Null, with errno. The program's until ibv_destroy_cq().
Cq* make_cq(ibv_context* context, uint32_t cqe, void* cq_context, ibv_comp_channel* channel) {
  if (const int error = device::check_cq(port_of(context), cqe)) {
    return refuse<Cq>(error);
  }
  auto claim = port_of(context).claim(profile::Counted::cq);
  if (!claim) {
    return refuse<Cq>(claim.error().value);
  }
  auto* cq = new (std::nothrow) Cq;
  if (cq == nullptr) {
    return refuse<Cq>(ENOMEM);
  }
  cq->claim = std::move(*claim);
  auto queue = device::CompletionQueue::create(*Context::of(context).impl, cqe,
                                               channel == nullptr ? nullptr : &Channel::of(channel).impl);
  if (!queue) {
    delete cq;
    return refuse<Cq>(queue.error().value);
  }
  cq->impl = std::move(*queue);
  ibv_cq* c = cq->classical();
  cq->impl->handle = c;
  c->context = context;
  c->channel = channel;
  c->cq_context = cq_context;
  c->cqe = static_cast<int>(cqe);
  pthread_mutex_init(&c->mutex, nullptr);
  pthread_cond_init(&c->cond, nullptr);
  if (channel != nullptr) {
    // Relaxed: a count alone; who destroys the channel has seen its queues go by means of his own.
    __atomic_fetch_add(&channel->refcnt, 1, __ATOMIC_RELAXED);
  }
  cq->place = place_in(context);
  tell_sanitizer([&](sanitizer::Shadow& known, const base::CallSite& site) { known.queue_made(*c, site); });
  return cq;
}

}  // namespace

int poll_cq(ibv_cq* cq, int count, ibv_wc* wc) { return Cq::of(cq).impl->poll(count, wc); }

int request_notification(ibv_cq* cq, int solicited_only) {
  Cq::of(cq).impl->request_notification(solicited_only != 0);
  return 0;
}

ibv_cq_ex* create_cq_ex(ibv_context* context, ibv_cq_init_attr_ex* wanted) {
  if (const int error = check_cq_ex(*wanted)) {
    return refuse<ibv_cq_ex>(error);
  }
  if (wanted->comp_vector >= static_cast<uint32_t>(context->num_comp_vectors)) {
    return refuse<ibv_cq_ex>(EINVAL);
  }
  Cq* cq = make_cq(context, wanted->cqe, wanted->cq_context, wanted->channel);
  if (cq == nullptr) {
    return nullptr;
  }
  init_cq_ex(*cq, *wanted);
  return &cq->ex;
}

}  // namespace ringbolt::abi

using ringbolt::abi::Context;
using ringbolt::abi::Cq;

extern "C" {

ibv_cq* ibv_create_cq(ibv_context* context, int cqe, void* cq_context, ibv_comp_channel* channel, int comp_vector) try {
  if (cqe <= 0 || comp_vector < 0 || comp_vector >= context->num_comp_vectors) {
    return ringbolt::abi::refuse<ibv_cq>(EINVAL);
  }
  Cq* cq = ringbolt::abi::make_cq(context, static_cast<uint32_t>(cqe), cq_context, channel);
  return cq == nullptr ? nullptr : cq->classical();
} catch (...) {
  return ringbolt::base::caught_null();
}

int ibv_resize_cq(ibv_cq* cq, int cqe) try {
  int error =
      cqe <= 0 ? EINVAL : ringbolt::device::check_cq(ringbolt::abi::port_of(cq->context), static_cast<uint32_t>(cqe));
  if (error == 0) {
    error = Cq::of(cq).impl->resize(static_cast<uint32_t>(cqe));
  }
  if (error == 0) {
    cq->cqe = cqe;
    ringbolt::abi::tell_sanitizer(
        [&](ringbolt::sanitizer::Shadow& known, const ringbolt::base::CallSite&) { known.queue_resized(*cq); });
  }
  return error;
} catch (...) {
  return ringbolt::base::caught_errno();
}

int ibv_destroy_cq(ibv_cq* c) try {
  Cq& cq = Cq::of(c);
  Context& context = Context::of(c->context);
  ringbolt::device::Process& process = context.impl->process();
  bool is_acknowledged = true;
  // In a forked child nothing of the device is touched: it is the parent's.
  if (!process.is_abandoned()) {
    if (cq.impl->is_attached()) {
      return ringbolt::abi::in_use("ibv_destroy_cq", c, "the completion queue", 0,
                                   "the queue pairs that complete to it");
    }
    process.remove(*cq.impl);
    cq.impl->retire();
    context.impl->events().forget(c);
    if (c->channel != nullptr) {
      ringbolt::abi::Channel::of(c->channel).impl.forget(cq.impl.get());
    }
    is_acknowledged = ringbolt::abi::wait_for_acknowledgement(ringbolt::abi::completions_of(*c), "ibv_destroy_cq") &&
                      ringbolt::abi::wait_for_acknowledgement(ringbolt::abi::asynchronous_of(*c), "ibv_destroy_cq");
  }
  if (c->channel != nullptr) {
    __atomic_fetch_sub(&c->channel->refcnt, 1, __ATOMIC_RELAXED);
  }
  cq.place.leave();
  cq.claim = {};  // from here on it counts for no limit, even where its memory stays
  ringbolt::abi::tell_sanitizer(
      [&](ringbolt::sanitizer::Shadow& known, const ringbolt::base::CallSite&) { known.queue_gone(*c); });
  // Else the program may still acknowledge: the memory stays for good.
  if (is_acknowledged) {
    delete &cq;
  }
  return 0;
} catch (...) {
  return ringbolt::base::caught_errno();
}

}  // extern "C"
