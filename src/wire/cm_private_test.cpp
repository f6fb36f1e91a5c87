#include "wire/cm_private.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cerrno>

#include "wire/golden_support.h"

namespace ringbolt::wire {
namespace {

using golden::Bytes;
using In = std::span<const std::byte, kCmIpHeaderBytes>;
using Out = std::span<std::byte, kCmIpHeaderBytes>;

Bytes emitted(const CmIpHeader& header) {
  Bytes bytes(kCmIpHeaderBytes, std::byte{0xee});
  emit(header, Out(bytes));
  return bytes;
}

TEST(CmServiceId, holds_port_space_and_port) {
  const uint64_t id = cm_service_id(kPortSpaceTcp, 9001);
  EXPECT_EQ(id, 0x0000000001062329U);
  EXPECT_EQ(cm_service_port(id), 9001);
  EXPECT_EQ(cm_port_space(id), kPortSpaceTcp);
  EXPECT_EQ(cm_port_space(0x1000000001062329), 0) << "not one of rdma_cm's";
}

TEST(CmIpHeader, ipv4_lies_in_the_last_four_bytes) {
  const Bytes bytes = golden::from_hex(
      "00 40 8db5 000000000000000000000000 0a4d0001"
      "000000000000000000000000 0a4d0002");
  const CmIpHeader header{36277, ipv4_address(10, 77, 0, 1), ipv4_address(10, 77, 0, 2)};
  EXPECT_EQ(emitted(header), bytes);
  EXPECT_EQ(parse_cm_ip_header(In(bytes)).value(), header);
}

TEST(CmIpHeader, ipv6_lies_there_literally) {
  const Bytes bytes = golden::from_hex(
      "00 60 0db9 fd770000000000000000000000000001"
      "fd770000000000000000000000000002");
  CmIpHeader header{0x0db9, {0xfd, 0x77}, {0xfd, 0x77}};
  header.source[15] = 1;
  header.destination[15] = 2;
  EXPECT_EQ(emitted(header), bytes);
  EXPECT_EQ(parse_cm_ip_header(In(bytes)).value(), header);
}

TEST(CmIpHeader, of_another_version_is_refused) {
  const Bytes good = emitted({1, ipv4_address(1, 2, 3, 4), ipv4_address(5, 6, 7, 8)});
  for (unsigned version = 1; version < 256; ++version) {
    Bytes bytes = good;
    bytes[0] = static_cast<std::byte>(version);
    EXPECT_EQ(parse_cm_ip_header(In(bytes)).error().value, EPROTONOSUPPORT) << version;
  }
  for (unsigned ip_version = 0; ip_version < 16; ++ip_version) {
    Bytes bytes = good;
    bytes[1] = static_cast<std::byte>(ip_version << 4);
    EXPECT_EQ(parse_cm_ip_header(In(bytes)).has_value(), ip_version == 4 || ip_version == 6) << ip_version;
  }
}

RC_GTEST_PROP(CmIpHeaderProperty, comes_back_as_it_was,
              (uint16_t port, const Address& a, const Address& b, bool is_v4)) {
  const auto gid = [&](const Address& x) { return is_v4 ? ipv4_address(x[0], x[1], x[2], x[3]) : x; };
  const CmIpHeader header{port, gid(a), gid(b)};
  RC_ASSERT(parse_cm_ip_header(In(emitted(header))).value() == header);
}

}  // namespace
}  // namespace ringbolt::wire
