#pragma once

#include <cstddef>
#include <optional>

#include "sanitizer/reports.h"
#include "sanitizer/request.h"

/// What a send reads: until its completion was polled it must stay as it was posted (ibv_post_send(3)), since a card
/// reads it when it gets to it, and again when it has to resend. Each call has its request to itself.
namespace ringbolt::sanitizer {

/// A piece that is not mapped, or null. A system call for each.
/// Good as long as the request's pieces are.
const Piece* find_unmapped(const Request& request);
Finding memory_unmapped_in_use(const Request& request, const Piece& gone, const base::CallSite& polled);

/// The request is given up; `gone` is not mapped when it is posted. Where the device sends memory of ours, it finds
/// zeros there.
Finding give_up_unmapped(Request& request, const Piece& gone);

/// Copies what it sends to memory of ours, which the device is given; where it has none, and `may_sum`, its sum is kept
/// instead. All of it is mapped.
/// The program may not write there meanwhile: it is in its own post.
void note_source(Request& request, bool may_sum);
/// Poison stands in `piece` from byte `at` on: it was copied from memory whose receive was posted there.
Finding sent_before_received(const Request& request, const Piece& piece, size_t at, const base::CallSite& receive);
/// At its completion: what is not any more as note_source() found it.
std::optional<Finding> find_changed_source(const Request& request, const base::CallSite& polled);

}  // namespace ringbolt::sanitizer
