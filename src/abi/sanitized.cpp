// The calls of a context's table in programs that are sanitized, and the end of such a program.

#include "abi/sanitized.h"

#include <dlfcn.h>
#include <pthread.h>

#include <cerrno>
#include <cstdlib>
#include <string_view>

#include <fmt/format.h>

#include "abi/objects.h"
#include "abi/recorded.h"
#include "base/c_border.h"
#include "base/error.h"
#include "base/say.h"
#include "cluster/runtime_dir.h"
#include "device/work_request.h"

// Set by the linker: where this library begins, and where its instructions end.
extern "C" {
extern const char __ehdr_start __attribute__((visibility("hidden")));  // NOLINT
extern const char etext __attribute__((visibility("hidden")));         // NOLINT
}

namespace ringbolt::abi {
namespace {

thread_local base::CallSite called_from{};  // of the extended verbs' call that goes on

/// RINGBOLT_EXPLAIN: the post that the sanitizer passes on just now, as the program made it: what is left of its list.
struct Passed {
  device::SendPosting send{};
  device::ReceivePosting receive{};
};
// Between the table's call and the device's, which the same thread makes.
thread_local Passed passed{};

constexpr int kMistakesFound = 66;  // exit status, as with AddressSanitizer a number of its own

/// Of the program's call. The builders of extended queue pairs are ours, and call us in its name.
base::CallSite site_of(const void* frame, const void* returns_to) {
  const auto* const at = static_cast<const char*>(returns_to);
  if (at < &__ehdr_start || at >= &etext) {
    return base::call_site_of(frame, returns_to);
  }
  return called_from ? called_from : base::call_site();
}

// In the frame of the function that the program calls.
#define RINGBOLT_SITE site_of(__builtin_frame_address(0), __builtin_return_address(0))
#define RINGBOLT_WITHIN [[gnu::always_inline]] inline

// Where RINGBOLT_EXPLAIN keeps queue pairs that were destroyed, these have no device's part any more.
RINGBOLT_WITHIN int sanitized_post_send_at(ibv_qp* qp, ibv_send_wr* wr, ibv_send_wr** bad, uint64_t at) {
  if (Qp::of(qp).impl == nullptr) {
    device::name_refused(wr, bad);
    return refuse_destroyed("ibv_post_send", qp);
  }
  passed.send = {RINGBOLT_SITE, at, wr};
  return shadow()->post_send(qp, wr, bad, passed.send.site);
}
RINGBOLT_WITHIN int sanitized_post_receive_at(ibv_qp* qp, ibv_recv_wr* wr, ibv_recv_wr** bad, uint64_t at) {
  if (Qp::of(qp).impl == nullptr) {
    device::name_refused(wr, bad);
    return refuse_destroyed("ibv_post_recv", qp);
  }
  passed.receive = {RINGBOLT_SITE, at, wr};
  return shadow()->post_receive(qp, wr, bad, passed.receive.site);
}
RINGBOLT_WITHIN int sanitized_post_srq_receive_at(ibv_srq* srq, ibv_recv_wr* wr, ibv_recv_wr** bad, uint64_t at) {
  passed.receive = {RINGBOLT_SITE, at, wr};
  return shadow()->post_srq_receive(srq, wr, bad, passed.receive.site);
}
RINGBOLT_WITHIN int sanitized_post_send(ibv_qp* qp, ibv_send_wr* wr, ibv_send_wr** bad) {
  return sanitized_post_send_at(qp, wr, bad, 0);
}
RINGBOLT_WITHIN int sanitized_post_receive(ibv_qp* qp, ibv_recv_wr* wr, ibv_recv_wr** bad) {
  return sanitized_post_receive_at(qp, wr, bad, 0);
}
RINGBOLT_WITHIN int sanitized_post_srq_receive(ibv_srq* srq, ibv_recv_wr* wr, ibv_recv_wr** bad) {
  return sanitized_post_srq_receive_at(srq, wr, bad, 0);
}
RINGBOLT_WITHIN int sanitized_poll_cq(ibv_cq* cq, int count, ibv_wc* wc) {
  const base::CallSite site = RINGBOLT_SITE;
  const int got = shadow()->poll_cq(cq, count, wc, site);
  if (base::is_explaining()) {
    device::Waiters& pollers = Cq::of(cq).impl->pollers();
    got == 0 ? pollers.note(site) : pollers.note_poll(got);
  }
  return got;
}
RINGBOLT_WITHIN int sanitized_notification(ibv_cq* cq, int solicited_only) {
  shadow()->arming(cq, RINGBOLT_SITE);
  return request_notification(cq, solicited_only);
}

/// `wr` is the beginning of what is left: the sanitizer may pass a list on in parts.
template <class Wr>
device::Posting<Wr> next_part(device::Posting<Wr>& left, const Wr* wr) {
  const device::Posting<Wr> part = left;
  for (; wr != nullptr && left.original != nullptr; wr = wr->next) {
    left.original = left.original->next;
  }
  return part;
}

// What the sanitizer calls where RINGBOLT_EXPLAIN wants to know of posts, too.
int passed_post_send(ibv_qp* qp, ibv_send_wr* wr, ibv_send_wr** bad) {
  return Qp::of(qp).impl->post_send_noted(wr, bad, next_part(passed.send, wr));
}
int passed_post_receive(ibv_qp* qp, ibv_recv_wr* wr, ibv_recv_wr** bad) {
  return Qp::of(qp).impl->post_receive_noted(wr, bad, next_part(passed.receive, wr));
}
int passed_post_srq_receive(ibv_srq* srq, ibv_recv_wr* wr, ibv_recv_wr** bad) {
  return Srq::of(srq).impl->post_noted(wr, bad, next_part(passed.receive, wr));
}

/// Without a place among the program's objects: it must not keep a context from closing.
void* add_kept_memory(ibv_pd* pd, void* memory, size_t length, uint32_t* lkey) {
  const auto address = reinterpret_cast<uint64_t>(memory);
  auto region = device::MemoryRegion::create(Pd::of(pd).impl, address, length, address, IBV_ACCESS_LOCAL_WRITE);
  if (!region) {
    return nullptr;
  }
  *lkey = (*region)->key();
  return region->release();
}

void remove_kept_memory(void* region) { delete static_cast<device::MemoryRegion*>(region); }

void before_sanitized_fork() RINGBOLT_NOT_ANALYSED { shadow()->before_fork(); }
void in_sanitized_parent() RINGBOLT_NOT_ANALYSED { shadow()->in_parent(); }
void in_sanitized_child() RINGBOLT_NOT_ANALYSED { shadow()->in_child(); }

/// Handlers that were registered earlier still run after this one: glibc takes another status from a further exit().
void end_sanitized(int status, void* /*unused*/) try {
  shadow()->report_leaks();
  shadow()->reports().summarize();
  if (status == 0 && shadow()->reports().count() != 0) {
    std::exit(kMistakesFound);
  }
} catch (...) {
  base::caught_nothing();
}

/// Empty: there is no runtime folder, of which opening a device will speak.
std::string race_table_path() try {
  return cluster::RuntimeDir::from_environment().root() + "/races";
} catch (const base::Error&) {
  return "";
}

sanitizer::Shadow* make_shadow() {
  const char* const wanted = std::getenv("RINGBOLT_SANITIZE");
  const sanitizer::Wish wish = sanitizer::parse_wish(wanted == nullptr ? "" : wanted);
  if (!wish.unknown.empty()) {
    base::say(
        fmt::format("ringbolt: RINGBOLT_SANITIZE={}: {} is nothing that it finds; give on, all, off, or some of "
                    "buffers,early,queues,objects,portable,races\n",
                    wanted, wish.unknown));
  }
  if (wish.kinds == 0) {
    return nullptr;
  }
  sanitizer::Shadow::Calls calls{
      post_send, post_receive, post_srq_receive, poll_cq, {add_kept_memory, remove_kept_memory}, race_table_path()};
  if (base::is_explaining()) {
    calls.post_send = passed_post_send;
    calls.post_receive = passed_post_receive;
    calls.post_srq_receive = passed_post_srq_receive;
  }
  auto* made = new sanitizer::Shadow(wish, calls);  // never destroyed: programs call us from their own destructors
  // Handlers before a fork run in the opposite order, those after it in this one (pthread_atfork(3)).
  pthread_atfork(before_sanitized_fork, in_sanitized_parent, in_sanitized_child);
  // on_exit(3), since atexit(3) does not tell the status that the program ends with.
  ::on_exit(end_sanitized, nullptr);
  return made;
}

/// When the library is loaded, and not at the first call: what a program destroys when it ends, it destroys before the
/// handler that is registered first looks for what is left.
__attribute__((constructor)) void begin_sanitizing() try { static_cast<void>(shadow()); } catch (...) {
  base::caught_nothing();
}

}  // namespace

// The recorder asks for the place of a batch where RINGBOLT_EXPLAIN keeps it.
SiteScope::SiteScope(const void* frame, const void* returns_to) {
  called_from = base::call_site_of(frame, returns_to);
  note_batch(called_from);
}

SiteScope::~SiteScope() {
  called_from = {};
  note_batch({});
}

sanitizer::Shadow* shadow() {
  static sanitizer::Shadow* const made = make_shadow();
  return made;
}

void sanitize_calls(ibv_context_ops& ops) {
  using base::guarded;
  using base::put;
  put(ops.poll_cq, guarded<sanitized_poll_cq, base::caught_minus_one>);
  put(ops.req_notify_cq, guarded<sanitized_notification>);
  put(ops.post_srq_recv, guarded<sanitized_post_srq_receive>);
  put(ops.post_send, guarded<sanitized_post_send>);
  put(ops.post_recv, guarded<sanitized_post_receive>);
  record_calls<sanitized_poll_cq, sanitized_notification, sanitized_post_send_at, sanitized_post_receive_at,
               sanitized_post_srq_receive_at>(ops);
}

bool is_of_connection_manager(const void* address) {
  Dl_info found{};
  if (::dladdr(address, &found) == 0 || found.dli_fname == nullptr) {
    return false;
  }
  const std::string_view path = found.dli_fname;
  return path.substr(path.rfind('/') + 1).starts_with("librdmacm.so");
}

}  // namespace ringbolt::abi
