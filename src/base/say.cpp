#include "base/say.h"

#include <cstdio>

namespace ringbolt::base {

void say(std::string_view text) noexcept { (void)!std::fwrite(text.data(), 1, text.size(), stderr); }

}  // namespace ringbolt::base
