#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "sanitizer/race_table.h"
#include "sanitizer/reports.h"
#include "sanitizer/request_table.h"
#include "sanitizer/spans.h"

namespace ringbolt::sanitizer {

/// Whether two requests of this process that are under way and access the same memory of a peer may take effect in
/// either order. On one queue pair they keep theirs, but for a WRITE or an atomic behind a READ, and a WRITE behind an
/// atomic, which wait only if they are fenced (InfiniBand Architecture Specification 1.4, 10.8.3.3, table of ordering).
/// Atomics behind atomics count as in order: the responder executes them so (9.5), and what they bring says which was
/// first. Pure.
bool is_race(const Request& earlier, const Request& later);

/// `met`: what another process did meanwhile. `polled`: where the request's completion was polled; empty where it is
/// told when the request is posted.
Finding race_between_processes(const Request& request, const RaceTable::Entry& met, const base::CallSite& polled);

/// Accesses to peers' memory under way, from enter() to leave(): those of this process by peer, key and range, and
/// those of others in a table that they share, opened at the first access. Under the lock of Shadow.
class RemoteAccesses {
 public:
  /// `race_table`: path of the file.
  explicit RemoteAccesses(std::string race_table) : path_(std::move(race_table)) {}

  /// `request` is one-sided, has its number, and is about to be in `table`. Adds to `found` what it races with.
  /// May block for as long as another process looks at the table of races. Sets Request::race_place.
  void enter(const RequestTable& table, Request& request, std::vector<Finding>& found);
  /// It is over: Request::met says what came meanwhile. No effect for one that was not entered.
  void leave(Request& request);
  /// In a child after fork: all of it, and the lock of the table, is the parent's.
  void forget();

 private:
  using Target = std::pair<uint64_t, uint32_t>;  // peer, rkey

  const std::string path_;
  std::map<Target, Spans> targets_;  // none is empty
  std::unique_ptr<RaceTable> race_table_;
};

}  // namespace ringbolt::sanitizer
