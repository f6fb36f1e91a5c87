#include "rsocket/settings.h"

#include <cstdio>
#include <memory>
#include <string>

#include "rsocket/connection_data.h"

namespace ringbolt::rsocket {
namespace {

constexpr uint32_t kSpinMicroseconds = 10;
constexpr uint32_t kMaxSpinMicroseconds = 1'000'000;

/// The number in a file of the administrator, or `fallback` where there is none.
uint32_t configured(const char* name, uint32_t fallback) {
  const std::string path = std::string("/etc/rdma/rsocket/") + name;
  const std::unique_ptr<FILE, int (*)(FILE*)> file(std::fopen(path.c_str(), "re"), &std::fclose);
  uint32_t value = 0;
  return file != nullptr && std::fscanf(file.get(), "%u", &value) == 1 ? value : fallback;
}

}  // namespace

Settings default_settings() {
  Settings settings;
  settings.send_bytes = Settings::buffer_bytes(configured("wmem_default", settings.send_bytes));
  settings.receive_bytes = Settings::buffer_bytes(configured("mem_default", settings.receive_bytes));
  settings.send_depth = Settings::depth(configured("sqsize_default", settings.send_depth));
  settings.receive_depth = Settings::depth(configured("rqsize_default", settings.receive_depth));
  settings.inline_bytes = std::min(configured("inline_default", settings.inline_bytes), Settings::kMaxDepth);
  settings.iomap_entries = round_iomap_entries(configured("iomap_size", settings.iomap_entries));
  return settings;
}

uint64_t default_spin_ns() {
  // Read once: waiting asks for it each time.
  static const uint64_t spin_ns =
      1000ULL * std::min(configured("polling_time", kSpinMicroseconds), kMaxSpinMicroseconds);
  return spin_ns;
}

}  // namespace ringbolt::rsocket
