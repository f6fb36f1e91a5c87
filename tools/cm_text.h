#pragma once

#include <string>

#include "wire/mad.h"

namespace ringbolt::tools {

/// A connection management datagram in words: "REQ id 0x7d633cb2 service TCP port 7174 ...".
std::string describe_cm(wire::MadIn mad);

}  // namespace ringbolt::tools
