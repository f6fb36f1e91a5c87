#pragma once

namespace ringbolt::base {

/// The device of ours by which every node of a cluster with agents reaches every other (docs/overlay.md). No cable.
inline constexpr const char* kOverlayDevice = "ringbolt0";

}  // namespace ringbolt::base
