#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "collective/schedule.h"

namespace ringbolt::collective {

// Ends of steps, in one line each. Pure, thread-safe.

/// See Source, whose members these are.
inline Source from_local(Buffer buffer, uint64_t offset, uint32_t after = kNoStep, bool after_all = false) {
  Source source;
  source.buffer = buffer;
  source.offset = offset;
  source.after = after;
  source.after_all = after_all;
  return source;
}

inline Source from_transfer(uint32_t peer, uint32_t transfer) {
  Source source;
  source.kind = Source::Kind::transfer;
  source.peer = peer;
  source.transfer = transfer;
  return source;
}

inline Target to_local(Buffer buffer, uint64_t offset) {
  Target target;
  target.buffer = buffer;
  target.offset = offset;
  return target;
}

inline Target to_transfer(uint32_t peer, uint32_t transfer, std::vector<uint32_t> via) {
  Target target;
  target.kind = Target::Kind::transfer;
  target.peer = peer;
  target.transfer = transfer;
  target.via = std::move(via);
  return target;
}

/// Adds a step; its number.
inline uint32_t add_step(Program& program, Step step) {
  program.steps.push_back(std::move(step));
  return static_cast<uint32_t>(program.steps.size() - 1);
}

}  // namespace ringbolt::collective
