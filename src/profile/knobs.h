#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "profile/profile.h"

/// The knobs of a profile as RINGBOLT_LIKE writes them: "gid=2", "norecv=park:16:65536".
namespace ringbolt::profile {

/// enum ibv_transport_type's "unspecified".
inline constexpr int kTransportUnspecified = 4;

/// Turns one knob, "NAME=VALUE". What is wrong with it, and what would be right, or nothing. Any bytes are safe to
/// pass. Thread-safe. After an error the profile may hold a part of what was asked, and is not to be used.
std::optional<std::string> set_knob(Profile& profile, std::string_view text);

/// The knobs, their values (first the default of most profiles) and what they are.
struct KnobText {
  const char* name;
  const char* values;
  const char* what;
};
/// Thread-safe.
std::vector<KnobText> known_knobs();

}  // namespace ringbolt::profile
