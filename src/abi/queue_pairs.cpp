// Queue pairs.

#include <cerrno>
#include <new>

#include "abi/objects.h"
#include "abi/recorded.h"
#include "base/c_border.h"
#include "device/expected_refusals.h"
#include "device/object_rules.h"

namespace ringbolt::abi {
namespace {

/// Null, with errno. On success `wanted` has what is granted.
Qp* make_qp(ibv_pd* pd, ibv_qp_init_attr& wanted) {
  const ibv_qp_init_attr asked = wanted;
  if (const int error = device::check_qp(port_of(pd->context), wanted)) {
    return refuse<Qp>(error);
  }
  auto claim = port_of(pd->context).claim(profile::Counted::qp);
  if (!claim) {
    return refuse<Qp>(claim.error().value);
  }
  auto* qp = new (std::nothrow) Qp;
  if (qp == nullptr) {
    return refuse<Qp>(ENOMEM);
  }
  qp->claim = std::move(*claim);
  device::CompletionQueues queues;
  queues.send = wanted.send_cq == nullptr ? nullptr : Cq::of(wanted.send_cq).impl;
  queues.receive = wanted.recv_cq == nullptr ? nullptr : Cq::of(wanted.recv_cq).impl;
  queues.shared = wanted.srq == nullptr ? nullptr : Srq::of(wanted.srq).impl.get();
  auto made = device::QueuePair::create(Pd::of(pd).impl, queues, wanted, qp->classical());
  if (!made) {
    delete qp;
    return refuse<Qp>(made.error().value);
  }
  qp->impl = std::move(*made);
  ibv_qp* c = qp->classical();
  c->context = pd->context;
  c->qp_context = wanted.qp_context;
  c->pd = pd;
  c->send_cq = wanted.send_cq;
  c->recv_cq = wanted.recv_cq;
  c->srq = wanted.srq;
  c->handle = c->qp_num = qp->impl->qpn();
  c->state = IBV_QPS_RESET;
  c->qp_type = wanted.qp_type;
  pthread_mutex_init(&c->mutex, nullptr);
  pthread_cond_init(&c->cond, nullptr);
  qp->place = place_in(pd->context);
  note_recorded(*c, asked);
  tell_sanitizer([&](sanitizer::Shadow& known, const base::CallSite& site) {
    const device::Port& port = port_of(pd->context);
    // Profiles that take something away have drivers that may leave bad_wr alone (docs/profiles.md).
    const bool is_plain = !port.profile.takes_away();
    known.queue_pair_made(*c, asked, wanted.cap, {is_plain, is_plain, port.is_on_network()}, site);
  });
  return qp;
}

}  // namespace

int post_send(ibv_qp* qp, ibv_send_wr* wr, ibv_send_wr** bad) { return Qp::of(qp).impl->post_send(wr, bad); }

int post_receive(ibv_qp* qp, ibv_recv_wr* wr, ibv_recv_wr** bad) { return Qp::of(qp).impl->post_receive(wr, bad); }

ibv_qp* create_qp_ex(ibv_context*, ibv_qp_init_attr_ex* wanted) {
  if (const int error = check_qp_ex(*wanted)) {
    return refuse<ibv_qp>(error);
  }
  ibv_qp_init_attr classical{};
  classical.qp_context = wanted->qp_context;
  classical.send_cq = wanted->send_cq;
  classical.recv_cq = wanted->recv_cq;
  classical.srq = wanted->srq;
  classical.cap = wanted->cap;
  classical.qp_type = wanted->qp_type;
  classical.sq_sig_all = wanted->sq_sig_all;
  Qp* qp = make_qp(wanted->pd, classical);
  if (qp == nullptr) {
    return nullptr;
  }
  if ((wanted->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS) != 0) {
    if (const int error = init_qp_ex(*qp, wanted->send_ops_flags, classical.cap)) {
      ibv_destroy_qp(qp->classical());
      return refuse<ibv_qp>(error);
    }
  }
  wanted->cap = classical.cap;
  return qp->classical();
}

}  // namespace ringbolt::abi

using ringbolt::abi::Context;
using ringbolt::abi::Qp;

extern "C" {

ibv_qp* ibv_create_qp(ibv_pd* pd, ibv_qp_init_attr* wanted) try {
  Qp* qp = ringbolt::abi::make_qp(pd, *wanted);
  return qp == nullptr ? nullptr : qp->classical();
} catch (...) {
  return ringbolt::base::caught_null();
}

ibv_qp_ex* ibv_qp_to_qp_ex(ibv_qp* qp) {
  Qp& known = Qp::of(qp);
  return (known.marks & Qp::kIsExtended) != 0 ? &known.ex : nullptr;
}

int ibv_modify_qp(ibv_qp* qp, ibv_qp_attr* attributes, int mask) try {
  if (Qp::of(qp).impl == nullptr) {
    return ringbolt::abi::refuse_destroyed("ibv_modify_qp", qp);
  }
  const int error = Qp::of(qp).impl->modify(*attributes, mask);
  if (error == 0) {
    ringbolt::abi::tell_sanitizer([&](ringbolt::sanitizer::Shadow& known, const ringbolt::base::CallSite& site) {
      known.queue_pair_changed(*qp, *attributes, mask, site);
    });
  }
  return error;
} catch (...) {
  return ringbolt::base::caught_errno();
}

int ibv_query_qp(ibv_qp* c, ibv_qp_attr* attributes, int, ibv_qp_init_attr* init) try {
  if (Qp::of(c).impl == nullptr) {
    return ringbolt::abi::refuse_destroyed("ibv_query_qp", c);
  }
  Qp::of(c).impl->query(*attributes, *init);
  init->qp_context = c->qp_context;
  init->send_cq = c->send_cq;
  init->recv_cq = c->recv_cq;
  init->srq = c->srq;
  return 0;
} catch (...) {
  return ringbolt::base::caught_errno();
}

int ibv_destroy_qp(ibv_qp* c) try {
  Qp& qp = Qp::of(c);
  if (qp.impl == nullptr) {
    return ringbolt::abi::refuse_destroyed("ibv_destroy_qp", c);
  }
  Context& context = Context::of(c->context);
  qp.impl->destroy();
  ringbolt::abi::forget_recorded(qp);
  ringbolt::abi::tell_sanitizer(
      [&](ringbolt::sanitizer::Shadow& known, const ringbolt::base::CallSite&) { known.queue_pair_gone(*c); });
  bool is_acknowledged = true;
  if (!context.impl->process().is_abandoned()) {
    context.impl->events().forget(c);
    is_acknowledged = ringbolt::abi::wait_for_acknowledgement(ringbolt::abi::asynchronous_of(*c), "ibv_destroy_qp");
  }
  qp.place.leave();
  qp.claim = {};  // from here on it counts for no limit, even where its memory stays
  if (!is_acknowledged) {
    return 0;  // the program may still acknowledge: the memory stays for good
  }
  if (ringbolt::base::is_explaining()) {
    ringbolt::abi::keep_destroyed(&qp);
  } else {
    delete &qp;
  }
  return 0;
} catch (...) {
  return ringbolt::base::caught_errno();
}

/// From 1 to 0, what is refused on this thread is asked for, and not told of. For our own layers above.
void ringbolt_expect_refusals(int is_asked_for) try {
  ringbolt::device::expect_refusals(is_asked_for != 0);
} catch (...) {
  ringbolt::base::caught_nothing();
}

/// See base/in_place.h: 0, or EOPNOTSUPP where this queue pair copies all that it receives. From INIT on, for good.
int ringbolt_receive_in_place(ibv_qp* qp) try {
  // The sanitizer looks at what is received where the receive was posted.
  return ringbolt::abi::shadow() != nullptr ? EOPNOTSUPP : ringbolt::abi::Qp::of(qp).impl->receive_in_place();
} catch (...) {
  return ringbolt::base::caught_errno();
}

}  // extern "C"
