// Datagrams on an interface that is so slow that its socket is full.
#pragma once

namespace ringbolt::counters {

/// They wait, and none completes before it has gone. Then the program sleeps until all have.
void slow_interface();

/// They wait, and so do a SEND and a READ of somebody else. All of it arrives.
void connected_while_slow();

/// They wait, and their queue pair ends.
void ended_while_slow();

}  // namespace ringbolt::counters
