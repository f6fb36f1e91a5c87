#include "region.h"

#include <algorithm>

#include "pattern.h"

namespace ringbolt::conformance {
namespace {

constexpr uint64_t kGap = 24;

uint8_t* allocate(size_t length_bytes) {
  constexpr size_t kPage = 4096;
  const size_t whole = std::max<size_t>((length_bytes + kPage - 1) / kPage * kPage, kPage);
  auto* memory = static_cast<uint8_t*>(std::aligned_alloc(kPage, whole));
  return must(memory, "aligned_alloc");
}

}  // namespace

std::vector<Piece> split(uint32_t length, uint32_t count, uint64_t first_offset) {
  std::vector<Piece> pieces;
  uint64_t offset = first_offset;
  uint32_t left = length;
  for (uint32_t i = 0; i < count; ++i) {
    const bool is_last = i + 1 == count;
    // The second piece is empty; the others shrink by a varying share, and the last takes the rest.
    const uint32_t share = i == 1 ? 0 : left / (2 + i % 3);
    const uint32_t take = is_last ? left : share;
    pieces.push_back({offset, take});
    offset += take + kGap;
    left -= take;
  }
  return pieces;
}

uint64_t room_for(std::span<const Piece> pieces) {
  uint64_t end = 0;
  for (const Piece& piece : pieces) {
    end = std::max(end, piece.offset + piece.length);
  }
  return end + 64;
}

Mr try_register(ibv_pd* pd, void* memory, size_t length_bytes, unsigned access) {
  return Mr(ibv_reg_mr(pd, memory, length_bytes, access));
}

Mr register_memory(ibv_pd* pd, void* memory, size_t length_bytes, unsigned access) {
  return Mr(must(ibv_reg_mr(pd, memory, length_bytes, access), "ibv_reg_mr"));
}

Region::Region(ibv_pd* pd, size_t length_bytes, unsigned access)
    : length_(length_bytes), memory_(allocate(length_bytes)) {
  clear();
  mr = register_memory(pd, memory_.get(), length_, access);
}

ibv_sge Region::sge(uint64_t offset, uint32_t length) const {
  return {address(offset), length, mr->lkey};
}

std::vector<ibv_sge> Region::sges(std::span<const Piece> pieces) const {
  std::vector<ibv_sge> list;
  for (const Piece& piece : pieces) {
    list.push_back(sge(piece.offset, piece.length));
  }
  return list;
}

void Region::fill(std::span<const Piece> pieces, uint64_t seed) {
  uint64_t first = 0;
  for (const Piece& piece : pieces) {
    fill_pattern(bytes().subspan(piece.offset, piece.length), seed, first);
    first += piece.length;
  }
}

void Region::clear() { std::fill_n(memory_.get(), length_, kGuard); }

std::string Region::check(std::span<const Piece> pieces, uint64_t length, uint64_t seed) const {
  uint64_t first = 0;
  std::vector<Piece> written;
  for (const Piece& piece : pieces) {
    const uint32_t here =
        static_cast<uint32_t>(std::min<uint64_t>(piece.length, length - std::min(first, length)));
    const int64_t bad = first_mismatch(bytes().subspan(piece.offset, here), seed, first);
    if (bad >= 0) {
      return "message " + std::to_string(seed) + ": byte " +
             std::to_string(first + static_cast<uint64_t>(bad)) + " of " + std::to_string(length) +
             " is wrong";
    }
    first += here;
    if (here > 0) {
      written.push_back({piece.offset, here});
    }
  }
  std::sort(written.begin(), written.end(),
            [](const Piece& a, const Piece& b) { return a.offset < b.offset; });
  written.push_back({length_, 0});
  uint64_t at = 0;
  for (const Piece& piece : written) {
    for (; at < piece.offset; ++at) {
      if (memory_.get()[at] != kGuard) {
        return "byte at offset " + std::to_string(at) + " was written outside the message";
      }
    }
    at = piece.offset + piece.length;
  }
  return {};
}

uint64_t Region::word(uint64_t offset) const {
  uint64_t value;
  std::memcpy(&value, memory_.get() + offset, sizeof value);
  return value;
}

void Region::set_word(uint64_t offset, uint64_t value) {
  std::memcpy(memory_.get() + offset, &value, sizeof value);
}

}  // namespace ringbolt::conformance
