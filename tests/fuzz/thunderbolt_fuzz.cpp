// Any bytes as a control message and as a data frame of the native Thunderbolt verbs: what parses is written back the
// same, and its payload lies inside the frame.

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>

#include "base/assert.h"
#include "wire/thunderbolt_data.h"
#include "wire/thunderbolt_hello.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace ringbolt;
  const auto in = std::as_bytes(std::span(data, size));
  if (const auto hello = wire::parse_thunderbolt_hello(in)) {
    std::array<std::byte, wire::kThunderboltHelloBytes> out{};
    wire::emit(*hello, out);
    RINGBOLT_ASSERT(wire::parse_thunderbolt_hello(out).value() == *hello);
  }
  if (const auto view = wire::parse_thunderbolt_frame(in)) {
    std::array<std::byte, wire::kThunderboltHeaderBytes> out{};
    wire::emit(view->frame, out);
    RINGBOLT_ASSERT(std::equal(out.begin(), out.end(), in.begin()));
    RINGBOLT_ASSERT(out.size() + view->payload.size() == in.size());
    // A proper fragment ends inside its message.
    const uint32_t total = view->frame.immediate;
    RINGBOLT_ASSERT(!wire::is_fragment_of(view->frame, total) ||
                    uint64_t{view->frame.offset} + view->frame.length <= total);
  }
  return 0;
}
