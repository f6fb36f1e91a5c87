#include "sanitizer/received_data.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "sanitizer/mapped.h"
#include "sanitizer/poison.h"
#include "sanitizer/sent_data.h"
#include "sanitizer/words.h"

namespace ringbolt::sanitizer {
namespace {

constexpr size_t kRoutingHeaderBytes = 40;  // of a datagram (InfiniBand Architecture Specification 1.4, 11.4.1.2)

Finding written_too_early(const Request& request, const Piece& piece, uint64_t offset, size_t at,
                          const base::CallSite& polled) {
  return {Kind::early,
          "receive-buffer-changed",
          "memory was written to before what is received there was complete",
          fmt::format("{}: byte {} of it, at {:#x}, was changed", text_of(request), offset + at, piece.address + at),
          {{"posted", request.posted}, {"completion polled", polled}},
          "leave the buffer alone from its post until its completion was polled"};
}

}  // namespace

void hold_back(Request& request, bool poisons) {
  request.is_poisoned = poisons;
  for (const Piece& one : request.pieces) {
    // Without poison nothing is put back but what the device leaves out of a datagram: the place of a routing header.
    const size_t length = poisons ? one.length : std::min<size_t>(one.length, kRoutingHeaderBytes);
    std::memcpy(one.kept.memory, one.memory().data(), length);
  }
  // Behind all copies: pieces of one request may overlap.
  for (const Piece& one : request.pieces) {
    if (poisons) {
      fill_with_poison(one.memory(), request.number);
    }
  }
}

void unpoison(Request& request) {
  // Once: what the program writes later is its own.
  if (std::exchange(request.is_poisoned, false)) {
    for (const Piece& one : request.pieces) {
      if (is_mapped(one.address, one.length)) {
        restore(one.memory(), one.kept.memory, request.number);
      }
    }
  }
  request.is_given_up = true;
}

Finding region_not_writable(const Request& request, const base::CallSite& polled) {
  return {Kind::buffers,
          "region-not-writable",
          "what was to come had to go to a region that the device may not write to",
          fmt::format("{}: the region with lkey {:#x} has no IBV_ACCESS_LOCAL_WRITE", text_of(request),
                      request.read_only->lkey),
          {{"posted", request.posted}, {"registered", request.read_only->made}, {"completion polled", polled}},
          "register it with IBV_ACCESS_LOCAL_WRITE: receives, READs and atomics write there"};
}

std::optional<Finding> place(Request& request, uint64_t length_bytes, const base::CallSite& polled) {
  if (const Piece* gone = find_unmapped(request)) {
    return request.is_given_up ? std::nullopt : std::optional(memory_unmapped_in_use(request, *gone, polled));
  }
  std::optional<Finding> found;
  uint64_t offset = 0;
  for (const Piece& one : request.pieces) {
    const std::span<std::byte> memory = one.memory();
    const auto changed = request.is_poisoned ? first_unpoisoned(memory, request.number) : std::nullopt;
    if (changed && !request.is_given_up) {
      request.is_given_up = true;
      found = written_too_early(request, one, offset, *changed, polled);
    }
    const auto received =
        static_cast<size_t>(std::min<uint64_t>(length_bytes - std::min(length_bytes, offset), one.length));
    // The program may read its buffer only when ibv_poll_cq() has returned, which is after this.
    std::memcpy(memory.data(), one.kept.memory, received);
    if (request.is_poisoned) {
      restore(memory.subspan(received), one.kept.memory + received, request.number);
    }
    offset += one.length;
  }
  return found;
}

}  // namespace ringbolt::sanitizer
