// Hot path: no allocation, no lock, no system call.
#include "collective/short_execution.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "base/assert.h"

namespace ringbolt::collective {
namespace {

constexpr uint64_t bit(uint32_t i) { return uint64_t{1} << i; }

}  // namespace

bool ShortExecution::fits(const CompiledProgram& program, uint32_t most_bytes) {
  return program.steps().size() <= kMostSteps && program.incoming().size() <= kMostTransfers &&
         std::all_of(program.steps().begin(), program.steps().end(),
                     [&](const Step& step) { return step.n_chunks == 1 && step.bytes <= most_bytes; });
}

ShortExecution::ShortExecution(std::shared_ptr<const CompiledProgram> program)
    : program_(std::move(program)),
      awaited_(program_->steps().size()),
      scratch_(program_->scratch_bytes()),
      waiting_(program_->incoming().size()) {
  const auto n_steps = static_cast<uint32_t>(awaited_.size());
  RINGBOLT_ASSERT(n_steps <= kMostSteps && waiting_.size() <= kMostTransfers);
  all_ = n_steps == kMostSteps ? ~uint64_t{0} : bit(n_steps) - 1;
  for (uint32_t i = 0; i < n_steps; ++i) {
    const Step& step = program_->steps()[i];
    awaited_[i].step = &step;
    sources_.resize(std::max(sources_.size(), step.sources.size()));
    slots_.resize(std::max(slots_.size(), step.targets.size()));
    awaited_[i].is_forwarded =
        step.sources.size() == 1 && step.targets.size() == 1 && !step.has_local && !step.finishes;
    for (const CompiledProgram::Source& source : step.sources) {
      if (source.is_transfer) {
        awaited_[i].transfers |= bit(source.transfer_index);
      } else if (source.after != kNoStep) {
        awaited_[i].steps |= bit(source.after);
      }
    }
    unfed_ |= awaited_[i].transfers == 0 ? bit(i) : 0;
  }
}

void ShortExecution::start(uint32_t call, const Operands& operands, PointToPoint& p2p) {
  drop();
  call_ = call;
  operands_ = operands;
  p2p_ = &p2p;
  buffers_ = {const_cast<std::byte*>(operands.input), operands.output, scratch_.data()};
  pending_ = all_;
  arrived_ = fed_ = 0;
  const auto shift = reinterpret_cast<uintptr_t>(operands.output) - reinterpret_cast<uintptr_t>(operands.input);
  if (readers_of_ != shift) [[unlikely]] {
    readers_of_ = shift;
    find_readers();
  }
}

/// A step that writes output waits for those that read the same bytes as input.
void ShortExecution::find_readers() {
  const std::vector<Step>& steps = program_->steps();
  for (uint32_t writer = 0; writer < steps.size(); ++writer) {
    awaited_[writer].readers = 0;
    if (!steps[writer].has_local || steps[writer].local_buffer != Buffer::output) {
      continue;
    }
    const std::byte* to = operands_.output + steps[writer].local_offset;
    for (uint32_t reader = 0; reader < steps.size(); ++reader) {
      for (const CompiledProgram::Source& source : steps[reader].sources) {
        const std::byte* from = operands_.input + source.offset;
        const bool reads_input = !source.is_transfer && source.buffer == Buffer::input;
        if (reader != writer && reads_input && from < to + steps[writer].bytes && to < from + steps[reader].bytes) {
          awaited_[writer].readers |= bit(reader);
        }
      }
    }
  }
}

/// With the steps that it does compiled into it.
[[gnu::flatten]] bool ShortExecution::advance() {
  for (bool goes_on = true; goes_on;) {
    goes_on = false;
    bool has_passed_over = false;  // one that a later one may make ready
    // Any other one awaits a chunk: when that comes it is done, or is one of these.
    for (uint64_t left = pending_ & (unfed_ | fed_); left != 0; left &= left - 1) {
      const auto step = static_cast<uint32_t>(std::countr_zero(left));
      if (!is_ready(step)) {
        has_passed_over = true;
        continue;
      }
      if (!fire(step)) {
        return false;
      }
      goes_on = has_passed_over;
    }
  }
  return true;
}

[[gnu::flatten]] bool ShortExecution::arrive(uint32_t peer, const ChunkTag& tag, uint64_t parcel,
                                             std::span<const std::byte> bytes) {
  const auto* end = CompiledProgram::find(program_->incoming(), peer, tag.transfer);
  if (end == nullptr || tag.chunk != 0 || (arrived_ & bit(end->index)) != 0 ||
      bytes.size() != awaited_[end->step].step->bytes) {
    return false;
  }
  arrived_ |= bit(end->index);
  waiting_transfers_ |= bit(end->index);
  Waiting& waiting = waiting_[end->index];
  // The bytes lie in the engine's memory, good until on_chunk() returns, or settle() has said where they are then.
  waiting = {parcel, bytes};
  // Not ready, or no slot: advance() does it later.
  if (!is_ready(end->step) || !fire(end->step)) {
    const PointToPoint::Place place = p2p_->settle(parcel, bytes);
    waiting = {place.parcel, place.bytes};
    fed_ |= bit(end->step);
  }
  return true;
}

/// A step that is ready, if there are slots.
bool ShortExecution::fire(uint32_t i) {
  const Awaited& awaited = awaited_[i];
  const Step& step = *awaited.step;
  const auto length = static_cast<uint32_t>(step.bytes);
  if (awaited.is_forwarded) {  // as put_chunk() would
    const CompiledProgram::Target& to = step.targets[0];
    if (!p2p_->send_copy(bytes_of(step.sources[0]), length, to.peer, to.via, {call_, to.transfer, 0})) {
      return false;
    }
  } else if (length > 0 || !step.targets.empty()) {
    for (size_t k = 0; k < step.sources.size(); ++k) {
      sources_[k] = bytes_of(step.sources[k]);
    }
    if (!step.targets.empty() && !take_slots(*p2p_, step, length, slots_)) {
      return false;
    }
    std::byte* const local = step.has_local ? address(step.local_buffer, step.local_offset) : nullptr;
    put_chunk(*p2p_, step, operands_, {sources_.data(), step.sources.size()}, local, slots_, length, {call_, 0, 0});
  }
  // Before the parcels are released: nothing reads them any more.
  pending_ &= ~bit(i);
  waiting_transfers_ &= ~awaited.transfers;
  for (uint64_t used = awaited.transfers; used != 0; used &= used - 1) {
    p2p_->release(waiting_[static_cast<size_t>(std::countr_zero(used))].parcel);
  }
  return true;
}

void ShortExecution::drop() {
  for (uint64_t left = std::exchange(waiting_transfers_, 0); left != 0; left &= left - 1) {
    p2p_->release(waiting_[static_cast<size_t>(std::countr_zero(left))].parcel);
  }
}

void ShortExecution::hand_over(Execution& to) {
  to.start_after(all_ & ~std::exchange(pending_, 0), call_, operands_, *p2p_);
  for (const CompiledProgram::TransferEnd& end : program_->incoming()) {
    if ((waiting_transfers_ & bit(end.index)) != 0) {
      waiting_transfers_ &= ~bit(end.index);
      const Waiting& waiting = waiting_[end.index];
      // It has been judged already; and whoever hands over was about to let the other one advance.
      (void)to.arrive(end.peer, {call_, end.transfer, 0}, Parcel(p2p_, waiting.parcel, waiting.bytes));
    }
  }
}

}  // namespace ringbolt::collective
