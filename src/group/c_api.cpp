// The C border.
#include "group/c_border.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

namespace {

using ringbolt::c_border::answer;
using ringbolt::c_border::guarded;
using ringbolt::c_border::kNoGroup;
using ringbolt::c_border::last_error;
using ringbolt::c_border::of;
using ringbolt::c_border::on;
using ringbolt::c_border::per_rank;
using ringbolt::c_border::refuse;
using ringbolt::c_border::within;
using ringbolt::c_border::write_words;

static_assert(RINGBOLT_COMPLEX64 == static_cast<int>(ringbolt::Type::complex64));
static_assert(RINGBOLT_AVG == static_cast<int>(ringbolt::Reduction::avg));
static_assert(RINGBOLT_VERSION == RINGBOLT_PROJECT_VERSION, "ringbolt.h and CMakeLists.txt name different versions");

constexpr const char* kNoWords = "a group without ranks\n";

}  // namespace

extern "C" {

// Of the calling thread; good until its next call that fails.
RINGBOLT_PUBLIC const char* ringbolt_error(void) { return last_error().c_str(); }

RINGBOLT_PUBLIC uint32_t ringbolt_version(void) { return RINGBOLT_VERSION; }

// NULL is allowed, as free(3) has it. Blocks for a moment if this is the last handle of the mesh (Mesh::~Mesh()).
RINGBOLT_PUBLIC void ringbolt_leave(ringbolt_group* group) { delete group; }
RINGBOLT_PUBLIC uint32_t ringbolt_rank(const ringbolt_group* group) {
  return group == nullptr ? 0 : group->group.rank();
}
RINGBOLT_PUBLIC uint32_t ringbolt_size(const ringbolt_group* group) {
  return group == nullptr ? 0 : group->group.size();
}

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

RINGBOLT_PUBLIC int ringbolt_all_gatherv(ringbolt_group* group, const void* in, void* out, const size_t* counts,
                                         ringbolt_type type, uint64_t timeout_ms) {
  return on(group, [&](auto& g) { return g.all_gatherv(in, out, per_rank(g, counts), of(type), within(timeout_ms)); });
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

RINGBOLT_PUBLIC int ringbolt_all_to_allv(ringbolt_group* group, const void* in, const size_t* sent, void* out,
                                         const size_t* received, ringbolt_type type, uint64_t timeout_ms) {
  return on(group, [&](auto& g) {
    return g.all_to_allv(in, per_rank(g, sent), out, per_rank(g, received), of(type), within(timeout_ms));
  });
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
  if (made == nullptr) {
    return refuse(EINVAL, "there is no place for the group");
  }
  return on(group, [&](auto& g) {
    ringbolt::group::Group part = g.split(color, key);
    *made = part.size() > 0 ? new ringbolt_group{std::move(part)} : nullptr;
    return ringbolt::Status();
  });
}

RINGBOLT_PUBLIC int ringbolt_subgroup(ringbolt_group* group, const uint32_t* ranks, size_t n,
                                      ringbolt_exchange exchange, void* context, ringbolt_group** made) {
  if (made == nullptr || (ranks == nullptr && n > 0)) {
    return refuse(EINVAL, made == nullptr ? "there is no place for the group" : "the ranks are NULL");
  }
  return on(group, [&](auto& g) {
    *made = new ringbolt_group{g.subgroup({ranks, ranks + n}, {exchange, context})};
    return ringbolt::Status();
  });
}

RINGBOLT_PUBLIC int ringbolt_shrink(ringbolt_group* group, ringbolt_group** made) {
  if (made == nullptr) {
    return refuse(EINVAL, "there is no place for the group");
  }
  return on(group, [&](auto& g) {
    *made = new ringbolt_group{g.shrink()};
    return ringbolt::Status();
  });
}

RINGBOLT_PUBLIC int ringbolt_rejoin(ringbolt_group* group, ringbolt_group** made) {
  if (made == nullptr) {
    return refuse(EINVAL, "there is no place for the group");
  }
  return on(group, [&](auto& g) {
    *made = new ringbolt_group{g.rejoin()};
    return ringbolt::Status();
  });
}

RINGBOLT_PUBLIC size_t ringbolt_report(const ringbolt_group* group, char* text, size_t size) {
  return write_words(text, size, [&] { return group == nullptr ? std::string(kNoWords) : group->group.report(); });
}

RINGBOLT_PUBLIC size_t ringbolt_explain(const ringbolt_group* group, const char* operation, size_t count,
                                        ringbolt_type type, char* text, size_t size) {
  return write_words(text, size, [&] {
    return group == nullptr ? std::string(kNoWords)
                            : group->group.explain(operation != nullptr ? operation : "", count, of(type));
  });
}

RINGBOLT_PUBLIC int ringbolt_relays(const ringbolt_group* group, uint32_t peer, uint32_t* relays, size_t most,
                                    size_t* n) {
  // Outputs are written on success only; *n is how many there are, also if that is more than `most`.
  if (group == nullptr || n == nullptr || (relays == nullptr && most > 0)) {
    return refuse(EINVAL, group == nullptr ? kNoGroup : "there is no place for the relays");
  }
  return guarded([&] {
    const std::vector<uint32_t> found = group->group.relays(peer);
    std::copy_n(found.begin(), std::min(most, found.size()), relays);
    *n = found.size();
    return answer({});
  });
}

RINGBOLT_PUBLIC int ringbolt_progress_fd(ringbolt_group* group, int* fd) {
  if (fd == nullptr) {
    return refuse(EINVAL, "there is no place for the descriptor");
  }
  return on(group, [&](auto& g) {
    *fd = g.progress_fd();
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
