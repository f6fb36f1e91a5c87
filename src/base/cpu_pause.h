#pragma once

namespace ringbolt::base {

/// The built-in, since the header of its intrinsic takes longer to parse than most files that need it.
inline void cpu_pause() { __builtin_ia32_pause(); }

}  // namespace ringbolt::base
