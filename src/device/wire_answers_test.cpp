// Acknowledgements that leave with the program's own answer, and those that nobody waits for (docs/transport.md).

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/ip.h>
#include <sys/socket.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <span>

#include "device/wire_test_support.h"

namespace ringbolt::device {
namespace {

constexpr uint64_t kPatienceNs = 20'000'000'000;

/// A copy of every datagram that comes to this network namespace: without an IPv6 header, but with an IPv4 one. What it
/// gives out it keeps.
class Wiretap {
 public:
  explicit Wiretap(const wire::Address& own)
      : flow_{own, own},
        socket_(socket(wire::is_ipv4(own) ? AF_INET : AF_INET6, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_UDP)) {
    EXPECT_TRUE(socket_.is_open());
  }
  /// The first packet of that kind of all that have come, if any.
  template <class IsWanted>
  std::optional<InboundPacket> take(IsWanted is_wanted) const {
    constexpr size_t kUdpHeaderBytes = 8;
    const size_t headers_bytes = kUdpHeaderBytes + (wire::is_ipv4(flow_) ? sizeof(iphdr) : 0);
    InboundPacket packet;
    packet.flow = flow_;
    packet.buffer = pool_->take_small();
    while (true) {
      const ssize_t got = recv(socket_.get(), packet.buffer.get()->data(), packet.buffer.get()->capacity(), 0);
      if (got < 0) {
        return std::nullopt;
      }
      const std::span all(packet.buffer.get()->data(), static_cast<size_t>(got));
      const auto view = wire::parse(all.subspan(std::min(all.size(), headers_bytes)));
      if (view && is_wanted(view->headers.bth)) {
        packet.view = *view;
        return packet;
      }
    }
  }

 private:
  wire::Flow flow_;
  base::UniqueFd socket_;
  std::shared_ptr<link::UdpBufferPool> pool_ = link::UdpBufferPool::make();
};

class Answers : public testing::Test {
 protected:
  static void run(const std::function<void(WirePair&)>& body) {
    run_on_network([&] {
      WirePair pair(IBV_QPT_RC);
      connect(pair.a, pair.b);
      body(pair);
    });
  }
  /// b has something to say to its peer.
  static bool withholds(WirePair& pair) { return pair.b.qp().deadline_ns() == 0; }

  static void bring(WirePair& pair) {
    ASSERT_EQ(pair.b.receive(1, pair.to.piece(0, 8)), 0);
    ASSERT_EQ(pair.a.send(2, pair.from.piece(0, 8)), 0);
  }
  /// Of both ends, which share a port.
  static uint64_t sent_packets(WirePair& pair) { return counter(pair.device, "port_xmit_packets"); }

  static void answer(WirePair& pair, const std::function<void()>& once_sent = {}) {
    ASSERT_EQ(pair.b.send(3, pair.from.piece(0, 8)), 0);
    if (once_sent) {
      once_sent();
    }
    EXPECT_FALSE(withholds(pair));
    EXPECT_EQ(pair.a.await_receive().status, IBV_WC_SUCCESS);
    EXPECT_EQ(pair.b.await_send().status, IBV_WC_SUCCESS);
  }
  /// Messages that b answers at once, until it withholds the acknowledgement of one, which is not answered yet. On a
  /// busy machine an answer takes too long now and then, and that many are needed.
  static void bring_until_withheld(WirePair& pair) {
    for (const uint64_t deadline = base::now_ns() + kPatienceNs; base::now_ns() < deadline;) {
      ASSERT_EQ(pair.a.receive(4, pair.to.piece(64, 8)), 0);
      bring(pair);
      ASSERT_EQ(pair.b.await_receive().status, IBV_WC_SUCCESS);
      if (withholds(pair)) {
        return;
      }
      answer(pair);
      ASSERT_EQ(pair.a.await_send().status, IBV_WC_SUCCESS);
    }
    FAIL() << "no acknowledgement was withheld";
  }
  /// Without any call for b.
  static void expect_sent(WirePair& pair) { EXPECT_EQ(pair.a.await_send().status, IBV_WC_SUCCESS); }
};

TEST_F(Answers, take_the_acknowledgement_with_them) {
  run([](WirePair& pair) {
    for (int round = 0; round < 5; ++round) {
      bring_until_withheld(pair);
      answer(pair);
      expect_sent(pair);
    }
  });
}

/// The service thread may acknowledge before the answer comes: looked for is a time when it did not.
TEST_F(Answers, take_the_acknowledgement_with_them_in_the_same_packet) {
  run([](WirePair& pair) {
    // The answer, and the acknowledgement of the answer. Was the one that it carries not taken, the sender would ask.
    constexpr uint64_t kNeeded = 2;
    uint64_t packets = 0;
    for (const uint64_t deadline = base::now_ns() + kPatienceNs; packets != kNeeded && base::now_ns() < deadline;) {
      bring_until_withheld(pair);
      const uint64_t before = sent_packets(pair);
      bool is_alone = withholds(pair);
      answer(pair, [&] { is_alone = is_alone && sent_packets(pair) - before == 1; });
      expect_sent(pair);
      packets = is_alone ? sent_packets(pair) - before : 0;
    }
    EXPECT_EQ(packets, kNeeded);
  });
}

/// Nobody polls the queue that the acknowledgement is for: who polls the other one takes it there.
TEST_F(Answers, complete_sends_of_a_queue_that_nobody_polls) {
  run([](WirePair& pair) {
    bring_until_withheld(pair);
    ASSERT_EQ(pair.b.send(3, pair.from.piece(0, 8)), 0);
    EXPECT_EQ(pair.a.await_receive().status, IBV_WC_SUCCESS);
    const uint64_t deadline = base::now_ns() + kPatienceNs;
    while (pair.a.qp().has_unfinished_sends() && base::now_ns() < deadline) {
      pair.a.poll_receive();
    }
    EXPECT_FALSE(pair.a.qp().has_unfinished_sends());
    EXPECT_EQ(pair.a.poll_send().status, IBV_WC_SUCCESS);
  });
}

/// Such an answer once more, in a moment when no program polls: both queues are named to whoever took it in.
TEST_F(Answers, bring_the_acknowledgement_to_a_queue_that_nobody_polls) {
  run([](WirePair& pair) {
    const Wiretap tap(address_of(pair.device.port().known_gids.front()));
    std::optional<InboundPacket> answer;
    for (const uint64_t deadline = base::now_ns() + kPatienceNs; !answer && base::now_ns() < deadline;) {
      bring_until_withheld(pair);
      ASSERT_EQ(pair.b.send(3, pair.from.piece(0, 8)), 0);
      answer = tap.take([](const wire::Bth& bth) { return bth.carries_ack; });
      EXPECT_EQ(pair.a.await_receive().status, IBV_WC_SUCCESS);
      EXPECT_EQ(pair.b.await_send().status, IBV_WC_SUCCESS);
      expect_sent(pair);
    }
    ASSERT_TRUE(answer);
    const uint64_t later_ns = base::now_ns() + kPatienceNs;
    EXPECT_EQ(pair.a.qp().arrive(std::move(*answer), later_ns),
              (QueuePair::Unpolled{&pair.a.receives(), &pair.a.sends()}));
  });
}

TEST_F(Answers, that_do_not_come_let_the_service_thread_acknowledge) {
  run([](WirePair& pair) {
    bring_until_withheld(pair);
    expect_sent(pair);
    EXPECT_FALSE(withholds(pair));
  });
}

TEST_F(Answers, that_do_not_come_are_waited_for_until_the_next_poll) {
  run([](WirePair& pair) {
    bring_until_withheld(pair);
    EXPECT_EQ(pair.b.poll_receive().status, End::kNothing);
    EXPECT_FALSE(withholds(pair));
    expect_sent(pair);
    bring(pair);  // and the next message is not waited with
    ASSERT_EQ(pair.b.await_receive().status, IBV_WC_SUCCESS);
    EXPECT_FALSE(withholds(pair));
    expect_sent(pair);
  });
}

TEST_F(Answers, that_never_come_as_the_queue_pair_ends_leave_no_send_without_its_acknowledgement) {
  run([](WirePair& pair) {
    bring_until_withheld(pair);
    ASSERT_EQ(pair.b.to(IBV_QPS_RESET), 0);
    expect_sent(pair);
  });
}

TEST_F(Answers, of_the_device_to_a_sender_that_polls_nothing_lose_nothing) {
  run([](WirePair& pair) {
    constexpr uint64_t kMessages = 64;  // as many as its completion queues hold
    for (uint64_t i = 0; i < kMessages; ++i) {
      bring(pair);
      ASSERT_EQ(pair.b.await_receive().status, IBV_WC_SUCCESS);
      if (i % 16 == 15) {  // the depth of its send queue
        for (uint64_t taken = 0; taken < 16; ++taken) {
          ASSERT_EQ(pair.a.await_send().status, IBV_WC_SUCCESS);
        }
      }
    }
  });
}

}  // namespace
}  // namespace ringbolt::device
