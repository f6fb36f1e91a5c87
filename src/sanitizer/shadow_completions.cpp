// What is polled: found again, looked at, and given to the program.

#include <algorithm>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "base/crc.h"
#include "base/lock_guard.h"
#include "sanitizer/mapped.h"
#include "sanitizer/poison.h"
#include "sanitizer/shadow.h"
#include "sanitizer/ticket.h"
#include "sanitizer/words.h"

namespace ringbolt::sanitizer {
namespace {

std::span<std::byte> bytes_of(const Piece& piece) {
  return {reinterpret_cast<std::byte*>(piece.address), piece.length};
}

/// Where memory is not mapped any more.
const Piece* find_gone(const Request& request) {
  const auto gone =
      std::ranges::find_if(request.pieces, [](const Piece& one) { return !is_mapped(one.address, one.length); });
  return gone == request.pieces.end() ? nullptr : &*gone;
}

Finding unmapped(const Request& request, const Piece& piece, const base::CallSite& site) {
  return {
      Kind::buffers,
      "memory-unmapped-in-use",
      "memory was unmapped before the completion of a request that uses it",
      fmt::format("{}: its {} bytes at {:#x} are not mapped any more", text_of(request), piece.length, piece.address),
      {{"posted", request.posted}, {"completion polled", site}},
      "unmap or free memory only when the completions of all requests that use it were polled"};
}

/// What is not any more as it was posted; empty: nothing.
std::string change_of(const Request& request) {
  for (const Piece& one : request.pieces) {
    const std::span<const std::byte> memory = bytes_of(one);
    if (std::memcmp(memory.data(), one.kept.memory, one.length) != 0) {
      const auto at = static_cast<size_t>(std::ranges::mismatch(memory, std::span(one.kept.memory, one.length)).in1 -
                                          memory.begin());
      return fmt::format("byte {} of {} at {:#x} was {:#04x} when it was posted, and is {:#04x}", at, one.length,
                         one.address, static_cast<unsigned>(one.kept.memory[at]), static_cast<unsigned>(memory[at]));
    }
  }
  return "";
}

std::string change_of_sum(const Request& request) {
  uint32_t sum = 0;
  for (const Piece& one : request.pieces) {
    sum = base::crc32c(sum, bytes_of(one));
  }
  return sum == request.sum
             ? ""
             : fmt::format("the CRC-32C of its memory at {:#x} was {:#010x} when it was posted, and is {:#010x}",
                           request.pieces[0].address, request.sum, sum);
}

}  // namespace

int Shadow::poll_cq(ibv_cq* cq, int count, ibv_wc* wc, const base::CallSite& site) {
  const int got = calls_.poll_cq(cq, count, wc);
  {
    const base::LockGuard guard(mutex_);
    if (const auto known = queues_.find(cq); known != queues_.end()) {
      known->second->is_armed_late = false;
    }
  }
  for (int i = 0; i < got; ++i) {
    settle(wc[i], site);
  }
  return got;
}

void Shadow::settle(ibv_wc& wc, const base::CallSite& site) {
  const auto number = number_of(wc.wr_id);
  if (!number) {
    return;
  }
  std::vector<Owner> over;
  {
    const base::LockGuard guard(mutex_);
    const auto known = requests_.find(*number);
    if (known == requests_.end()) {
      const auto old = old_ids_.find(*number);
      wc.wr_id = old == old_ids_.end() ? 0 : old->second;
      return;
    }
    Request& request = *known->second;
    wc.wr_id = request.wr_id;
    note_outcome(request, wc, site);
    if (request.use != Use::receive) {
      // What was posted before it without a completion of its own is known to be done as well. Those before it that
      // have one may be settled by another thread at this moment.
      auto& sends = request.qp->sends;
      for (auto at = sends.begin(); at != sends.end() && *at != *number;) {
        if (requests_.at(*at)->is_signaled) {
          ++at;
        } else {
          over.push_back(take_out(*at));
          at = sends.erase(at);
        }
      }
      std::erase(sends, *number);
    }
    over.push_back(take_out(*number));
  }
  for (const Owner& one : over) {
    finish(*one, wc, site);
  }
  const base::LockGuard guard(mutex_);
  for (const Owner& one : over) {
    for (const Piece& piece : one->pieces) {
      if (piece.kept.memory != nullptr) {
        one->kept->give_back(piece.kept);
      }
    }
  }
}

void Shadow::note_outcome(const Request& request, const ibv_wc& wc, const base::CallSite& site) {
  QueuePair* const qp = request.qp;
  // Datagram queue pairs go on after most failures, and who has ended a queue pair himself knows that it is.
  if (wc.status != IBV_WC_SUCCESS && qp != nullptr && qp->type != IBV_QPT_UD && qp->told != IBV_QPS_ERR &&
      !qp->failed) {
    qp->failed = site;
    qp->failure = wc.status;
  }
}

void Shadow::finish(Request& request, const ibv_wc& wc, const base::CallSite& site) {
  if (request.met) {
    reports_.report(race_between_processes(request, *request.met, {"completion polled", site}));
  }
  if (request.is_forsaken) {
    return;
  }
  if (request.use == Use::send) {
    if (wc.status == IBV_WC_SUCCESS) {
      finish_send(request, site);
    }
    return;
  }
  if (request.kept == nullptr) {
    return;
  }
  if (wc.status != IBV_WC_SUCCESS) {
    unpoison(request);
    return;
  }
  const bool is_written_by_peer = request.use == Use::receive && wc.opcode == IBV_WC_RECV_RDMA_WITH_IMM;
  place(request, request.use == Use::read ? request.length : is_written_by_peer ? 0 : wc.byte_len, site);
}

void Shadow::finish_send(Request& request, const base::CallSite& site) {
  if (request.is_given_up || (!request.is_summed && request.kept == nullptr)) {
    return;
  }
  if (const Piece* gone = find_gone(request)) {
    reports_.report(unmapped(request, *gone, site));
    return;
  }
  const std::string change = request.kept != nullptr ? change_of(request) : change_of_sum(request);
  if (!change.empty()) {
    reports_.report({Kind::buffers,
                     "send-buffer-changed",
                     "a send buffer was changed before its completion",
                     fmt::format("{}: {}", text_of(request), change),
                     {{"posted", request.posted}, {"completion polled", site}},
                     "change or free the buffer when its completion was polled, use another one, or send it inline"});
  }
}

void Shadow::place(Request& request, uint64_t length_bytes, const base::CallSite& site) {
  if (const Piece* gone = find_gone(request)) {
    if (wish_.has(Kind::buffers) && !request.is_given_up) {
      reports_.report(unmapped(request, *gone, site));
    }
    return;
  }
  uint64_t offset = 0;
  for (const Piece& one : request.pieces) {
    const std::span<std::byte> memory = bytes_of(one);
    const auto changed = request.is_poisoned ? first_unpoisoned(memory, request.number) : std::nullopt;
    if (changed && !request.is_given_up) {
      request.is_given_up = true;
      reports_.report({Kind::early,
                       "receive-buffer-changed",
                       "memory was written to before what is received there was complete",
                       fmt::format("{}: byte {} of it, at {:#x}, was changed", text_of(request), offset + *changed,
                                   one.address + *changed),
                       {{"posted", request.posted}, {"completion polled", site}},
                       "leave the buffer alone from its post until its completion was polled"});
    }
    const auto received =
        static_cast<size_t>(std::min<uint64_t>(length_bytes - std::min(length_bytes, offset), one.length));
    std::memcpy(memory.data(), one.kept.memory, received);
    if (request.is_poisoned) {
      restore(memory.subspan(received), one.kept.memory + received, request.number);
    }
    offset += one.length;
  }
}

}  // namespace ringbolt::sanitizer
