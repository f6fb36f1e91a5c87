// The C border, of calls that are described by a struct: what <ringbolt/group.h> is made of.
#include <cstddef>
#include <cstring>

#include "group/c_border.h"

namespace {

using ringbolt::CallOptions;
using ringbolt::Status;
using ringbolt::c_border::answer;
using ringbolt::c_border::begin;
using ringbolt::c_border::guarded;
using ringbolt::c_border::of;
using ringbolt::c_border::on;
using ringbolt::c_border::refuse;
using ringbolt::group::Group;
using ringbolt::group::Request;

// Programs have these offsets in them. A new member goes to the end, and its 0 means what was done before it came.
static_assert(sizeof(ringbolt_operation) == 4 && sizeof(ringbolt_type) == 4 && sizeof(ringbolt_reduction) == 4);
static_assert(sizeof(ringbolt_checksums) == 4);
static_assert(offsetof(ringbolt_call, struct_size) == 0 && offsetof(ringbolt_call, operation) == 8);
static_assert(offsetof(ringbolt_call, type) == 12 && offsetof(ringbolt_call, reduction) == 16);
static_assert(offsetof(ringbolt_call, rank) == 20 && offsetof(ringbolt_call, in) == 24);
static_assert(offsetof(ringbolt_call, out) == 32 && offsetof(ringbolt_call, count) == 40);
static_assert(offsetof(ringbolt_call, counts) == 48 && offsetof(ringbolt_call, n_counts) == 56);
static_assert(offsetof(ringbolt_call, received) == 64 && offsetof(ringbolt_call, n_received) == 72);
static_assert(offsetof(ringbolt_call, timeout_ms) == 80 && offsetof(ringbolt_call, algorithm) == 88);
static_assert(offsetof(ringbolt_call, flags) == 96 && offsetof(ringbolt_call, reserved) == 100);
static_assert(sizeof(ringbolt_call) == 104 && alignof(ringbolt_call) == 8);

/// Of the first version that had it: no program has a smaller one.
/// In bytes.
constexpr size_t kFirstSize = 104;

/// Null if `call` can't be understood; else as this version knows it, in `room` if it is another version's. As the
/// kernel's clone3(2) and openat2(2) do it: what an old program does not know is 0, and of what we don't know all must
/// be 0.
/// What is returned lives as long as `call` and `room`. The words of a refusal are in last_error().
const ringbolt_call* understood(const ringbolt_call* call, ringbolt_call& room) {
  if (call == nullptr || call->struct_size < kFirstSize) {
    refuse(EINVAL, call == nullptr ? "the call is NULL" : "struct_size must be sizeof(ringbolt_call)");
    return nullptr;
  }
  const ringbolt_call* known = call;
  if (call->struct_size != sizeof(ringbolt_call)) [[unlikely]] {
    const auto* bytes = reinterpret_cast<const unsigned char*>(call);
    // The caller vouches that so many bytes are there, as with any pointer.
    for (size_t i = sizeof room; i < call->struct_size; ++i) {
      if (bytes[i] != 0) {
        refuse(EINVAL,
               "the call asks for something that this version of libringbolt does not know: install a newer one");
        return nullptr;
      }
    }
    room = {};
    std::memcpy(&room, call, std::min(call->struct_size, sizeof room));
    known = &room;
  }
  if ((known->flags & ~uint32_t{RINGBOLT_ANY_ORDER}) != 0 || known->reserved != 0) {
    refuse(EINVAL, "the call has flags that this version of libringbolt does not know: install a newer one");
    return nullptr;
  }
  return known;
}

/// The algorithm's name is copied: the program may free it when the call returns.
CallOptions options_of(const ringbolt_call& call) {
  return {call.timeout_ms, (call.flags & RINGBOLT_ANY_ORDER) == 0, call.algorithm == nullptr ? "" : call.algorithm};
}

std::span<const size_t> span_of(const size_t* counts, size_t n) { return {counts, counts == nullptr ? 0 : n}; }

/// The one function for a call of each operation, so that running and beginning it can't differ: `with` has one member
/// for either.
template <class With>
auto dispatch(const ringbolt_call& c, const With& with) {
  const CallOptions options = options_of(c);
  switch (c.operation) {
    case RINGBOLT_ALL_REDUCE:
      return with(&Group::all_reduce, &Group::all_reduce_async, c.in, c.out, c.count, of(c.type), of(c.reduction),
                  options);
    case RINGBOLT_REDUCE_SCATTER:
      return with(&Group::reduce_scatter, &Group::reduce_scatter_async, c.in, c.out, c.count, of(c.type),
                  of(c.reduction), options);
    case RINGBOLT_ALL_GATHER:
      return with(&Group::all_gather, &Group::all_gather_async, c.in, c.out, c.count, of(c.type), options);
    case RINGBOLT_ALL_GATHERV:
      return with(&Group::all_gatherv, &Group::all_gatherv_async, c.in, c.out, span_of(c.counts, c.n_counts),
                  of(c.type), options);
    case RINGBOLT_BROADCAST:
      return with(&Group::broadcast, &Group::broadcast_async, c.out, c.count, of(c.type), c.rank, options);
    case RINGBOLT_REDUCE:
      return with(&Group::reduce, &Group::reduce_async, c.in, c.out, c.count, of(c.type), of(c.reduction), c.rank,
                  options);
    case RINGBOLT_GATHER:
      return with(&Group::gather, &Group::gather_async, c.in, c.out, c.count, of(c.type), c.rank, options);
    case RINGBOLT_SCATTER:
      return with(&Group::scatter, &Group::scatter_async, c.in, c.out, c.count, of(c.type), c.rank, options);
    case RINGBOLT_ALL_TO_ALL:
      return with(&Group::all_to_all, &Group::all_to_all_async, c.in, c.out, c.count, of(c.type), options);
    case RINGBOLT_ALL_TO_ALLV:
      return with(&Group::all_to_allv, &Group::all_to_allv_async, c.in, span_of(c.counts, c.n_counts), c.out,
                  span_of(c.received, c.n_received), of(c.type), options);
    case RINGBOLT_BARRIER:
      return with(&Group::barrier, &Group::barrier_async, options);
    case RINGBOLT_SEND:
      return with(&Group::send, &Group::send_async, c.in, c.count, of(c.type), c.rank, options);
    case RINGBOLT_RECV:
      return with(&Group::recv, &Group::recv_async, c.out, c.count, of(c.type), c.rank, options);
    case RINGBOLT_OPERATION_NONE:
      break;
  }
  return with.refused();
}

constexpr const char* kNoOperation = "there is no such operation";

struct Run {
  Group& group;
  template <class Blocking, class Async, class... Arguments>
  Status operator()(Blocking run, Async, const Arguments&... arguments) const {
    return (group.*run)(arguments...);
  }
  Status refused() const { return {EINVAL, kNoOperation}; }
};

struct Start {
  Group& group;
  template <class Blocking, class Async, class... Arguments>
  Request operator()(Blocking, Async start, const Arguments&... arguments) const {
    return (group.*start)(arguments...);
  }
  Request refused() const { throw ringbolt::group::JoinError(kNoOperation, EINVAL); }
};

}  // namespace

extern "C" {

RINGBOLT_PUBLIC int ringbolt_run(ringbolt_group* group, const ringbolt_call* call) {
  return on(group, [&](Group& g) {
    ringbolt_call room;
    const ringbolt_call* const known = understood(call, room);
    return known == nullptr ? Status{EINVAL, ringbolt::c_border::last_error()} : dispatch(*known, Run{g});
  });
}

RINGBOLT_PUBLIC int ringbolt_start(ringbolt_group* group, const ringbolt_call* call, ringbolt_request** request) {
  return guarded([&] {
    ringbolt_call room;
    const ringbolt_call* const known = understood(call, room);
    return known == nullptr ? EINVAL : begin(group, request, [&](Group& g) { return dispatch(*known, Start{g}); });
  });
}

}  // extern "C"
