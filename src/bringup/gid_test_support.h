#pragma once

#include <arpa/inet.h>

#include <stdexcept>
#include <string>

#include "bringup/gid.h"

namespace ringbolt::bringup::test {

/// "10.0.0.1" or "fe80::1" as a GID.
inline Gid gid(const std::string& text) {
  Gid bytes{};
  const bool is_ipv6 = text.find(':') != std::string::npos;
  if (::inet_pton(AF_INET6, (is_ipv6 ? text : "::ffff:" + text).c_str(), bytes.data()) != 1) {
    throw std::invalid_argument(text);
  }
  return bytes;
}

}  // namespace ringbolt::bringup::test
