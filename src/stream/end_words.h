#pragma once

#include <string_view>

#include "stream/close_reason.h"

namespace ringbolt::stream {

/// What a call on a stream that ended so answers: an errno. Reading answers 0 bytes instead after peer_closed. Pure.
int errno_of(CloseReason reason);

/// What happened and what to do about it, for a message that names the peer before it. Pure.
std::string_view words_of(CloseReason reason);

}  // namespace ringbolt::stream
