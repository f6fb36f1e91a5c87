#include "wire/greeting.h"

#include <array>
#include <cerrno>

#include "wire/bytes.h"

namespace ringbolt::wire {
namespace {

struct GreetingAt {
  static constexpr size_t magic = 0, version = 4, flags = 6, features = 8, reserved = 12, end = 16;
};
static_assert(GreetingAt::end == kGreetingBytes);
constexpr uint32_t kMagic = 0x52424c54;  // "RBLT"
constexpr uint16_t kVersion = 1;
constexpr uint16_t kWantsAnswer = 1;

}  // namespace

base::Result<Greeting> parse_greeting(std::span<const std::byte> payload) {
  if (payload.size() < kGreetingBytes || get_be<uint32_t>(payload, GreetingAt::magic) != kMagic) {
    return base::fail(EBADMSG);
  }
  if (get_be<uint16_t>(payload, GreetingAt::version) != kVersion) {
    return base::fail(EPROTONOSUPPORT);
  }
  return Greeting{.features = get_be<uint32_t>(payload, GreetingAt::features),
                  .wants_answer = (get_be<uint16_t>(payload, GreetingAt::flags) & kWantsAnswer) != 0};
}

void emit(const Greeting& greeting, std::span<std::byte, kGreetingBytes> out) {
  put_be(out, GreetingAt::magic, kMagic);
  put_be(out, GreetingAt::version, kVersion);
  put_be(out, GreetingAt::flags, greeting.wants_answer ? kWantsAnswer : uint16_t{0});
  put_be(out, GreetingAt::features, greeting.features);
  put_be(out, GreetingAt::reserved, uint32_t{0});
}

}  // namespace ringbolt::wire
