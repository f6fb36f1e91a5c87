#include "link/udp_endpoint.h"

#include <netinet/udp.h>
#include <poll.h>

#include <numeric>
#include <thread>

#include "base/error.h"
#include "link/udp_test_support.h"

namespace ringbolt::link {
namespace {

using namespace testing;

std::span<const std::byte> without_icrc(const Seen& seen) {
  return std::span<const std::byte>(seen.packet).first(seen.packet.size() - 4);
}

void expect_packet(const Seen& seen, const UdpPath& path, uint32_t qpn, uint32_t number, size_t length) {
  const std::vector<std::byte> sent = numbered_packet(qpn, number, length);
  ASSERT_EQ(seen.packet.size(), length + 4) << "packet " << number;
  EXPECT_TRUE(std::equal(sent.begin(), sent.end(), seen.packet.begin())) << "packet " << number;
  EXPECT_TRUE(wire::check_icrc(seen.flow, seen.packet)) << "packet " << number;
  EXPECT_EQ(seen.flow, (wire::Flow{path.source, path.destination, wire::kRocePort, wire::kRocePort}));
}

bool is_readable(int fd) {
  pollfd waiting{fd, POLLIN, 0};
  return poll(&waiting, 1, 0) == 1;
}

/// A plain socket, as a stranger uses it.
class Stranger {
 public:
  Stranger() : socket_(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {}
  void send(const std::vector<std::byte>& bytes, int segment_bytes = 0) const {
    setsockopt(socket_.get(), IPPROTO_UDP, UDP_SEGMENT, &segment_bytes, sizeof segment_bytes);
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(wire::kRocePort);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(sendto(socket_.get(), bytes.data(), bytes.size(), 0, reinterpret_cast<sockaddr*>(&to), sizeof to),
              static_cast<ssize_t>(bytes.size()));
  }

 private:
  base::UniqueFd socket_;
};

TEST(UdpEndpoint, carries_a_packet_over_both_families) {
  in_own_network([] {
    const SlotsFolder folder;
    const auto endpoint = folder.open(3);
    for (const UdpPath& path : {ipv4_path(), ipv6_path()}) {
      for (const size_t length : {size_t{12}, size_t{64}, size_t{1024 + 12}, size_t{4096 + 12}}) {
        send_numbered(*endpoint, path, 3, 7, length);
        const auto seen = receive_packets(*endpoint, 1);
        ASSERT_EQ(seen.size(), 1U);
        expect_packet(seen[0], path, qpn_of(3), 7, length);
        EXPECT_EQ(seen[0].interface_index, 1U);  // lo
      }
    }
  });
}

// The IPv4 identification is covered by the ICRC and hidden by the socket: the batch must know it.
TEST(UdpEndpoint, numbers_the_segments_of_a_call) {
  in_own_network([] {
    const SlotsFolder folder;
    const auto endpoint = folder.open(3);
    for (const UdpPath& path : {ipv4_path(), ipv6_path()}) {
      UdpBatch batch(*endpoint);
      constexpr uint32_t kFull = 15;
      for (uint32_t i = 0; i < kFull; ++i) {
        ASSERT_TRUE(put(batch, path, numbered_packet(qpn_of(3), i, 4108)));
      }
      ASSERT_TRUE(put(batch, path, numbered_packet(qpn_of(3), kFull, 40)));  // a shorter last one
      EXPECT_EQ(batch.packet_count(), kFull + 1);
      const auto flushed = batch.flush();
      EXPECT_EQ(flushed.sent, kFull + 1);
      EXPECT_EQ(flushed.left, 0U);
      const auto seen = receive_packets(*endpoint, kFull + 1);
      ASSERT_EQ(seen.size(), kFull + 1);
      for (uint32_t i = 0; i <= kFull; ++i) {
        expect_packet(seen[i], path, qpn_of(3), i, i < kFull ? 4108 : 40);
        EXPECT_EQ(seen[i].segment, i);
        if (wire::is_ipv4(path.source)) {
          EXPECT_EQ(wire::icrc(seen[i].flow, static_cast<uint16_t>(i), without_icrc(seen[i])),
                    wire::icrc(seen[i].flow, *wire::find_ipv4_id(seen[i].flow, seen[i].packet), without_icrc(seen[i])));
          EXPECT_EQ(wire::find_ipv4_id(seen[i].flow, seen[i].packet), static_cast<uint16_t>(i));
        }
      }
      const UdpCounters counters = endpoint->counters();
      EXPECT_EQ(counters.sent_messages, counters.received_datagrams);
    }
    EXPECT_EQ(endpoint->counters().sent_messages, 2U);
    EXPECT_EQ(endpoint->counters().sent_packets, 32U);
    EXPECT_EQ(endpoint->counters().received_packets, 32U);
    EXPECT_EQ(endpoint->counters().received_bytes, endpoint->counters().sent_bytes);
  });
}

TEST(UdpEndpoint, keeps_the_order_of_mixed_sizes_and_families) {
  in_own_network([] {
    const SlotsFolder folder;
    const auto endpoint = folder.open(3);
    UdpBatch batch(*endpoint);
    std::array<std::vector<uint32_t>, 2> sent;
    uint32_t number = 0;
    const auto collect = [&](size_t count) {
      for (const Seen& seen : receive_packets(*endpoint, count)) {
        EXPECT_TRUE(wire::check_icrc(seen.flow, seen.packet));
        auto& expected = sent[wire::is_ipv4(seen.flow) ? 0 : 1];
        ASSERT_FALSE(expected.empty());
        EXPECT_EQ(number_of(seen.packet), expected.front());
        expected.erase(expected.begin());
      }
    };
    for (int round = 0; round < 50; ++round) {
      for (const size_t length : {64UL, 64UL, 20UL, 20UL, 1036UL, 1036UL, 1036UL, 24UL, 4108UL, 4108UL}) {
        const size_t family = number % 7 < 4 ? 0 : 1;
        const UdpPath path = family == 0 ? ipv4_path() : ipv6_path();
        if (!put(batch, path, numbered_packet(qpn_of(3), number, length))) {
          const size_t count = batch.packet_count();
          EXPECT_EQ(batch.flush().sent, count);
          collect(count);
          ASSERT_TRUE(put(batch, path, numbered_packet(qpn_of(3), number, length)));
        }
        sent[family].push_back(number++);
      }
    }
    const size_t count = batch.packet_count();
    EXPECT_EQ(batch.flush().sent, count);
    collect(count);
    EXPECT_TRUE(sent[0].empty() && sent[1].empty());
  });
}

TEST(UdpEndpoint, drops_and_counts_what_is_no_packet) {
  in_own_network([] {
    const SlotsFolder folder;
    const auto endpoint = folder.open(3);
    const Stranger stranger;
    stranger.send({});
    stranger.send(std::vector<std::byte>(15));
    stranger.send(numbered_packet(qpn_of(3), 0, 18));
    stranger.send(numbered_packet(qpn_of(3), 0, kMaxUdpPacketBytes + 4));
    stranger.send(numbered_packet(qpn_of(3), 0, 65'000));
    stranger.send(numbered_packet(qpn_of(4), 0, 64));                     // a slot that nobody has
    stranger.send(std::vector<std::byte>(24, std::byte{0x52}));           // looks like a probe
    stranger.send(std::vector<std::byte>(64 * 10, std::byte{0x11}), 10);  // runts in one GSO call
    stranger.send(numbered_packet(qpn_of(3), 1, kMaxUdpPacketBytes));     // the longest
    const auto seen = receive_packets(*endpoint, 1);
    ASSERT_EQ(seen.size(), 1U);
    EXPECT_EQ(number_of(seen[0].packet), 1U);
    const UdpCounters counters = endpoint->counters();
    EXPECT_EQ(counters.dropped_runts, 3U + 64U);
    EXPECT_EQ(counters.dropped_oversize, 2U);
    EXPECT_EQ(counters.dropped_strangers, 2U);
    EXPECT_EQ(counters.received_packets, 1U);
    EXPECT_EQ(counters.forwarded_packets, 0U);
  });
}

TEST(UdpEndpoint, keeps_packets_while_they_are_held) {
  in_own_network([] {
    const SlotsFolder folder;
    const auto endpoint = folder.open(3);
    UdpBatch batch(*endpoint);
    std::vector<UdpBufferRef> held;
    std::vector<std::span<const std::byte>> packets;
    constexpr uint32_t kRounds = 40;
    for (uint32_t i = 0; i < kRounds; ++i) {
      ASSERT_TRUE(put(batch, ipv4_path(), numbered_packet(qpn_of(3), 2 * i, 2060)));
      ASSERT_TRUE(put(batch, ipv4_path(), numbered_packet(qpn_of(3), 2 * i + 1, 20)));
      EXPECT_EQ(batch.flush().sent, 2U);
      const uint64_t deadline = base::now_ns() + kPatienceNs;
      while (packets.size() < 2 * (i + 1) && base::now_ns() < deadline) {
        endpoint->receive(
            [&](const UdpEndpoint::Arrived& arrived) {
              held.push_back(arrived.keep());
              packets.push_back(arrived.packet);
            },
            1);
      }
    }
    ASSERT_EQ(packets.size(), 2 * kRounds);
    for (uint32_t i = 0; i < packets.size(); ++i) {
      const auto sent = numbered_packet(qpn_of(3), i, packets[i].size() - 4);
      EXPECT_TRUE(std::equal(sent.begin(), sent.end(), packets[i].begin()));
    }
  });
}

TEST(UdpEndpoint, descriptor_tells_of_packets) {
  in_own_network([] {
    const SlotsFolder folder;
    const auto endpoint = folder.open(3);
    drain(*endpoint);
    EXPECT_FALSE(is_readable(endpoint->descriptor()));
    for (const UdpPath& path : {ipv4_path(), ipv6_path()}) {
      send_numbered(*endpoint, path, 3, 0);
      EXPECT_TRUE(is_readable(endpoint->descriptor()));
      EXPECT_EQ(drain(*endpoint), 1U);
      EXPECT_FALSE(is_readable(endpoint->descriptor()));
    }
  });
}

TEST(UdpEndpoint, lets_one_thread_in_at_a_time) {
  in_own_network([] {
    const SlotsFolder folder;
    const auto endpoint = folder.open(3);
    constexpr uint32_t kPackets = 3000;
    std::atomic<uint32_t> inside{0};
    std::atomic<uint32_t> seen{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < 3; ++t) {
      threads.emplace_back([&] {
        const uint64_t deadline = base::now_ns() + kPatienceNs;
        while (seen < kPackets && base::now_ns() < deadline) {
          endpoint->receive(
              [&](const UdpEndpoint::Arrived& arrived) {
                EXPECT_EQ(inside.fetch_add(1), 0U);
                EXPECT_EQ(number_of(arrived.packet), seen);
                ++seen;
                inside.fetch_sub(1);
              },
              3);
        }
      });
    }
    UdpBatch batch(*endpoint);
    for (uint32_t i = 0; i < kPackets;) {
      if (i - seen > 500) {
        sched_yield();
        continue;
      }
      ASSERT_TRUE(put(batch, ipv6_path(), numbered_packet(qpn_of(3), i++, 64)));
      EXPECT_EQ(batch.flush().left, 0U);
    }
    for (std::thread& thread : threads) {
      thread.join();
    }
    EXPECT_EQ(seen, kPackets);
  });
}

TEST(UdpEndpoint, says_who_holds_the_port) {
  in_own_network([] {
    const SlotsFolder folder;
    base::UniqueFd other(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(wire::kRocePort);
    ASSERT_EQ(bind(other.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    const auto refusal = [](const SlotsFolder& where) {
      try {
        where.open(3);
        return std::string("none");
      } catch (const base::Error& error) {
        EXPECT_EQ(error.errno_value(), EADDRINUSE);
        return std::string(error.what());
      }
    };
    EXPECT_NE(refusal(folder).find("4791"), std::string::npos) << refusal(folder);
    other.reset();
    // Two groups that know nothing of each other would take each other's packets.
    const auto first = folder.open(3);
    const SlotsFolder elsewhere;
    EXPECT_NE(refusal(elsewhere).find("RINGBOLT_RUNTIME_DIR"), std::string::npos) << refusal(elsewhere);
    EXPECT_THROW(UdpEndpoint::open({folder.path(), 1024, 14, wire::kRocePort}), base::Error);
  });
}

TEST(UdpEndpoint, leaves_nothing_behind) {
  in_own_network([] {
    const SlotsFolder folder;
    const size_t before = open_descriptors();
    for (int i = 0; i < 3; ++i) {
      const auto endpoint = folder.open(3);
      const auto other = folder.open(4);
      send_numbered(*endpoint, ipv4_path(), 3, 0);
      send_numbered(*endpoint, ipv4_path(), 4, 0);
    }
    EXPECT_EQ(open_descriptors(), before);
    EXPECT_TRUE(files_in(folder.path()).empty());
  });
}

}  // namespace
}  // namespace ringbolt::link
