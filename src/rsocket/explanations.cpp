#include "rsocket/explanations.h"

#include <fcntl.h>

#include <array>
#include <cstring>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/explain.h"

namespace ringbolt::rsocket {
namespace {

using base::Explanation;

std::string text_of_address(const base::Result<Address>& address) {
  if (!address) {
    return {};
  }
  std::array<char, INET6_ADDRSTRLEN> text{};
  const bool is_ipv4 = address->family() == AF_INET;
  const auto& ipv4 = reinterpret_cast<const sockaddr_in&>(address->storage);
  const auto& ipv6 = reinterpret_cast<const sockaddr_in6&>(address->storage);
  ::inet_ntop(address->family(), is_ipv4 ? static_cast<const void*>(&ipv4.sin_addr) : &ipv6.sin6_addr, text.data(),
              text.size());
  return is_ipv4 ? fmt::format("{}:{}", text.data(), ntohs(ipv4.sin_port))
                 : fmt::format("[{}]:{}", text.data(), ntohs(ipv6.sin6_port));
}

/// What the program can find out by itself about the socket, in words.
std::string state_of(Socket& socket) {
  if (const auto peer = socket.peer_name()) {
    return "connected to " + text_of_address(peer);
  }
  const auto own = socket.own_name();
  return own && reinterpret_cast<const sockaddr_in&>(own->storage).sin_port != 0  // of both families it is there
             ? "bound to " + text_of_address(own) + ", and not connected"
             : "neither bound nor connected";
}

Explanation why_no_socket(int descriptor) {
  const bool is_open = ::fcntl(descriptor, F_GETFD) >= 0;
  return {fmt::format("{} is {}", descriptor,
                      is_open ? "a descriptor of something else, and no rsocket" : "no descriptor that is open"),
          "give what rsocket or raccept has returned, until rclose; other descriptors take the calls without r"};
}

std::string and_state(std::string text, const std::string& state) {
  return state.empty() ? std::move(text) : std::move(text) + "; it is " + state;
}

/// `state`: of the socket; empty where there is none.
Explanation why_of(int error, const Call& call, const std::string& state) {
  switch (error) {
    case ENOTCONN:
      return {"it is " + state,
              "call rconnect first and let it end (one that doesn't block has when rpoll says POLLOUT), or take the "
              "rsocket that raccept returns"};
    case EISCONN:
      return {"it is " + state + " already", "go on with this connection, or make an rsocket for another one"};
    case EPIPE:
      return {"it is " + state + "; nothing more can be sent: rshutdown was called here, or the peer has closed",
              "send before rshutdown(SHUT_WR), and stop when rrecv returns 0"};
    case ECONNRESET:
      return {"the connection broke: the peer's process has ended without rclose, or nothing reaches it any more",
              "look at the peer's output, then connect anew"};
    case EADDRINUSE:
      return {"another socket has that address and port",
              "end the other program, or take another port; 0 gives a free one"};
    case EADDRNOTAVAIL:
      return {"this machine does not have that address", "take an address that `ringbolt devices` shows, or 0.0.0.0"};
    case EDESTADDRREQ:
      return {"it is " + state + ", and the call names nobody", "give rsendto an address, or call rconnect before"};
    case EMSGSIZE:
      return {"the datagram has more bytes than one packet of the device carries",
              "send less at once; the port's active_mtu less 40 fits everywhere"};
    case EFAULT:
      return {"a pointer that has to be there is NULL", "give room for the answer, and for its length"};
    case ENOPROTOOPT:
      return {"there is no such option", "docs/rsockets.md has those that there are"};
    case EDOM:
      return {"the value is out of the option's range", "give seconds and microseconds below 1000000, none negative"};
    case EOPNOTSUPP:
      return {
          fmt::format("{} knows no such argument, flag or control message, or not for this type of rsocket", call.name),
          "leave it out; docs/rsockets.md has what there is"};
    case EINVAL:
      return {
          and_state("an argument is none that the call takes, or it comes in another order", state),
          "correct it; addresses are whole sockaddr_in or sockaddr_in6, and the order is rbind, rlisten, raccept, or "
          "rconnect"};
    default:
      return {and_state(fmt::format("{} ({})", std::strerror(error), error), state),
              "look at what was said before this, of rdma_cm or the verbs"};
  }
}

bool is_stream(Socket& socket) {
  int type = 0;
  socklen_t length = sizeof type;
  return socket.get_option(SOL_SOCKET, SO_TYPE, &type, &length) && type == SOCK_STREAM;
}

/// The connection manager beneath a stream has said it, with the same place in the program and more numbers: by its
/// event, or where it refused a call of ours.
bool is_told_beneath(int error, std::string_view call, Socket& socket) {
  switch (error) {
    case EADDRINUSE:
    case EADDRNOTAVAIL:
      return (call == "rbind" || call == "rlisten" || call == "rconnect") && is_stream(socket);
    case ECONNREFUSED:
    case ETIMEDOUT:
    case ECONNABORTED:
    case EHOSTUNREACH:
    case ENETUNREACH:
      return call == "rconnect" && is_stream(socket);
    default:
      return false;
  }
}

}  // namespace

int refuse(int error, const Call& call, Socket* socket) noexcept {
  const bool is_to_wait = error == EAGAIN || error == EINPROGRESS || error == EALREADY || error == EINTR;
  if (!is_to_wait) {
    base::when_explaining([&] {
      if (socket != nullptr && is_told_beneath(error, call.name, *socket)) {
        return;
      }
      base::Incident incident;
      incident.call = call.name;
      incident.object = call.descriptor == Call::kNoDescriptor ? "" : fmt::format("rsocket {}", call.descriptor);
      incident.error = error;
      const bool is_no_socket = socket == nullptr && error == EBADF && call.descriptor != Call::kNoDescriptor;
      Explanation why = is_no_socket ? why_no_socket(call.descriptor)
                                     : why_of(error, call, socket == nullptr ? "" : state_of(*socket));
      if (!is_no_socket && call.arguments[0] != 0) {
        why.why +=
            " (" + fmt::format(fmt::runtime(call.arguments), call.numbers[0], call.numbers[1], call.numbers[2]) + ")";
      }
      base::explain(incident, why);
    });
  }
  errno = error;
  return -1;
}

}  // namespace ringbolt::rsocket
