#pragma once

#include <string>

namespace ringbolt::base {

/// Where the program called our libraries in this thread: "client.c:88 in connect_to()", by libdw and the program's
/// debugging information; "client+0x1a2b" without either. Takes milliseconds the first time. Thread-safe.
std::string calling_place();

}  // namespace ringbolt::base
