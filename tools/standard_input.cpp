#include "standard_input.h"

#include <array>
#include <cerrno>

#include <fmt/format.h>

#include "base/error.h"
#include "failure.h"

namespace ringbolt::tools {

std::string read_input(std::FILE* from, size_t most_bytes) {
  std::string text;
  std::array<char, 65536> buffer;
  for (size_t got = 0; (got = std::fread(buffer.data(), 1, buffer.size(), from)) > 0;) {
    if (got > most_bytes - text.size()) {
      throw UsageError(fmt::format("standard input: it may hold {} bytes at most", most_bytes));
    }
    text.append(buffer.data(), got);
  }
  if (std::ferror(from) != 0) {
    throw base::Error(errno, "read", "standard input");
  }
  return text;
}

}  // namespace ringbolt::tools
