#include "sanitizer/owned_objects.h"

#include <algorithm>
#include <string>

#include <fmt/format.h>

namespace ringbolt::sanitizer {
namespace {

struct ObjectWords {
  std::string_view one;
  std::string_view many;
  std::string_view destroyer;
};
constexpr ObjectWords words_of(ObjectKind kind) {
  constexpr ObjectWords kWords[] = {
      {"protection domain", "protection domains", "ibv_dealloc_pd"},
      {"memory region", "memory regions", "ibv_dereg_mr"},
      {"memory window", "memory windows", "ibv_dealloc_mw"},
      {"completion queue", "completion queues", "ibv_destroy_cq"},
      {"completion channel", "completion channels", "ibv_destroy_comp_channel"},
      {"queue pair", "queue pairs", "ibv_destroy_qp"},
      {"shared receive queue", "shared receive queues", "ibv_destroy_srq"},
      {"address handle", "address handles", "ibv_destroy_ah"},
  };
  return kWords[static_cast<uint8_t>(kind)];
}

}  // namespace

void OwnedObjects::busy(const void* object, const base::CallSite& site) {
  // Else it was made before anybody looked, or by somebody else.
  if (const auto known = objects_.find(object); known != objects_.end()) {
    known->second.busy = site;
  }
}

std::vector<Finding> OwnedObjects::leaks() const {
  struct Leak {
    Owned first;
    size_t count;
  };
  std::vector<Leak> leaks;
  for (const auto& [object, owned] : objects_) {
    const auto same = std::ranges::find_if(leaks, [&one = owned](const Leak& leak) {
      return leak.first.kind == one.kind && leak.first.made.returns == one.made.returns &&
             leak.first.busy.returns == one.busy.returns;
    });
    if (same == leaks.end()) {
      leaks.push_back({owned, 1});
    } else {
      ++same->count;
    }
  }
  std::ranges::sort(leaks, {}, [](const Leak& one) { return one.first.kind; });
  std::vector<Finding> found;
  for (const Leak& leak : leaks) {
    const ObjectWords words = words_of(leak.first.kind);
    const std::string numbers =
        fmt::format("{} {} left when the process ended", leak.count, leak.count == 1 ? words.one : words.many);
    if (leak.first.busy) {
      found.push_back({Kind::objects,
                       "destroy-failed",
                       fmt::format("{} answered EBUSY, and nobody tried again", words.destroyer),
                       numbers,
                       {{"destroyed in vain", leak.first.busy}, {"made", leak.first.made}},
                       "destroy first what uses it, and look at what the destroy answers"});
    } else {
      found.push_back({Kind::objects,
                       "object-left",
                       fmt::format("{} was never destroyed", words.one),
                       numbers,
                       {{"made", leak.first.made}},
                       fmt::format("call {} for each", words.destroyer)});
    }
  }
  return found;
}

}  // namespace ringbolt::sanitizer
