#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace ringbolt::verbs {

/// Whose numbers an errno is in: 61 is ENODATA on Linux and ECONNREFUSED on Darwin.
enum class Platform : uint8_t { kLinux, kDarwin };

/// The platform that this was built for.
#ifdef __APPLE__
inline constexpr Platform kThisPlatform = Platform::kDarwin;
#else
inline constexpr Platform kThisPlatform = Platform::kLinux;
#endif

/// What was asked of the device, or of the side channel that carries the addresses.
enum class Step : uint8_t {
  kGetDeviceList,
  kOpenDevice,
  kQueryDevice,
  kQueryPort,
  kQueryGid,
  kAllocPd,
  kCreateChannel,
  kCreateCq,
  kRegMr,
  kCreateQp,
  kQueryQp,
  kToInit,
  kToRtr,
  kToRts,
  kToReset,
  kPostSend,
  kPostRecv,
  kConnectTcp,
};

/// The call's name, for messages: "ibv_modify_qp to RTR".
std::string_view name_of(Step step);

/// Why a step fails with that errno, as far as is known, and what to do about it.
struct Meaning {
  std::string_view symbol;  ///< "ETIMEDOUT"; empty for a number that the dictionary does not know at all
  std::string_view cause;   ///< empty if the step is not known to fail so
  std::string_view remedy;  ///< empty likewise
  friend bool operator==(const Meaning&, const Meaning&) = default;
};

/// Looks an errno up; of either sign. Pure. Sources: Apple's TN3205, reports of users (docs/design-notes.md). The
/// texts are constants.
// Thread-safe, as are the others here.
Meaning meaning_of(Platform platform, Step step, int error);

/// "<cause>: <remedy>", or what can be said of any errno. Never empty.
std::string advice(Platform platform, Step step, int error);

/// What to do about a call that does not return; without a step, about one that is none of these. Never empty.
std::string_view advice_if_stuck(std::optional<Step> step);

}  // namespace ringbolt::verbs
