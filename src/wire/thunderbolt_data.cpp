#include "wire/thunderbolt_data.h"

#include <algorithm>
#include <cerrno>

#include "wire/bytes.h"

namespace ringbolt::wire {
namespace {

struct At {
  static constexpr size_t magic = 0, version = 4, header_bytes = 6, op = 8, flags = 9, reserved = 10,
                          destination_qp = 12, source_qp = 16, psn = 20, length = 24, immediate = 28, address = 32,
                          key = 40, offset = 44, end = 48;
};
static_assert(At::end == kThunderboltHeaderBytes);

constexpr uint32_t kMagic = 0x31445654;  // "TVD1"
constexpr uint16_t kVersion = 1;
constexpr uint32_t kPsnMask = 0xffffff;
constexpr unsigned kKnownFlags = kThunderboltLast | kThunderboltSolicited | kThunderboltRawStream;

bool is_known(uint8_t op) {
  return op >= static_cast<uint8_t>(ThunderboltOp::send) && op <= static_cast<uint8_t>(ThunderboltOp::management);
}

}  // namespace

base::Result<ThunderboltView> parse_thunderbolt_frame(std::span<const std::byte> frame) {
  if (frame.size() < kThunderboltHeaderBytes || frame.size() > kThunderboltFrameBytes ||
      get_le<uint32_t>(frame, At::magic) != kMagic) {
    return base::fail(EBADMSG);
  }
  if (get_le<uint16_t>(frame, At::version) != kVersion) {
    return base::fail(EPROTONOSUPPORT);
  }
  const auto op = get_le<uint8_t>(frame, At::op);
  ThunderboltView view;
  view.frame.flags = get_le<uint8_t>(frame, At::flags);
  view.frame.destination_qp = get_le<uint32_t>(frame, At::destination_qp);
  view.frame.source_qp = get_le<uint32_t>(frame, At::source_qp);
  view.frame.psn = get_le<uint32_t>(frame, At::psn);
  view.frame.length = get_le<uint32_t>(frame, At::length);
  view.frame.immediate = get_le<uint32_t>(frame, At::immediate);
  view.frame.address = get_le<uint64_t>(frame, At::address);
  view.frame.key = get_le<uint32_t>(frame, At::key);
  view.frame.offset = get_le<uint32_t>(frame, At::offset);
  const bool is_raw = (view.frame.flags & kThunderboltRawStream) != 0;
  const size_t behind = frame.size() - kThunderboltHeaderBytes;
  const bool fits = is_raw ? behind == 0 && view.frame.length <= kThunderboltMessageBytes : view.frame.length == behind;
  if (get_le<uint16_t>(frame, At::header_bytes) != kThunderboltHeaderBytes || !is_known(op) ||
      (view.frame.flags & ~kKnownFlags) != 0 || get_le<uint16_t>(frame, At::reserved) != 0 ||
      view.frame.psn > kPsnMask || !fits) {
    return base::fail(EBADMSG);
  }
  view.frame.op = static_cast<ThunderboltOp>(op);
  view.payload = frame.subspan(kThunderboltHeaderBytes);
  return view;
}

void emit(const ThunderboltFrame& frame, std::span<std::byte, kThunderboltHeaderBytes> out) {
  put_le(out, At::magic, kMagic);
  put_le(out, At::version, kVersion);
  put_le(out, At::header_bytes, static_cast<uint16_t>(kThunderboltHeaderBytes));
  put_le(out, At::op, static_cast<uint8_t>(frame.op));
  put_le(out, At::flags, frame.flags);
  put_le(out, At::reserved, uint16_t{0});
  put_le(out, At::destination_qp, frame.destination_qp);
  put_le(out, At::source_qp, frame.source_qp);
  put_le(out, At::psn, frame.psn & kPsnMask);
  put_le(out, At::length, frame.length);
  put_le(out, At::immediate, frame.immediate);
  put_le(out, At::address, frame.address);
  put_le(out, At::key, frame.key);
  put_le(out, At::offset, frame.offset);
}

bool is_fragment_of(const ThunderboltFrame& frame, uint32_t total) {
  if (total > kThunderboltMessageBytes || frame.offset % kThunderboltFragmentBytes != 0 || frame.offset > total ||
      (frame.offset == total && total != 0)) {
    return false;
  }
  const uint32_t left = total - frame.offset;
  const bool is_last = left <= kThunderboltFragmentBytes;
  return frame.length == std::min(left, kThunderboltFragmentBytes) &&
         ((frame.flags & kThunderboltLast) != 0) == is_last;
}

}  // namespace ringbolt::wire
