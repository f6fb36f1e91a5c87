// Messages that are received without a copy (base/in_place.h).

#include "base/in_place.h"

#include <gtest/gtest.h>

#include "device/lane_test_support.h"

namespace ringbolt::device {
namespace {

class LaneInPlaceTest : public LanePairOfTypesTest {
 protected:
  static constexpr uint32_t kLength = 64 << 10;
  void SetUp() override {
    LanePairOfTypesTest::SetUp();
    from_there_ = std::make_unique<Shareable>(device_, kLength);
    introduce_arenas();
    for (uint32_t i = 0; i < kLength; ++i) {
      from_there_->data()[i] = static_cast<std::byte>(i * 7 + i / 256);
    }
    std::memset(to_.data(), 0, kLength);
  }
  /// A message of the whole memory, as it completes.
  ibv_wc carry(unsigned flags, ibv_wr_opcode opcode = IBV_WR_SEND) {
    EXPECT_EQ(b_->receive(1, {to_.piece(0, kLength)}), 0);
    ibv_sge piece = from_there_->piece(0, kLength);
    EXPECT_EQ(a_->post(End::request(opcode, 2, &piece, flags)), 0);
    return b_->received_one();
  }
  bool is_copied() { return are_equal(*from_there_, 0, to_, 0, kLength); }

  std::unique_ptr<Shareable> from_there_;
};
INSTANTIATE_TEST_SUITE_P(Types, LaneInPlaceTest, testing::Values(IBV_QPT_RC, IBV_QPT_UC), name_of_type);

TEST_P(LaneInPlaceTest, message_stays_where_both_ends_want_that) {
  ASSERT_EQ(b_->receives.receive_in_place(), 0);
  const ibv_wc wc = carry(base::kStaysInPlace);
  ASSERT_EQ(wc.status, IBV_WC_SUCCESS);
  EXPECT_EQ(wc.byte_len, kLength);
  ASSERT_NE(wc.wc_flags & base::kReceivedInPlace, 0U);
  EXPECT_EQ(std::memcmp(base::place_in(wc), from_there_->data(), kLength), 0);
  EXPECT_TRUE(are_equal(*from_there_, 0, to_, 0, base::kHeadBytes));
  EXPECT_EQ(to_.data()[base::kHeadBytes + 1], std::byte{0});
}

TEST_P(LaneInPlaceTest, message_is_copied_unless_the_sender_leaves_it) {
  ASSERT_EQ(b_->receives.receive_in_place(), 0);
  EXPECT_EQ(carry(0).wc_flags, 0U);
  EXPECT_TRUE(is_copied());
}

TEST_P(LaneInPlaceTest, message_is_copied_unless_the_receiver_asked_for_that) {
  EXPECT_EQ(carry(base::kStaysInPlace).wc_flags, 0U);
  EXPECT_TRUE(is_copied());
}

TEST_P(LaneInPlaceTest, message_with_an_immediate_is_copied) {
  ASSERT_EQ(b_->receives.receive_in_place(), 0);
  EXPECT_EQ(carry(base::kStaysInPlace, IBV_WR_SEND_WITH_IMM).wc_flags, static_cast<unsigned>(IBV_WC_WITH_IMM));
  EXPECT_TRUE(is_copied());
}

TEST_P(LaneInPlaceTest, memory_stays_readable_when_the_sender_has_freed_it) {
  ASSERT_EQ(b_->receives.receive_in_place(), 0);
  const uint32_t arena = device_.process().arenas().all().front().arena_id;
  const ibv_wc wc = carry(base::kStaysInPlace);
  ASSERT_NE(wc.wc_flags & base::kReceivedInPlace, 0U);
  std::vector<std::byte> wanted(from_there_->data(), from_there_->data() + kLength);
  from_there_.reset();
  remote_->arenas().hide(arena);
  remote_->arenas().forget(arena);
  EXPECT_EQ(std::memcmp(base::place_in(wc), wanted.data(), kLength), 0);
}

}  // namespace
}  // namespace ringbolt::device
