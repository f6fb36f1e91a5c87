// Identifiers: their life, and what they show of their device.

#include "rdmacm/identifiers.h"
#include "base/c_border.h"
#include "base/explain.h"

#include <netinet/in.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>

#include <fmt/format.h>

#include "base/mutex.h"
#include "cm/timing.h"
#include "rdmacm/connection_manager.h"

namespace ringbolt::rdmacm {
namespace {

// As the kernel's for RoCEv2.
constexpr uint8_t kRoceHopLimit = 64;
constexpr uint8_t kExactly = 2;  // selector of a path record: IB_SA_EQ

uint32_t flow_label(const Id& id) {
  if (id.c.route.addr.dst_addr.sa_family == AF_INET6) {
    const uint32_t given = ntohl(id.c.route.addr.dst_sin6.sin6_flowinfo) & 0xfffffU;
    if (given != 0) {
      return given;
    }
  }
  // 20 bits; differs between connections, so that switches spread them over their links.
  return (31U * id.source_port() + id.destination_port()) & 0xfffffU;
}

}  // namespace

// In the child of a fork the manager's thread and devices are the parent's.
bool is_ours(const Id& id) {
  if (id.manager->is_dead()) {
    errno = ENODEV;
    return false;
  }
  return true;
}

// Errors as the library's callers expect them: null and errno. Counts as a user of the channel until delete_id().
Id* new_id(ConnectionManager& manager, Channel* channel, void* context, rdma_port_space ps, ibv_qp_type type) {
  auto* id = new (std::nothrow) Id;
  if (id == nullptr) {
    errno = ENOMEM;
    return nullptr;
  }
  id->manager = &manager;
  id->c.context = context;
  id->c.ps = ps;
  id->c.qp_type = type;
  id->c.channel = &channel->c;
  ++channel->users;
  return id;
}

// After it nothing of the library points to `id` but events that the program holds, and its channel's count. The lock
// is held.
void detach_id(Id& id) {
  ConnectionManager& manager = *id.manager;
  if (id.handle != 0) {
    // Its peer may have said "ready" in a datagram that nobody has looked at: then the end is a DREQ and not a REJ.
    if (id.is_passive && id.has_reply) {
      manager.catch_up();
    }
    try {
      manager.engine().destroy(manager.now(), id.handle);
    } catch (const std::bad_alloc&) {
      // No memory for the good-bye: the peer finds out by its own time limits.
    }
    manager.remove_connection(id.handle);
    id.handle = 0;
  }
  if (id.token != 0) {
    manager.engine().unlisten(id.token);
    manager.remove_listener(id.token);
    ringbolt_management_unbind(manager.devices().at(0).context, id.token);
    id.token = 0;
  }
  // A passive one has its listener's port, and counts no user of it.
  if (id.is_bound && !id.is_passive) {
    manager.release_port(static_cast<uint16_t>(id.c.ps), id.source_port());
  }
  manager.drop_held(id);
  drop_events_of(id);
}

// The program's pointer is dead from here on: rdma_destroy_id() is its last call.
void delete_id(Id* id) {
  Channel& channel = id->channel();
  if (id->is_sync) {
    // The channel is the identifier's own; no program knows it.
    channel.is_closed = true;
  }
  delete id;
  release_channel(channel);
}

void show_device(Id& id) {
  const Device& device = id.manager->devices().at(id.route->device);
  id.c.verbs = device.context;
  id.c.port_num = 1;
  // A program's own one (rdma_create_ep()) stays.
  if (id.c.pd == nullptr) {
    id.c.pd = device.pd;
  }
  std::memcpy(id.c.route.addr.addr.ibaddr.sgid.raw, id.route->local_gid.data(), id.route->local_gid.size());
  std::memcpy(id.c.route.addr.addr.ibaddr.dgid.raw, id.route->remote_gid.data(), id.route->remote_gid.size());
  // The default partition.
  id.c.route.addr.addr.ibaddr.pkey = htons(0xffff);
}

void fill_path(Id& id) {
  const Device& device = id.manager->devices().at(id.route->device);
  ibv_sa_path_rec& path = id.path;
  path = {};
  std::memcpy(path.dgid.raw, id.route->remote_gid.data(), sizeof path.dgid.raw);
  std::memcpy(path.sgid.raw, id.route->local_gid.data(), sizeof path.sgid.raw);
  path.hop_limit = kRoceHopLimit;
  // Paths of RoCE lead back as they came.
  path.reversible = 1;
  path.numb_path = 1;
  path.pkey = htons(0xffff);
  path.mtu_selector = path.rate_selector = path.packet_life_time_selector = kExactly;
  if (id.is_passive) {
    path.flow_label = htonl(id.request.primary.flow_label);
    path.traffic_class = id.request.primary.traffic_class;
    path.mtu = id.request.path_mtu;
    // The acknowledgement timeout is twice the life time at least, which is one less as an exponent (as in the
    // kernel's cm.c).
    path.packet_life_time = static_cast<uint8_t>(std::max(1, int{id.request.primary.ack_timeout}) - 1);
    return;
  }
  path.flow_label = htonl(flow_label(id));
  path.traffic_class = id.type_of_service;
  path.mtu = device.facts.mtu;
  path.packet_life_time =
      id.ack_timeout && *id.ack_timeout > 0 ? static_cast<uint8_t>(*id.ack_timeout - 1) : cm::kPacketLifetime;
}

// Of a CONNECT_REQUEST that moves with its listener: its identifier follows, so that later events come to the same
// channel.
void move_request(Id& id, Channel& target) {
  Channel& from = id.channel();
  id.c.channel = &target.c;
  ++target.users;
  release_channel(from);
}

// Blocks without limit in rdma_get_cm_event(), as synchronous calls of rdma-core do. The lock must not be held.
int await_event(Id& id) {
  if (!id.is_sync) {
    return 0;
  }
  // The one of the step before: programs of synchronous identifiers acknowledge none.
  if (id.c.event != nullptr) {
    rdma_ack_cm_event(id.c.event);
    id.c.event = nullptr;
  }
  if (rdma_get_cm_event(id.c.channel, &id.c.event) != 0) {
    return -1;
  }
  if (id.c.event->status == 0) {
    return 0;
  }
  // The status of a rejection is a CM reason, not an errno.
  return result(id.c.event->event == RDMA_CM_EVENT_REJECTED ? ECONNREFUSED : std::abs(id.c.event->status));
}

void ConnectionManager::drop_rejected(const Channel& channel) {
  std::vector<Id*> gone;
  // Gathered first: detach_id() takes them out of this map.
  for (const auto& [handle, id] : connections_) {
    // Of the others the program still has events, and destroys them itself or never.
    if (id->is_rejected && &id->channel() == &channel && id->delivered == id->acknowledged) {
      gone.push_back(id);
    }
  }
  for (Id* id : gone) {
    detach_id(*id);
    delete_id(id);
  }
}

}  // namespace ringbolt::rdmacm

using ringbolt::rdmacm::Channel;
using ringbolt::rdmacm::ConnectionManager;
using ringbolt::rdmacm::Id;
using ringbolt::rdmacm::manager_lock;
using ringbolt::rdmacm::result;
namespace base = ringbolt::base;

extern "C" {

int rdma_create_id(rdma_event_channel* channel, rdma_cm_id** id, void* context, rdma_port_space ps) try {
  const bool is_known = ps == RDMA_PS_TCP || ps == RDMA_PS_UDP || ps == RDMA_PS_IB || ps == RDMA_PS_IPOIB;
  if (!is_known) {
    return result(base::refused(EINVAL, "rdma_create_id", [&] {
      return base::Explanation{fmt::format("there is no port space {:#x}", static_cast<unsigned>(ps)),
                               "take RDMA_PS_TCP for connections, RDMA_PS_UDP for datagrams"};
    }));
  }
  // The channel's manager, which in the child of a fork is the parent's and dead.
  ConnectionManager& manager = channel == nullptr ? ConnectionManager::get() : *Channel::of(channel).manager;
  if (manager.is_dead()) {
    return result(ENODEV);
  }
  const base::LockGuard guard(manager.mutex());
  Channel* home = channel == nullptr ? ringbolt::rdmacm::new_channel(manager) : &Channel::of(channel);
  if (home == nullptr) {
    return -1;
  }
  const ibv_qp_type type = ps == RDMA_PS_UDP || ps == RDMA_PS_IPOIB ? IBV_QPT_UD : IBV_QPT_RC;
  Id* made = ringbolt::rdmacm::new_id(manager, home, context, ps, type);
  if (made == nullptr) {
    if (channel == nullptr) {
      delete home;
    }
    return result(ENOMEM);
  }
  made->is_sync = channel == nullptr;
  *id = &made->c;
  return 0;
} catch (...) {
  return ringbolt::base::caught_minus_one();
}

int rdma_destroy_id(rdma_cm_id* c) try {
  Id& id = Id::of(c);
  ConnectionManager& manager = *id.manager;
  if (!ringbolt::rdmacm::is_ours(id)) {
    return -1;
  }
  const base::LockGuard guard(id.manager->mutex());
  detach_id(id);
  manager.settle();
  if (c->event != nullptr) {
    // rdma_ack_cm_event() takes the lock itself. `id` stays: only this call deletes it, and a program that destroys
    // it twice is wrong anyhow.
    const base::Unlocked unlocked(manager.mutex());
    rdma_ack_cm_event(std::exchange(c->event, nullptr));
  }
  // As rdma_destroy_id(3) says. Only what the program has taken counts; detach_id() has dropped the rest.
  manager.wait([&]() RINGBOLT_REQUIRES(manager_lock) { return id.acknowledged == id.delivered; });
  ringbolt::rdmacm::delete_id(&id);
  return 0;
} catch (...) {
  return ringbolt::base::caught_minus_one();
}

int rdma_migrate_id(rdma_cm_id* c, rdma_event_channel* target) try {
  Id& id = Id::of(c);
  ConnectionManager& manager = *id.manager;
  if (id.is_sync && target == nullptr) {
    return result(EINVAL);
  }
  if (id.is_sync && c->event != nullptr) {
    rdma_ack_cm_event(std::exchange(c->event, nullptr));
  }
  if (!ringbolt::rdmacm::is_ours(id)) {
    return -1;
  }
  const base::LockGuard guard(id.manager->mutex());
  Channel* to = target == nullptr ? ringbolt::rdmacm::new_channel(manager) : &Channel::of(target);
  if (to == nullptr) {
    return -1;
  }
  Channel& from = id.channel();
  const bool was_sync = id.is_sync;
  c->channel = &to->c;
  ++to->users;
  id.is_sync = target == nullptr;
  // Events of the identifier and of requests to it; those of others stay in their order.
  auto moved = from.take_if([&](const ringbolt::rdmacm::QueuedEvent& one) { return one.counts_for == &id; });
  while (!moved.is_empty()) {
    auto event = moved.pop();
    if (event->c.event == RDMA_CM_EVENT_CONNECT_REQUEST) {
      ringbolt::rdmacm::move_request(Id::of(event->c.id), *to);
    }
    to->push(std::move(event));
  }
  // As rdma_migrate_id(3) says: blocks until what was taken from the old channel is acknowledged.
  manager.wait([&]() RINGBOLT_REQUIRES(manager_lock) { return id.acknowledged == id.delivered; });
  from.is_closed = from.is_closed || was_sync;
  ringbolt::rdmacm::release_channel(from);
  return 0;
} catch (...) {
  return ringbolt::base::caught_minus_one();
}

}  // extern "C"
