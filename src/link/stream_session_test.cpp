#include "link/stream_session.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "link/stream_test_support.h"
#include "wire/bytes.h"
#include "wire/stream_hello.h"

namespace ringbolt::link::stream_test {
namespace {

using Kind = StreamSession::Event::Kind;
using End = StreamSession::End;
using State = StreamSession::State;

constexpr uint32_t kPeerEpoch = 77;
constexpr uint32_t kWindow = 8;

/// A session, and a peer that says what a test tells it to.
class Scene {
 public:
  Scene() : session(options()) { session.open(5, now); }

  static StreamSession::Options options() {
    StreamSession::Options options;
    options.window_frames = kWindow;
    options.hello = Bytes(20, std::byte{1});
    return options;
  }

  StreamSession::Event hear(const wire::StreamHeader& header, const Bytes& payload = {}) {
    Bytes frame(wire::kStreamHeaderBytes + payload.size());
    wire::emit(header, payload, frame);
    return hear_bytes(frame);
  }
  StreamSession::Event hear_bytes(const Bytes& bytes) {
    std::copy(bytes.begin(), bytes.end(), session.input().begin());
    session.received(bytes.size());
    return session.next(now);
  }

  /// What the session has to say: the headers of its frames.
  std::vector<wire::StreamHeader> said() {
    std::vector<wire::StreamHeader> headers;
    while (!session.output().empty()) {
      headers.push_back(wire::parse_stream_header(session.output()).value());
      session.written(session.output_frame_bytes());
    }
    return headers;
  }

  wire::StreamHeader frame(wire::StreamType type) const {
    wire::StreamHeader header;
    header.type = type;
    header.epoch = kPeerEpoch;
    header.credit = 4;
    header.is_last = type == wire::StreamType::data;
    return header;
  }
  Bytes echo(uint32_t epoch) const {
    Bytes bytes(wire::kStreamHelloAckBytes);
    wire::put_le(std::span<std::byte>(bytes), 0, epoch);
    return bytes;
  }

  void become_ready() {
    ASSERT_EQ(hear(frame(wire::StreamType::hello), Bytes(20)).kind, Kind::greeted);
    session.accept_peer(now);
    ASSERT_EQ(hear(frame(wire::StreamType::hello_ack), echo(5)).kind, Kind::nothing);
    ASSERT_EQ(hear(frame(wire::StreamType::ready)).kind, Kind::ready);
    ASSERT_EQ(session.next(now).kind, Kind::nothing);
    said();
  }

  uint64_t now = 1'000'000'000;
  StreamSession session;
};

TEST(StreamSession, greets_until_it_is_heard) {
  Scene scene;
  EXPECT_EQ(scene.said().front().type, wire::StreamType::hello);
  scene.session.tick(scene.now += 199'000'000);
  EXPECT_TRUE(scene.said().empty());
  scene.session.tick(scene.now += 1'000'000);
  EXPECT_EQ(scene.said().front().type, wire::StreamType::hello);
  scene.session.tick(scene.now += 200'000'000);
  scene.session.tick(scene.now += 200'000'000);
  EXPECT_EQ(scene.said().size(), 1U) << "who does not read finds no pile of greetings";
}

TEST(StreamSession, is_ready_when_both_have_been_heard) {
  Scene scene;
  scene.said();
  scene.hear(scene.frame(wire::StreamType::hello), Bytes(20));
  EXPECT_EQ(scene.session.state(), State::hunting) << "its owner has not accepted";
  scene.session.accept_peer(scene.now);
  EXPECT_EQ(scene.session.state(), State::hello);
  EXPECT_EQ(scene.said().back().type, wire::StreamType::hello_ack);
  scene.hear(scene.frame(wire::StreamType::hello_ack), scene.echo(4));
  EXPECT_TRUE(scene.said().empty()) << "an older epoch of ours was meant";
  scene.hear(scene.frame(wire::StreamType::ready));
  EXPECT_EQ(scene.session.state(), State::hello) << "the same";
  scene.hear(scene.frame(wire::StreamType::hello_ack), scene.echo(5));
  EXPECT_EQ(scene.said().back().type, wire::StreamType::ready);
  EXPECT_EQ(scene.session.credits(), 0U);
  EXPECT_EQ(scene.hear(scene.frame(wire::StreamType::ping)).kind, Kind::ready) << "who pings is ready";
  EXPECT_EQ(scene.session.credits(), 4U);
}

TEST(StreamSession, sends_no_more_than_is_granted) {
  Scene scene;
  scene.become_ready();
  for (uint64_t tag = 0; tag < 4; ++tag) {
    ASSERT_TRUE(scene.session.can_send(1));
    scene.session.send(tag, Bytes(1), scene.now);
  }
  EXPECT_FALSE(scene.session.can_send(1));
  auto credit = scene.frame(wire::StreamType::credit);
  credit.expected = 2;
  credit.credit = 6;
  scene.hear(credit);
  EXPECT_EQ(scene.session.take_acknowledged(), 0U);
  EXPECT_EQ(scene.session.take_acknowledged(), 1U);
  EXPECT_EQ(scene.session.take_acknowledged(), std::nullopt);
  EXPECT_EQ(scene.session.credits(), 2U);
  EXPECT_TRUE(scene.session.can_send(5000)) << "two frames";
  scene.session.end(End::stream_ended);
  EXPECT_EQ(scene.session.take_unacknowledged(), 2U);
  EXPECT_EQ(scene.session.take_unacknowledged(), 3U);
  EXPECT_EQ(scene.session.take_unacknowledged(), std::nullopt);
}

TEST(StreamSession, frames_of_the_past_and_the_future_end_the_epoch) {
  for (const uint32_t sequence : {0U, 2U, 0xffffffffU}) {
    Scene scene;
    scene.become_ready();
    EXPECT_EQ(scene.hear(scene.frame(wire::StreamType::data), Bytes(3)).kind, Kind::message);
    auto header = scene.frame(wire::StreamType::data);
    header.sequence = sequence;  // 1 is expected
    EXPECT_EQ(scene.hear(header, Bytes(3)).kind, Kind::over) << sequence;
    EXPECT_EQ(scene.session.end(), End::gap);
  }
}

TEST(StreamSession, a_lost_tail_shows_with_the_next_ping) {
  Scene scene;
  scene.become_ready();
  auto ping = scene.frame(wire::StreamType::ping);
  ping.sequence = 3;  // three frames have left, none has come
  EXPECT_EQ(scene.hear(ping).kind, Kind::over);
  EXPECT_EQ(scene.session.end(), End::gap);
}

TEST(StreamSession, what_no_sender_may_say_ends_the_epoch) {
  const auto ends = [](auto change) {
    Scene scene;
    scene.become_ready();
    scene.session.send(9, Bytes(1), scene.now);
    auto header = scene.frame(wire::StreamType::ping);
    change(header);
    return scene.hear(header).kind == Kind::over;
  };
  EXPECT_FALSE(ends([](auto& header) { header.expected = 1; }));
  EXPECT_TRUE(ends([](auto& header) { header.expected = 2; })) << "acknowledges what was never sent";
  EXPECT_TRUE(ends([](auto& header) { header.credit = 3; })) << "takes a grant back";
  EXPECT_FALSE(ends([](auto& header) { header.epoch = 1; })) << "of an epoch that is over: nothing";
}

TEST(StreamSession, grants_more_as_it_takes_in) {
  Scene scene;
  scene.become_ready();
  auto header = scene.frame(wire::StreamType::data);
  Bytes frames;
  for (header.sequence = 0; header.sequence < 3 * kWindow; ++header.sequence) {
    Bytes frame(wire::kStreamHeaderBytes);
    wire::emit(header, {}, frame);
    frames.insert(frames.end(), frame.begin(), frame.end());
  }
  EXPECT_EQ(scene.hear_bytes(frames).kind, Kind::message);
  for (uint32_t i = 1; i < 3 * kWindow; ++i) {
    EXPECT_EQ(scene.session.next(scene.now).kind, Kind::message);
  }
  const auto said = scene.said();
  EXPECT_EQ(said.size(), 3U * 4) << "every quarter of a window";
  EXPECT_EQ(said.back().credit, 4 * kWindow);
  EXPECT_EQ(said.back().expected, 3 * kWindow);
}

TEST(StreamSession, messages_longer_than_the_longest_end_the_epoch) {
  Scene scene;
  scene.become_ready();
  auto header = scene.frame(wire::StreamType::data);
  header.is_last = false;
  EXPECT_EQ(scene.hear(header, Bytes(wire::kStreamPayloadBytes)).kind, Kind::nothing);
  header.sequence = 1;
  EXPECT_EQ(scene.hear(header, Bytes(kMaxStreamMessageBytes - wire::kStreamPayloadBytes + 1)).kind, Kind::over);
}

TEST(StreamSession, a_new_hello_of_the_peer_begins_anew_without_waiting) {
  Scene scene;
  scene.become_ready();
  auto hello = scene.frame(wire::StreamType::hello);
  hello.epoch = 78;
  EXPECT_EQ(scene.hear(hello, Bytes(20)).kind, Kind::over);
  EXPECT_EQ(scene.session.end(), End::restarted);
  scene.session.restart(6, scene.now);
  EXPECT_EQ(scene.session.next(scene.now).kind, Kind::greeted) << "the same HELLO";
}

TEST(StreamSession, a_frame_that_left_in_part_leaves_whole) {
  Scene scene;
  scene.become_ready();
  scene.session.send(1, Bytes(100), scene.now);
  scene.session.send(2, Bytes(100), scene.now);
  scene.session.written(30);
  scene.session.end(End::refused);
  while (scene.session.take_unacknowledged()) {
  }
  scene.session.restart(6, scene.now);
  EXPECT_EQ(scene.session.output_frame_bytes(), 110U);
  scene.session.written(110);
  EXPECT_EQ(scene.said().front().type, wire::StreamType::hello);
}

TEST(StreamSession, silence_ends_the_epoch_and_pings_prevent_it) {
  Scene scene;
  scene.become_ready();
  EXPECT_FALSE(scene.session.tick(scene.now += 1'000'000'000));
  EXPECT_EQ(scene.said().back().type, wire::StreamType::ping);
  scene.hear(scene.frame(wire::StreamType::ping));
  EXPECT_FALSE(scene.session.tick(scene.now += 2'999'000'000));
  EXPECT_TRUE(scene.session.tick(scene.now += 1'000'000));
  EXPECT_EQ(scene.session.end(), End::silence);
}

/// A message of 1, 2 or 3 bytes as the peer sends it.
Bytes data_frame(const Scene& scene, uint32_t sequence) {
  auto header = scene.frame(wire::StreamType::data);
  header.sequence = sequence;
  const Bytes payload = packet_of(sequence, 1, 1 + sequence % 3);
  Bytes frame(wire::kStreamHeaderBytes + payload.size());
  wire::emit(header, payload, frame);
  return frame;
}

TEST(StreamSession, a_bit_that_flips_anywhere_lets_no_wrong_message_through) {
  constexpr uint32_t kMessages = 3;
  Bytes sound;
  std::vector<size_t> ends;
  for (uint32_t sequence = 0; sequence < kMessages; ++sequence) {
    const Bytes frame = data_frame(Scene(), sequence);
    sound.insert(sound.end(), frame.begin(), frame.end());
    ends.push_back(sound.size());
  }
  for (size_t bit = 0; bit < 8 * sound.size(); ++bit) {
    Scene scene;
    scene.become_ready();
    Bytes bytes = sound;
    bytes[bit / 8] ^= static_cast<std::byte>(1U << bit % 8);
    auto event = scene.hear_bytes(bytes);
    uint32_t messages = 0;
    for (; event.kind == Kind::message; event = scene.session.next(scene.now)) {
      const Bytes wanted = packet_of(messages, 1, 1 + messages % 3);
      ASSERT_TRUE(std::ranges::equal(wanted, event.bytes)) << "bit " << bit;
      ++messages;
    }
    ASSERT_EQ(event.kind, Kind::over) << "bit " << bit;
    ASSERT_EQ(scene.session.end(), End::bad_frame) << "bit " << bit;
    ASSERT_EQ(messages, std::ranges::upper_bound(ends, bit / 8) - ends.begin()) << "bit " << bit;
  }
}

TEST(StreamSession, who_sends_more_than_he_was_granted_ends_the_epoch) {
  Scene scene;
  scene.become_ready();
  // Nobody reads what we say: once there is no room for it, no further grant is made.
  uint32_t sequence = 0;
  for (; scene.hear_bytes(data_frame(scene, sequence)).kind == Kind::message; ++sequence) {
    ASSERT_LT(sequence, 1'000'000U);
  }
  EXPECT_EQ(scene.session.end(), End::overrun);
  EXPECT_EQ(sequence, scene.said().back().credit) << "as many as the last grant allows, and no more";
}

TEST(StreamSession, is_found_behind_whatever_an_older_stream_has_left) {
  auto hello = Scene().frame(wire::StreamType::hello);
  const Bytes greeting = packet_of(1, 2, 20);
  Bytes sound(wire::kStreamHeaderBytes + greeting.size());
  wire::emit(hello, greeting, sound);
  Bytes endless(wire::kStreamFrameBytes);  // an intact header of a HELLO that is longer than any
  wire::emit(hello, Bytes(wire::kStreamPayloadBytes), endless);
  endless.resize(wire::kStreamHeaderBytes);
  for (uint32_t seed = 0; seed < 100; ++seed) {
    std::mt19937 random(seed);
    Bytes bytes;
    const auto append = [&bytes](std::span<const std::byte> more) {
      bytes.insert(bytes.end(), more.begin(), more.end());
    };
    for (size_t parts = random() % 6; parts > 0; --parts) {
      switch (random() % 4) {
        case 0:
          append(packet_of(seed, 3, random() % 3000));
          break;
        case 1:
          append(endless);
          break;
        case 2:
          append(data_frame(Scene(), static_cast<uint32_t>(random() % 10)));
          break;
        default:
          append(std::span(sound).first(random() % wire::kStreamHeaderBytes));
          break;
      }
    }
    append(sound);
    Scene scene;
    StreamSession::Event event;
    for (size_t at = 0; at < bytes.size() && event.kind == Kind::nothing;) {
      const size_t count = std::min<size_t>(1 + random() % 200, bytes.size() - at);
      event = scene.hear_bytes(
          {bytes.begin() + static_cast<std::ptrdiff_t>(at), bytes.begin() + static_cast<std::ptrdiff_t>(at + count)});
      at += count;
    }
    ASSERT_EQ(event.kind, Kind::greeted) << "seed " << seed;
    ASSERT_TRUE(std::ranges::equal(greeting, event.bytes)) << "seed " << seed;
  }
}

TEST(StreamSession, tells_again_whoever_seems_not_to_have_heard) {
  Scene scene;
  scene.become_ready();
  scene.hear(scene.frame(wire::StreamType::hello), Bytes(20));
  EXPECT_EQ(scene.said().back().type, wire::StreamType::hello_ack);
  scene.hear(scene.frame(wire::StreamType::ready));
  EXPECT_EQ(scene.said().back().type, wire::StreamType::ping);
  scene.hear(scene.frame(wire::StreamType::ping));
  EXPECT_TRUE(scene.said().empty()) << "or two would answer each other for ever";
}

TEST(StreamSession, a_damaged_frame_before_it_is_known_is_looked_past) {
  Scene scene;
  scene.hear(scene.frame(wire::StreamType::hello), Bytes(20));
  scene.session.accept_peer(scene.now);
  Bytes damaged = data_frame(scene, 0);
  damaged[9] ^= std::byte{1};
  EXPECT_EQ(scene.hear_bytes(damaged).kind, Kind::nothing);
  EXPECT_EQ(scene.session.state(), State::hunting) << "the other end greets until it is heard";
  EXPECT_EQ(scene.hear(scene.frame(wire::StreamType::hello), Bytes(20)).kind, Kind::greeted);
}

TEST(StreamSession, a_frame_of_nothing_that_is_not_the_last_is_no_frame) {
  Scene scene;
  scene.become_ready();
  auto header = scene.frame(wire::StreamType::data);
  header.is_last = false;
  EXPECT_EQ(scene.hear(header).kind, Kind::over) << "a message of such frames would never end";
  EXPECT_EQ(scene.session.end(), End::bad_frame);
}

}  // namespace
}  // namespace ringbolt::link::stream_test
