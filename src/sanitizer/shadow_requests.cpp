// Requests from when they are posted until they are over, and the memory in which their data wait.

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/lock_guard.h"
#include "sanitizer/mapped.h"
#include "sanitizer/poison.h"
#include "sanitizer/shadow.h"

namespace ringbolt::sanitizer {
namespace {

constexpr size_t kMostKnownPoison = size_t{1} << 16U;
constexpr size_t kRoutingHeaderBytes = 40;

std::span<std::byte> own_memory_of(const Piece& piece) {
  return {reinterpret_cast<std::byte*>(piece.address), piece.length};
}

}  // namespace

bool Shadow::take_kept(Request& request, ibv_sge* pieces) {
  if (request.has_unknown_memory || request.pieces.empty() || (request.qp != nullptr && !request.qp->keeps)) {
    return false;
  }
  auto& kept = kept_[request.pd];
  if (kept == nullptr) {
    kept = std::make_unique<KeptMemory>(request.pd, calls_.memory);
  }
  for (Piece& one : request.pieces) {
    one.kept = kept->take(one.length);
    if (one.kept.memory == nullptr) {
      for (Piece& taken : request.pieces) {
        if (taken.kept.memory != nullptr) {
          kept->give_back(std::exchange(taken.kept, {}));
        }
      }
      return false;
    }
  }
  request.kept = kept.get();
  for (const Piece& one : request.pieces) {
    pieces[one.segment] = {reinterpret_cast<uintptr_t>(one.kept.memory), one.length, one.kept.lkey};
  }
  return true;
}

void Shadow::keep(Request& request, ibv_sge* pieces) {
  const bool is_there =
      std::ranges::all_of(request.pieces, [](const Piece& one) { return is_mapped(one.address, one.length); });
  if (!wish_.has(Kind::early) || !is_there || request.is_given_up || !take_kept(request, pieces)) {
    return;
  }
  // A peer may write there at any time what is not ours to take back.
  const Spans* const exposed = &exposed_;
  request.is_poisoned = std::ranges::none_of(request.pieces, [&](const Piece& one) {
    return exposed->overlap(one.address, one.length, [](uint32_t) { return true; }).has_value();
  });
  for (const Piece& one : request.pieces) {
    // Without poison nothing is put back but what the device leaves out of a datagram: the place of a routing header.
    const size_t length = request.is_poisoned ? one.length : std::min<size_t>(one.length, kRoutingHeaderBytes);
    std::memcpy(one.kept.memory, own_memory_of(one).data(), length);
  }
  if (request.is_poisoned) {
    for (const Piece& one : request.pieces) {
      fill_with_poison(own_memory_of(one), request.number);
    }
    if (poisoned_.size() >= kMostKnownPoison) {
      poisoned_.clear();
    }
    poisoned_[request.number] = request.posted;
  }
}

uint32_t Shadow::insert(Owner request) {
  const uint32_t number = request->number;
  Spans& spans = request->use == Use::send ? sent_from_ : written_to_;
  for (const Piece& one : request->pieces) {
    spans.add(one.address, one.length, number);
  }
  if (request->is_one_sided() && wish_.has(Kind::races)) {
    remote_[{request->qp->peer, request->rkey}].add(request->remote_address, request->length, number);
  }
  requests_.emplace(number, std::move(request));
  return number;
}

Shadow::Owner Shadow::take_out(uint32_t number) {
  const auto found = requests_.find(number);
  if (found == requests_.end()) {
    return nullptr;
  }
  Owner request = std::move(found->second);
  requests_.erase(found);
  Spans& spans = request->use == Use::send ? sent_from_ : written_to_;
  for (const Piece& one : request->pieces) {
    spans.remove(one.address, number);
  }
  if (request->is_one_sided() && wish_.has(Kind::races)) {
    const auto peer = remote_.find({request->qp->peer, request->rkey});
    peer->second.remove(request->remote_address, number);
    if (peer->second.is_empty()) {
      remote_.erase(peer);
    }
  }
  if (request->race_place) {
    request->met = race_table_->leave(*request->race_place);
  }
  if (request->use == Use::receive) {
    (request->qp != nullptr ? request->qp->receives : request->srq->posted) -= 1;
  } else {
    request->qp->signaled -= request->is_signaled ? 1U : 0U;
  }
  CompletionQueue* const cq = request->qp == nullptr         ? nullptr
                              : request->use == Use::receive ? request->qp->receive_cq
                              : request->is_signaled         ? request->qp->send_cq
                                                             : nullptr;
  if (cq != nullptr) {
    --cq->expected;
  }
  return request;
}

void Shadow::unpoison(Request& request) {
  if (std::exchange(request.is_poisoned, false)) {
    for (const Piece& one : request.pieces) {
      if (is_mapped(one.address, one.length)) {
        restore(own_memory_of(one), one.kept.memory, request.number);
      }
    }
  }
  request.is_given_up = true;
}

void Shadow::drop(uint32_t number) {
  constexpr size_t kMostOld = 1U << 16U;
  Owner request = take_out(number);
  if (request == nullptr) {
    return;
  }
  if (request->use != Use::receive) {
    std::erase(request->qp->sends, number);
  }
  unpoison(*request);
  for (const Piece& one : request->pieces) {
    if (one.kept.memory != nullptr) {
      request->kept->give_back(one.kept);
    }
  }
  if (old_ids_.size() >= kMostOld) {
    old_ids_.clear();
  }
  old_ids_[number] = request->wr_id;
}

void Shadow::drop_all(const QueuePair& qp) {
  std::vector<uint32_t> numbers;
  for (const auto& [number, request] : requests_) {
    if (request->qp == &qp) {
      numbers.push_back(number);
    }
  }
  for (const uint32_t number : numbers) {
    drop(number);
  }
}

}  // namespace ringbolt::sanitizer
