#include "link/rendezvous.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>

#include <thread>

#include "base/error.h"
#include "link/rendezvous_test_support.h"

namespace ringbolt::link {
namespace {

using namespace testing;

TEST(Rendezvous, two_ends_find_each_other) {
  const TempFolder folder;
  End a(folder.slots(), 11);
  End b(folder.slots(), 22);
  ASSERT_NE(a.rendezvous->slot(), b.rendezvous->slot());
  const std::shared_ptr<Peer> peer = a.rendezvous->peer_at(b.rendezvous->slot());
  ASSERT_NE(peer, nullptr);
  EXPECT_FALSE(peer->is_ready());
  EXPECT_EQ(peer->incarnation(), 0U);
  EXPECT_EQ(peer->region_table_fd(), -1);
  EXPECT_EQ(a.rendezvous->peer_at(b.rendezvous->slot()), peer);
  ASSERT_TRUE(run_until({&a, &b}, [&] { return a.seen.ready.size() == 1 && b.seen.ready.size() == 1; }));
  EXPECT_EQ(a.seen.ready[0], peer);
  EXPECT_TRUE(peer->is_ready());
  EXPECT_EQ(peer->slot(), b.rendezvous->slot());
  EXPECT_EQ(peer->incarnation(), b.rendezvous->incarnation());
  EXPECT_EQ(peer->pid(), getpid());
  EXPECT_EQ(peer->memory_is_reachable(), kernel_reads_other_memory());
  EXPECT_FALSE(peer->is_stopped());
  EXPECT_EQ(mark_of(peer->region_table_fd()), 22U);
  const std::shared_ptr<Peer> back = b.seen.ready[0];
  EXPECT_EQ(mark_of(back->region_table_fd()), 11U);
  EXPECT_EQ(b.rendezvous->peer_at(a.rendezvous->slot()), back);
  // What peers get cannot be written to.
  EXPECT_EQ(fcntl(back->region_table_fd(), F_GETFL) & O_ACCMODE, O_RDONLY);
}

/// Two ends that call each other, and the second one says no more: what it has said lies on a connection that is not
/// known yet to be its.
struct HalfMet {
  HalfMet() : a(folder.slots()), b(folder.slots()) {
    peer = a.rendezvous->peer_at(b.rendezvous->slot());
    EXPECT_TRUE(b.rendezvous->peer_at(a.rendezvous->slot())->send(Withdraw{1, 2, 3}));
    for (int i = 0; i < 10; ++i) {
      a.rendezvous->dispatch(1);
    }
    EXPECT_TRUE(a.seen.events.empty());
  }
  const TempFolder folder;
  End a;
  End b;
  std::shared_ptr<Peer> peer;
};

TEST(Rendezvous, what_waits_on_an_unknown_connection_is_pending) {
  HalfMet met;
  EXPECT_TRUE(met.a.rendezvous->has_pending());
  ASSERT_TRUE(run_until({&met.a, &met.b}, [&] { return met.a.seen.withdraws.size() == 1; }));
  ASSERT_TRUE(run_until({&met.a, &met.b},
                        [&] { return !met.a.rendezvous->has_pending() && !met.b.rendezvous->has_pending(); }));
}

TEST(Rendezvous, bye_on_an_unknown_connection_counts) {
  HalfMet met;
  met.b.rendezvous.reset();  // leaves, and closes the socket that we called
  ASSERT_TRUE(run_until({&met.a}, [&] { return !met.a.seen.gone.empty(); }));
  EXPECT_EQ(met.a.seen.events, (std::vector<std::string>{"ready", "withdraw", "gone"}));
  EXPECT_EQ(met.a.seen.gone[0], met.peer);
  EXPECT_TRUE(met.peer->left_orderly());
}

TEST(Rendezvous, messages_arrive_in_order_with_their_descriptors) {
  const TempFolder folder;
  End a(folder.slots());
  End b(folder.slots());
  const auto peer = a.rendezvous->peer_at(b.rendezvous->slot());
  constexpr uint32_t kCount = 2000;  // more than a socket buffer holds: the rest is queued
  for (uint32_t i = 0; i < kCount; ++i) {
    const base::UniqueFd lane = marked_memfd(i * 3);
    ASSERT_TRUE(peer->send(numbered_offer(i), lane.get()));  // before its Hello, and our descriptor is closed at once
  }
  const base::UniqueFd arena = marked_memfd(77);
  ASSERT_TRUE(peer->send(Arena{5, 4096}, arena.get()));
  ASSERT_TRUE(peer->send(Withdraw{1, 2, 3}));
  ASSERT_TRUE(run_until({&a, &b}, [&] { return b.seen.withdraws.size() == 1; }));
  ASSERT_EQ(b.seen.offers.size(), kCount);
  for (uint32_t i = 0; i < kCount; ++i) {
    EXPECT_EQ(b.seen.offers[i], numbered_offer(i));
    EXPECT_EQ(b.seen.lane_marks[i], i * 3);
  }
  EXPECT_EQ(b.seen.arena_marks, std::vector<uint64_t>{77});
  EXPECT_EQ(b.seen.withdraws[0], (Withdraw{1, 2, 3}));
}

TEST(Rendezvous, simultaneous_calls_make_one_peer) {
  const TempFolder folder;
  End a(folder.slots());
  End b(folder.slots());
  const auto b_of_a = a.rendezvous->peer_at(b.rendezvous->slot());
  const auto a_of_b = b.rendezvous->peer_at(a.rendezvous->slot());
  ASSERT_TRUE(b_of_a && a_of_b);
  ASSERT_TRUE(b_of_a->send(Withdraw{1, 1, 1}));
  ASSERT_TRUE(a_of_b->send(Withdraw{2, 2, 2}));
  ASSERT_TRUE(run_until({&a, &b}, [&] { return a.seen.withdraws.size() == 1 && b.seen.withdraws.size() == 1; }));
  ASSERT_TRUE(b_of_a->send(Withdraw{3, 3, 3}));
  ASSERT_TRUE(a_of_b->send(Withdraw{4, 4, 4}));
  ASSERT_TRUE(run_until({&a, &b}, [&] { return a.seen.withdraws.size() == 2 && b.seen.withdraws.size() == 2; }));
  EXPECT_EQ(a.seen.ready, std::vector<std::shared_ptr<Peer>>{b_of_a});
  EXPECT_EQ(b.seen.ready, std::vector<std::shared_ptr<Peer>>{a_of_b});
  b.rendezvous->leave();
  ASSERT_TRUE(run_until({&a}, [&] { return !a.seen.gone.empty(); }));
  EXPECT_EQ(a.seen.gone, std::vector<std::shared_ptr<Peer>>{b_of_a});
  EXPECT_TRUE(b_of_a->left_orderly());
}

TEST(Rendezvous, reaches_itself) {
  const TempFolder folder;
  End a(folder.slots(), 5);
  const auto self = a.rendezvous->peer_at(a.rendezvous->slot());
  ASSERT_NE(self, nullptr);
  const base::UniqueFd lane = marked_memfd(6);
  ASSERT_TRUE(self->send(numbered_offer(1), lane.get()));
  ASSERT_TRUE(run_until({&a}, [&] { return !a.seen.offers.empty(); }));
  EXPECT_EQ(a.seen.ready, std::vector<std::shared_ptr<Peer>>{self});
  EXPECT_EQ(a.seen.lane_marks[0], 6U);
  EXPECT_EQ(mark_of(self->region_table_fd()), 5U);
  EXPECT_EQ(self->memory_is_reachable(), kernel_reads_other_memory());
  self->ring();
  ASSERT_TRUE(run_until({&a}, [&] { return a.seen.bells > 0; }));
  EXPECT_TRUE(a.seen.gone.empty());
}

TEST(Rendezvous, offers_bring_the_channels_they_name) {
  const TempFolder folder;
  End a(folder.slots(), 5);
  const auto self = a.rendezvous->peer_at(a.rendezvous->slot());
  const base::UniqueFd file = marked_memfd(6);
  Offer offer = numbered_offer(1);
  ASSERT_TRUE(self->send(offer, file.get()));
  offer.send_channel = 3;
  const std::array<int, 3> files{file.get(), file.get(), file.get()};
  ASSERT_TRUE(self->send(offer, std::span(files).first(2)));
  offer.receive_channel = 4;
  ASSERT_TRUE(self->send(offer, files));
  ASSERT_TRUE(run_until({&a}, [&] { return a.seen.offers.size() == 3; }));
  EXPECT_EQ(a.seen.channels, (std::vector<int>{0, 1, 2}));
  EXPECT_EQ(mark_of(self->wake_table_fd()), 5U);
}

TEST(Rendezvous, nobody_at_a_free_slot) {
  const TempFolder folder;
  End a(folder.slots());
  EXPECT_EQ(a.rendezvous->peer_at((a.rendezvous->slot() + 1) % kSlotCount), nullptr);
  EXPECT_EQ(a.rendezvous->peer_at(kSlotCount), nullptr);
}

TEST(Rendezvous, bells_and_wake_reach_dispatch) {
  const TempFolder folder;
  End a(folder.slots());
  End b(folder.slots());
  const auto peer = a.rendezvous->peer_at(b.rendezvous->slot());
  peer->ring();  // not ready: no effect
  ASSERT_TRUE(run_until({&a, &b}, [&] { return peer->is_ready(); }));
  EXPECT_EQ(b.seen.bells, 0);
  peer->ring();
  peer->ring();
  ASSERT_TRUE(run_until({&b}, [&] { return b.seen.bells == 1; }));
  b.rendezvous->wake();
  b.rendezvous->dispatch(-1);
  EXPECT_EQ(b.seen.bells, 2);
  EXPECT_EQ(a.seen.bells, 0);
}

TEST(Rendezvous, orderly_leave_is_told_after_the_last_message) {
  const TempFolder folder;
  End a(folder.slots());
  End b(folder.slots());
  const auto peer = a.rendezvous->peer_at(b.rendezvous->slot());
  ASSERT_TRUE(run_until({&a, &b}, [&] { return peer->is_ready() && b.seen.ready.size() == 1; }));
  ASSERT_TRUE(b.seen.ready[0]->send(Withdraw{1, 2, 3}));
  b.rendezvous->leave();
  b.rendezvous->leave();
  EXPECT_TRUE(b.seen.ready[0]->is_gone());
  EXPECT_FALSE(b.seen.ready[0]->send(Withdraw{}));
  EXPECT_EQ(b.rendezvous->peer_at(a.rendezvous->slot()), nullptr);
  ASSERT_TRUE(run_until({&a}, [&] { return !a.seen.gone.empty(); }));
  EXPECT_EQ(a.seen.events, (std::vector<std::string>{"ready", "withdraw", "gone"}));
  EXPECT_TRUE(peer->is_gone());
  EXPECT_TRUE(peer->left_orderly());
  EXPECT_FALSE(peer->send(Withdraw{}));
  peer->ring();
  EXPECT_EQ(files_in(folder.slots()).size(), 2U);  // those of a alone
  b.rendezvous->dispatch(-1);                      // returns at once
}

TEST(Rendezvous, leave_wakes_a_waiting_dispatch) {
  const TempFolder folder;
  End a(folder.slots());
  std::thread service([&] { a.rendezvous->dispatch(-1); });
  a.rendezvous->leave();
  service.join();
}

TEST(Rendezvous, a_killed_process_is_gone_but_not_orderly) {
  const TempFolder folder;
  End a(folder.slots());
  Child child([&] { return serve_until_killed(folder.slots(), a.rendezvous->slot()); });
  ASSERT_TRUE(run_until({&a}, [&] { return a.seen.withdraws.size() == 1; }));
  const auto peer = a.seen.ready.at(0);
  EXPECT_EQ(peer->pid(), child.pid());
  EXPECT_EQ(mark_of(peer->region_table_fd()), 99U);
  EXPECT_EQ(peer->memory_is_reachable(), kernel_reads_other_memory());
  child.kill(SIGKILL);
  ASSERT_TRUE(run_until({&a}, [&] { return !a.seen.gone.empty(); }));
  EXPECT_EQ(a.seen.gone, std::vector<std::shared_ptr<Peer>>{peer});
  EXPECT_FALSE(peer->left_orderly());
  child.wait();
  // Nobody answers at its slot, whose files are still there.
  EXPECT_EQ(a.rendezvous->peer_at(peer->slot()), nullptr);
  EXPECT_EQ(files_in(folder.slots()).size(), 4U);
}

TEST(Rendezvous, a_stopped_process_is_seen_stopped) {
  const TempFolder folder;
  End a(folder.slots());
  Child child([&] { return serve_until_killed(folder.slots(), a.rendezvous->slot()); });
  ASSERT_TRUE(run_until({&a}, [&] { return a.seen.withdraws.size() == 1; }));
  EXPECT_FALSE(a.seen.ready.at(0)->is_stopped());
  child.kill(SIGSTOP);
  siginfo_t info{};
  ASSERT_EQ(waitid(P_PID, static_cast<id_t>(child.pid()), &info, WSTOPPED), 0);
  EXPECT_TRUE(a.seen.ready.at(0)->is_stopped());
  EXPECT_FALSE(a.seen.ready.at(0)->is_gone());
}

/// Kills a process whose own child still holds its sockets, and expects its end to be noticed.
void expect_death_in_spite_of_a_grandchild(bool is_caller_killed) {
  const TempFolder folder;
  End a(folder.slots());
  std::array<int, 2> pipe_ends{};
  ASSERT_EQ(pipe2(pipe_ends.data(), O_CLOEXEC), 0);
  const base::UniqueFd told(pipe_ends[0]);
  const base::UniqueFd tell(pipe_ends[1]);
  Child child([&] {
    End mine(folder.slots(), 99);
    const uint32_t slot = mine.rendezvous->slot();
    (void)!write(tell.get(), &slot, sizeof slot);
    const auto peer = is_caller_killed ? mine.rendezvous->peer_at(a.rendezvous->slot()) : nullptr;
    if (!run_until({&mine}, [&] { return mine.seen.ready.size() == 1; })) {
      return 1;
    }
    const pid_t pid = fork();  // after the connection was accepted, so that it is shared
    if (pid != 0) {
      (void)!write(tell.get(), &pid, sizeof pid);
    }
    for (;;) {
      pause();
    }
    return 0;
  });
  uint32_t slot = 0;
  ASSERT_EQ(read(told.get(), &slot, sizeof slot), static_cast<ssize_t>(sizeof slot));
  const auto peer = is_caller_killed ? nullptr : a.rendezvous->peer_at(slot);
  ASSERT_TRUE(run_until({&a}, [&] { return a.seen.ready.size() == 1; }));
  pid_t grandchild = 0;
  ASSERT_EQ(read(told.get(), &grandchild, sizeof grandchild), static_cast<ssize_t>(sizeof grandchild));
  child.kill(SIGKILL);
  EXPECT_TRUE(run_until({&a}, [&] { return a.seen.gone.size() == 1; }));
  // Its listening socket lives on in the grandchild, but nobody will ever accept there.
  child.wait();
  EXPECT_EQ(a.rendezvous->peer_at(slot), nullptr);
  kill(grandchild, SIGKILL);
}

TEST(Rendezvous, death_of_a_caller_is_noticed_though_a_grandchild_holds_the_socket) {
  expect_death_in_spite_of_a_grandchild(true);
}

TEST(Rendezvous, death_of_a_called_one_is_noticed_though_a_grandchild_holds_the_socket) {
  expect_death_in_spite_of_a_grandchild(false);
}

TEST(Rendezvous, a_slot_taken_over_is_a_new_peer) {
  const TempFolder folder;
  End a(folder.slots(), 1, 2);
  Child first([&] { return serve_until_killed(folder.slots(), a.rendezvous->slot(), 2); });
  ASSERT_TRUE(run_until({&a}, [&] { return a.seen.withdraws.size() == 1; }));
  first.kill(SIGKILL);
  first.wait();
  // Not dispatched yet: a still takes the first owner for alive when the second one calls.
  End b(folder.slots(), 33, 2);
  ASSERT_EQ(b.rendezvous->slot(), a.seen.ready.at(0)->slot());
  const auto back = b.rendezvous->peer_at(a.rendezvous->slot());
  ASSERT_TRUE(run_until({&a, &b}, [&] { return a.seen.ready.size() == 2 && a.seen.gone.size() == 1 && back->is_ready(); }));
  EXPECT_EQ(a.seen.gone[0], a.seen.ready[0]);
  EXPECT_NE(a.seen.ready[1]->incarnation(), a.seen.ready[0]->incarnation());
  EXPECT_EQ(a.rendezvous->peer_at(b.rendezvous->slot()), a.seen.ready[1]);
}

TEST(Rendezvous, all_slots_taken_is_an_error_that_says_so) {
  const TempFolder folder;
  const End a(folder.slots(), 1, 2);
  const End b(folder.slots(), 1, 2);
  try {
    const End c(folder.slots(), 1, 2);
    FAIL() << "a third process found a place in two slots";
  } catch (const base::Error& error) {
    EXPECT_EQ(error.errno_value(), EUSERS);
    EXPECT_NE(std::string(error.what()).find("2 slots, all taken"), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find(folder.slots()), std::string::npos) << error.what();
  }
}

TEST(Rendezvous, long_paths_work) {
  const TempFolder folder;
  const std::string slots = folder.path() + "/" + std::string(120, 'x') + "/slots";
  End a(slots);
  End b(slots);
  const auto peer = a.rendezvous->peer_at(b.rendezvous->slot());
  ASSERT_NE(peer, nullptr);
  EXPECT_TRUE(run_until({&a, &b}, [&] { return peer->is_ready(); }));
}

TEST(Rendezvous, poke_is_told_and_makes_no_peer) {
  const TempFolder folder;
  End a(folder.slots());
  const base::UniqueFd tool = call(folder.slots(), a.rendezvous->slot());
  ASSERT_TRUE(tool.is_open());
  EXPECT_TRUE(a.rendezvous->has_pending());
  constexpr std::string_view kPoke = "RBPOKE1\n";
  ASSERT_EQ(send_datagram(tool.get(), std::as_bytes(std::span(kPoke)), {}), 0);
  ASSERT_TRUE(run_until({&a}, [&] { return a.seen.pokes == 1; }));
  EXPECT_FALSE(a.rendezvous->has_pending());
  EXPECT_TRUE(a.seen.events.empty());
}

TEST(Rendezvous, gives_every_descriptor_back) {
  const TempFolder folder;
  const size_t before = open_descriptors();
  {
    End a(folder.slots());
    End b(folder.slots());
    const auto peer = a.rendezvous->peer_at(b.rendezvous->slot());
    const auto self = a.rendezvous->peer_at(a.rendezvous->slot());
    const auto back = b.rendezvous->peer_at(a.rendezvous->slot());
    for (uint32_t i = 0; i < 600; ++i) {
      const base::UniqueFd lane = marked_memfd(i);
      peer->send(numbered_offer(i), lane.get());
      back->send(numbered_offer(i), lane.get());
    }
    ASSERT_TRUE(run_until({&a, &b}, [&] { return b.seen.offers.size() > 100; }));
  }
  EXPECT_EQ(open_descriptors(), before);
  EXPECT_TRUE(files_in(folder.slots()).empty());
}

}  // namespace
}  // namespace ringbolt::link
