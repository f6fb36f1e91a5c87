#include "group/call.h"

#include <gtest/gtest.h>

#include <set>

#include "base/crc.h"

namespace ringbolt::group {
namespace {

CallShape shape_of(uint64_t share) {
  CallShape shape;
  shape.operation = collective::Operation::all_reduce;
  shape.bytes = share;
  shape.shares_crc = base::crc32c(0, std::as_bytes(std::span(&share, 1)));
  return shape;
}

TEST(CallShape, signatures_of_different_sizes_differ) {
  std::set<uint32_t> seen;
  for (uint64_t share = 0; share < 1000; ++share) {
    EXPECT_TRUE(seen.insert(shape_of(4 * share).signature()).second) << share;
  }
  EXPECT_EQ(shape_of(4000).signature(), shape_of(4000).signature());
}

TEST(CallShape, signatures_tell_all_that_ranks_must_agree_in) {
  const CallShape shape = shape_of(4000);
  std::set<uint32_t> seen = {shape.signature()};
  const auto add = [&](auto&& change) {
    CallShape other = shape;
    change(other);
    EXPECT_TRUE(seen.insert(other.signature()).second) << other.text();
  };
  add([](CallShape& other) { other.operation = collective::Operation::broadcast; });
  add([](CallShape& other) { other.type = collective::Type::float32; });
  add([](CallShape& other) { other.reduction = collective::Reduction::max; });
  add([](CallShape& other) { other.root = 1; });
  add([](CallShape& other) { other.needs_rank_order = true; });
  add([](CallShape& other) { other.is_message = true; });
  add([](CallShape& other) { other.algorithm_crc = 1; });
  add([](CallShape& other) { other.schedule_crc = 1; });
  add([](CallShape& other) { other.phase = Phase::counting; });
  add([](CallShape& other) { other.phase = Phase::counted; });
}

}  // namespace
}  // namespace ringbolt::group
