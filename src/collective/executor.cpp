// Hot path: no allocation once started, no lock, no system call.
#include "collective/executor.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "base/assert.h"

namespace ringbolt::collective {
namespace {

/// So many chunks at a time, some milliseconds at most: meanwhile this rank relays nothing and seems frozen to others.
/// Of up to 64 KiB each: 4 MiB to add up.
constexpr uint32_t kMostPerTurn = 64;

void set_bit(std::vector<uint64_t>& bits, uint32_t i) { bits[i / 64] |= uint64_t{1} << (i % 64); }

}  // namespace

Execution::Execution(std::shared_ptr<const CompiledProgram> program) : program_(std::move(program)) {
  const size_t n_steps = program_->steps().size();
  scratch_.resize(program_->scratch_bytes());
  next_chunk_.resize(n_steps);
  ready_.resize((n_steps + 63) / 64);
  transfers_ = std::vector<Transfer>(program_->incoming().size());
  allowed_.resize(program_->outgoing().size());
  for (const Step& step : program_->steps()) {
    sources_.resize(std::max(sources_.size(), step.sources.size()));
    slots_.resize(std::max(slots_.size(), step.targets.size()));
  }
}

void Execution::start(uint32_t call, const Operands& operands, PointToPoint& p2p) {
  drop();
  call_ = call;
  operands_ = operands;
  buffers_ = {const_cast<std::byte*>(operands.input), operands.output, scratch_.data()};
  p2p_ = &p2p;
  std::fill(next_chunk_.begin(), next_chunk_.end(), 0);
  std::fill(allowed_.begin(), allowed_.end(), kTransferWindow);
  n_unfinished_ = next_chunk_.size();
  for (const uint32_t step : program_->unfed()) {
    set_bit(ready_, step);
  }
  find_hazards();
}

void Execution::start_after(uint64_t done, uint32_t call, const Operands& operands, PointToPoint& p2p) {
  start(call, operands, p2p);
  RINGBOLT_ASSERT(next_chunk_.size() <= 64);
  for (uint32_t i = 0; i < next_chunk_.size(); ++i) {
    if ((done >> i & 1) == 0) {
      set_bit(ready_, i);
      continue;
    }
    RINGBOLT_ASSERT(program_->steps()[i].n_chunks == 1);
    next_chunk_[i] = 1;
    --n_unfinished_;
    for (const CompiledProgram::Source& source : program_->steps()[i].sources) {
      if (source.is_transfer) {
        transfers_[source.transfer_index].used = 1;
      }
    }
  }
}

void Execution::find_hazards() {
  const auto shift = reinterpret_cast<uintptr_t>(operands_.output) - reinterpret_cast<uintptr_t>(operands_.input);
  // Only how the two lie to each other matters: the next call of the same kind need not search again.
  if (hazards_of_ == shift) {
    return;
  }
  hazards_of_ = shift;
  hazards_.clear();
  held_up_.clear();
  const std::vector<Step>& steps = program_->steps();
  for (uint32_t writer = 0; writer < steps.size(); ++writer) {
    if (!steps[writer].has_local || steps[writer].local_buffer != Buffer::output) {
      continue;
    }
    const std::byte* to = operands_.output + steps[writer].local_offset;
    for (uint32_t reader = 0; reader < steps.size(); ++reader) {
      for (const CompiledProgram::Source& source : steps[reader].sources) {
        const bool reads_input = !source.is_transfer && source.buffer == Buffer::input;
        const std::byte* from = operands_.input + source.offset;
        if (reader == writer || !reads_input || from >= to + steps[writer].bytes || to >= from + steps[reader].bytes) {
          continue;
        }
        hazards_.resize(steps.size());
        hazards_[writer].push_back({reader, to - from});
        held_up_.resize(steps.size());
        held_up_[reader].push_back(writer);
      }
    }
  }
}

Taken Execution::arrive(uint32_t peer, const ChunkTag& tag, Parcel parcel) {
  const auto* end = CompiledProgram::find(program_->incoming(), peer, tag.transfer);
  if (end == nullptr) {
    return Taken::no_such_transfer;
  }
  const Step& step = program_->steps()[end->step];
  if (tag.chunk >= step.n_chunks ||
      parcel.bytes().size() != step.bytes_before(tag.chunk + 1) - step.bytes_before(tag.chunk)) {
    return Taken::wrong_length;
  }
  Transfer& transfer = transfers_[end->index];
  if (tag.chunk < transfer.used || tag.chunk - transfer.used >= kTransferWindow ||
      transfer.waiting[tag.chunk % kTransferWindow].is_here()) {
    return Taken::out_of_window;
  }
  transfer.waiting[tag.chunk % kTransferWindow] = std::move(parcel);
  ++n_waiting_;
  if (tag.chunk == transfer.used) {
    const Fired fired = fire(end->step);
    // Used at once, from where it was received: no copy, and nothing to settle.
    if (fired == Fired::yes) {
      return Taken::ok;
    }
    if (fired == Fired::no_slot) {
      set_bit(ready_, end->step);
    }
  }
  // It may wait for long: its memory must not hold up what the engine receives into.
  transfer.waiting[tag.chunk % kTransferWindow].settle();
  return Taken::ok;
}

Taken Execution::hear_used(uint32_t peer, const ChunkTag& tag) {
  const auto* end = CompiledProgram::find(program_->outgoing(), peer, tag.transfer);
  if (end == nullptr) {
    return Taken::no_such_transfer;
  }
  if (tag.chunk > next_chunk_[end->step]) {
    return Taken::out_of_window;
  }
  // Words may come in any order: the greatest counts. More than has been sent is refused above.
  allowed_[end->index] = std::max(allowed_[end->index], tag.chunk + kTransferWindow);
  set_bit(ready_, end->step);
  return Taken::ok;
}

bool Execution::is_written(const CompiledProgram::Source& source, uint64_t offset, uint64_t length) const {
  const Step& writer = program_->steps()[source.after];
  const uint32_t done = next_chunk_[source.after];
  return done == writer.n_chunks ||
         (!source.after_all && source.written_from + writer.bytes_before(done) >= source.offset + offset + length);
}

bool Execution::may_write(uint32_t step, uint64_t offset, uint64_t length) const {
  for (const Hazard& hazard : hazards_[step]) {
    const Step& reader = program_->steps()[hazard.reader];
    const uint32_t done = next_chunk_[hazard.reader];
    if (done < reader.n_chunks &&
        static_cast<int64_t>(reader.bytes_before(done)) < static_cast<int64_t>(offset + length) + hazard.shift) {
      return false;
    }
  }
  return true;
}

/// False while one of them is not there yet.
bool Execution::find_sources(const Step& step, uint32_t chunk, uint64_t offset, uint32_t length) {
  for (size_t i = 0; i < step.sources.size(); ++i) {
    const CompiledProgram::Source& source = step.sources[i];
    if (source.is_transfer) {
      const Parcel& parcel = transfers_[source.transfer_index].waiting[chunk % kTransferWindow];
      if (!parcel.is_here()) {
        return false;
      }
      sources_[i] = parcel.bytes().data();
    } else {
      if (source.after != kNoStep && !is_written(source, offset, length)) {
        return false;
      }
      sources_[i] = address(source.buffer, source.offset + offset);
    }
  }
  return true;
}

/// The step's next chunk, if all that it needs is there.
Execution::Fired Execution::fire(uint32_t i) {
  const Step& step = program_->steps()[i];
  const uint32_t chunk = next_chunk_[i];
  if (chunk == step.n_chunks || (step.is_fed && n_waiting_ == 0)) {
    return Fired::not_ready;
  }
  const uint64_t offset = step.bytes_before(chunk);
  const auto length = static_cast<uint32_t>(step.bytes_before(chunk + 1) - offset);
  const bool writes_output = step.has_local && step.local_buffer == Buffer::output;
  if (!find_sources(step, chunk, offset, length) ||
      (writes_output && !hazards_.empty() && !may_write(i, offset, length))) {
    return Fired::not_ready;
  }
  for (const CompiledProgram::Target& target : step.targets) {
    if (chunk >= allowed_[target.transfer_index]) {
      return Fired::not_ready;
    }
  }
  if (!take_slots(*p2p_, step, length, slots_)) {
    return Fired::no_slot;
  }
  put_result(step, chunk, offset, length);
  finish_chunk(i);
  return Fired::yes;
}

void Execution::put_result(const Step& step, uint32_t chunk, uint64_t offset, uint32_t length) {
  std::byte* const local = step.has_local ? address(step.local_buffer, step.local_offset + offset) : nullptr;
  put_chunk(*p2p_, step, operands_, {sources_.data(), step.sources.size()}, local, slots_, length, {call_, 0, chunk});
}

void Execution::finish_chunk(uint32_t i) {
  const Step& step = program_->steps()[i];
  const uint32_t chunk = next_chunk_[i]++;
  if (chunk + 1 == step.n_chunks) {
    --n_unfinished_;
  } else {
    set_bit(ready_, i);
  }
  for (const CompiledProgram::Source& source : step.sources) {
    if (!source.is_transfer) {
      continue;
    }
    Transfer& transfer = transfers_[source.transfer_index];
    transfer.waiting[chunk % kTransferWindow] = Parcel();
    --n_waiting_;
    transfer.used = chunk + 1;
    // The peer may send up to told + window: that is worth a word only if there is more than that.
    if (transfer.used - transfer.told >= kChunksPerWord && transfer.told + kTransferWindow < step.n_chunks) {
      transfer.told = transfer.used;
      const CompiledProgram::TransferEnd& end = program_->incoming()[source.transfer_index];
      p2p_->tell_used(end.peer, {call_, end.transfer, transfer.used});
    }
  }
  for (const uint32_t dependent : step.dependents) {
    set_bit(ready_, dependent);
  }
  if (!held_up_.empty()) {
    for (const uint32_t writer : held_up_[i]) {
      set_bit(ready_, writer);
    }
  }
}

bool Execution::advance() {
  bool has_done = false;
  uint32_t n_fired = 0;
  wants_turn_ = false;
  const auto n_steps = static_cast<uint32_t>(next_chunk_.size());
  for (bool goes_on = true; goes_on;) {
    goes_on = false;
    for (size_t word = 0; word < ready_.size(); ++word) {
      // Taken out first: fire() may set bits of the same word again, which the next round takes.
      uint64_t left = std::exchange(ready_[word], 0);
      for (; left != 0; left &= left - 1) {
        const auto step = static_cast<uint32_t>(word * 64) + static_cast<uint32_t>(std::countr_zero(left));
        if (step >= n_steps) {
          break;
        }
        const Fired fired = fire(step);
        goes_on = goes_on || fired == Fired::yes;
        if (fired == Fired::no_slot) {
          set_bit(ready_, step);  // the next call tries again
        }
        n_fired += fired == Fired::yes ? 1 : 0;
        if (n_fired == kMostPerTurn) {
          // What was taken out and not tried; the words behind this one still have theirs.
          ready_[word] |= left & (left - 1);
          wants_turn_ = true;
          return true;
        }
      }
    }
    has_done = has_done || goes_on;
  }
  return has_done;
}

/// While its PointToPoint lives: parcels give their memory back to it.
void Execution::drop() {
  for (Transfer& transfer : transfers_) {
    for (size_t i = 0; n_waiting_ > 0 && i < kTransferWindow; ++i) {
      if (transfer.waiting[i].is_here()) {
        transfer.waiting[i] = Parcel();
        --n_waiting_;
      }
    }
    transfer.used = 0;
    transfer.told = 0;
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
    total += program_->steps()[i].n_chunks;
  }
  return total;
}

uint32_t Execution::awaited_peer() const {
  for (const auto& end : program_->incoming()) {
    const uint32_t chunk = next_chunk_[end.step];
    if (chunk < program_->steps()[end.step].n_chunks &&
        !transfers_[end.index].waiting[chunk % kTransferWindow].is_here()) {
      return end.peer;
    }
  }
  return kNoStep;
}

uint32_t Execution::full_peer() const {
  for (const auto& end : program_->outgoing()) {
    const uint32_t chunk = next_chunk_[end.step];
    if (chunk < program_->steps()[end.step].n_chunks && chunk >= allowed_[end.index]) {
      return end.peer;
    }
  }
  return kNoStep;
}

}  // namespace ringbolt::collective
