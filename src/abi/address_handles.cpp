// Address handles (ibv_create_ah(3)).

#include <cerrno>
#include <cstring>
#include <new>

#include "abi/objects.h"
#include "base/c_border.h"
#include "device/explanations.h"
#include "device/object_rules.h"

using ringbolt::abi::Ah;
using ringbolt::abi::Pd;

extern "C" {

ibv_ah* ibv_create_ah(ibv_pd* pd, ibv_ah_attr* attributes) try {
  const ringbolt::device::Port& port = ringbolt::abi::port_of(pd->context);
  if (const int error = ringbolt::device::check_address_handle(port)) {
    return ringbolt::abi::refuse<ibv_ah>(error);
  }
  const auto addresses = port.addresses();
  const auto why = [&] { return ringbolt::device::why_path_refused(port, addresses->shown, *attributes); };
  if (attributes->port_num != 1 || attributes->is_global == 0 ||
      attributes->grh.sgid_index >= addresses->shown.size()) {
    return ringbolt::abi::refuse<ibv_ah>(ringbolt::base::refused(EINVAL, "ibv_create_ah", why));
  }
  const ibv_gid& own = addresses->shown[attributes->grh.sgid_index];
  if (!port.owns(own)) {
    return ringbolt::abi::refuse<ibv_ah>(ringbolt::base::refused(EINVAL, "ibv_create_ah", why));
  }
  if (!port.reaches(attributes->grh.dgid)) {
    return ringbolt::abi::refuse<ibv_ah>(ringbolt::base::refused(ETIMEDOUT, "ibv_create_ah", why));
  }
  // Owned by the program until ibv_destroy_ah().
  auto* made = new (std::nothrow) Ah;
  if (made == nullptr) {
    return ringbolt::abi::refuse<ibv_ah>(ENOMEM);
  }
  ringbolt::device::AddressHandle* const ah = &made->impl;
  ah->c = {pd->context, pd, 0};
  std::memcpy(ah->gid.data(), attributes->grh.dgid.raw, ah->gid.size());
  std::memcpy(ah->source_gid.data(), own.raw, ah->source_gid.size());
  ah->attributes = *attributes;
  ah->source_gid_index = static_cast<uint8_t>(ringbolt::device::Port::index_of(port.known_gids, own));
  ah->is_loopback = port.owns(attributes->grh.dgid);
  ah->is_remote = port.is_remote(attributes->grh.dgid);
  const auto& table = ah->is_loopback ? port.known_gids : port.peer_gids;
  ah->target_gid_index = static_cast<uint8_t>(ringbolt::device::Port::index_of(table, attributes->grh.dgid));
  // ibv_dealloc_pd() answers EBUSY as long as there are any.
  Pd::of(pd).impl.users.fetch_add(1);
  made->place = ringbolt::abi::place_in(pd->context);
  ringbolt::abi::tell_sanitizer([&](ringbolt::sanitizer::Shadow& known, const ringbolt::base::CallSite& site) {
    known.address_handle_made(ah->c, *attributes, site);
  });
  return &ah->c;
} catch (...) {
  return ringbolt::base::caught_null();
}

int ibv_destroy_ah(ibv_ah* c) try {
  Pd::of(c->pd).impl.users.fetch_sub(1);
  ringbolt::abi::note_gone(c);
  delete &Ah::of(c);
  return 0;
} catch (...) {
  return ringbolt::base::caught_errno();
}

}  // extern "C"
