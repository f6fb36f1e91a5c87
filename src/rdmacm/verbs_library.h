#pragma once

namespace ringbolt::rdmacm {

/// False if the libibverbs.so.1 of this process is somebody else's, which is then said once: nothing of
/// abi/management.h may be called. Thread-safe. True as well while none is loaded.
bool is_verbs_library_ours() noexcept;

}  // namespace ringbolt::rdmacm
