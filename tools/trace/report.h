#pragma once

#include <cstddef>
#include <string>

#include "trace/timeline.h"

/// A timeline as people and other programs read it. Pure, but for looking lines of programs up.
namespace ringbolt::tools::trace_command {

/// Of each connection the last `most` events (0: all), and what is under way.
std::string timeline_text(const Timeline& timeline, size_t most);
/// docs/trace.md says what is in it.
std::string timeline_json(const Timeline& timeline);
/// Trace events as Chrome and Perfetto read them: requests as spans, messages as arrows, the rest as instants.
std::string chrome_json(const Timeline& timeline);
/// A page without further files: what was found and explained, each with the last `most` events of its connection
/// before it, then all connections likewise.
std::string timeline_page(const Timeline& timeline, size_t most);

/// "queue pair 0x4001 of node 0 client (4711), RC, RTS".
std::string side_text(const Timeline& timeline, size_t side);
/// "2 sends under way, the oldest IBV_WR_SEND, wr_id 0x7, posted at client.c:88 in send_next(), 3.0 ms before the end".
std::string under_way_text(const Timeline& timeline, size_t side);

}  // namespace ringbolt::tools::trace_command
