#include "device/queue_pair_notes.h"

#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "base/clock.h"
#include "device/half_locks.h"

namespace ringbolt::device {
namespace {

constexpr uint32_t kMostPieces = 2;
constexpr uint32_t kReceiveDepth = 3;

/// The place that posted number `number`: no function's, to be compared alone.
base::CallSite site(uintptr_t number) { return {{number, 0, 0}}; }

class QueuePairNotesTest : public testing::Test {
 protected:
  QueuePairNotes::Send note(const ibv_send_wr& wr, uint32_t place = 0) {
    const SendGuard guard(locks_);
    notes_.note_send(place, wr, 9, {site(place + 1), 77}, 5);
    return notes_.send(place);
  }
  ibv_sge noted_piece(uint32_t place, uint32_t index) {
    const SendGuard guard(locks_);
    return notes_.pieces(place)[index];
  }
  /// `count` of a list of as many, of which the program numbers the first `wr_id`, and so on.
  void note_receives(uint32_t count, uintptr_t from, uint64_t wr_id = 0) {
    const ReceiveGuard guard(locks_);
    std::vector<ibv_recv_wr> list(count + 1);
    for (uint32_t i = 0; i < count; ++i) {
      list[i] = {wr_id + i, &list[i + 1], nullptr, 0};
    }
    notes_.note_receives(list.data(), count, {site(from)});
  }
  NotedReceive noted_receive(uint32_t behind) {
    const ReceiveGuard guard(locks_);
    return notes_.taken_receive(behind);
  }
  uintptr_t taken_receive(uint32_t behind) { return noted_receive(behind).site.returns[0]; }
  std::string receives_text(uint32_t posted) {
    const ReceiveGuard guard(locks_);
    return notes_.receives_text(posted);
  }
  bool is_news(uint64_t now_ns) {
    const ReceiveGuard guard(locks_);
    return notes_.note_starved(now_ns);
  }
  ibv_send_wr request(ibv_wr_opcode opcode, int pieces) {
    ibv_send_wr wr{};
    wr.wr_id = 1234;  // the device's number for it
    wr.opcode = opcode;
    wr.sg_list = pieces_.data();
    wr.num_sge = pieces;
    return wr;
  }

  HalfLocks locks_;
  QueuePairNotes notes_{4, kMostPieces, kReceiveDepth, false};
  std::array<ibv_sge, 3> pieces_{{{0x1000, 10, 1}, {0x2000, 20, 2}, {0x3000, 40, 3}}};
};

TEST_F(QueuePairNotesTest, keep_what_a_write_names) {
  ibv_send_wr wr = request(IBV_WR_RDMA_WRITE, 2);
  wr.wr.rdma = {0xabcd000, 0x5678};
  wr.send_flags = IBV_SEND_SIGNALED | IBV_SEND_FENCE;
  const auto noted = note(wr, 3);
  EXPECT_EQ(noted.wr_id, 9U);
  EXPECT_EQ(noted.opcode(), IBV_WR_RDMA_WRITE);
  EXPECT_EQ(noted.key, 0x5678U);
  EXPECT_EQ(noted.address, 0xabcd000U);
  EXPECT_EQ(noted.length, 30U);
  EXPECT_EQ(noted.ticks, 77U);
  EXPECT_EQ(noted.peer_notes, 5U);
  EXPECT_EQ(noted.site.returns[0], 4U);
  EXPECT_TRUE(noted.is_signaled);
  ASSERT_EQ(noted.pieces, 2U);
  EXPECT_EQ(noted_piece(3, 1).addr, 0x2000U);
}

TEST_F(QueuePairNotesTest, know_that_atomics_name_memory_in_another_place) {
  ibv_send_wr wr = request(IBV_WR_ATOMIC_FETCH_AND_ADD, 1);
  wr.wr.atomic = {0xabc0, 1, 2, 0x99};
  for (const ibv_wr_opcode opcode : {IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WR_ATOMIC_CMP_AND_SWP}) {
    wr.opcode = opcode;
    const auto noted = note(wr);
    EXPECT_EQ(noted.key, 0x99U);
    EXPECT_EQ(noted.address, 0xabc0U);
    EXPECT_FALSE(noted.is_signaled);
  }
}

TEST_F(QueuePairNotesTest, take_no_more_pieces_than_there_is_room_for_and_none_that_are_not_there) {
  EXPECT_EQ(note(request(IBV_WR_SEND, 3)).pieces, kMostPieces);  // the post is about to be refused
  EXPECT_EQ(note(request(IBV_WR_SEND, -1)).pieces, 0U);
  ibv_send_wr without = request(IBV_WR_BIND_MW, 2);
  without.sg_list = nullptr;
  EXPECT_EQ(note(without).pieces, 0U);
  without.opcode = IBV_WR_LOCAL_INV;
  EXPECT_EQ(note(without).pieces, 0U);
  EXPECT_EQ(note(without).length, 0U);
}

TEST_F(QueuePairNotesTest, places_do_not_touch_each_other_and_the_newest_is_known) {
  {
    const SendGuard guard(locks_);
    EXPECT_FALSE(notes_.has_sent());
  }
  note(request(IBV_WR_SEND, 2), 0);
  note(request(IBV_WR_SEND, 1), 1);
  EXPECT_EQ(noted_piece(0, 1).addr, 0x2000U);
  EXPECT_EQ(noted_piece(1, 0).addr, 0x1000U);
  const SendGuard guard(locks_);
  EXPECT_TRUE(notes_.has_sent());
  EXPECT_EQ(notes_.last_send(), 1U);
}

// The one that was taken last is the newest but those that are posted still.
TEST_F(QueuePairNotesTest, know_where_each_receive_was_posted) {
  EXPECT_EQ(taken_receive(0), 0U);  // none was
  note_receives(1, 11);
  note_receives(2, 12);
  EXPECT_EQ(taken_receive(2), 11U);
  EXPECT_EQ(taken_receive(1), 12U);
  EXPECT_EQ(taken_receive(0), 12U);
  EXPECT_EQ(taken_receive(3), 0U);
}

/// On a device where each piece is a receive of its own.
TEST_F(QueuePairNotesTest, know_the_request_of_each_piece) {
  QueuePairNotes notes(4, kMostPieces, 4, true);
  const ReceiveGuard guard(locks_);
  ibv_recv_wr second{8, nullptr, pieces_.data(), 1};
  const ibv_recv_wr first{7, &second, pieces_.data(), 2};
  notes.note_receives(&first, 3, {site(1)});
  EXPECT_EQ(notes.taken_receive(2).wr_id, 7U);
  EXPECT_EQ(notes.taken_receive(1).wr_id, 7U);
  EXPECT_EQ(notes.taken_receive(0).wr_id, 8U);
  notes.note_receives(&first, 1, {site(1)});  // what is behind was refused
  EXPECT_EQ(notes.taken_receive(0).wr_id, 7U);
  EXPECT_EQ(notes.places_of(2), 2U);
  EXPECT_EQ(notes.places_of(0), 1U);
}

TEST_F(QueuePairNotesTest, know_receives_around_the_end_of_a_full_queue) {
  for (uintptr_t number = 1; number <= 20; ++number) {
    note_receives(1, number);
    for (uint32_t behind = 0; behind <= kReceiveDepth && behind < number; ++behind) {
      EXPECT_EQ(taken_receive(behind), number - behind) << number << " " << behind;
    }
  }
}

TEST_F(QueuePairNotesTest, know_receives_by_the_numbers_of_the_program) {
  note_receives(2, 11, 500);
  EXPECT_EQ(noted_receive(1).wr_id, 500U);
  EXPECT_EQ(noted_receive(0).wr_id, 501U);
  ibv_recv_wr original{7, nullptr, nullptr, 0};
  ibv_recv_wr passed{0xabcd, nullptr, nullptr, 0};
  {
    const ReceiveGuard guard(locks_);
    notes_.note_receives(&passed, 1, {site(12), 0, &original});
  }
  EXPECT_EQ(noted_receive(0).wr_id, 7U);
}

// What is noted of a send before it is the peer's has no time yet: it is posted just now.
TEST_F(QueuePairNotesTest, know_when_a_send_was_posted) {
  QueuePairNotes::Send send;
  const uint64_t before = base::now_ns();
  EXPECT_GE(notes_.posted_ns(send), before);
  {
    const SendGuard guard(locks_);
    notes_.note_send(2, request(IBV_WR_SEND, 1), 1, {}, 0);
    notes_.note_time_of_send(2, notes_.ticks_now());
    send = notes_.send(2);
  }
  constexpr uint64_t kSlackNs = 1'000'000;  // between the readings of two clocks a thread may lose its core
  const uint64_t posted = notes_.posted_ns(send);
  EXPECT_GE(posted + kSlackNs, before);
  EXPECT_LE(posted, base::now_ns() + kSlackNs);
}

TEST_F(QueuePairNotesTest, say_how_many_receives_there_were) {
  EXPECT_EQ(receives_text(0), "no receive was ever posted");
  note_receives(0, 1);
  EXPECT_EQ(receives_text(0), "no receive was ever posted");
  note_receives(2, 1);
  note_receives(3, 1);
  EXPECT_EQ(receives_text(1).find("1 receives are posted; 5 were, the last "), 0U) << receives_text(1);
}

TEST_F(QueuePairNotesTest, want_of_receives_is_news_after_a_post_or_half_a_second) {
  constexpr uint64_t kHalfNs = 500'000'000;
  constexpr uint64_t kBegan = 1'000'000'000;
  EXPECT_TRUE(is_news(kBegan));
  EXPECT_FALSE(is_news(kBegan + 1));
  EXPECT_FALSE(is_news(kBegan + kHalfNs - 1));
  EXPECT_TRUE(is_news(kBegan + kHalfNs));
  EXPECT_FALSE(is_news(kBegan + kHalfNs + 1));
  note_receives(1, 1);
  EXPECT_TRUE(is_news(kBegan + kHalfNs + 2));
}

TEST_F(QueuePairNotesTest, first_word_stands_until_it_is_taken) {
  EXPECT_FALSE(notes_.take_why_send());
  notes_.say_why_send({"first", ""});
  notes_.say_why_send({"second", ""});
  notes_.say_why_receive({"other half", ""});
  EXPECT_EQ(notes_.take_why_send()->why, "first");
  EXPECT_FALSE(notes_.take_why_send());
  notes_.say_why_send({"third", ""});
  EXPECT_EQ(notes_.take_why_send()->why, "third");
  EXPECT_EQ(notes_.take_why_receive()->why, "other half");
  EXPECT_FALSE(notes_.take_why_receive());
}

TEST_F(QueuePairNotesTest, what_ended_the_queue_pair_is_told_once_in_a_life) {
  EXPECT_EQ(notes_.take_ended(), "");
  notes_.say_ended("the first failure");
  notes_.say_ended("what followed from it");
  EXPECT_EQ(notes_.take_ended(), "the first failure");
  EXPECT_EQ(notes_.take_ended(), "");
  notes_.say_ended("more of what followed");
  EXPECT_EQ(notes_.take_ended(), "");
  notes_.clear();  // the step to RESET begins another life
  notes_.say_ended("a failure of the next life");
  EXPECT_EQ(notes_.take_ended(), "a failure of the next life");
}

TEST_F(QueuePairNotesTest, reset_forgets_all_words) {
  notes_.say_why_send({"send", ""});
  notes_.say_why_receive({"receive", ""});
  notes_.say_ended("ended");
  notes_.clear();
  EXPECT_FALSE(notes_.take_why_send());
  EXPECT_FALSE(notes_.take_why_receive());
  EXPECT_EQ(notes_.take_ended(), "");
}

}  // namespace
}  // namespace ringbolt::device
