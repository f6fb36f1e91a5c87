#pragma once

#include <string>
#include <vector>

namespace ringbolt::test {

/// Keeps what this process first sends by each of its TCP connections, to play it back later without knowing what it
/// means. Only what goes through send, sendto, sendmsg, write and writev, which this program answers for. Thread-safe.
void record_tcp(bool is_on);

/// Up to 16 beginnings of up to 1 KiB.
std::vector<std::string> recorded_tcp();

}  // namespace ringbolt::test
