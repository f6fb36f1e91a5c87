// What comes in at the port from anybody: delivered, passed on or counted, each packet once.

#include <gtest/gtest.h>
#include <netinet/udp.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <random>

#include "link/udp_endpoint.h"
#include "link/udp_forwarder.h"
#include "link/udp_test_support.h"

namespace ringbolt::link {
namespace {

using namespace testing;

/// A plain socket of either family.
class PlainSender {
 public:
  explicit PlainSender(bool is_ipv4) : socket_(::socket(is_ipv4 ? AF_INET : AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
    const UdpPath path = is_ipv4 ? UdpPath{local_ipv4(), local_ipv4(), 0, 0} : ipv6_path();
    UdpMessageHeader header;
    msghdr message{};
    iovec bytes{};
    header.set(path, wire::kRocePort, 0);
    header.attach(message, bytes);
    EXPECT_EQ(connect(socket_.get(), static_cast<sockaddr*>(message.msg_name), message.msg_namelen), 0);
  }
  void send(const std::vector<std::byte>& bytes, int segment_bytes = 0) const {
    EXPECT_EQ(setsockopt(socket_.get(), IPPROTO_UDP, UDP_SEGMENT, &segment_bytes, sizeof segment_bytes), 0);
    EXPECT_EQ(::send(socket_.get(), bytes.data(), bytes.size(), 0), static_cast<ssize_t>(bytes.size()));
  }

 private:
  base::UniqueFd socket_;
};

constexpr uint32_t kReceiver = 3;

/// Whether the receiver has to get it.
bool is_for_receiver(std::span<const std::byte> packet) {
  const bool is_sound = packet.size() >= 16 && packet.size() <= kMaxUdpPacketBytes && packet.size() % 4 == 0;
  return is_sound && packet[0] != std::byte{0x52} &&
         (dest_qp(packet) == 1 || dest_qp(packet) >> kSlotShift == kReceiver);
}

TEST(UdpReceive, each_packet_of_whatever_comes_is_delivered_or_counted) {
  in_own_network([] {
    const SlotsFolder folder;
    const auto endpoint = folder.open(kReceiver);
    const std::array<PlainSender, 2> senders{PlainSender(true), PlainSender(false)};
    uint64_t sent = 0;
    for (uint32_t seed = 0; seed < 600; ++seed) {
      std::mt19937 random(seed);
      const size_t packets = 1 + random() % 8;
      const size_t segment = random() % 20 == 0 ? 4220 + random() % 12 : random() % 90;
      std::vector<std::byte> bytes(segment == 0 ? 0 : (packets - 1) * segment + 1 + random() % segment);
      std::generate(bytes.begin(), bytes.end(), [&] { return static_cast<std::byte>(random()); });
      std::vector<std::vector<std::byte>> wanted;
      for (size_t at = 0; at < bytes.size(); at += segment) {
        const std::span<std::byte> packet = std::span(bytes).subspan(at, std::min(segment, bytes.size() - at));
        if (packet.size() >= 8 && random() % 2 == 0) {
          const uint32_t qpn = random() % 8 == 0 ? 1 : qpn_of(kReceiver + (random() % 2 == 0 ? 0 : 1));
          for (size_t i = 0; i < 3; ++i) {
            packet[5 + i] = static_cast<std::byte>(qpn >> (16 - 8 * i));
          }
        }
        if (is_for_receiver(packet)) {
          wanted.emplace_back(packet.begin(), packet.end());
        }
        ++sent;
      }
      sent += bytes.empty() ? 1U : 0U;  // an empty datagram is a runt
      senders[seed % 2].send(bytes, bytes.size() > segment ? static_cast<int>(segment) : 0);
      std::vector<std::vector<std::byte>> got;
      const auto sink = [&](const UdpEndpoint::Arrived& arrived) {
        got.emplace_back(arrived.packet.begin(), arrived.packet.end());
      };
      while (endpoint->receive(sink, 8, true).value_or(0) != 0) {
      }
      ASSERT_EQ(got, wanted) << "seed " << seed;
    }
    const UdpCounters counters = endpoint->counters();
    EXPECT_EQ(
        counters.received_packets + counters.dropped_runts + counters.dropped_oversize + counters.dropped_strangers,
        sent);
    EXPECT_GT(counters.dropped_oversize, 0U);
    EXPECT_GT(counters.dropped_runts, 0U);
  });
}

TEST(UdpReceive, a_flood_in_one_family_does_not_starve_the_other_or_what_is_passed_on) {
  in_own_network([] {
    const SlotsFolder folder;
    const auto endpoint = folder.open(kReceiver);
    UdpForwarder neighbour(folder.path(), 9);
    const PlainSender flood(true);
    for (uint32_t i = 0; i < 100; ++i) {
      flood.send(numbered_packet(qpn_of(kReceiver), i, 64));
    }
    PlainSender(false).send(numbered_packet(qpn_of(kReceiver), 1000, 64));
    UdpDatagram strayed;
    strayed.flow = {local_ipv4(7), local_ipv4(8), 1, 2};
    strayed.buffer = UdpBufferPool::make()->take_large();
    strayed.bytes = strayed.segment_bytes = 64;
    const auto packet = numbered_packet(qpn_of(kReceiver), 2000, 64);
    std::memcpy(strayed.buffer.get()->data(), packet.data(), packet.size());
    ASSERT_EQ(neighbour.pass_on(kReceiver, strayed, 0, 64), UdpForwarder::PassedOn::yes);
    std::vector<uint32_t> numbers;
    endpoint->receive([&](const UdpEndpoint::Arrived& arrived) { numbers.push_back(number_of(arrived.packet)); }, 6,
                      true);
    EXPECT_EQ(std::count(numbers.begin(), numbers.end(), 1000U), 1);
    EXPECT_EQ(std::count(numbers.begin(), numbers.end(), 2000U), 1);
    EXPECT_EQ(drain(*endpoint), 96U);
  });
}

TEST(UdpReceive, what_was_passed_on_in_error_goes_no_further) {
  in_own_network([] {
    const SlotsFolder folder;
    const auto endpoint = folder.open(kReceiver);
    UdpForwarder neighbour(folder.path(), 9);
    UdpForwarder third(folder.path(), 10);
    const auto pool = UdpBufferPool::make();
    UdpDatagram strayed;
    strayed.flow = {local_ipv4(7), local_ipv4(8), 1, 2};
    strayed.interface_index = 1;
    strayed.buffer = pool->take_large();
    strayed.segment_bytes = 64;
    for (const uint32_t slot : {kReceiver, 10U, 10U, kReceiver}) {
      const auto packet = numbered_packet(qpn_of(slot), slot, 64);
      std::memcpy(strayed.buffer.get()->data() + strayed.bytes, packet.data(), packet.size());
      strayed.bytes += packet.size();
    }
    ASSERT_EQ(neighbour.pass_on(kReceiver, strayed, 0, strayed.bytes), UdpForwarder::PassedOn::yes);
    std::vector<uint16_t> places;
    endpoint->receive(
        [&](const UdpEndpoint::Arrived& arrived) {
          EXPECT_EQ(arrived.flow, strayed.flow) << "of its sender, not of who passed it on";
          places.push_back(arrived.segment);
        },
        16, true);
    EXPECT_EQ(places, (std::vector<uint16_t>{0, 3}));
    EXPECT_EQ(endpoint->counters().dropped_strangers, 2U);
    EXPECT_EQ(endpoint->counters().forwarded_packets, 0U);
    UdpDatagram got;
    got.buffer = pool->take_large();
    EXPECT_EQ(third.read(got), UdpForwarder::Read::nothing);
  });
}

}  // namespace
}  // namespace ringbolt::link
