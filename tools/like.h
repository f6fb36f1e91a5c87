#pragma once

#include <string>

#include "cluster/model.h"
#include "profile/profile.h"

namespace ringbolt::tools {

/// The profile that `text` names; an empty text is the device as it is. Throws UsageError with what is known.
profile::Profile profile_of(const std::string& text);

/// As the machines of that profile name their port `index`, from 0; empty: as ours are named. Thread-safe.
std::string port_name(const std::string& profile, size_t index);

/// Makes every node that says nothing itself be like `text` (empty: changes nothing), and checks those that do. Ports
/// get the names that the profile's machines give theirs if `renames`, that is when nobody has chosen their names.
/// Throws UsageError.
void take_likeness(cluster::Cluster& model, const std::string& text, bool renames);

}  // namespace ringbolt::tools
