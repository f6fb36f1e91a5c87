// Packets between ports at streams; both ends are the test's.

#include "device/stream_ports.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>

#include "base/clock.h"
#include "base/error.h"
#include "device/gid_table.h"
#include "device/gids.h"
#include "device/port.h"
#include "wire/packet.h"

namespace ringbolt::device {
namespace {

using Bytes = std::vector<std::byte>;

constexpr uint64_t kStreamPatienceNs = 20'000'000'000;
constexpr uint32_t kStreamsIpv4 = 0xa9fe0001;

/// Its bytes depend on its number and their place.
Bytes numbered(uint32_t number, size_t bytes) {
  Bytes packet(bytes);
  for (size_t i = 0; i < bytes; ++i) {
    packet[i] = static_cast<std::byte>(number * 37 + i * 5 + (i >> 8U));
  }
  return packet;
}

/// A port at streams, and what has come to it.
struct StreamEnd {
  struct Arrival {
    wire::Flow flow;
    uint32_t interface_index = 0;
    Bytes packet;
  };
  StreamEnd(uint32_t number, std::vector<std::string> rails) : ports(number) {
    port.name = "rdma_stream";
    port.guid = number;
    port.index = number % kMaxStreamPorts;
    port.netdev_index = kFirstStreamInterface + port.index;
    port.known_gids = {link_local_gid(number), mapped_gid(kStreamsIpv4 + number)};
    port.streams = std::move(rails);
    port.stream_outage_ns = kDefaultOutageNs;
    ports.add(port);
  }
  wire::Address address(size_t place) const { return address_of(port.known_gids[place]); }
  link::UdpPath path_to(const StreamEnd& other, size_t place) const {
    return {address(place), other.address(place), port.netdev_index, 0};
  }
  int send(const link::UdpPath& path, const Bytes& packet) {
    const int error = ports.send(path, packet);
    ports.flush();
    return error;
  }
  bool look() {
    return ports.receive(base::now_ns(), [this](const link::UdpEndpoint::Arrived& one) {
      arrived.push_back({one.flow, one.interface_index, Bytes(one.packet.begin(), one.packet.end())});
    });
  }

  Port port;
  StreamPorts ports;
  std::vector<Arrival> arrived;
};

class StreamPortsTest : public testing::Test {
 protected:
  StreamPortsTest() {
    std::array<int, 2> ends{};
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()), 0);
    const base::UniqueFd a(ends[0]);
    const base::UniqueFd b(ends[1]);
    a_ = std::make_unique<StreamEnd>(1, std::vector{"fd:" + std::to_string(ends[0])});
    b_ = std::make_unique<StreamEnd>(2, std::vector{"fd:" + std::to_string(ends[1])});
  }
  /// Both look until it is so.
  template <class Condition>
  bool becomes(Condition condition) {
    const uint64_t deadline = base::now_ns() + kStreamPatienceNs;
    while (!condition() && base::now_ns() < deadline) {
      a_->look();
      if (b_ != nullptr) {
        b_->look();
      }
    }
    return condition();
  }
  bool has_arrived(size_t count) {
    return becomes([&] { return b_->arrived.size() >= count; });
  }
  void meet() {
    ASSERT_EQ(a_->send(a_->path_to(*b_, 0), numbered(0, 16)), 0);
    ASSERT_TRUE(has_arrived(1));
    b_->arrived.clear();
  }
  std::unique_ptr<StreamEnd> a_;
  std::unique_ptr<StreamEnd> b_;
};

TEST_F(StreamPortsTest, carry_packets_with_their_addresses_in_order) {
  constexpr uint32_t kCount = 100;
  for (uint32_t i = 0; i < kCount; ++i) {
    ASSERT_EQ(a_->send(a_->path_to(*b_, i % 2), numbered(i, 12 + i * 173 % 4096 / 4 * 4)), 0) << i;
  }
  ASSERT_TRUE(has_arrived(kCount));
  for (uint32_t i = 0; i < kCount; ++i) {
    const auto& got = b_->arrived[i];
    EXPECT_EQ(got.flow.source, a_->address(i % 2)) << i;
    EXPECT_EQ(got.flow.destination, b_->address(i % 2)) << i;
    EXPECT_EQ(got.interface_index, b_->port.netdev_index);
    Bytes wanted = numbered(i, 12 + i * 173 % 4096 / 4 * 4);
    wanted.resize(wanted.size() + wire::kIcrcBytes);  // an ICRC of 0: the frames have checksums of their own
    EXPECT_EQ(got.packet, wanted) << i;
  }
}

TEST_F(StreamPortsTest, what_can_be_no_packet_is_dropped) {
  meet();
  EXPECT_EQ(a_->send(a_->path_to(*b_, 0), numbered(1, 8)), 0);   // with its ICRC 12 bytes: no BTH
  EXPECT_EQ(a_->send(a_->path_to(*b_, 0), numbered(2, 18)), 0);  // no multiple of 4
  EXPECT_EQ(a_->send(a_->path_to(*b_, 0), numbered(3, 12)), 0);
  ASSERT_TRUE(has_arrived(1));
  EXPECT_EQ(b_->arrived.size(), 1U);
  EXPECT_EQ(b_->arrived[0].packet[0], numbered(3, 12)[0]);
}

TEST_F(StreamPortsTest, only_who_is_at_the_other_end_can_be_reached) {
  meet();
  link::UdpPath path = a_->path_to(*b_, 1);
  EXPECT_EQ(a_->send(path, numbered(1, 64)), 0);
  path.destination = a_->address(1);
  EXPECT_EQ(a_->send(path, numbered(2, 64)), ENETUNREACH);
  path = a_->path_to(*b_, 1);
  path.source = b_->address(1);
  EXPECT_EQ(a_->send(path, numbered(3, 64)), ENETUNREACH);
  path = a_->path_to(*b_, 1);
  path.interface_index = kFirstStreamInterface + 7;
  EXPECT_EQ(a_->send(path, numbered(4, 64)), ENETUNREACH);
  path.interface_index = 7;  // an interface of the kernel
  EXPECT_EQ(a_->send(path, numbered(5, 64)), ENETUNREACH);
  ASSERT_TRUE(has_arrived(1));
  EXPECT_EQ(b_->arrived.size(), 1U);
}

TEST_F(StreamPortsTest, who_takes_a_packet_may_answer_it_there) {
  meet();
  ASSERT_EQ(a_->send(a_->path_to(*b_, 0), numbered(1, 64)), 0);
  bool has_answered = false;
  ASSERT_TRUE(becomes([&] {
    b_->ports.receive(base::now_ns(), [&](const link::UdpEndpoint::Arrived&) {
      EXPECT_EQ(b_->send(b_->path_to(*a_, 0), numbered(2, 64)), 0);
      EXPECT_FALSE(b_->look());  // somebody is in there
      has_answered = true;
    });
    return has_answered && !a_->arrived.empty();
  }));
  EXPECT_EQ(a_->arrived.back().flow.source, b_->address(0));
}

TEST_F(StreamPortsTest, descriptor_is_readable_when_something_has_come) {
  meet();
  ASSERT_EQ(a_->send(a_->path_to(*b_, 0), numbered(1, 64)), 0);
  pollfd readable{b_->ports.descriptor(), POLLIN, 0};
  EXPECT_EQ(poll(&readable, 1, static_cast<int>(kStreamPatienceNs / 1'000'000)), 1);
}

TEST_F(StreamPortsTest, sender_is_told_of_a_peer_that_takes_nothing_and_goes_on_when_it_does) {
  meet();
  constexpr uint32_t kMost = 100'000;
  uint32_t taken = 0;
  int error = 0;
  while (error == 0 && taken < kMost) {
    error = a_->ports.send(a_->path_to(*b_, 0), numbered(taken, 64));
    taken += error == 0 ? 1U : 0U;
  }
  ASSERT_EQ(error, EAGAIN);
  EXPECT_EQ(a_->ports.send(a_->path_to(*b_, 0), numbered(0, 64)), EAGAIN);
  ASSERT_TRUE(has_arrived(taken));
  EXPECT_EQ(b_->arrived.size(), taken);  // none was lost, and none came that was refused
  EXPECT_EQ(b_->arrived.back().packet[0], numbered(taken - 1, 64)[0]);
  EXPECT_EQ(a_->send(a_->path_to(*b_, 0), numbered(9, 64)), 0);
  EXPECT_TRUE(has_arrived(taken + 1));
}

TEST_F(StreamPortsTest, port_is_deserted_once_its_peer_has_left) {
  EXPECT_FALSE(a_->ports.take_news());
  meet();
  EXPECT_FALSE(a_->ports.take_news());
  EXPECT_FALSE(a_->port.live->stream_is_deserted);
  b_->ports.leave();
  b_.reset();
  EXPECT_TRUE(becomes([&] { return a_->port.live->stream_is_deserted.load(); }));
  EXPECT_TRUE(a_->ports.take_news());
  EXPECT_FALSE(a_->ports.take_news());
  EXPECT_EQ(a_->ports.excused_until_ns(a_->port.netdev_index, base::now_ns()), 0U);  // it has ended, not paused
}

TEST_F(StreamPortsTest, silence_of_a_stream_is_no_fault_of_the_peer) {
  meet();
  EXPECT_EQ(a_->ports.excused_until_ns(a_->port.netdev_index, base::now_ns()), 0U);
  EXPECT_EQ(a_->ports.excused_until_ns(kFirstStreamInterface + 7, base::now_ns()), 0U);
  b_.reset();  // without a word
  EXPECT_TRUE(becomes([&] {
    const uint64_t now = base::now_ns();
    return a_->ports.excused_until_ns(a_->port.netdev_index, now) != 0;
  }));
}

TEST(StreamPairs, port_reaches_itself) {
  StreamEnd only(3, {"pair:", "pair:"});
  ASSERT_EQ(only.send(only.path_to(only, 1), numbered(7, 400)), 0);
  const uint64_t deadline = base::now_ns() + kStreamPatienceNs;
  while (only.arrived.empty() && base::now_ns() < deadline) {
    only.look();
  }
  ASSERT_EQ(only.arrived.size(), 1U);
  EXPECT_EQ(only.arrived[0].flow.source, only.address(1));
  EXPECT_EQ(only.arrived[0].flow.destination, only.address(1));
  EXPECT_TRUE(std::equal(only.arrived[0].packet.begin(), only.arrived[0].packet.end() - wire::kIcrcBytes,
                         numbered(7, 400).begin()));
}

TEST(StreamPairs, stand_with_their_like_alone) {
  std::array<int, 2> ends{};
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()), 0);
  const base::UniqueFd a(ends[0]);
  const base::UniqueFd b(ends[1]);
  EXPECT_THROW(StreamEnd(3, {"pair:", "fd:" + std::to_string(ends[0])}), base::Error);
}

}  // namespace
}  // namespace ringbolt::device
