#pragma once

namespace ringbolt::tools {

/// Moves the calling process, which must have one thread only, into the network namespace whose file is `path`, and
/// gives it a /sys that shows the interfaces there. Only async-signal-safe calls. Returns nullptr, or the call that
/// failed; then errno says why, and the process is fit only to report it.
const char* enter_namespace(const char* path);

}  // namespace ringbolt::tools
