// The rsocket API as programs call it: <rdma/rsocket.h>. Each function finds its socket, lets it do the work, and turns
// an error into errno and -1.
#include <fcntl.h>
#include <rdma/rsocket.h>

#include <array>
#include <cstdarg>
#include <utility>

#include "base/c_border.h"
#include "rsocket/create.h"
#include "rsocket/descriptor_table.h"
#include "rsocket/explanations.h"
#include "rsocket/poll.h"

namespace {

using ringbolt::base::Result;
using ringbolt::rsocket::Address;
using ringbolt::rsocket::Call;
using ringbolt::rsocket::descriptors;
using ringbolt::rsocket::IoCursor;
using ringbolt::rsocket::refuse;
using ringbolt::rsocket::Socket;
using ringbolt::rsocket::Status;

template <class T>
T answer(const Result<T>& result, const Call& call, Socket* socket) {
  return result ? *result : static_cast<T>(refuse(result.error().value, call, socket));
}

int answer(const Status& status, const Call& call, Socket* socket) {
  return status ? 0 : refuse(status.error().value, call, socket);
}

/// Calls `use` with the socket, or answers EBADF.
// Holds a share of the socket until the call returns: rclose() of another thread does not destroy it meanwhile.
template <class Use>
auto with(const Call& call, Use use) {
  using Answer = decltype(answer(use(std::declval<Socket&>()), call, nullptr));
  const auto socket = descriptors().find(call.descriptor);
  return socket == nullptr ? static_cast<Answer>(refuse(EBADF, call, nullptr))
                           : answer(use(*socket), call, socket.get());
}

/// Before it comes to the socket.
int refuse(int error, const Call& call) { return refuse(error, call, descriptors().find(call.descriptor).get()); }

Result<ssize_t> signed_size(const Result<size_t>& size) {
  if (!size) {
    return ringbolt::base::fail(size.error().value);
  }
  return static_cast<ssize_t>(*size);
}

constexpr const char* kTransferred = "{} bytes, flags {:#x}";

ssize_t send_pieces(const char* name, int descriptor, const iovec* pieces, size_t count, int flags, const sockaddr* to,
                    socklen_t length) {
  Call call{name, descriptor, kTransferred, {-1, flags}};  // as long as nobody knows how many
  return with(call, [&](Socket& socket) -> Result<ssize_t> {
    const auto cursor = IoCursor::over(pieces, count);
    if (!cursor) {
      return ringbolt::base::fail(EINVAL);
    }
    call.numbers[0] = static_cast<int64_t>(cursor->left());
    if (to == nullptr) {
      return signed_size(socket.send(*cursor, flags, nullptr));
    }
    const auto address = Address::from(to, length);
    return address ? signed_size(socket.send(*cursor, flags, &*address)) : ringbolt::base::fail(EINVAL);
  });
}

ssize_t receive_pieces(const char* name, int descriptor, const iovec* pieces, size_t count, int flags, sockaddr* from,
                       socklen_t* length) {
  Call call{name, descriptor, kTransferred, {-1, flags}};  // as long as nobody knows how many
  return with(call, [&](Socket& socket) -> Result<ssize_t> {
    const auto cursor = IoCursor::over(pieces, count);
    if (!cursor) {
      return ringbolt::base::fail(EINVAL);
    }
    call.numbers[0] = static_cast<int64_t>(cursor->left());
    Address sender;
    const auto received = socket.receive(*cursor, flags, from == nullptr ? nullptr : &sender);
    if (received) {
      sender.copy_to(from, length);
    }
    return signed_size(received);
  });
}

/// The calls with an address that a program gives.
template <class Use>
int with_address(const char* name, int descriptor, const sockaddr* given, socklen_t length, Use use) {
  const Call call{name, descriptor, "an address of {} bytes", {length}};
  return with(call, [&](Socket& socket) -> Status {
    const auto address = Address::from(given, length);
    return address ? use(socket, *address) : ringbolt::base::fail(EINVAL);
  });
}

/// The calls that tell a program an address.
template <class Ask>
int tell_address(const char* name, int descriptor, sockaddr* out, socklen_t* length, Ask ask) {
  return with({name, descriptor}, [&](Socket& socket) -> Status {
    if (out == nullptr || length == nullptr) {
      return ringbolt::base::fail(EFAULT);
    }
    const auto address = ask(socket);
    if (!address) {
      return ringbolt::base::fail(address.error().value);
    }
    address->copy_to(out, length);
    return {};
  });
}

}  // namespace

extern "C" {

int rsocket(int domain, int type, int protocol) try {
  const Call call{__func__, Call::kNoDescriptor, "domain {}, type {}, protocol {}", {domain, type, protocol}};
  const auto made = ringbolt::rsocket::create_socket(domain, type, protocol);
  return made ? answer(descriptors().add(*made), call, nullptr) : refuse(made.error().value, call, nullptr);
} catch (...) {
  return ringbolt::base::caught_minus_one();
}

int rbind(int socket, const sockaddr* addr, socklen_t addrlen) try {
  return with_address(__func__, socket, addr, addrlen,
                      [](Socket& s, const Address& address) { return s.bind(address); });
} catch (...) {
  return ringbolt::base::caught_minus_one();
}

int rlisten(int socket, int backlog) try {
  return with({__func__, socket, "backlog {}", {backlog}}, [&](Socket& s) { return s.listen(backlog); });
} catch (...) {
  return ringbolt::base::caught_minus_one();
}

int raccept(int socket, sockaddr* addr, socklen_t* addrlen) try {
  return with({__func__, socket}, [&](Socket& s) -> Result<int> {
    const auto made = s.accept();
    if (!made) {
      return ringbolt::base::fail(made.error().value);
    }
    if (addr != nullptr) {
      if (const auto peer = (*made)->peer_name()) {
        peer->copy_to(addr, addrlen);
      }
    }
    return descriptors().add(*made);
  });
} catch (...) {
  return ringbolt::base::caught_minus_one();
}

int rconnect(int socket, const sockaddr* addr, socklen_t addrlen) try {
  return with_address(__func__, socket, addr, addrlen,
                      [](Socket& s, const Address& address) { return s.connect(address); });
} catch (...) {
  return ringbolt::base::caught_minus_one();
}

int rshutdown(int socket, int how) try {
  return with({__func__, socket, "how {}", {how}}, [&](Socket& s) { return s.shut_down(how); });
} catch (...) {
  return ringbolt::base::caught_minus_one();
}

int rclose(int socket) try {
  // First: no other call finds it, and the number is the program's to lose once. It stays open until the last call is
  // over.
  const auto found = descriptors().remove(socket);
  if (found == nullptr) {
    return refuse(EBADF, {__func__, socket}, nullptr);
  }
  found->close();
  return 0;
} catch (...) {
  return ringbolt::base::caught_minus_one();
}

ssize_t rrecv(int socket, void* buf, size_t len, int flags) try {
  const iovec piece{buf, len};
  return receive_pieces(__func__, socket, &piece, 1, flags, nullptr, nullptr);
} catch (...) {
  return ringbolt::base::caught_minus_one();
}

ssize_t rrecvfrom(int socket, void* buf, size_t len, int flags, sockaddr* src_addr, socklen_t* addrlen) try {
  const iovec piece{buf, len};
  return receive_pieces(__func__, socket, &piece, 1, flags, src_addr, addrlen);
} catch (...) {
  return ringbolt::base::caught_minus_one();
}

ssize_t rrecvmsg(int socket, msghdr* msg, int flags) try {
  // There are no control messages (cmsg(3)).
  if (msg == nullptr || (msg->msg_control != nullptr && msg->msg_controllen > 0)) {
    return refuse(msg == nullptr ? EFAULT : EOPNOTSUPP, {__func__, socket, "flags {:#x}", {flags}});
  }
  msg->msg_flags = 0;
  auto* name = static_cast<sockaddr*>(msg->msg_name);
  return receive_pieces(__func__, socket, msg->msg_iov, msg->msg_iovlen, flags, name, &msg->msg_namelen);
} catch (...) {
  return ringbolt::base::caught_minus_one();
}

ssize_t rread(int socket, void* buf, size_t count) try {
  const iovec piece{buf, count};
  return receive_pieces(__func__, socket, &piece, 1, 0, nullptr, nullptr);
} catch (...) {
  return ringbolt::base::caught_minus_one();
}

ssize_t rreadv(int socket, const iovec* iov, int iovcnt) try {
  return iovcnt < 0 ? refuse(EINVAL, {__func__, socket, "{} pieces", {iovcnt}})
                    : receive_pieces(__func__, socket, iov, static_cast<size_t>(iovcnt), 0, nullptr, nullptr);
} catch (...) {
  return ringbolt::base::caught_minus_one();
}

ssize_t rsend(int socket, const void* buf, size_t len, int flags) try {
  const iovec piece{const_cast<void*>(buf), len};
  return send_pieces(__func__, socket, &piece, 1, flags, nullptr, 0);
} catch (...) {
  return ringbolt::base::caught_minus_one();
}

ssize_t rsendto(int socket, const void* buf, size_t len, int flags, const sockaddr* dest_addr, socklen_t addrlen) try {
  const iovec piece{const_cast<void*>(buf), len};
  return send_pieces(__func__, socket, &piece, 1, flags, dest_addr, addrlen);
} catch (...) {
  return ringbolt::base::caught_minus_one();
}

ssize_t rsendmsg(int socket, const msghdr* msg, int flags) try {
  if (msg == nullptr || (msg->msg_control != nullptr && msg->msg_controllen > 0)) {
    return refuse(msg == nullptr ? EFAULT : EOPNOTSUPP, {__func__, socket, "flags {:#x}", {flags}});
  }
  const auto* name = static_cast<const sockaddr*>(msg->msg_name);
  return send_pieces(__func__, socket, msg->msg_iov, msg->msg_iovlen, flags, name, msg->msg_namelen);
} catch (...) {
  return ringbolt::base::caught_minus_one();
}

ssize_t rwrite(int socket, const void* buf, size_t count) try {
  const iovec piece{const_cast<void*>(buf), count};
  return send_pieces(__func__, socket, &piece, 1, 0, nullptr, 0);
} catch (...) {
  return ringbolt::base::caught_minus_one();
}

ssize_t rwritev(int socket, const iovec* iov, int iovcnt) try {
  return iovcnt < 0 ? refuse(EINVAL, {__func__, socket, "{} pieces", {iovcnt}})
                    : send_pieces(__func__, socket, iov, static_cast<size_t>(iovcnt), 0, nullptr, 0);
} catch (...) {
  return ringbolt::base::caught_minus_one();
}

int rpoll(pollfd* fds, nfds_t nfds, int timeout) try {
  const Call call{__func__, Call::kNoDescriptor, "{} descriptors", {static_cast<int64_t>(nfds)}};
  return answer(ringbolt::rsocket::poll_all(descriptors(), fds, nfds, timeout), call, nullptr);
} catch (...) {
  return ringbolt::base::caught_minus_one();
}

int rselect(int nfds, fd_set* readfds, fd_set* writefds, fd_set* exceptfds, timeval* timeout) try {
  const Call call{__func__, Call::kNoDescriptor, "nfds {}", {nfds}};
  return answer(ringbolt::rsocket::select_all(descriptors(), nfds, readfds, writefds, exceptfds, timeout), call,
                nullptr);
} catch (...) {
  return ringbolt::base::caught_minus_one();
}

int rgetpeername(int socket, sockaddr* addr, socklen_t* addrlen) try {
  return tell_address(__func__, socket, addr, addrlen, [](Socket& s) { return s.peer_name(); });
} catch (...) {
  return ringbolt::base::caught_minus_one();
}

int rgetsockname(int socket, sockaddr* addr, socklen_t* addrlen) try {
  return tell_address(__func__, socket, addr, addrlen, [](Socket& s) { return s.own_name(); });
} catch (...) {
  return ringbolt::base::caught_minus_one();
}

int rsetsockopt(int socket, int level, int optname, const void* optval, socklen_t optlen) try {
  return with({__func__, socket, "level {}, option {}", {level, optname}},
              [&](Socket& s) { return s.set_option(level, optname, optval, optlen); });
} catch (...) {
  return ringbolt::base::caught_minus_one();
}

int rgetsockopt(int socket, int level, int optname, void* optval, socklen_t* optlen) try {
  return with({__func__, socket, "level {}, option {}", {level, optname}},
              [&](Socket& s) { return s.get_option(level, optname, optval, optlen); });
} catch (...) {
  return ringbolt::base::caught_minus_one();
}

int rfcntl(int socket, int cmd, ...) try {
  va_list arguments;
  va_start(arguments, cmd);
  // Other commands have no argument, or one of another type.
  const int flags = cmd == F_SETFL ? va_arg(arguments, int) : 0;
  va_end(arguments);
  return with({__func__, socket, "command {}", {cmd}}, [&](Socket& s) -> Result<int> {
    if (cmd == F_GETFL) {
      return s.file_flags();
    }
    if (cmd != F_SETFL) {
      return ringbolt::base::fail(EOPNOTSUPP);
    }
    const auto status = s.set_file_flags(flags);
    return status ? Result<int>(0) : ringbolt::base::fail(status.error().value);
  });
} catch (...) {
  return ringbolt::base::caught_minus_one();
}

off_t riomap(int socket, void* buf, size_t len, int prot, int, off_t offset) try {
  return with({__func__, socket, "{} bytes, protection {}, offset {}", {static_cast<int64_t>(len), prot, offset}},
              [&](Socket& s) { return s.map(buf, len, prot, offset); });
} catch (...) {
  return ringbolt::base::caught_minus_one();
}

int riounmap(int socket, void* buf, size_t len) try {
  return with({__func__, socket, "{} bytes", {static_cast<int64_t>(len)}},
              [&](Socket& s) { return s.unmap(buf, len); });
} catch (...) {
  return ringbolt::base::caught_minus_one();
}

size_t riowrite(int socket, const void* buf, size_t count, off_t offset, int flags) try {
  const iovec piece{const_cast<void*>(buf), count};
  const Call call{__func__, socket, "{} bytes, offset {}, flags {:#x}", {static_cast<int64_t>(count), offset, flags}};
  const ssize_t written = with(call, [&](Socket& s) -> Result<ssize_t> {
    const auto cursor = IoCursor::over(&piece, 1);
    return cursor ? signed_size(s.write_mapped(*cursor, offset, flags)) : ringbolt::base::fail(EINVAL);
  });
  return static_cast<size_t>(written);  // -1 as the header has it: the largest number
} catch (...) {
  return static_cast<size_t>(ringbolt::base::caught_minus_one());
}

}  // extern "C"
