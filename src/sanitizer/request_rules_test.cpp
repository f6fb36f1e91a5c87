// What two requests under way may not share: memory here, and memory of a peer.

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>

#include "sanitizer/overlap_rules.h"
#include "sanitizer/parts_test_support.h"
#include "sanitizer/received_data.h"
#include "sanitizer/remote_accesses.h"

namespace ringbolt::sanitizer {
namespace {

using testing::Kept;
using testing::Memory;
using testing::Pair;
using testing::request;
using testing::Rules;
using testing::rules_of;

/// A table in which one request is under way.
class OverlapTest : public ::testing::Test {
 protected:
  Request& post(Use use, Piece piece) {
    auto one = request(1, use, {piece});
    one->qp = &pair_.qp;
    return table_.insert(std::move(one));
  }
  /// Another one is about to be posted.
  Rules find(Use use, Piece piece, bool is_fenced = false) {
    next_ = request(2, use, {piece});
    next_->qp = &pair_.qp;
    next_->is_fenced = is_fenced;
    list_ = testing::list_of(*next_);
    std::vector<Finding> found;
    find_overlaps(table_, *next_, list_.data(), found);
    return rules_of(found);
  }

  Memory memory_;
  Pair pair_;
  Kept kept_;
  RequestTable table_{0};
  std::unique_ptr<Request> next_;
  std::vector<ibv_sge> list_;
};

TEST_F(OverlapTest, two_may_send_the_same) {
  const Request& earlier = post(Use::send, memory_.piece(0, 100));
  EXPECT_EQ(find(Use::send, memory_.piece(0, 100)), Rules{});
  EXPECT_FALSE(next_->is_given_up || earlier.is_given_up);
}

TEST_F(OverlapTest, what_is_received_is_one_requests_alone) {
  for (const Use earlier : {Use::receive, Use::read}) {
    post(earlier, memory_.piece(0, 100));
    for (const Use later : {Use::receive, Use::read}) {
      EXPECT_EQ(find(later, memory_.piece(99, 8)), Rules{"receive-buffers-overlap"});
      EXPECT_TRUE(next_->is_given_up);
      EXPECT_EQ(find(later, memory_.piece(100, 8)), Rules{}) << "beside it";
    }
    EXPECT_EQ(find(Use::send, memory_.piece(99, 8)), Rules{"sent-and-received"});
    EXPECT_EQ(find(Use::send, memory_.piece(100, 8)), Rules{});
    table_.take_out(1);
  }
}

TEST_F(OverlapTest, what_is_being_sent_is_not_received_into) {
  Request& earlier = post(Use::send, memory_.piece(0, 100));
  EXPECT_EQ(find(Use::receive, memory_.piece(0, 8)), Rules{"sent-and-received"});
  EXPECT_TRUE(earlier.is_given_up) << "what is sent is any of both";
  EXPECT_EQ(find(Use::receive, memory_.piece(0, 8)), Rules{}) << "told of already";
}

TEST_F(OverlapTest, poison_is_not_sent) {
  memory_.write(0, "program's");
  Request& receive = post(Use::receive, memory_.piece(0, 9));
  kept_.take(receive);
  hold_back(receive, true);
  EXPECT_EQ(find(Use::send, memory_.piece(0, 9), true), Rules{"sent-and-received"}) << "a fence is for READs";
  EXPECT_EQ(memory_.text(0, 9), "program's");
}

TEST_F(OverlapTest, a_fenced_send_reads_where_a_read_before_it_waits) {
  // InfiniBand Architecture Specification 1.4, 10.8.3.3.
  Request& read = post(Use::read, memory_.piece(0, 100));
  kept_.take(read);
  hold_back(read, true);
  EXPECT_EQ(find(Use::send, memory_.piece(10, 90), true), Rules{});
  EXPECT_EQ(list_[0].addr, reinterpret_cast<uintptr_t>(read.pieces[0].kept.memory) + 10);
  EXPECT_EQ(list_[0].lkey, read.pieces[0].kept.lkey);
  EXPECT_EQ(list_[0].length, 90U);
  EXPECT_TRUE(read.is_poisoned) << "its program must not look before the completion all the same";
  EXPECT_EQ(find(Use::send, memory_.piece(10, 90), false), Rules{"sent-and-received"});
  EXPECT_EQ(list_[0].addr, next_->pieces[0].address);
}

TEST_F(OverlapTest, a_fenced_send_behind_a_read_is_not_as_it_was_posted) {
  Request& read = post(Use::read, memory_.piece(0, 100));
  EXPECT_EQ(find(Use::send, memory_.piece(10, 200), true), Rules{});
  EXPECT_TRUE(next_->is_given_up) << "what it sends comes with the READ, and is neither copied nor compared";
  EXPECT_FALSE(read.is_given_up);
  EXPECT_EQ(list_[0].addr, next_->pieces[0].address) << "the device reads straight into the program's memory";
}

TEST_F(OverlapTest, what_a_read_has_kept_is_free_when_it_and_all_fenced_sends_of_it_are_over) {
  for (const int last : {0, 1, 2}) {  // which of the three is over last
    Request& read = post(Use::read, memory_.piece(0, 100));
    kept_.take(read);
    const KeptMemory::Piece waits = read.pieces[0].kept;
    find(Use::send, memory_.piece(0, 8), true);
    const std::unique_ptr<Request> first = std::move(next_);
    find(Use::send, memory_.piece(50, 8), true);
    Request* const users[] = {&read, first.get(), next_.get()};
    for (const int over : {1, 2, 3}) {
      auto later = request(3, Use::receive, {memory_.piece(0, 100)});
      kept_.take(*later);
      EXPECT_NE(later->pieces[0].kept.memory, waits.memory) << over << " of three use it yet, " << last << " the last";
      KeptMemories::give_back(*later);
      KeptMemories::give_back(*users[(last + over) % 3]);
    }
    auto later = request(4, Use::receive, {memory_.piece(0, 100)});
    kept_.take(*later);
    EXPECT_EQ(later->pieces[0].kept.memory, waits.memory) << "nobody uses it";
    KeptMemories::give_back(*later);
    table_.take_out(1);
  }
}

TEST_F(OverlapTest, inline_data_are_copied_before_a_fence_can_wait) {
  memory_.write(0, "program's");
  Request& read = post(Use::read, memory_.piece(0, 9));
  kept_.take(read);
  hold_back(read, true);
  const std::vector<Piece> beside{memory_.piece(9, 8)};
  const std::vector<Piece> within{memory_.piece(4, 8)};
  auto next = request(2, Use::send);
  next->qp = &pair_.qp;
  next->is_fenced = true;
  std::vector<Finding> found;
  find_overlaps_of_copy(table_, *next, beside, found);
  EXPECT_EQ(rules_of(found), Rules{});
  EXPECT_NE(memory_.text(0, 9), "program's");
  find_overlaps_of_copy(table_, *next, within, found);
  EXPECT_EQ(rules_of(found), Rules{"sent-and-received"});
  EXPECT_EQ(memory_.text(0, 9), "program's") << "poison is not sent";
}

TEST_F(OverlapTest, a_fence_waits_for_its_own_queue_pair_alone) {
  Request& read = post(Use::read, memory_.piece(0, 100));
  kept_.take(read);
  Pair other;
  read.qp = &other.qp;
  EXPECT_EQ(find(Use::send, memory_.piece(0, 8), true), Rules{"sent-and-received"});
}

TEST_F(OverlapTest, a_fenced_send_of_parts_is_said_to_go_wrong) {
  for (const bool poisons : {true, false}) {
    Request& read = post(Use::read, memory_.piece(0, 100));
    kept_.take(read);
    hold_back(read, poisons);
    ::testing::internal::CaptureStderr();
    EXPECT_EQ(find(Use::send, memory_.piece(50, 100), true), Rules{});
    EXPECT_NE(::testing::internal::GetCapturedStderr().find("a fenced request gathers parts"), std::string::npos);
    EXPECT_EQ(list_[0].addr, next_->pieces[0].address);
    KeptMemories::give_back(*table_.take_out(1));
  }
}

// Accesses to a peer's memory: the specification's table of ordering in 10.8.3.3.

std::unique_ptr<Request> access(uint32_t number, QueuePair& qp, ibv_wr_opcode opcode, uint64_t address,
                                uint64_t length = 8) {
  const bool is_write = opcode == IBV_WR_RDMA_WRITE;
  auto one = request(number, is_write ? Use::send : Use::read);
  one->opcode = opcode;
  one->qp = &qp;
  one->peer = 1;
  one->rkey = 3;
  one->remote_address = address;
  one->length = length;
  return one;
}

TEST(IsRace, of_one_queue_pair_is_a_change_behind_what_is_not_yet_read) {
  Pair pair;
  const auto write = access(1, pair.qp, IBV_WR_RDMA_WRITE, 0);
  const auto read = access(2, pair.qp, IBV_WR_RDMA_READ, 0);
  const auto atomic = access(3, pair.qp, IBV_WR_ATOMIC_FETCH_AND_ADD, 0);
  EXPECT_TRUE(is_race(*read, *write));
  EXPECT_TRUE(is_race(*atomic, *write));
  EXPECT_FALSE(is_race(*write, *write));
  EXPECT_FALSE(is_race(*write, *read));
  EXPECT_TRUE(is_race(*read, *atomic)) << "a READ may be answered, or answered again, behind it";
  EXPECT_FALSE(is_race(*atomic, *read));
  EXPECT_FALSE(is_race(*atomic, *atomic)) << "9.5: executed in the order in which they come";
  EXPECT_FALSE(is_race(*read, *read));
  EXPECT_FALSE(is_race(*write, *atomic));
  write->is_fenced = atomic->is_fenced = true;
  EXPECT_FALSE(is_race(*read, *write));
  EXPECT_FALSE(is_race(*atomic, *write));
  EXPECT_FALSE(is_race(*read, *atomic));
}

TEST(IsRace, of_two_queue_pairs_is_any_write) {
  Pair one;
  Pair two;
  const auto write = access(1, one.qp, IBV_WR_RDMA_WRITE, 0);
  const auto read = access(2, one.qp, IBV_WR_RDMA_READ, 0);
  const auto other_write = access(3, two.qp, IBV_WR_RDMA_WRITE, 0);
  const auto other_read = access(4, two.qp, IBV_WR_RDMA_READ, 0);
  other_write->is_fenced = true;
  EXPECT_TRUE(is_race(*write, *other_write));
  EXPECT_TRUE(is_race(*read, *other_write)) << "a fence is for its own queue pair";
  EXPECT_TRUE(is_race(*write, *other_read));
  EXPECT_FALSE(is_race(*read, *other_read));
}

class RemoteAccessesTest : public ::testing::Test {
 protected:
  Rules enter(std::unique_ptr<Request> one) {
    std::vector<Finding> found;
    accesses_.enter(table_, *one, found);
    table_.insert(std::move(one));
    return rules_of(found);
  }
  void leave(uint32_t number) { accesses_.leave(*table_.take_out(number)); }

  Pair one_;
  Pair two_;
  RequestTable table_{0};
  RemoteAccesses accesses_{"/no/such/folder/races"};
};

TEST_F(RemoteAccessesTest, count_from_enter_to_leave_for_their_bytes_and_key) {
  EXPECT_EQ(enter(access(1, one_.qp, IBV_WR_RDMA_WRITE, 100)), Rules{});
  EXPECT_EQ(enter(access(2, two_.qp, IBV_WR_RDMA_READ, 108)), Rules{}) << "behind it";
  EXPECT_EQ(enter(access(3, two_.qp, IBV_WR_RDMA_READ, 92)), Rules{}) << "before it";
  EXPECT_EQ(enter(access(4, two_.qp, IBV_WR_RDMA_READ, 107)), Rules{"remote-accesses-unordered"});
  auto elsewhere = access(5, two_.qp, IBV_WR_RDMA_WRITE, 100);
  elsewhere->rkey = 4;
  EXPECT_EQ(enter(std::move(elsewhere)), Rules{});
  elsewhere = access(6, two_.qp, IBV_WR_RDMA_WRITE, 100);
  elsewhere->peer = 2;
  EXPECT_EQ(enter(std::move(elsewhere)), Rules{});
  leave(1);
  EXPECT_EQ(enter(access(7, two_.qp, IBV_WR_RDMA_READ, 100)), Rules{});
  EXPECT_EQ(enter(access(8, two_.qp, IBV_WR_RDMA_WRITE, 100)), Rules{"write-may-pass-read"});
}

TEST_F(RemoteAccessesTest, behind_a_read_or_an_atomic_say_which_of_both_is_to_be_polled) {
  for (const ibv_wr_opcode earlier : {IBV_WR_RDMA_READ, IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WR_ATOMIC_CMP_AND_SWP}) {
    const bool is_read = earlier == IBV_WR_RDMA_READ;
    EXPECT_EQ(enter(access(1, one_.qp, earlier, 100)), Rules{});
    const auto write = access(2, one_.qp, IBV_WR_RDMA_WRITE, 100);
    std::vector<Finding> found;
    accesses_.enter(table_, *write, found);
    ASSERT_EQ(rules_of(found), Rules{"write-may-pass-read"});
    EXPECT_EQ(found[0].what.find("READ") != std::string::npos, is_read) << found[0].what;
    EXPECT_EQ(found[0].what.find("earlier atomic") != std::string::npos, !is_read) << found[0].what;
    EXPECT_EQ(found[0].fix.find("the READ's completion") != std::string::npos, is_read) << found[0].fix;
    EXPECT_EQ(found[0].fix.find("the atomic's completion") != std::string::npos, !is_read) << found[0].fix;
    accesses_.leave(*write);
    leave(1);
  }
}

TEST_F(RemoteAccessesTest, of_no_bytes_race_with_nobody) {
  EXPECT_EQ(enter(access(1, one_.qp, IBV_WR_RDMA_WRITE, 100, 0)), Rules{});
  EXPECT_EQ(enter(access(2, two_.qp, IBV_WR_RDMA_WRITE, 100)), Rules{});
  leave(1);
  EXPECT_EQ(enter(access(3, one_.qp, IBV_WR_RDMA_WRITE, 100)), Rules{"remote-accesses-unordered"})
      << "the end of the first is not the second's";
}

TEST_F(RemoteAccessesTest, go_on_from_nothing_in_a_child) {
  enter(access(1, one_.qp, IBV_WR_RDMA_WRITE, 100));
  accesses_.forget();
  table_.clear();
  EXPECT_EQ(enter(access(2, two_.qp, IBV_WR_RDMA_WRITE, 100)), Rules{});
}

TEST(RemoteAccesses, of_another_process_are_told_here_and_there) {
  std::string path = "/tmp/rb-remote-XXXXXX";
  ::close(::mkstemp(path.data()));
  Pair pair;
  {
    RequestTable table(0);
    RemoteAccesses own(path);
    RaceTable other(path);
    std::optional<RaceTable::Entry> none;
    std::vector<Finding> found;
    auto first = access(1, pair.qp, IBV_WR_RDMA_WRITE, 100);
    own.enter(table, *first, found);
    EXPECT_TRUE(found.empty());
    EXPECT_TRUE(other.enter({1, 100, 8, 3, 9, ::getppid(), Access::read}, none));
    own.leave(*first);
    ASSERT_TRUE(first->met) << "it came later, and reads what was being written";
    const Finding told = race_between_processes(*first, *first->met, testing::site(9));
    EXPECT_EQ(told.places.size(), 2U);
    EXPECT_NE(told.numbers.find("process " + std::to_string(::getppid()) + " reads 8 bytes"), std::string::npos);
    auto second = access(2, pair.qp, IBV_WR_RDMA_WRITE, 100);
    own.enter(table, *second, found);
    ASSERT_EQ(rules_of(found), Rules{"remote-accesses-unordered"});
    EXPECT_EQ(found[0].places.size(), 1U) << "nothing is polled yet";
    own.leave(*second);
  }
  ::unlink(path.c_str());
}

}  // namespace
}  // namespace ringbolt::sanitizer
