// What the ranks of a group tell each other about their calls, besides chunks.
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
    hear_finished(peer, header);
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
  } else if (!is_past(id)) {
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

/// Numbers only grow: an older word that comes late changes nothing.
void Communicator::hear_finished(uint32_t peer, const engine::ChunkHeader& header) {
  uint32_t& known = (header.group & kMessageGroup) != 0 ? taken_by_[peer] : finished_[peer];
  if (engine::is_before(known, header.call)) {
    known = header.call;
    note_finished();
  }
}

/// Looked at for every short call: so it is not found out anew each time.
void Communicator::note_finished() {
  uint32_t least = next_call_;
  for (uint32_t rank = 0; rank < finished_.size(); ++rank) {
    if (rank != rank_ && engine::is_before(finished_[rank], least)) {
      least = finished_[rank];
    }
  }
  may_go_before_ = least + kMostAhead;
}

/// Whether all calls that have ended could be counted: some may be newer than one that has not.
bool Communicator::tell_finished() {
  uint32_t finished = next_call_;
  uint32_t n_active = 0;
  std::vector<uint32_t>& taken = received_;
  taken = next_receive_;
  for (const auto& call : active_) {
    const CallId& id = call->id();
    if (id.is_message && id.destination != rank_) {
      continue;
    }
    n_active += id.phase == Phase::counting ? 0U : 1U;  // its number is counted already
    uint32_t& first = id.is_message ? taken[id.source] : finished;
    if (engine::is_before(id.number, first)) {
      first = id.number;
    }
  }
  uint32_t n_held_up = next_call_ - finished;  // and those that are active
  for (uint32_t peer = 0; peer < n_ranks(); ++peer) {
    n_held_up += next_receive_[peer] - taken[peer];
    if (peer == rank_) {
      continue;
    }
    // Unsigned, so right across the wrap.
    if (finished - told_finished_[peer] >= kCallsPerWord) {
      told_finished_[peer] = finished;
      tell_one(peer, {false, 0, 0, finished}, 0, {WordKind::finished, 0, {}});
    }
    if (taken[peer] - told_taken_[peer] >= kCallsPerWord) {
      told_taken_[peer] = taken[peer];
      tell_one(peer, {true, 0, 0, taken[peer]}, 0, {WordKind::finished, 0, {}});
    }
  }
  return n_held_up == n_active;
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
