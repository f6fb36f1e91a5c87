#pragma once

#include "bootstrap/environment.h"
#include "fabric/liveness.h"

namespace ringbolt::mesh {

/// When silence means something, as RINGBOLT_FROZEN_MS may say. Throws JoinError. Thread-safe.
/// In milliseconds, 1000 to 3600000; empty or not set leaves the default of LivenessKnobs.
fabric::LivenessKnobs liveness_from(const bootstrap::Environment& environment);

}  // namespace ringbolt::mesh
