#pragma once

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>

namespace ringbolt::abi {

/// The layout of `verbs_context` grows at its front: each release of the verbs library puts new calls before the old
/// ones, and a program finds the structure by going back from the `ibv_context*` by as many bytes as its own header
/// says. So an object of the newest size serves programs of every age.
inline constexpr size_t kNewestVerbsContextBytes = 696;  // rdma-core 65

/// `ibv_context::abi_compat` of a context that is the tail of a verbs_context. Anything else means an object of 2006.
inline const auto kHasVerbsContext = reinterpret_cast<void*>(UINTPTR_MAX);

/// A verbs_context of the newest size: the calls that the installed header does not know yet stay null, which says
/// "not supported" to a program that knows them. Fill in with prepare(); `known.context` is what programs get to see.
struct WideVerbsContext {
  static constexpr size_t kNewerCalls = (kNewestVerbsContextBytes - sizeof(verbs_context)) / sizeof(void*);

  void* newer_calls[kNewerCalls] = {};
  verbs_context known = {};
};

/// Marks `wide` as what it is, with all calls null. The caller then fills in `known` and `known.context.ops`.
inline void prepare(WideVerbsContext& wide) {
  wide = {};
  wide.known.sz = sizeof(WideVerbsContext);
  wide.known.context.abi_compat = kHasVerbsContext;
}

/// The object around a context that programs handed back to us.
inline WideVerbsContext* wide_verbs_context(ibv_context* context) {
  return reinterpret_cast<WideVerbsContext*>(reinterpret_cast<char*>(context) -
                                             (sizeof(WideVerbsContext) - sizeof(ibv_context)));
}

namespace layout {

/// Where the member at `offset` of the installed verbs_context lies, in bytes before the structure's end. That
/// distance is the same in every release.
constexpr size_t before_end(size_t offset) { return sizeof(verbs_context) - offset; }

static_assert(sizeof(WideVerbsContext) == kNewestVerbsContextBytes);
static_assert(offsetof(WideVerbsContext, known.context) == kNewestVerbsContextBytes - sizeof(ibv_context));
static_assert(before_end(offsetof(verbs_context, query_port)) == 648);
static_assert(before_end(offsetof(verbs_context, advise_mr)) == 640);
static_assert(before_end(offsetof(verbs_context, alloc_null_mr)) == 632);
static_assert(before_end(offsetof(verbs_context, alloc_dm)) == 584);
static_assert(before_end(offsetof(verbs_context, free_dm)) == 576);
static_assert(before_end(offsetof(verbs_context, alloc_parent_domain)) == 536);
static_assert(before_end(offsetof(verbs_context, alloc_td)) == 520);
static_assert(before_end(offsetof(verbs_context, modify_cq)) == 512);
static_assert(before_end(offsetof(verbs_context, create_wq)) == 464);
static_assert(before_end(offsetof(verbs_context, query_rt_values)) == 456);
static_assert(before_end(offsetof(verbs_context, create_cq_ex)) == 448);
static_assert(before_end(offsetof(verbs_context, priv)) == 440);
static_assert(before_end(offsetof(verbs_context, query_device_ex)) == 432);
static_assert(before_end(offsetof(verbs_context, open_qp)) == 392);
static_assert(before_end(offsetof(verbs_context, create_qp_ex)) == 384);
static_assert(before_end(offsetof(verbs_context, get_srq_num)) == 376);
static_assert(before_end(offsetof(verbs_context, create_srq_ex)) == 368);
static_assert(before_end(offsetof(verbs_context, open_xrcd)) == 360);
static_assert(before_end(offsetof(verbs_context, close_xrcd)) == 352);
static_assert(before_end(offsetof(verbs_context, sz)) == 336);
static_assert(before_end(offsetof(verbs_context, context)) == 328);

}  // namespace layout
}  // namespace ringbolt::abi
