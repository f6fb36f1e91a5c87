// Any text in the variables that choose the node or streams: their ports, or an error that names the variable.

#include <cstdlib>
#include <filesystem>
#include <string>

#include "base/assert.h"
#include "base/error.h"
#include "device/port.h"
#include "input.h"

namespace {

/// An empty runtime directory; removed at exit.
class Scratch {
 public:
  Scratch() {
    std::string pattern = (std::filesystem::temp_directory_path() / "rb-env-XXXXXX").string();
    RINGBOLT_ASSERT(mkdtemp(pattern.data()) != nullptr);
    root_ = pattern;
    setenv("RINGBOLT_RUNTIME_DIR", root_.c_str(), 1);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  ~Scratch() { std::filesystem::remove_all(root_); }

 private:
  std::string root_;
};

void set_or_clear(const char* name, const std::string& value) {
  // "-" stands for "not set": an input is lines of text.
  value == "-" ? unsetenv(name) : setenv(name, value.c_str(), 1);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace ringbolt;
  static const Scratch scratch;
  fuzz::Input input(data, size);
  set_or_clear("RINGBOLT_CLUSTER", input.take_line());
  set_or_clear("RINGBOLT_NODE", input.take_line());
  set_or_clear("RINGBOLT_FAULTS", input.is_empty() ? "-" : input.take_line());
  set_or_clear("RINGBOLT_STREAMS", input.is_empty() ? "-" : input.take_line());
  try {
    for (const auto& port : device::list_ports()) {
      RINGBOLT_ASSERT(!port->name.empty() && port->known_gids.size() >= 2);
    }
  } catch (const base::Error& refused) {
    RINGBOLT_ASSERT(refused.errno_value() != 0 && refused.what()[0] != '\0');
  }
  return 0;
}
