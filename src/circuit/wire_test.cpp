#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <random>

#include "circuit/control.h"
#include "circuit/frame_header.h"
#include "circuit/handle.h"
#include "circuit/node_ports.h"

// What members and ends of circuits write and read: every byte that comes from elsewhere may be anything.
namespace ringbolt::circuit {
namespace {

FrameHeader sample_frame() {
  FrameHeader header;
  header.kind = FrameKind::piece;
  header.has_checksum = true;
  header.rail = 0x0102;
  header.circuit = 0x03040506;
  header.length = 5;
  header.sequence = 0x0708090a;
  header.message = 0x0b0c0d0e;
  header.offset = 0x80;
  header.total = 0x1000;
  header.tag = -2;
  header.checksum = 0x15161718;
  return header;
}

std::string hex(std::span<const std::byte> bytes) {
  std::string text;
  for (const std::byte one : bytes) {
    char two[3];
    std::snprintf(two, sizeof two, "%02x", static_cast<unsigned>(one));
    text += two;
  }
  return text;
}

TEST(FrameHeader, has_these_bytes) {
  std::array<std::byte, kFrameHeaderBytes> bytes{};
  emit(sample_frame(), bytes.data());
  EXPECT_EQ(hex(bytes),
            "5246"
            "01"
            "04"
            "0100"
            "0201"
            "06050403"
            "05000000"
            "0a090807"
            "0e0d0c0b"
            "feffffff"
            "18171615"
            "8000000000000000"
            "0010000000000000"
            "00000000000000000000000000000000");
  FrameHeader taken;
  taken.kind = FrameKind::taken;
  taken.rail = 1;
  taken.circuit = 2;
  taken.taken = 0x0a0b0c0d;
  emit(taken, bytes.data());
  EXPECT_EQ(hex(std::span(bytes).first(kShortHeaderBytes)),
            "5246"
            "01"
            "05"
            "0000"
            "0100"
            "02000000"
            "00000000"
            "00000000"
            "0d0c0b0a"
            "00000000"
            "00000000");
}

TEST(FrameHeader, comes_back_as_it_was) {
  std::array<std::byte, kFrameHeaderBytes> bytes{};
  emit(sample_frame(), bytes.data());
  EXPECT_EQ(parse_frame(bytes, kFrameHeaderBytes + 5), sample_frame());
  FrameHeader whole = sample_frame();
  whole.kind = FrameKind::whole;
  whole.offset = 0;
  whole.total = whole.length;
  emit(whole, bytes.data());
  EXPECT_EQ(parse_frame(std::span(bytes).first(kShortHeaderBytes), kShortHeaderBytes + 5), whole);
}

TEST(FrameHeader, of_what_was_written_has_no_payload) {
  std::array<std::byte, kFrameHeaderBytes> bytes{};
  FrameHeader written = sample_frame();
  written.is_written = written.was_tried = true;
  written.length = kWrittenBytes;
  written.total = 10 * kWrittenBytes;
  written.clearance = 0x21222324;
  written.tried_rail = 0x2526;
  written.heard = 0x27;
  emit(written, bytes.data());
  EXPECT_EQ(hex(bytes),
            "5246"
            "01"
            "04"
            "0727"
            "0201"
            "06050403"
            "00000400"
            "0a090807"
            "0e0d0c0b"
            "feffffff"
            "18171615"
            "8000000000000000"
            "0000280000000000"
            "24232221"
            "2625"
            "00000000000000000000");
  EXPECT_EQ(parse_frame(bytes, kFrameHeaderBytes), written);
  written.length = kWrittenBytes + 1;
  emit(written, bytes.data());
  EXPECT_FALSE(parse_frame(bytes, SIZE_MAX).has_value()) << "longer than any";
  FrameHeader whole = sample_frame();
  whole.kind = FrameKind::whole;
  whole.is_written = true;
  emit(whole, bytes.data());
  EXPECT_FALSE(parse_frame(bytes, SIZE_MAX).has_value()) << "only pieces are written";
}

TEST(FrameHeader, of_a_rail_that_may_lose_frames_has_numbers) {
  std::array<std::byte, kFrameHeaderBytes> bytes{};
  FrameHeader piece = sample_frame();
  piece.is_numbered = true;
  piece.number = 0x31323334;
  emit(piece, bytes.data());
  EXPECT_EQ(hex(bytes),
            "5246"
            "01"
            "04"
            "0900"
            "0201"
            "06050403"
            "05000000"
            "0a090807"
            "0e0d0c0b"
            "feffffff"
            "18171615"
            "8000000000000000"
            "0010000000000000"
            "00000000"
            "0000"
            "34333231"
            "000000000000");
  EXPECT_EQ(parse_frame(bytes, kFrameHeaderBytes + 5), piece);
  piece.length = 0;
  piece.offset = piece.total = 0;
  emit(piece, bytes.data());
  EXPECT_EQ(parse_frame(bytes, kFrameHeaderBytes), piece) << "an empty message";
  piece.is_written = true;
  piece.length = 1;
  piece.total = 1;
  emit(piece, bytes.data());
  EXPECT_FALSE(parse_frame(bytes, SIZE_MAX).has_value()) << "what may be lost is not written";
  FrameHeader hello;
  hello.kind = FrameKind::hello;
  hello.is_numbered = true;
  emit(hello, bytes.data());
  EXPECT_EQ(parse_frame(std::span(bytes).first(kShortHeaderBytes), 70'000), hello) << "filled up";
  FrameHeader taken;
  taken.kind = FrameKind::taken;
  taken.taken = 0x0a0b0c0d;
  taken.come = 0x8001;
  emit(taken, bytes.data());
  EXPECT_EQ(hex(std::span(bytes).first(24)),
            "5246"
            "01"
            "05"
            "0000"
            "0000"
            "00000000"
            "00000000"
            "01800000"
            "0d0c0b0a");
  EXPECT_EQ(parse_frame(std::span(bytes).first(kShortHeaderBytes), kShortHeaderBytes), taken);
}

TEST(FrameHeader, that_can_not_be_is_refused) {
  std::array<std::byte, kFrameHeaderBytes> bytes{};
  const auto refused = [&](const FrameHeader& header, size_t frame_bytes) {
    emit(header, bytes.data());
    return !parse_frame(bytes, frame_bytes).has_value();
  };
  FrameHeader header = sample_frame();
  EXPECT_TRUE(refused(header, kFrameHeaderBytes + 4)) << "payload beyond the frame";
  header.offset = header.total - 4;
  EXPECT_TRUE(refused(header, kFrameHeaderBytes + 5)) << "beyond the message";
  header.offset = header.total + 1;
  EXPECT_TRUE(refused(header, kFrameHeaderBytes + 5));
  header = sample_frame();
  header.length = 0;
  EXPECT_TRUE(refused(header, kFrameHeaderBytes)) << "no bytes of a message that has some";
  header.kind = FrameKind::whole;
  EXPECT_FALSE(refused(header, kFrameHeaderBytes)) << "an empty message";
  header = sample_frame();
  header.length = kPayloadBytes + 1;
  header.total = UINT64_MAX;
  EXPECT_EQ(header.kind, FrameKind::piece);
  EXPECT_TRUE(refused(header, SIZE_MAX));
  header.kind = static_cast<FrameKind>(9);
  EXPECT_TRUE(refused(header, SIZE_MAX));
  emit(sample_frame(), bytes.data());
  EXPECT_FALSE(parse_frame(std::span(bytes).first(kFrameHeaderBytes - 1), SIZE_MAX).has_value());
  bytes[0] ^= std::byte{1};
  EXPECT_FALSE(parse_frame(bytes, SIZE_MAX).has_value());
}

std::vector<Control> samples() {
  QueuePairAddress address;
  address.gid = {0xfe, 0x80, 1, 2, 3};
  address.lid = 7;
  address.qp_number = 0xabcdef;
  address.psn = 0x123456;
  address.mtu_bytes = 4096;
  address.reads_in_place = true;
  address.is_uc = true;
  address.counts_frames = true;
  const Path path = {{11, {}, {1, 2}}, {22, {3, 4}, {5, 6}}, {33, {7, 8}, {}}};
  return {Open{1, 2, true, true},
          Opened{3, 65'536},
          Refused{4, "why not"},
          RailOpen{5, 6, 2, path, address},
          RailReady{7, 8, address},
          RailDown{9, 10, "a port is down"},
          Close{11, CloseReason::usage, "too long"}};
}

// What is taken at once is what the whole way would have found: take_next_whole() reads no field that parse_frame()
// refuses.
TEST(FrameHeader, that_is_plain_and_whole_is_so_for_both_readers) {
  for (const FrameKind kind : {FrameKind::whole, FrameKind::piece, FrameKind::taken, FrameKind::hello}) {
    FrameHeader header;
    header.kind = kind;
    header.length = kind == FrameKind::whole || kind == FrameKind::piece ? 40 : 0;
    header.total = header.length;
    std::vector<std::byte> frame(kFrameHeaderBytes + 40);
    emit(header, frame.data());
    for (size_t at = 0; at < kShortHeaderBytes; ++at) {
      for (unsigned bit = 0; bit < 8; ++bit) {
        std::vector<std::byte> turned = frame;
        turned[at] ^= static_cast<std::byte>(1U << bit);
        for (const size_t length : {size_t{0}, kShortHeaderBytes - 1, kShortHeaderBytes + 40, turned.size()}) {
          const std::span<const std::byte> head = std::span(turned).first(length);
          const auto parsed = parse_frame(head, length);
          const bool is_plain = parsed && parsed->kind == FrameKind::whole && !parsed->has_checksum;
          EXPECT_EQ(is_plain_whole(head, length), is_plain) << static_cast<int>(kind) << ' ' << at << ' ' << bit;
        }
      }
    }
    EXPECT_EQ(is_plain_whole(frame, frame.size()), kind == FrameKind::whole);
  }
}

TEST(Control, comes_back_as_it_was) {
  for (const Control& one : samples()) {
    EXPECT_EQ(parse_control(kind_of(one), emit(one)), one) << one.index();
  }
}

TEST(Control, cut_short_or_longer_is_refused) {
  for (const Control& one : samples()) {
    std::vector<std::byte> bytes = emit(one);
    for (size_t length = 0; length < bytes.size(); ++length) {
      EXPECT_FALSE(parse_control(kind_of(one), std::span(bytes).first(length)).has_value())
          << one.index() << " " << length;
    }
    bytes.push_back({});
    EXPECT_FALSE(parse_control(kind_of(one), bytes).has_value()) << one.index();
  }
}

TEST(Control, of_an_unknown_kind_is_refused) { EXPECT_FALSE(parse_control(7, std::vector<std::byte>(64)).has_value()); }

TEST(Control, rails_have_a_possible_path) {
  RailOpen open = std::get<RailOpen>(samples()[3]);
  open.position = 0;
  EXPECT_FALSE(parse_control(3, emit(open)).has_value()) << "nobody sends to himself";
  open.position = 3;
  EXPECT_FALSE(parse_control(3, emit(open)).has_value());
  open.position = 1;
  Path ends = {open.path.front(), open.path.front()};
  std::swap(open.path, ends);
  EXPECT_TRUE(parse_control(3, emit(open)).has_value()) << "from a member to itself";
  std::swap(open.path, ends);
  open.path.back().member = open.path.front().member;
  EXPECT_FALSE(parse_control(3, emit(open)).has_value()) << "a loop over others";
  open.path.resize(1);
  EXPECT_FALSE(parse_control(3, emit(open)).has_value());
}

TEST(Handle, comes_back_and_fits) {
  Handle handle;
  handle.contact = {1, 2, 3, {{1}, {2}, {3}, {4}, {5}}};
  handle.listener = 99;
  std::array<std::byte, kHandleBytes> bytes{};
  emit(handle, bytes);
  handle.contact.addresses.resize(kMostHandleAddresses);
  EXPECT_EQ(parse_handle(bytes), handle);
  EXPECT_EQ(ticket_of(bytes), 0U);
  set_ticket(bytes, 77);
  EXPECT_EQ(ticket_of(bytes), 77U);
  EXPECT_EQ(parse_handle(bytes), handle) << "the ticket is no part of it";
}

TEST(Handle, with_any_bit_turned_is_none) {
  Handle handle;
  handle.contact = {1, 2, 3, {{1}}};
  std::array<std::byte, kHandleBytes> bytes{};
  emit(handle, bytes);
  for (size_t bit = 0; bit < (kHandleBytes - kTicketBytes) * 8; ++bit) {
    bytes[bit / 8] ^= std::byte{1} << bit % 8;
    EXPECT_FALSE(parse_handle(bytes).has_value()) << bit;
    bytes[bit / 8] ^= std::byte{1} << bit % 8;
  }
}

TEST(NodePorts, come_back_as_they_were) {
  NodePorts ports;
  ports.node = 5;
  bringup::PortCard card;
  card.device = "rocep1s0f0";
  card.gids = {{0, {1, 2, 3}, bringup::GidType::kRoceV2}};
  card.capabilities.has_rc = true;
  card.capabilities.most_queue_pairs = card.capabilities.most_regions = 10;
  card.capabilities.most_work_requests = card.capabilities.most_sge = card.capabilities.most_message_bytes = 1;
  ports.cards = {{}, card, {}};  // two have been down ever since
  ports.is_active = {false, true, false};
  ports.found = {{1, 6, 1}};
  const std::vector<std::byte> bytes = emit(ports);
  EXPECT_EQ(parse_node_ports(5, bytes), ports);
  for (size_t length = 0; length < bytes.size(); ++length) {
    EXPECT_FALSE(parse_node_ports(5, std::span(bytes).first(length)).has_value()) << length;
  }
}

TEST(NodePorts, any_bytes_are_safe) {
  std::mt19937 random(1);
  for (int round = 0; round < 20'000; ++round) {
    std::vector<std::byte> bytes(random() % 200);
    for (std::byte& one : bytes) {
      one = static_cast<std::byte>(random());
    }
    (void)parse_node_ports(1, bytes);
    (void)parse_control(static_cast<uint16_t>(random() % 8), bytes);
    (void)parse_frame(bytes, bytes.size());
  }
}

}  // namespace
}  // namespace ringbolt::circuit
