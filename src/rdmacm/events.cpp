#include "rdmacm/events.h"

#include <netinet/in.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>

#include "rdmacm/connection_data.h"
#include "rdmacm/connection_manager.h"
#include "rdmacm/explanations.h"
#include "rdmacm/identifiers.h"
#include "rdmacm/qp_attributes.h"
#include "wire/cm_private.h"

namespace ringbolt::rdmacm {
namespace {

using Kind = cm::Event::Kind;

// As much as the message can hold, padded with zeros: its length on the wire does not say how much was given
// (rdma_get_cm_event(3)).
void keep_private_data(QueuedEvent& event, std::span<const std::byte> data) {
  // 256 bytes hold any message's: a MAD has no more.
  std::copy(data.begin(), data.end(), event.private_data.begin());
  // conn and ud begin alike: pointer and length. Into the event itself: as good as it, so until rdma_ack_cm_event().
  event.c.param.conn.private_data = event.private_data.data();
  event.c.param.conn.private_data_len = static_cast<uint8_t>(data.size());
}

// Also from here on: what the peer begins, this side answers, and the other way around.
void fill_from_request(rdma_conn_param& param, const wire::CmReq& request) {
  param.responder_resources = request.initiator_depth;  // what they will start, we must be able to answer
  param.initiator_depth = request.responder_resources;
  param.flow_control = request.has_flow_control ? 1 : 0;
  param.retry_count = request.retry_count;
  param.rnr_retry_count = request.rnr_retry_count;
  param.srq = request.has_srq ? 1 : 0;
  param.qp_num = request.local_qpn;
}

void fill_from_reply(rdma_conn_param& param, const wire::CmRep& reply) {
  param.responder_resources = reply.initiator_depth;
  param.initiator_depth = reply.responder_resources;
  param.flow_control = reply.has_flow_control ? 1 : 0;
  param.rnr_retry_count = reply.rnr_retry_count;
  param.srq = reply.has_srq ? 1 : 0;
  param.qp_num = reply.local_qpn;
}

rdma_cm_event_type type_of(const cm::Event& event) {
  switch (event.kind) {
    case Kind::response:
      return RDMA_CM_EVENT_CONNECT_RESPONSE;
    case Kind::established:
      return RDMA_CM_EVENT_ESTABLISHED;
    case Kind::rejected:
      return RDMA_CM_EVENT_REJECTED;
    case Kind::disconnected:
      return RDMA_CM_EVENT_DISCONNECTED;
    case Kind::timewait_exit:
      return RDMA_CM_EVENT_TIMEWAIT_EXIT;
    case Kind::lookup_answer:
      // The names are librdmacm's: datagrams are "established" when their peer is known.
      return event.status == 0 ? RDMA_CM_EVENT_ESTABLISHED : RDMA_CM_EVENT_UNREACHABLE;
    default:
      return RDMA_CM_EVENT_UNREACHABLE;
  }
}

std::unique_ptr<QueuedEvent> new_event(Id& id, rdma_cm_event_type type, int status) {
  // Throws std::bad_alloc; the caller keeps what it was made from, and tries again.
  auto event = std::make_unique<QueuedEvent>();
  event->c.id = &id.c;
  event->c.event = type;
  event->c.status = status;
  // Who can't be destroyed before this is acknowledged.
  event->counts_for = &id;
  return event;
}

/// The answer to a lookup: all that is needed to send datagrams there.
void fill_datagram(Id& id, QueuedEvent& event) RINGBOLT_REQUIRES(manager_lock) {
  rdma_ud_param& param = event.c.param.ud;
  param.qp_num = id.answer.qpn;
  param.qkey = id.answer.qkey;
  param.ah_attr = address_vector(id);
}

bool is_end(const cm::Event& event) { return event.kind == Kind::rejected || event.kind == Kind::disconnected; }

/// CONNECT_RESPONSE of an identifier with a queue pair: it becomes ready, and only now is the peer told so. Told
/// earlier, its first message could reach the program before this event does.
void complete_connection(ConnectionManager& manager, Id& id, QueuedEvent& event) RINGBOLT_REQUIRES(manager_lock) {
  int error = prepare_queue_pair(id);
  if (error == 0) {
    error = manager.engine().ready(manager.now(), id.handle);
  } else {
    // The peer's queue pair waits for nothing then.
    static_cast<void>(manager.engine().reject(manager.now(), id.handle, wire::kRejConsumer, {}));
  }
  manager.settle();
  event.c.event = error == 0 ? RDMA_CM_EVENT_ESTABLISHED : RDMA_CM_EVENT_CONNECT_ERROR;
  event.c.status = -error;
  if (error != 0) {
    explain_event(id, event.c);
    // Also when the peer took its REP back before the program looked. One event says it; rdma-core swallows the rest.
    id.has_failed = id.has_seen_end = true;
    // The program finds its receives flushed, as after a failed connection on a card.
    flush_queue_pair(id);
    manager.drop_held(id);
    // Destroyed at the end of the scope.
    const auto swallowed =
        id.channel().take_if([&](const QueuedEvent& one) { return one.c.id == &id.c && is_end(one.source); });
  }
}

void set_addresses(Id& id, const cm::Event& event, uint64_t service_id, std::span<const std::byte> private_data)
    RINGBOLT_REQUIRES(manager_lock) {
  // kCmIpHeaderBytes at least: each message's private data is longer.
  const auto header = wire::parse_cm_ip_header(private_data.first<wire::kCmIpHeaderBytes>());
  const uint32_t scope = id.manager->devices().at(event.path.port).facts.netdev_index;
  // judge() has refused requests without one, where there has to be one.
  if (header) {
    write_address(header->destination, wire::cm_service_port(service_id), scope, id.c.route.addr.src_storage);
    write_address(header->source, header->source_port, scope, id.c.route.addr.dst_storage);
  }
}

void take_request(Id& id, QueuedEvent& queued, const wire::CmReq& request) RINGBOLT_REQUIRES(manager_lock) {
  id.request = request;
  fill_from_request(queued.c.param.conn, request);
  keep_private_data(queued, std::span(request.private_data).subspan(wire::kCmIpHeaderBytes));
}

/// What rdma_accept will say unless told otherwise: a program with a queue pair of its own asks rdma_init_qp_attr for
/// it before that, and the peer will count from this number.
void promise_reply(Id& id, const Device& device, const wire::CmReq& request) RINGBOLT_REQUIRES(manager_lock) {
  id.reply.starting_psn = random_psn();
  id.reply.responder_resources = at_most(request.initiator_depth, device.max_responder_resources);
  id.reply.initiator_depth = at_most(request.responder_resources, device.max_initiator_depth);
}

void take_lookup(Id& id, QueuedEvent& queued, const wire::CmSidrReq& question) RINGBOLT_REQUIRES(manager_lock) {
  id.question = question;
  keep_private_data(queued, std::span(question.private_data).subspan(wire::kCmIpHeaderBytes));
}

}  // namespace

std::unique_ptr<QueuedEvent> make_local_event(Id& id, rdma_cm_event_type type, int status) {
  return new_event(id, type, status);
}

bool is_swallowed(const Id& id, const cm::Event& event) { return id.has_failed && is_end(event); }

std::unique_ptr<QueuedEvent> make_event(Id& id, const cm::Event& event) {
  auto queued = new_event(id, type_of(event), event.status);
  queued->source = event;
  if (const auto* reply = std::get_if<wire::CmRep>(&event.message); reply != nullptr && event.kind == Kind::response) {
    id.reply = *reply;
    id.has_reply = true;
    fill_from_reply(queued->c.param.conn, *reply);
    keep_private_data(*queued, reply->private_data);
  } else if (const auto* refusal = std::get_if<wire::CmRej>(&event.message); event.kind == Kind::rejected) {
    keep_private_data(*queued, refusal->private_data);
    id.phase = Id::Phase::ended;
  } else if (const auto* answer = std::get_if<wire::CmSidrRep>(&event.message); event.kind == Kind::lookup_answer) {
    id.answer = *answer;
    keep_private_data(*queued, answer->private_data);
    if (event.status == 0) {
      fill_datagram(id, *queued);
    }
  }
  if (event.kind == Kind::unreachable) {
    id.phase = Id::Phase::ended;
  }
  return queued;
}

// On an error nothing is left: neither an identifier nor a connection of it.
std::unique_ptr<QueuedEvent> make_request(ConnectionManager& manager, Id& listener, const cm::Event& event) {
  auto queued = new_event(listener, RDMA_CM_EVENT_CONNECT_REQUEST, 0);
  // With the listener's context and channel, as rdma_create_id(3) says of requests.
  Id* id = new_id(manager, &listener.channel(), listener.c.context, listener.c.ps, listener.c.qp_type);
  if (id == nullptr) {
    throw std::bad_alloc();
  }
  queued->c.id = &id->c;
  queued->c.listen_id = &listener.c;
  try {
    manager.add_connection(event.handle, *id);
  } catch (...) {
    delete_id(id);
    throw;
  }
  queued->source = event;
  id->is_passive = true;
  id->phase = Id::Phase::connecting;
  id->handle = event.handle;
  const Device& device = manager.devices().at(event.path.port);
  const uint8_t gid_index = device.index_of(event.path.local).value_or(0);
  id->route = Route{event.path.port, gid_index, event.path.local, event.path.remote, event.path.local};
  if (const auto* request = std::get_if<wire::CmReq>(&event.message)) {
    take_request(*id, *queued, *request);
    promise_reply(*id, device, *request);
    set_addresses(*id, event, request->service_id, request->private_data);
    fill_path(*id);
    id->c.route.path_rec = &id->path;
    id->c.route.num_paths = 1;
  } else if (const auto* question = std::get_if<wire::CmSidrReq>(&event.message)) {
    take_lookup(*id, *queued, *question);
    set_addresses(*id, event, question->service_id, question->private_data);
  }
  show_device(*id);
  return queued;
}

// In the program's thread, with the lock, as it takes the event: only now may what it reads in the C structures
// change.
void on_fetch(ConnectionManager& manager, QueuedEvent& event) {
  Id& id = Id::of(event.c.id);
  if (event.c.status != 0) {
    explain_event(id, event.c);
  }
  switch (event.c.event) {
    case RDMA_CM_EVENT_ADDR_RESOLVED:
      show_device(id);
      break;
    case RDMA_CM_EVENT_ROUTE_RESOLVED:
      id.c.route.path_rec = &id.path;
      id.c.route.num_paths = 1;
      break;
    case RDMA_CM_EVENT_CONNECT_REQUEST:
      // There is room in the backlog again.
      manager.engine().note_fetched(id.handle);
      break;
    case RDMA_CM_EVENT_DISCONNECTED:
      id.has_seen_end = true;
      break;
    case RDMA_CM_EVENT_REJECTED:
      id.has_seen_end = true;
      if (id.c.qp != nullptr) {
        flush_queue_pair(id);  // also of a connection that was up: the peer's REP was answered, and it had gone
      }
      break;
    case RDMA_CM_EVENT_CONNECT_RESPONSE:
      if (id.c.qp != nullptr) {
        complete_connection(manager, id, event);
      }
      break;
    default:
      break;
  }
}

}  // namespace ringbolt::rdmacm
