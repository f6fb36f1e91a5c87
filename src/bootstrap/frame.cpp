#include "bootstrap/frame.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/little_endian.h"

namespace ringbolt::bootstrap {
namespace {

// Two ranges of numbers on the wire; those between are no types.
bool is_known(uint8_t type) {
  return (type >= static_cast<uint8_t>(FrameType::hello) && type <= static_cast<uint8_t>(FrameType::refused)) ||
         (type >= static_cast<uint8_t>(FrameType::roster) && type <= static_cast<uint8_t>(FrameType::goodbye));
}

}  // namespace

std::array<std::byte, kHeaderBytes> emit(const FrameHeader& header) {
  std::array<std::byte, kHeaderBytes> out{};
  // Layout: docs/formats/bootstrap.md.
  base::put_le<uint32_t>(out, 0, kMagic);
  base::put_le<uint8_t>(out, 4, static_cast<uint8_t>(header.type));
  base::put_le<uint8_t>(out, 5, header.flags);
  base::put_le<uint16_t>(out, 6, header.kind);
  base::put_le<uint32_t>(out, 8, header.rank);
  base::put_le<uint32_t>(out, 12, header.length);
  return out;
}

base::Parsed<FrameHeader> parse_header(std::span<const std::byte> in, size_t most_bytes) {
  if (in.size() < kHeaderBytes) {
    return base::refuse(0, fmt::format("{} bytes are no header", in.size()));
  }
  // Words that follow the peer's name, as all of these.
  if (base::get_le<uint32_t>(in, 0) != kMagic) {
    return base::refuse(0, "does not speak Ringbolt's bootstrap protocol");
  }
  const auto type = base::get_le<uint8_t>(in, 4);
  const auto flags = base::get_le<uint8_t>(in, 5);
  if (!is_known(type) || (flags & ~kLatestOnly) != 0) {
    return base::refuse(0, fmt::format("sent a frame of the unknown type {} (flags {})", type, flags));
  }
  const auto length = base::get_le<uint32_t>(in, 12);
  if (length > most_bytes) {
    return base::refuse(0, fmt::format("announced {} bytes, where {} are the most", length, most_bytes));
  }
  return FrameHeader{static_cast<FrameType>(type), flags, base::get_le<uint16_t>(in, 6), base::get_le<uint32_t>(in, 8),
                     length};
}

void FrameReader::authenticate(const Key& key, size_t most_bytes) {
  authenticator_.emplace(key);
  most_bytes_ = most_bytes;
}

// At least 4 KiB. Good until the next call of any function here.
std::span<std::byte> FrameReader::space() {
  constexpr size_t kLeastBytes = 4096;
  // Memory at most doubles with what has really come, whatever a header announces.
  constexpr size_t kMostAheadBytes = size_t{1} << 20;
  if (begin_ == end_) {
    begin_ = end_ = 0;
  }
  const size_t missing = wanted_ > held() ? wanted_ - held() : 0;
  const size_t room = std::clamp(missing, kLeastBytes, std::max(kLeastBytes, std::min(kMostAheadBytes, held() * 2)));
  if (bytes_.size() - end_ < room) {
    std::copy(bytes_.begin() + static_cast<std::ptrdiff_t>(begin_), bytes_.begin() + static_cast<std::ptrdiff_t>(end_),
              bytes_.begin());
    end_ -= begin_;
    begin_ = 0;
    if (bytes_.size() - end_ < room) {
      bytes_.resize(std::max(end_ + room, std::min(wanted_, bytes_.size() * 2)));
    }
  }
  return std::span(bytes_).subspan(end_);
}

// Nothing: more bytes have to come. An error: the stream is of no use any more.
base::Parsed<std::optional<Frame>> FrameReader::next() {
  const auto have = std::span<const std::byte>(bytes_).subspan(begin_, held());
  if (have.size() < kHeaderBytes) {
    // Nobody waits for a whole header from one who does not speak our language.
    const auto magic = emit(FrameHeader{});
    const size_t n_magic = std::min<size_t>(have.size(), 4);
    if (!std::equal(have.begin(), have.begin() + static_cast<std::ptrdiff_t>(n_magic), magic.begin())) {
      return base::refuse(0, "does not speak Ringbolt's bootstrap protocol");
    }
    wanted_ = kHeaderBytes;
    return std::nullopt;
  }
  const auto header = parse_header(have, most_bytes_);
  if (!header) {
    return tl::unexpected(header.error());
  }
  // A frame without a tag after the handshake could be anybody's.
  if (is_of_handshake(header->type) == authenticator_.has_value()) {
    return base::refuse(0, fmt::format("sent a frame of type {} out of turn", static_cast<int>(header->type)));
  }
  const size_t bare = kHeaderBytes + header->length;
  // No overflow: parse_header() has bounded the length.
  wanted_ = bare + (authenticator_ ? kTagBytes : 0);
  if (have.size() < wanted_) {
    return std::nullopt;
  }
  if (authenticator_ && !authenticator_->matches(have.first(kHeaderBytes), have.subspan(kHeaderBytes, header->length),
                                                 have.subspan(bare, kTagBytes))) {
    return base::refuse(0, "sent a frame whose tag is wrong");
  }
  // A copy: the buffer is used again, and may move.
  Frame frame{*header, {have.begin() + kHeaderBytes, have.begin() + static_cast<std::ptrdiff_t>(bare)}};
  begin_ += wanted_;
  wanted_ = kHeaderBytes;
  if (begin_ == end_ && bytes_.size() > (size_t{1} << 20)) {
    bytes_ = {};  // after a long exchange: give it back
    begin_ = end_ = 0;
  }
  return frame;
}

}  // namespace ringbolt::bootstrap
