// Hot path: no allocation, no system call.
//
// The builders fill work requests of the classical kind, one after the other, and wr_complete posts them as one list:
// all of it or nothing, which is what our post_send makes of a null third argument.

#include <cerrno>
#include <cstring>
#include <new>
#include <utility>

#include <fmt/format.h>

#include "abi/ex_layer.h"
#include "abi/sanitized.h"
#include "base/c_border.h"
#include "base/explain.h"

namespace ringbolt::abi {
namespace {

using base::guarded;
using base::Guarded;
using base::put;

constexpr uint64_t kUdOps = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM;
constexpr uint64_t kUcOps = kUdOps | IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM |
                            IBV_QP_EX_WITH_LOCAL_INV | IBV_QP_EX_WITH_BIND_MW;
constexpr uint64_t kRcOps = kUcOps | IBV_QP_EX_WITH_SEND_WITH_INV | IBV_QP_EX_WITH_RDMA_READ |
                            IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP | IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD;

uint64_t ops_of(ibv_qp_type type) {
  switch (type) {
    case IBV_QPT_RC:
      return kRcOps;
    case IBV_QPT_UC:
      return kUcOps;
    case IBV_QPT_UD:
      return kUdOps;
    default:
      return 0;
  }
}

/// `ex` is the first member (ex_layer.h).
QpExState& state_of(ibv_qp_ex* qp) { return reinterpret_cast<ExtendableQp*>(qp)->state; }

/// `call`, a builder without its "ibv_", is what wr_complete will fail for.
template <class Words>
[[gnu::cold, gnu::noinline]] void refuse(QpExState& state, int error, const char* call, Words&& words) {
  if (state.error != 0) {
    return;
  }
  state.error = error;
  base::when_explaining([&] {
    state.refusal = words();
    state.refusal.why = fmt::format("ibv_{}, at {}: {}", call, base::calling_place(), state.refusal.why);
  });
}

/// A builder without a request to speak about.
[[gnu::cold]] void refuse_unbegun(QpExState& state, const char* call) {
  refuse(state, EINVAL, call, [&] {
    return base::Explanation{fmt::format("no request is begun: {} since ibv_wr_start", state.count),
                             "call ibv_wr_send or another ibv_wr_* that begins one before the ibv_wr_set_*"};
  });
}

/// The next request with what all operations share, or null when the batch is full.
/// Under `building`, as all builders.
ibv_send_wr* begin(ibv_qp_ex* qp, ibv_wr_opcode opcode) {
  QpExState& state = state_of(qp);
  if (state.count == state.capacity) {
    refuse(state, ENOMEM, "wr_*", [&] {
      return base::Explanation{fmt::format("the batch has {} requests, as many as the send queue", state.count),
                               "complete a batch of at most cap.max_send_wr requests, and poll before the next"};
    });
    return nullptr;
  }
  ibv_send_wr& request = state.requests[state.count++];
  request = {};
  request.wr_id = qp->wr_id;
  request.opcode = opcode;
  request.send_flags = qp->wr_flags;
  return &request;
}

/// The request that set_*() speaks about: the last one begun. Null, and the batch refused, before the first.
ibv_send_wr* last(QpExState& state, const char* call) {
  if (state.count == 0 || state.error != 0) {
    refuse_unbegun(state, call);
    return nullptr;
  }
  return &state.requests[state.count - 1];
}

ibv_sge* segments_of_last(QpExState& state) { return &state.segments[size_t{state.count - 1} * state.max_sge]; }

void begin_rdma(ibv_qp_ex* qp, ibv_wr_opcode opcode, uint32_t rkey, uint64_t remote_addr, __be32 imm_data) {
  if (ibv_send_wr* request = begin(qp, opcode)) {
    request->wr.rdma.rkey = rkey;
    request->wr.rdma.remote_addr = remote_addr;
    request->imm_data = imm_data;
  }
}

void wr_rdma_write(ibv_qp_ex* qp, uint32_t rkey, uint64_t remote_addr) noexcept {
  begin_rdma(qp, IBV_WR_RDMA_WRITE, rkey, remote_addr, 0);
}

void wr_rdma_write_imm(ibv_qp_ex* qp, uint32_t rkey, uint64_t remote_addr, __be32 imm_data) noexcept {
  begin_rdma(qp, IBV_WR_RDMA_WRITE_WITH_IMM, rkey, remote_addr, imm_data);
}

void wr_rdma_read(ibv_qp_ex* qp, uint32_t rkey, uint64_t remote_addr) noexcept {
  begin_rdma(qp, IBV_WR_RDMA_READ, rkey, remote_addr, 0);
}

void wr_atomic_cmp_swp(ibv_qp_ex* qp, uint32_t rkey, uint64_t remote_addr, uint64_t compare, uint64_t swap) noexcept {
  if (ibv_send_wr* request = begin(qp, IBV_WR_ATOMIC_CMP_AND_SWP)) {
    request->wr.atomic = {.remote_addr = remote_addr, .compare_add = compare, .swap = swap, .rkey = rkey};
  }
}

void wr_atomic_fetch_add(ibv_qp_ex* qp, uint32_t rkey, uint64_t remote_addr, uint64_t add) noexcept {
  if (ibv_send_wr* request = begin(qp, IBV_WR_ATOMIC_FETCH_AND_ADD)) {
    request->wr.atomic = {.remote_addr = remote_addr, .compare_add = add, .swap = 0, .rkey = rkey};
  }
}

void wr_bind_mw(ibv_qp_ex* qp, ibv_mw* mw, uint32_t rkey, const ibv_mw_bind_info* bind_info) noexcept {
  if (ibv_send_wr* request = begin(qp, IBV_WR_BIND_MW)) {
    request->bind_mw.mw = mw;
    request->bind_mw.rkey = rkey;
    request->bind_mw.bind_info = *bind_info;
  }
}

void wr_local_inv(ibv_qp_ex* qp, uint32_t invalidate_rkey) noexcept {
  if (ibv_send_wr* request = begin(qp, IBV_WR_LOCAL_INV)) {
    request->invalidate_rkey = invalidate_rkey;
  }
}

void wr_send(ibv_qp_ex* qp) noexcept { begin(qp, IBV_WR_SEND); }

void wr_send_imm(ibv_qp_ex* qp, __be32 imm_data) noexcept {
  if (ibv_send_wr* request = begin(qp, IBV_WR_SEND_WITH_IMM)) {
    request->imm_data = imm_data;
  }
}

void wr_send_inv(ibv_qp_ex* qp, uint32_t invalidate_rkey) noexcept {
  if (ibv_send_wr* request = begin(qp, IBV_WR_SEND_WITH_INV)) {
    request->invalidate_rkey = invalidate_rkey;
  }
}

void wr_set_ud_addr(ibv_qp_ex* qp, ibv_ah* ah, uint32_t remote_qpn, uint32_t remote_qkey) noexcept {
  if (ibv_send_wr* request = last(state_of(qp), "wr_set_ud_addr")) {
    request->wr.ud.ah = ah;
    request->wr.ud.remote_qpn = remote_qpn;
    request->wr.ud.remote_qkey = remote_qkey;
  }
}

void wr_set_sge_list(ibv_qp_ex* qp, size_t num_sge, const ibv_sge* sg_list) noexcept {
  QpExState& state = state_of(qp);
  ibv_send_wr* request = last(state, "wr_set_sge_list");
  if (request == nullptr) {
    return;
  }
  if (num_sge > state.max_sge) {
    refuse(state, EINVAL, "wr_set_sge_list", [&] {
      return base::Explanation{
          fmt::format("num_sge is {}; the queue pair was made with max_send_sge {}", num_sge, state.max_sge),
          "ask for more with cap.max_send_sge, or gather into one buffer"};
    });
    return;
  }
  request->sg_list = segments_of_last(state);
  request->num_sge = static_cast<int>(num_sge);
  for (size_t i = 0; i < num_sge; ++i) {
    // Copied: the program's list is its own again.
    request->sg_list[i] = sg_list[i];
  }
}

void wr_set_sge(ibv_qp_ex* qp, uint32_t lkey, uint64_t addr, uint32_t length) noexcept {
  const ibv_sge segment = {.addr = addr, .length = length, .lkey = lkey};
  wr_set_sge_list(qp, 1, &segment);
}

void wr_set_inline_data_list(ibv_qp_ex* qp, size_t num_buf, const ibv_data_buf* buf_list) noexcept {
  QpExState& state = state_of(qp);
  ibv_send_wr* request = last(state, "wr_set_inline_data_list");
  if (request == nullptr) {
    return;
  }
  unsigned char* const room = state.inline_data.get() + size_t{state.count - 1} * state.max_inline;
  size_t used = 0;
  for (size_t i = 0; i < num_buf; ++i) {
    if (buf_list[i].length > state.max_inline - used) {
      refuse(state, EINVAL, "wr_set_inline_data_list", [&] {
        return base::Explanation{fmt::format("{} bytes inline; the queue pair was made with max_inline_data {}",
                                             used + buf_list[i].length, state.max_inline),
                                 "take ibv_wr_set_sge, or ask for more with cap.max_inline_data"};
      });
      return;
    }
    if (buf_list[i].length != 0) {
      std::memcpy(room + used, buf_list[i].addr, buf_list[i].length);
    }
    used += buf_list[i].length;
  }
  request->send_flags |= IBV_SEND_INLINE;
  request->sg_list = segments_of_last(state);
  request->num_sge = used == 0 ? 0 : 1;
  request->sg_list[0] = {.addr = reinterpret_cast<uintptr_t>(room), .length = static_cast<uint32_t>(used), .lkey = 0};
}

void wr_set_inline_data(ibv_qp_ex* qp, void* addr, size_t length) noexcept {
  const ibv_data_buf buffer = {.addr = addr, .length = length};
  wr_set_inline_data_list(qp, 1, &buffer);
}

// What stands in for the builders that were not asked for or that we do not have. wr_complete tells.
void refuse_operation(ibv_qp_ex* qp) noexcept {
  refuse(state_of(qp), EOPNOTSUPP, "wr_*", [] {
    return base::Explanation{"send_ops_flags of ibv_create_qp_ex did not name this builder",
                             "add its IBV_QP_EX_WITH_* to send_ops_flags"};
  });
}
void refuse_rdma(ibv_qp_ex* qp, uint32_t /*rkey*/, uint64_t /*remote_addr*/) noexcept { refuse_operation(qp); }
void refuse_rdma_imm(ibv_qp_ex* qp, uint32_t, uint64_t, __be32) noexcept { refuse_operation(qp); }
void refuse_cmp_swp(ibv_qp_ex* qp, uint32_t, uint64_t, uint64_t, uint64_t) noexcept { refuse_operation(qp); }
void refuse_fetch_add(ibv_qp_ex* qp, uint32_t, uint64_t, uint64_t) noexcept { refuse_operation(qp); }
void refuse_bind(ibv_qp_ex* qp, ibv_mw*, uint32_t, const ibv_mw_bind_info*) noexcept { refuse_operation(qp); }
void refuse_key(ibv_qp_ex* qp, uint32_t) noexcept { refuse_operation(qp); }
void refuse_tso(ibv_qp_ex* qp, void*, uint16_t, uint16_t) noexcept { refuse_operation(qp); }
void refuse_atomic_write(ibv_qp_ex* qp, uint32_t, uint64_t, const void*) noexcept { refuse_operation(qp); }

void wr_start(ibv_qp_ex* qp) noexcept RINGBOLT_ACQUIRE(state_of(qp).building) {
  state_of(qp).building.lock();
  QpExState& state = state_of(qp);
  state.count = 0;
  state.error = 0;
}

/// The same of a queue pair that was destroyed.
void start_destroyed(ibv_qp_ex* qp) noexcept RINGBOLT_ACQUIRE(state_of(qp).building) {
  wr_start(qp);
  refuse(state_of(qp), EINVAL, "wr_start", [&] { return why_destroyed(&qp->qp_base); });
}

[[gnu::cold, gnu::noinline]] void explain_refused_batch(QpExState& state) {
  base::refused(state.error, "ibv_wr_complete", [&] { return std::exchange(state.refusal, {}); });
}

/// Its guard at the C border would have to hold what wr_start has taken: the program has called that before.
int wr_complete(ibv_qp_ex* qp) RINGBOLT_NOT_ANALYSED {
  QpExState& state = state_of(qp);
  int error = state.error;
  if (error == 0 && state.count != 0) {
    for (uint32_t i = 0; i + 1 < state.count; ++i) {
      state.requests[i].next = &state.requests[i + 1];
    }
    // Through the table: explanations and the sanitizer are to see it, too.
    error = qp->qp_base.context->ops.post_send(&qp->qp_base, &state.requests[0], nullptr);
  } else if (error != 0) [[unlikely]] {
    explain_refused_batch(state);
  }
  state_of(qp).building.unlock();
  return error;
}

/// The same for RINGBOLT_EXPLAIN: its requests are posted where the program calls it.
[[gnu::always_inline]] inline int explained_wr_complete(ibv_qp_ex* qp) {
  note_batch(base::call_site_of(__builtin_frame_address(0), __builtin_return_address(0)));
  const int error = wr_complete(qp);
  note_batch({});
  return error;
}

void wr_abort(ibv_qp_ex* qp) noexcept RINGBOLT_RELEASE(state_of(qp).building) { state_of(qp).building.unlock(); }

void fill_in_operations(ibv_qp_ex& ex, uint64_t flags) {
  const auto has = [flags](uint64_t operation) { return (flags & operation) != 0; };
  put(ex.wr_rdma_write, has(IBV_QP_EX_WITH_RDMA_WRITE) ? Guarded(wr_rdma_write) : Guarded(refuse_rdma));
  put(ex.wr_rdma_write_imm,
      has(IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM) ? Guarded(wr_rdma_write_imm) : Guarded(refuse_rdma_imm));
  put(ex.wr_rdma_read, has(IBV_QP_EX_WITH_RDMA_READ) ? Guarded(wr_rdma_read) : Guarded(refuse_rdma));
  put(ex.wr_atomic_cmp_swp,
      has(IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP) ? Guarded(wr_atomic_cmp_swp) : Guarded(refuse_cmp_swp));
  put(ex.wr_atomic_fetch_add,
      has(IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD) ? Guarded(wr_atomic_fetch_add) : Guarded(refuse_fetch_add));
  put(ex.wr_bind_mw, has(IBV_QP_EX_WITH_BIND_MW) ? Guarded(wr_bind_mw) : Guarded(refuse_bind));
  put(ex.wr_local_inv, has(IBV_QP_EX_WITH_LOCAL_INV) ? Guarded(wr_local_inv) : Guarded(refuse_key));
  put(ex.wr_send, has(IBV_QP_EX_WITH_SEND) ? Guarded(wr_send) : Guarded(refuse_operation));
  put(ex.wr_send_imm, has(IBV_QP_EX_WITH_SEND_WITH_IMM) ? Guarded(wr_send_imm) : Guarded(refuse_key));
  put(ex.wr_send_inv, has(IBV_QP_EX_WITH_SEND_WITH_INV) ? Guarded(wr_send_inv) : Guarded(refuse_key));
  put(ex.wr_send_tso, Guarded(refuse_tso));
  put(ex.wr_atomic_write, Guarded(refuse_atomic_write));
}

}  // namespace

int check_qp_ex(const ibv_qp_init_attr_ex& wanted) {
  constexpr uint32_t kServed = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_CREATE_FLAGS | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
  constexpr const char* kCall = "ibv_create_qp_ex";
  if ((wanted.comp_mask & ~kServed) != 0) {
    return base::refused(EOPNOTSUPP, kCall, [&] {
      return base::Explanation{fmt::format("comp_mask {:#x} asks for what the device does not have, beyond {:#x}",
                                           wanted.comp_mask, kServed),
                               "ask for IBV_QP_INIT_ATTR_PD and IBV_QP_INIT_ATTR_SEND_OPS_FLAGS alone"};
    });
  }
  if ((wanted.comp_mask & IBV_QP_INIT_ATTR_PD) == 0 || wanted.pd == nullptr) {
    return base::refused(EINVAL, kCall, [&] {
      return base::Explanation{
          fmt::format("comp_mask is {:#x}, and pd is {}", wanted.comp_mask, wanted.pd == nullptr ? "null" : "set"),
          "set pd, and IBV_QP_INIT_ATTR_PD in comp_mask"};
    });
  }
  if ((wanted.comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS) != 0 && wanted.create_flags != 0) {
    return base::refused(EOPNOTSUPP, kCall, [&] {
      return base::Explanation{fmt::format("create_flags is {:#x}; the device has none", wanted.create_flags),
                               "leave it 0"};
    });
  }
  const bool has_ops = (wanted.comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS) != 0;
  const uint64_t beyond = wanted.send_ops_flags & ~ops_of(wanted.qp_type);
  return has_ops && beyond != 0
             ? base::refused(
                   EOPNOTSUPP, kCall,
                   [&] {
                     return base::Explanation{
                         fmt::format("send_ops_flags {:#x}: a queue pair of type {} does not have {:#x} of it",
                                     wanted.send_ops_flags, static_cast<int>(wanted.qp_type), beyond),
                         "ask for the operations of its type alone: RC (2) has all, UD (4) has SENDs"};
                   })
             : 0;
}

int init_qp_ex(ExtendableQp& qp, uint64_t send_ops_flags, const ibv_qp_cap& granted) {
  const size_t capacity = granted.max_send_wr;
  const uint32_t max_sge = granted.max_send_sge == 0 ? 1 : granted.max_send_sge;  // inline data needs one
  // Not zeroed: pages of a deep queue that is never filled cost nothing.
  std::unique_ptr<ibv_send_wr[]> requests(new (std::nothrow) ibv_send_wr[capacity]);
  std::unique_ptr<ibv_sge[]> segments(new (std::nothrow) ibv_sge[capacity * max_sge]);
  std::unique_ptr<unsigned char[]> inline_data(new (std::nothrow) unsigned char[capacity * granted.max_inline_data]);
  if (requests == nullptr || segments == nullptr || inline_data == nullptr) {
    return ENOMEM;
  }
  qp.state.capacity = granted.max_send_wr;
  qp.state.max_sge = max_sge;
  qp.state.max_inline = granted.max_inline_data;
  qp.state.requests = std::move(requests);
  qp.state.segments = std::move(segments);
  qp.state.inline_data = std::move(inline_data);
  fill_in_operations(qp.ex, send_ops_flags);
  put(qp.ex.wr_set_ud_addr, Guarded(wr_set_ud_addr));
  put(qp.ex.wr_set_xrc_srqn, Guarded(refuse_key));
  put(qp.ex.wr_set_inline_data, Guarded(wr_set_inline_data));
  put(qp.ex.wr_set_inline_data_list, Guarded(wr_set_inline_data_list));
  put(qp.ex.wr_set_sge, Guarded(wr_set_sge));
  put(qp.ex.wr_set_sge_list, Guarded(wr_set_sge_list));
  put(qp.ex.wr_start, Guarded(wr_start));
  put(qp.ex.wr_complete,
      base::is_explaining() || trace::recorder() != nullptr ? guarded<explained_wr_complete> : guarded<wr_complete>);
  if (shadow() != nullptr) [[unlikely]] {
    put(qp.ex.wr_complete, guarded<from_program<wr_complete, int, ibv_qp_ex*>>);
  }
  put(qp.ex.wr_abort, Guarded(wr_abort));
  // No extension of ibv_qp_ex itself.
  qp.ex.comp_mask = 0;
  qp.marks |= ExtendableQp::kIsExtended;
  return 0;
}

void end_qp_ex(ExtendableQp& qp) {
  QpExState& state = qp.state;
  state.requests.reset();
  state.segments.reset();
  state.inline_data.reset();
  state.count = state.capacity = 0;
  state.error = EINVAL;
  if ((qp.marks & ExtendableQp::kIsExtended) != 0) {
    base::when_explaining([&] {
      state.refusal = {
          fmt::format("queue pair {:#x} was destroyed while the batch was put together", qp.classical()->qp_num),
          "complete batches, or abort them, before ibv_destroy_qp"};
    });
    put(qp.ex.wr_start, Guarded(start_destroyed));
  }
}

}  // namespace ringbolt::abi
