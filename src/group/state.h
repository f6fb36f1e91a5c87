#pragma once

#include <memory>

#include "group/communicator.h"
#include "group/group.h"
#include "group/groups.h"

// What the handles of groups and calls hold.
namespace ringbolt::group {

/// `groups` and `communicator` change in rejoin() alone, without a lock: no other thread may begin a call meanwhile
/// (ringbolt/group.h).
struct Group::State {
  JoinOptions options;
  std::shared_ptr<Groups> groups;
  std::shared_ptr<Communicator> communicator;  // null: of no color

  uint64_t deadline_ns(const CallOptions& call, uint64_t now_ns) const;
  /// What is wrong with a call by itself; fills in what follows from its options. A negative answer is to be refuse()d.
  Status check(Asked& asked, const CallOptions& call) const;
  /// Finds out, without the lock, what the schedule of such a call depends on: under it this rank would seem frozen,
  /// and without rank 0 dead. Whether there was anything to find out.
  bool plan_ahead(const Asked& asked) const;
  Request request() const;
  /// A collective that makes no sense here: the other ranks hear of it, since theirs may.
  Request refuse(Status status);
  Request begin(Asked asked, const CallOptions& call);
  Request begin(const ShortKey& key, const void* in, void* out, const CallOptions& call);
  /// Runs it to its end, the short way if it is prepared and everything is as always; else the other one.
  Status run(ShortKey key, const void* in, void* out, const CallOptions& call);
  /// False if there is no short way now; else `status` is how it has ended.
  bool run_short(ShortKey key, const void* in, void* out, const CallOptions& call, Status& status);
  /// Blocks until the call's deadline at most. Without the lock.
  Status run(Asked asked, const CallOptions& call, const ShortKey& key);
  uint32_t n_ranks() const { return communicator ? communicator->n_ranks() : 0; }
  Request begin_message(bool is_send, void* data, size_t count, Type type, uint32_t peer, const CallOptions& call);
};

struct Request::State {
  std::shared_ptr<Groups> groups;
  std::shared_ptr<Communicator> communicator;
  std::shared_ptr<Call> call;
  Status refused;  // without a call
};

}  // namespace ringbolt::group
