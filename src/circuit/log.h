#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace ringbolt::circuit {

enum class Level : uint8_t { info, warning };
/// A line for the log of whoever uses this. Thread-safe. Must not call back into the endpoint, and must not throw.
using Log = std::function<void(Level level, const std::string& text)>;

}  // namespace ringbolt::circuit
