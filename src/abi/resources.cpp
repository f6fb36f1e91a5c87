// Protection domains and memory.

#include <cerrno>
#include <new>
#include <optional>

#include <fmt/format.h>

#include "abi/objects.h"
#include "base/c_border.h"
#include "device/call_faults.h"
#include "device/object_rules.h"

#undef ibv_reg_mr
#undef ibv_reg_mr_iova

extern "C" struct ibv_buf;  // rdma-core 65; the header here may be older

namespace ringbolt::abi {
namespace {

constexpr int kReregFlags = IBV_REREG_MR_CHANGE_TRANSLATION | IBV_REREG_MR_CHANGE_PD | IBV_REREG_MR_CHANGE_ACCESS;

/// Null, with errno. The program's until ibv_dereg_mr().
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
  mr->place = place_in(pd->context);
  tell_sanitizer(
      [&](sanitizer::Shadow& known, const base::CallSite& site) { known.region_made(mr->c, iova, access, site); });
  return &mr->c;
}

/// What ibv_alloc_buf gives out. Programs hold a pointer to it and know nothing of its inside.
/// Of ibv_alloc_buf() until ibv_free_buf(), as its memory, which is the process'.
struct Buffer {
  ibv_pd* pd;
  void* address;
  ObjectCount::Place place;
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
  mw->place = place_in(pd->context);
  note_made(sanitizer::ObjectKind::mw, &mw->c);
  return &mw->c;
}

int dealloc_mw(ibv_mw* mw) {
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
  pd->place = place_in(context);
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
  // Told before the device does it: it may fail, and then the region is of no use any more.
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
    Mr::of(c).place = place_in(pd->context);
  }
  tell_sanitizer([&](ringbolt::sanitizer::Shadow& known, const ringbolt::base::CallSite&) {
    const bool has_access = (flags & IBV_REREG_MR_CHANGE_ACCESS) != 0;
    known.region_changed(*c, moves, has_access ? std::optional(static_cast<uint32_t>(access)) : std::nullopt);
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
  auto* made = new (std::nothrow) Buffer{pd, *memory, {}};
  if (made == nullptr) {
    process.free_buffer(*memory);
    return refuse<void>(ENOMEM);
  }
  made->place = place_in(pd->context);
  *buffer = reinterpret_cast<ibv_buf*>(made);
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
  delete buffer;
} catch (...) {
  ringbolt::base::caught_nothing();
}

ibv_mr* ibv_reg_buf_mr(ibv_pd* pd, ibv_buf*, void* address, size_t length, int access) {
  return ibv_reg_mr(pd, address, length, access);
}

}  // extern "C"
