#pragma once

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/adaptive_mutex.h"
#include "base/explain.h"

/// The extended verbs (ibv_cq_ex readers, ibv_wr_* builders) as a thin layer on the classical calls of an object's
/// context, `ops.poll_cq` and `ops.post_send`. Whoever creates a CQ or QP embeds the structs below at the object's head
/// and calls check_*() before and init_*() after the classical object is complete.
namespace ringbolt::abi {

/// The completion that a program is reading. One thread at a time: `polling` is held from a start_poll that found
/// something until end_poll, as verbs promises to threads that share a CQ.
/// `current` is written under `polling`, and read by the thread that has it.
struct CqExState {
  base::AdaptiveMutex polling;
  bool is_single_threaded = false;
  ibv_wc current = {};
};

/// Head of every CQ object, made extended or not. `ex` begins as an ibv_cq does.
struct ExtendableCq {
  ibv_cq_ex ex = {};
  CqExState state;

  ibv_cq* classical() { return ibv_cq_ex_to_cq(&ex); }
};

/// Work requests that a program is putting together between wr_start and wr_complete. Storage for a full send queue
/// is set aside by init_qp_ex and touched only as far as it is used; nothing is allocated afterwards.
/// From wr_start to wr_complete or wr_abort under `building`; else nobody's.
struct QpExState {
  base::AdaptiveMutex building;
  uint32_t count = 0;       // requests begun since wr_start
  int error = 0;            // the first refusal since wr_start; wr_complete reports it
  uint32_t capacity = 0;    // requests, as granted: max_send_wr
  uint32_t max_sge = 0;     // per request
  uint32_t max_inline = 0;  // bytes per request
  std::unique_ptr<ibv_send_wr[]> requests;
  std::unique_ptr<ibv_sge[]> segments;           // [capacity][max_sge], at least one per request
  std::unique_ptr<unsigned char[]> inline_data;  // [capacity][max_inline]
  base::Explanation refusal;                     // RINGBOLT_EXPLAIN: the words for `error`
};

/// Head of every QP object. `marks` lies where the verbs library keeps its own flag for an extended QP.
struct ExtendableQp {
  static constexpr uint32_t kIsExtended = 1;

  ibv_qp_ex ex = {};
  uint32_t marks = 0;
  QpExState state;

  ibv_qp* classical() { return &ex.qp_base; }
};

static_assert(offsetof(ExtendableCq, ex) == 0);
static_assert(offsetof(ExtendableQp, ex) == 0 && offsetof(ExtendableQp, marks) == sizeof(ibv_qp_ex));

/// Whether a CQ can be made as asked. Returns 0; EOPNOTSUPP for readers or flags that we cannot serve (time stamps,
/// VLAN, flow tag, tag matching; overrun ignored; parent domain); EINVAL for bits that nobody defined. Thread-safe.
int check_cq_ex(const ibv_cq_init_attr_ex& wanted);

/// Fills in the calls of an extended CQ that check_cq_ex let pass. `cq.ex.context` must be set. Not thread-safe.
void init_cq_ex(ExtendableCq& cq, const ibv_cq_init_attr_ex& wanted);

/// Whether a QP can be made as asked, beyond what the classical call checks. Returns 0; EOPNOTSUPP for attributes that
/// we do not have (XRC, RSS, TSO, creation flags) and for operations that the QP type lacks; EINVAL without a PD.
/// Thread-safe.
int check_qp_ex(const ibv_qp_init_attr_ex& wanted);

/// Makes `qp` an extended QP with the builders of `send_ops_flags` and storage for `granted`. Every builder can be
/// called: one that was not asked for makes wr_complete return EOPNOTSUPP. `qp.ex.qp_base.context` must be set.
/// Returns 0 or ENOMEM, and then `qp` is as before. Not thread-safe.
int init_qp_ex(ExtendableQp& qp, uint64_t send_ops_flags, const ibv_qp_cap& granted);

/// RINGBOLT_EXPLAIN: the queue pair is destroyed, and its object is kept. Gives its storage back; each further batch,
/// and one that is being put together, is refused with EINVAL.
void end_qp_ex(ExtendableQp& qp);
/// Of such a queue pair, for any call.
base::Explanation why_destroyed(const ibv_qp* qp);

/// RINGBOLT_EXPLAIN: the next list that this thread posts as a whole comes from there; of none: no more.
/// Of the calling thread.
void note_batch(const base::CallSite& site);
/// Its return address; 0: nobody notes them.
uint64_t batch_place();

}  // namespace ringbolt::abi
