// What comes from the other ranks of a group, chunks and words, and what this one tells them about its calls.
#include <fmt/core.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "group/communicator.h"

namespace ringbolt::group {
namespace {

/// The transfer of words about a message that its receiver says. Its sender says 0: messages both ways have the same
/// numbers.
constexpr uint16_t kToldByReceiver = 1;

}  // namespace

CallId Communicator::id_of(const engine::ChunkHeader& header) const {
  CallId id;
  id.number = header.call;
  id.phase = phase_of(header.signature);
  if ((header.group & kMessageGroup) != 0) {
    id.is_message = true;
    id.source = rank_of(header.source);
    id.destination = rank_;
  }
  return id;
}

Call* Communicator::find(const CallId& id) const {
  for (const auto& call : active_) {
    if (call->id() == id) {
      return call.get();
    }
  }
  return nullptr;
}

Call* Communicator::find_asked(const CallId& id) const {
  for (const auto& call : active_) {
    if (call->id().in(id.phase) == id && call->id().phase != Phase::counting) {
      return call.get();
    }
  }
  return nullptr;
}

void Communicator::on_chunk(const engine::ChunkHeader& header, const engine::Receipt& receipt) {
  hear_ended_before(header);
  if (short_ != nullptr && take_short(header, receipt)) {
    return;
  }
  const CallId id = id_of(header);
  Call* const call = find(id);
  if (call != nullptr && !call->is_held()) {
    take(*call, header, receipt);
    return;
  }
  if ((call == nullptr && numbers_.is_past(id)) || !broken_.is_ok()) {
    engine_->release(receipt.id);  // of a call that has failed here, or is another one
    if (Call* const asked = find_asked(id); asked != nullptr && asked->id().is_rival_of(id)) {
      differ(*asked, rank_of(header.source));
    }
    return;
  }
  if (numbers_.is_too_far(id)) {
    engine_->release(receipt.id);  // nobody who keeps to the rules is so far ahead
    return;
  }
  early_.add(id, {header, engine_->settle(receipt)});
}

void Communicator::take(Call& call, const engine::ChunkHeader& header, const engine::Receipt& receipt) {
  const uint32_t peer = rank_of(header.source);
  collective::Parcel parcel(&call, receipt.id, receipt.bytes);
  if (call.is_done()) {
    return;
  }
  if (header.signature != call.signature()) {
    differ(call, peer);
    return;
  }
  const auto taken = call.execution().arrive(peer, {header.call, header.transfer, header.chunk}, std::move(parcel));
  if (taken != collective::Taken::ok) {
    fail(call, {EPROTO, fmt::format("{}: rank {} sent chunk {} of transfer {}, which its schedule here does not have",
                                    call.shape().text(), peer, header.chunk, header.transfer)});
    return;
  }
  call.advance();
}

/// A word is a member's claim: it can end calls of this group, and nothing else. Words may come in another order than
/// they were sent, and before chunks that were sent before them.
void Communicator::on_word(const engine::ChunkHeader& header, const Word& word) {
  if (word.kind == WordKind::aborted) {
    // 0 would say that all went well.
    break_off({word.code == 0 ? EPROTO : word.code, word.text});
    return;
  }
  const uint32_t peer = rank_of(header.source);
  if (word.kind == WordKind::finished) {
    numbers_.hear_finished(peer, (header.group & kMessageGroup) != 0, header.call);
    return;
  }
  hand_over_short();
  CallId id = id_of(header);
  if (word.kind != WordKind::used) {
    id.phase = Phase::only;  // it is about all of the call
  }
  if (id.is_message && (word.kind == WordKind::used || header.transfer == kToldByReceiver)) {
    std::swap(id.source, id.destination);  // of what we send
  }
  Call* const call = word.kind == WordKind::used ? find(id) : find_asked(id);
  if (word.kind == WordKind::used) {
    if (call != nullptr && !call->is_done() && !call->is_held()) {
      hear_used(*call, header);
    }
    return;
  }
  if (call != nullptr) {
    hear_failure(*call, peer, word);
  } else if (!numbers_.is_past(id)) {
    // The first one counts: insert() leaves one that is there.
    if (early_words_.size() < kMostEarlyWords) {
      early_words_.insert({id, {peer, word}});
    }
  } else if (word.kind == WordKind::differs && (id.is_message || std::ranges::count(failed_, id.number) == 0)) {
    // This rank's part is over, as a sender's is early, and nobody else would tell: those who wait for the peer
    // neither. Of a call that has failed here all have been told, and better.
    tell(id, header.signature,
         {WordKind::failed, EPROTO,
          fmt::format("call {}: rank {} called {}, and rank {} something else, which has ended there", id.number, peer,
                      word.text, rank_)});
  }
}

/// What the schedule does not have is dropped without a word: the chunks themselves show what is wrong.
void Communicator::hear_used(Call& call, const engine::ChunkHeader& header) {
  const uint32_t peer = rank_of(header.source);
  if (call.execution().hear_used(peer, {header.call, header.transfer, header.chunk}) == collective::Taken::ok) {
    call.advance();
  }
}

void Communicator::hear_failure(Call& call, uint32_t peer, const Word& word) {
  if (word.kind != WordKind::differs) {
    call.finish({word.code == 0 ? EPROTO : word.code, word.text});
    return;
  }
  const std::string mine = call.shape().text();
  const Status status{
      EPROTO,
      fmt::format("call {}: rank {} called {}, and rank {} called {}{}", call.id().number, peer, word.text, rank_, mine,
                  mine == word.text ? " with other shares, another algorithm or other cables" : "")};
  tell(call, {WordKind::failed, status.code, status.text});
  call.finish(status);
}

void Communicator::fail(Call& call, const Status& status) {
  if (call.is_done()) {
    return;
  }
  tell(call, {WordKind::failed, status.code == ETIMEDOUT ? ECANCELED : status.code,
              fmt::format("rank {} gave up: {}", rank_, status.text)});
  call.finish(status);
}

void Communicator::differ(Call& call, uint32_t peer) {
  // The peer knows what it has called itself, and tells everybody. So does a call that has failed here.
  const bool has_failed = call.is_done() && !call.status().is_ok();
  if (!call.is_disputed && !has_failed) {
    call.is_disputed = true;
    tell_one(peer, call.id(), call.signature(), {WordKind::differs, EPROTO, call.shape().text()});
  }
}

/// What has come for a call that turns out to be another one here.
void Communicator::dispute_early(const CallId& id) {
  for (const Phase phase : {Phase::only, Phase::counting, Phase::counted}) {
    if (!id.in(phase).is_rival_of(id)) {
      continue;
    }
    for (const Early& chunk : early_.take(id.in(phase))) {
      engine_->release(chunk.receipt.id);
      differ(*find_asked(id), rank_of(chunk.header.source));
    }
  }
}

void Communicator::tell(const CallId& id, uint32_t signature, const Word& word) {
  for (uint32_t peer = 0; peer < n_ranks(); ++peer) {
    // A message is between two: others don't know its number.
    const bool is_concerned = !id.is_message || peer == id.source || peer == id.destination;
    if (is_concerned && peer != rank_) {
      tell_one(peer, id, signature, word);
    }
  }
}

void Communicator::tell_one(uint32_t peer, const CallId& id, uint32_t signature, const Word& word) {
  engine::Address address;
  address.destination = member(peer);
  address.group = id.is_message ? static_cast<uint16_t>(id_ | kMessageGroup) : id_;
  address.call = id.number;
  const bool is_receiver = word.kind != WordKind::finished && id.is_message && id.destination == rank_;
  address.transfer = is_receiver ? kToldByReceiver : 0;
  address.signature = signature;
  engine_->send_word(emit(word), address);
}

}  // namespace ringbolt::group
