#include "wire/cm_message.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string_view>

#include "wire/cm_private.h"
#include "wire/golden_support.h"
#include "wire/opcode.h"
#include "wire/packet.h"

namespace ringbolt::wire {
namespace {

using golden::Bytes;

constexpr uint64_t kTransaction = 0x207e81002;

MadIn mad_in(const Bytes& bytes) { return MadIn(bytes); }

/// All of the array behind `at`: what it begins with, then zeros.
template <size_t N>
std::array<std::byte, N> private_data(size_t at, std::string_view text) {
  std::array<std::byte, N> data{};
  std::memcpy(data.data() + at, text.data(), text.size());
  return data;
}

Bytes golden_mad(std::string_view name) {
  for (const golden::CmPacket& packet : golden::cm_packets()) {
    if (packet.name == name) {
      return golden::full_mad(packet);
    }
  }
  ADD_FAILURE() << "no packet " << name;
  return Bytes(kMadBytes);
}

Bytes emitted(const CmMad& message) {
  Bytes mad(kMadBytes, std::byte{0xee});
  emit(message, MadOut(mad));
  return mad;
}

void expect_both_ways(std::string_view name, const CmMad& message) {
  const Bytes mad = golden_mad(name);
  const auto read = parse_cm(mad_in(mad));
  ASSERT_TRUE(read.has_value()) << name;
  EXPECT_EQ(*read, message) << name;
  EXPECT_EQ(emitted(message), mad) << name;
}

TEST(CmMessage, every_golden_one_is_written_back_byte_by_byte) {
  for (const golden::CmPacket& packet : golden::cm_packets()) {
    const Bytes mad = golden::full_mad(packet);
    const auto read = parse_cm(mad_in(mad));
    ASSERT_TRUE(read.has_value()) << packet.name;
    EXPECT_EQ(emitted(*read), mad) << packet.name;
  }
}

TEST(CmMessage, golden_packets_are_datagrams_to_queue_pair_1) {
  for (const golden::Datagram& datagram : golden::cm_datagrams()) {
    const auto view = parse(datagram.packet);
    ASSERT_TRUE(view.has_value()) << datagram.name;
    EXPECT_EQ(view->headers.bth.opcode, kUdSendOnly);
    EXPECT_EQ(view->headers.bth.dest_qp, kGsiQpn);
    EXPECT_EQ(view->headers.deth, (Deth{kGsiQkey, kGsiQpn}));
    EXPECT_EQ(view->payload.size(), kMadBytes);
  }
}

TEST(CmMessage, golden_request) {
  CmReq req;
  req.local_id = 0x0210e807;
  req.service_id = cm_service_id(kPortSpaceTcp, 9001);
  req.local_guid = 0x505400fffe770001;
  req.local_qpn = 0x13;
  req.responder_resources = 2;
  req.initiator_depth = 1;
  req.remote_cm_timeout = 20;
  req.has_flow_control = true;
  req.starting_psn = 0x2fe36a;
  req.local_cm_timeout = 20;
  req.retry_count = 5;
  req.path_mtu = 3;
  req.rnr_retry_count = 6;
  req.max_cm_retries = 15;
  req.primary = {.local_lid = 0xffff,
                 .remote_lid = 0xffff,
                 .local_gid = ipv4_address(10, 77, 0, 1),
                 .remote_gid = ipv4_address(10, 77, 0, 2),
                 .flow_label = 0x14c14,
                 .hop_limit = 64,
                 .ack_timeout = 19};
  req.private_data = private_data<CmReq::kPrivateBytes>(kCmIpHeaderBytes, "clidata0123456789");
  const CmIpHeader ip{36277, ipv4_address(10, 77, 0, 1), ipv4_address(10, 77, 0, 2)};
  emit(ip, std::span(req.private_data).first<kCmIpHeaderBytes>());
  expect_both_ways("REQ", {kTransaction, req});
}

TEST(CmMessage, golden_reply) {
  CmRep rep;
  rep.local_id = 0xcf52bd02;
  rep.remote_id = 0x0210e807;
  rep.local_qpn = 0x12;
  rep.starting_psn = 0x3f2175;
  rep.responder_resources = 3;
  rep.initiator_depth = 2;
  rep.target_ack_delay = 15;
  rep.has_flow_control = true;
  rep.rnr_retry_count = 7;
  rep.local_guid = 0x505400fffe770002;
  rep.private_data = private_data<CmRep::kPrivateBytes>(0, "srvdata!");
  expect_both_ways("REP", {kTransaction, rep});
}

TEST(CmMessage, golden_end_of_a_connection) {
  expect_both_ways("RTU", {kTransaction, CmRtu{0x0210e807, 0xcf52bd02, {}}});
  expect_both_ways("DREQ of the active side", {kTransaction, CmDreq{0x0210e807, 0xcf52bd02, 0x12, {}}});
  expect_both_ways("DREP", {kTransaction, CmDrep{0xcf52bd02, 0x0210e807, {}}});
}

TEST(CmMessage, golden_refusals) {
  CmRej nobody;
  nobody.remote_id = 0x0110e807;
  nobody.reason = kRejInvalidServiceId;
  expect_both_ways("REJ 8: nobody listens", {0x207e81001, nobody});

  CmRej consumer;
  consumer.local_id = 0xce52bd02;
  consumer.remote_id = 0x0310e807;
  consumer.reason = kRejConsumer;
  consumer.private_data = private_data<CmRej::kPrivateBytes>(0, "nope");
  expect_both_ways("REJ 28: rdma_reject with \"nope\"", {0x207e81003, consumer});

  CmMra wait;
  wait.local_id = 0xd752bd02;
  wait.remote_id = 0x0a10e807;
  wait.service_timeout = 24;
  expect_both_ways("MRA of a REQ", {0x207e8100a, wait});
}

TEST(CmMessage, golden_service_id_resolution) {
  CmSidrReq req;
  req.request_id = 0x0410e807;
  req.service_id = cm_service_id(kPortSpaceUdp, 9004);
  req.private_data = private_data<CmSidrReq::kPrivateBytes>(kCmIpHeaderBytes, "clidata0123456789");
  const CmIpHeader ip{53063, ipv4_address(10, 77, 0, 1), ipv4_address(10, 77, 0, 2)};
  emit(ip, std::span(req.private_data).first<kCmIpHeaderBytes>());
  expect_both_ways("SIDR_REQ", {0x207e81004, req});

  CmSidrRep rep;
  rep.request_id = 0x0410e807;
  rep.qpn = 0x13;
  rep.service_id = req.service_id;
  rep.qkey = 0x01234567;
  rep.private_data = private_data<CmSidrRep::kPrivateBytes>(0, "srvdata!");
  expect_both_ways("SIDR_REP", {0x207e81004, rep});

  CmSidrRep nobody;
  nobody.request_id = 0x0510e807;
  nobody.status = kSidrUnsupported;
  nobody.service_id = cm_service_id(kPortSpaceUdp, 9998);
  expect_both_ways("SIDR_REP status 1: nobody listens", {0x207e81005, nobody});
}

TEST(CmMessage, golden_request_over_ipv6) {
  const Bytes mad = golden_mad("IPv6 REQ");
  const auto read = parse_cm(mad_in(mad));
  ASSERT_TRUE(read.has_value());
  const CmReq& req = std::get<CmReq>(read->message);
  EXPECT_EQ(req.primary.flow_label, 0xabaefU);
  const auto ip = parse_cm_ip_header(std::span(req.private_data).first<kCmIpHeaderBytes>());
  ASSERT_TRUE(ip.has_value());
  EXPECT_EQ(ip->source_port, 0xdb9b);
  EXPECT_EQ(ip->source, req.primary.local_gid);
  EXPECT_EQ(ip->destination, req.primary.remote_gid);
}

TEST(CmMessage, of_another_class_version_or_attribute_is_refused) {
  Bytes mad = golden_mad("RTU");
  ASSERT_TRUE(parse_cm(mad_in(mad)).has_value());
  for (const size_t at : {0U, 1U, 2U, 3U, 16U, 17U}) {  // base version, class, class version, method, attribute
    Bytes other = mad;
    other[at] ^= std::byte{0x80};
    EXPECT_EQ(parse_cm(mad_in(other)).error().value, EPROTONOSUPPORT) << at;
  }
  for (const unsigned attribute : {0x0fU, 0x19U, 0x1aU, 0x1bU}) {
    mad[17] = static_cast<std::byte>(attribute);
    EXPECT_EQ(parse_cm(mad_in(mad)).error().value, EPROTONOSUPPORT) << attribute;
  }
}

TEST(CmMessage, wider_values_are_cut_and_spoil_no_neighbour) {
  CmReq req;
  req.local_qpn = 0xffffffff;
  req.remote_cm_timeout = 0xff;
  req.retry_count = 0xf8;
  req.primary.flow_label = 0xfff00000;
  req.primary.packet_rate = 0xc0;
  req.primary.service_level = 0xf0;
  const CmMad read = parse_cm(mad_in(emitted({1, req}))).value();
  CmReq expected;
  expected.local_qpn = 0xffffff;
  expected.remote_cm_timeout = 0x1f;
  EXPECT_EQ(std::get<CmReq>(read.message), expected);
}

/// Random bytes reach every value of every field, so this is the round trip of all messages.
RC_GTEST_PROP(CmMessageProperty, what_is_read_is_written_and_read_again,
              (std::array<uint8_t, kMadBytes> random, uint8_t choice)) {
  Bytes mad(kMadBytes);
  std::memcpy(mad.data(), random.data(), kMadBytes);
  MadHeader header;
  header.transaction_id = get_be<uint64_t>(mad, 8);
  header.attribute = static_cast<uint16_t>(kCmReq + choice % 9);
  emit(header, MadOut(mad));
  const auto read = parse_cm(mad_in(mad));
  RC_ASSERT(read.has_value());
  RC_ASSERT(read->transaction_id == header.transaction_id);
  const Bytes written = emitted(*read);
  RC_ASSERT(parse_cm(mad_in(written)).value() == *read);
  // What is written has no bits but those that were read: reserved ones are zero.
  for (size_t i = 0; i < kMadBytes; ++i) {
    RC_ASSERT((written[i] & ~mad[i]) == std::byte{0});
  }
}

}  // namespace
}  // namespace ringbolt::wire
