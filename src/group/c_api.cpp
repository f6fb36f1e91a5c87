// The C border: no exception crosses it, and what it refuses it says in words of the calling thread.
#include <cerrno>
#include <exception>
#include <new>
#include <string>
#include <utility>

#include "base/error.h"
#include "ringbolt/group.h"
#include "ringbolt/ringbolt.h"

struct ringbolt_group {
  ringbolt::Group group;
};

namespace {

static_assert(RINGBOLT_COMPLEX64 == static_cast<int>(ringbolt::Type::complex64));
static_assert(RINGBOLT_AVG == static_cast<int>(ringbolt::Reduction::avg));

thread_local std::string last_error;

int answer(ringbolt::Status status) {
  last_error = std::move(status.text);
  return status.code;
}

int refuse(int code, const char* words) {
  last_error = words;
  return code;
}

/// What a call that may throw answers.
template <class Call>
int guarded(Call&& call) {
  try {
    return call();
  } catch (const ringbolt::base::Error& error) {
    return refuse(error.errno_value() != 0 ? error.errno_value() : EIO, error.what());
  } catch (const std::bad_alloc&) {
    return refuse(ENOMEM, "out of memory");
  } catch (const std::exception& error) {
    return refuse(EIO, error.what());
  }
}

ringbolt::Type of(ringbolt_type type) { return static_cast<ringbolt::Type>(type); }
ringbolt::Reduction of(ringbolt_reduction reduction) { return static_cast<ringbolt::Reduction>(reduction); }

ringbolt::CallOptions within(uint64_t timeout_ms) {
  ringbolt::CallOptions options;
  options.timeout_ms = timeout_ms;
  return options;
}

/// Makes `call(group)`, whose Status is the answer.
template <class Call>
int on(ringbolt_group* group, Call&& call) {
  if (group == nullptr) {
    return refuse(EINVAL, "the group is NULL");
  }
  return guarded([&] { return answer(call(group->group)); });
}

}  // namespace

#define RINGBOLT_PUBLIC __attribute__((visibility("default")))

extern "C" {

RINGBOLT_PUBLIC const char* ringbolt_error(void) { return last_error.c_str(); }

RINGBOLT_PUBLIC int ringbolt_join(ringbolt_group** group) {
  return guarded([&] {
    *group = new ringbolt_group{ringbolt::Group::join()};
    return answer({});
  });
}

RINGBOLT_PUBLIC void ringbolt_leave(ringbolt_group* group) { delete group; }
RINGBOLT_PUBLIC uint32_t ringbolt_rank(const ringbolt_group* group) { return group->group.rank(); }
RINGBOLT_PUBLIC uint32_t ringbolt_size(const ringbolt_group* group) { return group->group.size(); }

RINGBOLT_PUBLIC int ringbolt_all_reduce(ringbolt_group* group, const void* in, void* out, size_t count,
                                        ringbolt_type type, ringbolt_reduction reduction, uint64_t timeout_ms) {
  return on(group, [&](auto& g) { return g.all_reduce(in, out, count, of(type), of(reduction), within(timeout_ms)); });
}

RINGBOLT_PUBLIC int ringbolt_reduce_scatter(ringbolt_group* group, const void* in, void* out, size_t count,
                                            ringbolt_type type, ringbolt_reduction reduction, uint64_t timeout_ms) {
  return on(group,
            [&](auto& g) { return g.reduce_scatter(in, out, count, of(type), of(reduction), within(timeout_ms)); });
}

RINGBOLT_PUBLIC int ringbolt_all_gather(ringbolt_group* group, const void* in, void* out, size_t count,
                                        ringbolt_type type, uint64_t timeout_ms) {
  return on(group, [&](auto& g) { return g.all_gather(in, out, count, of(type), within(timeout_ms)); });
}

RINGBOLT_PUBLIC int ringbolt_broadcast(ringbolt_group* group, void* data, size_t count, ringbolt_type type,
                                       uint32_t root, uint64_t timeout_ms) {
  return on(group, [&](auto& g) { return g.broadcast(data, count, of(type), root, within(timeout_ms)); });
}

RINGBOLT_PUBLIC int ringbolt_reduce(ringbolt_group* group, const void* in, void* out, size_t count, ringbolt_type type,
                                    ringbolt_reduction reduction, uint32_t root, uint64_t timeout_ms) {
  return on(group,
            [&](auto& g) { return g.reduce(in, out, count, of(type), of(reduction), root, within(timeout_ms)); });
}

RINGBOLT_PUBLIC int ringbolt_gather(ringbolt_group* group, const void* in, void* out, size_t count, ringbolt_type type,
                                    uint32_t root, uint64_t timeout_ms) {
  return on(group, [&](auto& g) { return g.gather(in, out, count, of(type), root, within(timeout_ms)); });
}

RINGBOLT_PUBLIC int ringbolt_scatter(ringbolt_group* group, const void* in, void* out, size_t count, ringbolt_type type,
                                     uint32_t root, uint64_t timeout_ms) {
  return on(group, [&](auto& g) { return g.scatter(in, out, count, of(type), root, within(timeout_ms)); });
}

RINGBOLT_PUBLIC int ringbolt_all_to_all(ringbolt_group* group, const void* in, void* out, size_t count,
                                        ringbolt_type type, uint64_t timeout_ms) {
  return on(group, [&](auto& g) { return g.all_to_all(in, out, count, of(type), within(timeout_ms)); });
}

RINGBOLT_PUBLIC int ringbolt_send(ringbolt_group* group, const void* data, size_t count, ringbolt_type type,
                                  uint32_t peer, uint64_t timeout_ms) {
  return on(group, [&](auto& g) { return g.send(data, count, of(type), peer, within(timeout_ms)); });
}

RINGBOLT_PUBLIC int ringbolt_recv(ringbolt_group* group, void* data, size_t count, ringbolt_type type, uint32_t peer,
                                  uint64_t timeout_ms) {
  return on(group, [&](auto& g) { return g.recv(data, count, of(type), peer, within(timeout_ms)); });
}

RINGBOLT_PUBLIC int ringbolt_barrier(ringbolt_group* group, uint64_t timeout_ms) {
  return on(group, [&](auto& g) { return g.barrier(within(timeout_ms)); });
}

RINGBOLT_PUBLIC int ringbolt_split(ringbolt_group* group, int color, int key, ringbolt_group** made) {
  return on(group, [&](auto& g) {
    ringbolt::Group part = g.split(color, key);
    *made = part.size() > 0 ? new ringbolt_group{std::move(part)} : nullptr;
    return ringbolt::Status();
  });
}

RINGBOLT_PUBLIC int ringbolt_abort(ringbolt_group* group, const char* reason) {
  return on(group, [&](auto& g) {
    g.abort(reason != nullptr ? reason : "");
    return ringbolt::Status();
  });
}

}  // extern "C"
