#include "base/debug_log.h"

#include <cstdlib>
#include <string_view>

namespace ringbolt::base {

bool is_debug_log_wanted() {
  const char* level = std::getenv("RINGBOLT_LOG");
  return level != nullptr && std::string_view(level) == "debug";
}

}  // namespace ringbolt::base
