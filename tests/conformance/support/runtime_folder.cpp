#include "runtime_folder.h"

#include <cstdlib>
#include <stdexcept>
#include <system_error>

namespace ringbolt::conformance {

RuntimeFolder::RuntimeFolder() {
  char pattern[] = "/tmp/rbc-XXXXXX";
  if (mkdtemp(pattern) == nullptr) {
    throw std::runtime_error("cannot make a folder below /tmp");
  }
  path_ = pattern;
  setenv("RINGBOLT_RUNTIME_DIR", pattern, 1);
  unsetenv("RINGBOLT_CLUSTER");
  unsetenv("RINGBOLT_NODE");
}

RuntimeFolder::~RuntimeFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace ringbolt::conformance
