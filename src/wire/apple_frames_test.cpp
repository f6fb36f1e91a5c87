#include "wire/apple_frames.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <deque>
#include <string>
#include <vector>

namespace ringbolt::wire {
namespace {

/// Receives of given room; what was received, as text.
struct Receives {
  std::deque<uint64_t> rooms;
  std::string open;
  std::vector<std::string> log;

  std::optional<uint64_t> take_receive() {
    if (rooms.empty()) {
      return std::nullopt;
    }
    const uint64_t room = rooms.front();
    rooms.pop_front();
    return room;
  }
  void place(uint32_t offset, std::span<const std::byte> bytes) {
    open.resize(offset);
    open.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }
  void complete(uint32_t length) {
    EXPECT_EQ(length, open.size());
    log.push_back(open);
    open.clear();
  }
  void fail(AppleFailure why) {
    log.push_back(why == AppleFailure::too_long ? "too long" : "damaged");
    open.clear();
  }
};
static_assert(AppleHost<Receives>);

struct Ring {
  Receives receives;
  AppleReassembly reassembly;

  explicit Ring(size_t count, uint64_t room = 8) : receives{std::deque<uint64_t>(count, room), {}, {}} {}

  /// '[' in front: start mark; ']' behind: last; '!' : damaged.
  void frame(std::string text) {
    AppleFrame frame;
    frame.has_start = text.front() == '[';
    frame.is_last = text.back() == ']';
    frame.is_damaged = text.find('!') != std::string::npos;
    std::erase_if(text, [](char c) { return c == '[' || c == ']' || c == '!'; });
    frame.bytes = std::as_bytes(std::span(text));
    reassembly.on_frame(frame, receives);
  }
  void frames(std::initializer_list<const char*> texts) {
    for (const char* text : texts) {
      frame(text);
    }
  }
};

using Log = std::vector<std::string>;

TEST(AppleFrames, messages_of_one_and_of_many_frames_one_behind_the_other) {
  Ring ring(3);
  ring.frames({"[a]", "[bc", "de", "f]", "[g]"});
  EXPECT_EQ(ring.receives.log, (Log{"a", "bcdef", "g"}));
  EXPECT_TRUE(ring.reassembly.is_idle());
}

TEST(AppleFrames, short_message_may_come_without_a_start_mark) {
  Ring ring(2);
  ring.frames({"a]", "[b]"});
  EXPECT_EQ(ring.receives.log, (Log{"a", "b"}));
}

TEST(AppleFrames, middle_of_a_message_whose_start_got_lost_is_dropped) {
  Ring ring(2);
  ring.frames({"x", "y", "[a]"});
  EXPECT_EQ(ring.receives.log, (Log{"a"}));
  EXPECT_EQ(ring.reassembly.counters().dropped_frames, 2U);
}

TEST(AppleFrames, without_a_receive_all_of_the_message_is_dropped) {
  Ring ring(0);
  ring.frame("[a");
  ring.receives.rooms.push_back(8);
  ring.frames({"b", "c]", "[d]"});
  EXPECT_EQ(ring.receives.log, (Log{"d"}));
  EXPECT_EQ(ring.reassembly.counters().dropped_frames, 3U);
}

TEST(AppleFrames, over_long_message_fails_once_and_the_next_one_arrives) {
  Ring ring(2, 4);
  ring.frames({"[abc", "de", "fg", "h]", "[ijkl]"});
  EXPECT_EQ(ring.receives.log, (Log{"too long", "ijkl"}));
  EXPECT_EQ(ring.reassembly.counters().dropped_frames, 3U);
}

TEST(AppleFrames, over_long_in_its_last_frame_leaves_nothing_to_skip) {
  Ring ring(2, 4);
  ring.frames({"[abc", "de]", "[f]"});
  EXPECT_EQ(ring.receives.log, (Log{"too long", "f"}));
}

TEST(AppleFrames, damaged_frame_fails_its_message) {
  Ring ring(3);
  ring.frames({"[ab", "!c", "d]", "[!e]", "[f]"});
  EXPECT_EQ(ring.receives.log, (Log{"damaged", "damaged", "f"}));
  EXPECT_EQ(ring.reassembly.counters().failed, 2U);
}

TEST(AppleFrames, message_whose_end_got_lost_leaves_its_receive_to_the_next) {
  Ring ring(1);
  ring.frames({"[ab", "c", "[d", "e]"});
  EXPECT_EQ(ring.receives.log, (Log{"de"}));
  EXPECT_EQ(ring.reassembly.counters().cut_short, 1U);
}

TEST(AppleFrames, empty_message_takes_a_receive) {
  Ring ring(1, 0);
  ring.frame("[]");
  EXPECT_EQ(ring.receives.log, (Log{""}));
}

RC_GTEST_PROP(AppleFrames, whatever_comes_no_byte_goes_beyond_its_receive, ()) {
  Ring ring(1000, *rc::gen::inRange<uint64_t>(0, 10));
  const uint64_t room = ring.receives.rooms.front();
  for (const auto& shape : *rc::gen::container<std::vector<std::tuple<bool, bool, bool, uint8_t>>>(
           rc::gen::arbitrary<std::tuple<bool, bool, bool, uint8_t>>())) {
    const auto [start, last, damaged, length] = shape;
    ring.frame((start ? "[" : "") + std::string(damaged ? "!" : "") + std::string(length % 8 + 1, 'x') +
               (last ? "]" : ""));
    RC_ASSERT(ring.receives.open.size() <= room);
  }
}

}  // namespace
}  // namespace ringbolt::wire
