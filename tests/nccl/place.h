#pragma once

#include "options.h"

namespace ringbolt::test {

/// Puts this process where the options want the rank: into its network namespace, or, by its environment, on its node
/// of a cluster. Before the plugin is loaded. Throws Failure.
void settle_in(int rank, const Options& options);

}  // namespace ringbolt::test
