// Any row of frames with any marks, into receives of any room: no byte goes beyond its receive, and each receive is
// used once.

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>

#include "base/assert.h"
#include "wire/apple_frames.h"

namespace {

using namespace ringbolt;

/// The receives' rooms come from the input, too.
struct Receives {
  uint32_t rooms = 0;  // bits: whether a receive is posted, and how large
  std::optional<uint64_t> open;
  uint32_t placed = 0;

  std::optional<uint64_t> take_receive() {
    RINGBOLT_ASSERT(!open);
    rooms = rooms * 1103515245U + 12345U;
    if ((rooms >> 16U & 3U) == 0) {
      return std::nullopt;
    }
    open = rooms >> 18U & 0x1fffU;
    placed = 0;
    return open;
  }
  void place(uint32_t offset, std::span<const std::byte> bytes) {
    RINGBOLT_ASSERT(open && offset + bytes.size() <= *open);
    RINGBOLT_ASSERT(offset == 0 || offset == placed);
    placed = offset + static_cast<uint32_t>(bytes.size());
  }
  void complete(uint32_t length) {
    RINGBOLT_ASSERT(open && length == placed);
    open.reset();
  }
  void fail(wire::AppleFailure) {
    RINGBOLT_ASSERT(open);
    open.reset();
  }
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  // Each frame: a byte of marks, two of length; its payload is the input from there on, as far as there is any.
  constexpr size_t kFrameInput = 3;
  auto in = std::span(data, size);
  Receives receives{.rooms = size == 0 ? 0U : data[0], .open = {}, .placed = 0};
  wire::AppleReassembly reassembly;
  while (in.size() >= kFrameInput) {
    wire::AppleFrame frame;
    frame.has_start = (in[0] & 1U) != 0;
    frame.is_last = (in[0] & 2U) != 0;
    frame.is_damaged = (in[0] & 12U) == 12U;
    const size_t length = (in[1] | size_t{in[2]} << 8U) % (wire::kAppleFrameBytes + 1);
    in = in.subspan(kFrameInput);
    frame.bytes = std::as_bytes(in.first(std::min(length, in.size())));
    in = in.subspan(std::min<size_t>(in.size(), length % 8));
    reassembly.on_frame(frame, receives);
  }
  return 0;
}
