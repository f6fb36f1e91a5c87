// rdma_getaddrinfo: the C library's getaddrinfo in the words of rdma_cm.

#include <netdb.h>
#include <rdma/rdma_cma.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "base/c_border.h"

namespace ringbolt::rdmacm {
namespace {

struct FreeInfo {
  void operator()(rdma_addrinfo* info) const { rdma_freeaddrinfo(info); }
};
using OwnedInfo = std::unique_ptr<rdma_addrinfo, FreeInfo>;

// Each piece in a block of its own: rdma_freeaddrinfo() frees them one by one, as rdma-core's does.
bool copy_address(const sockaddr* from, socklen_t length, sockaddr*& to, socklen_t& to_length) {
  to = static_cast<sockaddr*>(std::calloc(1, length));
  if (to == nullptr) {
    return false;
  }
  std::memcpy(to, from, length);
  to_length = length;
  return true;
}

addrinfo libc_hints(const rdma_addrinfo& hints) {
  addrinfo result{};
  result.ai_family = hints.ai_family;
  result.ai_flags = ((hints.ai_flags & RAI_PASSIVE) != 0 ? AI_PASSIVE : 0) |
                    ((hints.ai_flags & RAI_NUMERICHOST) != 0 ? AI_NUMERICHOST : 0);
  const bool is_datagram =
      hints.ai_qp_type == IBV_QPT_UD || hints.ai_port_space == RDMA_PS_UDP || hints.ai_port_space == RDMA_PS_IPOIB;
  const bool is_stream = hints.ai_qp_type != 0 || hints.ai_port_space != 0;
  // 0 would bring each address three times.
  result.ai_socktype = is_datagram ? SOCK_DGRAM : (is_stream ? SOCK_STREAM : 0);
  return result;
}

/// 0 or an EAI code.
int convert(const addrinfo& from, const rdma_addrinfo& hints, rdma_addrinfo& info) {
  const bool is_datagram = from.ai_socktype == SOCK_DGRAM;
  info.ai_family = from.ai_family;
  info.ai_qp_type = hints.ai_qp_type != 0 ? hints.ai_qp_type : (is_datagram ? IBV_QPT_UD : IBV_QPT_RC);
  info.ai_port_space = hints.ai_port_space != 0 ? hints.ai_port_space : (is_datagram ? RDMA_PS_UDP : RDMA_PS_TCP);
  const bool is_passive = (hints.ai_flags & RAI_PASSIVE) != 0;
  char*& name = is_passive ? info.ai_src_canonname : info.ai_dst_canonname;
  name = from.ai_canonname == nullptr ? nullptr : strdup(from.ai_canonname);
  const bool is_copied = is_passive ? copy_address(from.ai_addr, from.ai_addrlen, info.ai_src_addr, info.ai_src_len)
                                    : copy_address(from.ai_addr, from.ai_addrlen, info.ai_dst_addr, info.ai_dst_len);
  return is_copied ? 0 : EAI_MEMORY;
}

int look_up(const char* node, const char* service, const rdma_addrinfo& hints, rdma_addrinfo& info) {
  const addrinfo wanted = libc_hints(hints);
  addrinfo* found = nullptr;
  if (const int error = getaddrinfo(node, service, &wanted, &found)) {
    return error;
  }
  // The first one alone, in the C library's order of preference (RFC 6724).
  const int error = convert(*found, hints, info);
  freeaddrinfo(found);
  return error;
}

int take_over(const rdma_addrinfo& hints, rdma_addrinfo& info) {
  info.ai_family = hints.ai_family;
  info.ai_qp_type = hints.ai_qp_type;
  info.ai_port_space = hints.ai_port_space;
  if (hints.ai_dst_len != 0 && !copy_address(hints.ai_dst_addr, hints.ai_dst_len, info.ai_dst_addr, info.ai_dst_len)) {
    return EAI_MEMORY;
  }
  return 0;
}

}  // namespace
}  // namespace ringbolt::rdmacm

extern "C" {

int rdma_getaddrinfo(const char* node, const char* service, const rdma_addrinfo* hints, rdma_addrinfo** result) try {
  using namespace ringbolt::rdmacm;
  if (node == nullptr && service == nullptr && hints == nullptr) {
    // The one error that is told by errno: all others are EAI codes, which rdma-core passes on as well.
    errno = EINVAL;
    return -1;
  }
  OwnedInfo info(static_cast<rdma_addrinfo*>(std::calloc(1, sizeof(rdma_addrinfo))));
  if (info == nullptr) {
    return EAI_MEMORY;
  }
  const rdma_addrinfo none{};
  const rdma_addrinfo& wanted = hints == nullptr ? none : *hints;
  info->ai_flags = wanted.ai_flags;
  const bool has_name = node != nullptr || service != nullptr;
  if (const int error = has_name ? look_up(node, service, wanted, *info) : take_over(wanted, *info)) {
    return error;
  }
  if (info->ai_src_len == 0 && wanted.ai_src_len != 0 &&
      !copy_address(wanted.ai_src_addr, wanted.ai_src_len, info->ai_src_addr, info->ai_src_len)) {
    return EAI_MEMORY;
  }
  *result = info.release();
  return 0;
} catch (...) {
  return ringbolt::base::caught_minus_one();
}

void rdma_freeaddrinfo(rdma_addrinfo* info) {
  while (info != nullptr) {
    rdma_addrinfo* next = info->ai_next;
    std::free(info->ai_src_addr);
    std::free(info->ai_dst_addr);
    std::free(info->ai_src_canonname);
    std::free(info->ai_dst_canonname);
    std::free(info->ai_route);
    std::free(info->ai_connect);
    std::free(info);
    info = next;
  }
}

}  // extern "C"
