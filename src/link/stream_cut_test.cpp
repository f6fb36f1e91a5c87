// A stream that ends, or loses its tail, at each byte of a message's frames in turn.
#include <gtest/gtest.h>

#include "link/stream_link.h"
#include "link/stream_test_support.h"

namespace ringbolt::link::stream_test {
namespace {

enum class Cut {
  ends,           ///< both ends are told
  loses_silently  ///< what was under way is gone and nobody says so, as after a suspended machine
};

void send(StreamLink& link, const Bytes& packet) {
  ASSERT_FALSE(link.reserve().empty());
  std::ranges::copy(packet, link.reserve().begin());
  link.commit(packet.size());
}

/// Two packets from end 0, of which `offset` bytes get through before the cut. How many bytes they are.
size_t cut_at(size_t offset, size_t length, Cut cut) {
  const std::vector<Bytes> wanted{packet_of(1, 0, length), packet_of(2, 0, length)};
  Couple couple;
  couple.exchange();
  for (const Bytes& packet : wanted) {
    send(couple.ends[0], packet);
  }
  couple.ends[0].distribute(couple.now);
  const size_t total = couple.ends[0].output(0).size();
  std::vector<Bytes> got;
  while (offset != 0 && !couple.ends[0].output(0).empty()) {
    const size_t before = couple.ends[0].output(0).size();
    couple.carry(couple.ends[0], couple.ends[1], 0, got, offset);
    offset -= before - couple.ends[0].output(0).size();
  }
  if (cut == Cut::ends) {
    couple.reopen();
  } else {
    for (StreamLink& end : couple.ends) {
      end.written(0, end.output(0).size());
    }
    couple.now += StreamSession::Timing{}.ping_ns;
    for (StreamLink& end : couple.ends) {
      end.tick(couple.now);
    }
  }
  // A frame of which the end is missing swallows PINGs, until silence ends it.
  const uint64_t late = couple.now + 4'000'000'000;
  while (got.size() < wanted.size() && couple.now < late) {
    const auto more = couple.exchange();
    got.insert(got.end(), more.begin(), more.end());
    couple.now += StreamSession::Timing{}.hello_ns;
    for (StreamLink& end : couple.ends) {
      end.tick(couple.now);
    }
  }
  const auto more = couple.exchange();
  got.insert(got.end(), more.begin(), more.end());
  EXPECT_EQ(got, wanted) << "of " << length << " bytes";
  return total;
}

void cut_everywhere(size_t length, size_t step, Cut cut) {
  size_t total = 1;
  for (size_t offset = 0; offset <= total && !::testing::Test::HasFailure(); offset += step) {
    SCOPED_TRACE("offset " + std::to_string(offset));
    total = cut_at(offset, length, cut);
  }
}

TEST(StreamCut, small_messages_survive_an_end_at_every_byte) {
  for (const size_t length : {size_t{0}, size_t{1}, size_t{64}, size_t{500}}) {
    cut_everywhere(length, 1, Cut::ends);
  }
}

TEST(StreamCut, small_messages_survive_a_lost_tail_at_every_byte) {
  for (const size_t length : {size_t{0}, size_t{64}}) {
    cut_everywhere(length, 1, Cut::loses_silently);
  }
}

/// 4048 and the number fill a frame; one more begins a second.
TEST(StreamCut, messages_of_one_and_two_frames_survive_a_cut_anywhere) {
  for (const size_t length : {size_t{4048}, size_t{4049}, kMaxStreamPacketBytes}) {
    cut_everywhere(length, 37, Cut::ends);
    cut_everywhere(length, 41, Cut::loses_silently);
  }
}

/// What comes back is cut: the packet is there, and its sender does not know.
TEST(StreamCut, an_acknowledgement_that_is_cut_at_any_byte_doubles_nothing) {
  size_t total = 1;
  for (size_t offset = 0; offset <= total; ++offset) {
    SCOPED_TRACE("offset " + std::to_string(offset));
    Couple couple;
    couple.exchange();
    send(couple.ends[0], packet_of(1, 0, 64));
    EXPECT_EQ(couple.exchange().size(), 1U);
    couple.now += StreamSession::Timing{}.acknowledge_ns;
    couple.ends[1].tick(couple.now);
    total = couple.ends[1].output(0).size();
    std::vector<Bytes> got;
    if (offset != 0) {
      couple.carry(couple.ends[1], couple.ends[0], 0, got, offset);
    }
    couple.reopen();
    send(couple.ends[0], packet_of(2, 0, 64));
    EXPECT_EQ(couple.exchange(), std::vector<Bytes>{packet_of(2, 0, 64)});
    EXPECT_EQ(couple.ends[1].counters().duplicate_packets, offset < total ? 1U : 0U);
  }
}

}  // namespace
}  // namespace ringbolt::link::stream_test
