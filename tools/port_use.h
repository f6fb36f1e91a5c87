#pragma once

#include <string>
#include <vector>

#include "cluster_state.h"
#include "programs.h"

namespace ringbolt::tools {

/// Says of each program on which node of this machine's cluster it has ports open, which, and how much it has moved
/// there, as their files of counters tell. One that has none there, or whose files can't be read, stays as it is.
void add_port_uses(const LiveCluster& live, std::vector<Program>& programs);

/// As JSON for another machine, on one line that begins with {"programs":, and back from whatever stands before it.
/// Any text is safe.
std::string programs_json(const std::vector<Program>& programs);
std::vector<Program> parse_programs(const std::string& text, const std::string& node);

}  // namespace ringbolt::tools
