// Processes that hand packets on to each other, all of them played by this one.

#include "link/udp_forwarder.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <array>
#include <cstring>
#include <random>

#include "base/error.h"
#include "link/rendezvous_test_support.h"
#include "link/udp_test_support.h"

namespace ringbolt::link {
namespace {

using namespace testing;

constexpr size_t kHeaderBytes = 56;  // docs/formats/udp-sharing.md
constexpr size_t kShare = 256;       // what waits for one member at most

class UdpForwarding : public ::testing::Test {
 protected:
  std::unique_ptr<UdpForwarder> member(uint32_t slot) const {
    return std::make_unique<UdpForwarder>(folder_.path(), slot);
  }
  UdpDatagram datagram(uint32_t number, size_t packets = 1, size_t packet_bytes = 64) const {
    UdpDatagram made;
    made.flow = {local_ipv4(1), local_ipv4(2), static_cast<uint16_t>(number), wire::kRocePort};
    made.interface_index = number;
    made.buffer = pool_->take_large();
    made.segment_bytes = packet_bytes;
    for (size_t i = 0; i < packets; ++i) {
      const auto packet = numbered_packet(5, number + static_cast<uint32_t>(i), packet_bytes);
      std::memcpy(made.buffer.get()->data() + made.bytes, packet.data(), packet.size());
      made.bytes += packet.size();
    }
    return made;
  }
  UdpForwarder::PassedOn pass_on(UdpForwarder& from, uint32_t slot, uint32_t number) const {
    const UdpDatagram one = datagram(number);
    return from.pass_on(slot, one, 0, one.bytes);
  }
  UdpForwarder::Read read(UdpForwarder& by, UdpDatagram& into) const {
    into.buffer = pool_->take_large();
    return by.read(into);
  }
  /// The numbers of the packets that have come.
  std::vector<uint32_t> read_all(UdpForwarder& by) const {
    std::vector<uint32_t> numbers;
    UdpDatagram got;
    while (read(by, got) == UdpForwarder::Read::packets) {
      numbers.push_back(number_of(got.packet_at(0)));
    }
    return numbers;
  }
  /// Sends numbers from `first` on until one has to wait; the next one.
  uint32_t fill(UdpForwarder& from, uint32_t slot, uint32_t first = 0) const {
    while (!from.has_waiting() && first < 1'000'000) {
      EXPECT_EQ(pass_on(from, slot, first++), UdpForwarder::PassedOn::yes);
    }
    return first;
  }

  TempFolder folder_;
  std::shared_ptr<UdpBufferPool> pool_ = UdpBufferPool::make();
};

TEST_F(UdpForwarding, carries_packets_with_where_they_came_from) {
  const auto one = member(1);
  const auto two = member(2);
  const UdpDatagram sent = datagram(40, 5, 100);
  ASSERT_EQ(one->pass_on(2, sent, 100, 300), UdpForwarder::PassedOn::yes);
  EXPECT_TRUE(is_readable(two->descriptor()));
  UdpDatagram got;
  ASSERT_EQ(read(*two, got), UdpForwarder::Read::packets);
  EXPECT_EQ(got.flow, sent.flow);
  EXPECT_EQ(got.interface_index, sent.interface_index);
  EXPECT_EQ(got.bytes, 300U);
  EXPECT_EQ(got.segment_bytes, 100U);
  EXPECT_TRUE(got.is_forwarded) << "or it might go round in circles";
  EXPECT_EQ(std::memcmp(got.buffer.get()->data(), sent.buffer.get()->data() + 100, 300), 0);
  EXPECT_EQ(read(*two, got), UdpForwarder::Read::nothing);
  EXPECT_TRUE(two->announce_change(1));
  EXPECT_EQ(read(*one, got), UdpForwarder::Read::change);
  EXPECT_FALSE(two->announce_change(3));
}

TEST_F(UdpForwarding, what_a_full_member_does_not_take_waits_in_order_and_delays_no_other) {
  const auto one = member(1);
  const auto slow = member(2);
  const auto quick = member(3);
  uint32_t sent = fill(*one, 2);
  EXPECT_TRUE(one->has_waiting());
  EXPECT_EQ(pass_on(*one, 3, 7), UdpForwarder::PassedOn::yes);
  EXPECT_EQ(read_all(*quick), std::vector<uint32_t>{7});
  std::vector<uint32_t> got;
  for (int round = 0; round < 6; ++round) {
    const auto some = read_all(*slow);  // makes room, into which nothing may overtake what waits
    got.insert(got.end(), some.begin(), some.end());
    for (int i = 0; i < 20; ++i) {
      ASSERT_EQ(pass_on(*one, 2, sent++), UdpForwarder::PassedOn::yes);
    }
    pollfd retry{one->retry_descriptor(), POLLIN, 0};
    ASSERT_EQ(poll(&retry, 1, kPatienceNs / 1'000'000), 1) << "nobody would try again";
    EXPECT_EQ(one->retry(), 0U);
  }
  for (int round = 0; round < 1000 && got.size() < sent; ++round) {
    const auto some = read_all(*slow);
    got.insert(got.end(), some.begin(), some.end());
    EXPECT_EQ(one->retry(), 0U);
  }
  std::vector<uint32_t> wanted(sent);
  for (uint32_t i = 0; i < sent; ++i) {
    wanted[i] = i;
  }
  EXPECT_EQ(got, wanted);
  EXPECT_FALSE(one->has_waiting());
}

TEST_F(UdpForwarding, a_stopped_member_takes_its_share_of_the_room_and_no_more) {
  const auto one = member(1);
  const auto stopped = member(2);
  const auto other = member(3);
  fill(*one, 2);
  for (size_t waiting = 1; waiting < kShare; ++waiting) {
    ASSERT_EQ(pass_on(*one, 2, 0), UdpForwarder::PassedOn::yes) << waiting;
  }
  EXPECT_EQ(pass_on(*one, 2, 0), UdpForwarder::PassedOn::lost);
  EXPECT_EQ(pass_on(*one, 3, 0), UdpForwarder::PassedOn::yes);
  EXPECT_EQ(read_all(*other).size(), 1U);
}

TEST_F(UdpForwarding, those_who_are_gone_are_told_from_those_who_have_died) {
  const auto one = member(1);
  EXPECT_EQ(pass_on(*one, 2, 0), UdpForwarder::PassedOn::nobody_there);
  auto two = member(2);
  fill(*one, 2);
  pass_on(*one, 2, 0);
  two->abandon_after_fork();  // as a kill does: the socket is closed, its name stays
  EXPECT_EQ(one->retry(), 2U) << "both that waited";
  EXPECT_FALSE(one->has_waiting());
  EXPECT_EQ(pass_on(*one, 2, 0), UdpForwarder::PassedOn::lost);
  two.reset();
  two = member(2);  // takes the dead one's place
  EXPECT_EQ(pass_on(*one, 2, 9), UdpForwarder::PassedOn::yes);
  EXPECT_EQ(read_all(*two), std::vector<uint32_t>{9});
  two.reset();
  EXPECT_EQ(pass_on(*one, 2, 0), UdpForwarder::PassedOn::nobody_there) << "who leaves takes its name along";
}

TEST_F(UdpForwarding, is_for_its_user_alone_and_stays_its_parents) {
  const mode_t before = umask(0777);  // of a program that leaves itself no rights either
  const auto one = member(1);
  umask(before);
  struct stat status {};
  ASSERT_EQ(stat((folder_.path() + "/1.udp").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777U, 0600U);
  Child child([&one] {
    one->~UdpForwarder();  // as exit() does with what its parent has made
    return 0;
  });
  child.wait();
  EXPECT_TRUE(member(2)->announce_change(1));
  EXPECT_THROW(UdpForwarder(folder_.path() + "/none", 1), base::Error);
}

TEST_F(UdpForwarding, works_in_a_folder_whose_path_is_too_long_for_a_socket) {
  const std::string deep = folder_.path() + "/" + std::string(120, 'd');
  ASSERT_EQ(mkdir(deep.c_str(), 0700), 0);
  UdpForwarder one(deep, 1);
  UdpForwarder two(deep, 2);
  EXPECT_EQ(pass_on(one, 2, 3), UdpForwarder::PassedOn::yes);
  EXPECT_EQ(read_all(two), std::vector<uint32_t>{3});
}

/// A datagram as a member sends it, and who sends it changed.
class HostileForwarding : public UdpForwarding {
 protected:
  HostileForwarding() : socket_(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)) {
    const auto sender = member(8);
    const SocketAddress mine = at(9);
    EXPECT_EQ(bind(socket_.get(), mine.get(), mine.length), 0);
    EXPECT_EQ(pass_on(*sender, 9, 5), UdpForwarder::PassedOn::yes);
    good_.resize(kHeaderBytes + 64);
    EXPECT_EQ(recv(socket_.get(), good_.data(), good_.size(), 0), static_cast<ssize_t>(good_.size()));
  }
  SocketAddress at(uint32_t slot) const { return *socket_address(folder_.path(), -1, std::to_string(slot) + ".udp"); }
  void send(const std::vector<std::byte>& bytes, uint32_t slot) const {
    const SocketAddress to = at(slot);
    EXPECT_EQ(sendto(socket_.get(), bytes.data(), bytes.size(), 0, to.get(), to.length),
              static_cast<ssize_t>(bytes.size()));
  }
  std::vector<std::byte> changed(size_t offset, uint32_t word) const {
    std::vector<std::byte> bytes = good_;
    std::memcpy(bytes.data() + offset, &word, sizeof word);
    return bytes;
  }

  base::UniqueFd socket_;
  std::vector<std::byte> good_;
};

TEST_F(HostileForwarding, what_no_member_sends_is_malformed) {
  const auto victim = member(1);
  const auto without_packets = std::vector<std::byte>(good_.begin(), good_.begin() + kHeaderBytes);
  std::vector<std::byte> longest(good_);
  longest.resize(kHeaderBytes + UdpBufferPool::kLargeBytes);
  std::vector<std::byte> too_long(longest);
  too_long.resize(longest.size() + 1);
  UdpDatagram got;
  const auto outcome = [&](const std::vector<std::byte>& bytes) {
    send(bytes, 1);
    return read(*victim, got);
  };
  EXPECT_EQ(outcome(good_), UdpForwarder::Read::packets);
  EXPECT_EQ(outcome({}), UdpForwarder::Read::malformed);
  EXPECT_EQ(outcome({without_packets.begin(), without_packets.end() - 1}), UdpForwarder::Read::malformed);
  EXPECT_EQ(outcome(without_packets), UdpForwarder::Read::malformed);
  EXPECT_EQ(outcome(changed(0, 0x7564'4253)), UdpForwarder::Read::malformed) << "magic";
  EXPECT_EQ(outcome(changed(4, 0)), UdpForwarder::Read::malformed) << "kind";
  EXPECT_EQ(outcome(changed(4, 3)), UdpForwarder::Read::malformed) << "kind";
  EXPECT_EQ(outcome(changed(12, 0)), UdpForwarder::Read::malformed) << "packets of no bytes would never end";
  EXPECT_EQ(outcome(changed(12, 15)), UdpForwarder::Read::malformed);
  EXPECT_EQ(outcome(changed(12, UINT32_MAX)), UdpForwarder::Read::packets);
  EXPECT_EQ(got.packet_at(0).size(), 64U) << "no longer than what has come";
  EXPECT_EQ(outcome(longest), UdpForwarder::Read::packets);
  EXPECT_EQ(outcome(too_long), UdpForwarder::Read::malformed);
  EXPECT_EQ(outcome(good_), UdpForwarder::Read::packets) << "and it goes on";
}

TEST_F(HostileForwarding, whatever_comes_is_packets_of_a_sound_length_or_refused) {
  const auto victim = member(1);
  for (uint32_t seed = 0; seed < 2000; ++seed) {
    std::mt19937 random(seed);
    std::vector<std::byte> bytes = good_;
    bytes.resize(kHeaderBytes + random() % 200);
    for (size_t changes = 1 + random() % 3; changes > 0; --changes) {
      bytes[8 + random() % (bytes.size() - 8)] = static_cast<std::byte>(random());
    }
    send(bytes, 1);
    UdpDatagram got;
    if (read(*victim, got) != UdpForwarder::Read::packets) {
      continue;
    }
    ASSERT_TRUE(got.is_forwarded);
    size_t total = 0;
    for (size_t offset = 0; offset < got.bytes; offset += got.packet_at(offset).size()) {
      ASSERT_FALSE(got.packet_at(offset).empty()) << "seed " << seed;
      total += got.packet_at(offset).size();
    }
    ASSERT_EQ(total, bytes.size() - kHeaderBytes) << "seed " << seed;
  }
}

TEST_F(HostileForwarding, descriptors_that_come_along_do_not_stay) {
  const auto victim = member(1);
  const size_t before = open_descriptors();
  std::array<std::byte, CMSG_SPACE(sizeof(int))> control{};
  for (int i = 0; i < 3; ++i) {
    const SocketAddress to = at(1);
    iovec part{good_.data(), good_.size()};
    msghdr message{};
    message.msg_name = const_cast<sockaddr*>(to.get());
    message.msg_namelen = to.length;
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    cmsghdr* const gift = CMSG_FIRSTHDR(&message);
    gift->cmsg_level = SOL_SOCKET;
    gift->cmsg_type = SCM_RIGHTS;
    gift->cmsg_len = CMSG_LEN(sizeof(int));
    const int given = socket_.get();
    std::memcpy(CMSG_DATA(gift), &given, sizeof given);
    ASSERT_GT(sendmsg(socket_.get(), &message, 0), 0);
    UdpDatagram got;
    read(*victim, got);
  }
  EXPECT_EQ(open_descriptors(), before);
}

}  // namespace
}  // namespace ringbolt::link
