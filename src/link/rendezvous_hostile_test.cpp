// What comes from sockets is believed only after it was checked: no garbage makes a peer, keeps a descriptor or
// disturbs the peers there are.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/fsuid.h>
#include <sys/resource.h>

#include <random>

#include "link/peer.h"
#include "link/rendezvous_test_support.h"

namespace ringbolt::link {
namespace {

using namespace testing;

/// Reads until the end of the connection; dispatches at `end` meanwhile. False when the connection stays.
bool is_dropped(End& end, int fd) {
  return run_until({&end}, [&] {
    Datagram datagram;
    Received received = Received::message;
    while (received == Received::message) {
      received = receive_datagram(fd, datagram);
    }
    return received == Received::end;
  });
}

void send_message(int fd, const Message& message, const std::vector<int>& descriptors) {
  const EncodedMessage encoded(message);
  ASSERT_EQ(send_datagram(fd, encoded.bytes(), descriptors), 0);
}

/// Files a proper Hello needs, and files that are not right for it.
struct Gifts {
  base::UniqueFd bell{eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
  base::UniqueFd blocking_bell{eventfd(0, EFD_CLOEXEC)};
  base::UniqueFd writable_table{marked_memfd(44)};
  base::UniqueFd table{open(("/proc/self/fd/" + std::to_string(writable_table.get())).c_str(), O_RDONLY | O_CLOEXEC)};
};

Hello some_hello(uint32_t slot) { return {slot, 0x5555, 0x1000, 0x6666}; }

TEST(RendezvousHostile, a_stranger_with_a_proper_hello_is_a_peer) {
  const TempFolder folder;
  End a(folder.slots());
  const Gifts gifts;
  const base::UniqueFd fd = call(folder.slots(), a.rendezvous->slot());
  const uint32_t slot = (a.rendezvous->slot() + 1) % kSlotCount;
  send_message(fd.get(), some_hello(slot), {gifts.bell.get(), gifts.table.get(), gifts.writable_table.get()});
  ASSERT_TRUE(run_until({&a}, [&] { return a.seen.ready.size() == 1; }));
  const auto peer = a.seen.ready[0];
  EXPECT_EQ(peer->slot(), slot);
  EXPECT_EQ(peer->incarnation(), 0x5555U);
  EXPECT_FALSE(peer->memory_is_reachable());  // no nonce lies there
  EXPECT_EQ(mark_of(peer->region_table_fd()), 44U);
  peer->ring();
  uint64_t rings = 0;
  EXPECT_EQ(read(gifts.bell.get(), &rings, sizeof rings), static_cast<ssize_t>(sizeof rings));
  // The same Hello again is harmless, another one is not.
  send_message(fd.get(), some_hello(slot), {gifts.bell.get(), gifts.table.get(), gifts.writable_table.get()});
  send_message(fd.get(), Withdraw{1, 2, 3}, {});
  ASSERT_TRUE(run_until({&a}, [&] { return a.seen.withdraws.size() == 1; }));
  Hello other = some_hello(slot);
  other.incarnation++;
  send_message(fd.get(), other, {gifts.bell.get(), gifts.table.get(), gifts.writable_table.get()});
  EXPECT_TRUE(is_dropped(a, fd.get()));
  EXPECT_EQ(a.seen.events, (std::vector<std::string>{"ready", "withdraw", "gone"}));
  EXPECT_FALSE(peer->left_orderly());
}

TEST(RendezvousHostile, two_owners_of_one_slot_are_two_peers) {
  const TempFolder folder;
  End a(folder.slots());
  const Gifts gifts;
  base::UniqueFd old_owner = call(folder.slots(), a.rendezvous->slot());
  send_message(old_owner.get(), some_hello(3), {gifts.bell.get(), gifts.table.get(), gifts.writable_table.get()});
  ASSERT_TRUE(run_until({&a}, [&] { return a.seen.ready.size() == 1; }));
  // The new owner calls before the end of the old one is noticed.
  const base::UniqueFd new_owner = call(folder.slots(), a.rendezvous->slot());
  Hello hello = some_hello(3);
  hello.incarnation++;
  send_message(new_owner.get(), hello, {gifts.bell.get(), gifts.table.get(), gifts.writable_table.get()});
  ASSERT_TRUE(run_until({&a}, [&] { return a.seen.ready.size() == 2; }));
  EXPECT_EQ(a.rendezvous->peer_at(3), a.seen.ready[1]);
  EXPECT_FALSE(a.seen.ready[0]->is_gone());
  old_owner.reset();
  ASSERT_TRUE(run_until({&a}, [&] { return a.seen.gone.size() == 1; }));
  EXPECT_EQ(a.seen.gone[0], a.seen.ready[0]);
  EXPECT_EQ(a.rendezvous->peer_at(3), a.seen.ready[1]);
}

TEST(RendezvousHostile, what_waits_on_other_connections_is_delivered_before_the_end) {
  const TempFolder folder;
  End a(folder.slots());
  const Gifts gifts;
  const base::UniqueFd first = call(folder.slots(), a.rendezvous->slot());
  const base::UniqueFd second = call(folder.slots(), a.rendezvous->slot());
  for (const base::UniqueFd* fd : {&first, &second}) {
    send_message(fd->get(), some_hello(3), {gifts.bell.get(), gifts.table.get(), gifts.writable_table.get()});
    Datagram answer;
    ASSERT_TRUE(run_until({&a}, [&] { return receive_datagram(fd->get(), answer) == Received::message; }));
  }
  ASSERT_EQ(a.seen.ready.size(), 1U);
  a.rendezvous->dispatch(0);  // epoll looks once more at what it reported last; from here on the order is ours
  // Ready first, so read first: garbage, which ends the peer. Then a message on the other connection.
  const std::array<std::byte, 1> garbage{};
  ASSERT_EQ(send_datagram(first.get(), garbage, {}), 0);
  send_message(second.get(), Withdraw{1, 2, 3}, {});
  ASSERT_TRUE(run_until({&a}, [&] { return a.seen.gone.size() == 1; }));
  EXPECT_EQ(a.seen.events, (std::vector<std::string>{"ready", "withdraw", "gone"}));
  EXPECT_TRUE(is_dropped(a, second.get()));
}

TEST(RendezvousHostile, hello_with_wrong_gifts_is_dropped) {
  const TempFolder folder;
  End a(folder.slots());
  const Gifts gifts;
  const size_t before = open_descriptors();
  const int bell = gifts.bell.get();
  const int table = gifts.table.get();
  const int wakes = gifts.writable_table.get();
  const std::vector<std::vector<int>> wrong = {
      {},
      {bell},
      {bell, table},
      {table, bell, wakes},
      {bell, bell, wakes},
      {table, table, wakes},
      {bell, table, wakes, table},
      {bell, table, wakes, table, table},
      {gifts.blocking_bell.get(), table, wakes},
      {bell, wakes, wakes},
  };
  for (const std::vector<int>& descriptors : wrong) {
    const base::UniqueFd fd = call(folder.slots(), a.rendezvous->slot());
    // Past what send_datagram() allows, the fifth descriptor goes by hand.
    if (descriptors.size() <= kMaxDescriptors) {
      send_message(fd.get(), some_hello(3), descriptors);
    } else {
      const EncodedMessage encoded{Message(some_hello(3))};
      alignas(cmsghdr) std::array<std::byte, CMSG_SPACE(sizeof(int) * 8)> control{};
      std::vector<std::byte> bytes(encoded.bytes().begin(), encoded.bytes().end());
      iovec part{bytes.data(), bytes.size()};
      msghdr header{};
      header.msg_iov = &part;
      header.msg_iovlen = 1;
      header.msg_control = control.data();
      header.msg_controllen = CMSG_SPACE(sizeof(int) * descriptors.size());
      cmsghdr* first = CMSG_FIRSTHDR(&header);
      first->cmsg_level = SOL_SOCKET;
      first->cmsg_type = SCM_RIGHTS;
      first->cmsg_len = CMSG_LEN(sizeof(int) * descriptors.size());
      std::copy(descriptors.begin(), descriptors.end(), reinterpret_cast<int*>(CMSG_DATA(first)));
      ASSERT_GT(sendmsg(fd.get(), &header, MSG_NOSIGNAL), 0);
    }
    EXPECT_TRUE(is_dropped(a, fd.get())) << descriptors.size() << " descriptors";
  }
  EXPECT_TRUE(a.seen.events.empty());
  EXPECT_EQ(open_descriptors(), before);
}

TEST(RendezvousHostile, hello_of_nobody_is_dropped) {
  const TempFolder folder;
  End a(folder.slots());
  const Gifts gifts;
  const base::UniqueFd fd = call(folder.slots(), a.rendezvous->slot());
  Hello hello = some_hello(3);
  hello.incarnation = 0;
  send_message(fd.get(), hello, {gifts.bell.get(), gifts.table.get(), gifts.writable_table.get()});
  EXPECT_TRUE(is_dropped(a, fd.get()));
  EXPECT_TRUE(a.seen.events.empty());
}

TEST(RendezvousHostile, messages_before_hello_are_dropped) {
  const TempFolder folder;
  End a(folder.slots());
  const Gifts gifts;
  const std::vector<std::pair<Message, std::vector<int>>> early = {
      {numbered_offer(1), {gifts.table.get()}}, {Withdraw{}, {}}, {Arena{}, {gifts.table.get()}}, {Bye{}, {}}};
  for (const auto& [message, descriptors] : early) {
    const base::UniqueFd fd = call(folder.slots(), a.rendezvous->slot());
    send_message(fd.get(), message, descriptors);
    EXPECT_TRUE(is_dropped(a, fd.get())) << "kind " << message.index();
  }
  EXPECT_TRUE(a.seen.events.empty());
}

TEST(RendezvousHostile, wrong_descriptor_counts_end_a_peer) {
  const TempFolder folder;
  const Gifts gifts;
  const int table = gifts.table.get();
  const std::vector<std::pair<Message, std::vector<int>>> wrong = {
      {numbered_offer(1), {}}, {numbered_offer(1), {table, table}}, {Withdraw{}, {table}},
      {Arena{}, {}},           {Bye{}, {table}},                    {Poke{}, {table}}};
  for (const auto& [message, descriptors] : wrong) {
    End a(folder.slots());
    const base::UniqueFd fd = call(folder.slots(), a.rendezvous->slot());
    send_message(fd.get(), some_hello(3), {gifts.bell.get(), table, gifts.writable_table.get()});
    send_message(fd.get(), message, descriptors);
    EXPECT_TRUE(is_dropped(a, fd.get())) << "kind " << message.index();
    EXPECT_EQ(a.seen.events, (std::vector<std::string>{"ready", "gone"}));
  }
}

TEST(RendezvousHostile, ten_thousand_connections_of_garbage_change_nothing) {
  const TempFolder folder;
  End a(folder.slots());
  End b(folder.slots());
  const auto peer = a.rendezvous->peer_at(b.rendezvous->slot());
  ASSERT_TRUE(run_until({&a, &b}, [&] { return peer->is_ready() && b.seen.ready.size() == 1; }));
  const Gifts gifts;
  const size_t before = open_descriptors();
  std::mt19937 random(20240229);  // any seed: the garbage must merely be the same in every run
  for (int i = 0; i < 10'000; ++i) {
    const base::UniqueFd fd = call(folder.slots(), a.rendezvous->slot());
    ASSERT_TRUE(fd.is_open()) << i;
    std::vector<std::byte> bytes(random() % 200);
    for (std::byte& byte : bytes) {
      byte = static_cast<std::byte>(random());
    }
    if (i % 3 == 0) {
      const EncodedMessage encoded{Message(some_hello(3))};
      bytes.assign(encoded.bytes().begin(), encoded.bytes().end());
      bytes[random() % 24] ^= static_cast<std::byte>(1 + random() % 255);
    }
    std::vector<int> descriptors(random() % (kMaxDescriptors + 1), gifts.table.get());
    send_datagram(fd.get(), bytes, descriptors);
    a.rendezvous->dispatch(0);
  }
  // The last connections end, and the peer still works.
  ASSERT_TRUE(b.seen.ready[0]->send(Withdraw{1, 2, 3}));
  ASSERT_TRUE(run_until({&a}, [&] { return a.seen.withdraws.size() == 1 && open_descriptors() == before; }));
  EXPECT_EQ(a.seen.events, (std::vector<std::string>{"ready", "withdraw"}));
}

TEST(RendezvousHostile, another_user_is_turned_away) {
  if (geteuid() != 0) {
    GTEST_SKIP() << "only root can pose as another user";
  }
  const TempFolder folder;
  End a(folder.slots());
  const Gifts gifts;
  const base::UniqueFd done(eventfd(0, EFD_CLOEXEC));
  Child child([&] {
    // Sees files as root does, but its sockets belong to another user.
    if (seteuid(12345) != 0) {
      return 1;
    }
    setfsuid(0);
    const base::UniqueFd fd = call(folder.slots(), a.rendezvous->slot());
    const EncodedMessage hello{Message(some_hello(3))};
    const std::array<int, 3> descriptors{gifts.bell.get(), gifts.table.get(), gifts.writable_table.get()};
    if (!fd.is_open() || send_datagram(fd.get(), hello.bytes(), descriptors) != 0) {
      return 2;
    }
    const uint64_t one = 1;
    (void)!write(done.get(), &one, sizeof one);
    pollfd end{fd.get(), POLLIN, 0};
    poll(&end, 1, 20'000);
    Datagram datagram;
    return receive_datagram(fd.get(), datagram) == Received::end ? 0 : 3;
  });
  uint64_t one = 0;
  ASSERT_EQ(read(done.get(), &one, sizeof one), static_cast<ssize_t>(sizeof one));
  a.rendezvous->dispatch(1000);
  EXPECT_EQ(child.wait(), 0);
  a.rendezvous->dispatch(0);
  EXPECT_TRUE(a.seen.events.empty());
}

TEST(RendezvousHostile, silent_connections_are_bounded) {
  const TempFolder folder;
  End a(folder.slots());
  End b(folder.slots());
  const auto peer = b.rendezvous->peer_at(a.rendezvous->slot());
  ASSERT_TRUE(run_until({&a, &b}, [&] { return peer->is_ready() && a.seen.ready.size() == 1; }));
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  if (limit.rlim_cur < 4096) {
    GTEST_SKIP() << "needs 4096 file descriptors, RLIMIT_NOFILE is " << limit.rlim_cur;
  }
  constexpr size_t kBound = 1024;
  std::vector<base::UniqueFd> silent;
  for (size_t i = 0; i < kBound + 10; ++i) {
    silent.push_back(call(folder.slots(), a.rendezvous->slot()));
    ASSERT_TRUE(silent.back().is_open());
    a.rendezvous->dispatch(0);
  }
  // The oldest ten had to go, the youngest stay, and the peer was never at risk.
  EXPECT_TRUE(is_dropped(a, silent[9].get()));
  Datagram datagram;
  EXPECT_EQ(receive_datagram(silent[10].get(), datagram), Received::nothing);
  EXPECT_EQ(receive_datagram(silent.back().get(), datagram), Received::nothing);
  EXPECT_TRUE(a.seen.gone.empty());
}

TEST(RendezvousHostile, without_descriptors_connections_are_turned_away) {
  const TempFolder folder;
  End a(folder.slots());
  base::UniqueFd caller = call(folder.slots(), a.rendezvous->slot());
  ASSERT_TRUE(caller.is_open());
  rlimit before{};
  getrlimit(RLIMIT_NOFILE, &before);
  rlimit tight = before;
  // The lowest free number: nothing can be opened from there on, but the spare's number is below it.
  base::UniqueFd probe(open("/dev/null", O_RDONLY | O_CLOEXEC));
  tight.rlim_cur = static_cast<rlim_t>(probe.get());
  probe.reset();
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &tight), 0);
  const bool is_turned_away = is_dropped(a, caller.get());
  setrlimit(RLIMIT_NOFILE, &before);
  EXPECT_TRUE(is_turned_away);
  // And later ones are served again.
  End b(folder.slots());
  const auto peer = b.rendezvous->peer_at(a.rendezvous->slot());
  EXPECT_TRUE(run_until({&a, &b}, [&] { return peer->is_ready(); }));
}

}  // namespace
}  // namespace ringbolt::link
