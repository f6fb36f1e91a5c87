#include "wire/greeting.h"

#include <array>
#include <cerrno>

#include "wire/bytes.h"

namespace ringbolt::wire {
namespace {

struct GreetingAt {
  static constexpr size_t magic = 0, version = 4, flags = 6, reserved = 8, token = 16, echo = 24, end = 32;
};
static_assert(GreetingAt::end == kGreetingBytes);
constexpr uint32_t kMagic = 0x52424c54;  // "RBLT"
constexpr uint16_t kVersion = 3;
constexpr uint16_t kWantsAnswer = 1;
constexpr uint16_t kSealing = 2;

}  // namespace

base::Result<Greeting> parse_greeting(std::span<const std::byte> payload) {
  constexpr size_t kHeadBytes = GreetingAt::flags;
  if (payload.size() < kHeadBytes || get_be<uint32_t>(payload, GreetingAt::magic) != kMagic) {
    return base::fail(EBADMSG);
  }
  if (get_be<uint16_t>(payload, GreetingAt::version) != kVersion) {
    return base::fail(EPROTONOSUPPORT);
  }
  if (payload.size() < kGreetingBytes || get_be<uint64_t>(payload, GreetingAt::token) == 0) {
    return base::fail(EBADMSG);
  }
  const auto flags = get_be<uint16_t>(payload, GreetingAt::flags);
  return Greeting{.wants_answer = (flags & kWantsAnswer) != 0,
                  .is_sealing = (flags & kSealing) != 0,
                  .token = get_be<uint64_t>(payload, GreetingAt::token),
                  .echo = get_be<uint64_t>(payload, GreetingAt::echo)};
}

void emit(const Greeting& greeting, std::span<std::byte, kGreetingBytes> out) {
  put_be(out, GreetingAt::magic, kMagic);
  put_be(out, GreetingAt::version, kVersion);
  put_be<uint16_t>(
      out, GreetingAt::flags,
      static_cast<uint16_t>((greeting.wants_answer ? kWantsAnswer : 0U) | (greeting.is_sealing ? kSealing : 0U)));
  put_be(out, GreetingAt::reserved, uint64_t{0});
  put_be(out, GreetingAt::token, greeting.token);
  put_be(out, GreetingAt::echo, greeting.echo);
}

}  // namespace ringbolt::wire
