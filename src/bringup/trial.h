#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "bringup/gid.h"
#include "verbs/queue_pair.h"

namespace ringbolt::bringup {

/// A port somewhere that may be at the other end of our cable.
struct TrialCandidate {
  Gid gid = {};
  uint16_t lid = 0;
};

/// Whether the device at `device` finds each candidate on its cable: for each a queue pair of the device's own
/// (`type`), brought to RTR with the candidate's GID and nobody's queue pair number, and destroyed again. Returns for
/// each 0, or the errno of the step that was refused; EINPROGRESS if it has not returned after `timeout_ms`.
///
/// RTR towards a silent peer can block inside the device for good, where nothing can end it. So the steps run in a
/// thread of their own, on a device opened for it, and after a timeout the thread is left alone with that: it keeps one
/// protection domain, completion queue and queue pair until the device lets it go, or until the process ends. No
/// candidate after kMostStuckTrials such ones is tried: ECANCELED.
///
/// Blocks for at most about `timeout_ms` for each candidate, and until about `deadline_ns` (base::now_ns()) for all:
/// then the one under way is left alone (EINPROGRESS), too, and the rest is not tried (ECANCELED). Throws base::Error
/// if the device can't be opened, or lacks that type, within that time. Thread-safe. [candidates.size()]. A success
/// means that the address was resolved there, not that anybody runs a program.
std::vector<int> try_candidates(const verbs::Library& library, const std::string& device, ibv_qp_type type,
                                const verbs::Path& path, std::span<const TrialCandidate> candidates,
                                uint32_t timeout_ms, uint64_t deadline_ns);

inline constexpr size_t kMostStuckTrials = 3;

}  // namespace ringbolt::bringup
