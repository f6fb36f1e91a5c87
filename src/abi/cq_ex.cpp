// Hot path: no allocation, no system call.
//
// One completion is taken from the classical poll at a time. To fetch ahead would take completions off the queue that
// the program has not asked for, and it may stop polling, arm the queue and sleep.

#include "abi/ex_layer.h"
#include "abi/sanitized.h"

#include <cerrno>

#include <fmt/format.h>

#include "base/c_border.h"
#include "base/explain.h"

namespace ringbolt::abi {
namespace {

/// `ex` is the first member (ex_layer.h).
ExtendableCq& whole(ibv_cq_ex* cq) { return *reinterpret_cast<ExtendableCq*>(cq); }
/// Until next_poll() or end_poll(), in the thread that polls.
const ibv_wc& current(ibv_cq_ex* cq) { return whole(cq).state.current; }

/// 0 and the next completion in place, ENOENT when there is none, EIO when the queue is broken.
int take_one(ibv_cq_ex* cq) {
  ExtendableCq& object = whole(cq);
  const int got = cq->context->ops.poll_cq(object.classical(), 1, &object.state.current);
  if (got == 0) {
    return ENOENT;
  }
  if (got < 0) {
    return EIO;
  }
  cq->wr_id = object.state.current.wr_id;
  cq->status = object.state.current.status;
  return 0;
}

/// A program of one thread needs no lock, and whether it has one cannot be seen here.
void lock(CqExState& state) RINGBOLT_ACQUIRE(state.polling) RINGBOLT_NOT_ANALYSED {
  if (!state.is_single_threaded) {
    state.polling.lock();
  }
}
/// Likewise.
void unlock(CqExState& state) RINGBOLT_RELEASE(state.polling) RINGBOLT_NOT_ANALYSED {
  if (!state.is_single_threaded) {
    state.polling.unlock();
  }
}

int start_poll(ibv_cq_ex* cq, ibv_poll_cq_attr* attr) RINGBOLT_TRY_ACQUIRE(0, whole(cq).state.polling) {
  if (attr->comp_mask != 0) {
    return base::refused(EINVAL, "ibv_start_poll", [&] {
      return base::Explanation{fmt::format("comp_mask is {:#x}", attr->comp_mask), "leave it 0"};
    });
  }
  CqExState& state = whole(cq).state;
  lock(state);
  const int result = take_one(cq);
  if (result != 0) {
    unlock(state);
  }
  return result;
}

int next_poll(ibv_cq_ex* cq) { return take_one(cq); }

void end_poll(ibv_cq_ex* cq) noexcept RINGBOLT_RELEASE(whole(cq).state.polling) { unlock(whole(cq).state); }

ibv_wc_opcode read_opcode(ibv_cq_ex* cq) noexcept { return current(cq).opcode; }
uint32_t read_vendor_err(ibv_cq_ex* cq) noexcept { return current(cq).vendor_err; }
unsigned int read_wc_flags(ibv_cq_ex* cq) noexcept { return current(cq).wc_flags; }
uint32_t read_byte_len(ibv_cq_ex* cq) noexcept { return current(cq).byte_len; }
// The key that a SEND with invalidate took away comes through this reader as well; the two share their place.
__be32 read_imm_data(ibv_cq_ex* cq) noexcept { return current(cq).imm_data; }
uint32_t read_qp_num(ibv_cq_ex* cq) noexcept { return current(cq).qp_num; }
uint32_t read_src_qp(ibv_cq_ex* cq) noexcept { return current(cq).src_qp; }
uint32_t read_slid(ibv_cq_ex* cq) noexcept { return current(cq).slid; }
uint8_t read_sl(ibv_cq_ex* cq) noexcept { return current(cq).sl; }
uint8_t read_dlid_path_bits(ibv_cq_ex* cq) noexcept { return current(cq).dlid_path_bits; }

}  // namespace

int check_cq_ex(const ibv_cq_init_attr_ex& wanted) {
  constexpr uint32_t kKnownMask = IBV_CQ_INIT_ATTR_MASK_FLAGS | IBV_CQ_INIT_ATTR_MASK_PD;
  constexpr uint32_t kKnownFlags = IBV_CREATE_CQ_ATTR_SINGLE_THREADED | IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN;
  const bool has_flags = (wanted.comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS) != 0;
  if ((wanted.comp_mask & ~kKnownMask) != 0 || (has_flags && (wanted.flags & ~kKnownFlags) != 0)) {
    return base::refused(EINVAL, "ibv_create_cq_ex", [&] {
      return base::Explanation{fmt::format("comp_mask {:#x}, flags {:#x}: some of their bits mean nothing",
                                           wanted.comp_mask, has_flags ? wanted.flags : 0),
                               "clear the structure before filling it in"};
    });
  }
  const bool wants_parent_domain = (wanted.comp_mask & IBV_CQ_INIT_ATTR_MASK_PD) != 0;
  const bool wants_overrun = has_flags && (wanted.flags & IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN) != 0;
  const bool wants_more_readers = (wanted.wc_flags & ~uint64_t{IBV_WC_STANDARD_FLAGS}) != 0;
  if (!wants_parent_domain && !wants_overrun && !wants_more_readers) {
    return 0;
  }
  return base::refused(EOPNOTSUPP, "ibv_create_cq_ex", [&] {
    return wants_more_readers
               ? base::Explanation{fmt::format(
                                       "wc_flags {:#x}; the device has {:#x}: no time stamps, VLAN or flow tags",
                                       wanted.wc_flags, uint64_t{IBV_WC_STANDARD_FLAGS}),
                                   "take IBV_WC_STANDARD_FLAGS, and the clock of the host"}
               : base::Explanation{fmt::format("{} (comp_mask {:#x}, flags {:#x}), which the device does not have",
                                               wants_overrun ? "IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN" : "a parent domain",
                                               wanted.comp_mask, wanted.flags),
                                   "leave it out"};
  });
}

void init_cq_ex(ExtendableCq& cq, const ibv_cq_init_attr_ex& wanted) {
  using base::guarded;
  using base::Guarded;
  using base::put;
  cq.state.is_single_threaded =
      (wanted.comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS) != 0 && (wanted.flags & IBV_CREATE_CQ_ATTR_SINGLE_THREADED) != 0;
  put(cq.ex.start_poll, guarded<start_poll>);
  put(cq.ex.next_poll, guarded<next_poll>);
  if (shadow() != nullptr) [[unlikely]] {
    put(cq.ex.start_poll, guarded<from_program<start_poll, int, ibv_cq_ex*, ibv_poll_cq_attr*>>);
    put(cq.ex.next_poll, guarded<from_program<next_poll, int, ibv_cq_ex*>>);
  }
  put(cq.ex.end_poll, Guarded(end_poll));
  put(cq.ex.read_opcode, Guarded(read_opcode));
  put(cq.ex.read_vendor_err, Guarded(read_vendor_err));
  put(cq.ex.read_wc_flags, Guarded(read_wc_flags));
  put(cq.ex.read_byte_len, Guarded(read_byte_len));
  put(cq.ex.read_imm_data, Guarded(read_imm_data));
  put(cq.ex.read_qp_num, Guarded(read_qp_num));
  put(cq.ex.read_src_qp, Guarded(read_src_qp));
  put(cq.ex.read_slid, Guarded(read_slid));
  put(cq.ex.read_sl, Guarded(read_sl));
  put(cq.ex.read_dlid_path_bits, Guarded(read_dlid_path_bits));
}

}  // namespace ringbolt::abi
