#pragma once

#include <array>
#include <climits>
#include <cstdint>

#include "rsocket/socket.h"

namespace ringbolt::rsocket {

/// A call of the API that goes on, for words about it.
/// Lives as long as the call; the texts are constants.
struct Call {
  static constexpr int kNoDescriptor = INT_MIN;  ///< of calls that name none, or several

  const char* name;
  int descriptor = kNoDescriptor;
  const char* arguments = "";  ///< fmt's format for the numbers below that it names
  std::array<int64_t, 3> numbers{};
};

/// Sets errno, answers -1, and says why if somebody wants to know (base/explain.h). `socket`: null if the call names
/// none, or none that there is. Not said: that a call would have to wait, and what the connection manager has
/// explained. Takes the socket's lock. Thread-safe.
/// Costs nothing but errno where nobody wants explanations.
int refuse(int error, const Call& call, Socket* socket) noexcept;

}  // namespace ringbolt::rsocket
