#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "commands.h"
#include "shuffle/wish.h"

namespace ringbolt::tools {

/// The least of `wish`, which has failed, with which `fails` is true `kSureRuns` times in a row: the fewest kinds, then
/// of each the fewest operations. Nothing less than `wish` itself if that does not fail again so often. Calls `fails`
/// some tens of times.
inline constexpr int kSureRuns = 2;
shuffle::Wish shrunk(const shuffle::Wish& wish, const std::function<bool(const shuffle::Wish&)>& fails);

/// `ringbolt run --shuffle`: with one seed, that run; with several, one after the other until one fails, and then what
/// of it makes the program fail. The exit code of the run that failed. Throws UsageError.
/// Of several seeds each run is a process of its own, up to `limit_s` seconds long, whose output is kept in memory and
/// shown of the one that fails alone. `run` is called in that process: what it throws refuses all seeds.
int run_shuffled(const RunOptions& options, const std::function<int(const RunOptions&)>& run);

}  // namespace ringbolt::tools
