#pragma once

#include <memory>
#include <string>

#include "link/stream_source.h"

/// Streams out of sockets; make_stream_source() knows the texts. All throw base::Error for what can never work.
namespace ringbolt::link {

std::unique_ptr<StreamSource> connect_to_unix(const std::string& path);
/// Takes the place of a socket there that nobody listens on any more; removes its own at the end.
std::unique_ptr<StreamSource> listen_on_unix(const std::string& path);
/// HOST:PORT, [IPv6]:PORT. Names are looked up now, and may take their time.
std::unique_ptr<StreamSource> connect_to_tcp(const std::string& host_and_port);
std::unique_ptr<StreamSource> listen_on_tcp(const std::string& host_and_port);

}  // namespace ringbolt::link
