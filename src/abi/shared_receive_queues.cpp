// Shared receive queues (ibv_create_srq(3)).

#include <cerrno>
#include <new>

#include <fmt/format.h>

#include "abi/objects.h"
#include "base/c_border.h"
#include "device/object_rules.h"

namespace ringbolt::abi {

int post_srq_receive(ibv_srq* srq, ibv_recv_wr* wr, ibv_recv_wr** bad) { return Srq::of(srq).impl->post(wr, bad); }

ibv_srq* create_srq_ex(ibv_context*, ibv_srq_init_attr_ex* wanted) {
  const bool is_basic = (wanted->comp_mask & IBV_SRQ_INIT_ATTR_TYPE) == 0 || wanted->srq_type == IBV_SRQT_BASIC;
  if (!is_basic || (wanted->comp_mask & IBV_SRQ_INIT_ATTR_PD) == 0) {
    return refuse<ibv_srq>(base::refused(is_basic ? EINVAL : EOPNOTSUPP, "ibv_create_srq_ex", [&] {
      return is_basic ? base::Explanation{fmt::format("comp_mask {:#x} lacks IBV_SRQ_INIT_ATTR_PD", wanted->comp_mask),
                                          "set pd, and IBV_SRQ_INIT_ATTR_PD in comp_mask"}
                      : base::Explanation{fmt::format("srq_type is {}; the device has IBV_SRQT_BASIC (0) alone",
                                                      static_cast<int>(wanted->srq_type)),
                                          "take IBV_SRQT_BASIC"};
    }));
  }
  ibv_srq_init_attr classical{wanted->srq_context, wanted->attr};
  ibv_srq* srq = ibv_create_srq(wanted->pd, &classical);
  wanted->attr = classical.attr;
  return srq;
}

}  // namespace ringbolt::abi

using ringbolt::abi::Context;
using ringbolt::abi::Pd;
using ringbolt::abi::Srq;

extern "C" {

ibv_srq* ibv_create_srq(ibv_pd* pd, ibv_srq_init_attr* wanted) try {
  if (const int error = ringbolt::device::check_srq(ringbolt::abi::port_of(pd->context))) {
    return ringbolt::abi::refuse<ibv_srq>(error);
  }
  auto queue = ringbolt::device::SharedReceiveQueue::create(Pd::of(pd).impl, wanted->attr);
  if (!queue) {
    return ringbolt::abi::refuse<ibv_srq>(queue.error().value);
  }
  auto* srq = new (std::nothrow) Srq;
  if (srq == nullptr) {
    return ringbolt::abi::refuse<ibv_srq>(ENOMEM);
  }
  srq->impl = std::move(*queue);
  srq->impl->handle = &srq->c;
  srq->c.context = pd->context;
  srq->c.srq_context = wanted->srq_context;
  srq->c.pd = pd;
  pthread_mutex_init(&srq->c.mutex, nullptr);
  pthread_cond_init(&srq->c.cond, nullptr);
  wanted->attr = srq->impl->query();
  srq->place = ringbolt::abi::place_in(pd->context);
  ringbolt::abi::tell_sanitizer([&](ringbolt::sanitizer::Shadow& known, const ringbolt::base::CallSite& site) {
    known.shared_queue_made(srq->c, site);
  });
  return &srq->c;
} catch (...) {
  return ringbolt::base::caught_null();
}

int ibv_modify_srq(ibv_srq* srq, ibv_srq_attr* attributes, int mask) try {
  return Srq::of(srq).impl->modify(*attributes, mask);
} catch (...) {
  return ringbolt::base::caught_errno();
}

int ibv_query_srq(ibv_srq* srq, ibv_srq_attr* attributes) try {
  *attributes = Srq::of(srq).impl->query();
  return 0;
} catch (...) {
  return ringbolt::base::caught_errno();
}

int ibv_destroy_srq(ibv_srq* c) try {
  Srq& srq = Srq::of(c);
  // Queue pairs point to it without owning it: they go first.
  if (const uint32_t users = srq.impl->users.load(); users != 0) {
    return ringbolt::abi::in_use("ibv_destroy_srq", c, "the shared receive queue", users, "its queue pairs");
  }
  bool is_acknowledged = true;
  if (!ringbolt::abi::process_of(c->context).is_abandoned()) {
    Context::of(c->context).impl->events().forget(c);
    is_acknowledged = ringbolt::abi::wait_for_acknowledgement(ringbolt::abi::asynchronous_of(*c), "ibv_destroy_srq");
  }
  srq.place.leave();
  ringbolt::abi::tell_sanitizer(
      [&](ringbolt::sanitizer::Shadow& known, const ringbolt::base::CallSite&) { known.shared_queue_gone(*c); });
  if (is_acknowledged) {
    delete &srq;
  }
  return 0;
} catch (...) {
  return ringbolt::base::caught_errno();
}

}  // extern "C"
