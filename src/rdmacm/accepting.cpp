// The passive side: listening, accepting, rejecting; and the end of a connection.

#include <time.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <fmt/format.h>

#include "base/c_border.h"
#include "base/clock.h"
#include "rdmacm/connection_data.h"
#include "rdmacm/connection_manager.h"
#include "rdmacm/explanations.h"
#include "rdmacm/identifiers.h"
#include "rdmacm/qp_attributes.h"
#include "wire/cm_private.h"

namespace ringbolt::rdmacm {
namespace {

using Phase = Id::Phase;

// As the kernel's cma: what is out of range means this.
constexpr int kMaxBacklog = 1024;
// Three bits (InfiniBand specification, 12.6.8); as rnr_retry it means without end.
constexpr uint8_t kMaxRetry = 7;

int listen(Id& id, int backlog) RINGBOLT_REQUIRES(manager_lock) {
  ConnectionManager& manager = *id.manager;
  if (id.phase != Phase::bound || id.token == 0) {
    return wrong_phase("rdma_listen", id, "bound to an address");
  }
  if (const int error = ringbolt_management_listen(manager.devices().at(0).context, id.token)) {
    return error;
  }
  const bool is_ipv4 = id.c.route.addr.src_addr.sa_family == AF_INET;
  cm::Listener listener;
  listener.cookie = id.token;
  listener.service_id = wire::cm_service_id(static_cast<uint16_t>(id.c.ps), id.source_port());
  listener.address = address_of(&id.c.route.addr.src_addr).value_or(wire::Address{});
  listener.is_any = is_any(listener.address);
  listener.is_ipv4 = is_ipv4;
  listener.is_family_only = id.is_family_only.value_or(is_ipv4);
  // The same link-local address may be on several links: the device tells them apart.
  listener.is_on_port = is_link_local(listener.address) && id.route.has_value();
  listener.port = id.route ? id.route->device : 0;
  // Requests that no rdma_get_cm_event() has taken yet; beyond it the engine refuses (note_fetched()).
  listener.backlog = static_cast<uint32_t>(backlog >= 1 && backlog <= kMaxBacklog ? backlog : kMaxBacklog);
  // First: a request must not find an engine that listens and nobody to tell.
  manager.add_listener(id.token, id);
  try {
    manager.engine().listen(listener);
  } catch (...) {
    manager.remove_listener(id.token);
    throw;
  }
  id.phase = Phase::listening;
  return 0;
}

int accept_queue_pair(Id& id, const rdma_conn_param* param) RINGBOLT_REQUIRES(manager_lock) {
  ConnectionManager& manager = *id.manager;
  const Device& device = manager.devices().at(id.route->device);
  const auto data = private_data_of(param);
  wire::CmRep reply;
  if (data.size() > reply.private_data.size()) {
    return too_much_data("rdma_accept", data.size(), reply.private_data.size());
  }
  // Without both there is no queue pair number to answer with, which check_limits() refuses.
  if (param != nullptr || id.c.qp == nullptr) {
    if (const int error = check_limits("rdma_accept", id, device, param)) {
      return error;
    }
  }
  // Before the queue pair is moved: that can't be taken back.
  if (manager.engine().state_of(id.handle) != cm::State::req_received) {
    return base::refused(EINVAL, "rdma_accept", [&]() RINGBOLT_NOT_ANALYSED {
      return base::Explanation{
          fmt::format("the request of {} was answered already, or has timed out", text_of(id.c.route.addr.dst_addr)),
          "accept each request once, and within seconds"};
    });
  }
  std::ranges::copy(data, reply.private_data.begin());
  const bool takes_all = param == nullptr;
  // Never more than the peer wants to begin, nor than we can answer.
  reply.responder_resources = takes_all || param->responder_resources == RDMA_MAX_RESP_RES
                                  ? at_most(id.request.initiator_depth, device.max_responder_resources)
                                  : param->responder_resources;
  reply.initiator_depth = takes_all || param->initiator_depth == RDMA_MAX_INIT_DEPTH
                              ? at_most(id.request.responder_resources, device.max_initiator_depth)
                              : param->initiator_depth;
  reply.local_qpn = id.c.qp != nullptr ? id.c.qp->qp_num : (takes_all ? 0 : param->qp_num);
  reply.has_srq = id.c.qp != nullptr ? id.c.qp->srq != nullptr : (!takes_all && param->srq != 0);
  reply.has_flow_control = !takes_all && param->flow_control != 0;
  reply.rnr_retry_count = std::min(kMaxRetry, takes_all ? kMaxRetry : param->rnr_retry_count);
  reply.starting_psn = id.reply.starting_psn;  // rdma_init_qp_attr may have told it already
  reply.local_guid = device.facts.guid;
  // Before prepare_queue_pair(), which reads it: qp_step() takes depths and PSN from there.
  id.reply = reply;
  id.has_reply = true;
  if (id.c.qp != nullptr) {
    // Ready before the reply leaves: the peer's first message may come before its "ready to use".
    if (const int error = prepare_queue_pair(id)) {
      static_cast<void>(manager.engine().reject(manager.now(), id.handle, wire::kRejConsumer, {}));
      return error;
    }
  }
  return manager.engine().accept(manager.now(), id.handle, reply);
}

int accept_datagrams(Id& id, const rdma_conn_param* param) RINGBOLT_REQUIRES(manager_lock) {
  const auto data = private_data_of(param);
  wire::CmSidrRep reply;
  if (data.size() > reply.private_data.size()) {
    return too_much_data("rdma_accept", data.size(), reply.private_data.size());
  }
  if (id.c.qp == nullptr && param == nullptr) {
    return base::refused(EINVAL, "rdma_accept", [] {
      return base::Explanation{"conn_param is NULL, and the identifier has 0 queue pairs of its own",
                               "make one with rdma_create_qp before, or give conn_param with its qp_num"};
    });
  }
  std::ranges::copy(data, reply.private_data.begin());
  reply.qpn = id.c.qp != nullptr ? id.c.qp->qp_num : param->qp_num;
  // The one Q_Key of RDMA_PS_UDP (rdma_cma.h): both sides use it without asking.
  reply.qkey = RDMA_UDP_QKEY;
  return id.manager->engine().answer(id.manager->now(), id.handle, reply);
}

int accept(Id& id, const rdma_conn_param* param) RINGBOLT_REQUIRES(manager_lock) {
  if (!id.is_passive || id.handle == 0) {
    return wrong_phase("rdma_accept", id, "that of a CONNECT_REQUEST, event->id");
  }
  note_call(id);
  const int error = id.is_datagram() ? accept_datagrams(id, param) : accept_queue_pair(id, param);
  // Also after an error: the engine may have queued a refusal.
  id.manager->settle();
  return error;
}

int reject(Id& id, uint16_t reason, std::span<const std::byte> data) RINGBOLT_REQUIRES(manager_lock) {
  if (id.handle == 0) {
    return wrong_phase("rdma_reject", id, "that of a CONNECT_REQUEST, event->id");
  }
  ConnectionManager& manager = *id.manager;
  int error = 0;
  if (id.is_datagram()) {
    wire::CmSidrRep refusal;
    if (data.size() > refusal.private_data.size()) {
      return too_much_data("rdma_reject", data.size(), refusal.private_data.size());
    }
    refusal.status = wire::kSidrRejected;
    std::ranges::copy(data, refusal.private_data.begin());
    error = manager.engine().answer(manager.now(), id.handle, refusal);
  } else {
    if (data.size() > wire::CmRej::kPrivateBytes) {
      return too_much_data("rdma_reject", data.size(), wire::CmRej::kPrivateBytes);
    }
    error = manager.engine().reject(manager.now(), id.handle, reason, data);
  }
  // drop_rejected() destroys it with its channel if the program does not.
  id.is_rejected = error == 0 && id.is_passive;
  manager.settle();
  return error;
}

int reject_for(rdma_cm_id* c, const void* data, uint8_t length, uint16_t reason) {
  Id& id = Id::of(c);
  if (!is_ours(id)) {
    return -1;
  }
  const base::LockGuard guard(id.manager->mutex());
  return result(reject(id, reason, {static_cast<const std::byte*>(data), data == nullptr ? size_t{0} : length}));
}

/// What was posted before the end is carried out: gives it a moment to leave. And what has come has come: its sender
/// must not find it unfinished because this program stopped polling.
void finish_transfers(const Id& id) {
  // In the program's thread, without the lock: other connections go on. 20 ms: several round trips of a cable, and
  // short enough for a program that ends hundreds of connections. Pauses of 50 us.
  constexpr uint64_t kPatienceNs = 20'000'000;
  constexpr timespec kPause{0, 50'000};
  if (id.c.qp == nullptr || id.c.verbs == nullptr) {
    return;
  }
  ringbolt_management_take_arrived(id.c.verbs, id.c.qp->qp_num);
  const uint64_t deadline = base::now_ns() + kPatienceNs;
  while (ringbolt_management_has_queued_sends(id.c.verbs, id.c.qp->qp_num) != 0 && base::now_ns() < deadline) {
    nanosleep(&kPause, nullptr);
  }
}

}  // namespace
}  // namespace ringbolt::rdmacm

using ringbolt::rdmacm::ConnectionManager;
using ringbolt::rdmacm::Id;
using ringbolt::rdmacm::result;
namespace base = ringbolt::base;
namespace cm = ringbolt::cm;
namespace wire = ringbolt::wire;

extern "C" {

int rdma_listen(rdma_cm_id* c, int backlog) try {
  Id& id = Id::of(c);
  if (!ringbolt::rdmacm::is_ours(id)) {
    return -1;
  }
  const base::LockGuard guard(id.manager->mutex());
  if (const int error = ringbolt::rdmacm::prepare_to_listen(id)) {
    return result(error);
  }
  return result(ringbolt::rdmacm::listen(id, backlog));
} catch (...) {
  return ringbolt::base::caught_minus_one();
}

int rdma_accept(rdma_cm_id* c, rdma_conn_param* param) try {
  Id& id = Id::of(c);
  {
    if (!ringbolt::rdmacm::is_ours(id)) {
      return -1;
    }
    const base::LockGuard guard(id.manager->mutex());
    if (const int error = ringbolt::rdmacm::accept(id, param)) {
      return result(error);
    }
  }
  return id.is_datagram() ? 0 : ringbolt::rdmacm::await_event(id);
} catch (...) {
  return ringbolt::base::caught_minus_one();
}

int rdma_reject(rdma_cm_id* c, const void* private_data, uint8_t length) try {
  return ringbolt::rdmacm::reject_for(c, private_data, length, wire::kRejConsumer);
} catch (...) {
  return ringbolt::base::caught_minus_one();
}

int rdma_reject_ece(rdma_cm_id* c, const void* private_data, uint8_t length) try {
  return ringbolt::rdmacm::reject_for(c, private_data, length, wire::kRejVendorOption);
} catch (...) {
  return ringbolt::base::caught_minus_one();
}

int rdma_notify(rdma_cm_id* c, ibv_event_type event) try {
  Id& id = Id::of(c);
  if (!ringbolt::rdmacm::is_ours(id)) {
    return -1;
  }
  const base::LockGuard guard(id.manager->mutex());
  // Data came before the peer's RTU: the engine then takes the connection for established.
  if (event != IBV_EVENT_COMM_EST || id.handle == 0) {
    return result(EINVAL);
  }
  const int error = id.manager->engine().note_data(id.manager->now(), id.handle);
  id.manager->settle();
  return result(error);
} catch (...) {
  return ringbolt::base::caught_minus_one();
}

int rdma_disconnect(rdma_cm_id* c) try {
  Id& id = Id::of(c);
  if (id.is_datagram() || id.manager->is_dead()) {
    return result(!id.is_datagram() ? ENODEV : base::refused(EINVAL, "rdma_disconnect", [] {
      return base::Explanation{"the identifier is one of datagrams (RDMA_PS_UDP): it has 0 connections",
                               "leave the call out for datagrams"};
    }));
  }
  ringbolt::rdmacm::finish_transfers(id);
  bool is_awaited = false;
  {
    const base::LockGuard guard(id.manager->mutex());
    if (id.handle == 0) {
      return result(ringbolt::rdmacm::wrong_phase("rdma_disconnect", id, "connected"));
    }
    id.manager->catch_up();
    // As rdma_disconnect(3) says: the queue pair goes to the error state, and what is posted is flushed.
    if (id.c.qp != nullptr) {
      flush_queue_pair(id);
    }
    // Under one hold of the lock with disconnect(): nothing comes in between.
    const cm::State before = id.manager->engine().state_of(id.handle);
    const int error = id.manager->engine().disconnect(id.manager->now(), id.handle);
    id.manager->settle();
    // An idle one has ended otherwise, of which its program has heard: rdma_disconnect() is no error then, as in
    // rdma-core.
    if (error != 0 && before != cm::State::idle) {
      return result(error);
    }
    // A program that has taken DISCONNECTED already gets no second one.
    is_awaited = error == 0 && !id.has_seen_end;
  }
  return is_awaited ? ringbolt::rdmacm::await_event(id) : 0;
} catch (...) {
  return ringbolt::base::caught_minus_one();
}

}  // extern "C"
