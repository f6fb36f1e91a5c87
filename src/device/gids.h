#pragma once

#include <infiniband/verbs.h>

#include <cstring>

#include "wire/flow.h"

/// A GID as verbs and as packets have it: the same 16 bytes. Thread-safe.
namespace ringbolt::device {

inline wire::Address address_of(const ibv_gid& gid) {
  wire::Address address;
  std::memcpy(address.data(), gid.raw, address.size());
  return address;
}

inline ibv_gid gid_of(const wire::Address& address) {
  ibv_gid gid{};
  std::memcpy(gid.raw, address.data(), address.size());
  return gid;
}

}  // namespace ringbolt::device
