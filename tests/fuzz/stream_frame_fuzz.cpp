// Any bytes as a stream: the hunt finds nothing but intact headers, and what parses is written back the same.

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "base/assert.h"
#include "base/crc.h"
#include "wire/bytes.h"
#include "wire/stream_frame.h"

namespace {

using namespace ringbolt;

void check_frame(std::span<const std::byte> in) {
  const auto header = wire::parse_stream_header(in);
  if (!header) {
    return;
  }
  RINGBOLT_ASSERT(header->length <= wire::kStreamPayloadBytes && header->epoch != 0);
  const size_t held = std::min<size_t>(header->length, in.size() - wire::kStreamHeaderBytes);
  const auto payload = in.subspan(wire::kStreamHeaderBytes, held);
  if (wire::is_intact(*header, payload)) {
    std::vector<std::byte> out(wire::kStreamHeaderBytes + payload.size());
    RINGBOLT_ASSERT(wire::emit(*header, payload, out) == out.size());
    RINGBOLT_ASSERT(std::equal(out.begin(), out.end(), in.begin()));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto in = std::as_bytes(std::span(data, size));
  check_frame(in);
  // The same with a checksum that fits, or the checks behind it would never be reached.
  std::vector<std::byte> mended(in.begin(), in.end());
  if (mended.size() >= wire::kStreamHeaderBytes) {
    constexpr size_t kHeaderCrcAt = wire::kStreamHeaderBytes - 4;
    wire::put_le(std::span(mended), kHeaderCrcAt, base::crc32c(0, std::span(mended).first(kHeaderCrcAt)));
    check_frame(mended);
  }
  const wire::StreamHunt hunt = wire::hunt_for_hello(mended);
  RINGBOLT_ASSERT(hunt.useless <= mended.size());
  if (hunt.hello) {
    RINGBOLT_ASSERT(wire::parse_stream_header(std::span(mended).subspan(*hunt.hello)).value().type ==
                    wire::StreamType::hello);
  }
  return 0;
}
