#pragma once

namespace ringbolt::base {

/// "EINVAL"; null for a number that Linux gives no name. Async-signal-safe: for children between fork and exec, too.
/// strerrorname_np() is the same, from glibc 2.32 on. The text is a constant, and lives as long as the library.
const char* errno_name(int error);

}  // namespace ringbolt::base
