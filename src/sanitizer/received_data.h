#pragma once

#include <cstdint>
#include <optional>

#include "sanitizer/reports.h"
#include "sanitizer/request.h"

/// What a receive or a READ brings waits in memory of ours, which the device is given, until its completion is polled:
/// only that says that all of it is there (InfiniBand Architecture Specification 1.4, 9.5 and 10.8.5). The program's
/// memory holds poison meanwhile. Each call has its request to itself, or holds the lock of the table that it is in.
namespace ringbolt::sanitizer {

/// `poisons`: nobody else may write to the program's memory. All of it is mapped, and the request has memory of ours.
/// Before the device has the request: it may write at once then.
void hold_back(Request& request, bool poisons);

/// Puts back what the program had there, and looks at it no more: it failed, is told of, or was never posted.
/// Memory that is not mapped any more is left alone.
void unpoison(Request& request);

/// It failed since it was to write to a region that the device may not write to. `request.read_only` is set.
Finding region_not_writable(const Request& request, const base::CallSite& polled);

/// At the completion: gives the program the first `length_bytes`, and behind them what it had there before. Memory that
/// is not mapped any more gets nothing, and memory that was written to meanwhile is told of.
/// `length_bytes`: as the completion says, so the device's word: cut to what the request has.
std::optional<Finding> place(Request& request, uint64_t length_bytes, const base::CallSite& polled);

}  // namespace ringbolt::sanitizer
