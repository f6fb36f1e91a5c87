// Packets that come before their turn while there is no memory to keep them.

#include <gtest/gtest.h>

#include <cstddef>
#include <new>

#include "link/stream_test_support.h"

namespace {
/// Of this thread's requests for arrays that may fail, all do.
thread_local bool has_no_memory = false;
}  // namespace

/// As the standard library has it (its own is replaceable), but for those that are to fail. Memory of it goes back to
/// operator delete[].
void* operator new[](size_t bytes, const std::nothrow_t& /*unused*/) noexcept {
  if (has_no_memory) {
    return nullptr;
  }
  try {
    return ::operator new[](bytes);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

namespace ringbolt::link::stream_test {
namespace {

TEST(StreamMemory, packet_that_can_not_be_kept_is_told_from_one_that_is) {
  StreamOrder order(4);
  const std::array<std::byte, 8> packet{};
  has_no_memory = true;
  EXPECT_EQ(order.offer(1, packet), StreamOrder::Verdict::no_memory);
  EXPECT_EQ(order.offer(0, packet), StreamOrder::Verdict::next) << "it is not kept";
  has_no_memory = false;
  EXPECT_FALSE(order.take());
  EXPECT_EQ(order.offer(1, packet), StreamOrder::Verdict::next) << "it came again, and is no duplicate";
}

/// Was it acknowledged it would never come again, and those behind it wait for ever.
TEST(StreamMemory, packet_that_can_not_be_kept_comes_again) {
  Couple couple(2);
  couple.exchange(0);
  couple.exchange(1);
  for (uint8_t number = 0; number < 4; ++number) {
    Couple::send(couple.ends[0], std::byte{number});
  }
  couple.ends[0].distribute(couple.now);
  std::vector<Bytes> arrived;
  has_no_memory = true;
  for (size_t rail = 2; rail-- > 0;) {  // that of the first packet comes last
    couple.carry(couple.ends[0], couple.ends[1], rail, arrived);
  }
  has_no_memory = false;
  EXPECT_EQ(couple.ends[1].last_end(1), StreamSession::End::no_memory);
  for (int turn = 0; turn < 100 && arrived.size() < 4; ++turn) {
    couple.now += StreamSession::Timing{}.acknowledge_ns;
    for (size_t rail = 0; rail < 2; ++rail) {
      couple.ends[0].tick(couple.now);
      couple.ends[1].tick(couple.now);
      const auto more = couple.exchange(rail);
      arrived.insert(arrived.end(), more.begin(), more.end());
    }
  }
  EXPECT_EQ(arrived, (std::vector<Bytes>{{std::byte{0}}, {std::byte{1}}, {std::byte{2}}, {std::byte{3}}}));
}

}  // namespace
}  // namespace ringbolt::link::stream_test
