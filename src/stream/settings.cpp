#include "stream/settings.h"

#include <cerrno>

#include "base/error.h"

namespace ringbolt::stream {

void check(const StreamSettings& settings) {
  const auto refuse = [](const char* what, uint64_t given, const char* remedy) {
    throw base::Error(EINVAL, "make a stream", std::string(what) + " of " + std::to_string(given), remedy);
  };
  if (settings.receive_bytes < kLeastReceiveBytes || settings.receive_bytes > kMostReceiveBytes) {
    refuse("receive_bytes", settings.receive_bytes, "take 4096 to 16777216");
  }
  if (settings.receive_buffers == 0 || settings.receive_buffers > kMostReceiveBuffers) {
    refuse("receive_buffers", settings.receive_buffers, "take 1 to 16");
  }
  const uint64_t bytes = uint64_t{settings.receive_bytes} * settings.receive_buffers;
  if (!settings.receive_memory.empty() && settings.receive_memory.size() < bytes) {
    refuse("receive_memory", settings.receive_memory.size(), "give receive_bytes for each of the receive_buffers");
  }
  if (settings.max_send_bytes == 0) {
    refuse("max_send_bytes", 0, "take what peers may have for a receive buffer, such as 16777216");
  }
}

}  // namespace ringbolt::stream
