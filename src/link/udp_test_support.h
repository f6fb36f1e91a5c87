#pragma once

#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "link/rendezvous_test_support.h"
#include "link/udp_batch.h"
#include "link/udp_endpoint.h"
#include "link/udp_selector.h"
#include "wire/icrc.h"

/// What the tests of the UDP link share. Port 4791 is theirs alone: each test runs in a network namespace of its own.
namespace ringbolt::link::testing {

inline constexpr int kSkipped = 77;

inline bool bring_up_loopback() {
  const base::UniqueFd any(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  ifreq request{};
  std::strcpy(request.ifr_name, "lo");
  request.ifr_flags = IFF_UP;
  return ioctl(any.get(), SIOCSIFFLAGS, &request) == 0;
}

/// Runs `body` in a child with a network namespace of its own. Its failed expectations fail the test.
inline void in_own_network(const std::function<void()>& body) {
  Child child([&body] {
    if (unshare(geteuid() == 0 ? CLONE_NEWNET : CLONE_NEWUSER | CLONE_NEWNET) != 0 || !bring_up_loopback()) {
      return kSkipped;
    }
    body();
    std::fflush(nullptr);
    return ::testing::Test::HasFailure() ? 1 : 0;
  });
  const int status = child.wait();
  if (WIFEXITED(status) && WEXITSTATUS(status) == kSkipped) {
    GTEST_SKIP() << "skip: no permission to make a network namespace";
  }
  EXPECT_TRUE(WIFEXITED(status)) << "signal " << WTERMSIG(status);
  EXPECT_EQ(WEXITSTATUS(status), 0) << "see the messages above";
}

inline constexpr uint32_t kSlotShift = 14;
inline uint32_t qpn_of(uint32_t slot) { return slot << kSlotShift | 5U; }

/// What shares a port is told apart by a filter that the kernel runs.
inline void in_own_network_with_selectors(const std::function<void()>& body) {
  const base::UniqueFd socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (attach_udp_selector(socket.get(), udp_selector({}, 1, kSlotShift)) == ENOPROTOOPT) {
    GTEST_SKIP() << "skip: no filters on sockets that share a port (an emulator)";
  }
  in_own_network(body);
}

inline wire::Address local_ipv4(uint8_t last = 1) { return wire::ipv4_address(127, 0, 0, last); }
inline wire::Address local_ipv6() { return {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}; }
inline UdpPath ipv4_path() { return {local_ipv4(2), local_ipv4(3), 0, 0}; }
inline UdpPath ipv6_path() { return {local_ipv6(), local_ipv6(), 0, 0}; }

/// The slots' folder of a test.
class SlotsFolder {
 public:
  SlotsFolder() { EXPECT_EQ(mkdir(folder_.slots().c_str(), 0700), 0); }
  std::string path() const { return folder_.slots(); }
  std::unique_ptr<UdpEndpoint> open(uint32_t slot) const {
    return UdpEndpoint::open({path(), slot, kSlotShift, wire::kRocePort});
  }

 private:
  TempFolder folder_;
};

/// A packet whose bytes depend on its number: a BTH to `qpn`, and `length` bytes in all, ICRC not included.
inline std::vector<std::byte> numbered_packet(uint32_t qpn, uint32_t number, size_t length) {
  std::vector<std::byte> packet(length);
  for (size_t i = 0; i < length; ++i) {
    packet[i] = static_cast<std::byte>(number * 31 + i * 7 + (i >> 8U));
  }
  packet[0] = std::byte{0x04};
  packet[4] = std::byte{0};
  for (size_t i = 0; i < 3; ++i) {
    packet[5 + i] = static_cast<std::byte>(qpn >> (16 - 8 * i));
  }
  std::memcpy(packet.data() + 8, &number, sizeof number);
  return packet;
}

inline uint32_t number_of(std::span<const std::byte> packet) {
  uint32_t number = 0;
  std::memcpy(&number, packet.data() + 8, sizeof number);
  return number;
}

/// False when the batch is full.
inline bool put(UdpBatch& batch, const UdpPath& path, const std::vector<std::byte>& packet) {
  const std::span<std::byte> place = batch.reserve(packet.size());
  if (place.empty()) {
    return false;
  }
  std::memcpy(place.data(), packet.data(), packet.size());
  batch.commit(path, packet.size());
  return true;
}

inline void send_numbered(UdpEndpoint& from, const UdpPath& path, uint32_t slot, uint32_t number, size_t length = 64) {
  UdpBatch batch(from);
  EXPECT_TRUE(put(batch, path, numbered_packet(qpn_of(slot), number, length)));
  EXPECT_EQ(batch.flush().sent, 1U);
}

struct Seen {
  wire::Flow flow;
  uint32_t interface_index = 0;
  uint16_t segment = 0;
  std::vector<std::byte> packet;
  UdpBufferRef buffer;
};

/// Receives until `count` packets are there; fewer when it takes too long.
inline std::vector<Seen> receive_packets(UdpEndpoint& endpoint, size_t count) {
  std::vector<Seen> seen;
  const uint64_t deadline = base::now_ns() + kPatienceNs;
  while (seen.size() < count && base::now_ns() < deadline) {
    endpoint.receive(
        [&seen](const UdpEndpoint::Arrived& arrived) {
          seen.push_back({arrived.flow,
                          arrived.interface_index,
                          arrived.segment,
                          {arrived.packet.begin(), arrived.packet.end()},
                          arrived.keep()});
        },
        4);
  }
  EXPECT_EQ(seen.size(), count);
  return seen;
}

/// Looks at every socket twice.
inline size_t drain(UdpEndpoint& endpoint) {
  size_t packets = 0;
  for (int i = 0; i < 2; ++i) {
    packets += endpoint.receive([](const UdpEndpoint::Arrived&) {}, 1024, true).value_or(0);
  }
  return packets;
}

/// The packet that numbered_packet() made, on its path, with a right ICRC.
inline void expect_packet(const Seen& seen, const UdpPath& path, uint32_t qpn, uint32_t number, size_t length) {
  const std::vector<std::byte> sent = numbered_packet(qpn, number, length);
  ASSERT_EQ(seen.packet.size(), length + 4) << "packet " << number;
  EXPECT_TRUE(std::equal(sent.begin(), sent.end(), seen.packet.begin())) << "packet " << number;
  EXPECT_TRUE(wire::check_icrc(seen.flow, seen.packet)) << "packet " << number;
  EXPECT_EQ(seen.flow, (wire::Flow{path.source, path.destination, wire::kRocePort, wire::kRocePort}));
}

inline bool is_readable(int fd) {
  pollfd waiting{fd, POLLIN, 0};
  return poll(&waiting, 1, 0) == 1;
}

}  // namespace ringbolt::link::testing
