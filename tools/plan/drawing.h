#pragma once

#include <string>

#include "plan/cabling.h"

namespace ringbolt::tools::plan {

/// The graph for Graphviz: nodes, and cables with their ids and ports. Pure. Thread-safe.
std::string dot_text(const Cabling& cabling);

/// A picture that needs nothing else; a cable says its ends where the mouse rests on it. Pure. Thread-safe.
std::string svg_text(const Cabling& cabling);

}  // namespace ringbolt::tools::plan
