// Who forges packets from the right address, but has not seen those of the connection, neither completes a receive nor
// ends a queue pair. In a network namespace of its own, over its loopback interface.
#include <arpa/inet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <vector>

#include "deadline.h"
#include "far.h"
#include "wire/flow.h"
#include "wire/headers.h"
#include "wire/icrc.h"
#include "wire/opcode.h"
#include "wire/packet.h"

namespace {

using namespace ringbolt::conformance;
namespace wire = ringbolt::wire;

constexpr size_t kBytes = 64;
constexpr uint8_t kForged = 0xee;

/// A socket of an ordinary program at the address of `gid`, an IPv6 one of the loopback interface.
class Forger {
 public:
  explicit Forger(const ibv_gid& gid) : socket_(::socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
    at_.sin6_family = AF_INET6;
    std::memcpy(&at_.sin6_addr, gid.raw, sizeof gid.raw);
    at_.sin6_scope_id = if_nametoindex("lo");
    EXPECT_EQ(bind(socket_, reinterpret_cast<const sockaddr*>(&at_), sizeof at_), 0) << std::strerror(errno);
    sockaddr_in6 own{};
    socklen_t length = sizeof own;
    EXPECT_EQ(getsockname(socket_, reinterpret_cast<sockaddr*>(&own), &length), 0);
    flow_.source_port = ntohs(own.sin6_port);
    std::memcpy(flow_.source.data(), gid.raw, sizeof gid.raw);
    flow_.destination = flow_.source;
    at_.sin6_port = htons(wire::kRocePort);
  }
  ~Forger() { close(socket_); }
  Forger(const Forger&) = delete;
  Forger& operator=(const Forger&) = delete;

  /// A packet with a good ICRC and `payload` forged bytes.
  void send(const wire::Headers& headers, size_t payload) {
    std::array<std::byte, wire::kMaxHeaderBytes + kBytes + wire::kIcrcBytes> packet{};
    size_t length = wire::emit(headers, packet);
    std::memset(packet.data() + length, kForged, payload);
    length += payload + wire::kIcrcBytes;
    wire::put_icrc(flow_, 0, std::span(packet).first(length));
    EXPECT_EQ(sendto(socket_, packet.data(), length, 0, reinterpret_cast<const sockaddr*>(&at_), sizeof at_),
              static_cast<ssize_t>(length))
        << std::strerror(errno);
  }
  void send_message(uint32_t qpn, uint32_t psn) {
    wire::Headers headers;
    headers.bth.opcode = wire::kRcSendOnly;
    headers.bth.dest_qp = qpn;
    headers.bth.psn = psn & wire::kPsnMask;
    headers.bth.wants_ack = true;
    send(headers, kBytes);
  }
  void send_answer(uint32_t qpn, uint32_t psn, uint8_t syndrome) {
    wire::Headers headers;
    headers.bth.opcode = wire::kRcAcknowledge;
    headers.bth.dest_qp = qpn;
    headers.bth.psn = psn & wire::kPsnMask;
    headers.aeth.syndrome = syndrome;
    send(headers, 0);
  }

 private:
  int socket_;
  sockaddr_in6 at_{};
  wire::Flow flow_;
};

/// With the link-local address for its own: an IPv6 packet has no identification that its ICRC would cover.
Device make_device() {
  Device device = open_device();
  device.gid_index = 0;
  EXPECT_EQ(ibv_query_gid(device.context.get(), device.port_num, 0, &device.gid), 0);
  return device;
}

class Forged : public testing::Test {
 protected:
  void SetUp() override {
    if (std::getenv("RINGBOLT_NETDEVS") == nullptr) {
      GTEST_SKIP() << "no device on an interface";
    }
    forger.emplace(device.gid);
    connect(near, far);
    psn = near.address().psn;
  }
  /// Posted receives first: whatever completes one takes it.
  void post_receives(uint32_t count) {
    std::memset(target.data(), 0, kBytes * count);
    for (uint32_t i = 0; i < count; ++i) {
      ASSERT_EQ(post_recv(far.qp(), i, {target.sge(i * kBytes, kBytes)}), 0);
    }
  }
  /// Sends as many messages; each has to arrive whole and in its turn.
  void exchange(uint32_t count) {
    for (uint32_t i = 0; i < count; ++i) {
      std::memset(memory.data() + i * kBytes, static_cast<int>(i + 1), kBytes);
      ASSERT_EQ(SendWr(i, IBV_WR_SEND, {memory.sge(i * kBytes, kBytes)}).post(near.qp()), 0);
    }
    for (uint32_t i = 0; i < count; ++i) {
      expect_success(wait_completion(near.send_cq()), i, IBV_WC_SEND);
      expect_success(wait_completion(far.recv_cq()), i, IBV_WC_RECV);
    }
    EXPECT_EQ(std::memcmp(target.data(), memory.data(), kBytes * count), 0);
    EXPECT_TRUE(is_empty(far.recv_cq()));
    EXPECT_EQ(near.state(), IBV_QPS_RTS);
    EXPECT_EQ(far.state(), IBV_QPS_RTS);
    psn += count;
  }

  /// Messages until both ends have told each other what their packets carry: a greeting that gets lost, or that nobody
  /// takes yet, is repeated with a later message, after 2, 8 and 32 ms. Before that anybody may send.
  void agree() {
    const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(100) * time_scale();
    while (std::chrono::steady_clock::now() < end && !HasFailure()) {
      post_receives(1);
      exchange(1);
    }
  }

  /// What the forger sends stands in the way of what is real for as long as it takes to look at it: under a sanitizer, long.
  static QpOptions patient() {
    QpOptions options;
    options.timeout = time_scale() > 1 ? 18 : options.timeout;  // 1 s
    return options;
  }

  static constexpr uint32_t kMessages = 16;
  Device device = make_device();
  Endpoint near{device, patient()};
  Endpoint far{device, patient()};
  Region memory{near.pd(), kMessages* kBytes};
  Region target{far.pd(), kMessages* kBytes};
  std::optional<Forger> forger;
  uint32_t psn = 0;
};

TEST_F(Forged, messages_with_the_next_sequence_numbers_change_nothing) {
  agree();
  post_receives(kMessages);
  for (uint32_t ahead = 0; ahead < 256; ++ahead) {
    forger->send_message(far.qp()->qp_num, psn + ahead);
  }
  exchange(kMessages);
}

TEST_F(Forged, answers_change_nothing) {
  constexpr uint8_t kAck = 0x1f;
  constexpr uint8_t kRemoteAccessError = 0x62;
  agree();
  // Nobody receives yet, so that the messages are under way while the answers come.
  for (uint32_t i = 0; i < kMessages; ++i) {
    ASSERT_EQ(SendWr(i, IBV_WR_SEND, {memory.sge(i * kBytes, kBytes)}).post(near.qp()), 0);
  }
  for (uint32_t ahead = 0; ahead < kMessages; ++ahead) {
    forger->send_answer(near.qp()->qp_num, psn + ahead, ahead % 2 == 0 ? kAck : kRemoteAccessError);
  }
  post_receives(kMessages);
  for (uint32_t i = 0; i < kMessages; ++i) {
    expect_success(wait_completion(far.recv_cq()), i, IBV_WC_RECV);
    expect_success(wait_completion(near.send_cq()), i, IBV_WC_SEND);
  }
  EXPECT_EQ(std::memcmp(target.data(), memory.data(), kMessages * kBytes), 0);
}

TEST_F(Forged, messages_with_all_sequence_numbers_do_not_end_it) {
  agree();
  constexpr uint32_t kStep = 240;  // below the 255 by which a packet may be early
  for (uint32_t at = 0; at <= wire::kPsnMask; at += kStep) {
    forger->send_message(far.qp()->qp_num, at);
  }
  post_receives(kMessages);
  exchange(kMessages);
}

}  // namespace
