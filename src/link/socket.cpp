#include "link/socket.h"

#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/assert.h"

namespace ringbolt::link {
namespace {

/// Owns the descriptors of every control message. False when there are more than Datagram holds.
bool take_descriptors(msghdr& header, Datagram& datagram) {
  bool fits = true;
  for (cmsghdr* control = CMSG_FIRSTHDR(&header); control != nullptr; control = CMSG_NXTHDR(&header, control)) {
    if (control->cmsg_level != SOL_SOCKET || control->cmsg_type != SCM_RIGHTS) {
      continue;
    }
    const size_t count = (control->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(control) + i * sizeof(int), sizeof fd);
      base::UniqueFd owned(fd);
      if (datagram.descriptor_count < kMaxDescriptors) {
        datagram.descriptors[datagram.descriptor_count++] = std::move(owned);
      } else {
        fits = false;
      }
    }
  }
  // The buffer holds as many as Datagram does: what was cut off with room left found no place in the table of files.
  const bool is_cut = (header.msg_flags & MSG_CTRUNC) != 0;
  datagram.has_lost_descriptors = is_cut && datagram.descriptor_count < kMaxDescriptors;
  if (datagram.has_lost_descriptors) {
    base::say_no_descriptor_is_left(EMFILE);
  }
  return fits && (!is_cut || datagram.has_lost_descriptors);
}

}  // namespace

std::optional<SocketAddress> socket_address(const std::string& directory, int directory_fd, const std::string& name) {
  SocketAddress result;
  constexpr size_t kRoom = sizeof result.address.sun_path - 1;
  std::string path = fmt::format("{}/{}", directory, name);
  if (path.size() > kRoom) {
    path = fmt::format("/proc/self/fd/{}/{}", directory_fd, name);
  }
  if (path.size() > kRoom) {
    return std::nullopt;
  }
  result.address.sun_family = AF_UNIX;
  std::memcpy(result.address.sun_path, path.c_str(), path.size() + 1);
  result.length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + path.size() + 1);
  return result;
}

base::UniqueFd open_socket() {
  return base::UniqueFd(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}

base::UniqueFd connect_socket(const SocketAddress& address) {
  base::UniqueFd fd = open_socket();
  if (!fd.is_open()) {
    return fd;
  }
  for (int attempt = 0; attempt < kConnectPatienceMs; ++attempt) {
    if (connect(fd.get(), address.get(), address.length) == 0) {
      return fd;
    }
    if (errno != EAGAIN && errno != EINTR) {
      break;
    }
    const timespec pause{0, 1'000'000};
    nanosleep(&pause, nullptr);
  }
  fd.reset();
  return fd;
}

Credentials peer_credentials(int socket_fd) {
  ucred credentials{};
  socklen_t length = sizeof credentials;
  if (getsockopt(socket_fd, SOL_SOCKET, SO_PEERCRED, &credentials, &length) != 0) {
    return {};
  }
  return {credentials.pid, credentials.uid};
}

Received receive_datagram(int socket_fd, Datagram& datagram) {
  // A reset is reported once, ahead of what the other end still sent before it closed: ask again. Every turn of the
  // loop consumes one pending error, so few turns suffice.
  constexpr int kPendingErrors = 8;
  for (int attempt = 0; attempt < kPendingErrors; ++attempt) {
    alignas(cmsghdr) std::array<std::byte, CMSG_SPACE(sizeof(int) * kMaxDescriptors)> control;
    iovec part{datagram.storage.data(), datagram.storage.size()};
    msghdr header{};
    header.msg_iov = &part;
    header.msg_iovlen = 1;
    header.msg_control = control.data();
    header.msg_controllen = control.size();
    datagram.length = 0;
    for (size_t i = 0; i < datagram.descriptor_count; ++i) {
      datagram.descriptors[i].reset();
    }
    datagram.descriptor_count = 0;
    const ssize_t length = recvmsg(socket_fd, &header, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
    if (length < 0) {
      if (errno == EAGAIN) {
        return Received::nothing;
      }
      continue;
    }
    const bool fits = take_descriptors(header, datagram);
    if (length == 0) {
      return Received::end;  // an empty datagram looks the same, and no message is empty
    }
    datagram.length = static_cast<size_t>(length);
    return fits && (header.msg_flags & MSG_TRUNC) == 0 ? Received::message : Received::oversized;
  }
  return Received::end;
}

int send_datagram(int socket_fd, std::span<const std::byte> bytes, std::span<const int> descriptors) {
  RINGBOLT_ASSERT(descriptors.size() <= kMaxDescriptors);
  alignas(cmsghdr) std::array<std::byte, CMSG_SPACE(sizeof(int) * kMaxDescriptors)> control{};
  iovec part{const_cast<std::byte*>(bytes.data()), bytes.size()};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  if (!descriptors.empty()) {
    header.msg_control = control.data();
    header.msg_controllen = CMSG_SPACE(descriptors.size_bytes());
    cmsghdr* first = CMSG_FIRSTHDR(&header);
    first->cmsg_level = SOL_SOCKET;
    first->cmsg_type = SCM_RIGHTS;
    first->cmsg_len = CMSG_LEN(descriptors.size_bytes());
    std::memcpy(CMSG_DATA(first), descriptors.data(), descriptors.size_bytes());
  }
  while (sendmsg(socket_fd, &header, MSG_NOSIGNAL | MSG_DONTWAIT) < 0) {
    if (errno != EINTR) {
      return errno;
    }
  }
  return 0;
}

}  // namespace ringbolt::link
