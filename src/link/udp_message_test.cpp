#include "link/udp_message.h"

#include <gtest/gtest.h>
#include <netinet/udp.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <random>

namespace ringbolt::link {
namespace {

/// What a message tells the kernel besides its bytes, found by the macros with which the kernel's own users do.
struct ToldToKernel {
  std::optional<in_pktinfo> ipv4;
  std::optional<in6_pktinfo> ipv6;
  std::optional<int> traffic_class;
  std::optional<uint16_t> segment_bytes;
};

template <class Value>
void take_told(const cmsghdr* control, std::optional<Value>& value) {
  EXPECT_FALSE(value) << "told twice";
  EXPECT_EQ(control->cmsg_len, CMSG_LEN(sizeof(Value)));
  std::memcpy(&value.emplace(), CMSG_DATA(control), sizeof(Value));
}

ToldToKernel told_by(msghdr& header) {
  ToldToKernel told;
  for (cmsghdr* control = CMSG_FIRSTHDR(&header); control != nullptr; control = CMSG_NXTHDR(&header, control)) {
    if (control->cmsg_level == IPPROTO_IP && control->cmsg_type == IP_PKTINFO) {
      take_told(control, told.ipv4);
    } else if (control->cmsg_level == IPPROTO_IPV6 && control->cmsg_type == IPV6_PKTINFO) {
      take_told(control, told.ipv6);
    } else if ((control->cmsg_level == IPPROTO_IP && control->cmsg_type == IP_TOS) ||
               (control->cmsg_level == IPPROTO_IPV6 && control->cmsg_type == IPV6_TCLASS)) {
      EXPECT_EQ(control->cmsg_level == IPPROTO_IP, told.ipv4.has_value()) << "that of the other family";
      take_told(control, told.traffic_class);
    } else if (control->cmsg_level == IPPROTO_UDP && control->cmsg_type == UDP_SEGMENT) {
      take_told(control, told.segment_bytes);
    } else {
      ADD_FAILURE() << "level " << control->cmsg_level << " type " << control->cmsg_type;
    }
  }
  return told;
}

wire::Address some_address(bool is_ipv4, std::mt19937& random) {
  const auto byte = [&] { return static_cast<uint8_t>(random()); };
  wire::Address address = wire::ipv4_address(byte(), byte(), byte(), byte());
  if (!is_ipv4) {
    std::generate(address.begin(), address.end(), byte);
    address[0] = 0x20;  // neither a mapped IPv4 address nor a link-local one
  }
  return address;
}

TEST(UdpMessageHeader, tells_the_kernel_this_path_and_nothing_of_the_one_before) {
  std::mt19937 random(1);
  UdpMessageHeader message;  // used again and again, as a batch does: nothing is cleared in between
  for (int i = 0; i < 1000; ++i) {
    const bool is_ipv4 = random() % 2 == 0;
    UdpPath path{some_address(is_ipv4, random), some_address(is_ipv4, random), static_cast<uint32_t>(random() % 3),
                 static_cast<uint8_t>(random() % 2 == 0 ? 0 : random())};
    const auto port = static_cast<uint16_t>(random());
    const auto segment_bytes = static_cast<uint16_t>(random() % 2 == 0 ? 0 : random() % 4225);
    message.set(path, port, segment_bytes);
    msghdr header{};
    iovec bytes{};
    message.attach(header, bytes);
    ASSERT_EQ(header.msg_iov, &bytes);
    ASSERT_EQ(header.msg_iovlen, 1U);
    const ToldToKernel told = told_by(header);
    ASSERT_EQ(told.ipv4.has_value(), is_ipv4);
    ASSERT_EQ(told.ipv6.has_value(), !is_ipv4);
    EXPECT_EQ(told.traffic_class.value_or(0), path.traffic_class);
    EXPECT_EQ(told.segment_bytes.value_or(0), segment_bytes);
    if (is_ipv4) {
      sockaddr_in to{};
      ASSERT_EQ(header.msg_namelen, sizeof to);
      std::memcpy(&to, header.msg_name, sizeof to);
      EXPECT_EQ(to.sin_family, AF_INET);
      EXPECT_EQ(ntohs(to.sin_port), port);
      EXPECT_EQ(std::memcmp(&to.sin_addr, path.destination.data() + 12, 4), 0);
      EXPECT_EQ(std::memcmp(&told.ipv4->ipi_spec_dst, path.source.data() + 12, 4), 0);
      EXPECT_EQ(static_cast<uint32_t>(told.ipv4->ipi_ifindex), path.interface_index);
    } else {
      sockaddr_in6 to{};
      ASSERT_EQ(header.msg_namelen, sizeof to);
      std::memcpy(&to, header.msg_name, sizeof to);
      EXPECT_EQ(to.sin6_family, AF_INET6);
      EXPECT_EQ(ntohs(to.sin6_port), port);
      EXPECT_EQ(to.sin6_scope_id, 0U) << "of an address that is good on every interface";
      EXPECT_EQ(std::memcmp(&to.sin6_addr, path.destination.data(), 16), 0);
      EXPECT_EQ(std::memcmp(&told.ipv6->ipi6_addr, path.source.data(), 16), 0);
      EXPECT_EQ(told.ipv6->ipi6_ifindex, path.interface_index);
    }
  }
}

TEST(UdpMessageHeader, link_local_destinations_alone_have_a_scope) {
  // RFC 4291, 2.5.6: fe80::/10.
  for (const auto& [second, has_scope] : {std::pair{0x7fU, false}, {0x80U, true}, {0xbfU, true}, {0xc0U, false}}) {
    UdpPath path;
    path.destination = {0xfe, static_cast<uint8_t>(second)};
    path.destination[15] = 1;
    path.interface_index = 7;
    UdpMessageHeader message;
    message.set(path, 4791, 0);
    msghdr header{};
    iovec bytes{};
    message.attach(header, bytes);
    sockaddr_in6 to{};
    std::memcpy(&to, header.msg_name, sizeof to);
    EXPECT_EQ(to.sin6_scope_id, has_scope ? 7U : 0U) << second;
  }
}

}  // namespace
}  // namespace ringbolt::link
