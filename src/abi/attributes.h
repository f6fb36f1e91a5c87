#pragma once

#include <infiniband/verbs.h>

#include <cstdint>

#include "profile/profile.h"

/// What ibv_query_device(3) and ibv_query_port(3) say: what the device has, within what its profile lets programs see
/// (InfiniBand Architecture Specification 1.4, 11.2.1.2). All pure and thread-safe.
namespace ringbolt::abi {

/// `guid` in host order, as of the port; `port_index`: its place in the device list.
ibv_device_attr device_attributes(const profile::Profile& like, uint64_t guid, uint32_t port_index);

/// What of a port changes, or is its own.
struct PortFacts {
  bool is_up = false;
  ibv_mtu mtu = IBV_MTU_4096;
  uint64_t guid = 0;        ///< host order
  uint32_t speed_gbps = 0;  ///< nominal
};
ibv_port_attr port_attributes(const profile::Profile& like, const PortFacts& port);

/// Active speed as the architecture encodes it (14.2.5.6, LinkSpeedActive) for four lanes: the smallest that carries
/// the rate.
uint8_t speed_code(uint32_t gbps);

}  // namespace ringbolt::abi
