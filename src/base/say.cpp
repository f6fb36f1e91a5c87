#include "base/say.h"

#include <cstdio>

namespace ringbolt::base {

// stdio locks the stream for the whole call, so lines of threads are not mixed; standard error is unbuffered.
void say(std::string_view text) noexcept { (void)!std::fwrite(text.data(), 1, text.size(), stderr); }

}  // namespace ringbolt::base
