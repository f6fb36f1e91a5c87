#pragma once

#include <map>
#include <string>

#include "wire/cm_message.h"
#include "wire/packet.h"

namespace ringbolt::golden {

/// What a dissector should find, by Wireshark's names of the fields: numbers in decimal, bytes in hexadecimal.
using Fields = std::map<std::string, std::string>;

Fields fields_of(const wire::PacketView& view);

/// Of a datagram of the connection manager; those of messages that Wireshark 4.0 knows in detail.
Fields fields_of(const wire::CmMad& mad);

}  // namespace ringbolt::golden
