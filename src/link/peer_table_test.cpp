#include "link/peer_table.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <array>

#include "link/rendezvous_test_support.h"

namespace ringbolt::link {
namespace {

constexpr uint32_t kSlot = 7;
constexpr pid_t kCaller = 4711;

/// Connections to nobody, and what they say.
class PeerTableTest : public ::testing::Test {
 protected:
  std::shared_ptr<Line> line(uint32_t slot = kSlot, uint64_t incarnation = 1, pid_t pid = 0) {
    auto made = std::make_shared<Line>();
    made->id = table.next_id();
    made->pid = pid;
    made->socket = std::make_shared<PeerSocket>(base::UniqueFd(), Watch{});
    made->introduction.hello = {slot, incarnation, 0, 0};
    return made;
  }
  /// For the peer that a line may turn out to be of.
  static std::shared_ptr<ConnectedPeer> candidate(const Line& of) {
    return std::make_shared<ConnectedPeer>(of.id, of.introduction.hello.slot, of.pid, base::UniqueFd(), of.socket);
  }
  /// A peer whose Hello came on a line of its own.
  std::shared_ptr<ConnectedPeer> seated(uint64_t incarnation) {
    const auto own = line(kSlot, incarnation);
    table.insert_stranger(own);
    const auto peer = candidate(*own);
    EXPECT_EQ(table.seat(*own, peer), PeerTable::Seat::fresh);
    peer->become_ready({own->introduction.hello, {}, {}, {}});
    return peer;
  }
  /// Of a peer that we call, and that has not answered.
  std::shared_ptr<Line> called(pid_t pid = kCaller) {
    std::array<int, 2> ends{};
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends.data()), 0);
    other_ends.emplace_back(ends[1]);
    auto made = line(kSlot, 0, pid);
    made->socket = std::make_shared<PeerSocket>(base::UniqueFd(ends[0]), Watch{});
    made->peer = candidate(*made);
    return made;
  }

  PeerTable table;
  std::vector<base::UniqueFd> other_ends;
  const EncodedMessage word{Message(Poke{})};
};

TEST_F(PeerTableTest, one_incarnation_is_one_peer_by_however_many_lines) {
  const auto first = seated(1);
  EXPECT_EQ(table.living_at(kSlot), first);
  const auto second = line(kSlot, 1);
  EXPECT_EQ(table.seat(*second, candidate(*second)), PeerTable::Seat::joined);
  EXPECT_EQ(second->peer, first);
  EXPECT_EQ(table.living_at(kSlot + 1), nullptr);
}

TEST_F(PeerTableTest, a_slot_that_changed_hands_keeps_its_old_owner_until_that_is_buried) {
  const auto old_owner = seated(1);
  const auto new_owner = seated(2);
  EXPECT_EQ(table.living_at(kSlot), new_owner);
  EXPECT_EQ(table.peer(old_owner->id()), old_owner) << "its end is to be told yet";
  table.remove(*old_owner);
  EXPECT_EQ(table.living_at(kSlot), new_owner) << "the old one's end does not unseat the new one";
  new_owner->end();
  EXPECT_EQ(table.living_at(kSlot), nullptr);
  const auto again = seated(2);
  EXPECT_EQ(table.living_at(kSlot), again) << "what is gone joins nobody, whatever its incarnation";
}

TEST_F(PeerTableTest, two_calls_at_once_are_one_peer_and_one_hello) {
  const auto mine = called();
  const auto late = called();
  EXPECT_EQ(table.insert_caller(mine, word.bytes(), {}), mine->peer);
  EXPECT_EQ(table.insert_caller(late, word.bytes(), {}), mine->peer);
  EXPECT_EQ(table.line(late->id), nullptr);
  Datagram said;
  EXPECT_EQ(receive_datagram(other_ends[0].get(), said), Received::message);
  EXPECT_EQ(receive_datagram(other_ends[0].get(), said), Received::nothing);
  EXPECT_EQ(receive_datagram(other_ends[1].get(), said), Received::nothing) << "nothing is said on the second call";
}

TEST_F(PeerTableTest, who_calls_while_we_call_is_parked_until_the_answer) {
  const auto mine = called();
  table.insert_caller(mine, word.bytes(), {});
  const auto theirs = line(kSlot, 5, kCaller);
  table.insert_stranger(theirs);
  EXPECT_FALSE(table.has_parked());
  ASSERT_EQ(table.seat(*theirs, candidate(*theirs)), PeerTable::Seat::parked);
  EXPECT_TRUE(table.has_parked());
  EXPECT_EQ(table.parked_at(kSlot), std::vector{theirs});
  EXPECT_TRUE(table.parked_at(kSlot + 1).empty());
  EXPECT_EQ(theirs->peer, nullptr);
  mine->peer->become_ready({{kSlot, 5, 0, 0}, {}, {}, {}});
  EXPECT_EQ(table.seat(*theirs, candidate(*theirs)), PeerTable::Seat::joined);
  EXPECT_EQ(theirs->peer, mine->peer);
  EXPECT_FALSE(table.has_parked());
}

TEST_F(PeerTableTest, only_the_same_process_joins_a_peer_that_ended_unheard) {
  const auto mine = called();
  table.insert_caller(mine, word.bytes(), {});
  std::vector<std::shared_ptr<Line>> lines;
  for (const pid_t pid : {kCaller, kCaller + 1, 0}) {  // 0: of a pid namespace that we don't see
    lines.push_back(line(kSlot, 5, pid));
    table.insert_stranger(lines.back());
    ASSERT_EQ(table.seat(*lines.back(), candidate(*lines.back())), PeerTable::Seat::parked);
  }
  EXPECT_EQ(table.join_parked(mine->peer), std::vector{lines[0]});
  EXPECT_EQ(table.lines_of(*mine->peer), (std::vector{mine, lines[0]}));
  EXPECT_EQ(table.parked_at(kSlot), (std::vector{lines[1], lines[2]}));
  // Two whose process nobody knows are not the same one.
  const auto unknown = called(0);
  unknown->introduction.hello.slot = kSlot;
  EXPECT_TRUE(table.join_parked(unknown->peer).empty());
}

TEST_F(PeerTableTest, beyond_the_bound_the_oldest_stranger_goes_and_no_peer) {
  const auto known = line(kSlot, 1);
  EXPECT_EQ(table.insert_stranger(known), nullptr);
  EXPECT_EQ(table.seat(*known, candidate(*known)), PeerTable::Seat::fresh);
  std::vector<std::shared_ptr<Line>> strangers;
  for (size_t i = 0; i < PeerTable::kMaxStrangers; ++i) {
    strangers.push_back(line());
    ASSERT_EQ(table.insert_stranger(strangers.back()), nullptr) << i;
  }
  EXPECT_EQ(table.insert_stranger(line()), strangers[0]);
  table.remove(*strangers[0]);
  EXPECT_EQ(table.insert_stranger(line()), strangers[1]);
  EXPECT_EQ(table.line(known->id), known);
}

TEST_F(PeerTableTest, closed_it_hands_out_all_and_takes_nobody) {
  const auto peer = seated(1);
  const auto stranger = line(kSlot + 1, 1);
  table.insert_stranger(stranger);
  const PeerTable::Content content = table.close();
  EXPECT_EQ(content.peers.size(), 1U);
  EXPECT_EQ(content.lines.size(), 2U);
  EXPECT_EQ(table.living_at(kSlot), nullptr);
  EXPECT_TRUE(table.lines().empty());
  EXPECT_EQ(table.insert_stranger(stranger), stranger) << "to be dropped";
  EXPECT_EQ(table.insert_caller(called(), word.bytes(), {}), nullptr);
  EXPECT_EQ(table.seat(*stranger, candidate(*stranger)), PeerTable::Seat::closed);
  EXPECT_TRUE(table.close().lines.empty());
}

}  // namespace
}  // namespace ringbolt::link
