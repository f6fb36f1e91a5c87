#include "frame.h"

namespace ringbolt::guest {
namespace {

void put_u32(std::string& out, size_t value) {
  for (unsigned shift = 0; shift < 32; shift += 8) out.push_back(static_cast<char>((value >> shift) & 0xff));
}

uint32_t get_u32(std::string_view bytes, size_t at) {
  uint32_t value = 0;
  for (unsigned index = 0; index < 4; ++index) {
    value |= uint32_t{static_cast<unsigned char>(bytes[at + index])} << (8 * index);
  }
  return value;
}

}  // namespace

std::string encode(uint32_t command, Kind kind, std::string_view payload) {
  std::string out;
  put_u32(out, command);
  out.push_back(static_cast<char>(kind));
  put_u32(out, payload.size());
  return out.append(payload);
}

std::optional<Frame> FrameReader::next() {
  if (buffer_.size() < kFrameHeaderBytes) return std::nullopt;
  const size_t length = get_u32(buffer_, 5);
  if (buffer_.size() < kFrameHeaderBytes + length) return std::nullopt;
  Frame frame{get_u32(buffer_, 0), static_cast<Kind>(buffer_[4]), buffer_.substr(kFrameHeaderBytes, length)};
  buffer_.erase(0, kFrameHeaderBytes + length);
  return frame;
}

}  // namespace ringbolt::guest
