// Hot path, but for prepare_short() and hand_over_short(): collectives that were called before and are short.
#include "group/short_calls.h"

#include "group/communicator.h"

namespace ringbolt::group {

void Communicator::prepare_short(const ShortKey& key, const Asked& asked) {
  const PlanCache::Plan& plan = plans_.latest();
  if (engine_ == nullptr || !collective::ShortExecution::fits(*plan.program, ShortCalls::kMostBytes)) {
    return;
  }
  if (std::unique_ptr<ShortCall>* const place = short_calls_.place_for(key)) {
    *place = std::make_unique<ShortCall>(
        key, std::make_shared<Call>(*this, CallId{}, plan.shape, plan.signature, UINT64_MAX), plan.program);
    ShortCall& made = **place;
    made.call->begin_after_all_others();
    made.operands = operands_of(plan.shape, asked);
    made.has_input = asked.input != nullptr;
    made.has_output = asked.output != nullptr;
  }
}

ShortCall* Communicator::begin_short(ShortKey key, const void* input, void* output) {
  ShortCall* const begun = short_calls_.find(key);
  // One at a time: another thread may be in a call of this group.
  if (begun == nullptr || begun->is_in_use || short_ != nullptr || !broken_.is_ok() ||
      (begun->has_input && input == nullptr) || (begun->has_output && output == nullptr)) {
    return nullptr;
  }
  if (!active_.empty()) {
    retire_done();  // what has ended, and nobody has waited for
  }
  const CallId id{false, 0, 0, numbers_.next_collective()};
  // Only if all calls before it have ended may its chunks say so (Call::begin_after_all_others()).
  if (!active_.empty() || !early_words_.empty() || !early_.are_plain() || !numbers_.may_begin(id.number)) {
    return nullptr;
  }
  numbers_.take_collective();
  // It was a call like all others last time: more of it has to be made new.
  if (begun->is_handed_over) [[unlikely]] {
    begun->call->renew(id);
  } else {
    begun->call->renumber(id.number);
  }
  begun->operands.input = static_cast<const std::byte*>(input);
  begun->operands.output = static_cast<std::byte*>(output);
  begun->is_in_use = true;
  begun->is_handed_over = false;
  short_ = begun;
  // Until end_short() or hand_over_short(): the engine gives its chunks to this without asking whose they are.
  engine_->await(*this, id_, id.number);
  begun->execution.start(id.number, begun->operands, *begun->call);
  go_on_with_short();
  if (early_.has(id.number)) {
    // What take() shows is good until the next take(): neither of the two below calls it.
    for (const Early& chunk : early_.take(id)) {
      if (!take_short(chunk.header, chunk.receipt)) {
        on_chunk(chunk.header, chunk.receipt);
      }
    }
  }
  return begun;
}

/// Does what can be done.
void Communicator::go_on_with_short() {
  if (!short_->execution.advance()) [[unlikely]] {
    hand_over_short();  // there is no memory: it waits as others do
  }
}

/// A chunk of the short call that it would get anyhow, by way of those who find out whose it is.
bool Communicator::on_awaited(const engine::ChunkHeader& header, const engine::Receipt& receipt) {
  if (!has(header.source)) {
    return false;
  }
  hear_ended_before(header);
  return take_short(header, receipt);
}

/// False: it is none of the short call's, which may have been handed over therefore.
bool Communicator::take_short(const engine::ChunkHeader& header, const engine::Receipt& receipt) {
  if (short_ == nullptr || header.call != short_->call->id().number || header.group != id_) {
    return false;
  }
  if (header.signature != short_->call->signature() ||
      !short_->execution.arrive(rank_of(header.source), {header.call, header.transfer, header.chunk}, receipt.id,
                                receipt.bytes)) [[unlikely]] {
    hand_over_short();
    return false;
  }
  if (!short_->execution.is_done()) {
    go_on_with_short();
  }
  return true;
}

void Communicator::hand_over_short() {
  if (short_ == nullptr) [[likely]] {
    return;
  }
  // First, as what follows may ask again.
  ShortCall& one = *std::exchange(short_, nullptr);
  engine_->await_no_more(*this);
  one.is_handed_over = true;
  one.call->is_waited = true;
  active_.push_back(one.call);
  one.call->go_on(one.execution, one.operands);
}

void Communicator::end_short(ShortCall& call, Status& status) {
  call.is_in_use = false;
  if (call.is_handed_over) [[unlikely]] {
    status = call.call->status();
    end_waited(*call.call);
    return;
  }
  short_ = nullptr;
  engine_->await_no_more(*this);
  note_retired(1);
}

}  // namespace ringbolt::group
