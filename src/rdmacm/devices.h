#pragma once

#include <infiniband/verbs.h>
#include <sys/socket.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "abi/management.h"
#include "wire/flow.h"

namespace ringbolt::rdmacm {

/// A device that the process has opened for good, as every librdmacm does. Never closed once Devices::open() has
/// succeeded. Port 1 is the only one.
struct Device {
  ibv_context* context = nullptr;
  ibv_pd* pd = nullptr;  ///< for identifiers whose program brings none
  ringbolt_port_facts facts{};
  uint8_t max_responder_resources = 0;  ///< READs and atomics of a peer under way at once
  uint8_t max_initiator_depth = 0;      ///< the same of ours
  uint32_t gid_table_length = 0;
  std::vector<wire::Address> gids;  ///< all zeros where the table has a hole; at least one is not

  /// Reads the GID table again, if it has changed and still has addresses. 0, or an errno: all is as before. gids
  /// keeps its length. A few system calls where nothing has changed.
  int look_at_gids();
  const wire::Address& first_gid() const { return gids[first_index()]; }
  /// There is one: see gids.
  uint8_t first_index() const;
  std::optional<uint8_t> index_of(const wire::Address& gid) const;
  /// Of the GID that stands for an address of this host: the address itself, else one of its family that is no
  /// link-local one, else the second of the table or the first that it has.
  uint8_t index_for(const wire::Address& address) const;
  /// Whether a packet to it would leave by this port.
  bool reaches(const wire::Address& gid) const;
  /// Asks the device each time.
  bool is_up() const;
};

/// A way from one of our ports to an address.
struct Route {
  uint32_t device = 0;
  uint8_t gid_index = 0;
  wire::Address local_gid{};
  wire::Address remote_gid{};
  wire::Address source{};  ///< the address that the peer sees; the GID, or, on the default device, any of this host
};

/// All devices of this process, and which addresses lead where. Filled once; then only their addresses change. Under
/// the manager's lock. Indices stay what they are for the life of the process.
class Devices {
 public:
  /// 0 or an errno; ENODEV when there is none. Blocks while devices open. Those that don't are left out, if any does;
  /// for want of memory none is kept.
  int open();
  /// Takes up addresses that have come or gone. Before each step that chooses among them: cheap where nothing
  /// changed. What fails leaves the addresses as they were.
  void look_at_gids();
  size_t size() const { return devices_.size(); }
  /// Good for the life of the process; index < size().
  const Device& at(uint32_t index) const { return devices_[index]; }
  std::optional<uint32_t> index_of(const ibv_context* context) const;
  /// The device whose port has the GID.
  std::optional<uint32_t> owner_of(const wire::Address& gid) const;

  /// An address of this host that the device can be bound to.
  bool stands_for(uint32_t device, const wire::Address& address) const;
  /// The device for a local address; `scope`: the interface of a link-local one, else 0. Nothing when none has it.
  std::optional<uint32_t> bind(const wire::Address& address, uint32_t scope) const;
  /// Device::index_for().
  uint8_t gid_index(uint32_t device, const wire::Address& address) const { return devices_[device].index_for(address); }

  /// A loopback address, on a device that has addresses of its own: nodes share one host, so "myself" is the port's.
  wire::Address own_address(uint32_t device, const wire::Address& address) const;

  /// The way to `target`, from `source` if that is given. 0, or -ENODEV: none of our devices leads there; other errno
  /// values negated: the kernel knows no way either. `route` is written only with 0. A UDP socket is opened for a
  /// moment where the kernel is to be asked.
  int route(const std::optional<wire::Address>& source, const wire::Address& target, uint32_t scope,
            Route& route) const;

 private:
  std::optional<uint32_t> first_up() const;
  int route_to_self(const std::optional<uint32_t>& bound, const wire::Address& target, Route& route) const;

  std::vector<Device> devices_;
};

/// Addresses as programs give them. Null, or not AF_INET or AF_INET6: nothing. `address` has as many bytes as its
/// family asks for.
std::optional<wire::Address> address_of(const sockaddr* address);
/// In host order; 0 of other families.
uint16_t port_of(const sockaddr* address);
void set_port(sockaddr* address, uint16_t port);
/// Writes an AF_INET or AF_INET6 address, as `address` is IPv4 or not; the flow label is kept 0.
void write_address(const wire::Address& address, uint16_t port, uint32_t scope, sockaddr_storage& out);
bool is_any(const wire::Address& address);
bool is_loopback(const wire::Address& address);
bool is_link_local(const wire::Address& address);

}  // namespace ringbolt::rdmacm
