#pragma once

#include <infiniband/verbs.h>

#include <cerrno>
#include <cstdint>
#include <string>

#include "verbs/objects.h"

namespace ringbolt::tools {

template <class T>
using OwnedVerbs = verbs::Owned<T>;

/// Ends a measurement because `call` failed with `error`, an errno; also with its negative, which some providers
/// return. Throws ProbeFailure.
[[noreturn]] void fail_call(const char* call, int error);

/// Takes over what `call` returned; throws ProbeFailure with errno if that is null.
template <class T>
OwnedVerbs<T> own(const verbs::Library& library, T* made, const char* call) {
  if (made == nullptr) {
    fail_call(call, errno);
  }
  return OwnedVerbs<T>(made, verbs::Close(library));
}

/// Opens the device of that name; of an empty name the first. Throws ProbeFailure that says which there are.
verbs::Context open_device(const verbs::Library& library, const std::string& name);

/// The index of the GID that bring-up would take (bringup/gid_choice.h). Throws ProbeFailure.
uint8_t choose_gid(const verbs::Context& context, uint8_t port, ibv_gid& gid);

}  // namespace ringbolt::tools
