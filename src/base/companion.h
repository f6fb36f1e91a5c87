#pragma once

namespace ringbolt::base {

/// libibverbs.so.1 and librdmacm.so.1 share a private interface, so each works with the other of its own build alone.
/// Returns false if the library loaded as `soname` is somebody else's, which is one without the symbol `mark`, and says
/// so with the remedy in one line on standard error, once a process. True as well while none is loaded. Takes the
/// loader's lock. Thread-safe.
bool is_companion_ours(const char* soname, const char* mark) noexcept;

}  // namespace ringbolt::base
