// Hot path: no allocation once started, no lock, no system call.
#include "collective/executor.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "base/assert.h"
#include "base/copy.h"
#include "collective/arithmetic.h"

namespace ringbolt::collective {
namespace {

/// A step's bytes before chunk `chunk`.
uint64_t bytes_before(const Step& step, uint32_t chunk) {
  return std::min<uint64_t>(uint64_t{chunk} * step.chunk_bytes, step.bytes);
}

const Target* local_target(const Step& step) {
  for (const Target& target : step.targets) {
    if (target.kind == Target::Kind::local) {
      return &target;
    }
  }
  return nullptr;
}

/// Also where they overlap.
void copy_bytes(std::byte* to, const std::byte* from, size_t length) {
  if (to < from + length && from < to + length) {
    std::memmove(to, from, length);
  } else {
    base::copy(to, from, length);
  }
}

void set_bit(std::vector<uint64_t>& bits, uint32_t i) { bits[i / 64] |= uint64_t{1} << (i % 64); }

}  // namespace

Execution::Execution(std::shared_ptr<const CompiledProgram> program) : program_(std::move(program)) {
  const size_t n_steps = program_->program().steps.size();
  scratch_.resize(program_->program().scratch_bytes);
  next_chunk_.resize(n_steps);
  ready_.resize((n_steps + 63) / 64);
  lanes_ = std::vector<Lane>(program_->incoming().size());
  allowed_.resize(program_->outgoing().size());
  size_t most_sources = 0;
  size_t most_targets = 0;
  for (const Step& step : program_->program().steps) {
    most_sources = std::max(most_sources, step.sources.size());
    most_targets = std::max(most_targets, step.targets.size());
  }
  sources_.reserve(most_sources);
  rooms_.reserve(most_targets);
}

void Execution::start(uint32_t call, const Operands& operands, Port& port) {
  drop();
  call_ = call;
  operands_ = operands;
  port_ = &port;
  std::fill(next_chunk_.begin(), next_chunk_.end(), 0);
  std::fill(allowed_.begin(), allowed_.end(), kLaneWindow);
  n_unfinished_ = next_chunk_.size();
  for (uint32_t i = 0; i < next_chunk_.size(); ++i) {
    set_bit(ready_, i);
  }
  find_hazards();
}

void Execution::find_hazards() {
  const auto shift = reinterpret_cast<uintptr_t>(operands_.output) - reinterpret_cast<uintptr_t>(operands_.input);
  if (hazards_of_ == shift) {
    return;
  }
  hazards_of_ = shift;
  hazards_.clear();
  const std::vector<Step>& steps = program_->program().steps;
  for (uint32_t writer = 0; writer < steps.size(); ++writer) {
    const Target* target = local_target(steps[writer]);
    if (target == nullptr || target->buffer != Buffer::output) {
      continue;
    }
    const std::byte* to = operands_.output + target->offset;
    for (uint32_t reader = 0; reader < steps.size(); ++reader) {
      for (const Source& source : steps[reader].sources) {
        const bool reads_input = source.kind == Source::Kind::local && source.buffer == Buffer::input;
        const std::byte* from = operands_.input + source.offset;
        if (reader == writer || !reads_input || from >= to + steps[writer].bytes || to >= from + steps[reader].bytes) {
          continue;
        }
        hazards_.resize(steps.size());
        hazards_[writer].push_back({reader, to - from});
      }
    }
  }
}

Taken Execution::arrive(uint32_t peer, const ChunkTag& tag, Parcel parcel) {
  const auto* end = CompiledProgram::find(program_->incoming(), peer, tag.lane);
  if (end == nullptr) {
    return Taken::no_such_lane;
  }
  const Step& step = program_->program().steps[end->step];
  if (tag.chunk >= program_->n_chunks(end->step) ||
      parcel.bytes().size() != bytes_before(step, tag.chunk + 1) - bytes_before(step, tag.chunk)) {
    return Taken::wrong_length;
  }
  Lane& lane = lanes_[end->index];
  if (tag.chunk < lane.used || tag.chunk - lane.used >= kLaneWindow ||
      lane.waiting[tag.chunk % kLaneWindow].is_here()) {
    return Taken::out_of_window;
  }
  lane.waiting[tag.chunk % kLaneWindow] = std::move(parcel);
  ++n_waiting_;
  if (tag.chunk == lane.used) {
    set_bit(ready_, end->step);
    if (fire(end->step) == Fired::yes) {
      return Taken::ok;
    }
  }
  lane.waiting[tag.chunk % kLaneWindow].settle();
  return Taken::ok;
}

Taken Execution::hear_used(uint32_t peer, const ChunkTag& tag) {
  const auto* end = CompiledProgram::find(program_->outgoing(), peer, tag.lane);
  if (end == nullptr) {
    return Taken::no_such_lane;
  }
  const uint32_t n_chunks = program_->n_chunks(end->step);
  if (tag.chunk > n_chunks || tag.chunk > next_chunk_[end->step]) {
    return Taken::out_of_window;
  }
  allowed_[end->index] = std::max(allowed_[end->index], tag.chunk + kLaneWindow);
  set_bit(ready_, end->step);
  return Taken::ok;
}

bool Execution::is_written(const Source& source, uint64_t offset, uint64_t length) const {
  if (source.after == kNoStep) {
    return true;
  }
  const Step& writer = program_->program().steps[source.after];
  const uint32_t done = next_chunk_[source.after];
  if (done == program_->n_chunks(source.after)) {
    return true;
  }
  if (source.after_all) {
    return false;
  }
  const Target* target = local_target(writer);
  const uint64_t begin = target != nullptr && target->buffer == source.buffer ? target->offset : source.offset;
  return begin + bytes_before(writer, done) >= source.offset + offset + length;
}

bool Execution::may_write(uint32_t step, uint64_t offset, uint64_t length) const {
  if (hazards_.empty()) {
    return true;
  }
  for (const Hazard& hazard : hazards_[step]) {
    const uint32_t done = next_chunk_[hazard.reader];
    if (done == program_->n_chunks(hazard.reader)) {
      continue;
    }
    const auto read = static_cast<int64_t>(bytes_before(program_->program().steps[hazard.reader], done));
    if (read < static_cast<int64_t>(offset + length) + hazard.shift) {
      return false;
    }
  }
  return true;
}

bool Execution::may_fire(uint32_t i) const {
  const Step& step = program_->program().steps[i];
  const uint32_t chunk = next_chunk_[i];
  if (chunk == program_->n_chunks(i)) {
    return false;
  }
  const uint64_t offset = bytes_before(step, chunk);
  const uint64_t length = bytes_before(step, chunk + 1) - offset;
  for (size_t s = 0; s < step.sources.size(); ++s) {
    const Source& source = step.sources[s];
    const bool is_there = source.kind == Source::Kind::local
                              ? is_written(source, offset, length)
                              : lanes_[program_->incoming_of(i, s)].waiting[chunk % kLaneWindow].is_here();
    if (!is_there) {
      return false;
    }
  }
  for (size_t t = 0; t < step.targets.size(); ++t) {
    const Target& target = step.targets[t];
    const bool may = target.kind == Target::Kind::lane
                         ? chunk < allowed_[program_->outgoing_of(i, t)]
                         : target.buffer != Buffer::output || may_write(i, offset, length);
    if (!may) {
      return false;
    }
  }
  return true;
}

bool Execution::take_rooms(uint32_t i, uint32_t length) {
  rooms_.clear();
  for (const Target& target : program_->program().steps[i].targets) {
    if (target.kind == Target::Kind::local) {
      continue;
    }
    const auto room = port_->room(length);
    if (!room) {
      for (const Port::Room& taken : rooms_) {
        port_->cancel(taken);
      }
      return false;
    }
    rooms_.push_back(*room);
  }
  return true;
}

std::byte* Execution::address(Buffer buffer, uint64_t offset) {
  switch (buffer) {
    case Buffer::input:
      return const_cast<std::byte*>(operands_.input) + offset;  // only ever read: see fire()
    case Buffer::output:
      return operands_.output + offset;
    case Buffer::scratch:
      return scratch_.data() + offset;
  }
  return nullptr;
}

Execution::Fired Execution::fire(uint32_t i) {
  if (!may_fire(i)) {
    return Fired::not_ready;
  }
  const Step& step = program_->program().steps[i];
  const uint32_t chunk = next_chunk_[i];
  const uint64_t offset = bytes_before(step, chunk);
  const auto length = static_cast<uint32_t>(bytes_before(step, chunk + 1) - offset);
  if (!take_rooms(i, length)) {
    return Fired::no_room;
  }
  sources_.clear();
  for (size_t s = 0; s < step.sources.size(); ++s) {
    const Source& source = step.sources[s];
    sources_.push_back(source.kind == Source::Kind::local
                           ? address(source.buffer, source.offset + offset)
                           : lanes_[program_->incoming_of(i, s)].waiting[chunk % kLaneWindow].bytes().data());
  }
  put_result(i, offset, length);
  finish_chunk(i);
  return Fired::yes;
}

void Execution::put_result(uint32_t i, uint64_t offset, uint32_t length) {
  const Step& step = program_->program().steps[i];
  const Target* local = local_target(step);
  const uint32_t divisor = step.finishes ? operands_.divisor : 0;
  const bool is_computed = sources_.size() > 1 || divisor != 0;
  std::byte* first = local != nullptr ? address(local->buffer, local->offset + offset) : rooms_[0].bytes;
  if (length > 0 && is_computed) {
    reduce(operands_.type, operands_.reduction, first, sources_, length, divisor);
  } else if (length > 0 && local != nullptr && first != sources_[0]) {
    copy_bytes(first, sources_[0], length);
  }
  if (length > 0) {
    const std::byte* result = is_computed || local != nullptr ? first : sources_[0];
    for (const Port::Room& to : rooms_) {
      if (to.bytes != result) {
        port_->fill(to, result, length);
      }
    }
  }
  size_t room = 0;
  for (const Target& target : step.targets) {
    if (target.kind == Target::Kind::lane) {
      port_->send(rooms_[room++], length, target.peer, target.via, {call_, target.lane, next_chunk_[i]});
    }
  }
}

void Execution::finish_chunk(uint32_t i) {
  const Step& step = program_->program().steps[i];
  const uint32_t chunk = next_chunk_[i]++;
  const uint32_t n_chunks = program_->n_chunks(i);
  if (next_chunk_[i] == n_chunks) {
    --n_unfinished_;
  } else {
    set_bit(ready_, i);
  }
  for (size_t s = 0; s < step.sources.size(); ++s) {
    if (step.sources[s].kind == Source::Kind::local) {
      continue;
    }
    Lane& lane = lanes_[program_->incoming_of(i, s)];
    lane.waiting[chunk % kLaneWindow] = Parcel();
    --n_waiting_;
    lane.used = chunk + 1;
    // The peer may send up to told + window: that is worth a word only if there is more than that.
    if (lane.used - lane.told >= kChunksPerWord && lane.told + kLaneWindow < n_chunks) {
      lane.told = lane.used;
      port_->tell_used(step.sources[s].peer, {call_, step.sources[s].lane, lane.used});
    }
  }
  for (const uint32_t dependent : program_->dependents(i)) {
    set_bit(ready_, dependent);
  }
  if (!hazards_.empty()) {
    std::fill(ready_.begin(), ready_.end(), ~uint64_t{0});
  }
}

bool Execution::advance() {
  bool has_done = false;
  const auto n_steps = static_cast<uint32_t>(next_chunk_.size());
  for (bool goes_on = true; goes_on;) {
    goes_on = false;
    for (size_t word = 0; word < ready_.size(); ++word) {
      uint64_t left = std::exchange(ready_[word], 0);
      for (; left != 0; left &= left - 1) {
        const auto step = static_cast<uint32_t>(word * 64) + static_cast<uint32_t>(std::countr_zero(left));
        if (step >= n_steps) {
          break;
        }
        const Fired fired = fire(step);
        goes_on = goes_on || fired == Fired::yes;
        if (fired == Fired::no_room) {
          set_bit(ready_, step);  // the next call tries again
        }
      }
    }
    has_done = has_done || goes_on;
  }
  return has_done;
}

void Execution::drop() {
  for (Lane& lane : lanes_) {
    for (size_t i = 0; n_waiting_ > 0 && i < kLaneWindow; ++i) {
      if (lane.waiting[i].is_here()) {
        lane.waiting[i] = Parcel();
        --n_waiting_;
      }
    }
    lane.used = 0;
    lane.told = 0;
  }
  std::fill(ready_.begin(), ready_.end(), 0);
}

uint64_t Execution::chunks_done() const {
  uint64_t done = 0;
  for (const uint32_t chunk : next_chunk_) {
    done += chunk;
  }
  return done;
}

uint64_t Execution::chunks_total() const {
  uint64_t total = 0;
  for (uint32_t i = 0; i < next_chunk_.size(); ++i) {
    total += program_->n_chunks(i);
  }
  return total;
}

uint32_t Execution::awaited_peer() const {
  for (const auto& end : program_->incoming()) {
    const uint32_t chunk = next_chunk_[end.step];
    if (chunk < program_->n_chunks(end.step) && !lanes_[end.index].waiting[chunk % kLaneWindow].is_here()) {
      return end.peer;
    }
  }
  return kNoStep;
}

}  // namespace ringbolt::collective
