#pragma once

#include <infiniband/verbs.h>

#include <pthread.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <memory>
#include <string>

#include "abi/acknowledgements.h"
#include "abi/ex_layer.h"
#include "abi/object_count.h"
#include "abi/sanitized.h"
#include "abi/verbs_context.h"
#include "base/explain.h"
#include "base/unique_fd.h"
#include "device/address_handle.h"
#include "device/completion_channel.h"
#include "device/completion_queue.h"
#include "device/context.h"
#include "device/memory.h"
#include "device/queue_pair.h"
#include "device/shared_receive_queue.h"
#include "trace/recorder.h"

/// The objects that programs hold by pointer: each begins with the C structure of the verbs library and owns the device
/// object behind it.
namespace ringbolt::abi {

/// A device of the list. Vendor libraries look at the word behind the structure to see whether a device is theirs.
struct Device {
  ibv_device c{};
  void* vendor_operations[8] = {};  ///< stays null
  std::shared_ptr<const device::Port> port;
  std::atomic<int> users{1};  ///< the list that holds it, and the contexts opened from it

  static Device& of(ibv_device* c) { return *reinterpret_cast<Device*>(c); }
};
static_assert(offsetof(Device, vendor_operations) == sizeof(ibv_device));

/// The program's until ibv_close_device(), which leaves it where objects are left.
struct Context {
  WideVerbsContext wide;
  std::unique_ptr<device::Context> impl;
  base::UniqueFd command;
  ObjectCount objects;

  ibv_context* c() { return &wide.known.context; }
  static Context& of(ibv_context* c) { return *reinterpret_cast<Context*>(wide_verbs_context(c)); }
};
static_assert(offsetof(Context, wide) == 0);

/// As all below: made and destroyed by the program's calls. Casting back from the C structure needs it first, as is
/// asserted or follows from being the first member of a standard layout.
struct Pd {
  ibv_pd c{};
  ObjectCount::Place place;  ///< as in the others: among the objects of its context, which it needs to the end
  device::Claim claim;       ///< as in the others: one of the objects that the profile limits
  device::ProtectionDomain impl;

  explicit Pd(device::Context& context) : impl(context) {}
  static Pd& of(ibv_pd* c) { return *reinterpret_cast<Pd*>(c); }
};

struct Mr {
  ibv_mr c{};
  ObjectCount::Place place;
  device::Claim claim;
  std::unique_ptr<device::MemoryRegion> impl;

  static Mr& of(ibv_mr* c) { return *reinterpret_cast<Mr*>(c); }
};

struct Mw {
  ibv_mw c{};
  ObjectCount::Place place;
  std::unique_ptr<device::MemoryWindow> impl;

  static Mw& of(ibv_mw* c) { return *reinterpret_cast<Mw*>(c); }
};

struct Channel {
  explicit Channel(device::Process& process) : impl(process.wakes()) {}

  ibv_comp_channel c{};
  ObjectCount::Place place;
  device::CompletionChannel impl;

  static Channel& of(ibv_comp_channel* c) { return *reinterpret_cast<Channel*>(c); }
};

struct Cq : ExtendableCq {
  device::Claim claim;
  std::shared_ptr<device::CompletionQueue> impl;
  Taken completions;
  Taken asynchronous;
  ObjectCount::Place place;  ///< behind what is used where it is hot

  static Cq& of(ibv_cq* c) { return *static_cast<Cq*>(reinterpret_cast<ExtendableCq*>(c)); }
};

struct Srq {
  ibv_srq c{};
  std::unique_ptr<device::SharedReceiveQueue> impl;
  Taken asynchronous;
  ObjectCount::Place place;

  static Srq& of(ibv_srq* c) { return *reinterpret_cast<Srq*>(c); }
};

struct Qp : ExtendableQp {
  device::Claim claim;
  std::shared_ptr<device::QueuePair> impl;
  Taken asynchronous;
  trace::QueuePairEntry* traced = nullptr;  ///< of a recorder, which has it as long as the process lives
  ObjectCount::Place place;

  static Qp& of(ibv_qp* c) { return *static_cast<Qp*>(reinterpret_cast<ExtendableQp*>(c)); }
};

/// An address handle as programs hold it.
struct Ah {
  device::AddressHandle impl;  ///< begins with the C structure
  ObjectCount::Place place;

  static Ah& of(ibv_ah* c) { return *reinterpret_cast<Ah*>(c); }
};
static_assert(offsetof(Ah, impl) == 0);

/// Sets errno and is null: what a function that makes an object returns when it can't.
template <class T>
T* refuse(int error) {
  errno = error;
  return nullptr;
}

/// EBUSY: `what`, the object, still has users, which are to go first. `n`: how many; 0: that is not known.
inline int in_use(const char* call, const void* object, const char* what, uint32_t n, const char* users) {
  tell_sanitizer([&](sanitizer::Shadow& known, const base::CallSite& site) { known.busy(object, site); });
  return base::refused(EBUSY, call, [&] {
    const std::string by = n == 0 ? "" : ", by " + std::to_string(n) + (n == 1 ? " object" : " objects");
    return base::Explanation{what + (" is in use" + by), std::string("destroy first ") + users};
  });
}

inline const device::Port& port_of(ibv_context* c) { return Context::of(c).impl->port(); }
/// Good as long as the context, as port_of() is.
inline device::Process& process_of(ibv_context* c) { return Context::of(c).impl->process(); }
/// Counts a new object of the context.
inline ObjectCount::Place place_in(ibv_context* c) { return ObjectCount::Place(Context::of(c).objects); }

/// Good as long as the object.
inline Acknowledgements completions_of(ibv_cq& cq) {
  return {cq.mutex, cq.cond, cq.comp_events_completed, Cq::of(&cq).completions};
}
inline Acknowledgements asynchronous_of(ibv_cq& cq) {
  return {cq.mutex, cq.cond, cq.async_events_completed, Cq::of(&cq).asynchronous};
}
inline Acknowledgements asynchronous_of(ibv_qp& qp) {
  return {qp.mutex, qp.cond, qp.events_completed, Qp::of(&qp).asynchronous};
}
inline Acknowledgements asynchronous_of(ibv_srq& srq) {
  return {srq.mutex, srq.cond, srq.events_completed, Srq::of(&srq).asynchronous};
}

/// Blocks until the program has acknowledged all that it took, as the verbs promise for a destroy, which is `call`.
/// False where the sanitizer ends the wait, which would go on for good: then the object's memory must stay.
/// Holds no lock of ours meanwhile.
bool wait_for_acknowledgement(const Acknowledgements& events, const char* call);

// The calls that programs reach through a context's table; each group is in the file of its name.
int poll_cq(ibv_cq* cq, int count, ibv_wc* wc);
int request_notification(ibv_cq* cq, int solicited_only);
ibv_cq_ex* create_cq_ex(ibv_context* context, ibv_cq_init_attr_ex* wanted);
int post_send(ibv_qp* qp, ibv_send_wr* wr, ibv_send_wr** bad);
int post_receive(ibv_qp* qp, ibv_recv_wr* wr, ibv_recv_wr** bad);
ibv_qp* create_qp_ex(ibv_context* context, ibv_qp_init_attr_ex* wanted);
/// While RINGBOLT_EXPLAIN asks for it: the object of a queue pair that is destroyed is kept for a while, with nothing
/// behind it. EINVAL where it is used all the same.
void keep_destroyed(Qp* qp);
int refuse_destroyed(const char* call, const ibv_qp* qp);
/// Posts and polls lead to functions that note where the program called them (explained.cpp).
void explain_calls(ibv_context_ops& ops);
int post_srq_receive(ibv_srq* srq, ibv_recv_wr* wr, ibv_recv_wr** bad);
ibv_srq* create_srq_ex(ibv_context* context, ibv_srq_init_attr_ex* wanted);
ibv_mw* alloc_mw(ibv_pd* pd, ibv_mw_type type);
int dealloc_mw(ibv_mw* mw);
int bind_mw(ibv_qp* qp, ibv_mw* mw, ibv_mw_bind* wanted);
int query_device_ex(ibv_context* context, const ibv_query_device_ex_input* input, ibv_device_attr_ex* attributes,
                    size_t size);
int query_port(ibv_context* context, uint8_t port_num, ibv_port_attr* attributes, size_t size);

}  // namespace ringbolt::abi
