#include "bootstrap/frame.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "bootstrap/connection.h"
#include "bootstrap/handshake.h"

namespace ringbolt::bootstrap {
namespace {

using ::testing::HasSubstr;

std::vector<std::byte> from_hex(std::string_view hex) {
  std::vector<std::byte> bytes;
  for (size_t i = 0; i + 1 < hex.size(); i += 2) {
    bytes.push_back(static_cast<std::byte>(std::stoi(std::string(hex.substr(i, 2)), nullptr, 16)));
  }
  return bytes;
}

std::string to_hex(std::span<const std::byte> bytes) {
  std::string hex;
  for (const std::byte byte : bytes) {
    constexpr std::string_view kDigits = "0123456789abcdef";
    hex += kDigits[static_cast<size_t>(byte) >> 4];
    hex += kDigits[static_cast<size_t>(byte) & 15];
  }
  return hex;
}

void feed(FrameReader& reader, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const auto space = reader.space();
    const size_t n = std::min(space.size(), bytes.size());
    std::copy_n(bytes.begin(), n, space.begin());
    reader.filled(n);
    bytes = bytes.subspan(n);
  }
}

std::vector<std::byte> frame_bytes(FrameHeader header, std::span<const std::byte> payload, Authenticator* tagger) {
  header.length = static_cast<uint32_t>(payload.size());
  const auto head = emit(header);
  std::vector<std::byte> bytes(head.begin(), head.end());
  bytes.insert(bytes.end(), payload.begin(), payload.end());
  if (tagger != nullptr) {
    const auto tag = tagger->tag(head, payload);
    bytes.insert(bytes.end(), tag.begin(), tag.end());
  }
  return bytes;
}

Key some_key() { return key_of("position counts"); }

TEST(Frame, header_has_its_golden_bytes) {
  const FrameHeader header{FrameType::message, kLatestOnly, 0x0102, 0x03040506, 0x0708};
  constexpr std::string_view kGolden =
      "524242311501020106050403"
      "08070000";
  EXPECT_EQ(to_hex(emit(header)), kGolden);
  EXPECT_EQ(parse_header(from_hex(kGolden), 0x0708).value(), header);
  EXPECT_FALSE(parse_header(from_hex(kGolden), 0x0707));
}

TEST(Frame, hello_has_its_golden_bytes) {
  Hello hello;
  hello.has_secret = true;
  hello.rank = 3;
  hello.n_ranks = 0x0201;
  hello.incarnation = 0x1122334455667788;
  for (size_t i = 0; i < kNonceBytes; ++i) {
    hello.nonce[i] = static_cast<std::byte>(i + 0x40);
  }
  hello.group = "ab";
  const std::string golden =
      "0200020001000000"
      "0300000001020000"
      "8877665544332211"
      "404142434445464748494a4b4c4d4e4f505152535455565758595a5b5c5d5e5f"
      "026162";
  EXPECT_EQ(to_hex(emit(hello)), golden);
  EXPECT_EQ(parse_hello(from_hex(golden)).value(), hello);
}

// Computed with Python's hmac and hashlib from docs/formats/bootstrap.md.
TEST(Frame, keys_and_tags_have_their_golden_bytes) {
  const Key key = key_of("secret");
  EXPECT_EQ(to_hex(key), "0fbee3ef4b64fb7a0595f78eeb41bf52a8bdd15d41fb00cc47f2d5288d00c048");
  const auto hello = from_hex("000102");
  const auto challenge = from_hex("0a0b");
  EXPECT_EQ(to_hex(mac_of(key, "proof of the caller", hello, challenge)),
            "d0a174c26def78b01d3646c9bc92da5aae93b3720744e9a295233e60e225e098");
  Authenticator authenticator(key);
  static_cast<void>(authenticator.tag(hello, challenge));
  EXPECT_EQ(to_hex(authenticator.tag(hello, challenge)), "0ee2be3cf8dc9ec823fe84e21d61da2d");
}

TEST(Frame, hello_of_any_other_length_is_refused) {
  auto bytes = emit(Hello{.group = std::string(kMaxGroupNameBytes, 'x')});
  EXPECT_TRUE(parse_hello(bytes));
  for (size_t length = 0; length < bytes.size(); ++length) {
    EXPECT_FALSE(parse_hello(std::span(bytes).first(length))) << length;
  }
  bytes.push_back(std::byte{'x'});
  EXPECT_FALSE(parse_hello(bytes));
  bytes[56] = std::byte{kMaxGroupNameBytes + 1};
  EXPECT_FALSE(parse_hello(bytes));
}

TEST(Frame, of_another_version_only_the_versions_are_read) {
  const auto hello = parse_hello(from_hex("03000900ff"));
  ASSERT_TRUE(hello);
  EXPECT_EQ(hello->first_version, 3);
  EXPECT_EQ(hello->last_version, 9);
}

TEST(FrameReader, takes_frames_in_any_pieces) {
  std::vector<std::byte> stream;
  Authenticator tagger(some_key());
  std::vector<std::byte> payload;
  for (uint32_t i = 0; i < 20; ++i) {
    payload.push_back(static_cast<std::byte>(i * 7));
    const auto frame = frame_bytes({FrameType::message, 0, static_cast<uint16_t>(i), i, 0}, payload, &tagger);
    stream.insert(stream.end(), frame.begin(), frame.end());
  }
  for (size_t piece = 1; piece < 70; ++piece) {
    FrameReader reader;
    reader.authenticate(some_key(), 100);
    uint32_t n_frames = 0;
    for (size_t at = 0; at < stream.size(); at += piece) {
      feed(reader, std::span(stream).subspan(at, std::min(piece, stream.size() - at)));
      for (auto frame = reader.next(); frame.value(); frame = reader.next()) {
        EXPECT_EQ((*frame)->header.rank, n_frames);
        EXPECT_EQ((*frame)->payload.size(), ++n_frames);
        EXPECT_TRUE(std::equal((*frame)->payload.begin(), (*frame)->payload.end(), payload.begin()));
      }
    }
    EXPECT_EQ(n_frames, 20U);
  }
}

TEST(FrameReader, refuses_any_changed_bit) {
  Authenticator tagger(some_key());
  const auto payload = from_hex("00010203");
  const auto good = frame_bytes({FrameType::message, 0, 1, 2, 0}, payload, &tagger);
  for (size_t bit = 0; bit < good.size() * 8; ++bit) {
    auto bad = good;
    bad[bit / 8] ^= std::byte{1} << (bit % 8);
    FrameReader reader;
    reader.authenticate(some_key(), 4);
    feed(reader, bad);
    const auto frame = reader.next();
    // A shorter length makes another frame; a longer one is above the limit or waits for bytes that never come.
    EXPECT_FALSE(frame && *frame) << bit;
  }
}

TEST(FrameReader, refuses_repeated_lost_and_swapped_frames) {
  Authenticator tagger(some_key());
  const auto first = frame_bytes({FrameType::message, 0, 1, 2, 0}, from_hex("01"), &tagger);
  const auto second = frame_bytes({FrameType::message, 0, 1, 2, 0}, from_hex("02"), &tagger);
  FrameReader repeated;
  repeated.authenticate(some_key(), 4);
  feed(repeated, first);
  EXPECT_TRUE(repeated.next().value());
  feed(repeated, first);
  EXPECT_THAT(repeated.next().error().text(), HasSubstr("tag"));
  FrameReader swapped;
  swapped.authenticate(some_key(), 4);
  feed(swapped, second);
  EXPECT_FALSE(swapped.next());
}

TEST(FrameReader, refuses_what_is_out_of_turn_and_what_is_not_ours) {
  FrameReader before;
  feed(before, frame_bytes({FrameType::message, 0, 0, 0, 0}, {}, nullptr));
  EXPECT_THAT(before.next().error().text(), HasSubstr("out of turn"));
  FrameReader after;
  after.authenticate(some_key(), 100);
  Authenticator tagger(some_key());
  feed(after, frame_bytes({FrameType::hello, 0, 0, 0, 0}, {}, &tagger));
  EXPECT_THAT(after.next().error().text(), HasSubstr("out of turn"));
  FrameReader stranger;
  feed(stranger, from_hex("16"));  // the first byte of a TLS hello says enough
  EXPECT_THAT(stranger.next().error().text(), HasSubstr("does not speak"));
}

TEST(FrameReader, memory_grows_with_what_comes_not_with_what_is_promised) {
  FrameReader reader;
  reader.authenticate(some_key(), kMaxFromRootBytes);
  const FrameHeader header{FrameType::gathered, 0, 1, 0, static_cast<uint32_t>(kMaxFromRootBytes)};
  feed(reader, emit(header));
  EXPECT_FALSE(reader.next().value());
  EXPECT_LE(reader.space().size(), size_t{64} << 10);
}

// The two ends of a handshake without a network between them.
class Handshake : public ::testing::Test {
 protected:
  static Frame frame_of(FrameType type, std::vector<std::byte> payload) {
    return {{type, 0, 0, 0, static_cast<uint32_t>(payload.size())}, std::move(payload)};
  }
  Config config_{.n_ranks = 2, .secret = "secret"};
  Key key_ = key_of("secret");
  Connection nowhere_;
};

TEST_F(Handshake, replayed_proof_is_refused) {
  Hello hello{.has_secret = true, .rank = 1, .n_ranks = 2, .nonce = random_nonce()};
  AnsweringHandshake first(config_, key_);
  EXPECT_EQ(first.take(frame_of(FrameType::hello, emit(hello)), nowhere_), std::nullopt);
  // A recording of another handshake: right secret, same HELLO, another challenge.
  const Mac recorded = mac_of(key_, "proof of the caller", emit(hello), emit(Challenge{.has_secret = true}));
  EXPECT_THAT(first.take(frame_of(FrameType::proof, {recorded.begin(), recorded.end()}), nowhere_).value(),
              HasSubstr("another secret"));
  EXPECT_FALSE(first.is_proven());
}

TEST_F(Handshake, refuses_steps_out_of_order) {
  AnsweringHandshake answering(config_, key_);
  EXPECT_TRUE(answering.take(frame_of(FrameType::proof, std::vector<std::byte>(kMacBytes)), nowhere_));
  EXPECT_TRUE(answering.take(frame_of(FrameType::welcome, std::vector<std::byte>(kMacBytes)), nowhere_));
  Hello hello{.has_secret = true, .rank = 1, .n_ranks = 2, .nonce = random_nonce()};
  EXPECT_FALSE(answering.take(frame_of(FrameType::hello, emit(hello)), nowhere_));
  EXPECT_TRUE(answering.take(frame_of(FrameType::hello, emit(hello)), nowhere_));
  CallingHandshake calling(config_, key_, 1);
  EXPECT_EQ(calling.take(frame_of(FrameType::welcome, std::vector<std::byte>(kMacBytes)), nowhere_),
            CallingHandshake::Outcome::strange);
}

TEST_F(Handshake, caller_with_a_secret_does_not_take_a_root_without) {
  CallingHandshake calling(config_, key_, 1);
  EXPECT_EQ(calling.take(frame_of(FrameType::challenge, emit(Challenge{.has_secret = false})), nowhere_),
            CallingHandshake::Outcome::refused);
  EXPECT_EQ(calling.problem(), "this rank has a secret, rank 0 has none");
}

TEST_F(Handshake, proof_of_the_caller_is_no_proof_of_the_root) {
  CallingHandshake calling(config_, key_, 1);
  const auto challenge = emit(Challenge{.has_secret = true, .nonce = random_nonce()});
  EXPECT_EQ(calling.take(frame_of(FrameType::challenge, challenge), nowhere_), CallingHandshake::Outcome::going_on);
  // Echoing needs the HELLO; a mirror that has it still has no key. Any 32 bytes will do here.
  EXPECT_EQ(calling.take(frame_of(FrameType::welcome, std::vector<std::byte>(kMacBytes, std::byte{7})), nowhere_),
            CallingHandshake::Outcome::strange);
}

}  // namespace
}  // namespace ringbolt::bootstrap
