#include "link/udp_message.h"

#include <arpa/inet.h>
#include <netinet/udp.h>

#include <cstring>

#include "base/assert.h"

namespace ringbolt::link {
namespace {

bool is_link_local(const wire::Address& address) { return address[0] == 0xfe && (address[1] & 0xc0U) == 0x80; }

}  // namespace

template <class Value>
void UdpMessageHeader::append(int level, int type, const Value& value) {
  RINGBOLT_ASSERT(control_length_ + CMSG_SPACE(sizeof value) <= control_.size());
  cmsghdr header{};
  header.cmsg_len = CMSG_LEN(sizeof value);
  header.cmsg_level = level;
  header.cmsg_type = type;
  std::memcpy(control_.data() + control_length_, &header, sizeof header);
  std::memcpy(control_.data() + control_length_ + CMSG_LEN(0), &value, sizeof value);
  control_length_ += CMSG_SPACE(sizeof value);
}

void UdpMessageHeader::set(const UdpPath& path, uint16_t port, uint16_t segment_bytes) {
  control_length_ = 0;
  if (wire::is_ipv4(path.destination)) {
    address_.v4 = {};
    address_.v4.sin_family = AF_INET;
    address_.v4.sin_port = htons(port);
    std::memcpy(&address_.v4.sin_addr, path.destination.data() + 12, 4);
    address_length_ = sizeof address_.v4;
    in_pktinfo info{};
    info.ipi_ifindex = static_cast<int>(path.interface_index);
    std::memcpy(&info.ipi_spec_dst, path.source.data() + 12, 4);
    append(IPPROTO_IP, IP_PKTINFO, info);
    if (path.traffic_class != 0) {
      append(IPPROTO_IP, IP_TOS, int{path.traffic_class});
    }
  } else {
    address_.v6 = {};
    address_.v6.sin6_family = AF_INET6;
    address_.v6.sin6_port = htons(port);
    address_.v6.sin6_scope_id = is_link_local(path.destination) ? path.interface_index : 0;
    std::memcpy(&address_.v6.sin6_addr, path.destination.data(), 16);
    address_length_ = sizeof address_.v6;
    in6_pktinfo info{};
    info.ipi6_ifindex = path.interface_index;
    std::memcpy(&info.ipi6_addr, path.source.data(), 16);
    append(IPPROTO_IPV6, IPV6_PKTINFO, info);
    if (path.traffic_class != 0) {
      append(IPPROTO_IPV6, IPV6_TCLASS, int{path.traffic_class});
    }
  }
  if (segment_bytes > 0) {
    append(IPPROTO_UDP, UDP_SEGMENT, segment_bytes);
  }
}

void UdpMessageHeader::attach(msghdr& header, iovec& bytes) {
  header.msg_flags = 0;
  header.msg_name = &address_;
  header.msg_namelen = address_length_;
  header.msg_iov = &bytes;
  header.msg_iovlen = 1;
  header.msg_control = control_.data();
  header.msg_controllen = control_length_;
}

}  // namespace ringbolt::link
