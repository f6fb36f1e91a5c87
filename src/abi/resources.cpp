// Protection domains, memory, address handles, shared receive queues.

#include <cerrno>
#include <cstring>
#include <new>
#include <optional>

#include <fmt/format.h>

#include "abi/objects.h"
#include "base/c_border.h"
#include "device/call_faults.h"
#include "device/explanations.h"
#include "device/object_rules.h"

#undef ibv_reg_mr
#undef ibv_reg_mr_iova

extern "C" struct ibv_buf;  // rdma-core 65; the header here may be older

namespace ringbolt::abi {
namespace {

constexpr int kReregFlags = IBV_REREG_MR_CHANGE_TRANSLATION | IBV_REREG_MR_CHANGE_PD | IBV_REREG_MR_CHANGE_ACCESS;

ibv_mr* register_memory(ibv_pd* pd, void* address, size_t length, uint64_t iova, unsigned access) {
  const device::Port& port = port_of(pd->context);
  if (const int error = device::check_region(port, reinterpret_cast<uint64_t>(address), length, iova, access)) {
    return refuse<ibv_mr>(error);
  }
  if (const int error = device::inject_at_registration(port)) {
    return refuse<ibv_mr>(error);
  }
  auto claim = port.claim(profile::Counted::mr);
  if (!claim) {
    return refuse<ibv_mr>(claim.error().value);
  }
  auto* mr = new (std::nothrow) Mr;
  if (mr == nullptr) {
    return refuse<ibv_mr>(ENOMEM);
  }
  mr->claim = std::move(*claim);
  auto region =
      device::MemoryRegion::create(Pd::of(pd).impl, reinterpret_cast<uint64_t>(address), length, iova, access);
  if (!region) {
    delete mr;
    return refuse<ibv_mr>(region.error().value);
  }
  mr->impl = std::move(*region);
  port.live->registered_bytes.fetch_add(length);
  const uint32_t remote_key = port.profile.knobs.zero_rkey ? 0 : mr->impl->key();
  mr->c = {pd->context, pd, address, length, mr->impl->key(), mr->impl->key(), remote_key};
  Context::of(pd->context).objects.fetch_add(1);
  tell_sanitizer(
      [&](sanitizer::Shadow& known, const base::CallSite& site) { known.region_made(mr->c, iova, access, site); });
  return &mr->c;
}

/// What ibv_alloc_buf gives out. Programs hold a pointer to it and know nothing of its inside.
struct Buffer {
  ibv_pd* pd;
  void* address;
};

}  // namespace

ibv_mw* alloc_mw(ibv_pd* pd, ibv_mw_type type) {
  if (const int error = device::check_window(port_of(pd->context))) {
    return refuse<ibv_mw>(error);
  }
  auto window = device::MemoryWindow::create(Pd::of(pd).impl, type);
  if (!window) {
    return refuse<ibv_mw>(window.error().value);
  }
  auto* mw = new (std::nothrow) Mw;
  if (mw == nullptr) {
    return refuse<ibv_mw>(ENOMEM);
  }
  mw->impl = std::move(*window);
  mw->c = {pd->context, pd, mw->impl->key(), mw->impl->key(), type};
  Context::of(pd->context).objects.fetch_add(1);
  note_made(sanitizer::ObjectKind::mw, &mw->c);
  return &mw->c;
}

int dealloc_mw(ibv_mw* mw) {
  Context::of(mw->context).objects.fetch_sub(1);
  note_gone(mw);
  delete &Mw::of(mw);
  return 0;
}

int bind_mw(ibv_qp* qp, ibv_mw* mw, ibv_mw_bind* wanted) {
  if (mw->type != IBV_MW_TYPE_1) {
    return base::refused(EINVAL, "ibv_bind_mw", [] {
      return base::Explanation{"the memory window is of type 2", "bind it with a send request, IBV_WR_BIND_MW"};
    });
  }
  ibv_send_wr wr{};
  ibv_send_wr* bad = nullptr;
  wr.wr_id = wanted->wr_id;
  wr.opcode = IBV_WR_BIND_MW;
  wr.send_flags = wanted->send_flags;
  wr.bind_mw.mw = mw;
  wr.bind_mw.rkey = ibv_inc_rkey(mw->rkey);
  wr.bind_mw.bind_info = wanted->bind_info;
  const int error = qp->context->ops.post_send(qp, &wr, &bad);
  if (error == 0) {
    mw->rkey = wr.bind_mw.rkey;
  }
  return error;
}

int post_srq_receive(ibv_srq* srq, ibv_recv_wr* wr, ibv_recv_wr** bad) { return Srq::of(srq).impl->post(wr, bad); }

ibv_srq* create_srq_ex(ibv_context*, ibv_srq_init_attr_ex* wanted) {
  const bool is_basic = (wanted->comp_mask & IBV_SRQ_INIT_ATTR_TYPE) == 0 || wanted->srq_type == IBV_SRQT_BASIC;
  if (!is_basic || (wanted->comp_mask & IBV_SRQ_INIT_ATTR_PD) == 0) {
    return refuse<ibv_srq>(base::refused(is_basic ? EINVAL : EOPNOTSUPP, "ibv_create_srq_ex", [&] {
      return is_basic ? base::Explanation{fmt::format("comp_mask {:#x} lacks IBV_SRQ_INIT_ATTR_PD", wanted->comp_mask),
                                          "set pd, and IBV_SRQ_INIT_ATTR_PD in comp_mask"}
                      : base::Explanation{fmt::format("srq_type is {}; the device has IBV_SRQT_BASIC (0) alone",
                                                      static_cast<int>(wanted->srq_type)),
                                          "take IBV_SRQT_BASIC"};
    }));
  }
  ibv_srq_init_attr classical{wanted->srq_context, wanted->attr};
  ibv_srq* srq = ibv_create_srq(wanted->pd, &classical);
  wanted->attr = classical.attr;
  return srq;
}

}  // namespace ringbolt::abi

using namespace ringbolt::abi;  // NOLINT: this file is its C border

extern "C" {

ibv_pd* ibv_alloc_pd(ibv_context* context) try {
  if (const int error = ringbolt::device::check_pd(port_of(context))) {
    return refuse<ibv_pd>(error);
  }
  auto claim = port_of(context).claim(ringbolt::profile::Counted::pd);
  if (!claim) {
    return refuse<ibv_pd>(claim.error().value);
  }
  auto* pd = new (std::nothrow) Pd(*Context::of(context).impl);
  if (pd == nullptr) {
    return refuse<ibv_pd>(ENOMEM);
  }
  pd->claim = std::move(*claim);
  pd->c = {context, pd->impl.key};
  Context::of(context).objects.fetch_add(1);
  if (shadow() != nullptr && !is_of_connection_manager(__builtin_return_address(0))) {
    note_made(ringbolt::sanitizer::ObjectKind::pd, &pd->c);
  }
  return &pd->c;
} catch (...) {
  return ringbolt::base::caught_null();
}

int ibv_dealloc_pd(ibv_pd* c) try {
  Pd& pd = Pd::of(c);
  tell_sanitizer([&](ringbolt::sanitizer::Shadow& known, const ringbolt::base::CallSite&) { known.domain_goes(c); });
  if (const uint32_t users = pd.impl.users.load(); users != 0) {
    return in_use("ibv_dealloc_pd", c, "the protection domain", users,
                  "its queue pairs, regions, windows and address handles");
  }
  Context::of(c->context).objects.fetch_sub(1);
  note_gone(c);
  delete &pd;
  return 0;
} catch (...) {
  return ringbolt::base::caught_errno();
}

ibv_mr* ibv_reg_mr(ibv_pd* pd, void* address, size_t length, int access) try {
  return register_memory(pd, address, length, reinterpret_cast<uint64_t>(address), static_cast<unsigned>(access));
} catch (...) {
  return ringbolt::base::caught_null();
}

ibv_mr* ibv_reg_mr_iova(ibv_pd* pd, void* address, size_t length, uint64_t iova, int access) try {
  return register_memory(pd, address, length, iova, static_cast<unsigned>(access));
} catch (...) {
  return ringbolt::base::caught_null();
}

ibv_mr* ibv_reg_mr_iova2(ibv_pd* pd, void* address, size_t length, uint64_t iova, unsigned access) try {
  return register_memory(pd, address, length, iova, access);
} catch (...) {
  return ringbolt::base::caught_null();
}

int ibv_rereg_mr(ibv_mr* c, int flags, ibv_pd* pd, void* address, size_t length, int access) try {
  const bool moves = (flags & IBV_REREG_MR_CHANGE_TRANSLATION) != 0;
  const bool changes_pd = (flags & IBV_REREG_MR_CHANGE_PD) != 0;
  if (flags == 0 || (flags & ~kReregFlags) != 0 || (changes_pd && pd == nullptr) || (moves && length == 0)) {
    errno = ringbolt::base::refused(EINVAL, "ibv_rereg_mr", [&] {
      return ringbolt::base::Explanation{
          fmt::format("flags {:#x}, {} bytes, {}", flags, length, pd == nullptr ? "no PD" : "a PD"),
          "name what changes with IBV_REREG_MR_CHANGE_*, and give it"};
    });
    return IBV_REREG_MR_ERR_INPUT;
  }
  if (moves || changes_pd) {
    tell_sanitizer([&](ringbolt::sanitizer::Shadow& known, const ringbolt::base::CallSite& site) {
      known.region_goes(*c, "ibv_rereg_mr", site);
    });
  }
  const int error = Mr::of(c).impl->change(flags, changes_pd ? &Pd::of(pd).impl : nullptr,
                                           reinterpret_cast<uint64_t>(address), length, static_cast<uint32_t>(access));
  if (error != 0) {
    errno = error;
    return IBV_REREG_MR_ERR_CMD;
  }
  if (moves) {
    c->addr = address;
    c->length = length;
  }
  if (changes_pd) {
    c->pd = pd;
    c->context = pd->context;
  }
  tell_sanitizer([&](ringbolt::sanitizer::Shadow& known, const ringbolt::base::CallSite&) {
    const bool has_access = (flags & IBV_REREG_MR_CHANGE_ACCESS) != 0;
    known.region_changed(*c, has_access ? std::optional(static_cast<uint32_t>(access)) : std::nullopt);
  });
  return 0;
} catch (...) {
  errno = ringbolt::base::caught_errno();
  return IBV_REREG_MR_ERR_CMD;
}

int ibv_dereg_mr(ibv_mr* c) try {
  if (c == nullptr) {
    // What JACCL does after a registration that failed.
    return ringbolt::base::refused(EINVAL, "ibv_dereg_mr", [] {
      return ringbolt::base::Explanation{"the region is null", "look at what ibv_reg_mr answers before going on"};
    });
  }
  if (!Pd::of(c->pd).impl.context.process().is_abandoned() && Mr::of(c).impl->has_windows()) {
    return in_use("ibv_dereg_mr", c, "the region", 0, "the memory windows that are bound to it");
  }
  if (!Pd::of(c->pd).impl.context.process().is_abandoned() && Mr::of(c).impl->is_stuck()) {
    return port_of(c->context).refuse(ringbolt::profile::Rule::err_leak, EBUSY, "to deregister a region");
  }
  Context::of(c->context).objects.fetch_sub(1);
  tell_sanitizer([&](ringbolt::sanitizer::Shadow& known, const ringbolt::base::CallSite& site) {
    known.region_goes(*c, "ibv_dereg_mr", site);
    known.gone(c);
  });
  delete &Mr::of(c);
  return 0;
} catch (...) {
  return ringbolt::base::caught_errno();
}

void* ibv_alloc_buf(ibv_pd* pd, size_t size, ibv_buf** buffer) try {
  ringbolt::device::Process& process = Pd::of(pd).impl.context.process();
  const auto memory = process.allocate_buffer(size);
  if (!memory) {
    return refuse<void>(memory.error().value);
  }
  auto* made = new (std::nothrow) Buffer{pd, *memory};
  if (made == nullptr) {
    process.free_buffer(*memory);
    return refuse<void>(ENOMEM);
  }
  *buffer = reinterpret_cast<ibv_buf*>(made);
  Context::of(pd->context).objects.fetch_add(1);
  return made->address;
} catch (...) {
  return ringbolt::base::caught_null();
}

void ibv_free_buf(ibv_buf* c) try {
  auto* buffer = reinterpret_cast<Buffer*>(c);
  if (buffer == nullptr) {
    return;
  }
  Pd::of(buffer->pd).impl.context.process().free_buffer(buffer->address);
  Context::of(buffer->pd->context).objects.fetch_sub(1);
  delete buffer;
} catch (...) {
  ringbolt::base::caught_nothing();
}

ibv_mr* ibv_reg_buf_mr(ibv_pd* pd, ibv_buf*, void* address, size_t length, int access) {
  return ibv_reg_mr(pd, address, length, access);
}

ibv_ah* ibv_create_ah(ibv_pd* pd, ibv_ah_attr* attributes) try {
  const ringbolt::device::Port& port = port_of(pd->context);
  if (const int error = ringbolt::device::check_address_handle(port)) {
    return refuse<ibv_ah>(error);
  }
  const auto addresses = port.addresses();
  const auto why = [&] { return ringbolt::device::why_path_refused(port, addresses->shown, *attributes); };
  if (attributes->port_num != 1 || attributes->is_global == 0 ||
      attributes->grh.sgid_index >= addresses->shown.size()) {
    return refuse<ibv_ah>(ringbolt::base::refused(EINVAL, "ibv_create_ah", why));
  }
  const ibv_gid& own = addresses->shown[attributes->grh.sgid_index];
  if (!port.owns(own)) {
    return refuse<ibv_ah>(ringbolt::base::refused(EINVAL, "ibv_create_ah", why));
  }
  if (!port.reaches(attributes->grh.dgid)) {
    return refuse<ibv_ah>(ringbolt::base::refused(ETIMEDOUT, "ibv_create_ah", why));
  }
  auto* ah = new (std::nothrow) ringbolt::device::AddressHandle;
  if (ah == nullptr) {
    return refuse<ibv_ah>(ENOMEM);
  }
  ah->c = {pd->context, pd, 0};
  std::memcpy(ah->gid.data(), attributes->grh.dgid.raw, ah->gid.size());
  std::memcpy(ah->source_gid.data(), own.raw, ah->source_gid.size());
  ah->attributes = *attributes;
  ah->source_gid_index = static_cast<uint8_t>(ringbolt::device::Port::index_of(port.known_gids, own));
  ah->is_loopback = port.owns(attributes->grh.dgid);
  ah->is_remote = port.is_remote(attributes->grh.dgid);
  const auto& table = ah->is_loopback ? port.known_gids : port.peer_gids;
  ah->target_gid_index = static_cast<uint8_t>(ringbolt::device::Port::index_of(table, attributes->grh.dgid));
  Pd::of(pd).impl.users.fetch_add(1);
  Context::of(pd->context).objects.fetch_add(1);
  tell_sanitizer([&](ringbolt::sanitizer::Shadow& known, const ringbolt::base::CallSite& site) {
    known.address_handle_made(ah->c, *attributes, site);
  });
  return &ah->c;
} catch (...) {
  return ringbolt::base::caught_null();
}

int ibv_destroy_ah(ibv_ah* c) try {
  Pd::of(c->pd).impl.users.fetch_sub(1);
  Context::of(c->context).objects.fetch_sub(1);
  note_gone(c);
  delete reinterpret_cast<ringbolt::device::AddressHandle*>(c);
  return 0;
} catch (...) {
  return ringbolt::base::caught_errno();
}

ibv_srq* ibv_create_srq(ibv_pd* pd, ibv_srq_init_attr* wanted) try {
  if (const int error = ringbolt::device::check_srq(port_of(pd->context))) {
    return refuse<ibv_srq>(error);
  }
  auto queue = ringbolt::device::SharedReceiveQueue::create(Pd::of(pd).impl, wanted->attr);
  if (!queue) {
    return refuse<ibv_srq>(queue.error().value);
  }
  auto* srq = new (std::nothrow) Srq;
  if (srq == nullptr) {
    return refuse<ibv_srq>(ENOMEM);
  }
  srq->impl = std::move(*queue);
  srq->impl->handle = &srq->c;
  srq->c.context = pd->context;
  srq->c.srq_context = wanted->srq_context;
  srq->c.pd = pd;
  pthread_mutex_init(&srq->c.mutex, nullptr);
  pthread_cond_init(&srq->c.cond, nullptr);
  wanted->attr = srq->impl->query();
  Context::of(pd->context).objects.fetch_add(1);
  tell_sanitizer([&](ringbolt::sanitizer::Shadow& known, const ringbolt::base::CallSite& site) {
    known.shared_queue_made(srq->c, site);
  });
  return &srq->c;
} catch (...) {
  return ringbolt::base::caught_null();
}

int ibv_modify_srq(ibv_srq* srq, ibv_srq_attr* attributes, int mask) try {
  return Srq::of(srq).impl->modify(*attributes, mask);
} catch (...) {
  return ringbolt::base::caught_errno();
}

int ibv_query_srq(ibv_srq* srq, ibv_srq_attr* attributes) try {
  *attributes = Srq::of(srq).impl->query();
  return 0;
} catch (...) {
  return ringbolt::base::caught_errno();
}

int ibv_destroy_srq(ibv_srq* c) try {
  Srq& srq = Srq::of(c);
  if (const uint32_t users = srq.impl->users.load(); users != 0) {
    return in_use("ibv_destroy_srq", c, "the shared receive queue", users, "its queue pairs");
  }
  Context& context = Context::of(c->context);
  context.impl->events().forget(c);
  const bool is_acknowledged =
      wait_for_acknowledgement(c->mutex, c->cond, c->events_completed, srq.asynchronous, "ibv_destroy_srq");
  context.objects.fetch_sub(1);
  tell_sanitizer(
      [&](ringbolt::sanitizer::Shadow& known, const ringbolt::base::CallSite&) { known.shared_queue_gone(*c); });
  if (is_acknowledged) {
    delete &srq;
  }
  return 0;
} catch (...) {
  return ringbolt::base::caught_errno();
}

}  // extern "C"
