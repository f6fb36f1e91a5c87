#include "rdmacm/devices.h"

#include <netinet/in.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <new>
#include <utility>
#include <vector>

#include "base/unique_fd.h"
#include "rdmacm/verbs_library.h"

namespace ringbolt::rdmacm {
namespace {

/// The address that the kernel would send from, as for any UDP program: its route lookup. Nothing with errno set when
/// there is no way.
std::optional<wire::Address> source_by_kernel(const wire::Address& target, uint32_t scope) {
  sockaddr_storage to{};
  // connect() of a datagram socket only looks up the route (udp(7)).
  constexpr uint16_t kAnyPort = 9;  // nothing is sent
  write_address(target, kAnyPort, scope, to);
  const base::UniqueFd socket(::socket(to.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  const socklen_t length = to.ss_family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
  sockaddr_storage from{};
  socklen_t from_length = sizeof from;
  if (!socket.is_open() || connect(socket.get(), reinterpret_cast<const sockaddr*>(&to), length) != 0 ||
      getsockname(socket.get(), reinterpret_cast<sockaddr*>(&from), &from_length) != 0) {
    return std::nullopt;
  }
  return address_of(reinterpret_cast<const sockaddr*>(&from));
}

/// The kernel has the address on one of its interfaces.
bool is_of_this_host(const wire::Address& address, uint32_t scope) {
  if (is_loopback(address)) {
    return true;
  }
  sockaddr_storage at{};
  write_address(address, 0, scope, at);
  const base::UniqueFd socket(::socket(at.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  const socklen_t length = at.ss_family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
  // The kernel refuses what is none of its own with EADDRNOTAVAIL (ip(7)).
  return socket.is_open() && bind(socket.get(), reinterpret_cast<const sockaddr*>(&at), length) == 0;
}

// 0 or an errno; on an error the caller closes what `device` has by then.
int open_device(ibv_device* from, Device& device) {
  device.context = ibv_open_device(from);
  if (device.context == nullptr) {
    return errno;
  }
  ibv_device_attr limits{};
  if (const int error = ibv_query_device(device.context, &limits)) {
    return error;
  }
  // 255 has a meaning of its own: RDMA_MAX_RESP_RES.
  device.max_responder_resources = static_cast<uint8_t>(std::min(limits.max_qp_rd_atom, 254));
  device.max_initiator_depth = static_cast<uint8_t>(std::min(limits.max_qp_init_rd_atom, 254));
  ibv_port_attr port{};
  if (const int error = ibv_query_port(device.context, 1, &port)) {
    return error;
  }
  device.gid_table_length = static_cast<uint32_t>(port.gid_tbl_len);
  if (const int error = device.look_at_gids()) {
    return error;
  }
  device.pd = ibv_alloc_pd(device.context);
  return device.pd == nullptr ? errno : 0;
}

void close_device(const Device& device) {
  if (device.pd != nullptr) {
    ibv_dealloc_pd(device.pd);
  }
  if (device.context != nullptr) {
    ibv_close_device(device.context);
  }
}

struct FreeList {
  void operator()(ibv_device** list) const { ibv_free_device_list(list); }
};

}  // namespace

int Device::look_at_gids() try {
  ringbolt_port_facts now{};
  if (const int error = ringbolt_management_port(context, &now)) {
    return error;
  }
  // The usual case: nothing has changed, and no entry is read.
  if (!gids.empty() && now.gid_generation == facts.gid_generation) {
    return 0;
  }
  std::vector<wire::Address> table(gid_table_length);
  for (uint32_t i = 0; i < gid_table_length; ++i) {
    ibv_gid_entry entry{};
    // ENODATA: a hole in the table.
    const int error = ibv_query_gid_ex(context, 1, i, &entry, 0);
    if (error == 0) {
      std::memcpy(table[i].data(), entry.gid.raw, table[i].size());
    } else if (error != ENODATA) {
      return error;
    }
  }
  if (std::ranges::count(table, wire::Address{}) == gid_table_length) {
    // All addresses are gone, for a moment perhaps: what was known stays.
    return ENODEV;
  }
  gids = std::move(table);
  facts = now;  // read first: of what has changed since, the next look hears
  return 0;
} catch (const std::bad_alloc&) {
  return ENOMEM;
}

uint8_t Device::first_index() const {
  const auto found = std::ranges::find_if(gids, [](const wire::Address& one) { return one != wire::Address{}; });
  return static_cast<uint8_t>(found - gids.begin());
}

// The first entry of that address; the zero address stands for a hole and is never found.
std::optional<uint8_t> Device::index_of(const wire::Address& gid) const {
  const auto found = std::ranges::find(gids, gid);
  return found == gids.end() || gid == wire::Address{} ? std::nullopt
                                                       : std::optional(static_cast<uint8_t>(found - gids.begin()));
}

uint8_t Device::index_for(const wire::Address& address) const {
  if (const auto exact = index_of(address)) {
    return *exact;
  }
  // An address that the port stands for without having it: its first one of that family that is no link-local one.
  const auto found = std::ranges::find_if(gids, [&](const wire::Address& gid) {
    return wire::is_ipv4(gid) == wire::is_ipv4(address) && !is_link_local(gid) && gid != wire::Address{};
  });
  if (found != gids.end()) {
    return static_cast<uint8_t>(found - gids.begin());
  }
  return gids.size() > 1 && gids[1] != wire::Address{} ? 1 : first_index();
}

bool Device::reaches(const wire::Address& gid) const {
  ibv_gid raw{};
  std::memcpy(raw.raw, gid.data(), gid.size());
  return ringbolt_management_reaches(context, &raw) != 0;
}

bool Device::is_up() const {
  ringbolt_port_facts now{};
  return ringbolt_management_port(context, &now) == 0 && now.is_up != 0;
}

int Devices::open() {
  if (!is_verbs_library_ours()) {
    // Said on standard error already, with the remedy.
    return ENOSYS;
  }
  int count = 0;
  const std::unique_ptr<ibv_device*, FreeList> list(ibv_get_device_list(&count));
  if (list == nullptr) {
    return errno;
  }
  std::vector<Device> opened;
  opened.reserve(static_cast<size_t>(count));
  int error = count == 0 ? ENODEV : 0;
  for (int i = 0; i < count; ++i) {
    Device device;
    const int refusal = open_device(list.get()[i], device);
    if (refusal == 0) {
      opened.push_back(std::move(device));
      continue;
    }
    close_device(device);
    // The last one, should none open.
    error = refusal;
    if (refusal == ENOMEM) {  // no reason to go on without this one: all of it can be tried again
      std::ranges::for_each(opened, close_device);
      return error;
    }
  }
  devices_ = std::move(opened);
  return devices_.empty() ? error : 0;
}

void Devices::look_at_gids() {
  for (Device& one : devices_) {
    static_cast<void>(one.look_at_gids());
  }
}

std::optional<uint32_t> Devices::index_of(const ibv_context* context) const {
  const auto found = std::ranges::find(devices_, context, &Device::context);
  return found == devices_.end() ? std::nullopt : std::optional(static_cast<uint32_t>(found - devices_.begin()));
}

std::optional<uint32_t> Devices::owner_of(const wire::Address& gid) const {
  const auto found = std::ranges::find_if(devices_, [&](const Device& one) { return one.index_of(gid).has_value(); });
  return found == devices_.end() ? std::nullopt : std::optional(static_cast<uint32_t>(found - devices_.begin()));
}

std::optional<uint32_t> Devices::first_up() const {
  const auto found = std::ranges::find_if(devices_, &Device::is_up);
  return found == devices_.end() ? std::nullopt : std::optional(static_cast<uint32_t>(found - devices_.begin()));
}

bool Devices::stands_for(uint32_t device, const wire::Address& address) const {
  const Device& one = devices_[device];
  return one.index_of(address).has_value() || is_loopback(address) ||
         (one.facts.takes_any_local_address != 0 && is_of_this_host(address, one.facts.netdev_index));
}

std::optional<uint32_t> Devices::bind(const wire::Address& address, uint32_t scope) const {
  for (uint32_t i = 0; i < devices_.size(); ++i) {
    const Device& one = devices_[i];
    const bool is_its_own = one.index_of(address).has_value() &&
                            (!is_link_local(address) || one.facts.netdev_index == 0 || one.facts.netdev_index == scope);
    if (is_its_own || (one.facts.takes_any_local_address != 0 && is_of_this_host(address, scope))) {
      return i;
    }
  }
  // No device has it; "myself" is served by any that works. By order of the list: programs on one host that say
  // "127.0.0.1" must meet at one device.
  return is_loopback(address) ? first_up() : std::nullopt;
}

wire::Address Devices::own_address(uint32_t device, const wire::Address& address) const {
  const Device& one = devices_[device];
  if (!is_loopback(address) || one.facts.takes_any_local_address != 0 || one.index_of(address)) {
    return address;
  }
  const wire::Address& gid = one.gids[gid_index(device, address)];
  return wire::is_ipv4(gid) == wire::is_ipv4(address) ? gid : address;
}

// 0 or a negative errno, as the kernel's own calls; `route` is untouched on an error.
int Devices::route_to_self(const std::optional<uint32_t>& bound, const wire::Address& target, Route& route) const {
  const auto device = bound ? bound : (bind(target, 0) ? bind(target, 0) : first_up());
  if (!device) {
    return -ENODEV;
  }
  const Device& one = devices_[*device];
  const uint8_t index = gid_index(*device, target);
  route = {*device, index, one.gids[index], one.gids[index], target};
  return 0;
}

int Devices::route(const std::optional<wire::Address>& source, const wire::Address& target, uint32_t scope,
                   Route& route) const {
  const auto bound = source ? bind(*source, scope) : std::nullopt;
  if (source && !bound) {
    return -ENODEV;
  }
  for (uint32_t i = 0; i < devices_.size(); ++i) {
    const Device& one = devices_[i];
    // The program has chosen its device by its address.
    if (bound && *bound != i) {
      continue;
    }
    if (one.facts.takes_any_local_address != 0 && is_of_this_host(target, scope)) {
      route_to_self(i, target, route);
      route.source = source.value_or(target);
      return 0;
    }
    // A port that no interface of the kernel's stands behind.
    const bool is_in_memory = one.facts.netdev_index == 0;
    if (one.index_of(target) || (is_in_memory && one.reaches(target))) {
      // Our own address, or the one at the other end of a cable: there is nothing to look up.
      const uint8_t index = one.index_of(target) ? *one.index_of(target) : gid_index(i, source.value_or(target));
      const uint8_t same_family =
          wire::is_ipv4(one.gids[index]) == wire::is_ipv4(target) ? index : gid_index(i, target);
      route = {i, same_family, one.gids[same_family], target, source.value_or(one.gids[same_family])};
      if (one.index_of(target)) {
        route.source = source.value_or(target);
      }
      return 0;
    }
  }
  if (is_loopback(target)) {
    return route_to_self(bound, target, route);
  }
  const auto from = source ? source : source_by_kernel(target, scope);
  if (!from) {
    // Of the kernel's look-up, the last call.
    return -errno;
  }
  const auto device = bind(*from, scope);
  if (!device || devices_[*device].facts.netdev_index == 0 || !devices_[*device].reaches(target)) {
    return -ENODEV;
  }
  const uint8_t index = gid_index(*device, *from);
  route = {*device, index, devices_[*device].gids[index], target, *from};
  return 0;
}

}  // namespace ringbolt::rdmacm
