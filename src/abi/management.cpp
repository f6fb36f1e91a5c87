// What our librdmacm.so.1 asks of the device: see abi/management.h.

#include "abi/management.h"

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "abi/objects.h"
#include "base/c_border.h"
#include "base/error.h"
#include "device/management.h"
#include "device/queue_pair.h"

namespace ringbolt::abi {
namespace {

device::Management& management_of(ibv_context* context) { return Context::of(context).impl->process().management(); }

device::Service service_of(const ringbolt_service& service) {
  device::Service result;
  result.token = service.token;
  result.service_id = service.service_id;
  std::memcpy(result.address.data(), service.address, result.address.size());
  result.is_any = service.is_any != 0;
  result.is_ipv4 = service.is_ipv4 != 0;
  result.is_family_only = service.is_family_only != 0;
  result.is_reusable = service.is_reusable != 0;
  return result;
}

/// Good as long as the context: the management is its process'.
device::ServiceBook::IsAlive liveness(ibv_context* context) {
  return [&management = management_of(context)](uint32_t slot) { return management.is_alive(slot); };
}

/// Calls `use` with the queue pairs that carry the data of a connection whose request named `qp_num`.
/// By number, as the program may have destroyed it: find() holds it while `use` runs.
template <class Use>
void each_carrier(ibv_context* context, uint32_t qp_num, Use use) {
  device::Process& process = Context::of(context).impl->process();
  const auto named = process.find(qp_num);
  if (named == nullptr || named->type() != IBV_QPT_UD) {
    if (named != nullptr) {
      use(*named);
    }
    return;
  }
  // A number of datagrams stands for others: see ringbolt_management_has_unread().
  process.each_queue_pair([&](device::QueuePair& qp) {
    if (qp.type() != IBV_QPT_UD) {
      use(qp);
    }
  });
}

}  // namespace
}  // namespace ringbolt::abi

using ringbolt::abi::Context;
using ringbolt::abi::each_carrier;
using ringbolt::abi::management_of;
namespace device = ringbolt::device;

extern "C" {

int ringbolt_management_open(ibv_context* context) try {
  management_of(context).open();
  return 0;
} catch (const ringbolt::base::Error& error) {
  std::fprintf(stderr, "ringbolt: %s\n", error.what());
  return error.errno_value();
} catch (...) {
  return ringbolt::base::caught_errno();
}

int ringbolt_management_descriptor(ibv_context* context) try {
  return management_of(context).descriptor();
} catch (...) {
  return ringbolt::base::caught_as(-1);
}

int ringbolt_management_receive(ibv_context* context, ringbolt_mad* notice) try {
  device::Notice from;
  if (!management_of(context).receive(from)) {
    return 0;
  }
  std::memset(notice, 0, sizeof *notice);
  notice->kind = from.kind == device::Notice::Kind::mad ? RINGBOLT_NOTICE_MAD : RINGBOLT_NOTICE_PEER_GONE;
  notice->peer_slot = from.peer_slot;
  std::memcpy(notice->source_gid, from.mad.source.data(), sizeof notice->source_gid);
  std::memcpy(notice->destination_gid, from.mad.destination.data(), sizeof notice->destination_gid);
  notice->traffic_class = from.mad.traffic_class;
  std::memcpy(notice->bytes, from.mad.bytes.data(), sizeof notice->bytes);
  return 1;
} catch (...) {
  return ringbolt::base::caught_as(0);
}

int ringbolt_management_send(ibv_context* context, const ringbolt_mad* mad) try {
  device::Mad to;
  std::memcpy(to.source.data(), mad->source_gid, to.source.size());
  std::memcpy(to.destination.data(), mad->destination_gid, to.destination.size());
  to.flow_label = mad->flow_label;
  to.traffic_class = mad->traffic_class;
  to.hop_limit = mad->hop_limit == 0 ? to.hop_limit : mad->hop_limit;
  std::memcpy(to.bytes.data(), mad->bytes, to.bytes.size());
  return management_of(context).send(Context::of(context).impl->port(), to);
} catch (...) {
  return ringbolt::base::caught_errno();
}

uint32_t ringbolt_management_unsent(ibv_context* context) try { return management_of(context).unsent(); } catch (...) {
  return ringbolt::base::caught_as(0U);
}

uint32_t ringbolt_management_slot(ibv_context* context) try { return management_of(context).slot(); } catch (...) {
  return ringbolt::base::caught_as<uint32_t>(RINGBOLT_NO_SLOT);
}

void ringbolt_management_remember(ibv_context* context, const ringbolt_connection* connection) try {
  device::RecordEntry entry{.local_id = connection->local_id,
                            .remote_id = connection->remote_id,
                            .remote_qpn = connection->remote_qpn,
                            .flow_label = connection->flow_label,
                            .traffic_class = connection->traffic_class,
                            .hop_limit = connection->hop_limit};
  std::memcpy(entry.local.data(), connection->local_gid, entry.local.size());
  std::memcpy(entry.remote.data(), connection->remote_gid, entry.remote.size());
  management_of(context).remember(Context::of(context).impl->port(), entry);
} catch (...) {
  ringbolt::base::caught_nothing();
}

void ringbolt_management_forget(ibv_context* context, uint32_t local_id) try {
  management_of(context).forget(local_id);
} catch (...) {
  ringbolt::base::caught_nothing();
}

int ringbolt_management_bind(ibv_context* context, const ringbolt_service* service) try {
  return management_of(context).services().bind(ringbolt::abi::service_of(*service), ringbolt::abi::liveness(context));
} catch (...) {
  return ringbolt::base::caught_errno();
}

int ringbolt_management_listen(ibv_context* context, uint64_t token) try {
  return management_of(context).services().listen(token, ringbolt::abi::liveness(context));
} catch (...) {
  return ringbolt::base::caught_errno();
}

void ringbolt_management_unbind(ibv_context* context, uint64_t token) try {
  management_of(context).services().unbind(token);
} catch (...) {
  ringbolt::base::caught_nothing();
}

int ringbolt_management_port(ibv_context* context, ringbolt_port_facts* facts) try {
  const device::Port& port = Context::of(context).impl->port();
  *facts = {};
  facts->guid = port.guid;
  facts->netdev_index = port.netdev_index;
  facts->is_up = port.is_up() ? 1 : 0;
  facts->takes_any_local_address = !port.is_on_network() && !port.fabric->control.is_open() ? 1 : 0;
  facts->mtu = static_cast<uint8_t>(port.mtu);
  facts->is_on_interface = port.is_on_network() && port.netdev_index < device::kFirstStreamInterface ? 1 : 0;
  facts->gid_generation = port.live_gids->generation();
  return 0;
} catch (...) {
  return ringbolt::base::caught_errno();
}

int ringbolt_management_reaches(ibv_context* context, const ibv_gid* gid) try {
  return Context::of(context).impl->port().reaches(*gid) ? 1 : 0;
} catch (...) {
  return ringbolt::base::caught_as(0);
}

int ringbolt_management_has_unread(ibv_context* context, uint32_t qp_num) try {
  bool has_unread = false;
  each_carrier(context, qp_num, [&](device::QueuePair& qp) { has_unread = has_unread || qp.has_unread(); });
  return has_unread ? 1 : 0;
} catch (...) {
  return ringbolt::base::caught_as(0);
}

int ringbolt_management_awaits_answers(ibv_context* context, uint32_t qp_num) try {
  const auto qp = Context::of(context).impl->process().find(qp_num);
  return qp != nullptr && qp->has_unfinished_sends() ? 1 : 0;
} catch (...) {
  return ringbolt::base::caught_as(0);
}

void ringbolt_management_take_arrived(ibv_context* context, uint32_t qp_num) try {
  each_carrier(context, qp_num, [](device::QueuePair& qp) { qp.take_arrived(); });
} catch (...) {
  ringbolt::base::caught_nothing();
}

int ringbolt_management_has_queued_sends(ibv_context* context, uint32_t qp_num) try {
  const auto qp = Context::of(context).impl->process().find(qp_num);
  return qp != nullptr && qp->has_queued_sends() ? 1 : 0;
} catch (...) {
  return ringbolt::base::caught_as(0);
}

}  // extern "C"
