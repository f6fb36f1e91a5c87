#include "engine/chunk_header.h"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/crc.h"

namespace ringbolt::engine {
namespace {

/// Every field another value, whose bytes count up: 0x12 at offset 18, and so on, but where fields have limits.
ChunkHeader counting_header() {
  ChunkHeader header;
  header.kind = Kind::word;
  header.has_payload_crc = true;
  header.reads_in_place = true;
  header.ended_before = true;
  header.payload_crc = 0x0b0a0908;
  header.length_bytes = 0x0f0e0d0c;
  header.session = 0x13121110;
  header.source = 0x14;
  header.destination = 0x15;
  header.hops_done = 2;
  header.n_via = 12;
  header.via = {0x18, 0x19, 0x1a, 0x1b, 0x1c, 0x1d, 0x1e, 0x1f, 0x20, 0x21, 0x22, 0x23};
  header.sequence = 0x27262524;
  header.ack = 0x2b2a2928;
  header.group = 0x2d2c;
  header.transfer = 0x2f2e;
  header.call = 0x33323130;
  header.chunk = 0x37363534;
  header.signature = 0x3b3a3938;
  header.incarnation = 0x3d3c;
  header.cable_number = 0x3f3e;
  header.credit_class = 0x0d;
  header.freed_small = 0x4342;
  header.freed_large = 0x4544;
  return header;
}

std::array<std::byte, kHeaderBytes> emitted(const ChunkHeader& header) {
  std::array<std::byte, kHeaderBytes> bytes{};
  emit(header, bytes);
  return bytes;
}

TEST(ChunkHeader, lies_as_the_table_of_the_format_says) {
  // docs/formats/chunk.md
  std::array<std::byte, kHeaderBytes> expected{};
  for (size_t at = 0; at < expected.size(); ++at) {
    expected[at] = static_cast<std::byte>(at);
  }
  const auto set = [&](size_t at, unsigned value) { expected[at] = static_cast<std::byte>(value); };
  set(0, 0xb7);
  set(1, 1);
  set(2, 2);
  set(3, 1 | 4 | 8);
  set(22, 2);
  set(23, 12);
  set(64, 0x0d);
  for (const size_t zero : {4U, 5U, 6U, 7U, 65U, 70U, 71U}) {
    set(zero, 0);
  }
  const uint32_t crc = base::crc32c(0, expected);
  for (unsigned i = 0; i < 4; ++i) {
    set(4 + i, crc >> 8 * i & 0xff);
  }
  EXPECT_EQ(emitted(counting_header()), expected);
}

/// Of every flag in turn, with all other fields as above.
TEST(DirectHeader, is_the_header_of_a_chunk_without_ranks_between) {
  for (unsigned flags = 0; flags < 16; ++flags) {
    ChunkHeader header = counting_header();
    header.kind = Kind::data;
    header.hops_done = header.n_via = 0;
    header.via = {};
    header.has_payload_crc = (flags & 1U) != 0;
    header.wants_ack = (flags & 2U) != 0;
    header.reads_in_place = (flags & 4U) != 0;
    header.ended_before = (flags & 8U) != 0;
    const DirectHeader direct{header.has_payload_crc, header.wants_ack,   header.reads_in_place,
                              header.ended_before,    header.payload_crc, header.length_bytes,
                              header.session,         header.source,      header.destination,
                              header.sequence,        header.ack,         header.group,
                              header.transfer,        header.call,        header.chunk,
                              header.signature,       header.incarnation, header.cable_number,
                              header.credit_class,    header.freed_small, header.freed_large};
    std::array<std::byte, kHeaderBytes> bytes{};
    ChunkHeader kept;
    emit(direct, bytes, kept);
    EXPECT_EQ(bytes, emitted(header)) << flags;
    EXPECT_EQ(kept, header) << flags;
  }
}

TEST(ChunkHeader, is_read_as_it_was_written) {
  const ChunkHeader header = counting_header();
  const auto bytes = emitted(header);
  EXPECT_EQ(parse_header(bytes, kHeaderBytes + header.length_bytes), header);
  EXPECT_EQ(parse_header(bytes, kHeaderBytes + header.length_bytes - 1), std::nullopt);  // the payload is not whole
}

TEST(ChunkHeader, every_bit_that_turns_is_noticed) {
  const ChunkHeader header = counting_header();
  const auto bytes = emitted(header);
  for (size_t bit = 0; bit < 8 * kHeaderBytes; ++bit) {
    auto turned = bytes;
    turned[bit / 8] ^= static_cast<std::byte>(1U << bit % 8);
    EXPECT_EQ(parse_header(turned, kHeaderBytes + header.length_bytes), std::nullopt) << bit;
  }
}

}  // namespace
}  // namespace ringbolt::engine
