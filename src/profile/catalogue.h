#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/parsed.h"
#include "profile/profile.h"

namespace ringbolt::profile {

/// Reads "NAME" or "NAME,KNOB=VALUE,...", as RINGBOLT_LIKE has it: "apple,gid=2,errno=darwin". The error names what is
/// not known and lists what is. Thread-safe. 256 bytes at most; any bytes are safe to pass. Knobs apply from left to
/// right, so that the last of one name counts.
base::Parsed<Profile> parse_profile(std::string_view text);

/// The names that parse_profile() knows, with a line on each.
struct NamedProfile {
  const char* name;
  const char* what;
};
/// Lives as long as the program. Thread-safe.
const std::vector<NamedProfile>& known_profiles();

}  // namespace ringbolt::profile
