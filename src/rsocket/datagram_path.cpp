#include "rsocket/datagram_path.h"

#include <arpa/inet.h>
#include <poll.h>

#include "rsocket/cm_link.h"
#include "rsocket/sleeper.h"

namespace ringbolt::rsocket {
namespace {

constexpr int kPathMs = 2000;

/// Waits for the event that says a step is done. 0, or an errno.
int await(const CmLink& link, rdma_cm_event_type wanted, const Deadline& deadline) {
  for (;;) {
    if (const CmEvent event = link.next()) {
      return event->event == wanted ? 0 : error_of(*event);
    }
    if (deadline.is_over()) {
      return ETIMEDOUT;
    }
    pollfd wait{link.fd(), POLLIN, 0};
    ::poll(&wait, 1, deadline.sleep_ms());
  }
}

uint8_t gid_index(ibv_context* device, uint8_t port, const ibv_gid& wanted) {
  ibv_port_attr attributes{};
  const int count = (ibv_query_port)(device, port, reinterpret_cast<_compat_ibv_port_attr*>(&attributes)) == 0
                        ? attributes.gid_tbl_len
                        : 0;
  for (int index = 0; index < count; ++index) {
    ibv_gid gid{};
    if (ibv_query_gid(device, port, index, &gid) == 0 && std::memcmp(&gid, &wanted, sizeof gid) == 0) {
      return static_cast<uint8_t>(index);
    }
  }
  return 0;
}

ibv_ah_attr attributes_of(const rdma_cm_id& id) {
  const ibv_sa_path_rec& path = id.route.path_rec[0];
  ibv_ah_attr attributes{};
  attributes.is_global = 1;
  attributes.grh.dgid = path.dgid;
  attributes.grh.flow_label = ntohl(path.flow_label);
  attributes.grh.sgid_index = gid_index(id.verbs, id.port_num, path.sgid);
  attributes.grh.hop_limit = path.hop_limit;
  attributes.grh.traffic_class = path.traffic_class;
  attributes.sl = path.sl;
  attributes.static_rate = path.rate;
  attributes.port_num = id.port_num;
  return attributes;
}

}  // namespace

base::Result<Address> resolve_source(const Address& destination) {
  const auto link = CmLink::create(RDMA_PS_UDP);
  if (!link) {
    return base::fail(link.error().value);
  }
  Address to = destination;
  if (rdma_resolve_addr(link->id(), nullptr, to.get(), kPathMs) != 0) {
    return base::fail(errno);
  }
  const int error = await(*link, RDMA_CM_EVENT_ADDR_RESOLVED, Deadline::in_ms(kPathMs));
  if (error != 0) {
    return base::fail(error);
  }
  Address source = Address::from(*rdma_get_local_addr(link->id()));
  source.set_port(0);
  return source;
}

base::Result<AddressHandle> resolve_path(ibv_pd* pd, const Address& source, const Address& destination) {
  const auto link = CmLink::create(RDMA_PS_UDP);
  if (!link) {
    return base::fail(link.error().value);
  }
  const Deadline deadline = Deadline::in_ms(kPathMs);
  Address from = source;
  from.set_port(0);
  Address to = destination;
  if (rdma_resolve_addr(link->id(), from.get(), to.get(), kPathMs) != 0) {
    return base::fail(errno);
  }
  int error = await(*link, RDMA_CM_EVENT_ADDR_RESOLVED, deadline);
  if (error == 0) {
    error = rdma_resolve_route(link->id(), kPathMs) == 0 ? await(*link, RDMA_CM_EVENT_ROUTE_RESOLVED, deadline) : errno;
  }
  if (error != 0 || link->id()->route.num_paths == 0) {
    return base::fail(error == 0 ? ENETUNREACH : error);
  }
  ibv_ah_attr attributes = attributes_of(*link->id());
  AddressHandle handle(ibv_create_ah(pd, &attributes));
  if (handle == nullptr) {
    return base::fail(errno == 0 ? ENOMEM : errno);
  }
  return handle;
}

}  // namespace ringbolt::rsocket
