#include "link/udp_endpoint.h"

#include <netinet/udp.h>

#include <thread>

#include "base/error.h"
#include "link/udp_test_support.h"

namespace ringbolt::link {
namespace {

using namespace testing;

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

/// How many packets a poller's call brings.
size_t poll_once(UdpEndpoint& endpoint) {
  return endpoint.receive([](const UdpEndpoint::Arrived&) {}, 32).value_or(0);
}

TEST(UdpEndpoint, looks_no_second_time_after_datagrams_that_came_alone) {
  in_own_network([] {
    const SlotsFolder folder;
    const auto endpoint = folder.open(3);
    drain(*endpoint);
    send_numbered(*endpoint, ipv4_path(), 3, 0);
    EXPECT_EQ(drain(*endpoint), 1U);  // alone, and the source is one to be looked at
    send_numbered(*endpoint, ipv4_path(), 3, 1);
    send_numbered(*endpoint, ipv4_path(), 3, 2);
    EXPECT_EQ(poll_once(*endpoint), 1U);
    EXPECT_TRUE(is_readable(endpoint->descriptor()));  // who sleeps is woken for the other one
    EXPECT_EQ(poll_once(*endpoint), 1U);
    EXPECT_FALSE(is_readable(endpoint->descriptor()));
    EXPECT_EQ(poll_once(*endpoint), 0U);
  });
}

TEST(UdpEndpoint, finds_a_queue_that_builds_up) {
  in_own_network([] {
    const SlotsFolder folder;
    const auto endpoint = folder.open(3);
    drain(*endpoint);
    send_numbered(*endpoint, ipv4_path(), 3, 0);
    EXPECT_EQ(drain(*endpoint), 1U);
    constexpr size_t kPackets = 40;
    for (uint32_t i = 0; i < kPackets; ++i) {
      send_numbered(*endpoint, ipv4_path(), 3, i);
    }
    size_t got = 0;
    size_t polls = 0;
    for (; got < kPackets && polls < kPackets; ++polls) {
      got += poll_once(*endpoint);
    }
    EXPECT_EQ(got, kPackets);
    EXPECT_LE(polls, 18U);  // 16 that believe in one, and then all
    for (uint32_t i = 0; i < 4; ++i) {
      send_numbered(*endpoint, ipv4_path(), 3, i);
    }
    EXPECT_EQ(poll_once(*endpoint), 4U);  // and so it goes on
  });
}

TEST(UdpEndpoint, takes_all_where_it_was_woken) {
  in_own_network([] {
    const SlotsFolder folder;
    const auto endpoint = folder.open(3);
    drain(*endpoint);
    send_numbered(*endpoint, ipv4_path(), 3, 0);
    EXPECT_EQ(drain(*endpoint), 1U);
    for (uint32_t i = 0; i < 3; ++i) {
      send_numbered(*endpoint, ipv4_path(), 3, i);
    }
    EXPECT_EQ(endpoint->receive([](const UdpEndpoint::Arrived&) {}, 32, true), 3U);
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
                EXPECT_EQ(endpoint->receive([](const UdpEndpoint::Arrived&) {}, 1), std::nullopt);
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
