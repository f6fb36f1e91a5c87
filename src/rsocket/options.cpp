#include "rsocket/options.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <rdma/rsocket.h>

#include <cerrno>
#include <cstring>
#include <optional>

#include "rsocket/connection_data.h"

namespace ringbolt::rsocket {
namespace {

using base::fail;
using base::Result;

/// How long closing waits if SO_LINGER says nothing.
// A minute, as the kernel gives TCP's FIN_WAIT2 (tcp(7), tcp_fin_timeout).
constexpr uint64_t kLingerNs = 60'000'000'000;

/// A value that a program passed as bytes.
template <class T>
std::optional<T> value_of(const void* value, socklen_t length) {
  T out{};
  if (value == nullptr || length < sizeof out) {
    return std::nullopt;
  }
  std::memcpy(&out, value, sizeof out);
  return out;
}

template <class T>
Result<void> store(T& place, const void* value, socklen_t length) {
  const auto given = value_of<T>(value, length);
  if (!given) {
    return fail(EINVAL);
  }
  place = *given;
  return {};
}

Result<void> store_flag(int& place, const void* value, socklen_t length) {
  const auto result = store(place, value, length);
  place = place != 0 ? 1 : 0;
  return result;
}

Result<void> store_time(timeval& place, const void* value, socklen_t length) {
  const auto given = value_of<timeval>(value, length);
  if (!given) {
    return fail(EINVAL);
  }
  if (given->tv_sec < 0 || given->tv_usec < 0 || given->tv_usec >= 1'000'000) {
    return fail(EDOM);
  }
  place = *given;
  return {};
}

/// Linux doubles what it is told and reports that; programs have got used to it.
Result<void> store_buffer(uint32_t& place, const void* value, socklen_t length, bool is_fixed) {
  const auto given = value_of<int>(value, length);
  if (!given || *given < 0) {
    return fail(EINVAL);
  }
  // Else the value counts for nothing, and the call is no error, as for a connected TCP socket.
  if (!is_fixed) {
    place = Settings::buffer_bytes(2 * static_cast<uint64_t>(*given));
  }
  return {};
}

}  // namespace

Deadline Options::linger_deadline() const {
  const auto seconds = static_cast<uint64_t>(std::max(linger_time.l_linger, 0));
  return Deadline::in_ns(linger_time.l_onoff != 0 ? seconds * 1'000'000'000U : kLingerNs);
}

Result<void> Options::set(int level, int name, const void* value, socklen_t length, bool is_fixed) {
  switch (level) {
    case SOL_SOCKET:
      return set_socket(name, value, length, is_fixed);
    case IPPROTO_TCP:
      return set_tcp(name, value, length);
    case IPPROTO_IPV6:
      return name == IPV6_V6ONLY ? store_flag(ipv6_only, value, length) : fail(ENOPROTOOPT);
    case SOL_RDMA:
      return set_rdma(name, value, length, is_fixed);
    default:
      return fail(ENOPROTOOPT);
  }
}

Result<void> Options::set_socket(int name, const void* value, socklen_t length, bool is_fixed) {
  switch (name) {
    case SO_REUSEADDR:
      return store_flag(reuse_address, value, length);
    case SO_RCVBUF:
      return store_buffer(settings.receive_bytes, value, length, is_fixed);
    case SO_SNDBUF:
      return store_buffer(settings.send_bytes, value, length, is_fixed);
    case SO_LINGER:
      return store(linger_time, value, length);
    case SO_KEEPALIVE:
      return store_flag(keepalive, value, length);
    case SO_OOBINLINE:
      return store_flag(oob_inline, value, length);
    case SO_RCVTIMEO:
      return store_time(receive_timeout, value, length);
    case SO_SNDTIMEO:
      return store_time(send_timeout, value, length);
    default:
      return fail(ENOPROTOOPT);
  }
}

Result<void> Options::set_tcp(int name, const void* value, socklen_t length) {
  const auto given = value_of<int>(value, length);
  switch (name) {
    case TCP_NODELAY:  // nothing is ever held back
      return store_flag(no_delay, value, length);
    case TCP_KEEPIDLE:
      if (!given || *given <= 0) {
        return fail(EINVAL);
      }
      keepalive_idle_s = *given;
      return {};
    case TCP_KEEPCNT:    // the device repeats,
    case TCP_KEEPINTVL:  // as often as the connection manager told it,
    case TCP_MAXSEG:     // and cuts what it sends to the path's MTU
      return given ? Result<void>{} : fail(EINVAL);
    default:
      return fail(ENOPROTOOPT);
  }
}

Result<void> Options::set_rdma(int name, const void* value, socklen_t length, bool is_fixed) {
  if (is_fixed) {
    return fail(EINVAL);
  }
  if (name == RDMA_ROUTE) {
    if (value == nullptr || length < sizeof(ibv_path_data) || length % sizeof(ibv_path_data) != 0) {
      return fail(EINVAL);
    }
    route.resize(length / sizeof(ibv_path_data));
    std::memcpy(route.data(), value, length);
    return {};
  }
  const auto given = value_of<int>(value, length);
  if (!given || *given < 0) {
    return fail(EINVAL);
  }
  const auto number = static_cast<uint32_t>(*given);
  switch (name) {
    case RDMA_SQSIZE:
      settings.send_depth = Settings::depth(number);
      return {};
    case RDMA_RQSIZE:
      settings.receive_depth = Settings::depth(number);
      return {};
    case RDMA_INLINE:
      settings.inline_bytes = std::min(number, Settings::kMaxDepth);
      return {};
    case RDMA_IOMAPSIZE:
      settings.iomap_entries = round_iomap_entries(number);
      return {};
    default:
      return fail(ENOPROTOOPT);
  }
}

Result<void> Options::get(int level, int name, void* value, socklen_t* length) const {
  const auto number = [&](uint32_t n) { return put_option(static_cast<int>(n), value, length); };
  const auto flag = [&](int n) { return put_option(n, value, length); };
  const auto plain = [&](const auto& from) { return put_option(&from, sizeof from, value, length); };
  // clang-format off
  switch (level) {
    case SOL_SOCKET:
      switch (name) {
        case SO_REUSEADDR: return flag(reuse_address);
        case SO_KEEPALIVE: return flag(keepalive);
        case SO_OOBINLINE: return flag(oob_inline);
        case SO_RCVBUF:    return number(settings.receive_bytes);
        case SO_SNDBUF:    return number(settings.send_bytes);
        case SO_LINGER:    return plain(linger_time);
        case SO_RCVTIMEO:  return plain(receive_timeout);
        case SO_SNDTIMEO:  return plain(send_timeout);
        default:           return fail(ENOPROTOOPT);
      }
    case IPPROTO_TCP:
      switch (name) {
        case TCP_NODELAY:   return flag(no_delay);
        case TCP_KEEPIDLE:  return flag(keepalive_idle_s);
        case TCP_KEEPCNT:
        case TCP_KEEPINTVL: return flag(1);
        default:            return fail(ENOPROTOOPT);
      }
    case IPPROTO_IPV6:
      return name == IPV6_V6ONLY ? flag(ipv6_only) : fail(ENOPROTOOPT);
    case SOL_RDMA:
      switch (name) {
        case RDMA_SQSIZE:    return number(settings.send_depth);
        case RDMA_RQSIZE:    return number(settings.receive_depth);
        case RDMA_INLINE:    return number(settings.inline_bytes);
        case RDMA_IOMAPSIZE: return number(settings.iomap_entries);
        default:             return fail(ENOPROTOOPT);
      }
    default:
      return fail(ENOPROTOOPT);
  }
  // clang-format on
}

Result<void> put_option(const void* from, size_t bytes, void* value, socklen_t* length) {
  if (value == nullptr || length == nullptr) {
    return fail(EFAULT);
  }
  if (bytes > 0) {  // else there may be no `from`: a route without paths
    std::memcpy(value, from, std::min<size_t>(bytes, *length));
  }
  *length = static_cast<socklen_t>(bytes);
  return {};
}

}  // namespace ringbolt::rsocket
