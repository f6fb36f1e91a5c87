#pragma once

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>

namespace ringbolt::abi {

/// The layout of `verbs_context` grows at its front: each release of the verbs library puts new calls before the old
/// ones, and a program finds the structure by going back from the `ibv_context*` by as many bytes as its own header
/// says. So an object of the newest size serves programs of every age.
inline constexpr size_t kNewestVerbsContextBytes = 368 + sizeof(ibv_context);  // rdma-core 65

/// `ibv_context::abi_compat` of a context that is the tail of a verbs_context. Anything else means an object of 2006.
inline const auto kHasVerbsContext = reinterpret_cast<void*>(UINTPTR_MAX);

/// A verbs_context of the newest size: the calls that the installed header does not know yet stay null, which says
/// "not supported" to a program that knows them. Fill in with prepare(); `known.context` is what programs get to see.
/// Owned by Context, whose first member it is.
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

/// Where the member at `offset` of the installed verbs_context lies, in bytes before its `context`, which ends it. That
/// distance is the same in every release.
constexpr size_t before_context(size_t offset) { return offsetof(verbs_context, context) - offset; }

static_assert(sizeof(WideVerbsContext) == kNewestVerbsContextBytes);
static_assert(offsetof(WideVerbsContext, known.context) == kNewestVerbsContextBytes - sizeof(ibv_context));
static_assert(before_context(offsetof(verbs_context, query_port)) == 320);
static_assert(before_context(offsetof(verbs_context, advise_mr)) == 312);
static_assert(before_context(offsetof(verbs_context, alloc_null_mr)) == 304);
static_assert(before_context(offsetof(verbs_context, alloc_dm)) == 256);
static_assert(before_context(offsetof(verbs_context, free_dm)) == 248);
static_assert(before_context(offsetof(verbs_context, alloc_parent_domain)) == 208);
static_assert(before_context(offsetof(verbs_context, alloc_td)) == 192);
static_assert(before_context(offsetof(verbs_context, modify_cq)) == 184);
static_assert(before_context(offsetof(verbs_context, create_wq)) == 136);
static_assert(before_context(offsetof(verbs_context, query_rt_values)) == 128);
static_assert(before_context(offsetof(verbs_context, create_cq_ex)) == 120);
static_assert(before_context(offsetof(verbs_context, priv)) == 112);
static_assert(before_context(offsetof(verbs_context, query_device_ex)) == 104);
static_assert(before_context(offsetof(verbs_context, open_qp)) == 64);
static_assert(before_context(offsetof(verbs_context, create_qp_ex)) == 56);
static_assert(before_context(offsetof(verbs_context, get_srq_num)) == 48);
static_assert(before_context(offsetof(verbs_context, create_srq_ex)) == 40);
static_assert(before_context(offsetof(verbs_context, open_xrcd)) == 32);
static_assert(before_context(offsetof(verbs_context, close_xrcd)) == 24);
static_assert(before_context(offsetof(verbs_context, sz)) == 8);
static_assert(offsetof(verbs_context, context) + sizeof(ibv_context) == sizeof(verbs_context));

}  // namespace layout
}  // namespace ringbolt::abi
