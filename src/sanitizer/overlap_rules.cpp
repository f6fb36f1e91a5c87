#include "sanitizer/overlap_rules.h"

#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/say.h"
#include "sanitizer/kept_memories.h"
#include "sanitizer/received_data.h"
#include "sanitizer/words.h"

namespace ringbolt::sanitizer {
namespace {

Finding overlap(const Request& request, const Piece& piece, const Request& earlier, std::string_view rule,
                std::string what, std::string fix) {
  return {Kind::buffers,
          rule,
          std::move(what),
          fmt::format("{} at {:#x}; {} is not complete", text_of(request), piece.address, text_of(earlier)),
          {{"posted", request.posted}, {"first posted", earlier.posted}},
          std::move(fix)};
}

/// Has the fenced request send from where what `target` reads will lie. False: parts of it lie elsewhere.
/// The kept memory stays until both are over: the fenced request may be under way still when the READ was polled.
bool lead_to_kept(Request& request, Request& target, const Piece& piece, ibv_sge& segment) {
  for (const Piece& one : target.pieces) {
    if (one.kept.memory != nullptr && piece.address >= one.address &&
        piece.address + piece.length <= one.address + one.length) {
      segment.addr = reinterpret_cast<uintptr_t>(one.kept.memory) + (piece.address - one.address);
      segment.lkey = one.kept.lkey;
      KeptMemories::lend(target, one.kept, request);
      return true;
    }
  }
  return false;
}

void find_overlap_of_send(const RequestTable& table, Request& request, const Piece& piece, ibv_sge& segment,
                          std::vector<Finding>& found) {
  Request* const target = table.writer_of(piece.address, piece.length);
  if (target == nullptr) {
    return;
  }
  const bool is_read_before_it = target->use == Use::read && target->qp == request.qp;
  if (request.is_fenced && is_read_before_it) {
    // The device sends when it has read: what lies there at the post is neither to be copied nor to be compared. What
    // it has read may lie elsewhere still.
    request.is_given_up = true;
    if (target->kept != nullptr && !lead_to_kept(request, *target, piece, segment)) {
      base::say(
          "ringbolt: a fenced request gathers parts of what was read before it: give RINGBOLT_SANITIZE all kinds "
          "but early, or it sends what is not there yet\n");
    }
    return;
  }
  request.is_given_up = true;
  unpoison(*target);  // what is sent is what was there, as it is without us
  found.push_back(
      overlap(request, piece, *target, "sent-and-received", "memory is sent from while it is being received into",
              is_read_before_it ? "poll the completion of the READ first, or post the send with IBV_SEND_FENCE"
                                : "poll the completion of the receive first"));
}

void find_overlap_of_receive(const RequestTable& table, Request& request, const Piece& piece,
                             std::vector<Finding>& found) {
  Request* const writer = table.writer_of(piece.address, piece.length);
  Request* const reader = writer == nullptr ? table.reader_of(piece.address, piece.length) : nullptr;
  Request* const earlier = writer != nullptr ? writer : reader;
  if (earlier == nullptr) {
    return;
  }
  unpoison(*earlier);
  request.is_given_up = true;  // what it holds is no one's to say
  found.push_back(overlap(request, piece, *earlier, writer != nullptr ? "receive-buffers-overlap" : "sent-and-received",
                          writer != nullptr ? "two requests under way are received into the same memory"
                                            : "memory is received into while it is being sent from",
                          "give each request memory of its own until its completion was polled"));
}

}  // namespace

void find_overlaps(const RequestTable& table, Request& request, ibv_sge* list, std::vector<Finding>& found) {
  for (const Piece& piece : request.pieces) {
    if (request.use == Use::send) {
      find_overlap_of_send(table, request, piece, list[piece.segment], found);
    } else {
      find_overlap_of_receive(table, request, piece, found);
    }
  }
}

void find_overlaps_of_copy(const RequestTable& table, const Request& request, std::span<const Piece> pieces,
                           std::vector<Finding>& found) {
  for (const Piece& piece : pieces) {
    if (Request* const target = table.writer_of(piece.address, piece.length); target != nullptr) {
      unpoison(*target);  // what is sent is what was there, as it is without us
      found.push_back(overlap(request, piece, *target, "sent-and-received",
                              "inline data are copied from memory that is being received into",
                              "poll the completion of the receive or READ first: the post itself copies inline data, "
                              "fenced or not"));
    }
  }
}

}  // namespace ringbolt::sanitizer
