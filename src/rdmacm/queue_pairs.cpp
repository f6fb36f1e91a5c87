// Queue pairs, completion queues and shared receive queues that hang on an identifier.

#include <rdma/rdma_verbs.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "base/c_border.h"
#include "base/explain.h"
#include "rdmacm/connection_manager.h"
#include "rdmacm/identifiers.h"
#include "rdmacm/qp_attributes.h"

namespace ringbolt::rdmacm {
namespace {

/// A completion queue of the library's own, for programs that bring none and use rdma_get_send_comp() and its like.
// On an error what was made so far stays in `channel` and `cq`: drop_cqs() takes it away.
int make_cq(rdma_cm_id& id, uint32_t depth, ibv_comp_channel*& channel, ibv_cq*& cq) {
  if (channel == nullptr) {
    channel = ibv_create_comp_channel(id.verbs);
    if (channel == nullptr) {
      return errno;
    }
  }
  // The identifier is its context, as with rdma-core.
  cq = ibv_create_cq(id.verbs, static_cast<int>(depth == 0 ? 1 : depth), &id, channel, 0);
  return cq == nullptr ? errno : 0;
}

void drop_cq(ibv_comp_channel*& channel, ibv_cq*& cq) {
  if (cq != nullptr) {
    ibv_destroy_cq(std::exchange(cq, nullptr));
  }
  if (channel != nullptr) {
    ibv_destroy_comp_channel(std::exchange(channel, nullptr));
  }
}

void drop_cqs(rdma_cm_id& id) {
  drop_cq(id.recv_cq_channel, id.recv_cq);
  drop_cq(id.send_cq_channel, id.send_cq);
}

int check(const rdma_cm_id& id, const ibv_qp_init_attr_ex& wanted) {
  if (id.qp != nullptr || id.verbs == nullptr || wanted.pd == nullptr || wanted.pd->context != id.verbs) {
    return base::refused(EINVAL, "rdma_create_qp", [&] {
      return id.qp != nullptr ? base::Explanation{fmt::format("the identifier has queue pair {:#x} already", id.qp->qp_num),
                                                  "destroy that first with rdma_destroy_qp"}
             : id.verbs == nullptr
                 ? base::Explanation{"the identifier has 0 devices: it is neither bound to an address nor resolved to one",
                                     "call it after ADDR_RESOLVED, or on the id of a CONNECT_REQUEST"}
                 : base::Explanation{"pd is of another device than the identifier's (id->verbs), or 0",
                                     "allocate it with ibv_alloc_pd(id->verbs), or give NULL"};
    });
  }
  const auto differs = [](const ibv_cq* own, const ibv_cq* given) {
    return own != nullptr && given != nullptr && own != given;
  };
  if (!differs(id.recv_cq, wanted.recv_cq) && !differs(id.send_cq, wanted.send_cq)) {
    return 0;
  }
  return base::refused(EINVAL, "rdma_create_qp", [] {
    return base::Explanation{"send_cq or recv_cq is another one of the 2 than the identifier has already",
                             "give NULL, and take id->send_cq and id->recv_cq"};
  });
}

int fill_cqs(rdma_cm_id& id, ibv_qp_init_attr_ex& wanted) {
  // With an SRQ alone no receives are posted to the queue pair, so there need be none of its own.
  if (wanted.recv_cq == nullptr && id.recv_cq == nullptr && wanted.cap.max_recv_wr > 0) {
    if (const int error = make_cq(id, wanted.cap.max_recv_wr, id.recv_cq_channel, id.recv_cq)) {
      return error;
    }
  }
  if (wanted.send_cq == nullptr && id.send_cq == nullptr) {
    if (const int error = make_cq(id, wanted.cap.max_send_wr, id.send_cq_channel, id.send_cq)) {
      return error;
    }
  }
  wanted.recv_cq = wanted.recv_cq == nullptr ? id.recv_cq : wanted.recv_cq;
  wanted.send_cq = wanted.send_cq == nullptr ? id.send_cq : wanted.send_cq;
  // A queue pair that receives from a shared queue still completes its receives somewhere.
  wanted.recv_cq = wanted.recv_cq == nullptr ? wanted.send_cq : wanted.recv_cq;
  wanted.srq = wanted.srq == nullptr ? id.srq : wanted.srq;
  return 0;
}

/// The kernel's software device grants as many inline bytes as the pieces of a request take up, asked or not, and
/// programs have come to send inline on that (rdma_xclient).
void grant_inline(ibv_qp_cap& caps) {
  // As much as our device copies without a word (limits.md).
  constexpr uint32_t kMostInline = 256;
  constexpr auto kPieceBytes = static_cast<uint32_t>(sizeof(ibv_sge));
  caps.max_inline_data = std::max(caps.max_inline_data, std::min(kMostInline, caps.max_send_sge * kPieceBytes));
}

// Without the lock, but for the last step: making a queue pair may take long, and the identifier is the program's
// alone.
int create_qp(Id& id, ibv_qp_init_attr_ex& wanted) {
  if ((wanted.comp_mask & IBV_QP_INIT_ATTR_PD) == 0 || wanted.pd == nullptr) {
    wanted.comp_mask |= IBV_QP_INIT_ATTR_PD;
    wanted.pd = id.c.pd;  // the program's of rdma_create_ep, or the library's for this device
  }
  if (const int error = check(id.c, wanted)) {
    return error;
  }
  if (const int error = fill_cqs(id.c, wanted)) {
    // Only those of the library: a program's own are not in the identifier.
    drop_cqs(id.c);
    return error;
  }
  grant_inline(wanted.cap);
  ibv_qp* qp = ibv_create_qp_ex(id.c.verbs, &wanted);
  int error = qp == nullptr ? errno : 0;
  if (qp != nullptr) {
    // A fork in between.
    error = ENODEV;
    if (is_ours(id)) {
      const base::LockGuard guard(id.manager->mutex());
      error = initialize_queue_pair(id, qp);
    }
  }
  if (error != 0) {
    if (qp != nullptr) {
      ibv_destroy_qp(qp);
    }
    drop_cqs(id.c);
    return error;
  }
  // Last: on an error the identifier is as it was.
  id.c.pd = qp->pd;
  id.c.qp = qp;
  return 0;
}

}  // namespace
}  // namespace ringbolt::rdmacm

using ringbolt::rdmacm::Id;
using ringbolt::rdmacm::result;

extern "C" {

int rdma_create_qp_ex(rdma_cm_id* c, ibv_qp_init_attr_ex* wanted) try {
  return result(ringbolt::rdmacm::create_qp(Id::of(c), *wanted));
} catch (...) {
  return ringbolt::base::caught_minus_one();
}

int rdma_create_qp(rdma_cm_id* c, ibv_pd* pd, ibv_qp_init_attr* wanted) try {
  ibv_qp_init_attr_ex extended{};
  extended.qp_context = wanted->qp_context;
  extended.send_cq = wanted->send_cq;
  extended.recv_cq = wanted->recv_cq;
  extended.srq = wanted->srq;
  extended.cap = wanted->cap;
  extended.qp_type = wanted->qp_type;
  extended.sq_sig_all = wanted->sq_sig_all;
  extended.pd = pd;
  // A null pd is allowed: create_qp() puts the library's in.
  extended.comp_mask = IBV_QP_INIT_ATTR_PD;
  if (const int error = ringbolt::rdmacm::create_qp(Id::of(c), extended)) {
    return result(error);
  }
  wanted->send_cq = extended.send_cq;
  wanted->recv_cq = extended.recv_cq;
  wanted->srq = extended.srq;
  // What was granted (rdma_create_qp(3)); on an error `wanted` is as it was.
  wanted->cap = extended.cap;
  return 0;
} catch (...) {
  return ringbolt::base::caught_minus_one();
}

void rdma_destroy_qp(rdma_cm_id* c) try {
  if (c->qp != nullptr) {
    ibv_destroy_qp(std::exchange(c->qp, nullptr));
  }
  ringbolt::rdmacm::drop_cqs(*c);
} catch (...) {
  ringbolt::base::caught_nothing();
}

int rdma_create_srq(rdma_cm_id* c, ibv_pd* pd, ibv_srq_init_attr* wanted) try {
  pd = pd == nullptr ? c->pd : pd;
  if (c->srq != nullptr || pd == nullptr || c->verbs == nullptr || pd->context != c->verbs) {
    return result(EINVAL);
  }
  c->srq = ibv_create_srq(pd, wanted);
  if (c->srq == nullptr) {
    return -1;
  }
  c->pd = pd;
  return 0;
} catch (...) {
  return ringbolt::base::caught_minus_one();
}

int rdma_create_srq_ex(rdma_cm_id* c, ibv_srq_init_attr_ex* wanted) try {
  if (c->srq != nullptr || c->verbs == nullptr) {
    return result(EINVAL);
  }
  if ((wanted->comp_mask & IBV_SRQ_INIT_ATTR_PD) == 0 || wanted->pd == nullptr) {
    wanted->comp_mask |= IBV_SRQ_INIT_ATTR_PD;
    wanted->pd = c->pd;
  }
  if (wanted->pd == nullptr || wanted->pd->context != c->verbs) {
    return result(EINVAL);
  }
  c->srq = ibv_create_srq_ex(c->verbs, wanted);
  if (c->srq == nullptr) {
    return -1;
  }
  c->pd = wanted->pd;
  return 0;
} catch (...) {
  return ringbolt::base::caught_minus_one();
}

void rdma_destroy_srq(rdma_cm_id* c) try {
  if (c->srq != nullptr) {
    ibv_destroy_srq(std::exchange(c->srq, nullptr));
  }
  // With a queue pair the completion queues are still in use; rdma_destroy_qp() drops them then.
  if (c->qp == nullptr) {
    ringbolt::rdmacm::drop_cqs(*c);
  }
} catch (...) {
  ringbolt::base::caught_nothing();
}

}  // extern "C"
