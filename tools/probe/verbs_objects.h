#pragma once

#include <infiniband/verbs.h>

#include <cerrno>
#include <cstdint>
#include <memory>
#include <string>

#include "probe/verbs_library.h"

namespace ringbolt::tools {

/// Gives an object back through the library that made it.
struct CloseVerbs {
  const VerbsLibrary* verbs = nullptr;
  void operator()(ibv_context* context) const { verbs->close_device(context); }
  void operator()(ibv_pd* pd) const { verbs->dealloc_pd(pd); }
  void operator()(ibv_mr* mr) const { verbs->dereg_mr(mr); }
  void operator()(ibv_comp_channel* channel) const { verbs->destroy_comp_channel(channel); }
  void operator()(ibv_cq* cq) const { verbs->destroy_cq(cq); }
  void operator()(ibv_qp* qp) const { verbs->destroy_qp(qp); }
  void operator()(ibv_ah* ah) const { verbs->destroy_ah(ah); }
};

template <class T>
using OwnedVerbs = std::unique_ptr<T, CloseVerbs>;

/// Ends a measurement because `call` failed with `error`, an errno; also with its negative, which some providers
/// return. Throws ProbeFailure.
[[noreturn]] void fail_call(const char* call, int error);

/// Takes over what `call` returned; throws ProbeFailure with errno if that is null.
template <class T>
OwnedVerbs<T> own(const VerbsLibrary& verbs, T* made, const char* call) {
  if (made == nullptr) {
    fail_call(call, errno);
  }
  return OwnedVerbs<T>(made, CloseVerbs{&verbs});
}

/// Opens the device of that name; of an empty name the first. Throws ProbeFailure that says which there are.
OwnedVerbs<ibv_context> open_device(const VerbsLibrary& verbs, const std::string& name);

/// The index of the port's first GID that stands for an IPv4 address; if none does, of its first that is not zero.
/// Throws ProbeFailure.
uint8_t choose_gid(const VerbsLibrary& verbs, ibv_context* context, uint8_t port, ibv_gid& gid);

}  // namespace ringbolt::tools
