// The active side: connecting, and looking services up.

#include <netinet/in.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <random>
#include <utility>

#include <fmt/format.h>

#include "base/c_border.h"
#include "cm/timing.h"
#include "rdmacm/connection_data.h"
#include "rdmacm/connection_manager.h"
#include "rdmacm/explanations.h"
#include "rdmacm/identifiers.h"
#include "wire/cm_private.h"

namespace ringbolt::rdmacm {
namespace {

using Phase = Id::Phase;

// The permissive LID: RoCE has none (annex A16).
constexpr uint16_t kNoLid = 0xffff;
constexpr uint8_t kMaxRetry = 7;

/// The header that tells the peer the addresses, then what the program says.
template <size_t kBytes>
int fill_private_data(const Id& id, const rdma_conn_param* param, std::array<std::byte, kBytes>& out) {
  const auto source = address_of(&id.c.route.addr.src_addr);
  const auto target = address_of(&id.c.route.addr.dst_addr);
  if (!source || !target) {
    return EINVAL;
  }
  // InfiniBand specification, annex A11: the IP addresses of both ends, as REQ itself has GIDs only.
  const wire::CmIpHeader header{id.source_port(), *source, *target};
  wire::emit(header, std::span(out).template first<wire::kCmIpHeaderBytes>());
  // 56 bytes of 92 are left for connections, as rdma_connect(3) says.
  const auto given = private_data_of(param);
  if (id.connect_data.size() + given.size() > kBytes - wire::kCmIpHeaderBytes) {
    return too_much_data("rdma_connect", id.connect_data.size() + given.size(), kBytes - wire::kCmIpHeaderBytes);
  }
  // Of rdma_create_ep() first, as rdma-core joins them.
  auto at = std::copy(id.connect_data.begin(), id.connect_data.end(), out.begin() + wire::kCmIpHeaderBytes);
  std::copy(given.begin(), given.end(), at);
  return 0;
}

cm::Path path_of(const Id& id) RINGBOLT_REQUIRES(manager_lock) {
  cm::Path path;
  path.port = id.route->device;
  path.local = id.route->local_gid;
  path.remote = id.route->remote_gid;
  path.flow_label = ntohl(id.path.flow_label);
  path.traffic_class = id.path.traffic_class;
  path.hop_limit = id.path.hop_limit;
  return path;
}

// Port space and destination port, as the peer's rdma_listen() has made it.
uint64_t service_of(const Id& id) { return wire::cm_service_id(static_cast<uint16_t>(id.c.ps), id.destination_port()); }

wire::CmPath wire_path(const Id& id) RINGBOLT_REQUIRES(manager_lock) {
  wire::CmPath path;
  path.local_lid = path.remote_lid = kNoLid;
  path.local_gid = id.route->local_gid;
  path.remote_gid = id.route->remote_gid;
  path.flow_label = ntohl(id.path.flow_label);
  path.traffic_class = id.path.traffic_class;
  path.hop_limit = id.path.hop_limit;
  // As an exponent n: 4.096 us times 2^n (Local ACK Timeout of the InfiniBand specification).
  path.ack_timeout = cm::ack_timeout(cm::kAckDelay, id.path.packet_life_time);
  return path;
}

int connect_queue_pair(Id& id, const rdma_conn_param* param) RINGBOLT_REQUIRES(manager_lock) {
  ConnectionManager& manager = *id.manager;
  const Device& device = manager.devices().at(id.route->device);
  wire::CmReq request;
  if (const int error = check_limits("rdma_connect", id, device, param)) {
    return error;
  }
  if (const int error = fill_private_data(id, param, request.private_data)) {
    return error;
  }
  request.service_id = service_of(id);
  request.local_guid = device.facts.guid;
  request.local_qpn = id.c.qp != nullptr ? id.c.qp->qp_num : (param == nullptr ? 0 : param->qp_num);
  request.has_srq = id.c.qp != nullptr ? id.c.qp->srq != nullptr : (param != nullptr && param->srq != 0);
  // What is large is cut to the device's limit, in silence, as the kernel does for RDMA_MAX_RESP_RES.
  request.responder_resources =
      at_most(param == nullptr ? RDMA_MAX_RESP_RES : int{param->responder_resources}, device.max_responder_resources);
  request.initiator_depth =
      at_most(param == nullptr ? RDMA_MAX_INIT_DEPTH : int{param->initiator_depth}, device.max_initiator_depth);
  // The other side must make a queue pair of the same type, or its program is refused.
  request.transport = id.c.qp_type == IBV_QPT_UC ? wire::CmTransport::uc : wire::CmTransport::rc;
  request.has_flow_control = param != nullptr && param->flow_control != 0;
  request.starting_psn = random_psn();
  request.retry_count = std::min(kMaxRetry, param == nullptr ? kMaxRetry : param->retry_count);
  request.rnr_retry_count = std::min(kMaxRetry, param == nullptr ? kMaxRetry : param->rnr_retry_count);
  request.path_mtu = id.path.mtu;
  request.primary = wire_path(id);
  // Kept: qp_step() makes the attributes of RTR and RTS of it when the reply has come.
  id.request = request;
  id.handle = manager.engine().connect(manager.now(), path_of(id), request);
  return 0;
}

int connect_datagrams(Id& id, const rdma_conn_param* param) RINGBOLT_REQUIRES(manager_lock) {
  ConnectionManager& manager = *id.manager;
  wire::CmSidrReq question;
  if (const int error = fill_private_data(id, param, question.private_data)) {
    return error;
  }
  question.service_id = service_of(id);
  id.question = question;
  id.handle = manager.engine().look_up(manager.now(), path_of(id), question);
  return 0;
}

int connect(Id& id, const rdma_conn_param* param) RINGBOLT_REQUIRES(manager_lock) {
  if (id.phase != Phase::route_resolved || !id.route) {
    return wrong_phase("rdma_connect", id, "resolved to a route");
  }
  note_call(id);
  const int error = id.is_datagram() ? connect_datagrams(id, param) : connect_queue_pair(id, param);
  if (error == 0) {
    try {
      id.manager->add_connection(id.handle, id);
    } catch (...) {
      // The request has not left yet: settle() would send it.
      id.manager->engine().destroy(id.manager->now(), std::exchange(id.handle, 0));
      throw;
    }
    id.phase = Phase::connecting;
    id.manager->settle();
  }
  return error;
}

}  // namespace

std::span<const std::byte> private_data_of(const rdma_conn_param* param) {
  if (param == nullptr || param->private_data == nullptr) {
    return {};
  }
  return {static_cast<const std::byte*>(param->private_data), param->private_data_len};
}

void note_call(Id& id) {
  if (base::is_explaining()) {
    id.asked_at = base::call_site();
  }
}

uint8_t at_most(int wanted, uint8_t limit) { return static_cast<uint8_t>(std::min<int>(wanted, limit)); }

int check_limits(const char* call, const Id& id, const Device& device, const rdma_conn_param* param) {
  if (param == nullptr) {
    return id.c.ps != RDMA_PS_TCP || id.c.qp != nullptr ? 0 : base::refused(EINVAL, call, [] {
      return base::Explanation{"conn_param is NULL, and the identifier has 0 queue pairs of its own",
                               "make one with rdma_create_qp before, or give conn_param with its qp_num"};
    });
  }
  const auto exceeds = [](uint8_t wanted, int as_much_as_possible, uint8_t limit) {
    return wanted != as_much_as_possible && wanted > limit;
  };
  const bool is_too_much = exceeds(param->responder_resources, RDMA_MAX_RESP_RES, device.max_responder_resources) ||
                           exceeds(param->initiator_depth, RDMA_MAX_INIT_DEPTH, device.max_initiator_depth);
  return id.c.ps != RDMA_PS_TCP || !is_too_much ? 0 : base::refused(EINVAL, call, [&] {
    return base::Explanation{fmt::format("responder_resources {} and initiator_depth {}; the device has {} and {}",
                                         param->responder_resources, param->initiator_depth,
                                         device.max_responder_resources, device.max_initiator_depth),
                             "take what ibv_query_device says: max_qp_rd_atom and max_qp_init_rd_atom"};
  });
}

uint32_t random_psn() {
  // A PSN needs no secrecy, only that packets of an earlier connection do not fit: one seed per thread will do.
  static thread_local std::mt19937 random{std::random_device{}()};
  return static_cast<uint32_t>(random()) & 0xffffffU;
}

}  // namespace ringbolt::rdmacm

using ringbolt::rdmacm::ConnectionManager;
using ringbolt::rdmacm::Id;
using ringbolt::rdmacm::result;
namespace base = ringbolt::base;

extern "C" {

int rdma_connect(rdma_cm_id* c, rdma_conn_param* param) try {
  Id& id = Id::of(c);
  {
    if (!ringbolt::rdmacm::is_ours(id)) {
      return -1;
    }
    const base::LockGuard guard(id.manager->mutex());
    if (const int error = ringbolt::rdmacm::connect(id, param)) {
      return result(error);
    }
  }
  return ringbolt::rdmacm::await_event(id);
} catch (...) {
  return ringbolt::base::caught_minus_one();
}

int rdma_establish(rdma_cm_id* c) try {
  Id& id = Id::of(c);
  if (!ringbolt::rdmacm::is_ours(id)) {
    return -1;
  }
  const base::LockGuard guard(id.manager->mutex());
  // With a queue pair on the identifier taking the event has done it already. rdma_establish(3) is for programs that
  // move their queue pair themselves.
  if (c->qp != nullptr || id.handle == 0) {
    return result(base::refused(EINVAL, "rdma_establish", [&]() RINGBOLT_NOT_ANALYSED {
      return base::Explanation{
          fmt::format("the identifier has {} queue pairs of its own and {} connections", c->qp != nullptr ? 1 : 0,
                      id.handle == 0 ? 0 : 1),
          "call it after CONNECT_RESPONSE alone, and not where rdma_create_qp made the queue pair"};
    }));
  }
  const int error = id.manager->engine().ready(id.manager->now(), id.handle);
  id.manager->settle();
  return result(error);
} catch (...) {
  return ringbolt::base::caught_minus_one();
}

}  // extern "C"
