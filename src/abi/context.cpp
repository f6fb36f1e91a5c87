// Opening and closing a device, and the calls that programs reach through its context.

#include <fcntl.h>

#include <algorithm>
#include <cstdio>
#include <thread>

#include "abi/objects.h"
#include "abi/process_registry.h"
#include "abi/recorded.h"
#include "base/c_border.h"
#include "base/error.h"

#undef ibv_query_port

namespace ringbolt::abi {

void release_device(Device& device);

namespace {

int compat_query_device(ibv_context* context, ibv_device_attr* attributes) {
  return ibv_query_device(context, attributes);
}
int compat_query_port(ibv_context* context, uint8_t port_num, _compat_ibv_port_attr* attributes) {
  return ibv_query_port(context, port_num, attributes);
}

/// Each layer replaces the calls of those below it: device, recorder, explanations, sanitizer.
void fill_calls(WideVerbsContext& wide) {
  using base::caught_null;
  using base::guarded;
  using base::guarded_within;
  using base::put;
  verbs_context& known = wide.known;
  put(known.query_port, guarded<query_port>);
  put(known.create_cq_ex, guarded<create_cq_ex, caught_null>);
  put(known.query_device_ex, guarded<query_device_ex>);
  put(known.create_qp_ex, guarded<create_qp_ex, caught_null>);
  put(known.create_srq_ex, guarded<create_srq_ex, caught_null>);
  ibv_context_ops& ops = known.context.ops;
  put(ops._compat_query_device, guarded<compat_query_device>);
  put(ops._compat_query_port, guarded<compat_query_port>);
  put(ops.alloc_mw, guarded<alloc_mw, caught_null>);
  put(ops.bind_mw, guarded<bind_mw>);
  put(ops.dealloc_mw, guarded<dealloc_mw>);
  put(ops.poll_cq, guarded_within<poll_cq>());
  put(ops.req_notify_cq, guarded<request_notification>);
  put(ops.post_srq_recv, guarded_within<post_srq_receive>());
  put(ops.post_send, guarded_within<post_send>());
  put(ops.post_recv, guarded_within<post_receive>());
  record_calls<poll_cq, request_notification, post_send, post_receive, post_srq_receive>(ops);
  if (base::is_explaining()) {
    explain_calls(ops);
  }
  if (shadow() != nullptr) [[unlikely]] {
    sanitize_calls(ops);
  }
}

}  // namespace
}  // namespace ringbolt::abi

using ringbolt::abi::Context;
using ringbolt::abi::Device;

extern "C" {

ibv_context* ibv_open_device(ibv_device* c) try {
  Device& opened = Device::of(c);
  auto context = std::make_unique<Context>();
  ringbolt::abi::prepare(context->wide);
  context->impl =
      std::make_unique<ringbolt::device::Context>(opened.port, ringbolt::abi::process_for(opened.port->fabric));
  ringbolt::abi::fill_calls(context->wide);
  ibv_context* result = context->c();
  result->device = c;
  // Nothing is asked through it, but programs duplicate it to share a device between processes.
  context->command = ringbolt::base::UniqueFd(open("/dev/null", O_RDWR | O_CLOEXEC));
  result->cmd_fd = context->command.get();
  result->async_fd = context->impl->events().descriptor();
  result->num_comp_vectors = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  pthread_mutex_init(&result->mutex, nullptr);
  // From here on a fork finds it; nothing below throws.
  ringbolt::abi::remember(context.get());
  opened.users.fetch_add(1);
  static_cast<void>(context.release());
  return result;
} catch (const ringbolt::base::Error& error) {
  std::fprintf(stderr, "ringbolt: %s\n", error.what());
  return ringbolt::abi::refuse<ibv_context>(error.errno_value());
} catch (...) {
  return ringbolt::base::caught_null();
}

int ibv_close_device(ibv_context* c) try {
  Context& context = Context::of(c);
  if (!context.objects.is_empty()) {
    return 0;  // what the program still holds works on, and not in its children; the memory stays until it exits
  }
  ringbolt::abi::forget(&context);
  Device& opened = Device::of(c->device);
  delete &context;
  ringbolt::abi::release_device(opened);
  return 0;
} catch (...) {
  return ringbolt::base::caught_errno();
}

}  // extern "C"
