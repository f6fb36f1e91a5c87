#pragma once

#include <cstddef>
#include <cstdio>
#include <string>

namespace ringbolt::tools {

/// All of `from`, standard input but in tests, to its end; blocks until that comes. More than `most_bytes` are refused
/// with UsageError, and no more than one step beyond is ever held: who writes there may be another machine. Throws
/// base::Error where it can't be read. Not thread-safe.
std::string read_input(std::FILE* from, size_t most_bytes);

}  // namespace ringbolt::tools
