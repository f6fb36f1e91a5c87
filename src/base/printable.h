#pragma once

#include <string>

namespace ringbolt::base {

/// Text of somebody else (a variable, a file, another machine), fit for a terminal: each byte of what a terminal obeys
/// is `instead`. These are the control characters of ASCII and those of ISO 6429, which UTF-8 spells 0xc2 0x80 to 0xc2
/// 0x9f. `keeps_lines`: but for '\n'. Throws std::bad_alloc. Thread-safe.
std::string printable(std::string text, char instead = '?', bool keeps_lines = false);

}  // namespace ringbolt::base
