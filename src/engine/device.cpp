#include "engine/device.h"

#include <cerrno>

#include "base/error.h"
#include "verbs/expected_refusals.h"

namespace ringbolt::engine {

Device::Device(const verbs::Library& library, const std::string& name, int entries)
    : context_(library, name), pd_(context_) {
  try {
    const verbs::ExpectedRefusals expected(context_.calls());
    channel_.emplace(context_);
  } catch (const base::Error& error) {
    if (error.errno_value() != EOPNOTSUPP && error.errno_value() != ENOSYS) {
      throw;
    }
  }
  cq_.emplace(context_, entries, channel());
}

}  // namespace ringbolt::engine
