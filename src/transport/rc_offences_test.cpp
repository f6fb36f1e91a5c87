// What a responder refuses, and how.

#include "transport/responder_test_support.h"

namespace ringbolt::transport::test {
namespace {

struct Offence {
  const char* name;
  std::vector<Packet> packets;
  uint8_t syndrome;
  ResponderFailure why;
};

Packet with_length(Packet packet, uint32_t length) {
  packet.headers.reth.length = length;
  return packet;
}

Packet misaligned(Packet packet) {
  packet.headers.atomic.address += 4;
  return packet;
}

std::vector<Offence> offences() {
  const auto p = [](uint32_t index) { return psn_add(kFirst, index); };
  using enum ResponderFailure;
  const uint8_t invalid = wire::kNakInvalidRequest;
  return {
      {"middle first", {request(wire::kRcSendMiddle, p(0), kMtu)}, invalid, invalid_request},
      {"last first", {request(wire::kRcSendLast, p(0), 1)}, invalid, invalid_request},
      {"first twice",
       {request(wire::kRcSendFirst, p(0), kMtu), request(wire::kRcSendFirst, p(1), kMtu)},
       invalid,
       invalid_request},
      {"write in a send",
       {request(wire::kRcSendFirst, p(0), kMtu), request(wire::kRcWriteOnly, p(1), 4)},
       invalid,
       invalid_request},
      {"write's last in a send",
       {request(wire::kRcSendFirst, p(0), kMtu), request(wire::kRcWriteLast, p(1), 4)},
       invalid,
       invalid_request},
      {"read in a send",
       {request(wire::kRcSendFirst, p(0), kMtu), request(wire::kRcReadRequest, p(1))},
       invalid,
       invalid_request},
      {"short first", {request(wire::kRcSendFirst, p(0), kMtu - 1)}, invalid, invalid_request},
      {"long only", {request(wire::kRcSendOnly, p(0), kMtu + 1)}, invalid, invalid_request},
      {"empty last",
       {request(wire::kRcSendFirst, p(0), kMtu), request(wire::kRcSendLast, p(1), 0)},
       invalid,
       invalid_request},
      {"write shorter than said", {with_length(request(wire::kRcWriteOnly, p(0), 8), 9)}, invalid, invalid_request},
      {"write longer than said",
       {with_length(request(wire::kRcWriteFirst, p(0), kMtu), kMtu + 1), request(wire::kRcWriteLast, p(1), 2)},
       invalid,
       invalid_request},
      {"write that should have ended",
       {with_length(request(wire::kRcWriteFirst, p(0), kMtu), kMtu)},
       invalid,
       invalid_request},
      {"endless read", {with_length(request(wire::kRcReadRequest, p(0)), 0x8000'0001)}, invalid, invalid_request},
      {"misaligned atomic", {misaligned(request(wire::kRcFetchAdd, p(0)))}, invalid, invalid_request},
      {"write beyond the region",
       {with_length(request(wire::kRcWriteFirst, p(0), kMtu), kRegionBytes + 1)},
       wire::kNakRemoteAccess,
       remote_access},
      {"read beyond the region",
       {with_length(request(wire::kRcReadRequest, p(0)), kRegionBytes + 1)},
       wire::kNakRemoteAccess,
       remote_access},
  };
}

TEST_F(RcResponderTest, ends_the_connection_over_each_offence) {
  for (const Offence& offence : offences()) {
    SCOPED_TRACE(offence.name);
    responder = RcResponder(responder_attributes());
    host = {};
    for (const Packet& packet : offence.packets) {
      feed(packet);
    }
    EXPECT_EQ(host.failure, offence.why);
    expect_acknowledge(offence.syndrome, static_cast<uint32_t>(offence.packets.size()) - 1, 0);
    feed(request(wire::kRcSendOnly, responder.expected_psn(), 1));
    expect_silence();
    EXPECT_TRUE(host.received.empty());
  }
}

}  // namespace
}  // namespace ringbolt::transport::test
