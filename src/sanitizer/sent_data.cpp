#include "sanitizer/sent_data.h"

#include <algorithm>
#include <cstring>
#include <string>

#include <fmt/format.h>

#include "base/crc.h"
#include "sanitizer/mapped.h"
#include "sanitizer/words.h"

namespace ringbolt::sanitizer {
namespace {

/// What is not any more as it was posted; empty: nothing.
std::string change_of(const Request& request) {
  for (const Piece& one : request.pieces) {
    const std::span<const std::byte> memory = one.memory();
    // The device has sent our copy, so the peer has the right data even where this finds a mistake.
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
    sum = base::crc32c(sum, one.memory());
  }
  return sum == request.sum
             ? ""
             : fmt::format("the CRC-32C of its memory at {:#x} was {:#010x} when it was posted, and is {:#010x}",
                           request.pieces[0].address, request.sum, sum);
}

}  // namespace

const Piece* find_unmapped(const Request& request) {
  const auto gone =
      std::ranges::find_if(request.pieces, [](const Piece& one) { return !is_mapped(one.address, one.length); });
  return gone == request.pieces.end() ? nullptr : &*gone;
}

Finding memory_unmapped_in_use(const Request& request, const Piece& gone, const base::CallSite& polled) {
  return {Kind::buffers,
          "memory-unmapped-in-use",
          "memory was unmapped before the completion of a request that uses it",
          fmt::format("{}: its {} bytes at {:#x} are not mapped any more", text_of(request), gone.length, gone.address),
          {{"posted", request.posted}, {"completion polled", polled}},
          "unmap or free memory only when the completions of all requests that use it were polled"};
}

Finding give_up_unmapped(Request& request, const Piece& gone) {
  request.is_given_up = true;
  for (const Piece& one : request.pieces) {
    if (one.kept.memory != nullptr) {
      std::memset(one.kept.memory, 0, one.length);  // so that the device does not look for it
    }
  }
  return {Kind::buffers,
          "posted-memory-unmapped",
          "what is posted lies in memory that is not mapped any more",
          fmt::format("{}: {} bytes at {:#x}, of the region with lkey {:#x}", text_of(request), gone.length,
                      gone.address, gone.lkey),
          {{"posted", request.posted}},
          "deregister a region before its memory is unmapped, and register what takes its place"};
}

void note_source(Request& request, bool may_sum) {
  for (const Piece& one : request.pieces) {
    if (one.kept.memory != nullptr) {
      std::memcpy(one.kept.memory, one.memory().data(), one.length);
    } else if (may_sum) {
      request.sum = base::crc32c(request.sum, one.memory());
      request.is_summed = true;
    }
  }
}

Finding sent_before_received(const Request& request, const Piece& piece, size_t at, const base::CallSite& receive) {
  return {Kind::early,
          "sent-before-received",
          "what is sent was copied from a receive buffer before its completion",
          fmt::format("{}: from byte {} of {} at {:#x} on it is what such a buffer holds until then", text_of(request),
                      at, piece.length, piece.address),
          {{"sent", request.posted}, {"receive posted", receive}},
          "poll the completion of the receive or READ first, and read the buffer then"};
}

std::optional<Finding> find_changed_source(const Request& request, const base::CallSite& polled) {
  if (request.is_given_up || (!request.is_summed && request.kept == nullptr)) {
    return std::nullopt;
  }
  if (const Piece* gone = find_unmapped(request)) {
    return memory_unmapped_in_use(request, *gone, polled);
  }
  const std::string change = request.kept != nullptr ? change_of(request) : change_of_sum(request);
  if (change.empty()) {
    return std::nullopt;
  }
  return Finding{Kind::buffers,
                 "send-buffer-changed",
                 "a send buffer was changed before its completion",
                 fmt::format("{}: {}", text_of(request), change),
                 {{"posted", request.posted}, {"completion polled", polled}},
                 "change or free the buffer when its completion was polled, use another one, or send it inline"};
}

}  // namespace ringbolt::sanitizer
