#pragma once

#include <span>
#include <vector>

#include "sanitizer/reports.h"
#include "sanitizer/request_table.h"

namespace ringbolt::sanitizer {

/// Looks for requests under way that use the memory of one that is about to be posted, and adds to `found` what is
/// wrong with that. Both are given up then, and the program's memory is as it is without us. A fenced send of what a
/// READ before it brings is in order (InfiniBand Architecture Specification 1.4, 10.8.3.3): its entries of `list` lead
/// to where that waits. Under the lock of Shadow, of the table.
/// `request` has its number, and is not in the table yet. May set is_given_up of it and of others, and takes poison out
/// of others' memory.
void find_overlaps(const RequestTable& table, Request& request, ibv_sge* list, std::vector<Finding>& found);

/// The same of inline data, which the post copies: a fence comes too late for them.
/// `pieces`: as copied_pieces() has them. Takes poison out of the memory of others.
void find_overlaps_of_copy(const RequestTable& table, const Request& request, std::span<const Piece> pieces,
                           std::vector<Finding>& found);

}  // namespace ringbolt::sanitizer
