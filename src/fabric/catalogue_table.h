#pragma once

#include <string_view>

namespace ringbolt::fabric {

/// The table of known good cablings, as text: lines of `PORTS NODES RULE`; catalogue.h says what rules are.
extern const std::string_view kCatalogueTable;

}  // namespace ringbolt::fabric
