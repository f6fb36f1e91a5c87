#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/parsed.h"
#include "profile/profile.h"

namespace ringbolt::profile {

/// Reads "NAME" or "NAME,KNOB=VALUE,...", as RINGBOLT_LIKE has it: "apple,gid=2,errno=darwin". The error names what is
/// not known and lists what is. Thread-safe.
base::Parsed<Profile> parse_profile(std::string_view text);

/// The names that parse_profile() knows, with a line on each.
struct NamedProfile {
  const char* name;
  const char* what;
};
const std::vector<NamedProfile>& known_profiles();

}  // namespace ringbolt::profile
