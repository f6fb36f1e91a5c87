#pragma once

#include <cstdint>
#include <string>

namespace ringbolt::tools::bridge {

/// Where a bridge listens or connects to. A value.
struct Place {
  enum class Kind : uint8_t { tcp, unix_socket, rdma };
  Kind kind = Kind::tcp;
  std::string host;  ///< without brackets
  uint16_t port = 0;
  std::string path;  ///< of a UNIX socket

  /// "tcp:127.0.0.1:6379", "rdma:[fd77::1]:6379", "unix:/run/x.sock".
  std::string text() const;
  friend bool operator==(const Place&, const Place&) = default;
};

/// Of that text. Throws UsageError that names `option`.
Place parse_place(const std::string& option, const std::string& text);

}  // namespace ringbolt::tools::bridge
