#pragma once

#include "rsocket/socket.h"

namespace ringbolt::rsocket {

/// Sets errno, answers -1, and says why if somebody wants to know (base/explain.h). `socket`: null if there is none of
/// the number. Not said: that a call would have to wait, and what the connection manager has explained as its event.
int refuse(int error, const char* call, int descriptor, Socket* socket) noexcept;

}  // namespace ringbolt::rsocket
