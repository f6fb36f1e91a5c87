#include <gtest/gtest.h>

#include <deque>
#include <random>
#include <vector>

#include "rsocket/credits.h"
#include "rsocket/receive_ring.h"
#include "rsocket/staging_ring.h"

namespace ringbolt::rsocket {
namespace {

TEST(SendCredits, last_until_the_granted_number) {
  SendCredits credits(2);
  EXPECT_TRUE(credits.has_credit());
  credits.spend();
  credits.spend();
  EXPECT_FALSE(credits.has_credit());
  credits.grant(3);
  EXPECT_TRUE(credits.has_credit());
  credits.spend();
  EXPECT_FALSE(credits.has_credit());
}

TEST(SendCredits, of_none_allow_nothing) { EXPECT_FALSE(SendCredits(0).has_credit()); }

TEST(SendCredits, go_on_when_the_number_wraps) {
  SendCredits credits(384);
  for (uint32_t sent = 0; sent < 200'000; ++sent) {
    ASSERT_TRUE(credits.has_credit());
    credits.spend();
    credits.grant(sent + 1 + 384);
  }
}

TEST(ReceiveCredits, are_due_at_half) {
  ReceiveCredits credits(384);
  for (int i = 0; i < 191; ++i) {
    credits.arrived();
  }
  EXPECT_FALSE(credits.is_due());
  credits.arrived();
  EXPECT_TRUE(credits.is_due());
  EXPECT_EQ(credits.take_grant(), 192 + 384);
  EXPECT_FALSE(credits.is_due());
}

TEST(ReceiveCredits, are_due_in_time_for_the_smallest_and_the_largest_queue) {
  for (const int depth : {1, 16, 0xfffe}) {
    ReceiveCredits receiver(static_cast<uint16_t>(depth));
    SendCredits sender(static_cast<uint16_t>(depth));
    for (int i = 0; i < 200'000; ++i) {
      ASSERT_TRUE(sender.has_credit()) << "depth " << depth << ", message " << i;
      sender.spend();
      receiver.arrived();
      if (receiver.is_due()) {
        sender.grant(receiver.take_grant());
      }
    }
  }
}

TEST(SendSlots, keep_four_for_control) {
  SendSlots slots(6);
  slots.take_data();
  slots.take_data();
  EXPECT_FALSE(slots.has_data());
  for (int i = 0; i < 4; ++i) {
    ASSERT_TRUE(slots.has_control());
    slots.take_control();
  }
  EXPECT_FALSE(slots.has_control());
  EXPECT_FALSE(slots.is_idle());
  slots.return_data();
  EXPECT_TRUE(slots.has_data());
  EXPECT_FALSE(slots.has_control());
  slots.return_data();
  for (int i = 0; i < 4; ++i) {
    slots.return_control();
  }
  EXPECT_TRUE(slots.is_idle());
}

TEST(StagingRing, hands_out_every_place_once_round_by_round) {
  StagingRing ring(100);
  EXPECT_EQ(ring.take(60), 0U);
  EXPECT_FALSE(ring.fits_whole(41));
  ring.give_back(60);
  EXPECT_TRUE(ring.fits_whole(40));
  EXPECT_EQ(ring.take(40), 60U);
  EXPECT_EQ(ring.take(60), 0U);
  EXPECT_EQ(ring.free_bytes(), 0U);
  EXPECT_TRUE(ring.fits_whole(0));
  EXPECT_FALSE(ring.fits_whole(1));
}

TEST(StagingRing, passes_over_an_end_that_is_too_short) {
  StagingRing ring(100);
  ring.take(90);
  EXPECT_FALSE(ring.fits_whole(24));
  EXPECT_TRUE(ring.fits_whole(10));
  EXPECT_EQ(ring.padding(10), 0U);
  ring.give_back(90);
  ASSERT_TRUE(ring.fits_whole(24));
  EXPECT_EQ(ring.padding(24), 10U);
  EXPECT_EQ(ring.take(10), 90U);
  EXPECT_EQ(ring.take(24), 0U);
  ring.give_back(34);
  EXPECT_EQ(ring.free_bytes(), 100U);
}

TEST(ReceiveRing, starts_with_the_first_half_offered_and_the_second_free) {
  ReceiveRing ring(8);
  EXPECT_TRUE(ring.has_free_half());
  EXPECT_EQ(ring.offer(), 8U);
  EXPECT_FALSE(ring.has_free_half());
  EXPECT_EQ(ring.readable(), 0U);
}

TEST(ReceiveRing, refuses_more_than_it_offered) {
  ReceiveRing ring(8);
  EXPECT_FALSE(ring.arrived(9));
  EXPECT_TRUE(ring.arrived(8));
  EXPECT_FALSE(ring.arrived(1));
}

TEST(ReceiveRing, refuses_a_message_across_two_halves) {
  ReceiveRing ring(8);
  ring.offer();
  EXPECT_TRUE(ring.arrived(5));
  EXPECT_FALSE(ring.arrived(4));
  EXPECT_TRUE(ring.arrived(3));
  EXPECT_TRUE(ring.arrived(8));
}

TEST(ReceiveRing, offers_a_half_again_only_when_all_of_it_was_read) {
  ReceiveRing ring(8);
  ring.offer();
  ASSERT_TRUE(ring.arrived(8));
  ring.consume(7);
  EXPECT_FALSE(ring.has_free_half());
  ring.consume(1);
  EXPECT_TRUE(ring.has_free_half());
  EXPECT_EQ(ring.offer(), 0U);
}

/// A sender that obeys the offers and a reader in steps of any size: every byte comes out where it went in.
TEST(ReceiveRing, carries_a_stream_exactly) {
  constexpr uint32_t kHalf = 61;
  std::mt19937 random(7);
  ReceiveRing ring(kHalf);
  std::vector<uint8_t> memory(ring.bytes());
  struct Offer {
    uint32_t at, left;
  };
  std::deque<Offer> offers{{0, kHalf}};
  uint8_t next_in = 0;
  uint8_t next_out = 0;
  for (int step = 0; step < 20'000; ++step) {
    if (ring.has_free_half()) {
      offers.push_back({ring.offer(), kHalf});
    }
    ASSERT_LE(offers.size(), 2U);
    if (!offers.empty() && random() % 2 == 0) {
      Offer& offer = offers.front();
      const auto length = static_cast<uint32_t>(1 + random() % offer.left);
      for (uint32_t i = 0; i < length; ++i) {
        memory[offer.at + i] = next_in++;
      }
      ASSERT_TRUE(ring.arrived(length));
      offer.at += length;
      offer.left -= length;
      if (offer.left == 0) {
        offers.pop_front();
      }
    }
    auto wanted = static_cast<uint32_t>(random() % (ring.readable() + 1));
    while (wanted > 0) {
      const uint32_t piece = std::min(wanted, ring.contiguous());
      ASSERT_GT(piece, 0U);
      for (uint32_t i = 0; i < piece; ++i) {
        ASSERT_EQ(memory[ring.read_offset() + i], next_out++);
      }
      ring.consume(piece);
      wanted -= piece;
    }
  }
}

TEST(ReceiveRing, shows_what_lies_behind_the_read_position) {
  ReceiveRing ring(4);
  ring.offer();
  ASSERT_TRUE(ring.arrived(4));
  ring.consume(3);
  ASSERT_TRUE(ring.arrived(4));
  EXPECT_EQ(ring.contiguous(), 5U);
  EXPECT_EQ(ring.offset(2), 5U);
  EXPECT_EQ(ring.contiguous(2), 3U);
  ring.consume(1);
  ASSERT_EQ(ring.offer(), 0U);
  ASSERT_TRUE(ring.arrived(2));
  EXPECT_EQ(ring.contiguous(), 4U);
  EXPECT_EQ(ring.contiguous(4), 2U);
  EXPECT_EQ(ring.offset(4), 0U);
}

}  // namespace
}  // namespace ringbolt::rsocket
