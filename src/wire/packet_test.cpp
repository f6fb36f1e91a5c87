#include "wire/packet.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "wire/golden_support.h"
#include "wire/icrc.h"
#include "wire/opcode.h"
#include "wire/syndrome.h"

namespace ringbolt::wire {
namespace {

using golden::Bytes;
using golden::Datagram;

/// A packet as a sender makes it, with an ICRC of zeros.
Bytes assemble(const Headers& headers, std::span<const std::byte> payload) {
  Bytes packet(kMaxHeaderBytes);
  packet.resize(emit(headers, packet));
  packet.insert(packet.end(), payload.begin(), payload.end());
  packet.resize(packet.size() + headers.bth.pad_count + seal_bytes(headers.bth) + kIcrcBytes);
  if (headers.bth.is_sealed) {
    emit_seal(headers, std::span(packet).last(seal_bytes(headers.bth) + kIcrcBytes));
  }
  return packet;
}

Headers headers_of(const Datagram& datagram) { return parse(datagram.packet).value().headers; }

Bytes text(std::string_view string) {
  const auto bytes = std::as_bytes(std::span(string));
  return {bytes.begin(), bytes.end()};
}

Datagram named(std::string_view name) {
  for (Datagram& datagram : golden::roce_datagrams()) {
    if (datagram.name == name) {
      return datagram;
    }
  }
  ADD_FAILURE() << "no packet " << name;
  return {};
}

TEST(Packet, golden_ones_are_read_and_written_byte_by_byte) {
  for (const Datagram& datagram : golden::all_datagrams()) {
    const auto view = parse(datagram.packet);
    ASSERT_TRUE(view.has_value()) << datagram.name;
    Bytes made = assemble(view->headers, view->payload);
    put_icrc(datagram.flow, datagram.ipv4_id, made);
    EXPECT_EQ(made, datagram.packet) << datagram.name;
  }
}

TEST(Packet, golden_ones_mean_what_they_should) {
  Headers send;
  send.bth = {.opcode = kRcSendOnly, .dest_qp = 0x11, .wants_ack = true, .psn = 0xabc};
  EXPECT_EQ(headers_of(named("RC SEND only")), send);
  EXPECT_EQ(headers_of(named("IPv6 RC SEND only")), send);

  Headers ack;
  ack.bth = {.opcode = kRcAcknowledge, .dest_qp = 0x11, .psn = 0xabc};
  ack.aeth = {.syndrome = kAckUnlimited, .msn = 1};
  EXPECT_EQ(headers_of(named("ACK")), ack);

  Headers nak;
  nak.bth = {.opcode = kRcAcknowledge, .dest_qp = 0x11, .psn = 0x51};
  nak.aeth = {.syndrome = kNakSequence, .msn = 7};
  EXPECT_EQ(headers_of(named("NAK 60")), nak);

  Headers write;
  write.bth = {.opcode = kRcWriteOnly, .pad_count = 3, .dest_qp = 0x11, .wants_ack = true, .psn = 0xabd};
  write.reth = {.address = 0x1000, .key = 0x1234, .length = 5};
  EXPECT_EQ(headers_of(named("RC WRITE only, three bytes of pad")), write);

  Headers datagram;
  datagram.bth = {.opcode = kUdSendOnly, .dest_qp = 0x11, .psn = 1};
  datagram.deth = {.qkey = 0x11111111, .source_qp = 0x123456};
  EXPECT_EQ(headers_of(named("UD SEND only")), datagram);

  Headers cnp;
  cnp.bth = {.opcode = kCnp, .is_migrated = false, .becn = true, .dest_qp = 0x118};
  EXPECT_EQ(headers_of(named("CNP")), cnp);
}

TEST(Packet, golden_payloads_are_without_their_pad) {
  const auto payload = [](const Datagram& datagram) {
    const auto view = parse(datagram.packet);
    return Bytes(view->payload.begin(), view->payload.end());
  };
  EXPECT_EQ(payload(named("RC SEND only")), text("ringbolt"));
  EXPECT_EQ(payload(named("RC WRITE only, three bytes of pad")), text("hello"));
  EXPECT_EQ(payload(named("UD SEND only")), text("ud!!"));
  EXPECT_EQ(payload(named("ACK")), Bytes{});
  EXPECT_EQ(payload(named("UC SEND only, two bytes of pad")).size(), 18U);
}

TEST(Packet, payload_lies_in_the_buffer_that_was_parsed) {
  const Datagram datagram = named("RC SEND only");
  EXPECT_EQ(parse(datagram.packet)->payload.data(), datagram.packet.data() + kBthBytes);
}

TEST(Packet, immediate_and_key_keep_their_byte_order) {
  Headers headers;
  headers.bth.opcode = kRcSendOnlyImmediate;
  const std::array<uint8_t, 4> as_it_lies{1, 2, 3, 4};
  std::memcpy(&headers.immediate, as_it_lies.data(), 4);
  const Bytes with_immediate = assemble(headers, {});
  EXPECT_EQ(std::memcmp(with_immediate.data() + kBthBytes, as_it_lies.data(), 4), 0);
  EXPECT_EQ(parse(with_immediate)->headers, headers);

  headers = {};
  headers.bth.opcode = kRcSendOnlyInvalidate;
  headers.invalidate_key = 0x01020304;
  const Bytes with_key = assemble(headers, {});
  EXPECT_EQ(std::memcmp(with_key.data() + kBthBytes, as_it_lies.data(), 4), 0);
  EXPECT_EQ(parse(with_key)->headers, headers);
}

TEST(Packet, numbers_beyond_24_bits_are_cut) {
  Headers headers;
  headers.bth = {.opcode = kRcAcknowledge, .dest_qp = 0xff123456, .psn = 0xff654321};
  headers.aeth = {.syndrome = 0x1f, .msn = 0xffabcdef};
  const Headers read = parse(assemble(headers, {}))->headers;
  EXPECT_EQ(read.bth.dest_qp, 0x123456U);
  EXPECT_EQ(read.bth.psn, 0x654321U);
  EXPECT_FALSE(read.bth.wants_ack || read.bth.fecn || read.bth.becn);
  EXPECT_EQ(read.aeth, (Aeth{0x1f, 0xabcdef}));
}

TEST(Packet, cut_anywhere_is_refused_or_shorter) {
  for (const Datagram& datagram : golden::all_datagrams()) {
    const size_t headers = header_bytes(std::to_integer<uint8_t>(datagram.packet[0]));
    for (size_t length = 0; length < datagram.packet.size(); ++length) {
      const auto view = parse(std::span(datagram.packet).first(length));
      if (length % 4 != 0 || length < headers + kIcrcBytes) {
        ASSERT_EQ(view.error().value, EBADMSG) << datagram.name << " cut to " << length;
      } else if (view) {
        ASSERT_LE(view->payload.size() + headers + kIcrcBytes, length) << datagram.name;
      }
    }
  }
}

TEST(Packet, pad_without_payload_is_refused) {
  Headers headers;
  headers.bth = {.opcode = kRcSendOnly, .pad_count = 1};
  Bytes packet = assemble(headers, text("abc"));
  ASSERT_TRUE(parse(packet).has_value());
  packet.erase(packet.begin() + kBthBytes, packet.begin() + kBthBytes + 4);
  EXPECT_EQ(parse(packet).error().value, EBADMSG);
}

TEST(Packet, payload_of_an_opcode_without_one_is_refused) {
  for (const uint8_t opcode : {kRcReadRequest, kRcAcknowledge, kRcAtomicAcknowledge, kRcCompareSwap, kRcFetchAdd}) {
    Headers headers;
    headers.bth.opcode = opcode;
    EXPECT_TRUE(parse(assemble(headers, {})).has_value());
    EXPECT_EQ(parse(assemble(headers, text("more"))).error().value, EBADMSG) << int{opcode};
  }
}

TEST(Packet, unknown_opcode_and_version_are_refused) {
  Bytes packet = assemble(Headers{}, text("more"));
  ASSERT_TRUE(parse(packet).has_value());
  for (const unsigned opcode : {0x15U, 0x18U, 0x2cU, 0x40U, 0x66U, 0xa0U, 0xc0U, 0xc3U, 0xffU}) {
    packet[0] = static_cast<std::byte>(opcode);
    EXPECT_EQ(parse(packet).error().value, EPROTONOSUPPORT) << opcode;
  }
  packet[0] = std::byte{kRcSendOnly};
  for (unsigned version = 1; version < 16; ++version) {
    packet[1] = static_cast<std::byte>(version);
    EXPECT_EQ(parse(packet).error().value, EPROTONOSUPPORT) << version;
  }
}

TEST(PacketDeathTest, headers_need_a_known_opcode_and_room) {
  Headers headers;
  Bytes room(kMaxHeaderBytes);
  headers.bth.opcode = 0x15;
  EXPECT_DEATH(emit(headers, room), "broken promise");
  headers.bth.opcode = kRcCompareSwap;
  EXPECT_DEATH(emit(headers, std::span(room).first(kMaxHeaderBytes - 1)), "broken promise");
}

/// The WRITE of the golden packets, as an own peer sends it. The ICRC is zlib's.
TEST(Packet, sealed_carries_its_seal_between_pad_and_icrc) {
  const Bytes datagram = golden::from_hex(
      "4500004c00004000401126050a4d00010a4d000212b712b7003800000a70ffff00000011c0000abd"
      "00000000000010000000123400000005"
      "68656c6c6f0000000123456789abcdef0670d698");
  constexpr size_t kIpAndUdpBytes = 28;
  const Bytes packet(datagram.begin() + kIpAndUdpBytes, datagram.end());
  const auto view = parse(packet);
  ASSERT_TRUE(view);
  EXPECT_TRUE(view->headers.bth.is_sealed && view->headers.bth.wants_ack);
  EXPECT_EQ(view->headers.seal, 0x0123456789abcdefU);
  EXPECT_TRUE(std::ranges::equal(view->payload, text("hello")));
  const Flow flow{ipv4_address(10, 77, 0, 1), ipv4_address(10, 77, 0, 2), kRocePort, kRocePort};
  EXPECT_TRUE(check_icrc(flow, packet));
  Bytes made = assemble(view->headers, view->payload);
  put_icrc(flow, 0, made);
  EXPECT_EQ(made, packet);
  // Too short for a seal, or for seal and pad.
  for (const size_t cut : {4U, 8U, 12U, 16U}) {
    EXPECT_EQ(parse(std::span(packet).first(packet.size() - cut)).has_value(), cut == 4) << cut;
  }
}

/// The same, with an acknowledgement of another message: of PSN 123, MSN 45, without a limit (hexadecimal).
TEST(Packet, sealed_carries_an_acknowledgement_before_its_seal) {
  const Bytes datagram = golden::from_hex(
      "4500005400004000401125fd0a4d00010a4d000212b712b7004000000a70ffff00000011e0000abd"
      "00000000000010000000123400000005"
      "68656c6c6f000000000001231f0000450123456789abcdef6340613c");
  constexpr size_t kIpAndUdpBytes = 28;
  const Bytes packet(datagram.begin() + kIpAndUdpBytes, datagram.end());
  const auto view = parse(packet);
  ASSERT_TRUE(view);
  EXPECT_TRUE(view->headers.bth.is_sealed && view->headers.bth.carries_ack);
  EXPECT_EQ(view->headers.carried_ack, (CarriedAck{0x123, {0x1f, 0x45}}));
  EXPECT_EQ(view->headers.seal, 0x0123456789abcdefU);
  EXPECT_TRUE(std::ranges::equal(view->payload, text("hello")));
  const Flow flow{ipv4_address(10, 77, 0, 1), ipv4_address(10, 77, 0, 2), kRocePort, kRocePort};
  EXPECT_TRUE(check_icrc(flow, packet));
  Bytes made = assemble(view->headers, view->payload);
  put_icrc(flow, 0, made);
  EXPECT_EQ(made, packet);
  const Headers alone = carried_acknowledgement(view->headers);
  EXPECT_EQ(alone.bth.opcode, kRcAcknowledge);
  EXPECT_EQ(alone.bth.dest_qp, view->headers.bth.dest_qp);
  EXPECT_EQ(alone.bth.psn, 0x123U);
  EXPECT_EQ(alone.aeth, (Aeth{0x1f, 0x45}));
  // Too short for a seal with an acknowledgement, or for that and the pad.
  for (const size_t cut : {4U, 8U, 12U, 16U, 20U, 24U}) {
    EXPECT_EQ(parse(std::span(packet).first(packet.size() - cut)).has_value(), cut == 4) << cut;
  }
}

TEST(Packet, without_a_seal_carries_no_acknowledgement) {
  Headers headers;
  headers.bth.opcode = kRcSendOnly;
  headers.bth.carries_ack = true;
  EXPECT_EQ(seal_bytes(headers.bth), 0U);
  Bytes packet = assemble(headers, {});
  EXPECT_FALSE(parse(packet)->headers.bth.carries_ack);
  packet[8] |= std::byte{0x20};  // of a stranger, who may set reserved bits
  ASSERT_TRUE(parse(packet));
  EXPECT_FALSE(parse(packet)->headers.bth.carries_ack);
  EXPECT_TRUE(parse(packet)->payload.empty());
}

/// Any headers: those that come out of parsing random bytes.
RC_GTEST_PROP(PacketProperty, what_is_read_is_written_and_read_again,
              (std::array<uint8_t, kMaxHeaderBytes> random, const std::vector<uint8_t>& content, uint8_t choice)) {
  std::vector<uint8_t> known;
  for (unsigned opcode = 0; opcode < 256; ++opcode) {
    if (is_known(static_cast<uint8_t>(opcode))) {
      known.push_back(static_cast<uint8_t>(opcode));
    }
  }
  const uint8_t opcode = known[choice % known.size()];
  const size_t payload = has_payload(opcode) ? content.size() : 0;
  random[0] = opcode;
  random[1] = static_cast<uint8_t>((random[1] & 0xc0U) | pad_bytes(payload) << 4);
  constexpr size_t kFlagsOfPsn = 8;
  const uint32_t flags = random[kFlagsOfPsn];
  const size_t seal = (flags & 0x40U) == 0 ? 0 : (flags & 0x20U) == 0 ? 8 : 16;
  Bytes packet(header_bytes(opcode) + payload + pad_bytes(payload) + seal + kIcrcBytes);
  std::memcpy(packet.data(), random.data(), header_bytes(opcode));
  std::transform(content.begin(), content.begin() + static_cast<ptrdiff_t>(payload),
                 packet.begin() + static_cast<ptrdiff_t>(header_bytes(opcode)), [](uint8_t b) { return std::byte{b}; });
  const auto view = parse(packet);
  RC_ASSERT(view.has_value());
  RC_ASSERT(view->payload.size() == payload);
  const Bytes made = assemble(view->headers, view->payload);
  const auto again = parse(made);
  RC_ASSERT(again.has_value());
  RC_ASSERT(again->headers == view->headers);
  RC_ASSERT(std::equal(again->payload.begin(), again->payload.end(), view->payload.begin(), view->payload.end()));
}

}  // namespace
}  // namespace ringbolt::wire
