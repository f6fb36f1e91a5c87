#include "link/peer_socket.h"

#include <gtest/gtest.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>

#include "link/rendezvous_test_support.h"

namespace ringbolt::link {
namespace {

using namespace testing;

constexpr uint64_t kKey = 0x1234;

/// A socket under test and the raw other end.
struct Pair {
  Pair() {
    std::array<int, 2> fds{};
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds.data()), 0);
    other.reset(fds[1]);
    socket = std::make_unique<PeerSocket>(base::UniqueFd(fds[0]), Watch{epoll.get(), kKey, timer.get()});
  }
  /// The events that are reported now; 0 for none.
  uint32_t events() const {
    epoll_event event{};
    if (epoll_wait(epoll.get(), &event, 1, 0) != 1) {
      return 0;
    }
    EXPECT_EQ(event.data.u64, kKey);
    return event.events;
  }
  /// Reads one numbered message from the raw end; -1 when there is none.
  int64_t read_number() const {
    Datagram datagram;
    return receive_datagram(other.get(), datagram) == Received::message && datagram.length == 4
               ? std::to_integer<int64_t>(datagram.storage[0]) + 256 * std::to_integer<int64_t>(datagram.storage[1])
               : -1;
  }
  bool send_number(uint32_t number, std::span<const int> descriptors = {}) const {
    const std::array<std::byte, 4> bytes{std::byte(number & 255U), std::byte(number >> 8), std::byte{}, std::byte{}};
    return socket->send(bytes, descriptors);
  }
  base::UniqueFd epoll{epoll_create1(EPOLL_CLOEXEC)};
  base::UniqueFd timer{timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK)};
  base::UniqueFd other;
  std::unique_ptr<PeerSocket> socket;
};

TEST(PeerSocket, a_descriptor_that_the_program_has_closed_breaks_the_connection) {
  const Pair pair;
  const std::array<int, 1> closed{1'000'000};
  EXPECT_FALSE(pair.send_number(1, closed));
  EXPECT_EQ(pair.read_number(), -1);
}

TEST(PeerSocket, queues_what_the_socket_does_not_take_and_keeps_the_order) {
  const Pair pair;
  ASSERT_TRUE(pair.socket->watch());
  EXPECT_EQ(pair.events(), 0U);  // room to write is of no interest yet
  constexpr uint32_t kCount = 3000;
  for (uint32_t i = 0; i < kCount; ++i) {
    ASSERT_TRUE(pair.send_number(i));
  }
  EXPECT_EQ(pair.events(), 0U);  // full
  for (uint32_t i = 0; i < kCount;) {
    const int64_t number = pair.read_number();
    if (number >= 0) {
      ASSERT_EQ(number, static_cast<int64_t>(i++));
    } else {
      ASSERT_NE(pair.events() & EPOLLOUT, 0U) << "nothing to read, and no word that more could be written, at " << i;
      pair.socket->flush();
    }
  }
  pair.socket->flush();
  EXPECT_EQ(pair.read_number(), -1);
  EXPECT_EQ(pair.events(), 0U);
}

TEST(PeerSocket, nothing_overtakes_the_queue) {
  const Pair pair;
  constexpr uint32_t kCount = 1000;  // more than a socket takes
  for (uint32_t i = 0; i < kCount; ++i) {
    ASSERT_TRUE(pair.send_number(i));
  }
  EXPECT_EQ(pair.read_number(), 0);  // there is room now, but others wait for it
  EXPECT_EQ(pair.read_number(), 1);
  ASSERT_TRUE(pair.send_number(kCount));
  for (uint32_t i = 2; i <= kCount;) {
    const int64_t number = pair.read_number();
    if (number >= 0) {
      ASSERT_EQ(number, static_cast<int64_t>(i++));
    } else {
      pair.socket->flush();
    }
  }
}

TEST(PeerSocket, too_many_descriptors_are_closed_and_told) {
  const Pair pair;
  const size_t before = open_descriptors();
  alignas(cmsghdr) std::array<std::byte, CMSG_SPACE(sizeof(int) * 16)> control{};
  for (const size_t count : {size_t{5}, size_t{16}}) {
    std::byte word{1};
    iovec part{&word, 1};
    msghdr header{};
    header.msg_iov = &part;
    header.msg_iovlen = 1;
    header.msg_control = control.data();
    header.msg_controllen = CMSG_SPACE(sizeof(int) * count);
    cmsghdr* first = CMSG_FIRSTHDR(&header);
    first->cmsg_level = SOL_SOCKET;
    first->cmsg_type = SCM_RIGHTS;
    first->cmsg_len = CMSG_LEN(sizeof(int) * count);
    std::fill_n(reinterpret_cast<int*>(CMSG_DATA(first)), count, pair.epoll.get());
    ASSERT_EQ(sendmsg(pair.other.get(), &header, MSG_NOSIGNAL), 1);
    {
      Datagram datagram;
      EXPECT_EQ(pair.socket->receive(datagram), Received::oversized) << count;
    }
    EXPECT_EQ(open_descriptors(), before) << count;
  }
}

TEST(PeerSocket, an_unwatched_socket_asks_the_timer) {
  const Pair pair;
  constexpr uint32_t kCount = 3000;
  for (uint32_t i = 0; i < kCount; ++i) {
    ASSERT_TRUE(pair.send_number(i));
  }
  itimerspec left{};
  ASSERT_EQ(timerfd_gettime(pair.timer.get(), &left), 0);
  uint64_t ticks = 0;
  EXPECT_TRUE(left.it_value.tv_nsec > 0 || read(pair.timer.get(), &ticks, sizeof ticks) > 0);
  // Watched later, it reports room as soon as there is some.
  ASSERT_TRUE(pair.socket->watch());
  while (pair.read_number() >= 0) {
  }
  EXPECT_NE(pair.events() & EPOLLOUT, 0U);
}

TEST(PeerSocket, an_endless_queue_breaks_the_connection) {
  const Pair pair;
  ASSERT_TRUE(pair.socket->watch());
  bool is_taken = true;
  size_t count = 0;
  for (; is_taken && count < 2 * kMaxQueuedMessages; ++count) {
    is_taken = pair.send_number(static_cast<uint32_t>(count) & 0xffffU);
  }
  EXPECT_GT(count, kMaxQueuedMessages);
  EXPECT_FALSE(is_taken);
  EXPECT_NE(pair.events() & EPOLLHUP, 0U);
  EXPECT_FALSE(pair.send_number(1));
}

TEST(PeerSocket, descriptors_of_queued_messages_are_copies) {
  const Pair pair;
  const size_t before = open_descriptors();
  for (uint32_t i = 0; i < 500; ++i) {
    const base::UniqueFd memory = marked_memfd(i);
    const int fd = memory.get();
    ASSERT_TRUE(pair.send_number(i, {&fd, 1}));
  }
  EXPECT_GT(open_descriptors(), before);
  for (uint32_t i = 0; i < 500; ++i) {
    Datagram datagram;
    while (receive_datagram(pair.other.get(), datagram) == Received::nothing) {
      pair.socket->flush();
    }
    ASSERT_EQ(datagram.descriptor_count, 1U);
    ASSERT_EQ(mark_of(datagram.descriptors[0].get()), i);
  }
  EXPECT_EQ(open_descriptors(), before);
}

// The kernel reports the reset ahead of what the other end had sent before it closed.
TEST(PeerSocket, last_words_are_read_though_the_connection_was_reset) {
  Pair pair;
  ASSERT_TRUE(pair.send_number(1));  // never read by the other end: its close resets
  const std::array<std::byte, 3> words{std::byte{7}, std::byte{8}, std::byte{9}};
  ASSERT_EQ(send_datagram(pair.other.get(), words, {}), 0);
  pair.other.reset();
  Datagram datagram;
  ASSERT_EQ(pair.socket->receive(datagram), Received::message);
  EXPECT_EQ(datagram.length, words.size());
  EXPECT_EQ(pair.socket->receive(datagram), Received::end);
  EXPECT_FALSE(pair.send_number(2));
}

TEST(PeerSocket, oversized_datagrams_are_told_from_full_ones) {
  const Pair pair;
  Datagram datagram;
  std::vector<std::byte> bytes(kMaxMessageBytes, std::byte{1});
  ASSERT_EQ(send_datagram(pair.other.get(), bytes, {}), 0);
  EXPECT_EQ(pair.socket->receive(datagram), Received::message);
  EXPECT_EQ(datagram.length, kMaxMessageBytes);
  bytes.push_back(std::byte{1});
  ASSERT_EQ(send_datagram(pair.other.get(), bytes, {}), 0);
  EXPECT_EQ(pair.socket->receive(datagram), Received::oversized);
  EXPECT_EQ(pair.socket->receive(datagram), Received::nothing);
}

TEST(PeerSocket, end_is_final_and_seen_by_the_other_side) {
  const Pair pair;
  ASSERT_TRUE(pair.socket->watch());
  ASSERT_TRUE(pair.send_number(5));
  pair.socket->end();
  pair.socket->end();
  EXPECT_FALSE(pair.send_number(6));
  EXPECT_FALSE(pair.socket->watch());
  EXPECT_EQ(pair.events(), 0U);
  EXPECT_EQ(pair.read_number(), 5);
  Datagram datagram;
  EXPECT_EQ(receive_datagram(pair.other.get(), datagram), Received::end);
}

TEST(PeerSocket, flush_until_gives_up_at_the_deadline) {
  const Pair pair;
  for (uint32_t i = 0; i < 3000; ++i) {
    ASSERT_TRUE(pair.send_number(i));
  }
  pair.socket->flush_until(0);  // long over: returns at once
  pair.socket->flush_until(base::now_ns() + 1'000'000);
  EXPECT_EQ(pair.read_number(), 0);
}

}  // namespace
}  // namespace ringbolt::link
