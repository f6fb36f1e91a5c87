// Any bytes as a control message of another process: refused, or a message that is written back byte for byte.

#include <array>
#include <cstring>
#include <span>

#include "base/assert.h"
#include "input.h"
#include "link/messages.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace ringbolt;
  const auto message = link::parse(std::as_bytes(std::span(data, size)));
  if (!message) {
    return 0;
  }
  std::array<std::byte, link::kMaxMessageBytes> bytes{};
  const size_t length = link::emit(*message, bytes);
  RINGBOLT_ASSERT(length == size && std::memcmp(bytes.data(), data, size) == 0);
  RINGBOLT_ASSERT(link::descriptor_count(*message) <= 2);
  return 0;
}
