// Addresses: binding, finding the device and the way.

#include <netinet/in.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

#include <fmt/format.h>

#include "base/c_border.h"
#include "rdmacm/connection_data.h"
#include "rdmacm/connection_manager.h"
#include "rdmacm/events.h"
#include "rdmacm/explanations.h"
#include "rdmacm/identifiers.h"
#include "wire/cm_private.h"

namespace ringbolt::rdmacm {
namespace {

using Phase = Id::Phase;

// As TCP and UDP have it (ip(7)): below, CAP_NET_BIND_SERVICE, which is taken for root here.
constexpr uint16_t kFirstOpenPort = 1024;
constexpr const char* kResolve = "rdma_resolve_addr";

uint32_t scope_of(const sockaddr* address) {
  return address->sa_family == AF_INET6 ? reinterpret_cast<const sockaddr_in6*>(address)->sin6_scope_id : 0;
}

size_t length_of(const sockaddr* address) {
  return address->sa_family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
}

bool may_bind_low_ports() { return geteuid() == 0; }

// `address` may be null.
int wrong_family(const char* call, const sockaddr* address) {
  return base::refused(EAFNOSUPPORT, call, [&] {
    return base::Explanation{fmt::format("the address is of family {}; there are AF_INET ({}) and AF_INET6 ({})",
                                         address == nullptr ? 0 : address->sa_family, AF_INET, AF_INET6),
                             "set sa_family, or take an address of getaddrinfo"};
  });
}

/// Makes the bound address known to the host, so that nobody else takes it.
int publish(Id& id, const wire::Address& address) RINGBOLT_REQUIRES(manager_lock) {
  ConnectionManager& manager = *id.manager;
  const bool is_ipv4 = id.c.route.addr.src_addr.sa_family == AF_INET;
  ringbolt_service service{};
  service.token = manager.next_token();
  // InfiniBand specification, annex A11 (RDMA IP CM Service): port space and port in one number.
  service.service_id = wire::cm_service_id(static_cast<uint16_t>(id.c.ps), id.source_port());
  std::memcpy(service.address, address.data(), sizeof service.address);
  service.is_any = is_any(address) ? 1 : 0;
  service.is_ipv4 = is_ipv4 ? 1 : 0;
  service.is_family_only = id.is_family_only.value_or(is_ipv4) ? 1 : 0;
  service.is_reusable = id.reuses_address ? 1 : 0;
  // The first device stands for the host: names are kept for all devices together.
  if (const int error = ringbolt_management_bind(manager.devices().at(0).context, &service)) {
    return error;
  }
  id.token = service.token;
  return 0;
}

int take_port(const char* call, Id& id, const wire::Address& address, bool is_public) RINGBOLT_REQUIRES(manager_lock) {
  ConnectionManager& manager = *id.manager;
  const auto space = static_cast<uint16_t>(id.c.ps);
  // Each try is another number, as take_ephemeral_port() goes on; EADDRINUSE after them.
  constexpr int kTries = 64;  // another process may have the number
  const bool is_chosen = id.source_port() != 0;
  if (is_chosen && id.source_port() < kFirstOpenPort && !may_bind_low_ports()) {
    return base::refused(EACCES, call, [&] {
      return base::Explanation{
          fmt::format("port {} is below {}, and the program is not root", id.source_port(), kFirstOpenPort),
          fmt::format("take a port from {} on", kFirstOpenPort)};
    });
  }
  // Anything else (ENOMEM, EMFILE) ends the loop as well: `error` is what the last try gave, and numbers are given
  // back.
  int error = EADDRINUSE;
  for (int i = 0; i < (is_chosen ? 1 : kTries) && error != 0; ++i) {
    if (is_chosen) {
      // Counts users in this process; whether another process has it is publish()'s to find out.
      manager.take_port(space, id.source_port());
    } else {
      set_port(&id.c.route.addr.src_addr, manager.take_ephemeral_port(space));
      if (id.source_port() == 0) {
        return EADDRNOTAVAIL;
      }
    }
    // An active side's own port is seen by its peer alone, and costs no system call.
    error = is_public || is_chosen ? publish(id, address) : 0;
    if (error != 0) {
      manager.release_port(space, id.source_port());
    }
  }
  id.is_bound = error == 0;
  return error != EADDRINUSE || !is_chosen ? error : base::refused(error, call, [&] {
    return base::Explanation{fmt::format("port {} is taken at {} in this port space ({:#x})", id.source_port(),
                                         text_of(id.c.route.addr.src_addr), static_cast<unsigned>(id.c.ps)),
                             "end the program that has it, take another port, or set RDMA_OPTION_ID_REUSEADDR at both"};
  });
}

/// Binds to `wanted`; `is_public`: the program asked for it, so others must not have the same.
int bind_to(const char* call, Id& id, const sockaddr* wanted, bool is_public) RINGBOLT_REQUIRES(manager_lock) {
  const auto address = address_of(wanted);
  if (!address) {
    return wrong_family(call, wanted);
  }
  if (id.phase != Phase::idle || id.is_bound) {
    return wrong_phase(call, id, "new");
  }
  if (is_link_local(*address) && scope_of(wanted) == 0) {
    return base::refused(EINVAL, call, [&] {
      return base::Explanation{fmt::format("{} is an address of one link, and sin6_scope_id is 0", text_of(*wanted)),
                               "set sin6_scope_id to if_nametoindex() of the interface"};
    });
  }
  std::optional<uint32_t> device;
  if (!is_any(*address)) {
    device = id.manager->devices().bind(*address, scope_of(wanted));
    if (!device) {
      return base::refused(ENODEV, call, [&] {
        return base::Explanation{fmt::format("{} is no address of any of the devices here", text_of(*wanted)),
                                 "take an address that `ringbolt devices` shows, or bind to INADDR_ANY"};
      });
    }
  }
  // take_port() reads and completes it; on an error it is taken back.
  std::memcpy(&id.c.route.addr.src_storage, wanted, length_of(wanted));
  // 127.0.0.1 becomes the device's own address: packets of it leave with that.
  const wire::Address own = device ? id.manager->devices().own_address(*device, *address) : *address;
  if (own != *address) {
    write_address(own, port_of(wanted), 0, id.c.route.addr.src_storage);
  }
  // An identifier that could not be bound must look new: programs try again with another port.
  if (const int error = take_port(call, id, own, is_public)) {
    std::memset(&id.c.route.addr.src_storage, 0, sizeof id.c.route.addr.src_storage);
    return error;
  }
  if (device) {
    const Devices& devices = id.manager->devices();
    const uint8_t index = devices.gid_index(*device, own);
    id.route = Route{*device, index, devices.at(*device).gids[index], {}, own};
    show_device(id);
  }
  id.phase = Phase::bound;
  return 0;
}

int bind_to_any(const char* call, Id& id, int family, bool is_public) RINGBOLT_REQUIRES(manager_lock) {
  sockaddr_storage any{};
  any.ss_family = static_cast<sa_family_t>(family);
  return bind_to(call, id, reinterpret_cast<const sockaddr*>(&any), is_public);
}

/// Finds the way to `target` and queues what came of it. Errors that the kernel's own lookup gives come at once.
int resolve(Id& id, const wire::Address& wanted, const sockaddr* target) RINGBOLT_REQUIRES(manager_lock) {
  ConnectionManager& manager = *id.manager;
  const auto bound = address_of(&id.c.route.addr.src_addr);
  // Without an address of its own the kernel's route table says which device, and so which source.
  const auto source = bound && !is_any(*bound) ? bound : std::nullopt;
  wire::Address address = wanted;
  // The wildcard as a target means this host, as with connect(2).
  if (is_any(address)) {
    address = target->sa_family == AF_INET ? wire::ipv4_address(127, 0, 0, 1) : wire::Address{};
    address.back() = 1;
  }
  const uint32_t scope = scope_of(target) != 0 ? scope_of(target) : scope_of(&id.c.route.addr.src_addr);
  Route route;
  const int error = manager.devices().route(source, address, scope, route);
  // As the kernel's: no event follows then.
  if (error == -ENETUNREACH || error == -EHOSTUNREACH || error == -EINVAL) {
    return base::refused(-error, kResolve, [&] {
      return base::Explanation{fmt::format("the kernel has no route to {}{}", text_of(*target),
                                           source ? " from " + text_of(id.c.route.addr.src_addr) : std::string()),
                               "see `ip route get ADDRESS`; a link-local one needs its interface as sin6_scope_id"};
    });
  }
  std::memcpy(&id.c.route.addr.dst_storage, target, length_of(target));
  if (error != 0) {
    id.channel().push(make_local_event(id, RDMA_CM_EVENT_ADDR_ERROR, error));
    return 0;
  }
  // The ports of an emulated cluster have addresses of 127.0.0.0/8 too: those of other nodes lead elsewhere.
  const bool is_self = is_loopback(address) && route.remote_gid == route.local_gid;
  const wire::Address peer = is_self ? manager.devices().own_address(route.device, address) : address;
  write_address(peer, port_of(target), scope, id.c.route.addr.dst_storage);
  if (target->sa_family == AF_INET6) {
    // Of IPv6 alone: flow_label() in identifiers.cpp takes it from there.
    id.c.route.addr.dst_sin6.sin6_flowinfo = reinterpret_cast<const sockaddr_in6*>(target)->sin6_flowinfo;
  }
  write_address(is_self ? manager.devices().own_address(route.device, route.source) : route.source, id.source_port(),
                scope, id.c.route.addr.src_storage);
  id.channel().push(make_local_event(id, RDMA_CM_EVENT_ADDR_RESOLVED, 0));  // first: there may be no memory for it
  id.route = route;
  id.phase = Phase::address_resolved;
  return 0;
}

int resolve_address(Id& id, const sockaddr* source, const sockaddr* target) RINGBOLT_REQUIRES(manager_lock) {
  const auto address = address_of(target);
  if (!address) {
    return wrong_family(kResolve, target);
  }
  if (id.phase != Phase::idle && id.phase != Phase::bound) {
    return wrong_phase(kResolve, id, "new, or bound to an address");
  }
  note_call(id);
  // Devices are looked at by start(): before it there is nothing to bind to.
  if (const int error = id.manager->start()) {
    return error;
  }
  if (id.phase == Phase::idle) {
    const bool has_source = source != nullptr && source->sa_family != AF_UNSPEC;
    const int error = has_source ? bind_to(kResolve, id, source, port_of(source) != 0)
                                 : bind_to_any(kResolve, id, target->sa_family, false);
    if (error != 0) {
      return error;
    }
  }
  if (id.c.route.addr.src_addr.sa_family != target->sa_family) {
    return base::refused(EINVAL, kResolve, [&] {
      return base::Explanation{fmt::format("it is bound to {}, and {} is of another family",
                                           text_of(id.c.route.addr.src_addr), text_of(*target)),
                               "bind to an address of the family that is to be resolved"};
    });
  }
  return resolve(id, *address, target);
}

}  // namespace

int prepare_to_listen(Id& id) {
  if (const int error = id.manager->start()) {
    return error;
  }
  if (id.phase == Phase::idle) {
    return bind_to_any("rdma_listen", id, AF_INET, true);
  }
  const auto address = address_of(&id.c.route.addr.src_addr);
  // Bound by rdma_resolve_addr(), which told nobody: a listener must be known to the host.
  return id.phase == Phase::bound && id.token == 0 && address ? publish(id, *address) : 0;
}

}  // namespace ringbolt::rdmacm

using ringbolt::rdmacm::ConnectionManager;
using ringbolt::rdmacm::Id;
using ringbolt::rdmacm::result;
namespace base = ringbolt::base;

extern "C" {

int rdma_bind_addr(rdma_cm_id* c, sockaddr* address) try {
  Id& id = Id::of(c);
  if (!ringbolt::rdmacm::is_ours(id)) {
    return -1;
  }
  const base::LockGuard guard(id.manager->mutex());
  if (const int error = id.manager->start()) {
    return result(error);
  }
  return result(ringbolt::rdmacm::bind_to("rdma_bind_addr", id, address, true));
} catch (...) {
  return ringbolt::base::caught_minus_one();
}

// The time limit (ms) is not looked at: local look-ups do not wait.
int rdma_resolve_addr(rdma_cm_id* c, sockaddr* source, sockaddr* target, int) try {
  Id& id = Id::of(c);
  {
    if (!ringbolt::rdmacm::is_ours(id)) {
      return -1;
    }
    const base::LockGuard guard(id.manager->mutex());
    if (const int error = ringbolt::rdmacm::resolve_address(id, source, target)) {
      return result(error);
    }
  }
  // Outside the lock: it waits for the event queue, which others fill under it.
  return ringbolt::rdmacm::await_event(id);
} catch (...) {
  return ringbolt::base::caught_minus_one();
}

// RoCE has no subnet administrator to ask: the route is what rdma_resolve_addr() found.
int rdma_resolve_route(rdma_cm_id* c, int) try {
  Id& id = Id::of(c);
  {
    if (!ringbolt::rdmacm::is_ours(id)) {
      return -1;
    }
    const base::LockGuard guard(id.manager->mutex());
    if (id.phase != Id::Phase::address_resolved) {
      return result(ringbolt::rdmacm::wrong_phase("rdma_resolve_route", id, "resolved to an address"));
    }
    // Known at once, but told as an event, as programs expect.
    id.channel().push(ringbolt::rdmacm::make_local_event(id, RDMA_CM_EVENT_ROUTE_RESOLVED, 0));
    fill_path(id);
    id.phase = Id::Phase::route_resolved;
  }
  return ringbolt::rdmacm::await_event(id);
} catch (...) {
  return ringbolt::base::caught_minus_one();
}

__be16 rdma_get_src_port(rdma_cm_id* c) { return htons(Id::of(c).source_port()); }
__be16 rdma_get_dst_port(rdma_cm_id* c) { return htons(Id::of(c).destination_port()); }

}  // extern "C"
