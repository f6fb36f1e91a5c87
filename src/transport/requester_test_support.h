#pragma once

#include <gtest/gtest.h>

#include <vector>

#include "transport/engine_test_support.h"
#include "transport/rc_requester.h"

/// An RC requester with a host, for its unit tests.
namespace ringbolt::transport::test {

inline constexpr uint32_t kFirst = 0xfffffe;  // the numbers wrap early in each test
inline constexpr uint64_t kTimeoutNs = uint64_t{4096} << 8;

inline RequesterAttributes requester_attributes() {
  RequesterAttributes made;
  made.dest_qp = 0x66;
  made.first_psn = kFirst;
  made.mtu_bytes = kMtu;
  made.queue_depth = 64;
  made.timeout_code = 8;
  made.retry_count = 2;
  made.rnr_retry = 1;
  made.max_rd_atomic = 2;
  return made;
}

inline Operation operation(Operation::Kind kind, uint32_t length) {
  Operation made;
  made.kind = kind;
  made.length = length;
  made.remote_address = test::kAddress;
  made.key = test::kKey;
  return made;
}

struct RcRequesterTest : testing::Test {
  RcRequester requester{requester_attributes()};
  Host host;
  OutPacket out;
  uint64_t now_ns = 1'000'000;

  static uint32_t psn(uint32_t index) { return psn_add(kFirst, index); }
  void submit(Operation::Kind kind, uint32_t length) { requester.submit(operation(kind, length)); }
  void submit_sends(uint32_t count) {
    for (uint32_t i = 0; i < count; ++i) {
      submit(Operation::send, 10);
    }
  }
  void feed(const test::Packet& packet) { requester.on_packet(now_ns, packet.view(), host); }
  /// Fetches what may go out now; the indices of the packets.
  std::vector<uint32_t> fetch() {
    std::vector<uint32_t> indices;
    while (requester.next_packet(now_ns, out)) {
      EXPECT_EQ(out.headers.bth.dest_qp, 0x66U);
      indices.push_back((out.headers.bth.psn - kFirst) & wire::kPsnMask);
    }
    return indices;
  }
  void pass(uint64_t ns) {
    now_ns += ns;
    requester.on_timer(now_ns);
  }
};

using Indices = std::vector<uint32_t>;

}  // namespace ringbolt::transport::test
