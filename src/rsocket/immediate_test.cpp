#include "rsocket/immediate.h"

#include <gtest/gtest.h>

namespace ringbolt::rsocket {
namespace {

TEST(Immediate, puts_the_kind_into_the_top_three_bits) {
  EXPECT_EQ((Immediate{Op::data, 5}.emit()), 0x00000005U);
  EXPECT_EQ((Immediate{Op::credits, 384}.emit()), 0x80000180U);
  EXPECT_EQ((Immediate{Op::iomap_updated, 3}.emit()), 0xC0000003U);
  EXPECT_EQ((Immediate{Op::control, static_cast<uint32_t>(Control::disconnect)}.emit()), 0xE0000000U);
  EXPECT_EQ((Immediate{Op::control, static_cast<uint32_t>(Control::shutdown)}.emit()), 0xE0000002U);
}

TEST(Immediate, returns_what_was_put_in) {
  for (const Op op : {Op::data, Op::credits, Op::iomap_updated, Op::control}) {
    for (const uint32_t value : {0U, 1U, 65536U, Immediate::kMaxValue}) {
      EXPECT_EQ(Immediate::parse(Immediate{op, value}.emit()), (Immediate{op, value}));
    }
  }
}

TEST(Immediate, keeps_a_value_that_is_too_large_out_of_the_kind) {
  EXPECT_EQ(Immediate::parse(Immediate{Op::data, Immediate::kMaxValue + 1}.emit()), (Immediate{Op::data, 0}));
}

}  // namespace
}  // namespace ringbolt::rsocket
