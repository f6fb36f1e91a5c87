#include "wire/stream_hello.h"

#include <cerrno>

#include "base/assert.h"
#include "wire/bytes.h"

namespace ringbolt::wire {
namespace {

struct At {
  static constexpr size_t first_version = 0, last_version = 2, features = 4, incarnation = 8, end = 16;
};
static_assert(At::end == kStreamHelloBytes);

}  // namespace

base::Result<StreamHello> parse_stream_hello(std::span<const std::byte> payload) {
  if (payload.size() < kStreamHelloBytes || payload.size() > kMaxStreamHelloBytes) {
    return base::fail(EBADMSG);
  }
  StreamHello hello;
  hello.first_version = get_le<uint16_t>(payload, At::first_version);
  hello.last_version = get_le<uint16_t>(payload, At::last_version);
  hello.features = get_le<uint32_t>(payload, At::features);
  hello.incarnation = get_le<uint64_t>(payload, At::incarnation);
  if (hello.incarnation == 0) {
    return base::fail(EBADMSG);
  }
  if (hello.first_version > kStreamVersion || hello.last_version < kStreamVersion) {
    return base::fail(EPROTONOSUPPORT);
  }
  return hello;
}

void emit(const StreamHello& hello, std::span<std::byte> out) {
  RINGBOLT_ASSERT(out.size() >= kStreamHelloBytes);
  put_le(out, At::first_version, hello.first_version);
  put_le(out, At::last_version, hello.last_version);
  put_le(out, At::features, hello.features);
  put_le(out, At::incarnation, hello.incarnation);
}

}  // namespace ringbolt::wire
