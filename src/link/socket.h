#pragma once

#include <sys/socket.h>
#include <sys/types.h>
#include <sys/un.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "base/unique_fd.h"
#include "link/messages.h"

/// The system calls of the rendezvous sockets: SOCK_SEQPACKET, never blocking, closed on exec. All thread-safe.
namespace ringbolt::link {

/// More than any message has, so that too many are noticed.
inline constexpr size_t kMaxDescriptors = 4;

struct SocketAddress {
  sockaddr_un address{};
  socklen_t length = 0;
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&address); }
};

/// The address of `name` in a folder: by its path, or through /proc/self/fd when the path is too long for sun_path.
/// Nothing when the name alone is too long.
std::optional<SocketAddress> socket_address(const std::string& directory, int directory_fd, const std::string& name);

/// Not open, with errno set, when the kernel refuses.
base::UniqueFd open_socket();

/// A socket connected to `address`, or not open: nobody listens there, or its backlog stayed full for
/// kConnectPatienceMs.
inline constexpr int kConnectPatienceMs = 5;
/// errno says why it is not open.
base::UniqueFd connect_socket(const SocketAddress& address);

/// Who is at the other end: as of its connect() or listen(). pid is 0 when our pid namespace does not show it.
struct Credentials {
  pid_t pid = 0;
  uid_t uid = static_cast<uid_t>(-1);
};
Credentials peer_credentials(int socket_fd);

/// One received datagram with its descriptors.
struct Datagram {
  std::array<std::byte, kMaxMessageBytes> storage;
  size_t length = 0;
  std::array<base::UniqueFd, kMaxDescriptors> descriptors;
  size_t descriptor_count = 0;
  bool has_lost_descriptors = false;  ///< there were more, but this process may open no more files
  std::span<const std::byte> bytes() const { return {storage.data(), length}; }
};

enum class Received {
  message,    ///< a datagram was read
  nothing,    ///< none is there now
  oversized,  ///< a datagram did not fit, or had more descriptors than any message; it is lost
  end,        ///< the other end closed and everything was read
};
/// Descriptors that came are `datagram`'s, whatever is returned.
Received receive_datagram(int socket_fd, Datagram& datagram);

/// 0, or the errno of sendmsg. Raises no signal.
int send_datagram(int socket_fd, std::span<const std::byte> bytes, std::span<const int> descriptors);

}  // namespace ringbolt::link
