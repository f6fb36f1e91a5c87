// Datagrams of the rendezvous sockets: whatever comes, parse() stays within the bytes, and what it accepts is exactly
// what emit() writes.

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <span>

#include "link/messages.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace ringbolt::link;
  const auto message = parse(std::as_bytes(std::span(data, size)));
  if (message) {
    std::array<std::byte, kMaxMessageBytes> out{};
    const size_t length = emit(*message, out);
    if (length != size || std::memcmp(out.data(), data, size) != 0 || descriptor_count(*message) > 2) {
      std::abort();
    }
  }
  return 0;
}
