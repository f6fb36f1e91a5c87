#pragma once

#include <infiniband/verbs.h>

#include <cstdint>

namespace ringbolt::verbs {

/// Bytes of an MTU code, 256 to 4096; 0 of an unknown one. Pure.
constexpr uint32_t mtu_bytes(ibv_mtu code) {
  return code < IBV_MTU_256 || code > IBV_MTU_4096 ? 0 : 128U << static_cast<unsigned>(code);
}

/// The code of the largest MTU of at most `bytes`, but IBV_MTU_256 at least. Pure.
constexpr ibv_mtu mtu_code(uint32_t bytes) {
  ibv_mtu code = IBV_MTU_256;
  while (code < IBV_MTU_4096 && (256U << static_cast<unsigned>(code)) <= bytes) {
    code = static_cast<ibv_mtu>(code + 1);
  }
  return code;
}

/// The rate of a port in Gb/s, from the codes of ibv_port_attr: lanes times speed of a lane; 0 of unknown codes. Pure.
/// Source: InfiniBand Architecture Specification, volume 1, PortInfo (LinkWidthActive, LinkSpeedActive and extensions).
double rate_gbps(uint8_t width, uint8_t speed);

}  // namespace ringbolt::verbs
