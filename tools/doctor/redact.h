#pragma once

#include "doctor/recording.h"

namespace ringbolt::tools::doctor {

/// The recording without what others need not know: names of hosts and users, MAC addresses (also inside GIDs), GUIDs,
/// UUIDs, serial numbers, public IP addresses, and values of variables that look like secrets. The same thing becomes
/// the same other thing everywhere, so that checks find the same. Private addresses stay. Pure. Of more than 255 public
/// IPv4 addresses some become one.
Recording redacted(const Recording& recording);

}  // namespace ringbolt::tools::doctor
