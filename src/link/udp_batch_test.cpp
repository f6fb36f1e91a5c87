#include "link/udp_batch.h"

#include <poll.h>

#include <cstdlib>

#include "link/udp_segmentation.h"
#include "link/udp_test_support.h"

namespace ringbolt::link {
namespace {

using namespace testing;

std::span<const std::byte> without_icrc(const Seen& seen) {
  return std::span<const std::byte>(seen.packet).first(seen.packet.size() - 4);
}

// The IPv4 identification is covered by the ICRC and hidden by the socket: the batch must know it.
TEST(UdpBatch, numbers_the_segments_of_a_call) {
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

TEST(UdpBatch, keeps_the_order_of_mixed_sizes_and_families) {
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

// A shaped cable: what does not fit into the socket stays in the batch, in order, and the descriptor tells of room.
TEST(UdpBatch, keeps_what_a_full_socket_does_not_take) {
  in_own_network([] {
    if (std::system("tc qdisc add dev lo root tbf rate 200mbit burst 256kb limit 400mb 2> /dev/null") != 0) {
      std::puts("skip: no tc, or no tbf in this kernel");
      return;
    }
    const SlotsFolder folder;
    const auto endpoint = folder.open(3);
    UdpBatch batch(*endpoint);
    constexpr uint32_t kAtMost = 20'000;
    uint32_t sent = 0;
    uint32_t received = 0;
    const auto take = [&] {
      endpoint->receive([&](const UdpEndpoint::Arrived& arrived) { EXPECT_EQ(number_of(arrived.packet), received++); },
                        64, true);
    };
    // Made once: the test must be quicker than the interface, on a busy machine too.
    std::vector<std::byte> packet = numbered_packet(qpn_of(3), 0, 4108);
    UdpBatch::Flushed flushed;
    while (flushed.left == 0 && sent < kAtMost) {
      while (put(batch, ipv6_path(), packet)) {
        ++sent;
        std::memcpy(packet.data() + 8, &sent, sizeof sent);
      }
      flushed = batch.flush();
      take();
    }
    if (flushed.left == 0) {
      std::puts("skip: this machine is too busy to fill the socket faster than the interface empties it");
      return;
    }
    EXPECT_EQ(flushed.error, EAGAIN);
    EXPECT_EQ(flushed.refused, 0U);
    EXPECT_EQ(batch.packet_count(), flushed.left);
    const uint64_t deadline = base::now_ns() + kPatienceNs;
    while (received < sent && base::now_ns() < deadline) {
      pollfd waiting{endpoint->descriptor(), POLLIN, 0};
      EXPECT_EQ(poll(&waiting, 1, 10'000), 1);
      batch.flush();
      take();
    }
    EXPECT_EQ(received, sent);
    EXPECT_TRUE(batch.is_empty());
    EXPECT_FALSE(is_readable(endpoint->descriptor()));  // no longer because of room
  });
}

// Of the other family's there always is.
TEST(UdpBatch, hears_of_room_in_the_socket_that_is_full_only) {
  in_own_network([] {
    if (std::system("tc qdisc add dev lo root tbf rate 1kbit burst 64kb limit 400mb 2> /dev/null") != 0) {
      std::puts("skip: no tc, or no tbf in this kernel");
      return;
    }
    const SlotsFolder folder;
    const auto endpoint = folder.open(3);
    for (const UdpPath& path : {ipv4_path(), ipv6_path()}) {
      UdpBatch batch(*endpoint);
      const std::vector<std::byte> packet = numbered_packet(qpn_of(3), 0, 4108);
      constexpr int kAtMost = 20'000;
      int sent = 0;
      for (UdpBatch::Flushed flushed; flushed.left == 0 && sent < kAtMost; flushed = batch.flush()) {
        for (; put(batch, path, packet); ++sent) {
        }
      }
      ASSERT_FALSE(batch.is_empty());
      int looks = 0;
      for (; looks < kAtMost && is_readable(endpoint->descriptor()); ++looks) {  // what came in before it was slow
        endpoint->receive([](const UdpEndpoint::Arrived&) {}, 64, true);
      }
      EXPECT_LT(looks, kAtMost);
    }
  });
}

TEST(UdpBatch, counts_what_the_kernel_refuses_and_goes_on) {
  in_own_network([] {
    const SlotsFolder folder;
    const auto endpoint = folder.open(3);
    UdpBatch batch(*endpoint);
    const auto flush_four_to = [&](const UdpPath& path, size_t length) {
      for (uint32_t i = 0; i < 4; ++i) {
        EXPECT_TRUE(put(batch, path, numbered_packet(qpn_of(3), i, length)));
      }
      return batch.flush();
    };
    const UdpPath nowhere{local_ipv4(2), wire::ipv4_address(10, 1, 2, 3), 0, 0};
    EXPECT_EQ(flush_four_to(nowhere, 64).refused, 4U);
    EXPECT_EQ(flush_four_to({wire::ipv4_address(10, 1, 2, 3), local_ipv4(3), 0, 0}, 64).refused, 4U);
    EXPECT_GT(endpoint->counters().unreachable, 0U);
    if (std::system("ip link set lo mtu 1500 2> /dev/null") == 0) {
      const auto flushed = flush_four_to(ipv4_path(), 4108);
      EXPECT_EQ(flushed.refused, 4U);
      EXPECT_EQ(flushed.too_long, 4U);
      EXPECT_EQ(flushed.error, EMSGSIZE);
      EXPECT_EQ(flush_four_to(ipv6_path(), 4108).too_long, 4U);
    }
    for (const UdpPath& path : {ipv4_path(), ipv6_path()}) {
      EXPECT_EQ(flush_four_to(path, 1036).sent, 4U);  // and segmentation was not given up for that
      EXPECT_EQ(receive_packets(*endpoint, 4).size(), 4U);
    }
    EXPECT_EQ(endpoint->counters().sent_messages, 2U);
  });
}

TEST(UdpBatch, ends_a_call_where_the_slot_changes) {
  in_own_network_with_selectors([] {
    const SlotsFolder folder;
    const auto first = folder.open(3);
    const auto second = folder.open(4);
    UdpBatch batch(*first);
    for (uint32_t i = 0; i < 12; ++i) {
      ASSERT_TRUE(put(batch, ipv4_path(), numbered_packet(qpn_of(3 + i / 6), i, 64)));
    }
    EXPECT_EQ(batch.flush().sent, 12U);
    EXPECT_EQ(first->counters().sent_messages, 2U);
    EXPECT_EQ(receive_packets(*first, 6).size(), 6U);
    EXPECT_EQ(receive_packets(*second, 6).size(), 6U);
    EXPECT_EQ(first->counters().forwarded_packets + second->counters().forwarded_packets, 0U);
  });
}

TEST(UdpBatch, says_when_it_is_full_and_forgets_on_request) {
  in_own_network([] {
    const SlotsFolder folder;
    const auto endpoint = folder.open(3);
    UdpBatch batch(*endpoint);
    uint32_t packets = 0;
    while (put(batch, ipv4_path(), numbered_packet(qpn_of(3), packets, 4108))) {
      ++packets;
    }
    EXPECT_EQ(packets, 65536U / 4112U);
    batch.clear();
    EXPECT_TRUE(batch.is_empty());
    EXPECT_EQ(batch.flush().sent, 0U);
    for (packets = 0; put(batch, ipv4_path(), numbered_packet(qpn_of(3), packets, 12 + 4 * packets)); ++packets) {
    }
    EXPECT_EQ(packets, 32U);  // growing sizes: each a message of its own
    EXPECT_EQ(batch.flush().sent, 32U);
    EXPECT_EQ(receive_packets(*endpoint, 32).size(), 32U);
  });
}

TEST(UdpSegmentationMemory, remembers_the_place_that_refused) {
  UdpSegmentationMemory memory;
  UdpPath path = ipv6_path();
  EXPECT_FALSE(memory.is_refused(path));
  memory.refuse(path);
  EXPECT_TRUE(memory.is_refused(path));
  path.interface_index = 7;
  EXPECT_FALSE(memory.is_refused(path));
  EXPECT_FALSE(memory.is_refused(ipv4_path()));
}

}  // namespace
}  // namespace ringbolt::link
