// The private interface of our libibverbs.so.1, found at run time. If the loader had to find it, a program that brings
// somebody else's libibverbs would end in the loader's words, which know no remedy.
#include "abi/management.h"

#include <dlfcn.h>

#include "base/assert.h"
#include "base/companion.h"
#include "rdmacm/verbs_library.h"

namespace ringbolt::rdmacm {
namespace {

constexpr const char* kVerbsLibrary = "libibverbs.so.1";

/// Only after is_verbs_library_ours().
template <class Function>
Function* find(const char* name) {
  static void* const library = ::dlopen(kVerbsLibrary, RTLD_LAZY | RTLD_NOLOAD);
  void* const found = ::dlsym(library, name);
  // The mark was there, and so all of it is: both come from one build.
  RINGBOLT_ASSERT(found != nullptr);
  return reinterpret_cast<Function*>(found);
}

/// When we are loaded, for a program of somebody else's libibverbs may find no device and never come to call us.
__attribute__((constructor)) void look_at_once() { static_cast<void>(is_verbs_library_ours()); }

}  // namespace

bool is_verbs_library_ours() noexcept { return base::is_companion_ours(kVerbsLibrary, "ringbolt_management_open"); }

}  // namespace ringbolt::rdmacm

using ringbolt::rdmacm::find;

extern "C" {

// By this name libibverbs knows our librdmacm from others (base/companion.h).
void ringbolt_rdmacm() {}

int ringbolt_management_open(ibv_context* context) {
  static const auto call = find<decltype(ringbolt_management_open)>("ringbolt_management_open");
  return call(context);
}

int ringbolt_management_descriptor(ibv_context* context) {
  static const auto call = find<decltype(ringbolt_management_descriptor)>("ringbolt_management_descriptor");
  return call(context);
}

int ringbolt_management_receive(ibv_context* context, ringbolt_mad* notice) {
  static const auto call = find<decltype(ringbolt_management_receive)>("ringbolt_management_receive");
  return call(context, notice);
}

int ringbolt_management_send(ibv_context* context, const ringbolt_mad* mad) {
  static const auto call = find<decltype(ringbolt_management_send)>("ringbolt_management_send");
  return call(context, mad);
}

uint32_t ringbolt_management_unsent(ibv_context* context) {
  static const auto call = find<decltype(ringbolt_management_unsent)>("ringbolt_management_unsent");
  return call(context);
}

uint32_t ringbolt_management_slot(ibv_context* context) {
  static const auto call = find<decltype(ringbolt_management_slot)>("ringbolt_management_slot");
  return call(context);
}

void ringbolt_management_remember(ibv_context* context, const ringbolt_connection* connection) {
  static const auto call = find<decltype(ringbolt_management_remember)>("ringbolt_management_remember");
  call(context, connection);
}

void ringbolt_management_forget(ibv_context* context, uint32_t local_id) {
  static const auto call = find<decltype(ringbolt_management_forget)>("ringbolt_management_forget");
  call(context, local_id);
}

int ringbolt_management_bind(ibv_context* context, const ringbolt_service* service) {
  static const auto call = find<decltype(ringbolt_management_bind)>("ringbolt_management_bind");
  return call(context, service);
}

int ringbolt_management_listen(ibv_context* context, uint64_t token) {
  static const auto call = find<decltype(ringbolt_management_listen)>("ringbolt_management_listen");
  return call(context, token);
}

void ringbolt_management_unbind(ibv_context* context, uint64_t token) {
  static const auto call = find<decltype(ringbolt_management_unbind)>("ringbolt_management_unbind");
  call(context, token);
}

int ringbolt_management_port(ibv_context* context, ringbolt_port_facts* facts) {
  static const auto call = find<decltype(ringbolt_management_port)>("ringbolt_management_port");
  return call(context, facts);
}

int ringbolt_management_reaches(ibv_context* context, const ibv_gid* gid) {
  static const auto call = find<decltype(ringbolt_management_reaches)>("ringbolt_management_reaches");
  return call(context, gid);
}

int ringbolt_management_has_unread(ibv_context* context, uint32_t qp_num) {
  static const auto call = find<decltype(ringbolt_management_has_unread)>("ringbolt_management_has_unread");
  return call(context, qp_num);
}

int ringbolt_management_awaits_answers(ibv_context* context, uint32_t qp_num) {
  static const auto call = find<decltype(ringbolt_management_awaits_answers)>("ringbolt_management_awaits_answers");
  return call(context, qp_num);
}

void ringbolt_management_take_arrived(ibv_context* context, uint32_t qp_num) {
  static const auto call = find<decltype(ringbolt_management_take_arrived)>("ringbolt_management_take_arrived");
  call(context, qp_num);
}

int ringbolt_management_has_queued_sends(ibv_context* context, uint32_t qp_num) {
  static const auto call = find<decltype(ringbolt_management_has_queued_sends)>("ringbolt_management_has_queued_sends");
  return call(context, qp_num);
}

}  // extern "C"
